"""The drive's event model, to be read: dies, commands and transfers are processes; channels, link and controller are resources.

A command is admitted when the host has a free slot.  At that moment the translation layer plans all its flash operations, each operation
gets the next number and the last place in its die's queue.  Then time passes:

* the *controller* spends its overhead on one command after another; then its operations go on;
* a *write* first crosses the link; anything else is ready for its die, once what it waits for has ended;
* a *die* carries out its operations in order, waiting for one that is not ready; with `read_priority` host reads that are ready go first,
and   with `suspend` they interrupt a program or an erase;
* a *read* holds the die while the page comes out of the cells and over the channel, then its bytes cross the host link;
* a *program* holds the die while the page goes over the channel and into the cells;
* a *move* holds the die while a page comes out of the cells, over the channel and back (not with copyback), and into the cells;
* an *erase* waits for every program that supersedes a page of its block, as until then a power cut needs that page, and for reads that were
  admitted before it and may be overtaken themselves;
* with `multi_plane`, ready operations that stand one behind the other work together if they are of one kind, on planes of their own and at
the   same page of their blocks: their time in the cells is spent once, and their pages cross the channel one by one.

A read returns what its page held when it was admitted: it goes to the flash page that the map named then, waits for that page's program if
it might overtake it, and the block is not erased before.

Events of one nanosecond: arrivals first, then by number.  What follows without delay happens before the next of these events, and last of
all the dies concerned decide what they do next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from flashsim.core.host_specification import OPERATIONS, HostRequest, SpecifiedHost, delay
from flashsim.core.model import PowerCut
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE, Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.ssd.drive_state import (
    ERASES_FOR,
    FETCHES,
    FLUSHES,
    PROGRAMS_FOR,
    READ_BYTES,
    READS,
    READS_FOR,
    TRIMS,
    WRITE_BYTES,
    WRITES,
    DriveState,
    check_commands_fit,
    statistics_with_times,
)
from flashsim.ssd.flash_array import (
    ERASE_BLOCK,
    FETCH_PAGE,
    HOST,
    MOVE_PAGE,
    PROGRAM_PAGE,
    QUEUED,
    READ_PAGE,
    STORE_PAGE,
    ZERO_PAGE,
    erased,
    programmed,
    started,
)
from flashsim.ssd.geometry import READ_ONLY, REFUSED, block_of, channel_of, die_of_block, pool_of_block
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.pools import next_write_id
from flashsim.ssd.recovery import recover

Steps = Generator[simpy.Event, Any, None]

PROGRAMS = (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE)
#: Kinds that can be one multi-plane command.
TOGETHER = (READ_PAGE,), (FETCH_PAGE,), (PROGRAM_PAGE, STORE_PAGE), (ERASE_BLOCK,)


class Shared(simpy.Resource):
    """A channel, the link or the controller: one user at a time, first come, first served."""

    def __init__(self, env: simpy.Environment) -> None:
        super().__init__(env, capacity=1)
        self.busy_ns = 0

    def use(self, duration: int, number: int) -> Steps:
        """Wait for it, and hold it for `duration` ns."""
        env = self._env
        with self.request() as granted:
            yield granted
            yield delay(env, duration, OPERATIONS + number)
            self.busy_ns += duration


@dataclass(eq=False)
class Command:
    """A command of a host request."""

    number: int
    request: HostRequest
    pages_left: int = 0


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
    held: list[Operation] = field(default_factory=list)  # erases that wait for it
    interrupted: int = 0

    def wait_for(self, other: Operation) -> None:
        """Be ready only after another operation has ended."""
        self.waits += 1
        other.followers.append(self)

    def satisfied(self) -> None:
        """One thing that it waited for has happened; with the last it is ready."""
        self.waits -= 1
        if self.waits == 0:
            assert self.die is not None
            self.die.offer(self)

    def ended(self) -> None:
        """Tell those that wait for it."""
        for follower in self.followers:
            follower.satisfied()


class Die:
    """Carries out operations, one after the other, or those of its planes together."""

    def __init__(self, drive: SsdSpecification, number: int) -> None:
        self.drive, self.env, self.number = drive, drive.env, number
        self.channel = drive.channels[channel_of(drive.state.control, number)]
        self.queue: deque[Operation] = deque()  # in order of admission
        self.reads: deque[Operation] = deque()  # host reads that may overtake, in the order in which they got ready
        self.at_work: list[Operation] = []
        self.suspended: list[Operation] = []
        self.busy_since = self.busy_ns = 0
        self.due = -1  # when the cells are done with what they may be interrupted in
        self._woken = False
        self._working: simpy.Process | None = None
        self._suspended_work: simpy.Process | None = None
        self._resumed = self.env.event()

    def offer(self, operation: Operation) -> None:
        """An operation of this die is ready."""
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
        pending = [*self.suspended, *self.at_work, *self.queue]
        return next((other for other in reversed(pending) if other.kind in PROGRAMS and other.place == flash_page), None)

    def _decide(self) -> None:
        """Reads that overtake come first, then what they interrupted, then the first of the others if it is ready."""
        self._woken = False
        if self.at_work:
            if not (self.reads and self._may_interrupt()):
                return
            self._interrupt()
        if self.reads:
            self._start(self._taken(self.reads))
        elif self.suspended:
            self.at_work, self.suspended, self.busy_since = self.suspended, [], int(self.env.now)
            self._working = self._suspended_work
            self._resumed.succeed()
        elif self.queue and self.queue[0].waits == 0:
            self._start(self._taken(self.queue))

    def _taken(self, queue: deque[Operation]) -> list[Operation]:
        """The first operation of a queue, and those behind it that work together with it."""
        group = [queue.popleft()]
        while queue and self.drive.parameters.multi_plane and self._works_with(group, queue[0]):
            group.append(queue.popleft())
        return group

    def _works_with(self, group: list[Operation], other: Operation) -> bool:
        control, first = self.drive.state.control, group[0]
        one_kind = any(first.kind in kinds and other.kind in kinds for kinds in TOGETHER)
        own_plane = pool_of_block(control, other.block) not in [pool_of_block(control, member.block) for member in group]
        same_page = first.kind == ERASE_BLOCK or (first.place - other.place) % self.drive.parameters.pages_per_block == 0
        return other.waits == 0 and one_kind and own_plane and same_page

    def _start(self, group: list[Operation]) -> None:
        self.at_work, self.busy_since = group, int(self.env.now)
        process = self.env.process(self._read(group) if group[0].kind in (READ_PAGE, FETCH_PAGE) else self._change(group))
        self._working = process

    def _leave(self) -> None:
        self.busy_ns += int(self.env.now) - self.busy_since
        self.at_work = []
        self.wake()

    def _read(self, group: list[Operation]) -> Steps:
        """Pages come out of the cells together, and over the channel one by one."""
        timing, pools = self.drive.timing, self.drive.state.pools
        yield delay(self.env, timing.read, OPERATIONS + group[0].number)
        for operation in group:
            yield from self.channel.use(timing.transfer, operation.number)
            pools[QUEUED, self.number] -= 1
            self.at_work = self.at_work[1:]
            if not self.at_work:
                self._leave()
            self.drive.read_out(operation)

    def _change(self, group: list[Operation]) -> Steps:
        """Pages get to the registers one by one, and into the cells together; or blocks are erased."""
        timing, state, first = self.drive.timing, self.drive.state, group[0]
        if first.kind == MOVE_PAGE:
            yield delay(self.env, timing.read, OPERATIONS + first.number)
        if first.kind in (PROGRAM_PAGE, STORE_PAGE) or (first.kind == MOVE_PAGE and not self.drive.parameters.gc_copyback):
            for operation in group:
                yield from self.channel.use((2 if operation.kind == MOVE_PAGE else 1) * timing.transfer, operation.number)
        if first.kind == ERASE_BLOCK:
            yield from self._in_cells(timing.erase, first)
        else:
            for operation in group:
                started(state.spare, operation.place)
            yield from self._in_cells(timing.program, first)
        state.pools[QUEUED, self.number] -= len(group)
        self.drive.changed(group, self._leave)

    def _in_cells(self, duration: int, first: Operation) -> Steps:
        """The cells work for a while, which reads may interrupt."""
        while duration:
            self.due = int(self.env.now) + duration
            try:
                yield delay(self.env, duration, OPERATIONS + first.number)
                duration = 0
            except simpy.Interrupt as interruption:
                left: Any = interruption.cause
                duration = left + self.drive.timing.resume
                self._resumed = self.env.event()
                yield self._resumed
        self.due = -1

    def _may_interrupt(self) -> bool:
        """Whether the die works on what a read may interrupt, not too often yet, and is not done with it just now."""
        first, timing = self.at_work[0], self.drive.timing
        allowed = timing.suspend_erase if first.kind == ERASE_BLOCK else timing.suspend_program
        return allowed and self.due > self.env.now and first.interrupted < timing.suspend_limit

    def _interrupt(self) -> None:
        assert self._working is not None
        self.at_work[0].interrupted += 1
        self.busy_ns += int(self.env.now) - self.busy_since
        self.suspended, self.at_work = self.at_work, []
        self._working.interrupt(self.due - int(self.env.now))
        self._suspended_work, self.due = self._working, -1


class SsdSpecification:
    """A solid state drive as SimPy processes (`flashsim.core.model.DeviceModel`); takes what `flashsim.ssd.engine.SsdEngine` takes."""

    def __init__(self, parameters: SsdParameters) -> None:
        self.parameters = parameters
        self.state = DriveState(parameters)
        self.timing = self.state.timing
        self._unfinished: set[int] = set()
        self._next_number = 0
        self._refused = 0  # write commands that the caller knows to have been refused
        self._power_up(0)
        self.host = SpecifiedHost(self.env, parameters.queue_depth, self._admit)

    def _power_up(self, now: int) -> None:
        self.env = simpy.Environment(initial_time=now)
        self.channels = [Shared(self.env) for _ in range(self.parameters.channels)]
        self.dies = [Die(self, number) for number in range(self.parameters.dies)]
        self.link = Shared(self.env)
        self.controller = Shared(self.env)
        self.holders: dict[int, list[Operation]] = {}  # by block: what its next erase waits for

    # A command enters the drive.

    def _number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _admit(self, request: HostRequest, offset: int, length: int) -> None:
        """Plan every flash page that the command touches, in order, and start its process."""
        command = Command(self._number(), request)
        control = self.state.control
        if request.operation == WRITE and control[READ_ONLY]:
            control[REFUSED] += 1
            length = 0
        else:
            self._count(request.operation, length)
        operations: list[Operation] = []
        size = self.parameters.page_size
        end = offset + length
        for page in range(offset // size, -(-end // size)) if request.operation != FLUSH and length else ():
            sectors = (min(end, (page + 1) * size) - max(offset, page * size)) // SECTOR
            partial = sectors * SECTOR < size
            if request.operation == WRITE and control[READ_ONLY]:
                control[REFUSED] += 1
                break
            if request.operation == TRIM and partial:
                continue  # only whole flash pages can be trimmed
            plan = self.state.plan_page(request.operation, page, partial)
            if request.operation == TRIM:
                self.state.trimmed[page] = next_write_id(control)
            operations += self._operations_of(command, plan, sectors)
        command.pages_left = sum(operation.kind in (READ_PAGE, ZERO_PAGE, PROGRAM_PAGE) for operation in operations)
        self.env.process(self._command(command, operations))

    def _operations_of(self, command: Command, plan: list[tuple[int, ...]], sectors: int) -> list[Operation]:
        operations: list[Operation] = []
        for kind, place, source, logical, write_id, superseded, cause, needs in plan:
            operation = Operation(self._number(), command, kind, place, source, logical, write_id, superseded, cause, sectors)
            if operation.kind != ZERO_PAGE:
                self._enter_die(operation)
            if operation.superseded >= 0:
                self.holders.setdefault(operation.superseded, []).append(operation)
            if needs >= 0:
                operation.wait_for(operations[needs])
            operations.append(operation)
        return operations

    def _enter_die(self, operation: Operation) -> None:
        """Take a place in the queue of the die, and wait for what must come before; a read that may overtake is queued when ready."""
        control, kind = self.state.control, operation.kind
        operation.block = operation.place if kind == ERASE_BLOCK else block_of(control, operation.place)
        die = operation.die = self.dies[die_of_block(control, operation.block)]
        self.state.pools[QUEUED, die.number] += 1
        if kind == READ_PAGE and self.parameters.read_priority:
            self.holders.setdefault(operation.block, []).append(operation)
            pending = die.pending_program(operation.place)
            if pending:
                operation.wait_for(pending)
            return
        die.queue.append(operation)
        if kind == ERASE_BLOCK:
            for holder in self.holders.pop(operation.block, []):
                operation.waits += 1
                holder.held.append(operation)

    def _count(self, operation: int, length: int) -> None:
        counters = self.state.counters
        counters[{READ: READS, WRITE: WRITES, TRIM: TRIMS, FLUSH: FLUSHES}[operation]] += 1
        if operation == READ:
            counters[READ_BYTES] += length
        elif operation == WRITE:
            counters[WRITE_BYTES] += length

    # What happens outside the dies.

    def _command(self, command: Command, operations: list[Operation]) -> Steps:
        overhead = self.timing.read_overhead if command.request.operation == READ else self.timing.write_overhead
        yield from self.controller.use(overhead, command.number)
        for operation in operations:
            if operation.kind == PROGRAM_PAGE:
                self.env.process(self._bytes_in(operation))
            elif operation.kind == ZERO_PAGE:
                self.env.process(self._bytes_out(operation))
            else:
                operation.satisfied()
        if command.pages_left == 0:
            self.host.command_done(command.request)

    def _bytes_in(self, operation: Operation) -> Steps:
        yield from self.link.use(self.timing.link_write[operation.sectors], operation.number)
        operation.satisfied()

    def _bytes_out(self, operation: Operation) -> Steps:
        yield from self.link.use(self.timing.link_read[operation.sectors], operation.number)
        self._page_done(operation.command)

    def _page_done(self, command: Command) -> None:
        command.pages_left -= 1
        if command.pages_left == 0:
            self.host.command_done(command.request)

    def _release_block(self, operation: Operation) -> None:
        """The operation no longer keeps a block from being erased."""
        for erase in operation.held:
            erase.satisfied()
        for holders in self.holders.values():
            if operation in holders:
                holders.remove(operation)

    def read_out(self, operation: Operation) -> None:
        """A page has left its die."""
        counters = self.state.counters
        counters[READS_FOR + operation.cause] += 1
        if operation.kind == FETCH_PAGE:
            counters[FETCHES] += operation.cause == HOST
            operation.ended()
            return
        self._release_block(operation)
        self.env.process(self._bytes_out(operation))

    def changed(self, group: list[Operation], leave: Callable[[], None]) -> None:
        """Pages are programmed, or blocks erased: the die is free, and so may be what waited for them."""
        state, counters = self.state, self.state.counters
        for operation in group:
            if operation.kind == ERASE_BLOCK:
                erased(state.control, state.blocks, state.spare, operation.block)
                counters[ERASES_FOR + operation.cause] += 1
            else:
                programmed(state.pages, state.spare, operation.place, operation.source, operation.logical, operation.write_id)
                counters[PROGRAMS_FOR + operation.cause] += 1
                counters[READS_FOR + operation.cause] += operation.kind == MOVE_PAGE
        leave()
        for operation in group:
            operation.ended()
            self._release_block(operation)
        for operation in group:
            if operation.kind == PROGRAM_PAGE:
                self._page_done(operation.command)

    # The face of a device.

    @property
    def capacity(self) -> int:
        """Bytes that the host can address."""
        return self.parameters.capacity

    @property
    def now(self) -> int:
        """The clock, ns."""
        return int(self.env.now)

    @property
    def outstanding(self) -> int:
        """Requests submitted and not yet completed."""
        return self.host.outstanding

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands; see `flashsim.core.host.HostQueue.append`."""
        check_commands_fit(self.parameters, requests, commands)
        ids = self.host.append(requests, commands, at)
        self._unfinished.update(ids.tolist())
        return ids

    def advance(self, until: int = NEVER, *, every: bool = False) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`."""
        self._run(until, every)
        if self.state.control[REFUSED] > self._refused:
            self._refused = int(self.state.control[REFUSED])
            raise self.state.read_only()
        completions = self.host.collect()
        self._unfinished.difference_update(completions["id"].tolist())
        return completions

    def _run(self, until: int, every: bool) -> None:
        queue = self.env._queue
        while queue and queue[0][0] <= until:
            follows = queue[0][0] == self.env.now and queue[0][1] <= simpy.events.NORMAL
            if self.host.completed and not every and not follows:
                break
            self.env.step()
        else:
            if until != NEVER and not (self.host.completed and not every):
                self.env._now = max(self.env._now, until)

    def load(self, offset: int, length: int) -> None:
        """Write bytes in no time; see `DriveState.load`.  Refused while requests are outstanding."""
        self.state.load(offset, length, self.outstanding)

    def version(self, page: int) -> int:
        """The write id of a flash page's worth of the address space; see `DriveState.version`."""
        return self.state.version(page)

    def power_cut(self, at: int) -> PowerCut:
        """Run to `at`, then lose power; see `flashsim.ssd.engine.SsdEngine.power_cut`."""
        self._run(at, True)
        self._unfinished.difference_update(self.host.collect()["id"].tolist())
        lost = np.array(sorted(self._unfinished), np.int64)
        self._unfinished.clear()
        for die in self.dies:
            for operation in (*die.suspended, *die.at_work):
                if operation.kind == ERASE_BLOCK:  # finished when power is back
                    erased(self.state.control, self.state.blocks, self.state.spare, operation.block)
        self.state.pools[QUEUED] = 0
        busy = [server.busy_ns for server in self._servers()]
        first_id = self.host._next_id
        self._power_up(self.now)
        for server, nanoseconds in zip(self._servers(), busy, strict=True):
            server.busy_ns = nanoseconds
        self.host = SpecifiedHost(self.env, self.parameters.queue_depth, self._admit)
        self.host._next_id = first_id
        recover(self.state)
        return PowerCut(self.now, lost)

    def _servers(self) -> list[Die | Shared]:
        return [*self.dies, *self.channels, self.link, self.controller]

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made; busy times are of finished holds."""
        dies, channels = [die.busy_ns for die in self.dies], [channel.busy_ns for channel in self.channels]
        return statistics_with_times(self.state, dies, channels, self.link.busy_ns, self.controller.busy_ns)
