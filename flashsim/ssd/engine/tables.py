"""The engine's tables: flash operations in progress, the dies, channels, link and controller that they queue for, and what these did."""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from flashsim.core import records, spans
from flashsim.core.groups import group_type
from flashsim.core.hints import prefetch
from flashsim.core.host import HOST_TABLES
from flashsim.core.kernel import in_python, inlined_kernel
from flashsim.core.policies import function_in
from flashsim.core.records import MATRIX, VECTOR, RecordArray
from flashsim.core.request import Integers
from flashsim.ssd.engine.agenda import AGENDA, Agenda, empty_agenda, with_more_places
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import COUNTERS, FLASH, TIMING, Flash, PlannedOperation
from flashsim.ssd.state.flash_array import ERASE_BLOCK, MOVE_PAGE, PROGRAM_PAGE, STORE_PAGE, is_program
from flashsim.ssd.state.geometry import block_of
from flashsim.ssd.timing import timing_of

# A row of the operation table has the fields of a plan's row but the last.  `waits` counts what must happen before the operation is ready
# for its die: the controller, or for a write its link transfer; what it needs; for an erase the programs that supersede a page of the block
# and the reads that may overtake it.  `gate` is, of these, the last erase of the block that was admitted before, and of an erase the next
# one of its block (-1: none); `next_pending` chains programs of one bucket.  `origin` is, of a read that may overtake or a copy, what
# programs the page that it reads, if that had not ended at its admission (-1: it had).  `due` is the time of its pending event (-1: none),
# `left_over` what is left of what was interrupted, or may be left at most when it is; `together` how many work together (of the first and
# the last of them).  `is_part` says that its command waits for it, `is_behind` of a host's program that it is acknowledged when its bytes
# have come.  A command's operations are chained by `next_part`.
_ADMITTED = "waits die command gate next_pending origin " + " ".join(PlannedOperation._fields[:-1])
_FIRST_FIELDS = records.record_dtype(int64="id due", int32=_ADMITTED)
_TIMES, _PLACES = "request left_over", "next_part sectors together"
_MARKS = "phase is_part is_behind needs_room"
# Of a command alone.  `pending` counts the pages that it waits for, `first_part` and `last_part` are its operations.  `flush_mark` is, of a
# flush, the first id after those that it waits for.  `on_its_way` says that one of its pages had the host link, `continues` that it goes on
# where the last one ended, `through` that what it writes is acknowledged when it is programmed, `internal` that it comes from inside.
# `sectors` of a command are the mapping units of a write whose acknowledgement is paced, or 0.
_COMMAND = "overhead host_command flush_mark "
_PARTS = "pending first_part last_part "
_COMMAND_MARKS = "on_its_way continues through internal"
# Of a BUFFER_PAGE alone, by which a page comes into the write buffer: its `entry` there, the transfer `before` it of the same page (-1:
# none), whether it takes room, and the store that took the page away before it came (-1: none).
_BUFFER_PAGE = "entry before destaged_by "
# Of a store of a page from the buffer, which is one for the host: the newest write id that came as a whole.
_STORE = "arrived_id "
# Of what reads may interrupt, the time at which its end stands in the agenda (-1: it does not).
_INTERRUPTED = "entered "
# The next in each chain that an operation stands in (-1: none): FOLLOWER, those that wait for an operation; READER, reads that may overtake
# and wait for its program; IN_DIE, those that queue for a die or work there together, and flushes that wait (FLUSHES, no die's queue);
# QUEUED, those in another queue, and unused rows.  The first two chains of an operation are rings, of which `last` is the end.
FOLLOWER, READER, IN_DIE, QUEUED = range(4)
_CHAINS = np.dtype([("last", np.int32, 2), ("next", np.int32, 4)])
# What every operation needs stands in the first two lines of the caches, and what is looked at long after it was written in the first.
_HOT = records.record_dtype(_FIRST_FIELDS, _CHAINS, int64=_TIMES, int32=_PLACES, int8=_MARKS)
_COLD = records.record_dtype(int64=_COMMAND + _INTERRUPTED, int32=_PARTS + _STORE + _BUFFER_PAGE, int8=_COMMAND_MARKS)
OPERATION = records.whole_lines(records.record_dtype(_HOT, _COLD))
#: A row of the server table: one a die, then a channel, then the link, the controller, and the memory's bus.  `busy` is whether the part is
#: at work; of a die it is the operation at work, or the first of those that work together, plus 1 (0: none).  `suspended` is the one that a
#: read interrupted, and `cached` the one in the cache register, in the same way.  `last_read` is the last read that comes before the work
#: that waits for the die, plus 1 (0: not decided; `dies.ALL_PASSED`).  `woken` says that the die is to look for work, and
#: `next_woken` chains such dies.  `until` is, of a channel that moves a page for which there is no event, the end of that (0: none); its
#: `busy` is then that operation's, plus 1.  A `boundless` one serves any number of operations at once, and is never busy.
SERVER = records.record_dtype(int64="busy since busy_ns until suspended woken next_woken cached last_read boundless")
#: The queue of each server; then those of reads that overtake, die by die (`reads_of`); then PACED, READY, WANTING and FLUSHES.
QUEUE = records.record_dtype(int64="head tail")
# The last queues: writes whose acknowledgement waits for the pace, operations that are ready for the link in this event, those that wait
# for room in the write buffer, and flush commands: by IN_DIE, though in no die, as a flush may stand in the controller's queue by QUEUED.
PACED, READY, WANTING, FLUSHES = -4, -3, -2, -1
#: Of a block, the id of the last erase that was admitted; operations since then, for which the next must wait; programs of its pages that
#: have not ended, where reads overtake; its erases that have not ended, from the oldest (-1: none) to the newest, chained by `gate`.  A
#: block may be reclaimed again while its earlier erase still waits in the queue.
GATE = records.record_dtype(int64="last_erase", int32="holders pending oldest_erase newest_erase")
#: The engine's scalars.  `spans` are recorded in the log if `recording` is set.  The dies that were woken stand between `first_woken` and
#: `last_woken`.  `room` is the pages that the write buffer can still take, `destaging` counts acknowledged pages that are on their way to
#: flash, and `flushing` is a flush that is still being admitted, or a write with which a batch leaves
#: the buffer (`batch_leaves`).  `happened` counts the events since power came.  `read_end` and
#: `write_end` are where the last read and write ended, and `pages_behind` the controller's pages of writes that go on there.
#: `idle_since` is when the drive became idle with an SLC cache to fold (-1: it is not), `folds_on` whether it has folded since a command.
ENGINE = records.record_dtype(
    int64="next_id unused watermark live first_woken last_woken room destaging flushing batch_leaves happened read_end write_end "
    "pages_behind idle_since folds_on spans recording"
)

#: The KIND of a row of the operation table that stands for a whole command.
COMMAND_KIND = 10
# What an operation's pending event ends; STOPPING and PAUSING let reads in, between steps or between flash pages to move.
WAITING, ON_LINK, IN_CELLS, ON_CHANNEL, IN_PROGRAM, ON_BUS, STOPPING, PAUSING, COMPLETE = range(9)
PROGRAMS = (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE)
#: An event's key is the operation's id and, below it, its row.
ROW_BITS = 24
ROW_MASK = (1 << ROW_BITS) - 1
_FIRST_ROWS = 1024
_HASH = 2654435761  # 2^32 over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4)
#: The kind of span of each kind of flash operation on a die.
_ON_DIE = (spans.READ, spans.READ, spans.FETCH, spans.PROGRAM, spans.PROGRAM, spans.MOVE, spans.ERASE)


class Flow(NamedTuple):
    """Operations in progress, and what they queue and wait for."""

    #: ENGINE.
    engine: RecordArray
    #: Pending events.
    agenda: Agenda
    #: Work of the parts, `flashsim.core.spans.SPAN`.
    log: RecordArray
    #: OPERATION.
    operations: RecordArray
    #: SERVER: dies, channels, the link, the controller and the bus.
    servers: RecordArray
    #: QUEUE.
    queues: RecordArray
    #: GATE, of each block.
    gates: RecordArray
    #: By a hash of a flash page, the program admitted last (-1: none) of those that have not ended, where reads overtake.
    buckets: Integers


class Timings(NamedTuple):
    """Durations of a drive's parts, and its counters."""

    #: TIMING.
    timing: RecordArray
    #: Times of so many sectors on the host link, out of the drive and into it, on the bus, and on the channel when they are read, shape
    #: (4, sectors of a page + 1).
    links: Integers
    #: Times to read and to program each page of a word line, shape (2, pages of a word line).
    cells: Integers
    #: COUNTERS.
    counters: RecordArray


_TABLES = tuple(map(records.table_type, (spans.SPAN, OPERATION, SERVER, QUEUE, GATE)))
FLOW = group_type((records.record_of_type(ENGINE), AGENDA, *_TABLES, VECTOR), Flow)
TIMES = group_type((records.record_of_type(TIMING), MATRIX, MATRIX, records.record_of_type(COUNTERS)), Timings)

#: What the loop calls by its place in a vector, and another process compiles meanwhile: it admits commands, or folds an SLC cache.
STEP = types.int64(HOST_TABLES, FLOW, FLASH, TIMES, VECTOR)
dispatch_of, fold_of = (function_in(place, types.FunctionType(STEP)) for place in range(2))


def idle_flow(parameters: SsdParameters, log: RecordArray) -> Flow:
    """The tables of a drive before its first operation."""
    servers = parameters.dies + parameters.channels + 2 + (parameters.bus_rate > 0)
    engine, queues = records.empty_record(ENGINE), records.empty_table(servers + parameters.dies + 4, QUEUE)
    gates = records.empty_table(parameters.pools * parameters.blocks_per_plane, GATE)
    for name in ("unused", "first_woken", "flushing", "read_end", "write_end", "idle_since"):
        engine[name] = -1
    engine.room, queues.head = parameters.buffer_pages, -1
    gates.last_erase = gates.oldest_erase = -1
    # An operation with a pending event holds a die or its cache register, the link, the controller or the bus, or is a command to be
    # acknowledged next; one that is to stop has an event for that and one for its end, and so may have two that it is too late for.
    agenda = empty_agenda(4 * parameters.dies + 4)
    operations, buckets = records.empty_table(_FIRST_ROWS, OPERATION), np.full(_FIRST_ROWS, -1)
    timing, bounds = timing_of(parameters), records.empty_table(servers, SERVER)
    bounds.boundless[: parameters.dies] = timing.boundless_dies
    bounds.boundless[parameters.dies : parameters.dies + parameters.channels] = timing.boundless_channels
    bounds.boundless[parameters.dies + parameters.channels + 1] = timing.boundless_controller
    if bounds.boundless.any():
        agenda = empty_agenda(2 * _FIRST_ROWS)
    return Flow(engine, agenda, log, operations, bounds, queues, gates, buckets)


def with_more_rows(flow: Flow) -> Flow:
    """The tables with twice as many rows for operations; rows that no operation had take no memory."""
    used, count = int(flow.engine.watermark), 2 * len(flow.operations)
    operations, buckets = records.empty_table(count, OPERATION), np.full(count, -1)
    operations[:used] = flow.operations[:used]
    programs = np.flatnonzero((operations.id[:used] >= 0) & np.isin(operations.kind[:used], PROGRAMS))
    bucket = in_python(bucket_of)(count, operations.place[programs].astype(np.int64))
    order = np.lexsort((operations.id[programs], bucket))
    programs, bucket = programs[order], bucket[order]
    operations.next_pending[programs] = np.where(np.append(-1, bucket)[:-1] == bucket, np.append(-1, programs)[:-1], -1)
    buckets[bucket] = programs  # of one bucket the last stays
    agenda = with_more_places(flow.agenda, 2 * count) if flow.servers.boundless.any() else flow.agenda
    return flow._replace(agenda=agenda, operations=operations, buckets=buckets)


@inlined_kernel
def bucket_of(buckets: int, flash_page: Any) -> Any:
    """The bucket, of so many, of the programs of a flash page."""
    return ((flash_page * _HASH) >> 12) & (buckets - 1)


@inlined_kernel
def note_program(flow: Flow, row: int) -> None:
    """A program was admitted: it is the newest of its flash page."""
    bucket = bucket_of(flow.buckets.size, int(flow.operations[row].place))
    flow.operations[row].next_pending = flow.buckets[bucket]
    flow.buckets[bucket] = row


@inlined_kernel
def forget_program(flow: Flow, row: int) -> None:
    """A program has ended."""
    bucket, operations = bucket_of(flow.buckets.size, int(flow.operations[row].place)), flow.operations
    other = flow.buckets[bucket]
    if other == row:
        flow.buckets[bucket] = operations[row].next_pending
        return
    while operations[other].next_pending != row:
        other = operations[other].next_pending
    operations[other].next_pending = operations[row].next_pending


@inlined_kernel
def pending_program(flow: Flow, flash_page: int) -> int:
    """The operation, not yet ended, that programs a flash page; of several the last admitted; -1 if there is none."""
    row = flow.buckets[bucket_of(flow.buckets.size, int(flash_page))]
    while row >= 0 and flow.operations[row].place != flash_page:
        row = flow.operations[row].next_pending
    return row


@inlined_kernel
def take_row(flow: Flow, kind: int) -> int:
    """An unused row of the operation table, numbered and cleared (there must be one)."""
    row = flow.engine.unused
    if row >= 0:
        flow.engine.unused = flow.operations[row].next[QUEUED]
        prefetch(flow.operations, flow.engine.unused)
    else:
        row = flow.engine.watermark
        flow.engine.watermark += 1
    flow.engine.live += 1
    operation = flow.operations[row]
    operation.kind = kind
    operation.id = flow.engine.next_id
    flow.engine.next_id += 1
    operation.phase = WAITING
    operation.waits = 1
    operation.due = -1
    operation.is_part = operation.is_behind = operation.needs_room = 0
    operation.next_part = operation.last[FOLLOWER] = operation.last[READER] = -1
    for chain in range(4):
        operation.next[chain] = -1
    return row


@inlined_kernel
def give_row(flow: Flow, row: int) -> None:
    """Return a row of the operation table."""
    flow.operations[row].id = -1
    flow.operations[row].next[QUEUED] = flow.engine.unused
    flow.engine.unused = row
    flow.engine.live -= 1


@inlined_kernel
def add_part(operations: RecordArray, command: int, row: int, is_part: bool) -> None:
    """Chain an operation to its command, which may wait for it: it goes on when the controller has dealt with the command."""
    operations[row].command, operations[row].request, operations[row].is_part = command, operations[command].request, is_part
    operations[command].pending += is_part
    if operations[command].first_part < 0:
        operations[command].first_part = row
    else:
        operations[operations[command].last_part].next_part = row
    operations[command].last_part = row


@inlined_kernel
def follow(operations: RecordArray, awaited: int, row: int, chain: int) -> None:
    """Let an operation wait until another, which has not ended, has ended: it stands last in the other's chain, FOLLOWER or READER."""
    operations[row].waits += 1
    last = operations[awaited].last[chain]
    operations[row].next[chain] = operations[last].next[chain] if last >= 0 else row
    if last >= 0:
        operations[last].next[chain] = row
    operations[awaited].last[chain] = row


@inlined_kernel
def readable(flow: Flow, row: int) -> tuple[int, int]:
    """The flash page where what an operation reads stands now, and the host's program of that, if it has not ended (-1: it has).

    What is being moved is read where it was until its move has ended.
    """
    operations, reader, place = flow.operations, row, int(flow.operations[row].place)
    while True:
        program = int(operations[reader].origin)
        if program < 0 or operations[program].id < 0 or operations[program].id > operations[reader].id:  # the row may be another's since
            return place, -1
        if operations[program].source < 0:
            return place, program
        place, reader = int(operations[program].source), program


@inlined_kernel
def enqueue(flow: Flow, queue: int, row: int, chain: int) -> None:
    """Take the last place in a queue, which is chained by IN_DIE (that of a die, or FLUSHES) or QUEUED."""
    if flow.queues[queue].head < 0:
        flow.queues[queue].head = row
    else:
        flow.operations[flow.queues[queue].tail].next[chain] = row
    flow.queues[queue].tail = row


@inlined_kernel
def dequeue(flow: Flow, queue: int, chain: int) -> int:
    """Take the first operation off a queue; -1 if it is empty."""
    row = flow.queues[queue].head
    if row >= 0:
        flow.queues[queue].head = flow.operations[row].next[chain]
        flow.operations[row].next[chain] = -1
    return row


@inlined_kernel
def reads_of(flow: Flow, die: int) -> int:
    """The queue of a die's reads that overtake."""
    return flow.servers.shape[0] + die


@inlined_kernel
def acquire(flow: Flow, server: int, row: int, now: int) -> bool:
    """Ask for a channel, the link, the controller or the bus: True if it is had at once, otherwise the operation waits its turn."""
    if flow.servers[server].boundless:
        return True
    if flow.servers[server].busy:
        enqueue(flow, server, row, QUEUED)
        return False
    flow.servers[server].busy = 1
    flow.servers[server].since = now
    return True


@inlined_kernel
def release(flow: Flow, server: int, now: int) -> int:
    """Give up a channel, the link, the controller or the bus; return the operation that has it next, or -1."""
    part = flow.servers[server]
    if part.boundless:
        return -1
    part.busy_ns += now - part.since
    part.since = now
    row = dequeue(flow, server, QUEUED)
    part.busy = row >= 0
    return row


@inlined_kernel
def level_of(control: RecordArray, timing: RecordArray, slot: int) -> int:
    """The page of its word line in which a slot lies: those of a block go round them."""
    return slot % control.pages_per_block // control.units % timing.levels


@inlined_kernel
def program_time(control: RecordArray, times: Timings, place: int) -> int:
    """Time of a program outside the SLC cache."""
    return times.cells[1, level_of(control, times.timing, place)] if times.timing.program_levels else times.timing.program


@inlined_kernel
def level_of_work(flash: Flash, timing: RecordArray, operation: RecordArray) -> int:
    """The level of `flashsim.core.spans` of the cells that an operation reads or programs."""
    if timing.levels == 1 or operation.kind == ERASE_BLOCK:
        return -1
    if flash.blocks[block_of(flash.control, operation.place)].slc:
        return spans.SLC
    one_shot = flash.control.group > flash.control.units and is_program(operation.kind)
    return spans.ALL_BITS if one_shot else level_of(flash.control, timing, operation.place)


@inlined_kernel
def note_span(flow: Flow, flash: Flash, timing: RecordArray, server: int, row: int, now: int) -> None:
    """An operation gives up a server that it has held for a while, if only for a nanosecond (it may be interrupted at once)."""
    if flow.engine.recording == 0 or flow.servers[server].since == now:
        return
    span, operation = flow.log[flow.engine.spans], flow.operations[row]
    flow.engine.spans += 1
    span.server = server
    span.begin = flow.servers[server].since
    span.end = now
    span.request = operation.request
    span.level, span.units, span.die = -1, 1, -1
    if operation.kind == COMMAND_KIND:
        span.kind, span.cause, span.page = spans.COMMAND, spans.HOST, -1
    else:
        span.kind, span.cause, span.page = spans.TRANSFER, operation.cause, operation.logical
    if server < flash.control.dies + flash.control.channels:
        span.die = operation.die
    if server < flash.control.dies:
        span.kind, span.level = _ON_DIE[operation.kind], level_of_work(flash, timing, operation)
        span.units = min(operation.together, spans.MOST_UNITS)


@inlined_kernel
def note_cells(flow: Flow, flash: Flash, timing: RecordArray, row: int, now: int) -> None:
    """Pages that an operation reads, and others with it, are out of their cells."""
    if flow.engine.recording == 0:
        return
    span, operation = flow.log[flow.engine.spans], flow.operations[row]
    flow.engine.spans += 1
    span.server = span.die = operation.die
    span.kind, span.cause = spans.CELLS, operation.cause
    span.request, span.page = operation.request, operation.logical
    span.begin, span.end = operation.left_over, now
    span.level, span.units = level_of_work(flash, timing, operation), min(operation.together, spans.MOST_UNITS)
