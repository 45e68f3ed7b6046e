"""The drive's event model, to be read: dies, commands and transfers are processes; channels, link and controller are resources.

A command is admitted when its submission queue has a free slot.  At that moment the translation layer plans all its flash operations,
each operation gets the next number and the last place in its die's queue.  Then time passes:

* the *controller* spends its overhead on one command after another; then its operations go on;
* with `bus_rate`, all pages pass the *bus* of the drive's memory: on their way out before the link, on their way in behind it; those of a
  program inside the drive do not pass the link, and its commands have a submission queue of their own, the last;
* a command is on its way to the drive for a while before, and holds the *link* for a while besides its bytes, with the first of them;
* a *write* first crosses the link; anything else is ready for its die, once what it waits for has ended;
* a *die* carries out its operations in order, waiting for one that is not ready; with `read_priority` host reads that are ready go first,
  and with `suspend` they interrupt a program or an erase between its steps, and come before a program that is about to begin;
* a *read* holds the die while the page comes out of the cells and over the channel, then its bytes cross the host link;
* a *program* holds the die while the page goes over the channel and into the cells;
* a *move* holds the die while a page comes out of the cells, over the channel and back (not with copyback), and into the cells;
* an *erase* waits for every program that supersedes a page of its block, as until then a power cut needs that page, and for reads that were
  admitted before it and may be overtaken themselves;
* with `multi_plane`, ready operations that stand one behind the other work together if they are of one kind, on planes of their own and
  at the same page of their blocks: their time in the cells is spent once, and their pages cross the channel one by one.
* where a flash page holds several mapping units, a read or a program of the flash is that of a unit: those of one flash page that stand one
  behind the other are read at once if they are ready, and programmed at once when all of them are ready; a group of moves reads each of
  its flash pages before;
* cells with several bits have times of their own for each page of a word line, unless all its pages are programmed at once; a page may have
  to be read once more, and erases take longer, the more often the block was erased;
* with `slc_cache`, the host's pages go to blocks of one bit a cell while there is room, in times of their own; when there has been no
  command for `slc_idle`, each plane moves what its oldest such block holds to all bits of other cells and erases it, one after the other;
* with `cache_read`, a page leaves through the cache register while the die carries out the next operation, if that is a read;
* with `cache_program`, the next operation's page comes to the cache register while the die programs, if that is a program too;
* with `collection_rate`, writes that are complete are acknowledged one after the other, at a pace while the drive collects
  (`flashsim.ssd.state.pacing`);
* with `continuation_latency`, a short read that goes on where the last one ended finds its pages in the controller, and a short write of
  whole pages leaves them there: it is acknowledged when they have crossed the link, and programmed behind
  (`flashsim.ssd.engine.admission`).

A read returns what its page held when it was admitted: it goes to the flash page that the map named then, waits for the host's program of
that page if it might overtake it, and the block is not erased before.  While that page is being moved there, a read that overtakes goes to
where it was.

Events of one nanosecond: arrivals first, then by number.  What follows without delay happens before the next of these events; last of
all the dies concerned decide what they do next, and then the host dispatches commands.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import zip_longest

import simpy

from flashsim.core.host_specification import ARRIVALS, HostRequest, SpecifiedDevice, SpecifiedHost
from flashsim.core.request import FLUSH, IN_MEMORY, INTERNAL, READ, SECTOR, TRIM, WRITE
from flashsim.core.spans import COMMAND, HOST, TRANSFER
from flashsim.core.units import NEVER
from flashsim.ssd.model import FlashModel
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.buffer import SpecifiedBuffer
from flashsim.ssd.specification.cache import SpecifiedCache
from flashsim.ssd.specification.dies import PROGRAMS, Die
from flashsim.ssd.specification.parts import Command, Operation
from flashsim.ssd.specification.record import SpanRecord
from flashsim.ssd.specification.shared import SharedServer, Steps, block_of, die_of_block, empty_slots, end_program, needs_medium
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash import PlannedOperation
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, IN_SLC, MOVE_PAGE, PROGRAM_PAGE, READ_PAGE, STORE_PAGE, ZERO_PAGE
from flashsim.ssd.state.pools import choose_stream, next_write_id
from flashsim.ssd.timing import slots_of


class SsdSpecification(SpanRecord, FlashModel, SpecifiedDevice):
    """A solid state drive as SimPy processes (`flashsim.core.model.DeviceModel`); takes what `SsdEngine` takes, and a state."""

    def __init__(self, parameters: SsdParameters, state: DriveState | None = None) -> None:
        self.parameters = parameters
        self.state = state or DriveState(parameters)
        self.timing = self.state.timing
        self._next_number = 0
        self._power_up(0)
        submission = (parameters.read_submission, parameters.write_submission)
        queues = parameters.queues + (parameters.bus_rate > 0)  # the last is that of programs inside
        self.host = SpecifiedHost(self.env, parameters.queue_depth, self._admit, queues, submission, slots_of(parameters))

    def _power_up(self, now: int) -> None:
        drive = self.parameters
        self.env = simpy.Environment(initial_time=now)
        self.channels = [SharedServer(self.env, self.timing.boundless_channels) for _ in range(drive.channels)]
        self.dies = [Die(self, number) for number in range(drive.dies)]
        self.link = SharedServer(self.env)
        self.controller = SharedServer(self.env, self.timing.boundless_controller)
        self.bus = SharedServer(self.env)  # of the drive's memory
        self.buffer = SpecifiedBuffer(self)
        self.last_end = {READ: -1, WRITE: -1}  # where the last command of an operation ended
        self.pages_behind = 0  # pages in the controller, of writes that go on where the last one ended
        self.cache = SpecifiedCache(self)  # of one bit a cell
        self.holders: dict[int, list[Operation]] = {}  # by block: what its next erase waits for
        self.programs: dict[int, Operation] = {}  # by flash page: what programs it, of several the last admitted

    # A command enters the drive.

    def _number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def command_of(self, request: HostRequest) -> Command:
        """A command without operations, with the next number."""
        return Command(self, self._number(), request)

    def _admit(self, request: HostRequest, offset: int, length: int) -> None:
        command = self.command_of(request)
        command.slots = self.host.slots.count_for(request.operation, length)
        self.cache.folds_on = False
        command.through = bool(needs_medium(self.state.buffer, request.operation, request.flags))
        choose_stream(self.state.control, self.host.queues.index(request.queue))
        control, size, operation = self.state.control, self.parameters.unit_size, request.operation
        if operation == WRITE and control.read_only:
            control.refused += 1
            length = 0
        elif not request.flags & (INTERNAL | IN_MEMORY):
            self.state.counters.commands[operation] += 1
            self.state.counters.bytes[operation] += length
            command.goes_on = self._goes_on(command, offset, length)
        if request.flags & INTERNAL:
            self.state.counters.internal_commands[operation] += 1
            self.state.counters.internal_bytes[operation] += length
        if request.flags & IN_MEMORY:
            self._to_memory(command, length)
            length = 0
        end = offset + length
        for page in range(offset // size, -(-end // size)) if operation != FLUSH and length else ():
            first = max(offset, page * size)
            sectors = (min(end, (page + 1) * size) - first) // SECTOR
            if operation == WRITE and control.read_only:
                control.refused += 1
                break
            if operation == TRIM and sectors < self.parameters.sectors_per_unit:
                continue  # only whole flash pages can be trimmed
            if not (self.parameters.buffer_pages and self.buffer.admit(command, page, (first - page * size) // SECTOR, sectors)):
                self.plan(command, page, sectors)
            if operation == TRIM:
                self.state.trimmed[page] = next_write_id(control)
        if command.gathered:
            self.buffer.leave_through(command, (end - 1) // size)
        self.buffer.leave_as_batch(command)
        if operation == FLUSH and command.through:
            self.buffer.flush(command)
        if self.parameters.collection_rate and operation == WRITE and length and not command.through:
            command.paced_units = -(-end // size) - offset // size
        self.env.process(self._command(command))

    def _to_memory(self, command: Command, length: int) -> None:
        """Let bytes pass between the host and the drive's memory."""
        operation, size = command.request.operation, self.parameters.unit_size
        self.state.counters.memory_bytes[operation] += length
        for first in range(0, length, size):
            kind = ZERO_PAGE if operation == READ else flash_array.MEMORY_PAGE
            self.transfer_of(command, kind, -1, min(length - first, size) // SECTOR, True)

    def _goes_on(self, command: Command, offset: int, length: int) -> bool:
        """True if a command is short and goes on where the last one of its operation ended; a write, in whole pages that find room."""
        operation, drive, size = command.request.operation, self.parameters, self.parameters.page_size
        if not drive.continuation_latency or operation not in self.last_end:
            return False
        goes_on = self.last_end[operation] == offset and length <= drive.continuation_limit
        self.last_end[operation] = offset + length
        if operation == WRITE:
            partial = (offset % size or length % size) and not self.state.buffer.coalescing
            goes_on &= not command.through and not partial and self.pages_behind + length // size <= drive.continuation_pages
        self.state.counters.continued[operation] += goes_on
        return goes_on

    def plan(self, command: Command, page: int, sectors: int) -> None:
        """Let the translation layer plan one page of a command; one that goes on reads it from the controller, or leaves it there."""
        partial = sectors < self.parameters.sectors_per_unit
        plan = self.state.plan_page(command.request.operation, page, partial)
        if command.goes_on:
            self.state.counters.reads[HOST] += sum(row.kind == READ_PAGE for row in plan)
            plan = [row._replace(kind=ZERO_PAGE) if row.kind == READ_PAGE else row for row in plan]
        for operation in self.add(command, plan, sectors):
            if command.goes_on and operation.kind == PROGRAM_PAGE:
                operation.is_behind = True
                self.buffer.stores.append(operation)
                self.pages_behind += 1

    def add(self, command: Command, plan: list[PlannedOperation], sectors: int) -> list[Operation]:
        """Give planned operations their numbers and their places in the queues of dies."""
        operations: list[Operation] = []
        for kind, place, source, logical, write_id, superseded, cause, needs in plan:
            operation = Operation(self._number(), command, kind, place, source, logical, write_id, superseded, cause, sectors)
            operation.part = kind in (READ_PAGE, ZERO_PAGE, PROGRAM_PAGE)
            if kind != ZERO_PAGE:
                self._enter_die(operation)
            if superseded >= 0:
                self.holders.setdefault(superseded, []).append(operation)
            if needs >= 0:
                operation.wait_for(operations[needs])
            operations.append(operation)
        command.operations += operations
        command.pages_left += sum(operation.part for operation in operations)
        return operations

    def transfer_of(self, command: Command, kind: int, page: int, sectors: int, part: bool) -> Operation:
        """An operation of a command that needs no die; whether the command waits for it."""
        operation = Operation(self._number(), command, kind, -1, -1, page, 0, -1, HOST, sectors, part=part)
        command.operations.append(operation)
        command.pages_left += part
        return operation

    def _enter_die(self, operation: Operation) -> None:
        """Take a place in the queue of the die, and wait for what must come before; a read that may overtake is queued when ready."""
        control, kind = self.state.control, operation.kind
        operation.block = operation.place if kind == ERASE_BLOCK else int(block_of(control, operation.place))
        die = operation.die = self.dies[die_of_block(control, operation.block)]
        self.state.pools.queued[die.number] += 1
        if self.parameters.read_priority:
            operation.origin = self.programs.get(operation.place if kind == READ_PAGE else operation.source)
        if kind == READ_PAGE and self.parameters.read_priority:
            self.holders.setdefault(operation.block, []).append(operation)
            operation.superseded = operation.block
            _, program = operation.readable()
            if program:
                operation.wait_for(program)
            return
        if not die.queues_late(operation):
            die.queue.append(operation)
        if kind in PROGRAMS:
            self.programs[operation.place] = operation
        if kind == ERASE_BLOCK:
            for holder in self.holders.pop(operation.block, []):
                operation.waits += 1
                holder.erases.append(operation)

    # What happens outside the dies.

    def _command(self, command: Command) -> Steps:
        overhead = self.timing.read_overhead if command.request.operation == READ else self.timing.write_overhead
        if command.goes_on:
            overhead = self.parameters.continuation_latency
        yield from self.controller.use(overhead, command.number, partial(self.note, self.server_number(self.controller), COMMAND, command))
        for operation in command.operations:
            if operation.kind == PROGRAM_PAGE:
                self.env.process(self._program_bytes(operation))
            else:
                operation.end_wait()
        if command.request.operation == FLUSH:
            self.buffer.flush_goes_on(command)
        elif command.pages_left == 0:
            self.buffer.complete(command)

    def transfer(self, operation: Operation) -> None:
        if operation.kind == ZERO_PAGE:
            self.env.process(self._bytes_out(operation))
        elif operation.kind == flash_array.MEMORY_PAGE:
            self.env.process(self._bytes_to_memory(operation))
        else:
            self.buffer.ready(operation)

    def _program_bytes(self, operation: Operation) -> Steps:
        yield from self.bytes_in(operation)
        operation.end_wait()
        if operation.is_behind:
            operation.part = False
            self.page_done(operation.command)

    def _bytes_to_memory(self, operation: Operation) -> Steps:
        yield from self.bytes_in(operation)
        self.page_done(operation.command)

    def _bytes_out(self, operation: Operation) -> Steps:
        yield from self._over_bus(operation)
        if not operation.command.internal:
            yield from self._over_link(operation, self.timing.link_read)
        self.page_done(operation.command)

    def bytes_in(self, operation: Operation) -> Steps:
        """Move an operation's bytes from the host, or from a program inside, into the drive's memory."""
        if not operation.command.internal:
            yield from self._over_link(operation, self.timing.link_write)
        yield from self._over_bus(operation)

    def _over_bus(self, operation: Operation) -> Steps:
        if self.parameters.bus_rate:
            yield from self._cross(self.bus, operation, self.timing.bus[operation.sectors])

    def _over_link(self, operation: Operation, times: tuple[int, ...]) -> Steps:
        """Move an operation's bytes, the first of its command after what the command itself holds the link for."""
        yield from self._cross(self.link, operation, lambda: times[operation.sectors] + times[0] * operation.command.first_on_link())

    def _cross(self, way: SharedServer, operation: Operation, duration: int | Callable[[], int]) -> Steps:
        yield from way.use(duration, operation.number, partial(self.note, self.server_number(way), TRANSFER, operation))

    def page_done(self, command: Command) -> None:
        """A page of a command is done; the command completes with its last."""
        command.pages_left -= 1
        if command.pages_left == 0 and command is self.cache.folding:
            self.cache.folding = None
        elif command.pages_left == 0:
            self.buffer.complete(command)

    def _release_block(self, operation: Operation) -> None:
        for erase in operation.erases:
            erase.end_wait()
        for block in (operation.superseded, operation.block):
            if operation in self.holders.get(block, ()):
                self.holders[block].remove(operation)

    def read_out(self, operation: Operation) -> None:
        counters = self.state.counters
        counters.reads[operation.cause] += 1
        if operation.kind == FETCH_PAGE:
            counters.read_modify_write_reads += operation.cause == HOST
            operation.finish()
            return
        self._release_block(operation)
        self.env.process(self._bytes_out(operation))

    def finish_changes(self, group: list[Operation], leave: Callable[[list[Operation]], None]) -> None:
        """Pages are programmed, or blocks erased: the die is free, and so may be what waited for them."""
        state, counters = self.state, self.state.counters
        for operation, following in zip_longest(group, group[1:]):
            if operation.kind == ERASE_BLOCK:
                flash_array.end_erase(state.flash, operation.block)
                counters.erases[operation.cause] += 1
            else:
                end_program(state.flash, operation.place, operation.source, operation.logical, operation.write_id)
                operation.ended = True
                if operation.place in self.programs and self.programs[operation.place] is operation:
                    del self.programs[operation.place]
                empty = empty_slots(state.control, operation.place, operation.source, following.place if following else -1)
                counters.programs[operation.cause] += 1 + empty
                counters.padded_programs += empty
                counters.reads[operation.cause] += operation.kind == MOVE_PAGE
                counters.slc_programs += (1 + empty) * (operation.source <= IN_SLC)
        leave(group)
        for operation in group:
            operation.finish()
            self._release_block(operation)
        for operation in group:
            if operation.is_behind or (operation.kind == STORE_PAGE and operation.cause == HOST):
                self.buffer.on_flash(operation)
            if operation.part:
                self.page_done(operation.command)

    # The drive as a device (`flashsim.ssd.model`).

    def _run(self, until: int, wait: int) -> None:
        queue = self.env._queue
        while queue or until != NEVER:  # nobody waits for what is folded
            event, folds = queue[0][0] if queue else NEVER, self.cache.folds_at()
            if min(event, folds) > until:
                break
            follows = event == self.env.now and queue[0][1] < ARRIVALS
            if len(self.host.completed) >= wait and not follows:
                return
            if event <= folds:
                self.env.step()
            else:
                self.env._now = folds
                self.cache.fold()
        if until != NEVER and len(self.host.completed) < wait:
            self.env._now = max(self.env._now, until)

    @property
    def next_event(self) -> int:
        return min(super().next_event, self.cache.folds_at())

    def _make_ids(self, needed: int) -> None:
        operations = [*self.buffer.transfers.values()]
        for die in self.dies:
            operations += [*die.suspended, *die.at_work, *die.cached, *die.queue]
        in_flight = [write_id for operation in operations for write_id in (operation.write_id, operation.arrived)]
        shift = self.state.make_ids(needed, in_flight)
        for operation in operations:
            operation.write_id -= shift * (operation.write_id > 0)
            operation.arrived -= shift * (operation.arrived > 0)

    def _set_room(self, pages: int) -> None:
        self.buffer.room = pages

    def _stores(self) -> Iterable[tuple[int, int]]:
        return ((store.logical, store.arrived) for store in self.buffer.stores)

    def _erasing(self) -> Iterable[int]:
        at_work = (operation for die in self.dies for operation in (*die.suspended, *die.at_work))
        return (operation.block for operation in at_work if operation.kind == ERASE_BLOCK)

    def _restart(self) -> None:
        busy = self._busy_times()
        self._power_up(self.now)
        self._next_number = 0
        self.host.clear(self.env)
        for server, nanoseconds in zip(self._servers(), busy, strict=True):
            server.busy_ns = nanoseconds

    def _servers(self) -> list[Die | SharedServer]:
        return [*self.dies, *self.channels, self.link, self.controller, *[self.bus][: self.parameters.bus_rate]]

    def _busy_times(self) -> list[int]:
        return [server.busy_until(self.now) if isinstance(server, SharedServer) else server.busy_ns for server in self._servers()]
