"""Parts of the drive's event model: dies, what they carry out, and what is shared; `drive` puts them together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Protocol

import simpy

from flashsim.core.draws import mixed
from flashsim.core.host_specification import OPERATIONS, HostRequest, SpecifiedHost, delay
from flashsim.core.request import INTERNAL
from flashsim.core.units import NEVER
from flashsim.ssd.parameters import GROWTH_ERASES, SsdParameters
from flashsim.ssd.specification.rules import block_of, channel_of, is_one_program, pool_of_block, start_program
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash import PlannedOperation
from flashsim.ssd.state.flash_array import (
    ERASE_BLOCK,
    FETCH_PAGE,
    IN_SLC,
    MOVE_PAGE,
    PROGRAM_PAGE,
    READ_PAGE,
    STORE_PAGE,
)
from flashsim.ssd.timing import SsdTiming

Steps = Generator[simpy.Event, Any, None]

PROGRAMS = (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE)
#: Kinds that the cache register is for: pages out, and pages in.
CACHED_READS, CACHED_PROGRAMS = (READ_PAGE, FETCH_PAGE), (PROGRAM_PAGE, STORE_PAGE)
#: Kinds that can be one multi-plane command.
TOGETHER = (READ_PAGE,), (FETCH_PAGE,), (PROGRAM_PAGE, STORE_PAGE), (ERASE_BLOCK,)


class SharedServer(simpy.Resource):
    """A channel, the link or the controller: one user at a time, first come, first served."""

    def __init__(self, env: simpy.Environment) -> None:
        super().__init__(env, capacity=1)
        self.busy_ns, self._since = 0, NEVER

    def use(self, duration: int | Callable[[], int], number: int) -> Steps:
        """Wait for it, and hold it for `duration` ns, which may be decided when it is had."""
        env = self._env
        with self.request() as granted:
            yield granted
            self._since = int(env.now)
            yield delay(env, duration() if callable(duration) else duration, OPERATIONS + number)
            self.busy_ns += int(env.now) - self._since
            self._since = NEVER

    def busy_until(self, now: int) -> int:
        """Nanoseconds in which it was held, up to now."""
        return self.busy_ns + max(0, now - self._since)


class DriveOfParts(Protocol):
    """Drive as its parts see it."""

    parameters: SsdParameters
    state: DriveState
    timing: SsdTiming
    env: simpy.Environment
    host: SpecifiedHost
    channels: list[SharedServer]
    dies: list[Die]
    pages_behind: int  # pages in the controller, of writes that go on where the last one ended

    def command_of(self, request: HostRequest) -> Command:
        """A command without operations, with the next number."""

    def add(self, command: Command, plan: list[PlannedOperation], sectors: int) -> list[Operation]:
        """Give planned operations their numbers and their places in the queues of dies."""

    def transfer_of(self, command: Command, kind: int, page: int, sectors: int, part: bool) -> Operation:
        """An operation of a command that needs no die; whether the command waits for it."""

    def transfer(self, operation: Operation) -> None:
        """An operation that needs no die is ready for the link."""

    def bytes_in(self, operation: Operation) -> Steps:
        """Move an operation's bytes from the host, or from a program inside, into the drive's memory."""

    def page_done(self, command: Command) -> None:
        """A page of a command is done; the command completes with its last."""

    def read_out(self, operation: Operation) -> None:
        """A page has left its die."""

    def changed(self, group: list[Operation], leave: Callable[[], None]) -> None:
        """Pages are programmed, or blocks erased: the die is free, and so may be what waited for them."""


@dataclass(eq=False)
class Command:
    """A command of a host request."""

    drive: DriveOfParts
    number: int
    request: HostRequest
    pages_left: int = 0
    through: bool = False  # it waits for the medium (`flashsim.ssd.state.write_buffer.needs_medium`)
    goes_on: bool = False  # where the last command of its operation ended
    gathered: int = 0  # its last pages in the write buffer, which are still to leave together
    operations: list[Operation] = field(default_factory=list)
    _on_its_way: bool = False

    @property
    def internal(self) -> bool:
        """True if it comes from a program inside the drive."""
        return bool(self.request.flags & INTERNAL)

    def first_on_link(self) -> bool:
        """True if none of the command's pages has had the host link before."""
        first, self._on_its_way = not self._on_its_way, True
        return first


@dataclass(eq=False)
class Operation:
    """A flash operation: its row of the plan, and what it waits for."""

    number: int
    command: Command
    kind: int
    place: int
    source: int
    logical: int
    write_id: int
    superseded: int
    cause: int
    sectors: int
    block: int = -1
    die: Die | None = None
    waits: int = 1
    followers: list[Operation] = field(default_factory=list)
    erases: list[Operation] = field(default_factory=list)  # erases that wait for it
    interrupted: int = 0
    part: bool = False  # whether its command waits for it
    is_behind: bool = False  # whether it is acknowledged before it is programmed
    needs_room: bool = False  # in the write buffer
    taken_by: Operation | None = None  # what took its page out of the write buffer before it came
    before: Operation | None = None  # the transfer before it to the same page of the write buffer
    arrived: int = 0  # write id of the newest content that came as a whole

    def wait_for(self, other: Operation) -> None:
        """Be ready only after another operation has ended."""
        self.waits += 1
        other.followers.append(self)

    def satisfied(self) -> None:
        """One thing that it waited for has happened; with the last it is ready."""
        self.waits -= 1
        if self.waits == 0 and self.die:
            self.die.offer(self)
        elif self.waits == 0:
            self.command.drive.transfer(self)

    def finish(self) -> None:
        for follower in self.followers:
            follower.satisfied()


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
        self.busy_since = self.busy_ns = 0
        self.due = -1  # when the cells are done with what they may be interrupted in
        self._woken = False
        self._working: simpy.Process | None = None
        self._suspended_work: simpy.Process | None = None
        self._resumed = self.env.event()
        self._moved_on = self.env.event()  # a register or the cells are free

    def offer(self, operation: Operation) -> None:
        if operation.kind == READ_PAGE and self.drive.parameters.read_priority:
            self.reads.append(operation)
        self.wake()

    def wake(self) -> None:
        """Decide what to do next once all else that follows from this event has happened."""
        if not self._woken:
            self._woken = True
            soon = self.env.event()
            assert soon.callbacks is not None
            soon.callbacks.append(lambda _: self._decide())
            soon.succeed()

    def pending_program(self, flash_page: int) -> Operation | None:
        """The operation, not yet ended, that programs a flash page; of several the last admitted."""
        pending = [*self.suspended, *self.at_work, *self.cached, *self.queue]
        return next((other for other in reversed(pending) if other.kind in PROGRAMS and other.place == flash_page), None)

    def _decide(self) -> None:
        """Reads that overtake come first, then what they interrupted, then the first of the others if it is ready."""
        self._woken = False
        if self.at_work:
            if not (self.reads and self._may_interrupt()):
                if self._may_fill_cache():
                    self.cached = self._take_group(self.queue)
                    self.env.process(self._change(self.cached))
                return
            self._interrupt()
        if self.cached and not self._read_comes_next():
            return
        if self.reads:
            self._start(self._take_group(self.reads))
        elif self.suspended:
            self.at_work, self.suspended, self.busy_since = self.suspended, [], int(self.env.now)
            self._working = self._suspended_work
            self._resumed.succeed()
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

    def _read_comes_next(self) -> bool:
        return bool(self.reads or (self.queue and self.queue[0].kind in CACHED_READS))

    def _start(self, group: list[Operation]) -> None:
        self.at_work = group
        if not self.cached:
            self.busy_since = int(self.env.now)
        process = self.env.process(self._read(group) if group[0].kind in (READ_PAGE, FETCH_PAGE) else self._change(group))
        self._working = process

    def _leave(self) -> None:
        """The operation that began first has ended; what is in the other register holds the die from now, and may move on."""
        self.busy_ns += int(self.env.now) - self.busy_since
        self.busy_since = int(self.env.now)
        if self.cached and self.cached[0].kind in CACHED_READS:
            self.cached = []
        else:
            self.at_work, self.cached = self.cached, []
        moved_on, self._moved_on = self._moved_on, self.env.event()
        moved_on.succeed()
        self.wake()

    def _read(self, group: list[Operation]) -> Steps:
        timing, pools = self.drive.timing, self.drive.state.pools
        reading = max(self._reading_time(operation, operation.place) for operation in group)
        yield delay(self.env, reading, OPERATIONS + group[0].number)
        if self.drive.parameters.cache_read:
            while self.cached:
                yield self._moved_on
            self.cached, self.at_work = group, []
            self.wake()
        for operation in group:
            asked = operation.kind == READ_PAGE
            yield from self.channel.use(timing.channel[operation.sectors] if asked else timing.transfer, operation.number)
            pools.queued[self.number] -= 1
            if operation is group[-1]:
                self._leave()
            self.drive.read_out(operation)

    def _change(self, group: list[Operation]) -> Steps:
        parameters, state, first = self.drive.parameters, self.drive.state, group[0]
        if first.kind == MOVE_PAGE:
            reading: dict[int, int] = {}
            for operation in group:
                page = operation.source // parameters.units
                reading[page] = max(reading.get(page, 0), self._reading_time(operation, operation.source))
            state.counters.shared_reads += len(group) - len(reading)
            yield delay(self.env, sum(reading.values()), OPERATIONS + first.number)
        if first.kind in (PROGRAM_PAGE, STORE_PAGE) or (first.kind == MOVE_PAGE and not parameters.gc_copyback):
            for operation in group:
                times = 2 if operation.kind == MOVE_PAGE else 1
                yield from self.channel.use(times * self.drive.timing.transfer, operation.number)
                self.drive.pages_behind -= operation.is_behind
        if first.kind == ERASE_BLOCK:
            erases = max(int(state.blocks.erases[operation.block]) for operation in group)
            yield from self._in_cells(parameters.erase + parameters.erase_growth * erases // GROWTH_ERASES, first)
        else:
            while self.at_work is not group:
                yield self._moved_on
            for operation in group:
                start_program(state.flash, operation.place, operation.source)
            if parameters.cache_program:
                self.wake()
            programs = parameters.program_pages or (parameters.program,) * parameters.levels
            time = programs[self._level(first.place)]
            if first.source <= IN_SLC:  # a page of each plane after the other
                pages = [operation.place // parameters.units % parameters.pages_per_block for operation in group]
                time = self.drive.timing.slc_program * (max(pages) - pages[0] + 1)
            yield from self._in_cells(time, first)
        state.pools.queued[self.number] -= len(group)
        self.drive.changed(group, self._leave)

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
        again = mixed(operation.number) < timing.retry + timing.retry_growth * erases // GROWTH_ERASES
        state.counters.read_retries += again
        return (timing.slc_read if block.slc else times[self._level(slot)]) + again * timing.retry_time

    def _in_cells(self, duration: int, first: Operation) -> Steps:
        while duration:
            self.due = int(self.env.now) + duration
            try:
                yield delay(self.env, duration, OPERATIONS + first.number)
                duration = 0
            except simpy.Interrupt as interruption:
                rest: Any = interruption.cause
                duration = rest + self.drive.parameters.suspend_overhead
                self._resumed = self.env.event()
                yield self._resumed
        self.due = -1

    def _may_interrupt(self) -> bool:
        """True if the die works on an operation that a read may interrupt, not too often yet, and that does not end just now."""
        first, timing = self.at_work[0], self.drive.timing
        allowed = timing.suspend_erase if first.kind == ERASE_BLOCK else timing.suspend_program
        return allowed and self.due > self.env.now and first.interrupted < self.drive.parameters.suspend_limit

    def _interrupt(self) -> None:
        assert self._working is not None
        self.at_work[0].interrupted += 1
        self.busy_ns += int(self.env.now) - self.busy_since
        self.suspended, self.at_work = self.at_work, []
        self._working.interrupt(self.due - int(self.env.now))
        self._suspended_work, self.due = self._working, -1
