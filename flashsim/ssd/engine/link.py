"""The host link of the engine: what crosses it, and what waits for room in the write buffer before it does."""

from flashsim.core.kernel import inlined_kernel
from flashsim.core.records import RecordArray
from flashsim.core.request import Integers
from flashsim.ssd.engine.dies import schedule
from flashsim.ssd.engine.flow import Flow
from flashsim.ssd.engine.operations import ON_LINK, acquire, give_row
from flashsim.ssd.state.flash_array import BUFFER_PAGE, DROP_PAGE, PROGRAM_PAGE


@inlined_kernel
def use_link(flow: Flow, links: Integers, row: int, now: int) -> None:
    """The link is the operation's: move its bytes, the first of a command after what that takes itself."""
    direction = 1 if flow.operations[row].kind in (PROGRAM_PAGE, BUFFER_PAGE) else 0
    duration, command = links[direction, flow.operations[row].sectors], flow.operations[row].command
    if flow.operations[command].on_its_way == 0:
        flow.operations[command].on_its_way = 1
        duration += links[direction, 0]
    schedule(flow, row, ON_LINK, now + duration)


@inlined_kernel
def ask_link(flow: Flow, control: RecordArray, links: Integers, row: int, now: int) -> None:
    if acquire(flow, control.dies + control.channels, row, now):
        use_link(flow, links, row, now)


@inlined_kernel
def give_room(flow: Flow, control: RecordArray, links: Integers, now: int) -> None:
    """A page has left the write buffer: the first that waits for room has it."""
    row = flow.engine.first_wanting
    if row < 0:
        flow.engine.room += 1
        return
    flow.engine.first_wanting = flow.operations[row].next_waiting
    flow.operations[row].next_waiting = -1
    ask_link(flow, control, links, row, now)


@inlined_kernel
def want_room(flow: Flow, control: RecordArray, links: Integers, row: int, now: int) -> None:
    """A page is to come into the write buffer: over the link as soon as there is room."""
    if flow.engine.room > 0:
        flow.engine.room -= 1
        ask_link(flow, control, links, row, now)
        return
    if flow.engine.first_wanting < 0:
        flow.engine.first_wanting = row
    else:
        flow.operations[flow.engine.last_wanting].next_waiting = row
    flow.engine.last_wanting = row


@inlined_kernel
def let_transfers_start(flow: Flow, control: RecordArray, links: Integers, now: int) -> None:
    """What got ready for the link in this event goes there, in order."""
    while flow.engine.first_ready >= 0:
        row = flow.engine.first_ready
        flow.engine.first_ready = flow.operations[row].next_waiting
        flow.operations[row].next_waiting = -1
        if flow.operations[row].kind == DROP_PAGE:
            give_room(flow, control, links, now)
            give_row(flow, row)
        elif flow.operations[row].kind == BUFFER_PAGE and flow.operations[row].needs_room:
            want_room(flow, control, links, row, now)
        else:
            ask_link(flow, control, links, row, now)
