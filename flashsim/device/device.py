"""The device that everything above uses: a block layer in front of a simulated drive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.model import CompiledModel, DeviceModel, PowerCut
from flashsim.core.protocols import Progress
from flashsim.core.request import COMPLETION, SECTOR, TRIM, WRITE, Completions, Integers, Requests, make_requests
from flashsim.core.spans import SPAN, Spans, SpanSource
from flashsim.core.units import NEVER
from flashsim.device import block_layer, engines, presets
from flashsim.ssd.precondition import Precondition, Preconditioned, precondition
from flashsim.ssd.state.drive_state import BlockMap, DriveState
from flashsim.ssd.zones import ZoneError, Zones, ZoneState, ZoneStatus

if TYPE_CHECKING:
    from flashsim.ssd.engine.drive import SsdEngine
    from flashsim.ssd.specification.drive import SsdSpecification


#: Flash operations of a command that the engine has room for.
_MOST_OPERATIONS = 1 << 22


class Device:
    """A simulated drive under virtual time.

    `preset`: what drive it is. `model`: ``"engine"`` (compiled) or ``"specification"`` (SimPy); both give the same times.
    `maximum_command`: bytes; larger requests are split into commands of this size.

    >>> from flashsim.core.request import READ, make_requests
    >>> drive = Device.open("ocz-core-60gb")
    >>> completions = drive.serve(make_requests(READ, 0, 4096))
    >>> int(completions["completed"][0]) > 0
    True
    """

    def __init__(self, preset: presets.Preset, model: str = "engine", maximum_command: int = block_layer.MAXIMUM_COMMAND) -> None:
        if maximum_command < SECTOR or maximum_command % SECTOR:
            raise InvalidParameterError("maximum command", f"{maximum_command} B", f"it must be a multiple of {SECTOR} B")
        self.preset = preset
        self.maximum_command = maximum_command
        self._model = _model(preset, model)

    @classmethod
    def open(cls, name: str, model: str = "engine", maximum_command: int = block_layer.MAXIMUM_COMMAND) -> Device:
        """A fresh drive of a preset, given by name or as the path of a TOML file."""
        return cls(presets.load(name), model, maximum_command)

    @property
    def name(self) -> str:
        return self.preset.name

    @property
    def kind(self) -> str:
        """``"hdd"``, ``"ssd"`` or ``"station"``."""
        return self.preset.kind

    @property
    def capacity(self) -> int:
        return self._model.capacity

    @property
    def now(self) -> int:
        """The clock, ns."""
        return self._model.now

    @property
    def arrays(self) -> list[Any]:
        """The arrays of a flash drive's state; none of another device's."""
        model = self._flash_model()
        return [] if model is None else [part for part in model.state.flash if isinstance(part, np.ndarray)]

    @property
    def outstanding(self) -> int:
        return self._model.outstanding

    @property
    def next_event(self) -> int:
        """Time of the next event, ns, if nothing more is submitted; NEVER if there is none.  No request completes before."""
        return self._model.next_event

    @property
    def compiled_model(self) -> CompiledModel:
        """The engine of a single drive, which a compiled loop can drive beside others."""
        return cast(CompiledModel, self._model)

    def submit(self, requests: Requests, at: int | Integers | None = None) -> Integers:
        """Take requests that arrive at `at` (ns; now, if not given); return their ids, shape (n,)."""
        block_layer.check(requests, self.capacity, self.name)
        commands = block_layer.split(requests, self.maximum_command, self.zone_size)
        return self._model.submit(requests, commands, self.now if at is None else at)

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass up to the earlier of `until` and the completion number `wait` from now; return what completed, dtype COMPLETION.

        With `every`, do not stop at completions (`flashsim.core.model.DeviceModel.advance`).
        """
        return self._model.advance(until, every=every, wait=wait)

    def serve(self, requests: Requests, at: int | Integers | None = None, *, settle: bool = True) -> Completions:
        """Submit requests, let time pass until all have completed, and return their completions in order of submission.

        The clock goes on until the drive has written what it acknowledged, or stops at the last completion if it is not to `settle`.
        Requests that were already outstanding must have been advanced to their end before.
        """
        if self.outstanding:
            raise InvalidParameterError("serve", f"{self.outstanding} requests outstanding", "they must complete first (advance)")
        ids = self.submit(requests, at)
        completions = self._model.advance(every=settle, wait=len(ids))
        if np.array_equal(completions["id"], ids):
            return completions
        ordered = np.empty(len(ids), COMPLETION)
        ordered[completions["id"] - (ids[0] if len(ids) else 0)] = completions
        return ordered

    def load(self, offset: int, length: int) -> None:
        """Mark bytes as written, in no time (bulk loading before a measurement)."""
        self._model.load(offset, length)

    def precondition(self, how: Precondition, progress: Progress | None = None) -> Preconditioned:
        """Bring a flash drive into a known state, in no time; see `flashsim.ssd.precondition.precondition`."""
        model = self._flash_model()
        if model is None:
            raise RefusedError(f"precondition: {self.name} is not a flash drive: its times do not depend on earlier writes")
        if model.zones is not None and how.fill not in ("empty", "sequential"):
            raise RefusedError(f"precondition: {self.name} is zoned, and written in order: it is 'empty' or 'sequential', not '{how.fill}'")
        model.settle()
        preconditioned = precondition(model.state, how, self.outstanding, progress)
        if model.zones is not None:
            model.zones.forget()
        model.find_pointers()
        return preconditioned

    def like(self, preset: presets.Preset) -> Device:
        """A drive of a preset that differs in times alone, at this one's time, holding what this one holds, which is not used any more."""
        other = Device(preset, maximum_command=self.maximum_command)
        mine, theirs = self._flash_model(), other._flash_model()
        if mine is not None and theirs is not None:
            theirs.state.take_over(mine.state)
            theirs.find_pointers()
        other.advance(self.now)
        return other

    @property
    def longest_command(self) -> int:
        """Bytes of the longest command that the drive has room for, whatever its pages need; at least that of the block layer."""
        model = self._flash_model()
        if model is None:
            return self.capacity
        pages = _MOST_OPERATIONS // (int(model.state.control.plan_rows) + 1) - 2
        return max(self.maximum_command, pages * model.parameters.unit_size)

    @property
    def content(self) -> DriveState:
        """What a flash drive holds, which another that differs in times alone can take over."""
        model = self._flash_model()
        if model is None:
            raise RefusedError(f"content: {self.name} is not a flash drive")
        return model.state

    @property
    def zones(self) -> Zones:
        """The zones of a zoned drive, on which actions can be done that touch no flash (`flashsim.ssd.zones.Zones.open`)."""
        model = self._flash_model()
        if model is None or model.zones is None:
            raise RefusedError(f"zones: {self.name} has none (zone_size)")
        return model.zones

    @property
    def zone_size(self) -> int:
        """Bytes of a zone; 0 for a device without zones."""
        model = self._flash_model()
        return model.zones.size if model is not None and model.zones is not None else 0

    def append(self, zone: int, length: int, at: int | None = None) -> int:
        """Submit a write of `length` bytes at a zone's write pointer, as a request of its own; return its offset."""
        zones = self.zones
        if zone not in range(len(zones)):
            raise InvalidParameterError("zone", zone, f"{self.name} has zones 0 to {len(zones) - 1}")
        offset, what = zones.pointers[zone], f"append of {length} B"
        if zones.states[zone] == ZoneState.FULL:
            raise ZoneError(what, zone, ZoneStatus.ZONE_IS_FULL)
        if offset + length > (zone + 1) * zones.size:
            raise ZoneError(what, zone, ZoneStatus.ZONE_BOUNDARY_ERROR)  # requests are cut at the ends of zones, appends are not
        try:
            self.submit(make_requests(WRITE, offset, length), at)
        except ZoneError as error:
            raise ZoneError(what, zone, error.status) from None
        return offset

    def reset(self, zone: int, at: int | None = None) -> None:
        """Submit the reset of a zone: a trim of the whole of it."""
        size = self.zones.size
        self.submit(make_requests(TRIM, zone * size, size), at)

    def power_cut(self, at: int) -> PowerCut:
        """Run to `at` (ns), then lose power: what was not durable is gone, and the device is idle."""
        return self._model.power_cut(at)

    def statistics(self) -> dict[str, Any]:
        """Counters since the device was made."""
        return self._model.statistics()

    def record_spans(self, on: bool = True) -> bool:
        """Begin or stop to record what the drive's parts do; return whether this kind of drive can."""
        if not hasattr(self._model, "record_spans"):
            return False
        cast(SpanSource, self._model).record_spans(on)
        return True

    def spans(self) -> Spans:
        """Holds of the drive's parts that ended since the last call (`flashsim.core.spans`); none of a drive that cannot tell."""
        return cast(SpanSource, self._model).spans() if hasattr(self._model, "spans") else np.zeros(0, SPAN)

    def block_map(self) -> BlockMap | None:
        """The erase blocks as they stand; None of what is no flash drive."""
        model = self._flash_model()
        return None if model is None else model.state.block_map()

    def _flash_model(self) -> SsdEngine | SsdSpecification | None:
        return cast("SsdEngine | SsdSpecification", self._model) if self.preset.flash else None


def _model(preset: presets.Preset, model: str) -> DeviceModel:
    kind, array_kind = engines.classes_of(preset, model)
    engines.finish(preset, model)
    if not preset.array:
        simulator: DeviceModel = kind(preset.parameters)
        return simulator
    array: DeviceModel = array_kind([kind(preset.parameters) for _ in range(preset.array.drives)], preset.parameters, preset.array)
    return array
