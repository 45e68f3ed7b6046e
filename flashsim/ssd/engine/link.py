"""The host link of the engine: what crosses it, and what waits for room in the write buffer before it does."""

from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.ssd.engine.dies import schedule
from flashsim.ssd.engine.flow import Flow
from flashsim.ssd.engine.operations import (
    COMMAND,
    FIRST_READY,
    FIRST_WANTING,
    LAST_WANTING,
    NEEDS_ROOM,
    NEXT_WAITING,
    ON_ITS_WAY,
    ON_LINK,
    ROOM,
    SECTORS,
    acquire,
    give_row,
)
from flashsim.ssd.state.flash_array import BUFFER_PAGE, DROP_PAGE, KIND, PROGRAM_PAGE
from flashsim.ssd.state.geometry import CHANNELS, DIES


@inlined_kernel
def use_link(flow: Flow, links: Integers, row: int, now: int) -> None:
    """The link is the operation's: move its bytes, the first of a command after what that takes itself."""
    direction = 1 if flow.operations[row, KIND] in (PROGRAM_PAGE, BUFFER_PAGE) else 0
    duration, command = links[direction, flow.operations[row, SECTORS]], flow.operations[row, COMMAND]
    if flow.operations[command, ON_ITS_WAY] == 0:
        flow.operations[command, ON_ITS_WAY] = 1
        duration += links[direction, 0]
    schedule(flow, row, ON_LINK, now + duration)


@inlined_kernel
def ask_link(flow: Flow, control: Integers, links: Integers, row: int, now: int) -> None:
    if acquire(flow, control[DIES] + control[CHANNELS], row, now):
        use_link(flow, links, row, now)


@inlined_kernel
def give_room(flow: Flow, control: Integers, links: Integers, now: int) -> None:
    """A page has left the write buffer: the first that waits for room has it."""
    row = flow.engine[FIRST_WANTING]
    if row < 0:
        flow.engine[ROOM] += 1
        return
    flow.engine[FIRST_WANTING] = flow.operations[row, NEXT_WAITING]
    flow.operations[row, NEXT_WAITING] = -1
    ask_link(flow, control, links, row, now)


@inlined_kernel
def want_room(flow: Flow, control: Integers, links: Integers, row: int, now: int) -> None:
    """A page is to come into the write buffer: over the link as soon as there is room."""
    if flow.engine[ROOM] > 0:
        flow.engine[ROOM] -= 1
        ask_link(flow, control, links, row, now)
        return
    if flow.engine[FIRST_WANTING] < 0:
        flow.engine[FIRST_WANTING] = row
    else:
        flow.operations[flow.engine[LAST_WANTING], NEXT_WAITING] = row
    flow.engine[LAST_WANTING] = row


@inlined_kernel
def let_transfers_start(flow: Flow, control: Integers, links: Integers, now: int) -> None:
    """What got ready for the link in this event goes there, in order."""
    while flow.engine[FIRST_READY] >= 0:
        row = flow.engine[FIRST_READY]
        flow.engine[FIRST_READY] = flow.operations[row, NEXT_WAITING]
        flow.operations[row, NEXT_WAITING] = -1
        if flow.operations[row, KIND] == DROP_PAGE:
            give_room(flow, control, links, now)
            give_row(flow, row)
        elif flow.operations[row, KIND] == BUFFER_PAGE and flow.operations[row, NEEDS_ROOM]:
            want_room(flow, control, links, row, now)
        else:
            ask_link(flow, control, links, row, now)
