"""Operations that a die of the engine carries out together: those of one flash page, of one program, and of its planes."""

from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel
from flashsim.core.records import RecordArray
from flashsim.ssd.engine import tables
from flashsim.ssd.engine.tables import IN_DIE, Flow, Timings
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, IN_SLC, PROGRAM_PAGE, READ_PAGE, STORE_PAGE

#: In the place of the last read that passes what waits for a die: they have.
ALL_PASSED = -1


@inlined_kernel
def goes_to_die(kind: int) -> bool:
    """True if operations of a kind take a page over the channel into a die, to program it there."""
    return kind in (PROGRAM_PAGE, STORE_PAGE)


@inlined_kernel
def is_one_program(operations: RecordArray, control: RecordArray, row: int, other: int) -> bool:
    """True if two operations, of which one stands behind the other, fill slots that are programmed at once."""
    if not (flash_array.is_program(operations[row].kind) and flash_array.is_program(operations[other].kind)):
        return False
    return flash_array.is_one_program(control, operations[row].place, operations[row].source, operations[other].place)


@inlined_kernel
def is_ready(operations: RecordArray, control: RecordArray, first: int) -> bool:
    """True if the first operation of a queue may start, and all that are programmed at once with it."""
    ready, row = operations[first].waits == 0, first
    while ready and control.group > 1:
        row = operations[row].next[IN_DIE]
        if row < 0 or not is_one_program(operations, control, first, row):
            break
        ready = operations[row].waits == 0
    return ready


@inlined_kernel
def is_one_read(operations: RecordArray, control: RecordArray, first: int, row: int) -> bool:
    """True if a ready operation reads a unit of a flash page that comes out of the cells anyway, for one of those chained from `first`."""
    kind, member = operations[first].kind, first
    if control.units == 1 or operations[row].waits > 0 or kind != operations[row].kind or kind not in (READ_PAGE, FETCH_PAGE):
        return False
    while member >= 0:
        if operations[member].place // control.units == operations[row].place // control.units:
            return True
        member = operations[member].next[IN_DIE]
    return False


@inlined_kernel
def works_with(operations: RecordArray, control: RecordArray, first: int, row: int) -> bool:
    """True if a ready operation joins those from `first`: of one kind, on another plane, at the same page, of as many bits a cell."""
    kind, other, place = operations[first].kind, operations[row].kind, operations[row].place
    one_kind = goes_to_die(other) if goes_to_die(kind) else kind == other and kind in (READ_PAGE, FETCH_PAGE, ERASE_BLOCK)
    same_cells = (operations[first].source <= IN_SLC) == (operations[row].source <= IN_SLC)
    if not one_kind or not same_cells or not is_ready(operations, control, row):
        return False
    apart = operations[first].place - place
    if control.units > 1 and not goes_to_die(kind):  # programs begin a flash page, reads need not
        apart = operations[first].place // control.units * control.units - place // control.units * control.units
    if kind != ERASE_BLOCK and apart % control.pages_per_block != 0:
        return False
    size = control.blocks_per_pool if kind == ERASE_BLOCK else control.blocks_per_pool * control.pages_per_block
    member = first
    while member >= 0:
        if operations[member].place // size == place // size:
            return False
        member = operations[member].next[IN_DIE]
    return True


@inlined_kernel
def take_work(flow: Flow, control: RecordArray, times: Timings, queue: int) -> int:
    """Take the first operation off a die's queue, with those behind it that work together with it, chained by IN_DIE."""
    first = last = tables.dequeue(flow, queue, IN_DIE)
    together, last_read = 1, flow.servers[flow.operations[first].die].last_read - 1
    passed = first == last_read
    while (times.timing.multi_plane or control.group > 1) and flow.queues[queue].head >= 0:
        row = flow.queues[queue].head
        shared = is_one_read(flow.operations, control, first, row)
        joins = shared or (control.group > 1 and is_one_program(flow.operations, control, last, row))
        if not joins and not (times.timing.multi_plane and works_with(flow.operations, control, first, row)):
            break
        times.counters.shared_reads += shared
        tables.dequeue(flow, queue, IN_DIE)
        flow.operations[last].next[IN_DIE] = row
        last = row
        together += 1
        passed |= row == last_read
    if passed:
        flow.servers[flow.operations[first].die].last_read = ALL_PASSED
    flow.operations[first].together = flow.operations[last].together = together
    prefetch(flow.operations, flow.queues[queue].head)
    return first
