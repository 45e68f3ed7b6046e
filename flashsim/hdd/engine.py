"""The fast model of hard disks: a compiled loop over arrivals and completions, with everything in between computed at once.

Every drive serves one command at a time, so all that a command does is known when it starts (`hdd.cache`), and read-ahead and destaging in
the background are part of that (`hdd.stream`).  Of an array each drive has its own state, queue and buffer.  Equal, to the nanosecond, to
`hdd.specification`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from flashsim.core.array_types import VECTOR
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.host import FINISHED, HOST_TABLES, NOW, arrive, command_done, next_arrival
from flashsim.core.host_queue import HostQueue
from flashsim.core.kernel import kernel_of
from flashsim.core.policies import policy_vector
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.state_table import ADVANCE, State, StateTable, state_of
from flashsim.core.units import NEVER
from flashsim.hdd import report, striping, terms
from flashsim.hdd.control import control_row
from flashsim.hdd.disk import DISK, Disk
from flashsim.hdd.layout import TRACK, extent_table
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.queueing import BAD_CHOICE, admit
from flashsim.hdd.scheduler.base import CANDIDATE_COLUMNS, CHOOSE, FAMILY
from flashsim.hdd.seek import seek_curve
from flashsim.hdd.stream import position
from flashsim.hdd.terms import ACTIVE, BUSY_UNTIL, DRIVE_COLUMNS, RING_COUNT, RING_END, RING_FIRST, RING_HEAD, RING_REQUEST, STREAM, WRITING

#: An array's host may have any number of commands on the way, since each drive has a queue.
_ANY_DEPTH = 1 << 40

_STATE = types.Tuple((HOST_TABLES, DISK, VECTOR))
_state_of = state_of(_STATE)


@kernel_of(ADVANCE)
def advance(table: State, until: int, wait: int) -> int:
    """Let events happen up to `until`, or until so many completions wait to be collected.

    Returns when something happens next, or BAD_CHOICE, a negative number.
    """
    host, disk, policies = _state_of(table)
    count = disk.drives.shape[0] // 2
    while True:
        arrival, _ = next_arrival(host)
        done, which = NEVER, -1
        for drive in range(count):
            if disk.drives[drive, ACTIVE] >= 0 and disk.drives[drive, BUSY_UNTIL] < done:
                done, which = disk.drives[drive, BUSY_UNTIL], drive
        due = min(arrival, done)
        if host.scalars[FINISHED] >= wait:
            return int(due)
        if due > until or due == NEVER:
            if until != NEVER:
                host.scalars[NOW] = until
            return int(due)
        if arrival <= done:
            arrive(host)
        else:
            host.scalars[NOW] = done
            command = disk.drives[which, ACTIVE]
            disk.drives[which, ACTIVE] = -1
            command_done(host, command)
        status = admit(host, disk, policies)
        if status != 0:
            return int(status)


class HddEngine:
    """A hard disk, or an array of them, under a virtual clock (`core.model.DeviceModel`), compiled.

    Parameters
    ----------
    parameters
        The drive.

    Raises
    ------
    UnknownNameError, MissingFileError, FlashsimError
        The scheduler cannot be loaded.
    """

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters
        self._policies = policy_vector({CHOOSE: parameters.scheduler})
        self._host = HostQueue(parameters.queue_depth if parameters.drives == 1 else _ANY_DEPTH)
        # Every write in the ring has a sector in the buffer, but for those that a command not yet acknowledged pushes out.
        writes = parameters.write_behind // parameters.sector_size + 2
        self._disk = Disk(
            control_row(parameters),
            np.zeros((2 * parameters.drives, DRIVE_COLUMNS), np.int64),
            extent_table(parameters),
            seek_curve(parameters),
            np.zeros((parameters.drives * parameters.segments, terms.SEGMENT_COLUMNS), np.int64),
            np.zeros((parameters.drives * writes, terms.RING_COLUMNS), np.int64),
            np.zeros((1, terms.WAITING_COLUMNS), np.int64),
            np.zeros((parameters.queue_depth, CANDIDATE_COLUMNS), np.int64),
        )
        self._table = StateTable(_STATE)
        self._power_up()

    def _power_up(self) -> None:
        self._disk.drives[:, : terms.READS] = 0
        self._disk.drives[:, [terms.CURRENT, ACTIVE]] = -1
        self._disk.drives[:, terms.DIRECTION] = 1
        self._disk.drives[:, terms.ARM] = self._disk.extents[0, TRACK]
        self._disk.segments[:] = 0
        self._make_room(np.zeros((1, terms.WAITING_COLUMNS), np.int64), 64)

    def _make_room(self, waiting: Integers, count: int) -> None:
        """Let `count` commands wait beside those that do; row 0 leads to the free rows."""
        grown = np.zeros((count + 1, waiting.shape[1]), np.int64)
        grown[: len(waiting)] = waiting
        first, old = len(waiting), int(waiting[0, terms.WAITING_NEXT]) if len(waiting) > 1 else -1
        grown[first:, terms.WAITING_NEXT] = np.append(np.arange(first + 1, count + 1), old)
        grown[0, terms.WAITING_NEXT] = first
        self._disk = self._disk._replace(waiting=grown)

    @property
    def capacity(self) -> int:
        """Bytes that the host can address."""
        return self.parameters.total_capacity

    @property
    def now(self) -> int:
        """The clock, ns."""
        return self._host.now

    @property
    def outstanding(self) -> int:
        """Requests submitted and not yet completed."""
        return self._host.outstanding

    @property
    def next_event(self) -> int:
        """When something happens next; see `core.model.DeviceModel.next_event`."""
        served = self._disk.drives[: self.parameters.drives]
        return int(served[served[:, ACTIVE] >= 0, BUSY_UNTIL].min(initial=self._host.next_arrival))

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host_queue.HostQueue.append`)."""
        self.parameters.check(requests, commands)
        ids = self._host.append(requests, striping.split(requests, commands, self.parameters), at)
        needed = len(self._host.commands) if self.parameters.drives > 1 else self.parameters.queue_depth
        waiting = self._disk.waiting
        if len(waiting) <= needed:
            self._make_room(waiting, max(needed, 2 * len(waiting)))
        return ids

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`.

        Raises
        ------
        InvalidParameterError
            `until` is past.
        FlashsimError
            The scheduler chose a command that does not wait.
        """
        if until < self.now:
            raise InvalidParameterError("until", f"{until} ns", f"the clock is already at {self.now} ns")
        status = advance(self._table.crossing((self._host.tables, self._disk, self._policies)), until, NEVER if every else wait)
        if status == BAD_CHOICE:
            raise FlashsimError(f"{FAMILY.kind}: '{self.parameters.scheduler}' chose a command that does not wait")
        return self._host.collect()

    def load(self, offset: int, length: int) -> None:
        """Nothing: whether a sector has been written does not change a hard disk's times."""

    def power_cut(self, at: int) -> report.HddPowerCut:
        """Run to `at`, then lose power: buffers and queues are emptied, and the arms park over the outermost track.

        Completions up to `at` that have not been returned by `advance` are not returned any more.
        """
        self.advance(at, every=True)
        host = self._host
        unfinished = host.unfinished
        unsettled = [entry for drive in range(self.parameters.drives) for entry in self._unsettled(drive, at)]
        cut = report.power_cut(at, unfinished.tolist(), unsettled, self.parameters)
        host.clear()
        self._power_up()
        return cut

    def _unsettled(self, drive: int, at: int) -> list[tuple[int, int, int]]:
        """Request, address and length of the writes in a drive's buffer that are not wholly on the media at `at`."""
        row = drive + self.parameters.drives if self._disk.drives[drive, ACTIVE] >= 0 else drive
        state = self._disk.drives[row]
        if state[STREAM] != WRITING:
            return []
        durable = position(self._disk, row, at, False)
        rows = len(self._disk.ring) // self.parameters.drives
        slots = drive * rows + (state[RING_HEAD] + np.arange(state[RING_COUNT])) % rows
        size, start = self.parameters.sector_size, drive * self.parameters.capacity
        left = self._disk.ring[slots][self._disk.ring[slots, RING_END] > durable]
        return [(int(row[RING_REQUEST]), start + int(row[RING_FIRST]) * size, int(row[RING_END] - row[RING_FIRST]) * size) for row in left]

    def statistics(self) -> dict[str, Any]:
        """Counters since the drives were made (`hdd.report.COUNTERS`); a command counts from the moment it starts."""
        counters = self._disk.drives[: self.parameters.drives, terms.READS :].sum(axis=0)
        return report.statistics(dict(zip(report.COUNTERS, counters.tolist(), strict=True)))
