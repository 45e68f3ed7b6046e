"""The drive's event model, to be read: dies, channels, link and controller are resources, commands and flash operations processes.

A command is admitted when the host has a free slot.  At that moment the translation layer plans all its flash operations, each operation
gets the next number and the last place in its die's queue.  Then time passes:

* the *controller* spends its overhead on one command after another; then all the command's operations are ready;
* a *die* carries out its operations strictly in order, so whatever an operation depends on has a lower number;
* a *read* holds the die while the page comes out of the cells and over the channel, then its bytes cross the host link;
* a *write* crosses the link first, then holds the die while the page goes over the channel and into the cells;
* a *partial write* also waits for a fetch of the old page;
* a *move* (garbage collection) holds the die while a page comes out of the cells, over the channel and back, and into the cells;
* an *erase* waits, at the head of its die, for every program that supersedes a page of its block: until then a power cut needs that page.

Events of one nanosecond: arrivals first, then by number.  What follows without delay happens before the next of these events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
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
    READ_PAGE,
    STORE_PAGE,
    ZERO_PAGE,
    erased,
    programmed,
    started,
)
from flashsim.ssd.geometry import READ_ONLY, REFUSED, channel_of, die_of_block, die_of_page
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.pools import next_write_id
from flashsim.ssd.recovery import recover

Steps = Generator[simpy.Event, Any, None]


class Die:
    """Serves its operations strictly in the order in which they were admitted."""

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        self.queue: deque[tuple[Operation, simpy.Event]] = deque()
        self.busy_since = 0
        self.busy_ns = 0

    def join(self, operation: Operation) -> simpy.Event:
        """Take the last place; the event says that it has become the first."""
        turn = self.env.event()
        self.queue.append((operation, turn))
        if len(self.queue) == 1:
            turn.succeed()
        return turn

    def leave(self) -> None:
        """The first is done; the next takes its turn."""
        self.busy_ns += int(self.env.now) - self.busy_since
        self.queue.popleft()
        if self.queue:
            self.queue[0][1].succeed()


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
    ready: simpy.Event
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
    cause: int
    sectors: int
    done: simpy.Event
    die: Die | None = None
    channel: Shared | None = None
    turn: simpy.Event | None = None
    waits_for: list[Operation] = field(default_factory=list)
    erasing: bool = False


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
        self.dies = [Die(self.env) for _ in range(self.parameters.dies)]
        self.channels = [Shared(self.env) for _ in range(self.parameters.channels)]
        self.link = Shared(self.env)
        self.controller = Shared(self.env)
        self.superseding: dict[int, list[Operation]] = {}  # by block: programs, since its last erase was admitted

    # A command enters the drive.

    def _number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _admit(self, request: HostRequest, offset: int, length: int) -> None:
        """Plan every flash page that the command touches, in order, and start its processes."""
        command = Command(self._number(), request, self.env.event())
        control = self.state.control
        if not (request.operation == WRITE and control[READ_ONLY]):
            self._count(request.operation, length)
        operations: list[Operation] = []
        size = self.parameters.page_size
        end = offset + length
        for page in range(offset // size, -(-end // size)) if request.operation != FLUSH else ():
            sectors = (min(end, (page + 1) * size) - max(offset, page * size)) // SECTOR
            partial = sectors * SECTOR < size
            if request.operation == TRIM and partial:
                continue  # only whole flash pages can be trimmed
            if request.operation == WRITE and control[READ_ONLY]:
                control[REFUSED] += 1
                break
            plan = self.state.plan_page(request.operation, page, partial)
            if request.operation == TRIM:
                self.state.trimmed[page] = next_write_id(control)
            operations += self._operations_of(command, plan, sectors)
        command.pages_left = sum(operation.kind in (READ_PAGE, ZERO_PAGE, PROGRAM_PAGE) for operation in operations)
        self.env.process(self._command(command))
        for operation in operations:
            self.env.process(_LIVES[operation.kind](self, operation))

    def _operations_of(self, command: Command, plan: list[tuple[int, ...]], sectors: int) -> list[Operation]:
        operations: list[Operation] = []
        for kind, place, source, logical, write_id, superseded, cause, needs in plan:
            operation = Operation(self._number(), command, kind, place, source, logical, write_id, cause, sectors, self.env.event())
            operation.waits_for = [operations[needs]] if needs >= 0 else []
            if kind != ZERO_PAGE:
                control = self.state.control
                die = die_of_block(control, place) if kind == ERASE_BLOCK else die_of_page(control, place)
                operation.die = self.dies[die]
                operation.channel = self.channels[channel_of(control, die)]
                operation.turn = operation.die.join(operation)
            if superseded >= 0:
                self.superseding.setdefault(superseded, []).append(operation)
            if kind == ERASE_BLOCK:
                operation.waits_for += self.superseding.pop(place, [])
            operations.append(operation)
        return operations

    def _count(self, operation: int, length: int) -> None:
        counters = self.state.counters
        counters[{READ: READS, WRITE: WRITES, TRIM: TRIMS, FLUSH: FLUSHES}[operation]] += 1
        if operation == READ:
            counters[READ_BYTES] += length
        elif operation == WRITE:
            counters[WRITE_BYTES] += length

    # The processes.

    def _command(self, command: Command) -> Steps:
        overhead = self.timing.read_overhead if command.request.operation == READ else self.timing.write_overhead
        yield from self.controller.use(overhead, command.number)
        command.ready.succeed()
        if command.pages_left == 0:
            self.host.command_done(command.request)

    def _page_done(self, command: Command) -> None:
        command.pages_left -= 1
        if command.pages_left == 0:
            self.host.command_done(command.request)

    def _cells(self, operation: Operation, duration: int) -> simpy.Event:
        return delay(self.env, duration, OPERATIONS + operation.number)

    def _wait(self, operation: Operation) -> Steps:
        """For what the operation needs, and for its turn."""
        assert operation.turn is not None
        yield operation.command.ready
        for earlier in operation.waits_for:
            yield earlier.done
        yield operation.turn

    def _read(self, operation: Operation) -> Steps:
        assert operation.die is not None and operation.channel is not None
        yield from self._wait(operation)
        operation.die.busy_since = int(self.env.now)
        yield self._cells(operation, self.timing.read)
        yield from operation.channel.use(self.timing.transfer, operation.number)
        self.state.counters[READS_FOR + operation.cause] += 1
        operation.die.leave()
        if operation.kind == FETCH_PAGE:
            self.state.counters[FETCHES] += operation.cause == HOST
            operation.done.succeed()
        else:
            yield from self.link.use(self.timing.link_read[operation.sectors], operation.number)
            self._page_done(operation.command)

    def _read_nothing(self, operation: Operation) -> Steps:
        yield operation.command.ready
        yield from self.link.use(self.timing.link_read[operation.sectors], operation.number)
        self._page_done(operation.command)

    def _write(self, operation: Operation) -> Steps:
        assert operation.die is not None and operation.channel is not None
        yield operation.command.ready
        yield from self.link.use(self.timing.link_write[operation.sectors], operation.number)
        yield from self._store(operation)
        self._page_done(operation.command)

    def _store(self, operation: Operation) -> Steps:
        assert operation.die is not None and operation.channel is not None
        yield from self._wait(operation)
        operation.die.busy_since = int(self.env.now)
        yield from operation.channel.use(self.timing.transfer, operation.number)
        yield from self._program(operation)
        operation.die.leave()
        operation.done.succeed()

    def _move(self, operation: Operation) -> Steps:
        assert operation.die is not None and operation.channel is not None
        yield from self._wait(operation)
        operation.die.busy_since = int(self.env.now)
        yield self._cells(operation, self.timing.read)
        if not self.parameters.gc_copyback:
            yield from operation.channel.use(2 * self.timing.transfer, operation.number)
        yield from self._program(operation)
        self.state.counters[READS_FOR + operation.cause] += 1
        operation.die.leave()
        operation.done.succeed()

    def _program(self, operation: Operation) -> Steps:
        state, place = self.state, operation.place
        started(state.spare, place)
        yield self._cells(operation, self.timing.program)
        programmed(state.pages, state.spare, place, operation.source, operation.logical, operation.write_id)
        state.counters[PROGRAMS_FOR + operation.cause] += 1

    def _erase(self, operation: Operation) -> Steps:
        assert operation.die is not None
        state, block = self.state, operation.place
        yield from self._wait(operation)
        operation.die.busy_since = int(self.env.now)
        operation.erasing = True
        yield self._cells(operation, self.timing.erase)
        erased(state.control, state.blocks, state.spare, block)
        state.counters[ERASES_FOR + operation.cause] += 1
        operation.die.leave()

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
        queue = self.env._queue
        while queue and queue[0][0] <= until:
            follows = queue[0][0] == self.env.now and queue[0][1] <= simpy.events.NORMAL
            if self.host.completed and not every and not follows:
                break
            self.env.step()
        else:
            if until != NEVER and not (self.host.completed and not every):
                self.env._now = max(self.env._now, until)
        if self.state.control[REFUSED] > self._refused:
            self._refused = int(self.state.control[REFUSED])
            raise self.state.read_only()
        completions = self.host.collect()
        self._unfinished.difference_update(completions["id"].tolist())
        return completions

    def load(self, offset: int, length: int) -> None:
        """Write bytes in no time; see `DriveState.load`.  Refused while requests are outstanding."""
        self.state.load(offset, length, self.outstanding)

    def version(self, page: int) -> int:
        """The write id of a flash page's worth of the address space; see `DriveState.version`."""
        return self.state.version(page)

    def power_cut(self, at: int) -> PowerCut:
        """Run to `at`, then lose power; see `flashsim.ssd.engine.SsdEngine.power_cut`."""
        self.advance(at, every=True)
        lost = np.array(sorted(self._unfinished), np.int64)
        self._unfinished.clear()
        for die in self.dies:
            if die.queue and die.queue[0][0].erasing:
                erased(self.state.control, self.state.blocks, self.state.spare, die.queue[0][0].place)
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


_LIVES = {
    READ_PAGE: SsdSpecification._read,
    FETCH_PAGE: SsdSpecification._read,
    ZERO_PAGE: SsdSpecification._read_nothing,
    PROGRAM_PAGE: SsdSpecification._write,
    STORE_PAGE: SsdSpecification._store,
    MOVE_PAGE: SsdSpecification._move,
    ERASE_BLOCK: SsdSpecification._erase,
}
