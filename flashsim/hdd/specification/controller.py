"""The drive's controller as a SimPy process: one command after another, over the link, from the buffer and through the mechanism.

Its rules stand in `hdd.engine.cache`; here they are acted out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import simpy

from flashsim.core import spans
from flashsim.core.errors import FlashsimError
from flashsim.core.host_specification import DISPATCH, OPERATIONS, HostRequest, delay
from flashsim.core.records import empty_table
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.scheduler.base import CANDIDATE, FAMILY
from flashsim.hdd.specification.mechanism import Mechanism, Steps
from flashsim.hdd.state.disk import SHARE_UNIT, Unsettled
from flashsim.hdd.state.geometry import crossing_time

QueuedCommand = tuple[HostRequest, int, int]  # with the first sector, and the one after the last


@dataclass(eq=False)
class CacheSegment:
    """A read segment: the sectors in it, and when it was last used."""

    first: int = 0
    end: int = 0
    used: int = 0


class Controller:
    """Serves the commands of a drive, and counts in `counters`; calls `done` at the end of each command."""

    def __init__(
        self, env: simpy.Environment, parameters: HddParameters, counters: dict[str, int], when_complete: Callable[[HostRequest], None]
    ) -> None:
        self.env = env
        self.parameters = parameters
        self.mechanism = Mechanism(env, parameters, counters)
        self.geometry = self.mechanism.geometry
        self.read_ahead, self.read_ahead_least, self.segment_size, self.write_behind = (
            size // parameters.sector_size
            for size in (parameters.read_ahead, parameters.read_ahead_least, parameters.segment_size, parameters.write_behind)
        )
        self.segments = [CacheSegment() for _ in range(parameters.segments)]
        self.current: CacheSegment | None = None  # the one that the mechanism reads into
        self.least = 0  # the sector before which nothing interrupts that
        self.uses = 0
        self.last_wrote = False
        self.last_end = 0
        self.acknowledged: list[QueuedCommand] = []  # those of writes in the write stream
        self.counters = counters
        self.waiting: list[QueuedCommand] = []
        #: What commands waited for, rows of `flashsim.core.spans.SPAN`; None: nothing is recorded.
        self.record: list[tuple[int, ...]] | None = None
        self.freed, self.waits, self.hit = 0, False, False  # of the command at hand, as in `hdd.state.disk`
        self._when_complete = when_complete
        self._choose: Any = FAMILY.load(parameters.scheduler).choose
        self._direction = 1
        self._idle = env.event()
        env.process(self._work())

    @property
    def now(self) -> int:
        return int(self.env.now)

    @property
    def reading(self) -> bool:
        return self.mechanism.limit > 0 and not self.mechanism.writing

    @property
    def busy(self) -> bool:
        return self.mechanism.writing and not self.mechanism.resting

    def unsettled_writes(self) -> list[Unsettled]:
        """Request, its tag, address and length of the acknowledged writes that are not wholly on the media."""
        size, mechanism = self.parameters.sector_size, self.mechanism
        pending = [one for one in self.acknowledged if mechanism.writing and one[2] > mechanism.position]
        return [(request.id, request.tag, first * size, (end - first) * size) for request, first, end in pending]

    def admit(self, request: HostRequest, first: int, end: int) -> None:
        self.waiting.append((request, first, end))
        if not self._idle.triggered:
            self._idle.succeed()

    def _work(self) -> Steps:
        while True:
            while not self.waiting:
                self._idle = self.env.event()
                yield self._idle
            request, first, end = self._next_command()
            started, self.freed, self.waits, self.hit = self.now, 0, False, False
            yield from self._pause(self.parameters.overhead_of(request.operation, (end - first) * self.parameters.sector_size))
            taken_up = self.now
            if request.operation == READ:
                yield from self._read(first, end)
            elif request.operation == WRITE:
                yield from self._write(request, first, end)
            elif request.operation == FLUSH:
                self.counters["flushes"] += 1
                yield from self._wait_for_destage()
                self.freed = self.now
            self._note(request, started, taken_up)
            self._when_complete(request)
            yield delay(self.env, 0, DISPATCH)  # what the host now dispatches can be next

    def _note(self, request: HostRequest, started: int, taken_up: int) -> None:
        """Record what a command waited for, one after the other (`flashsim.core.spans`)."""
        ends = [(spans.COMMAND, taken_up), (spans.DESTAGE, self.freed)]
        if self.waits:
            kinds = (spans.COMMAND, spans.SEEK, spans.TRANSFER, spans.ROTATION)
            ends += zip(kinds, self.mechanism.marks.values(), strict=True)
        for kind, end in (*ends, (spans.HIT if self.hit else spans.TRANSFER, self.now)):
            if self.record is not None and started < min(end, self.now):
                self.record.append((0, kind, spans.HOST, request.id, -1, started, min(end, self.now), -1, 1, -1))
            started = max(started, min(end, self.now))

    def _work_on(self, kind: str) -> int:
        return int(getattr(self.parameters, f"{kind}_after_{'write' if self.last_wrote else 'read'}"))

    def _next_command(self) -> QueuedCommand:
        commands = self.waiting[: self.parameters.queue_depth]
        index = 0
        if len(commands) > 1:
            mechanism = self.mechanism
            position = mechanism.position
            arm = self.geometry.locate(position - (position == mechanism.limit)) if mechanism.limit > 0 else mechanism.arm
            candidates = empty_table(self.parameters.queue_depth, CANDIDATE)
            for row, (request, first, end) in enumerate(commands):
                candidates[row].cylinder = arm.cylinder
                if request.operation in (READ, WRITE):
                    place = self.geometry.locate(first)
                    overhead = self.parameters.overhead_of(request.operation, (end - first) * self.parameters.sector_size)
                    there = self.now + overhead + mechanism.move_time(arm, place, request.operation == WRITE)
                    candidates[row] = place.cylinder, there + mechanism.wait_for(place, there) - self.now
            index = int(self._choose(candidates, len(commands), arm.cylinder, self._direction))
            if not 0 <= index < len(commands):
                raise FlashsimError(f"{FAMILY.kind}: '{self.parameters.scheduler}' chose a command that does not wait")
            if candidates[index].cylinder != arm.cylinder:
                self._direction = 1 if candidates[index].cylinder > arm.cylinder else -1
        return self.waiting.pop(index)

    # Reads.

    def _read(self, first: int, end: int) -> Steps:
        drive, time = self.parameters, self.now
        self._count("read", end - first)
        self._fill()
        miss = self._work_on("read_miss")
        away = time + miss + self._work_on("disconnect_read")
        segment = self._find_hit(first, end)
        if segment:
            self.counters["read_hits"] += 1
            link = time + self._work_on("read_hit") + drive.data_preparation
            if self.busy and not drive.hits_while_writing:
                yield from self._wait_for_destage()
                self.freed = self.now
                link = max(away, self.now) + drive.reselect_first + drive.data_preparation
            arrived = segment.end
            self.hit = arrived >= end
            yield from self._go_on(segment, end, time, miss)
            yield from self._pause(link - self.now)
        else:
            segment = self._victim()
            self.waits = True
            yield from self._stream_into(segment, first, self._ahead(end, first), time + miss, fresh=True)
            arrived = first
            yield from self.mechanism.wait_for_sector(first + self._sectors_to_start(end - first) - 1)
            yield from self._pause(max(away - self.now, 0) + drive.reselect_first + drive.data_preparation)
        self._use(segment)
        if self.current is segment:
            self.least = min(self.mechanism.limit, end + self.read_ahead_least)
        yield from self._read_out(first, end, arrived)
        if not drive.keep_read:
            segment.first, segment.end = end, max(end, segment.end)
        self.last_wrote, self.last_end = False, end
        yield from self._pause(drive.complete_read)

    def _go_on(self, segment: CacheSegment, end: int, time: int, miss: int) -> Steps:
        drive, mechanism = self.parameters, self.mechanism
        limit = self._ahead(end, segment.first)
        if segment is self.current and self.reading:
            if not mechanism.resting:
                mechanism.extend(limit, self.now, self.now)
            elif drive.read_ahead_on_hit or end > mechanism.limit:
                mechanism.extend(limit, time + miss, time + miss)
        elif segment.end < end or (self._interruptible_now(time) and drive.read_ahead_again and segment.end < limit):
            self.waits = segment.end < end
            yield from self._stream_into(segment, segment.end, limit, time + miss, fresh=False)
        elif self._interruptible_now(time) and self.reading:
            mechanism.stop()
            self.current = None

    def _stream_into(self, segment: CacheSegment, first: int, limit: int, moves: int, *, fresh: bool) -> Steps:
        """Let the mechanism read from `first` on into a segment, in place of what that holds (`fresh`) or behind it."""
        yield from self._interruptible()
        if self.waits:
            self.freed = self.now
        self._fill()
        moves = max(moves, self.now)
        self.mechanism.begin(first, limit, False, moves, moves)
        if fresh:
            segment.first = first - self.mechanism.passed_before if self.parameters.read_preceding else first
        segment.end = first
        self.current = segment

    def _read_out(self, first: int, end: int, arrived: int) -> Steps:
        """Bring sectors to the host; from `arrived` on they come with the stream."""
        if not self.parameters.hold_reads and arrived < end:
            yield from self._read_out_in_parts(first, end, arrived)
            return
        end_time = self.now + self._crossing(end - first, reading=True)
        sector = max(first, arrived)
        while sector < end:
            last = min(end, self.geometry.locate(sector).end) - 1
            for each in (sector, last):
                yield from self.mechanism.wait_for_sector(each)
                end_time = max(end_time, self.now + self._crossing(end - each, reading=True))
            sector = last + 1
        yield from self._pause(end_time - self.now)

    def _read_out_in_parts(self, first: int, end: int, arrived: int) -> Steps:
        """Read out (see `_read_out`), but give the link away whenever all that is there has crossed, until enough has come again."""
        drive, out = self.parameters, first
        while out < end:
            there = min(end, max(arrived, self.mechanism.position))
            if there > out:
                yield from self._pause(self._crossing(there - out, reading=True))
                out = there
            else:
                back = self.now + self._work_on("disconnect_read")
                yield from self.mechanism.wait_for_sector(out + min(end - out, self._sectors_to_start(end - first)) - 1)
                yield from self._pause(max(back - self.now, 0) + drive.reselect_first + drive.data_preparation)

    def _sectors_to_start(self, sectors: int) -> int:
        share = sectors * round(self.parameters.read_start * SHARE_UNIT) // SHARE_UNIT
        return min(sectors, max(share, self.parameters.read_start_least))

    def _ahead(self, end: int, segment_first: int) -> int:
        """Up to where the drive reads for a request that ends before `end`, read-ahead included."""
        drive = self.parameters
        if self.read_ahead == 0 or end == drive.sectors:
            return end
        limit = min(end + self.read_ahead, drive.sectors)
        if drive.read_ahead_bound == "track":
            return max(end, min(limit, self.geometry.track_bounds(end - 1)[1]))
        if drive.read_ahead_bound == "cylinder":
            return max(end, min(limit, self.geometry.cylinder_end(end - 1)))
        if drive.read_ahead_bound == "next-track":
            track_first, track_end = self.geometry.track_bounds(end)
            return min(drive.sectors, track_end + (self.geometry.locate(end).slots if segment_first < track_first else 0))
        return limit

    # Segments.

    def _fill(self) -> None:
        if self.current and self.reading:
            self.current.end = self.mechanism.position
            self._limit_segment(self.current)

    def _limit_segment(self, segment: CacheSegment) -> None:
        if self.segment_size:
            segment.first = max(segment.first, segment.end - self.segment_size)

    def _use(self, segment: CacheSegment) -> None:
        self.uses += 1
        segment.used = self.uses

    def _find_hit(self, first: int, end: int) -> CacheSegment | None:
        """The segment that serves a read: one that holds all of it, better the stream's, or else one in which it begins."""
        drive = self.parameters
        hits = []
        for segment in self.segments:
            streams = segment is self.current and self.reading
            next_one = streams and drive.next_hits and self.read_ahead > 0 and first == segment.end
            whole = end <= segment.end
            if segment.first <= first and (first < segment.end or next_one) and (whole or streams or drive.partial_hits):
                hits.append((whole, streams, segment))
        return max(hits, key=lambda entry: entry[:2])[2] if hits else None

    def _victim(self) -> CacheSegment:
        """The segment that a miss takes: an empty one, or the one that was used the longest time ago."""
        empty = [segment for segment in self.segments if segment.first == segment.end]
        return empty[0] if empty else min(self.segments, key=lambda segment: segment.used)

    # Writes.

    def _write(self, request: HostRequest, first: int, end: int) -> Steps:
        drive, mechanism, time = self.parameters, self.mechanism, self.now
        crossing = self._count("written", end - first)
        self._fill()
        fits = end - first <= self.write_behind
        buffered = fits and not request.flags & FORCE_UNIT_ACCESS
        work = self._work_on("write_hit" if buffered else "write_miss")
        extra = drive.extra_disconnect and not self.busy and self.last_wrote and first != self.last_end
        if self.busy and first == mechanism.limit and fits:
            yield from self._pause(work + drive.data_preparation)
            work_ends = self.now
            yield from mechanism.wait_for_sector(end - self.write_behind - 1)
            self.freed = self.now if self.now > work_ends else 0
            mechanism.extend(end, self.now, self._ready(first, end, self.now))
            self._forget_overlapped(first, end)
        else:
            was_busy = self.busy
            yield from self._interruptible()
            self.freed = self.now
            self._fill()
            self.acknowledged.clear()
            moves, link = time + work, time + work + drive.data_preparation
            if extra:
                moves = time + drive.extra_command + drive.extra_seek_delay
                link = time + drive.extra_command + drive.extra_disconnect_first + drive.extra_pause
                link += drive.reselect_first + drive.data_preparation
            elif was_busy:
                link = max(moves + drive.disconnect_write, self.now) + drive.reselect_first + drive.data_preparation
            link = max(link, self.now)
            self.counters["destages"] += 1
            mechanism.begin(first, end, True, max(moves, self.now), self._ready(first, end, link))
            self.current = None
            self._forget_overlapped(first, end)
            if not drive.own_write_segment:
                self._keep_written(first, end)
            yield from self._pause(link - self.now)
        self.last_wrote, self.last_end, self.waits = True, end, not buffered
        yield from self._pause(crossing)
        if not buffered:
            yield from self._pause(drive.extra_disconnect_second if extra else drive.disconnect_write)
            yield from mechanism.wait_for_sector(end - 1)
            yield from self._pause(drive.reselect_other if extra else drive.reselect_first)
        yield from self._pause(drive.complete_write)
        if buffered:
            self.acknowledged.append((request, first, end))

    def _ready(self, first: int, end: int, link: int) -> int:
        """Time when enough of a write that crosses from `link` on is in the buffer to begin on the media without a wait for the rest."""
        drive, count = self.parameters, end - first
        sectors = max(1, count * round(drive.write_start * SHARE_UNIT) // SHARE_UNIT)
        if drive.write_start_most:
            sectors = min(sectors, drive.write_start_most)
        media = (count - 1) * drive.rotation // self.geometry.locate(first).slots
        return max(link + self._crossing(sectors, reading=False), link + self._crossing(count, reading=False) - media)

    def _forget_overlapped(self, first: int, end: int) -> None:
        for segment in self.segments:
            if first < segment.end and segment.first < end:
                segment.end = segment.first

    def _keep_written(self, first: int, end: int) -> None:
        segment = self._victim()
        self._use(segment)
        segment.first, segment.end = first, end if self.parameters.read_written else first
        self._limit_segment(segment)

    # Waiting.

    def _wait_for_destage(self) -> Steps:
        if self.mechanism.writing:
            yield from self.mechanism.wait_for_sector(self.mechanism.limit - 1)

    def _interruptible_now(self, time: int) -> bool:
        """True if the mechanism can leave its stream, and could already at `time`."""
        if self.reading:
            return self.mechanism.position >= self.least and self.now == time
        return not self.busy and self.now == time

    def _interruptible(self) -> Steps:
        """Wait until the mechanism can leave its stream: writes are destaged, and the least of a read-ahead is done."""
        yield from self._wait_for_destage()
        if self.reading:
            yield from self.mechanism.wait_for_sector(self.least - 1)

    def _crossing(self, sectors: int, *, reading: bool) -> int:
        drive = self.parameters
        bus = max(drive.bus_read if reading else drive.bus_write, drive.bulk_transfer)
        return crossing_time(sectors, drive.sector_size, drive.link_rate, bus)

    def _count(self, direction: str, sectors: int) -> int:
        crossing = self._crossing(sectors, reading=direction == "read")
        self.counters["reads" if direction == "read" else "writes"] += 1
        self.counters[f"{direction}_bytes"] += sectors * self.parameters.sector_size
        self.counters["link_time"] += crossing
        return crossing

    def _pause(self, duration: int) -> Steps:
        if duration > 0:
            yield delay(self.env, duration, OPERATIONS)
