"""The devices that benchmarks and calibrations run on: a simulated drive in virtual time, or a real file or block device."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from flashsim.core.errors import ALLOW_WRITE, CapacityError, MissingFileError, RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.request import COMPLETION, READ, SECTOR, WRITE, Completions, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.spans import Spans
from flashsim.core.units import GIB, KIB, MIB, SECONDS, format_size
from flashsim.device import presets
from flashsim.device.access import check_typed, is_path
from flashsim.device.aio import in_sets
from flashsim.device.batch import aligned_buffer
from flashsim.device.device import Device
from flashsim.device.file import RealDevice

#: Requests of the random state: uFLIP writes sizes up to an erase block of its time.
_STATE_UNIT, _STATE_LARGEST = 4 * KIB, 128 * KIB
#: Random writes that are served at a time.
_STATE_BATCH = 1 << 14
#: Bytes that one call reads or writes at most.
_CALL = 16 * MIB
#: Bytes of a file that is made for a calibration, and of a simulated drive that are calibrated.
DEFAULT_SIZE = GIB
#: The least area that a device can be calibrated in, some hundred requests of the largest size; and that size.
_LEAST_AREA, _LARGEST = 64 * MIB, 4 * MIB


class Drawing(Protocol):
    """Draws what a simulated drive does: `flashsim.experiments.presentation.timeline.Timeline`, on which measurements shall not rest."""

    def add_spans(self, spans: Spans) -> None: ...
    def add_requests(self, requests: Requests, completions: Completions) -> None: ...


class SimulatedTarget:
    """A simulated drive; `least` is the unit of requests, and `buffer` the bytes that it acknowledges before they are on flash.

    Of the drive `size` bytes are used; `timeline` draws the measurements, and nothing else.  Given a seed, `enforce` brings the drive into
    its state in another way than by random writes, and says what it is.
    """

    def __init__(self, device: Device, size: int, timeline: Drawing | None = None, enforce: Callable[[int], str] | None = None) -> None:
        if size > device.capacity:
            raise CapacityError(f"size: {format_size(size)}, but {device.name} holds {format_size(device.capacity)}")
        self.device, self.name, self.size, self.least, self.timeline = device, device.name, size, SECTOR, timeline
        self.enforce = enforce
        self.buffer = device.preset.flash.whole_page_buffer if device.preset.flash else 0

    def enforce_state(self, share: float, seed: int) -> str:
        """Load the whole area in no time, then write `share` of it at random, unless there is `enforce`; a disk has no state."""
        if self.enforce:
            return self.enforce(seed)
        if self.device.kind == "hdd":
            return "none: a disk's times do not depend on what was written before"
        self.device.load(0, self.size)
        for requests in random_state(self.size, int(share * self.size), _STATE_UNIT, seed):
            self.device.serve(requests)
        return f"the whole area ({format_size(self.size)}) loaded in order, then {share:.0%} of it written at random places and sizes"

    def serve(self, requests: Requests, pause: int) -> Completions:
        """Pause (ns), then serve the requests; their completions in order."""
        return self.device.serve(requests, self.device.now + pause)

    def measure(self, requests: Requests, pause: int) -> Completions:
        """Responses of requests that are measured: they are drawn, where something is."""
        return self._draw(requests, lambda: self.serve(requests, pause))

    def together(self, requests: Requests, level: int, pause: int) -> Completions:
        """Measure requests of which `level` are handed over at once, and the next ones when they have completed; writes behind go on."""
        if level == 1:
            requests["dependency"] = np.arange(len(requests)) - 1
        size = len(requests) if level == 1 else level

        def serve() -> Completions:
            at, sets = self.device.now + pause, []
            for begin in range(0, len(requests), size):
                sets.append(self.device.serve(requests[begin : begin + size], at, settle=False))
                at = self.device.now
            return np.concatenate(sets)

        return self._draw(requests, serve)

    def _draw(self, requests: Requests, serve: Callable[[], Completions]) -> Completions:
        if self.timeline is None:
            return serve()
        self.device.record_spans(True)
        completions = serve()
        self.timeline.add_spans(self.device.spans())
        self.device.record_spans(False)
        self.timeline.add_requests(requests, completions)
        return completions


class RealTarget:
    """A real file or block device, past the page cache."""

    def __init__(self, device: RealDevice, size: int) -> None:
        self.device, self.name, self.size = device, str(device.path), size
        self.least, self.buffer = device.alignment, 0

    def enforce_state(self, share: float, seed: int) -> str:
        """Write the whole area in order, so that no part of a file is a hole, then as many bytes at random places and sizes, and flush."""
        offsets = np.arange(0, self.size, _STATE_LARGEST)
        self.serve(make_requests(WRITE, offsets, np.minimum(_STATE_LARGEST, self.size - offsets), serial=True), 0)
        for requests in random_state(self.size, self.size, max(_STATE_UNIT, self.least), seed):
            self.serve(requests, 0)
        self.device.flush()
        return f"the whole area ({format_size(self.size)}) written in order, then as many bytes at random places and sizes"

    def measure(self, requests: Requests, pause: int) -> Completions:
        """Serve the requests: of a real device there is nothing to draw."""
        return self.serve(requests, pause)

    def together(self, requests: Requests, level: int, pause: int) -> Completions:
        """Serve requests of one length and operation by the kernel's asynchronous interface; all use the same memory."""
        time.sleep(pause / SECONDS)
        operation, length = int(requests["operation"][0]), int(requests["length"][0])
        memory = aligned_buffer(length)
        memory[:] = generator(0, "content").integers(0, 256, length, np.uint8)  # some drives compress zeros
        batch = self.device.prepare(operation, requests["offset"], requests["length"], memory)
        completions = np.zeros(len(requests), COMPLETION)
        completions["submitted"], completions["completed"] = self.device.serve(batch, partial(in_sets, level=level), level)
        return completions

    def serve(self, requests: Requests, pause: int) -> Completions:
        time.sleep(pause / SECONDS)
        completions = np.zeros(len(requests), COMPLETION)
        streams = [np.flatnonzero(requests["stream"] == stream) for stream in np.unique(requests["stream"])]
        with ThreadPoolExecutor(len(streams)) as pool:
            for rows, replies in zip(streams, pool.map(lambda rows: self._stream(requests[rows]), streams), strict=True):
                completions[rows] = replies
        return completions

    def _stream(self, requests: Requests) -> Completions:
        parts = []
        begin = 0
        while begin < len(requests):
            rest = requests[begin:]
            time.sleep(int(rest["think"][0]) / SECONDS)
            # one call serves requests of one operation, without a pause, and not too many bytes
            together = (rest["operation"] == rest["operation"][0]) & (np.cumsum(rest["length"]) <= _CALL) & (rest["think"] == 0)
            together[0] = True
            part = rest if together.all() else rest[: int(np.argmin(together))]
            if part["operation"][0] == READ:
                parts.append(self.device.read(part["offset"], part["length"])[1])
            else:
                parts.append(self.device.write(part["offset"], np.zeros(int(part["length"].sum()), np.uint8), part["length"]))
            begin += len(part)
        return np.concatenate(parts)


#: A device under test.
Target = SimulatedTarget | RealTarget


def random_state(size: int, total: int, unit: int, seed: int) -> Iterator[Requests]:
    """Batches of synchronous writes of random sizes (4 to 128 KiB) at random places, at least `total` bytes together."""
    random = generator(seed, "random state")
    while total > 0:
        lengths = random.integers(1, _STATE_LARGEST // unit + 1, _STATE_BATCH) * unit
        lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), total)) + 1]
        places = (size - lengths) // unit
        offsets = random.integers(0, places + 1) * unit
        yield make_requests(WRITE, offsets, lengths, serial=True)
        total -= int(lengths.sum())


def size_of(path: Path) -> int:
    """The bytes of a file or block device; 0 where there is none yet, or none that can be opened."""
    try:
        with path.open("rb") as file:
            return file.seek(0, os.SEEK_END)
    except OSError:
        return 0


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


def simulated_target(preset: presets.Preset, size: int | None = None) -> SimulatedTarget:
    """A fresh drive of a preset, all of a disk and 1 GiB of a flash drive by default; flash has been written once, in order.

    Raises
    ------
    CapacityError
        The drive is smaller than that, or too small.
    """
    capacity = preset.capacity
    if size is not None and size > capacity:
        raise CapacityError(f"size: {format_size(size)}, but {preset.name} holds {format_size(capacity)}")
    area = _whole(size or (capacity if preset.kind == "hdd" else min(capacity, DEFAULT_SIZE)), preset.name)
    device = Device(preset)
    if device.kind == "ssd":
        device.load(0, area)
    return SimulatedTarget(device, area)


@contextmanager
def open_target(
    name: str,
    size: int | None,
    *,
    allow_write: bool = False,
    replace: bool = False,
    destroy: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[Target]:
    """The device of a calibration: a fresh simulated drive of that preset, or a real file or block device.

    A real one is opened with O_DIRECT, only to read unless writing is allowed; a file that is made is removed at the end.  Where writing is
    allowed, the area is written once, in order, so that reads reach the device.
    """
    if not is_path(name):
        yield simulated_target(presets.load(name), size)
        return
    path, least = Path(name), size or SECTOR
    if allow_write:
        if path.is_block_device():
            check_typed(path, destroy)
        least = _whole(size or size_of(path) or DEFAULT_SIZE, name)
    with RealDevice(path, least, allow_write=allow_write, replace=replace, read_only=not allow_write) as device:
        area = _whole(size or device.size, name)
        target = PsyncTarget(device, area)
        for offset in range(0, area if allow_write else 0, _LARGEST):
            target.serve(make_requests(WRITE, offset, _LARGEST), 0)
            if progress:
                progress(offset + _LARGEST, area, "writing the area once")
        if not allow_write:
            _refuse_holes(path, area)
        yield target
        device.remove_if_new()


def _whole(size: int, name: str) -> int:
    """The bytes that are calibrated, whole multiples of the largest request."""
    if size < _LEAST_AREA:
        raise CapacityError(f"size: {format_size(size // SECTOR * SECTOR)} of {name}, but a calibration needs {format_size(_LEAST_AREA)}")
    return size // _LARGEST * _LARGEST


def _refuse_holes(path: Path, area: int) -> None:
    try:
        with path.open("rb") as file:
            hole = os.lseek(file.fileno(), 0, os.SEEK_HOLE)
    except OSError as problem:
        raise MissingFileError(f"device: cannot read {path}: {problem.strerror}") from problem
    if hole < area and path.is_file():
        raise RefusedError(
            f"device: {path} was not written from {format_size(hole // SECTOR * SECTOR)} on; reads there do not reach the device "
            "(write it first, or add " + ALLOW_WRITE + ")"
        )
