"""The host link of the engine: what crosses it, and what waits for room in the write buffer before it does."""

from __future__ import annotations

from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.ssd.engine.dies import schedule
from flashsim.ssd.engine.operations import (
    FIRST_READY,
    FIRST_WANTING,
    LAST_WANTING,
    NEEDS_ROOM,
    NEXT_WAITING,
    ON_LINK,
    ROOM,
    SECTORS,
    acquire,
    give_row,
)
from flashsim.ssd.state.flash_array import BUFFER_PAGE, DROP_PAGE, KIND, PROGRAM_PAGE
from flashsim.ssd.state.geometry import CHANNELS, DIES


@inlined_kernel
def use_link(engine: Integers, heap: Integers, operations: Integers, links: Integers, row: int, now: int) -> None:
    """The link is the operation's: move its bytes."""
    direction = 1 if operations[row, KIND] in (PROGRAM_PAGE, BUFFER_PAGE) else 0
    schedule(engine, heap, operations, row, ON_LINK, now + links[direction, operations[row, SECTORS]])


@inlined_kernel
def ask_link(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, control: Integers, links: Integers, row: int, now: int
) -> None:
    """Queue for the host link."""
    if acquire(servers, operations, control[DIES] + control[CHANNELS], row, now):
        use_link(engine, heap, operations, links, row, now)


@inlined_kernel
def give_room(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, control: Integers, links: Integers, now: int
) -> None:
    """A page has left the write buffer: the first that waits for room has it."""
    row = engine[FIRST_WANTING]
    if row < 0:
        engine[ROOM] += 1
        return
    engine[FIRST_WANTING] = operations[row, NEXT_WAITING]
    operations[row, NEXT_WAITING] = -1
    ask_link(engine, heap, operations, servers, control, links, row, now)


@inlined_kernel
def want_room(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, control: Integers, links: Integers, row: int, now: int
) -> None:
    """A page is to come into the write buffer: over the link as soon as there is room."""
    if engine[ROOM] > 0:
        engine[ROOM] -= 1
        ask_link(engine, heap, operations, servers, control, links, row, now)
        return
    if engine[FIRST_WANTING] < 0:
        engine[FIRST_WANTING] = row
    else:
        operations[engine[LAST_WANTING], NEXT_WAITING] = row
    engine[LAST_WANTING] = row


@inlined_kernel
def let_transfers_start(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, control: Integers, links: Integers, now: int
) -> None:
    """What got ready for the link in this event goes there, in order."""
    while engine[FIRST_READY] >= 0:
        row = engine[FIRST_READY]
        engine[FIRST_READY] = operations[row, NEXT_WAITING]
        operations[row, NEXT_WAITING] = -1
        if operations[row, KIND] == DROP_PAGE:
            give_room(engine, heap, operations, servers, control, links, now)
            give_row(engine, operations, row)
        elif operations[row, KIND] == BUFFER_PAGE and operations[row, NEEDS_ROOM]:
            want_room(engine, heap, operations, servers, control, links, row, now)
        else:
            ask_link(engine, heap, operations, servers, control, links, row, now)
