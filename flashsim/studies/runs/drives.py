"""Drives with a history: what they held when a join begins, and drawn histories in the place of repeated runs.

A simulated drive repeats itself exactly; a real one does not, since it was left in another state, which papers hardly tell.  Of any drive
is drawn where on it the volume begins; a flash drive also is full, and random pages were written again since.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.studies.runs.ships_model import ShipsModel

#: The volume begins within the first so many blocks of 4 KiB: 64 MiB hold any alignment to the flash drive's superblocks.
_STARTS = 16_384
#: Random pages written before a run: some tens of log blocks are in use, or none.
_OVERWRITES = 256


class HeldDrive(Protocol):
    """A drive that a join is to run on."""

    @property
    def start(self) -> int:
        """Bytes from its begin to the join's volume."""

    @property
    def full(self) -> bool:
        """Whether it holds data everywhere, so that relations need not be loaded."""

    @property
    def scale(self) -> float:
        """That of a drive which is a miniature; 1 of any other."""

    def load(self) -> presets.Preset:
        """What drive it is."""

    def device(self, touched: int) -> Device:
        """The drive itself, of which a join touches so many bytes."""


@dataclass(frozen=True)
class ReadyDrive:
    """A drive as it stands: a join runs on a copy of it, so that it stays so, and several may run on the same."""

    given: Device
    full: bool = False
    start: int = 0
    scale: float = 1.0

    def load(self) -> presets.Preset:
        return self.given.preset

    def device(self, touched: int) -> Device:
        return deepcopy(self.given)


@dataclass(frozen=True)
class DriveInUse:
    """A drive when a join begins.

    Parameters
    ----------
    preset
        By name or TOML file.
    changes
        Other values of its parameters.
    full
        Whether it holds data everywhere, written in order.
    start
        Bytes from its begin to the join's volume.
    overwrites
        So many random pages of 4 KiB were written again since, as `seed` draws them.
    model
        Of which it is a part.
    """

    preset: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    full: bool = False
    start: int = 0
    overwrites: int = 0
    seed: int = 0
    model: ShipsModel | None = None

    @property
    def scale(self) -> float:
        """That of its model; 1 without one."""
        return self.model.of_drives if self.model else 1.0

    def in_model(self, model: ShipsModel | None) -> DriveInUse:
        """The drive in miniature, the volume at its place; without a model the drive itself."""
        return self if model is None else replace(self, model=model, start=int(self.start * model.of_drives) // 4096 * 4096)

    def load(self) -> presets.Preset:
        """The preset with the changes, in miniature where it belongs to a model."""
        preset = presets.load(self.preset)
        if self.changes:
            preset = replace(preset, parameters=replace(preset.parameters, **self.changes))
        return preset if self.model is None else self.model.preset(preset)

    def device(self, touched: int) -> Device:
        """The drive; what lies beyond the bytes that are touched would not tell, and is not laid out."""
        device = Device(self.load())
        touched = min(touched, device.capacity - self.start)
        if self.full:
            device.load(0, self.start + touched)
        if self.overwrites:
            pages = generator(self.seed, "overwrites").integers(0, touched // 4096, self.overwrites)
            device.serve(make_requests(WRITE, self.start + pages * 4096, 4096, serial=True))
        return device


def states(devices: Mapping[str, str], count: int, seed: int) -> dict[str, list[DriveInUse]]:
    """So many states of each machine's drive, drawn under a seed."""
    found: dict[str, list[DriveInUse]] = {machine: [] for machine in devices}
    for number in range(count):
        draw = generator(seed, "state", number)
        start, overwrites = int(draw.integers(_STARTS)) * 4096, int(draw.integers(_OVERWRITES))
        for machine, preset in devices.items():
            written = overwrites if presets.load(preset).kind == "ssd" else 0
            found[machine].append(DriveInUse(preset, {}, True, start, written, seed + number))
    return found
