"""What is calibrated: a simulated drive in virtual time, or a real file or block device whose batches are submitted at once."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from flashsim.core.errors import CapacityError, MissingFileError, RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, SECTOR, WRITE, Completions, Requests, make_requests
from flashsim.core.units import GIB, MIB, format_size
from flashsim.device import presets
from flashsim.device.access import is_path
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.device.presets import Preset
from flashsim.studies.bench.targets import RealTarget, SimulatedTarget, Target
from flashsim.studies.calibration.cells import check_area
from flashsim.studies.replaying.real import check_typed

#: Of a file that is made for the calibration, and of a simulated drive.
DEFAULT_SIZE = GIB
_FILL = 4 * MIB


class PsyncTarget(RealTarget):
    """A real device that gets requests which wait for nothing all at once, and others one after another (psync)."""

    def serve(self, requests: Requests, pause: int) -> Completions:
        if len(requests) and requests["think"].any():
            return super().serve(requests, pause)
        batch = bool((requests["dependency"] < 0).all())
        if requests["operation"][0] == READ:
            return self.device.read(requests["offset"], requests["length"], batch=batch)[1]
        data = np.zeros(int(requests["length"].sum()), np.uint8)
        return self.device.write(requests["offset"], data, requests["length"], batch=batch)


@contextmanager
def open_target(
    device: str,
    size: int | None,
    *,
    allow_write: bool = False,
    replace: bool = False,
    destroy: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[Target]:
    """The device that a name stands for: a real file or block device, or else a fresh simulated drive of that preset."""
    if is_path(device):
        with real_target(Path(device), size, allow_write=allow_write, replace=replace, destroy=destroy, progress=progress) as target:
            yield target
    else:
        yield simulated_target(presets.load(device), size)


def simulated_target(preset: Preset, size: int | None = None) -> SimulatedTarget:
    """A fresh drive of a preset, all of a disk and 1 GiB of a flash drive unless told otherwise; flash has been written once, in order.

    Raises
    ------
    CapacityError
        The drive is smaller than that, or too small.
    """
    capacity = preset.capacity
    if size is not None and size > capacity:
        raise CapacityError(f"size: {format_size(size)}, but {preset.name} holds {format_size(capacity)}")
    area = check_area(size or (capacity if preset.kind == "hdd" else min(capacity, DEFAULT_SIZE)), preset.name)
    device = Device(preset)
    if device.kind == "ssd":
        device.load(0, area)
    return SimulatedTarget(device, area)


@contextmanager
def real_target(
    path: Path,
    size: int | None,
    *,
    allow_write: bool,
    replace: bool,
    destroy: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[PsyncTarget]:
    """Open a file or block device with O_DIRECT, only to read unless writing is allowed; a file that is made is removed at the end.

    What may be written is written once, in order, so that reads reach the device.
    """
    if allow_write:
        if path.is_block_device():
            check_typed(path, destroy)
        opened = RealDevice(path, check_area(size or _size_of(path) or DEFAULT_SIZE, str(path)), allow_write=True, replace=replace)
    else:
        opened = RealDevice(path, size or SECTOR, read_only=True)
    with opened as device:
        area = check_area(size or device.size, str(path))
        target = PsyncTarget(device, area)
        if allow_write:
            for offset in range(0, area, _FILL):
                target.serve(make_requests(WRITE, offset, _FILL), 0)
                if progress:
                    progress(offset + _FILL, area, "writing the area once")
        else:
            _refuse_holes(path, area)
        yield target
        device.remove_if_made()


def _size_of(path: Path) -> int:
    """The bytes of a file or block device; 0 where there is none yet, or none that can be opened."""
    try:
        with path.open("rb") as file:
            return file.seek(0, os.SEEK_END)
    except OSError:
        return 0


def _refuse_holes(path: Path, area: int) -> None:
    try:
        with path.open("rb") as file:
            hole = os.lseek(file.fileno(), 0, os.SEEK_HOLE)
    except OSError as problem:
        raise MissingFileError(f"device: cannot read {path}: {problem.strerror}") from problem
    if hole < area and path.is_file():
        raise RefusedError(
            f"device: {path} was not written from {format_size(hole // SECTOR * SECTOR)} on; reads there do not reach the device "
            "(write it first, or add --allow-write)"
        )
