"""Base of the engine and of the specification of a flash drive: loading, power cuts, statistics, refusals of bad commands."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np
from numba import types

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.kernel import kernel_of
from flashsim.core.model import DeviceModel, PowerCut
from flashsim.core.records import COMMANDS, REQUESTS
from flashsim.core.request import (
    COMMAND,
    FLUSH,
    FORCE_UNIT_ACCESS,
    IN_MEMORY,
    INTERNAL,
    OPERATIONS,
    READ,
    REQUEST,
    SECTOR,
    WRITE,
    Commands,
    Completions,
    Integers,
    Requests,
)
from flashsim.core.units import NEVER
from flashsim.ssd.ideals import SPREAD, ideals_in, spread
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.drive_state import LOADED_AT_ONCE, DriveState
from flashsim.ssd.state.flash_array import end_erase
from flashsim.ssd.state.recovery import recover
from flashsim.ssd.state.write_buffer import waiting_entries
from flashsim.ssd.zones import Zones


class FlashModel(DeviceModel):
    """A solid state drive under a virtual clock, but for what happens in time."""

    parameters: SsdParameters
    state: DriveState
    host: Any
    #: Let events happen up to a time, or until so many completions wait to be collected.
    _run: Callable[[int, int], None]
    _refused = 0  # write commands that the caller knows to have been refused

    @cached_property
    def zones(self) -> Zones | None:
        """The zones of the drive; None where it has none."""
        drive = self.parameters
        limits = (drive.zone_open_limit, drive.zone_active_limit)
        return Zones(drive.capacity, drive.zone_size, drive.unit_size, *limits) if drive.zone_size else None

    @abstractmethod
    def _make_ids(self, count: int) -> None:
        """See that there are write ids left; those of operations in flight and of the write buffer go with the others."""

    @abstractmethod
    def _set_room(self, pages: int) -> None:
        """Say how many pages the write buffer has room for."""

    @abstractmethod
    def _stores(self) -> Iterable[tuple[int, int]]:
        """Acknowledged pages on their way from the write buffer to flash, each with the write id of what had come of it as a whole."""

    @abstractmethod
    def _erasing(self) -> Iterable[int]:
        """Blocks that are being erased."""

    @abstractmethod
    def _restart(self) -> None:
        """Forget all requests and operations, but not the clock, busy times and spans."""

    @abstractmethod
    def _busy_times(self) -> list[int]:
        """Busy times, ns, of the dies, the channels, the link, the controller, and the memory's bus if there is one."""

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        requests, commands = np.ascontiguousarray(requests, REQUEST), np.ascontiguousarray(commands, COMMAND)
        flags = FORCE_UNIT_ACCESS | (INTERNAL | IN_MEMORY if self.parameters.bus_rate else 0)
        pages = _pages_touched(requests, commands, self.capacity, self.parameters.unit_size, flags)
        if pages < 0:
            self._refuse(requests, commands, flags)
        if self.parameters.bus_rate:  # the last submission queue is for what comes from inside
            queues, requests = self.parameters.queues, requests.copy()
            requests["stream"] = np.where(requests["flags"] & INTERNAL, queues, requests["stream"] % queues)
        self.state.expect_use()
        count = int(pages) * self.state.ids_of_page
        if self.state.ids_left < count:
            self._make_ids(count)
        queues = self.parameters.queues + bool(self.parameters.bus_rate)
        with (
            nullcontext() if self.zones is None else self.zones.serve(requests, commands, at, queues, lambda: self.host.unfinished_requests)
        ):
            ids: Integers = self.host.append(requests, commands, at)
        return ids

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        self._run(until, NEVER if every else wait)
        if self.state.refused_writes > self._refused:
            self._refused = self.state.refused_writes
            raise self.state.read_only()
        completions: Completions = self.host.collect()
        return completions

    def load(self, offset: int, length: int) -> None:
        """Write bytes in no time and outside the counters, from the first page to the last; what goes on beside requests ends first.

        Raises InvalidParameterError: the bytes do not lie within the drive, on sector boundaries; RefusedError: requests are outstanding:
        their operations would mingle with what takes no time; or the drive has worn out.
        """
        self.settle()
        self._check_extent("load", offset, length)
        if self.outstanding:
            raise RefusedError(f"load: {self.outstanding} requests are outstanding, but a drive is loaded while it is idle")
        size = self.parameters.unit_size
        end = -(-(offset + length) // size)
        for first in range(offset // size, end, LOADED_AT_ONCE):
            targets = np.arange(first, min(first + LOADED_AT_ONCE, end), dtype=np.int32)
            if SPREAD in ideals_in(self.parameters.ideal):
                targets = spread(targets, self.parameters.pools, self.parameters.levels, self.parameters.units)
            self.state.write_pages(targets)
        self.find_pointers()

    def find_pointers(self) -> None:
        """Let the write pointers of zones stand behind what the drive holds, after writes that took no time, or a power cut."""
        if self.zones is not None:
            self.zones.rebuild(self.state.mapping[: self.parameters.logical_pages] > 0)

    def settle(self) -> None:
        """If no requests are outstanding, let what goes on beside them end, and empty the write buffer in no time."""
        if not self.outstanding:
            self._run(NEVER, NEVER)
            self.state.empty_buffer()
            self._set_room(self.parameters.buffer_pages)

    def version(self, page: int) -> int:
        """The write id of a flash page's (or mapping unit's) worth of the address space; see `DriveState.version`."""
        return self.state.version(page)

    def power_cut(self, at: int) -> PowerCut:
        """Run to `at`, then lose power: commands in the drive vanish, and the map is rebuilt from what the flash pages hold.

        Completions up to `at` that were not yet collected are not returned any more: call ``advance(at, every=True)`` before to see them.
        """
        self._run(at, NEVER)
        arrived = [(int(entry.page), int(entry.arrived)) for entry in waiting_entries(self.state.flash)]
        arrived = [known for known in (*arrived, *self._stores()) if known[1] > 0] if self.parameters.power_protected else []
        for block in self._erasing():  # finished when power is back
            end_erase(self.state.flash, block)
        lost = self.host.unfinished_requests
        self._restart()
        self.state.pools.queued = 0
        recover(self.state)
        self.state.write_out(arrived)
        self.find_pointers()
        return PowerCut(self.now, lost)

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made (see `DriveState.statistics`), and busy times, ns.

        Those of dies are of finished work, those of channels, the link, the controller and the bus up to now.
        """
        dies, link, busy = self.parameters.dies, self.parameters.dies + self.parameters.channels, self._busy_times()
        times = {"die_busy_ns": busy[:dies], "channel_busy_ns": busy[dies:link]}
        parts = ("link_busy_ns", "controller_busy_ns", "bus_busy_ns")
        return self.state.statistics() | times | dict(zip(parts, busy[link:], strict=False))

    def _check_extent(self, name: str, offset: int, length: int) -> None:
        extent = f"{length} B at {offset}"
        if offset < 0 or length < 0 or offset % SECTOR or length % SECTOR:
            raise InvalidParameterError(name, extent, f"offset and length must be multiples of {SECTOR} B and not negative")
        if offset + length > self.capacity:
            raise InvalidParameterError(name, extent, f"the drive ends at {self.capacity} B")

    def _refuse(self, requests: Requests, commands: Commands, flags: int) -> None:
        unknown = np.flatnonzero((requests["operation"] < READ) | (requests["operation"] > FLUSH))
        if len(unknown):
            raise InvalidParameterError("operation", int(requests["operation"][unknown[0]]), "it must be read, write, trim or flush")
        if np.any(requests["flags"] & ~flags):
            raise RefusedError(f"flags {int(requests['flags'].max())}: a drive without a bus_rate has no inside for programs")
        inside = requests["flags"] & (INTERNAL | IN_MEMORY)
        if np.any((inside > 0) & (requests["operation"] > WRITE)) or np.any(inside == INTERNAL | IN_MEMORY):
            raise InvalidParameterError("flags", int(inside.max()), "internal is for reads and writes of flash, in memory for the host's")
        operation = requests["operation"][commands["request"]]
        for kind, offset, length in zip(operation.tolist(), commands["offset"].tolist(), commands["length"].tolist(), strict=True):
            if kind != FLUSH:
                self._check_extent(OPERATIONS[kind], offset, length)
        if np.any((commands["length"] == 0) & ((operation == READ) | (operation == WRITE))):
            raise InvalidParameterError("length", "0 B", f"a read or write moves at least {SECTOR} B")


@kernel_of(types.int64(REQUESTS, COMMANDS, types.int64, types.int64, types.int64))
def _pages_touched(requests: Requests, commands: Commands, capacity: int, page_size: int, most_flags: int) -> int:
    """The most flash pages that commands touch, each with one more at either end; -1 if one of them is to be refused."""
    for row in range(requests.shape[0]):
        operation, flags = requests[row]["operation"], requests[row]["flags"]
        if operation < READ or operation > FLUSH or flags & ~most_flags != 0:
            return -1
        if flags > FORCE_UNIT_ACCESS and (operation > WRITE or (flags & INTERNAL != 0 and flags & IN_MEMORY != 0)):
            return -1
    pages = 0
    for row in range(commands.shape[0]):
        request, offset, length = commands[row]["request"], commands[row]["offset"], commands[row]["length"]
        if request < 0 or request >= requests.shape[0]:
            return -1
        operation = requests[request]["operation"]
        if length == 0 and operation in (READ, WRITE):
            return -1
        outside = offset < 0 or length < 0 or length > capacity or offset > capacity - length
        if operation != FLUSH and (outside or offset % SECTOR != 0 or length % SECTOR != 0):
            return -1
        pages += length // page_size + 2
    return pages
