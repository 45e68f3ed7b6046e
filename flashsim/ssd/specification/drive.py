"""The specification as a device: requests go in, completions come out; the events between are those of `model`."""

from typing import Any

from flashsim.core.host_specification import ARRIVALS, SpecifiedDevice
from flashsim.core.model import PowerCut
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.model import EventModel
from flashsim.ssd.specification.parts import Die, Shared
from flashsim.ssd.state.drive_state import ids_needed, statistics_with_times
from flashsim.ssd.state.flash_array import ERASE_BLOCK, erased
from flashsim.ssd.state.recovery import recover
from flashsim.ssd.state.write_buffer import waiting_entries


class SsdSpecification(EventModel, SpecifiedDevice):
    """A solid state drive as SimPy processes (`flashsim.core.model.DeviceModel`); takes what `SsdEngine` takes."""

    def __init__(self, parameters: SsdParameters) -> None:
        super().__init__(parameters)
        self._refused = 0  # write commands that the caller knows to have been refused

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands; see `flashsim.core.host_queue.HostQueue.append`."""
        needed = ids_needed(self.state, requests, commands)
        if self.state.ids_left < needed:
            self._renumber(needed)
        return self.host.append(requests, commands, at)

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`."""
        self._run(until, NEVER if every else wait)
        if self.state.control.refused > self._refused:
            self._refused = int(self.state.control.refused)
            raise self.state.read_only()
        return self.host.collect()

    def _run(self, until: int, wait: int) -> None:
        queue = self.env._queue
        while queue and queue[0][0] <= until:
            follows = queue[0][0] == self.env.now and queue[0][1] < ARRIVALS
            if len(self.host.completed) >= wait and not follows:
                break
            self.env.step()
        else:
            if until != NEVER and len(self.host.completed) < wait:
                self.env._now = max(self.env._now, until)

    def _renumber(self, needed: int) -> None:
        """See that there are write ids left; those of operations in flight and of the write buffer go with the others."""
        operations = [*self.buffer.transfers.values()]
        for die in self.dies:
            operations += [*die.suspended, *die.at_work, *die.cached, *die.queue]
        entries = waiting_entries(self.state.flash)
        in_flight = [known for operation in operations for known in (operation.write_id, operation.arrived)]
        in_flight += [int(known) for entry in entries for known in (entry.write_id, entry.arrived)]
        shift = self.state.make_ids(needed, min((known for known in in_flight if known > 0), default=None))
        for operation in operations:
            operation.write_id -= shift * (operation.write_id > 0)
            operation.arrived -= shift * (operation.arrived > 0)
        for entry in entries:
            entry.write_id -= shift * (entry.write_id > 0)
            entry.arrived -= shift * (entry.arrived > 0)

    def load(self, offset: int, length: int) -> None:
        """Write bytes in no time; see `DriveState.load`.  Refused while requests are outstanding; what goes on beside them ends first."""
        self.settle()
        self.state.load(offset, length, self.outstanding)

    def settle(self) -> None:
        """If no requests are outstanding, let what goes on beside them end, and empty the write buffer in no time."""
        if not self.outstanding:
            self._run(NEVER, NEVER)
            self.state.empty_buffer()
            self.buffer.room = self.parameters.buffer_pages

    def version(self, page: int) -> int:
        """The write id of a flash page's worth of the address space; see `DriveState.version`."""
        return self.state.version(page)

    def power_cut(self, at: int) -> PowerCut:
        """Run to `at`, then lose power; see `flashsim.ssd.engine.drive.SsdEngine.power_cut`."""
        self._run(at, NEVER)
        lost = self.host.unfinished
        arrived = self.buffer.arrived() if self.parameters.power_protected else []
        for die in self.dies:
            for operation in (*die.suspended, *die.at_work):
                if operation.kind == ERASE_BLOCK:  # finished when power is back
                    erased(self.state.flash, operation.block)
        self.state.pools.queued = 0
        busy = [server.busy_ns for server in self._servers()]
        self._power_up(self.now)
        for server, nanoseconds in zip(self._servers(), busy, strict=True):
            server.busy_ns = nanoseconds
        self.host.clear(self.env)
        recover(self.state)
        self.state.write_out(arrived)
        return PowerCut(self.now, lost)

    def _servers(self) -> list[Die | Shared]:
        return [*self.dies, *self.channels, self.link, self.controller]

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made; busy times are of finished holds."""
        dies, channels = [die.busy_ns for die in self.dies], [channel.busy_ns for channel in self.channels]
        return statistics_with_times(self.state, dies, channels, self.link.busy_ns, self.controller.busy_ns)
