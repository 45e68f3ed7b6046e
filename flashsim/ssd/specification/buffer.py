"""The write buffer of the drive's event model: pages come in, are read there, leave for flash or are dropped.

Which pages those are is decided when commands are admitted (`flashsim.ssd.state.write_buffer`); here is when it happens.  A page takes room
in the buffer before its bytes cross the link, and gives it back when it is on flash, or dropped.
"""

from collections import deque

from flashsim.core.host_specification import OPERATIONS, delay, follow
from flashsim.core.request import READ, WRITE
from flashsim.ssd.specification.parts import Command, DriveOfParts, Operation
from flashsim.ssd.specification.shared import Steps, acknowledge, find_entry, sector_mask
from flashsim.ssd.state import write_buffer
from flashsim.ssd.state.flash_array import BUFFER_PAGE, DROP_PAGE, ZERO_PAGE


class SpecifiedBuffer:
    """The write buffer of one drive."""

    def __init__(self, drive: DriveOfParts) -> None:
        self.drive, self.state = drive, drive.state
        self.room = drive.parameters.buffer_pages
        self.batch_leaves = False  # whether a page of the command at hand was one too many
        self.wanting: deque[Operation] = deque()  # transfers that wait for room
        self.transfers: dict[int, Operation] = {}  # by number, those that are still to come
        self.stores: list[Operation] = []  # of acknowledged pages on their way to flash
        self.flushes: list[tuple[Command, set[Operation]]] = []
        self.paced: deque[Command] = deque()  # writes that are complete, and wait until the pace lets them be acknowledged

    def admit(self, command: Command, page: int, first: int, sectors: int) -> bool:
        """Plan one page of a command, from sector `first` of it on, as far as the buffer has a part in it; whether that is all."""
        operation = command.request.operation
        entry, mask = int(find_entry(self.state.flash, page)), sector_mask(first, sectors)
        if operation == WRITE and not (self.state.buffer.coalescing and sectors == self.drive.parameters.sectors_per_unit):
            self._write(command, page, entry, mask, sectors)
            return True
        if operation == READ and entry >= 0 and not mask & ~int(self.state.entries[entry].sector_mask):
            self.state.counters.buffer_read_hits += 1
            self._after_transfer(entry, self.drive.transfer_of(command, ZERO_PAGE, page, sectors, True))
            return True
        if operation == READ and entry >= 0:
            self._leave(command, page, 1)
        elif entry >= 0:
            drop = self.drive.transfer_of(command, DROP_PAGE, page, 0, False)
            self._take_away(entry, drop)
            self._after_transfer(entry, drop)
            write_buffer.remove_entry(self.state.flash, entry)
        return False

    def _write(self, command: Command, page: int, entry: int, mask: int, sectors: int) -> None:
        buffer, entries, through = self.state.buffer, self.state.entries, command.through
        self.state.counters.buffer_overwrites += entry >= 0
        transfer = self.drive.transfer_of(command, BUFFER_PAGE, page, sectors, not through)
        transfer.needs_room = entry < 0
        entry = write_buffer.enter_buffer(self.state.flash, entry, page, mask)
        transfer.place, transfer.write_id = entry, int(entries[entry].write_id)
        transfer.before = self._after_transfer(entry, transfer)
        self.transfers[transfer.number] = transfer
        entries[entry].filling = transfer.number
        command.gathered += through
        if command.gathered == self.state.control.group or (through and buffer.waiting > buffer.threshold):
            self.leave_through(command, page)
        elif not through and buffer.coalescing and write_buffer.is_whole(self.state.flash, entry):
            self._leave(command, page, 1)
        elif not through and buffer.waiting > buffer.threshold:
            self._leave(command)
            self.batch_leaves = bool(write_buffer.begin_batch(buffer))

    def leave_through(self, command: Command, page: int) -> None:
        """The last pages of a command, up to `page`, leave for flash, and the command waits for that."""
        own, command.gathered = command.gathered, 0
        command.pages_left += own
        for store in self._leave(command, page, own)[:own]:
            store.part = True

    def leave_as_batch(self, command: Command) -> None:
        """The rest of a batch leaves, if pages of a command let it begin to."""
        buffer = self.state.buffer
        while self.batch_leaves and buffer.waiting > buffer.threshold + 1 - buffer.batch:
            self._leave(command)
        self.batch_leaves = False

    def _after_transfer(self, entry: int, operation: Operation) -> Operation | None:
        """Let an operation wait for the last transfer to an entry, if that is still to come; return it."""
        last = self.transfers.get(int(self.state.entries[entry].filling))
        if last:
            operation.wait_for(last)
        return last

    def _take_away(self, entry: int, taken_by: Operation) -> None:
        transfer = self.transfers.get(int(self.state.entries[entry].filling))
        while transfer and transfer.number in self.transfers:
            transfer.taken_by, transfer = taken_by, transfer.before

    def _leave(self, command: Command, page: int = -1, own: int = 0) -> list[Operation]:
        """The `own` pages up to `page` leave for flash, and with them the oldest, as many as are programmed at once; return the stores."""
        state = self.state
        if state.control.group == 1:
            return [self._destage(command, int(find_entry(state.flash, page)) if own else int(state.buffer.oldest))]
        count = write_buffer.leave_together(state.flash, page, own)
        stream, state.control.stream = int(state.control.stream), state.entries[state.group[0].entry].stream
        planned = state.plan_group(count)
        state.control.stream = stream
        operations = self.drive.add(command, planned, 0)
        for member, store in zip(state.group[:count], operations[-count:], strict=True):
            self._let_go(int(member.entry), store, operations[int(member.fetch)] if member.fetch >= 0 else store)
        return operations[-count:]

    def _destage(self, command: Command, entry: int) -> Operation:
        state = self.state
        write_id, partial = int(state.control.sequence), not write_buffer.is_whole(state.flash, entry)
        stream, state.control.stream = int(state.control.stream), state.entries[entry].stream
        rows = len(state.plan_page(WRITE, int(state.entries[entry].page), partial))
        state.control.stream = stream
        at = write_buffer.leave_buffer(state.flash, entry, write_id)
        first = write_buffer.first_needed(state.plan, at)
        operations = self.drive.add(command, state.planned_operations(rows), 0)
        self._let_go(entry, operations[at], operations[first])
        return operations[at]

    def _let_go(self, entry: int, store: Operation, first: Operation) -> None:
        """An entry's page is stored once it has come: `first` waits for that."""
        store.arrived = int(self.state.entries[entry].arrived)
        self._after_transfer(entry, first)
        self._take_away(entry, store)
        self.stores.append(store)

    def flush(self, command: Command) -> None:
        """Plan to write all that the buffer holds, and let the flush wait for all that is on its way."""
        while self.state.buffer.waiting:
            self._leave(command)
        command.pages_left = 1  # the controller
        self.flushes.append((command, set(self.stores)))

    def flush_goes_on(self, command: Command) -> None:
        command.pages_left = 0
        if command not in [waiting for waiting, _ in self.flushes]:
            self.drive.host.command_done(command.request, command.slots)
        self._finish_flushes()

    def _finish_flushes(self) -> None:
        for waiting in [flush for flush in self.flushes if not flush[1] and flush[0].pages_left == 0]:
            self.flushes.remove(waiting)
            self.drive.host.command_done(waiting[0].request, waiting[0].slots)

    def complete(self, command: Command) -> None:
        """All is done that a command waits for: it completes, a paced write in its turn."""
        if not command.paced_units:
            self.drive.host.command_done(command.request, command.slots)
            return
        self.paced.append(command)
        if len(self.paced) == 1:
            self._acknowledge()

    def _acknowledge(self) -> None:
        """Writes that are complete are acknowledged in their order, at the pace of a drive that collects."""
        env, buffer = self.drive.env, self.state.buffer
        while self.paced and buffer.opens <= env.now:
            command = self.paced.popleft()
            acknowledge(buffer, int(self.state.control.moved_share), command.paced_units, int(env.now))
            self.drive.host.command_done(command.request, command.slots)
        if self.paced:
            event = delay(env, int(buffer.opens - env.now), OPERATIONS + self.paced[0].number)
            follow(event, self._acknowledge)

    def ready(self, operation: Operation) -> None:
        """A transfer goes over the link as soon as there is room, or a page that was dropped gives up its room."""
        if operation.kind == DROP_PAGE:
            self._give_room()
        elif operation.needs_room and not self.room:
            self.wanting.append(operation)
        else:
            self.room -= operation.needs_room
            self.drive.env.process(self._receive(operation))

    def _give_room(self) -> None:
        if self.wanting:
            self.drive.env.process(self._receive(self.wanting.popleft()))
        else:
            self.room += 1

    def _receive(self, operation: Operation) -> Steps:
        """The bytes cross the link; what waited for them goes on."""
        yield from self.drive.bytes_in(operation)
        del self.transfers[operation.number]
        if operation.taken_by:
            operation.taken_by.arrived = operation.write_id
        else:
            self.state.entries[operation.place].arrived = operation.write_id
            if self.state.entries[operation.place].filling == operation.number:
                self.state.entries[operation.place].filling = -1
        operation.finish()
        if operation.part:
            self.drive.page_done(operation.command)

    def on_flash(self, operation: Operation) -> None:
        """A page that was acknowledged before is on flash; one that left the buffer for it gives up its room."""
        if not operation.is_behind:
            self._give_room()
        self.stores.remove(operation)
        for _, awaited in self.flushes:
            awaited.discard(operation)
        self._finish_flushes()
