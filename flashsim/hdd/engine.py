"""The fast model of a hard disk: a compiled loop over arrivals and completions, with everything in between in closed form.

The drive serves one command at a time, in the order in which they are admitted, so all that a command does is known when it starts
(`hdd.cache`), and read-ahead and destaging in the background are part of that (`hdd.stream`).  Equal, to the nanosecond, to
`hdd.specification`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host import (
    COMMAND_BASE,
    FLAGS,
    LEFT,
    LENGTH,
    NOW,
    OFFSET,
    OPERATION,
    OWNER,
    REQUEST_BASE,
    HostQueue,
    arrive,
    command_done,
    next_arrival,
    next_queue,
    take_command,
)
from flashsim.core.kernel import kernel
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.hdd import report, stream
from flashsim.hdd.cache import RING_COLUMNS, RING_END, RING_FIRST, RING_REQUEST, serve
from flashsim.hdd.checks import check_supported
from flashsim.hdd.geometry import zone_table
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.seek import lee_curve
from flashsim.hdd.stream import ACTIVE, BUSY_UNTIL, DRIVE_COLUMNS, FIFO_COUNT, FIFO_HEAD, RING_COUNT, RING_HEAD, STREAM, WRITING, position


@kernel
def _admit(
    host: Integers,
    requests: Integers,
    commands: Integers,
    drives: Integers,
    zones: Integers,
    seeks: Integers,
    ring: Integers,
    fifo: Integers,
) -> None:
    """Take what the host dispatches, and start the next command if none is being served."""
    drive = drives[0]
    while True:
        queue = next_queue(host)
        if queue < 0:
            break
        fifo[(drive[FIFO_HEAD] + drive[FIFO_COUNT]) % fifo.shape[0]] = take_command(host, requests, queue)
        drive[FIFO_COUNT] += 1
    if drive[ACTIVE] < 0 and drive[FIFO_COUNT] > 0:
        drives[1] = drives[0]
        command = fifo[drive[FIFO_HEAD]]
        drive[FIFO_HEAD] = (drive[FIFO_HEAD] + 1) % fifo.shape[0]
        drive[FIFO_COUNT] -= 1
        row = command - host[COMMAND_BASE]
        drive[ACTIVE] = command
        drive[BUSY_UNTIL] = serve(
            drive,
            zones,
            seeks,
            ring,
            commands[row, OWNER],
            commands[row, OPERATION],
            commands[row, FLAGS],
            commands[row, OFFSET],
            commands[row, LENGTH],
            host[NOW],
        )


@kernel
def _run(
    host: Integers,
    requests: Integers,
    commands: Integers,
    order: Integers,
    delayed: Integers,
    finished: Integers,
    drives: Integers,
    zones: Integers,
    seeks: Integers,
    ring: Integers,
    fifo: Integers,
    until: int,
    every: bool,
) -> None:
    """Let events happen up to `until`, or only up to the next completion of a request."""
    drive = drives[0]
    while True:
        arrival, _ = next_arrival(host, requests, order, delayed)
        done = drive[BUSY_UNTIL] if drive[ACTIVE] >= 0 else NEVER
        if min(arrival, done) > until or min(arrival, done) == NEVER:
            break
        if arrival <= done:
            arrive(host, requests, order, delayed)
            complete = False
        else:
            host[NOW] = done
            command = drive[ACTIVE]
            drive[ACTIVE] = -1
            complete = command_done(host, requests, commands, delayed, finished, command)
        _admit(host, requests, commands, drives, zones, seeks, ring, fifo)
        if complete and not every:
            return
    if until != NEVER:
        host[NOW] = until


class HddEngine:
    """A hard disk under a virtual clock (`core.model.DeviceModel`), compiled.

    Parameters
    ----------
    parameters
        The drive.
    """

    def __init__(self, parameters: HddParameters) -> None:
        check_supported(parameters)
        self.parameters = parameters
        self._host = HostQueue(parameters.queue_depth)
        self._zones = zone_table(parameters)
        self._seeks = lee_curve(parameters.cylinders, parameters.seek_single, parameters.seek_average, parameters.seek_full)
        # Row 0 is the drive with the active command served, row 1 as it was when that command started.
        self._drives = np.zeros((2, DRIVE_COLUMNS), np.int64)
        _set_constants(self._drives[0], parameters)
        self._drives[0, ACTIVE] = -1
        # Every write in the ring has a sector in the segment, but for those that a command not yet acknowledged pushes out.
        self._ring = np.zeros((parameters.write_behind // parameters.sector_size + 2, RING_COLUMNS), np.int64)
        self._fifo = np.zeros(parameters.queue_depth, np.int64)

    @property
    def capacity(self) -> int:
        """Bytes that the host can address."""
        return self.parameters.capacity

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
        drive = self._drives[0]
        return min(int(drive[BUSY_UNTIL]) if drive[ACTIVE] >= 0 else NEVER, self._host.next_arrival)

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host.HostQueue.append`)."""
        self.parameters.check(requests, commands)
        return self._host.append(requests, commands, at)

    def advance(self, until: int = NEVER, *, every: bool = False) -> Completions:
        """Let time pass up to the earlier of `until` and the next completion, or with `every` up to `until`; return what completed."""
        if until < self.now:
            raise InvalidParameterError("until", f"{until} ns", f"the clock is already at {self.now} ns")
        host = self._host
        _run(
            host.scalars,
            host.requests,
            host.commands,
            host.order,
            host.delayed,
            host.finished,
            self._drives,
            self._zones,
            self._seeks,
            self._ring,
            self._fifo,
            until,
            every,
        )
        return host.collect()

    def load(self, offset: int, length: int) -> None:
        """Nothing: whether a sector has been written does not change a hard disk's times."""

    def power_cut(self, at: int) -> report.HddPowerCut:
        """Run to `at`, then lose power: segments and queue are emptied, and the arm parks over the outermost track.

        Completions up to `at` that have not been returned by `advance` are not returned any more.
        """
        self.advance(at, every=True)
        host, drive = self._host, self._drives[0]
        before = self._drives[1] if drive[ACTIVE] >= 0 else drive
        unfinished = np.flatnonzero(host.requests[:, LEFT] > 0) + host.scalars[REQUEST_BASE]
        cut = report.power_cut(at, unfinished.tolist(), self._unsettled(before, at))
        host.clear()
        _reset(drive)
        return cut

    def _unsettled(self, drive: Integers, at: int) -> list[tuple[int, int, int]]:
        """Request, offset and length of the writes in the segment that are not wholly on the media at `at`."""
        if drive[STREAM] != WRITING:
            return []
        durable = position(drive, self._zones, self._seeks, at)
        slots = (drive[RING_HEAD] + np.arange(drive[RING_COUNT])) % len(self._ring)
        size = self.parameters.sector_size
        rows = self._ring[slots][self._ring[slots, RING_END] > durable]
        return [(int(row[RING_REQUEST]), int(row[RING_FIRST]) * size, int(row[RING_END] - row[RING_FIRST]) * size) for row in rows]

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made (`hdd.report.COUNTERS`); a command counts from the moment it starts."""
        return report.statistics(dict(zip(report.COUNTERS, self._drives[0, stream.READS :].tolist(), strict=True)))


def _set_constants(drive: Integers, parameters: HddParameters) -> None:
    drive[stream.ROTATION] = parameters.rotation
    drive[stream.HEAD_SWITCH] = parameters.head_switch
    drive[stream.WRITE_SETTLE] = parameters.write_settle
    drive[stream.SECTOR_SIZE] = parameters.sector_size
    drive[stream.SECTORS] = parameters.sectors
    drive[stream.LINK_RATE] = parameters.link_rate
    drive[stream.OVERHEAD] = parameters.overhead
    drive[stream.READ_AHEAD] = parameters.read_ahead // parameters.sector_size
    drive[stream.WRITE_BEHIND] = parameters.write_behind // parameters.sector_size


def _reset(drive: Integers) -> None:
    drive[stream.STREAM : stream.READS] = 0
    drive[ACTIVE] = -1
