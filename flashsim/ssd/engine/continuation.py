"""Short commands that go on where the last one of their operation ended: what a controller with a few KiB of memory makes of them.

It reads ahead: a short read finds its pages in the controller, since they came out of their dies while those before crossed the link.  They
are counted as flash reads, but the time that dies and channels spend on reading ahead is left out.  It writes behind: a short write of
whole flash pages is acknowledged when they have crossed the link, if the controller can hold them beside those that it still holds; a page
leaves it over the channel, to be programmed.  Until it is programmed a power cut loses it, unless a flush was completed; forced unit access
prevents that.  Either command takes `continuation_latency` and its transfer.  Any other takes what it takes on a drive without this.

What a command goes on from is the one admitted last, whether that has ended or not, so this is the same at any queue depth.
"""

from flashsim.core.kernel import inlined_kernel
from flashsim.core.records import RecordArray
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.ssd.engine.flow import Flow, Times
from flashsim.ssd.state.flash_array import PROGRAM_PAGE, READ_PAGE, ZERO_PAGE


@inlined_kernel
def goes_on(engine: RecordArray, control: RecordArray, times: Times, operation: int, offset: int, length: int, forced: bool) -> bool:
    """Whether a command goes on from the last one of its operation; note and count it."""
    if times.timing.continuation == 0 or length == 0 or operation not in (READ, WRITE):
        return False
    last = engine.read_end if operation == READ else engine.write_end
    follows = last == offset and length <= times.timing.continuation_limit
    if operation == READ:
        engine.read_end = offset + length
    else:
        engine.write_end = offset + length
        size = control.page_sectors * SECTOR
        whole = offset % size == 0 and length % size == 0
        follows = follows and whole and not forced and engine.held + length // size <= times.timing.continuation_pages
    if follows:
        times.counters.continued_reads += operation == READ
        times.counters.continued_writes += operation == WRITE
    return follows


@inlined_kernel
def read_ahead(plan: RecordArray, rows: int, counters: RecordArray) -> None:
    """The page that a plan reads has been read: it needs no die."""
    for at in range(rows):
        if plan[at].kind == READ_PAGE:
            plan[at].kind = ZERO_PAGE
            counters.reads[plan[at].cause] += 1


@inlined_kernel
def write_behind(flow: Flow, plan: RecordArray, rows: int) -> None:
    """The page that a plan programs, whose operations have their rows, is acknowledged before that."""
    for at in range(rows):
        if plan[at].kind == PROGRAM_PAGE:
            flow.operations[plan[at].needs].is_behind = 1
            flow.engine.destaging += 1
            flow.engine.held += 1
