"""Dies of the drive's event model: what a die does next, which operations it carries out together, and interruptions by reads."""

from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, takewhile
from typing import Any

import simpy

from flashsim.core import spans
from flashsim.core.draws import mix_bits
from flashsim.core.host_specification import OPERATIONS, delay, follow
from flashsim.ssd.parameters import GROWTH_ERASES
from flashsim.ssd.specification.parts import DriveOfParts, Operation
from flashsim.ssd.specification.shared import Steps, block_of, channel_of, is_one_program, pool_of_block, start_program, work_left_at_stop
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, IN_SLC, MOVE_PAGE, PROGRAM_PAGE, READ_PAGE, STORE_PAGE

PROGRAMS = (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE)
#: Kinds that the cache register is for: pages out, and pages in.
CACHED_READS, CACHED_PROGRAMS = (READ_PAGE, FETCH_PAGE), (PROGRAM_PAGE, STORE_PAGE)
#: Kinds of spans on a die.
_SPANS = {READ_PAGE: spans.READ, FETCH_PAGE: spans.FETCH, MOVE_PAGE: spans.MOVE, ERASE_BLOCK: spans.ERASE}
#: Kinds that can be one multi-plane command.
TOGETHER = (READ_PAGE,), (FETCH_PAGE,), (PROGRAM_PAGE, STORE_PAGE), (ERASE_BLOCK,)


class Die:
    """Carries out operations, one after the other, or those of its planes together."""

    def __init__(self, drive: DriveOfParts, number: int) -> None:
        self.drive, self.env, self.number = drive, drive.env, number
        self.channel = drive.channels[channel_of(drive.state.control, number)]
        self.queue: deque[Operation] = deque()  # in order of admission
        self.reads: deque[Operation] = deque()  # host reads that may overtake, in the order in which they got ready
        self.at_work: list[Operation] = []
        self.cached: list[Operation] = []  # in the cache register
        self.suspended: list[Operation] = []
        self.passing: int | None = None  # reads that come before the work that waits for the die
        self.busy_since = self.busy_ns = 0
        self.due = -1  # when the cells are done with what they may be interrupted in
        self.pages: Sequence[int] = ()
        self.most_left = 0  # how much of that may be left when they are
        self.boundless = drive.timing.boundless_dies
        self._woken = False
        self._working: simpy.Process | None = None
        self._suspended_work: simpy.Process | None = None
        self._resumed = self.env.event()
        self._moved_on = self.env.event()  # a register or the cells are free

    def offer(self, operation: Operation) -> None:
        if self.queues_late(operation):
            self.reads.append(operation)
        self.wake()

    def queues_late(self, operation: Operation) -> bool:
        """True if an operation has its place only when it is ready: a read that overtakes, on a boundless die any."""
        if self.boundless:
            return operation.kind in CACHED_READS
        return operation.kind == READ_PAGE and self.drive.parameters.read_priority

    def wake(self) -> None:
        """Decide what to do next once all else that follows from this event has happened."""
        if not self._woken:
            self._woken = True
            soon = self.env.event()
            follow(soon, self._decide)
            soon.succeed()

    def _decide(self) -> None:
        """Reads that overtake come first, then what they interrupted, then the first of the others if it is ready.

        Work that waits, and that reads may interrupt, waits for those which are ready when the die first has the choice; not for all.
        """
        self._woken = False
        if self.boundless:
            for queue in (self.reads, self.queue):
                while queue and self._is_ready(queue):
                    self._start(self._take_group(queue))
            return
        if self.at_work:
            if self.reads and (left := self._work_left_at_stop()):
                assert self._working is not None
                self._working.interrupt(left)
                self.due = -1
            elif self._may_fill_cache():
                self.cached = self._take_group(self.queue)
                self.env.process(self._change(self.cached))
            return
        if self.passing is None and self.reads and self._work_waits():
            self.passing = len(self.reads)
        reads = bool(self.reads) and not (self.passing == 0 and self._work_waits())
        if self.cached and not reads and not (self.queue and self.queue[0].kind in CACHED_READS):
            return
        if reads:
            group = self._take_group(self.reads)
            if self.passing is not None:
                self.passing = max(0, self.passing - len(group))
            self._start(group)
            return
        self.passing = None
        if self.suspended:
            self.at_work, self.suspended, self.busy_since = self.suspended, [], int(self.env.now)
            self._working = self._suspended_work
            self._resumed.succeed()
            self.wake()  # for reads that wait
        elif self.queue and self._is_ready(self.queue):
            self._start(self._take_group(self.queue))

    def _is_ready(self, queue: deque[Operation]) -> bool:
        """True if the first operation of a queue may start, and all that are programmed at once with it."""
        together = takewhile(lambda other: self._is_one_program(queue[0], other), queue)
        return queue[0].waits == 0 and all(operation.waits == 0 for operation in together)

    def _is_one_program(self, one: Operation, other: Operation) -> bool:
        """True if two operations, of which one stands behind the other, fill slots that are programmed at once."""
        programs = one.kind in PROGRAMS and other.kind in PROGRAMS
        return programs and is_one_program(self.drive.state.control, one.place, one.source, other.place)

    def _take_group(self, queue: deque[Operation]) -> list[Operation]:
        """The first operation of a queue, and those behind it that work together with it."""
        group = [queue.popleft()]
        while queue:
            shares = self._is_one_read(group, queue[0])
            if not (shares or self._is_one_program(group[-1], queue[0]) or self._works_with(group, queue)):
                break
            self.drive.state.counters.shared_reads += shares
            group.append(queue.popleft())
        return group

    def _is_one_read(self, group: list[Operation], other: Operation) -> bool:
        """True if a ready operation reads a unit of a flash page that comes out of the cells anyway."""
        units, first = self.drive.parameters.units, group[0]
        alike = units > 1 and other.waits == 0 and first.kind == other.kind and first.kind in CACHED_READS
        return alike and other.place // units in [member.place // units for member in group]

    def _works_with(self, group: list[Operation], queue: deque[Operation]) -> bool:
        """True if the first of a queue is ready, and works on a plane of its own at the same page, of cells with as many bits."""
        control, first, other, size = self.drive.state.control, group[0], queue[0], self.drive.parameters.units
        one_kind = any(first.kind in kinds and other.kind in kinds for kinds in TOGETHER)
        own_plane = pool_of_block(control, other.block) not in [pool_of_block(control, member.block) for member in group]
        same_page = first.kind == ERASE_BLOCK or (first.place // size - other.place // size) % (control.pages_per_block // size) == 0
        same_cells = (first.source <= IN_SLC) == (other.source <= IN_SLC)
        return bool(self.drive.parameters.multi_plane and self._is_ready(queue) and one_kind and own_plane and same_page and same_cells)

    def _may_fill_cache(self) -> bool:
        """True if the cells program a page, the cache register is free, and the next operation is ready to be programmed too."""
        if not self.drive.parameters.cache_program or self.cached or self.reads or not self.queue:
            return False
        programming = self.at_work[0].kind in CACHED_PROGRAMS and self.due >= 0
        return programming and self.queue[0].kind in CACHED_PROGRAMS and self._is_ready(self.queue)

    def _work_waits(self) -> bool:
        """True if the die has other work than reads: what they interrupted, or what they may interrupt and is ready to begin."""
        if self.suspended or not self.queue:
            return bool(self.suspended)
        return self._lets_reads_in(self.queue[0]) and self._is_ready(self.queue)

    def _lets_reads_in(self, operation: Operation) -> bool:
        timing = self.drive.timing
        return bool(timing.suspend_erase if operation.kind == ERASE_BLOCK else timing.suspend_program)

    def _start(self, group: list[Operation]) -> None:
        if not self.boundless:
            self.at_work = group
        if not self.cached:
            self.busy_since = int(self.env.now)
        process = self.env.process(self._read(group) if group[0].kind in (READ_PAGE, FETCH_PAGE) else self._change(group))
        self._working = process

    def _leave(self, group: list[Operation]) -> None:
        """The operations that began first have ended; what is in the other register holds the die from now, and may move on."""
        if self.boundless:
            return
        self._end_hold(group)
        self.busy_since = int(self.env.now)
        if self.cached and self.cached[0].kind in CACHED_READS:
            self.cached = []
        else:
            self.at_work, self.cached = self.cached, []
        moved_on, self._moved_on = self._moved_on, self.env.event()
        moved_on.succeed()
        self.wake()

    def _end_hold(self, group: list[Operation]) -> None:
        """Operations give up the die; in the record one stands for all: of those that are read the last, of others the first."""
        self.busy_ns += int(self.env.now) - self.busy_since
        one = group[-1] if group[0].kind in CACHED_READS else group[0]
        self._note(_SPANS.get(one.kind, spans.PROGRAM), one, self.busy_since, len(group))

    def _note(self, kind: int, operation: Operation, begin: int, units: int) -> None:
        self.drive.note(self.number, kind, operation, begin, self._level_of_work(operation), units, self.number)

    def _level_of_work(self, operation: Operation) -> int:
        """The level of `flashsim.core.spans` of the cells that an operation reads or programs."""
        parameters, state = self.drive.parameters, self.drive.state
        if parameters.levels == 1 or operation.kind == ERASE_BLOCK:
            return -1
        if state.blocks[block_of(state.control, operation.place)].slc:
            return spans.SLC
        return spans.ALL_BITS if parameters.one_shot and operation.kind in PROGRAMS else self._level(operation.place)

    def _cross(self, operation: Operation, duration: int) -> Steps:
        """Use the channel for an operation."""
        duration = duration if self._has_time(operation) else 1
        note = partial(self.drive.note, len(self.drive.dies) + self.drive.channels.index(self.channel), spans.TRANSFER, operation)
        return self.channel.use(duration, operation.number, partial(note, die=self.number))

    def _read(self, group: list[Operation]) -> Steps:
        timing, pools, begin = self.drive.timing, self.drive.state.pools, int(self.env.now)
        reading = max(self._reading_time(operation, operation.place) for operation in group)
        yield delay(self.env, reading if self._has_time(group[0]) else 1, OPERATIONS + group[0].number)
        self._note(spans.CELLS, group[0], begin, len(group))
        if self.drive.parameters.cache_read and not self.boundless:
            while self.cached:
                yield self._moved_on
            self.cached, self.at_work = group, []
            self.wake()
        for operation in group:
            asked = operation.kind == READ_PAGE
            yield from self._cross(operation, timing.channel[operation.sectors] if asked else timing.transfer)
            pools.queued[self.number] -= 1
            if operation is group[-1]:
                self._leave(group)
            self.drive.read_out(operation)

    def _change(self, group: list[Operation]) -> Steps:
        parameters, state, first = self.drive.parameters, self.drive.state, group[0]
        if first.kind == MOVE_PAGE:
            reading: dict[int, int] = {}
            for operation in group:
                page = operation.source // parameters.units
                reading[page] = max(reading.get(page, 0), self._reading_time(operation, operation.source))
            state.counters.shared_reads += len(group) - len(reading)
            whole = sum(reading.values()) if self._has_time(first) else 1
            yield from self._in_cells(whole, first, list(accumulate(reversed(reading.values()))))
        if first.kind in (PROGRAM_PAGE, STORE_PAGE) or (first.kind == MOVE_PAGE and not parameters.gc_copyback):
            for operation in group:
                times = 2 if operation.kind == MOVE_PAGE else 1
                yield from self._cross(operation, times * self.drive.timing.transfer)
                self.drive.pages_behind -= operation.is_behind
        if first.kind == ERASE_BLOCK:
            erases = max(int(state.blocks.erases[operation.block]) for operation in group)
            time = parameters.erase + parameters.erase_growth * erases // GROWTH_ERASES
            yield from self._in_cells(time if self._has_time(first) else 1, first)
        else:
            while self.at_work is not group and not self.boundless:
                yield self._moved_on
            if self.reads and self.drive.timing.suspend_program:
                yield self._give_way()
            for operation in group:
                start_program(state.flash, operation.place, operation.source)
            if parameters.cache_program and not self.boundless:
                self.wake()
            programs = parameters.program_pages or (parameters.program,) * parameters.levels
            time = programs[self._level(first.place)]
            if first.source <= IN_SLC:  # a page of each plane after the other
                pages = [operation.place // parameters.units % parameters.pages_per_block for operation in group]
                time = self.drive.timing.slc_program * (max(pages) - pages[0] + 1)
            yield from self._in_cells(time if self._has_time(first) else 1, first)
        state.pools.queued[self.number] -= len(group)
        self.drive.finish_changes(group, self._leave)

    def _has_time(self, operation: Operation) -> bool:
        """True unless work of its cause takes no time."""
        return not self.drive.timing.free_causes >> operation.cause & 1

    def _level(self, slot: int) -> int:
        """The page of its word line in which a slot lies: those of a block go round them."""
        parameters = self.drive.parameters
        return slot // parameters.units % parameters.pages_per_block % parameters.levels

    def _reading_time(self, operation: Operation, slot: int) -> int:
        """Time until a slot is out of the cells; it may have to be read once more, as a hash of the operation's number says."""
        parameters, timing, state = self.drive.parameters, self.drive.timing, self.drive.state
        times = parameters.read_pages or (parameters.read,) * parameters.levels
        block = state.blocks[block_of(state.control, slot)]
        erases = int(block.erases)
        again = mix_bits(operation.number) < timing.retry + timing.retry_growth * erases // GROWTH_ERASES
        state.counters.read_retries += again
        return (timing.slc_read if block.slc else times[self._level(slot)]) + again * timing.retry_time

    def _in_cells(self, duration: int, first: Operation, pages: Sequence[int] = ()) -> Steps:
        """Let the cells work; reads may come in at the ends of steps, once so much was done since the last came.

        Of moves they read before, `pages` is what is left before each flash page, from the last one on: reads may come in there.
        """
        parameters, least = self.drive.parameters, 1 if pages else self.drive.timing.suspend_progress
        stop, resume = (0, 0) if pages else (parameters.suspend_stop, parameters.suspend_overhead)
        left, overhead, self.most_left, self.pages = duration, 0, duration, pages
        while left:
            self.due = due = int(self.env.now) + overhead + left
            try:
                yield delay(self.env, overhead + left, OPERATIONS + first.number)
                left = 0
            except simpy.Interrupt as interruption:
                end_of_step: Any = interruption.cause
                stops = due - end_of_step + stop
                left, overhead = end_of_step, resume
                yield delay(self.env, stops - int(self.env.now), OPERATIONS + first.number)
                self.most_left = left - least
                yield self._give_way()
        self.due = -1

    def _work_left_at_stop(self) -> int:
        """What is left of the work in the cells when reads may come in next; 0 if it ends before, or lets none in."""
        first, timing, parameters = self.at_work[0], self.drive.timing, self.drive.parameters
        if self.due < 0 or not self._lets_reads_in(first):
            return 0
        most = min(self.due - int(self.env.now), self.most_left)
        if self.pages:
            return max((left for left in self.pages if left <= most), default=0)
        steps = timing.program_step, parameters.program_long_step, timing.long_chance
        left = work_left_at_stop(first.number, most, *((timing.erase_step, 0, 0) if first.kind == ERASE_BLOCK else steps))
        return left if left > parameters.suspend_stop else 0

    def _give_way(self) -> simpy.Event:
        """Leave the die to reads; the event is when it goes on."""
        self._end_hold(self.at_work)
        self.suspended, self.at_work = self.at_work, []
        self._suspended_work, self._resumed = self._working, self.env.event()
        self.wake()
        return self._resumed
