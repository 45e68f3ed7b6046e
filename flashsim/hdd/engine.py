"""The fast model of hard disks: a compiled loop over arrivals and completions, with everything in between computed at once.

Every drive serves one command at a time, so all that a command does is known when it starts (`hdd.cache`), and read-ahead and destaging in
the background are part of that (`hdd.stream`).  Of an array each drive has its own state, queue and buffer.  Equal, to the nanosecond, to
`hdd.specification`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.host import FINISHED, LEFT, NOW, REQUEST_BASE, HostQueue, arrive, command_done, next_arrival
from flashsim.core.kernel import kernel_of
from flashsim.core.policies import policy_function
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.hdd import report, striping, terms
from flashsim.hdd.control import control_row
from flashsim.hdd.layout import TRACK, extent_table
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.queueing import BAD_CHOICE, admit
from flashsim.hdd.scheduler.base import CANDIDATE_COLUMNS, CHOOSE_FUNCTION, FAMILY
from flashsim.hdd.seek import seek_curve
from flashsim.hdd.stream import position
from flashsim.hdd.terms import ACTIVE, BUSY_UNTIL, DRIVE_COLUMNS, RING_COUNT, RING_END, RING_FIRST, RING_HEAD, RING_REQUEST, STREAM, WRITING

#: An array's host may have any number of commands on the way, since each drive has a queue.
_ANY_DEPTH = 1 << 40

_RUN = types.int64(
    types.int64, types.int64, VECTOR, MATRIX, MATRIX, VECTOR, MATRIX, VECTOR, VECTOR, MATRIX, MATRIX, VECTOR, MATRIX, MATRIX, MATRIX,
    MATRIX, CHOOSE_FUNCTION,
)  # fmt: skip


@kernel_of(_RUN)
def run(
    until: int,
    wait: int,
    host: Integers,
    requests: Integers,
    commands: Integers,
    order: Integers,
    delayed: Integers,
    finished: Integers,
    control: Integers,
    drives: Integers,
    extents: Integers,
    seeks: Integers,
    segments: Integers,
    ring: Integers,
    waiting: Integers,
    candidates: Integers,
    choose: Any,
) -> int:
    """Let events happen up to `until`, or until so many completions wait to be collected; return 0, or BAD_CHOICE."""
    count = drives.shape[0] // 2
    while True:
        arrival, _ = next_arrival(host, requests, order, delayed)
        done, which = NEVER, -1
        for drive in range(count):
            if drives[drive, ACTIVE] >= 0 and drives[drive, BUSY_UNTIL] < done:
                done, which = drives[drive, BUSY_UNTIL], drive
        if min(arrival, done) > until or min(arrival, done) == NEVER:
            break
        if arrival <= done:
            arrive(host, requests, order, delayed)
        else:
            host[NOW] = done
            command = drives[which, ACTIVE]
            drives[which, ACTIVE] = -1
            command_done(host, requests, commands, delayed, finished, command)
        status = admit(host, requests, commands, control, drives, extents, seeks, segments, ring, waiting, candidates, choose)
        if status != 0:
            return status
        if host[FINISHED] >= wait:
            return 0
    if until != NEVER:
        host[NOW] = until
    return 0


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
        self._choose = policy_function(FAMILY, parameters.scheduler, "choose", CHOOSE_FUNCTION)
        self._host = HostQueue(parameters.queue_depth if parameters.drives == 1 else _ANY_DEPTH)
        self._control = control_row(parameters)
        self._extents = extent_table(parameters)
        self._seeks = seek_curve(parameters)
        # A row for each drive with its active command served, then one for each as it was when that command started.
        self._drives = np.zeros((2 * parameters.drives, DRIVE_COLUMNS), np.int64)
        self._segments = np.zeros((parameters.drives * parameters.segments, terms.SEGMENT_COLUMNS), np.int64)
        # Every write in the ring has a sector in the buffer, but for those that a command not yet acknowledged pushes out.
        rows = parameters.write_behind // parameters.sector_size + 2
        self._ring = np.zeros((parameters.drives * rows, terms.RING_COLUMNS), np.int64)
        self._candidates = np.zeros((parameters.queue_depth, CANDIDATE_COLUMNS), np.int64)
        self._power_up()

    def _power_up(self) -> None:
        self._drives[:, : terms.READS] = 0
        self._drives[:, [terms.CURRENT, ACTIVE]] = -1
        self._drives[:, terms.DIRECTION] = 1
        self._drives[:, terms.ARM] = self._extents[0, TRACK]
        self._segments[:] = 0
        self._waiting = _free_rows(np.zeros((1, terms.WAITING_COLUMNS), np.int64), 64)

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
        served = self._drives[: self.parameters.drives]
        return int(served[served[:, ACTIVE] >= 0, BUSY_UNTIL].min(initial=self._host.next_arrival))

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host.HostQueue.append`)."""
        self.parameters.check(requests, commands)
        ids = self._host.append(requests, striping.split(requests, commands, self.parameters), at)
        needed = len(self._host.commands) if self.parameters.drives > 1 else self.parameters.queue_depth
        if len(self._waiting) <= needed:
            self._waiting = _free_rows(self._waiting, max(needed, 2 * len(self._waiting)))
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
        host = self._host
        status = run(
            until, NEVER if every else wait, host.scalars, host.requests, host.commands, host.order, host.delayed, host.finished,
            self._control, self._drives, self._extents, self._seeks, self._segments, self._ring, self._waiting, self._candidates,
            self._choose,
        )  # fmt: skip
        if status == BAD_CHOICE:
            raise FlashsimError(f"{FAMILY.kind}: '{self.parameters.scheduler}' chose a command that does not wait")
        return host.collect()

    def load(self, offset: int, length: int) -> None:
        """Nothing: whether a sector has been written does not change a hard disk's times."""

    def power_cut(self, at: int) -> report.HddPowerCut:
        """Run to `at`, then lose power: buffers and queues are emptied, and the arms park over the outermost track.

        Completions up to `at` that have not been returned by `advance` are not returned any more.
        """
        self.advance(at, every=True)
        host = self._host
        unfinished = np.flatnonzero(host.requests[:, LEFT] > 0) + host.scalars[REQUEST_BASE]
        unsettled = [entry for drive in range(self.parameters.drives) for entry in self._unsettled(drive, at)]
        cut = report.power_cut(at, unfinished.tolist(), unsettled, self.parameters)
        host.clear()
        self._power_up()
        return cut

    def _unsettled(self, drive: int, at: int) -> list[tuple[int, int, int]]:
        """Request, address and length of the writes in a drive's buffer that are not wholly on the media at `at`."""
        row = drive + self.parameters.drives if self._drives[drive, ACTIVE] >= 0 else drive
        state = self._drives[row]
        if state[STREAM] != WRITING:
            return []
        durable = position(self._control, self._drives, self._extents, self._seeks, row, at, False)
        rows = len(self._ring) // self.parameters.drives
        slots = drive * rows + (state[RING_HEAD] + np.arange(state[RING_COUNT])) % rows
        size, start = self.parameters.sector_size, drive * self.parameters.capacity
        left = self._ring[slots][self._ring[slots, RING_END] > durable]
        return [(int(row[RING_REQUEST]), start + int(row[RING_FIRST]) * size, int(row[RING_END] - row[RING_FIRST]) * size) for row in left]

    def statistics(self) -> dict[str, Any]:
        """Counters since the drives were made (`hdd.report.COUNTERS`); a command counts from the moment it starts."""
        counters = self._drives[: self.parameters.drives, terms.READS :].sum(axis=0)
        return report.statistics(dict(zip(report.COUNTERS, counters.tolist(), strict=True)))


def _free_rows(waiting: Integers, count: int) -> Integers:
    """A pool of waiting commands with `count` rows beside row 0, which leads to the free ones."""
    grown = np.zeros((count + 1, waiting.shape[1]), np.int64)
    grown[: len(waiting)] = waiting
    first, old = len(waiting), int(waiting[0, terms.WAITING_NEXT]) if len(waiting) > 1 else -1
    grown[first:, terms.WAITING_NEXT] = np.append(np.arange(first + 1, count + 1), old)
    grown[0, terms.WAITING_NEXT] = first
    return grown
