"""The engine's tables: flash operations in progress, what they queue and wait for, and how long things take."""

from typing import NamedTuple

from numba import types

from flashsim.core.records import MATRIX, RecordArray, record_dtype, record_of_type, table_type
from flashsim.core.request import Integers
from flashsim.core.spans import SPAN
from flashsim.ssd.state.flash import COUNTERS, PLAN
from flashsim.ssd.state.timing import TIMING

# A row of the operation table begins with the fields of a plan's row.  `waits` counts what must happen before the operation is ready for
# its die: the controller, or for a write its link transfer; what it needs; for an erase the programs that supersede a page of the block and
# the reads that may overtake it.  `due` is the time of its pending event (-1: none), `left_over` what is left of an interrupted step,
# `interrupted` how often it was.  `is_behind` says of a host's program that it is acknowledged when its bytes have come
# (`continuation`).  Those that wait for it are chained from `first_follower` by `next_follower`, reads that may overtake and wait for its
# program from `first_reader`.  A command's operations are chained by `next_part`, those that queue for a die or work there together by
# `next_in_die`, those that wait for a channel, the link or the controller by `next_waiting`; unused rows by that too.
_OPERATION = (
    "id due left_over request phase waits die command sectors interrupted is_behind first_follower next_follower first_reader next_reader "
    "next_part next_in_die next_waiting "
)
# Of a command alone.  `left` counts the pages that it waits for, `first_part` and `last_part` are its operations.  `flush_mark` is, of a
# flush, the first id after those that it waits for; `next_flush` chains flushes that wait.  `on_its_way` says that one of its pages had the
# host link.
_COMMAND = "overhead host_command flush_mark left first_part last_part next_flush on_its_way "
# Of a BUFFER_PAGE alone, by which a page comes into the write buffer: its `entry` there, the transfer `before` it of the same page (-1:
# none), whether it takes room and is a part that its command waits for, and the store that took the page away before it came (-1: none).
_BUFFER_PAGE = "entry before needs_room is_part destaged_by "
# Of a store of a page from the buffer, which is one for the host: the newest write id that came as a whole.
_STORE = "arrived_id"
OPERATION = record_dtype(PLAN, int64=_OPERATION + _COMMAND + _BUFFER_PAGE + _STORE)
#: A row of the server table: one a die, then a channel, then the link, then the controller.  `busy` is whether the part is at work; of a
#: die it is the operation at work, or the first of those that work together, plus 1 (0: none).  `suspended` is the one that a read
#: interrupted, and `cached` the one in the cache register, in the same way.  `woken` says that the die is to look for work, and
#: `next_woken` chains such dies.
SERVER = record_dtype(int64="busy since busy_ns suspended woken next_woken cached")
#: The queue of each server; then those of reads that overtake, die by die (`reads_of`).
QUEUE = record_dtype(int64="head tail")
#: What the next erase of a block must wait for and came after the last erase of it that was admitted; that erase's id; programs of the
#: block's pages that have not ended.  A block may be reclaimed again while its earlier erase still waits in the queue.
GATE = record_dtype(int64="holders last_erase pending")
#: The engine's scalars.  `spans` are recorded in the log if `recording` is set.  The dies that were woken stand between `first_woken` and
#: `last_woken`, operations that are ready for the link in this event between `first_ready` and `last_ready`, those that wait for room in
#: the write buffer between `first_wanting` and `last_wanting`.  `room` is the pages that it can still take, `destaging` counts acknowledged
#: pages that are on their way to flash, `first_flush` starts the chain (by `next_flush`) of flush commands that wait for such, and
#: `flushing` is one that is still being admitted.  `happened` counts the events since power came.  `read_end` and `write_end` are where the
#: last read and write ended, and `held` counts the pages of writes that go on there which the controller holds.
ENGINE = record_dtype(
    int64="events next_id unused watermark live first_woken last_woken first_ready last_ready first_wanting last_wanting room "
    "destaging first_flush flushing happened read_end write_end held spans recording"
)


class Flow(NamedTuple):
    """Operations in progress, and what they queue and wait for."""

    #: ENGINE.
    engine: RecordArray
    #: Pending events in a heap, a row with time and key for each.
    heap: Integers
    #: What the parts did, SPAN (`flashsim.ssd.engine.span_log`).
    log: RecordArray
    #: OPERATION.
    operations: RecordArray
    #: SERVER: dies, channels, the link and the controller.
    servers: RecordArray
    #: QUEUE.
    queues: RecordArray
    #: GATE, of each block.
    gates: RecordArray


class Times(NamedTuple):
    """How long things take, and how often they happened."""

    #: TIMING.
    timing: RecordArray
    #: How long so many sectors take on the host link, out of the drive and into it, shape (2, sectors of a page + 1).
    links: Integers
    #: COUNTERS.
    counters: RecordArray


FLOW = types.NamedTuple(
    (record_of_type(ENGINE), MATRIX, *map(table_type, (SPAN, OPERATION, SERVER, QUEUE, GATE))),
    Flow,
)
TIMES = types.NamedTuple((record_of_type(TIMING), MATRIX, record_of_type(COUNTERS)), Times)
