"""A command enters the drive: the translation layer plans it page by page, and its operations take their places in the dies' queues."""

from __future__ import annotations

from typing import Any

from flashsim.core.host import (
    COMMAND_BASE,
    DEPTH,
    DISPATCHED,
    FIRST_COMMAND,
    IN_FLIGHT,
    LENGTH,
    NOW,
    OFFSET,
    OPERATION,
    READY_HEAD,
    REQUEST_BASE,
    take_command,
)
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE, Integers
from flashsim.ssd.dies import pending_program, schedule
from flashsim.ssd.drive_state import FLUSHES, READ_BYTES, READS, TRIMS, WRITE_BYTES, WRITES
from flashsim.ssd.flash_array import (
    ERASE_BLOCK,
    KIND,
    MOVE_PAGE,
    NEEDS,
    PLACE,
    PLAN_COLUMNS,
    PROGRAM_PAGE,
    QUEUED,
    READ_PAGE,
    STORE_PAGE,
    SUPERSEDED,
    ZERO_PAGE,
    Narrow,
)
from flashsim.ssd.geometry import BROKEN, CHANNELS, DIES, PAGE_SECTORS, PLAN_ROWS, READ_ONLY, REFUSED, block_of, die_of_block
from flashsim.ssd.operations import (
    COMMAND,
    COMMAND_KIND,
    DIE,
    FIRST_PART,
    HEAD,
    HOLDERS,
    HOST_COMMAND,
    ID,
    LAST_ERASE,
    LAST_PART,
    LEFT,
    LIVE,
    NEXT_PART,
    OVERHEAD,
    PENDING,
    REQUEST,
    SECTORS,
    WAITING,
    WAITS,
    acquire,
    follow,
    join_queue,
    take_row,
)
from flashsim.ssd.pools import next_write_id
from flashsim.ssd.timing import READ_OVERHEAD, READ_PRIORITY, WRITE_OVERHEAD

# Why the engine stopped.
DONE, TABLE_FULL, POLICY_FAILED, LOG_FULL = range(4)


@lean_kernel
def is_part(kind: int) -> bool:
    """Whether a command completes only after operations of this kind."""
    return kind in (READ_PAGE, ZERO_PAGE, PROGRAM_PAGE)


@lean_kernel
def enter_die(
    operations: Integers, servers: Integers, gates: Integers, control: Integers, pools: Integers, timing: Integers, row: int
) -> None:
    """Give an operation its place in the queue of its die, and let it wait for what must come before.

    A read that may overtake gets its place when it is ready.  It reads the flash page that the map named at its admission: it waits for a
    program of that page, and the next erase of the block waits for it.
    """
    kind, place = operations[row, KIND], operations[row, PLACE]
    block = place if kind == ERASE_BLOCK else block_of(control, place)
    die = operations[row, DIE] = die_of_block(control, block)
    pools[QUEUED, die] += 1
    if kind == READ_PAGE and timing[READ_PRIORITY]:
        gates[HOLDERS, block] += 1
        awaited = pending_program(operations, servers, die, place) if gates[PENDING, block] > 0 else -1
        if awaited >= 0:
            follow(operations, awaited, row)
        return
    join_queue(servers, operations, die, HEAD, row)
    if kind == ERASE_BLOCK:
        operations[row, WAITS] += gates[HOLDERS, block]
        gates[HOLDERS, block] = 0
        gates[LAST_ERASE, block] = operations[row, ID]
    elif kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
        gates[PENDING, block] += 1


@lean_kernel
def add_operations(
    engine: Integers, operations: Integers, servers: Integers, gates: Integers, control: Integers, pools: Integers, plan: Integers,
    timing: Integers, rows: int, command: int, request: int, sectors: int,
) -> None:  # fmt: skip
    """Give the planned operations of one logical page their ids, their command and their places in the queues of dies."""
    for at in range(rows):
        kind = plan[at, KIND]
        row = take_row(engine, operations, kind)
        for column in range(PLAN_COLUMNS):
            operations[row, column] = plan[at, column]
        operations[row, COMMAND] = command
        operations[row, REQUEST] = request
        operations[row, SECTORS] = sectors
        if kind != ZERO_PAGE:
            enter_die(operations, servers, gates, control, pools, timing, row)
        if plan[at, SUPERSEDED] >= 0:
            gates[HOLDERS, plan[at, SUPERSEDED]] += 1
        if plan[at, NEEDS] >= 0:
            follow(operations, plan[plan[at, NEEDS], NEEDS], row)
        plan[at, NEEDS] = row  # from here on the row of the operation, for those that need it
        if is_part(kind):
            operations[command, LEFT] += 1
        if operations[command, FIRST_PART] < 0:
            operations[command, FIRST_PART] = row
        else:
            operations[operations[command, LAST_PART], NEXT_PART] = row
        operations[command, LAST_PART] = row


@lean_kernel
def count_command(counters: Integers, operation: int, length: int) -> None:
    """Count what the host asked for."""
    if operation == READ:
        counters[READS] += 1
        counters[READ_BYTES] += length
    elif operation == WRITE:
        counters[WRITES] += 1
        counters[WRITE_BYTES] += length
    elif operation == TRIM:
        counters[TRIMS] += 1
    else:
        counters[FLUSHES] += 1


@lean_kernel
def admit(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    pools: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    trimmed: Narrow,
    own: Integers,
    plan: Integers,
    timing: Integers,
    counters: Integers,
    translate: Any,
    victim: Any,
    opens: Any,
    levels: Any,
    request: int,
    host_command: int,
    operation: int,
    offset: int,
    length: int,
    now: int,
) -> bool:
    """Plan a command and queue it for the controller; False if a policy broke its contract."""
    command = take_row(engine, operations, COMMAND_KIND)
    operations[command, LEFT] = 0
    operations[command, FIRST_PART] = -1
    operations[command, HOST_COMMAND] = host_command
    operations[command, REQUEST] = request
    operations[command, OVERHEAD] = timing[READ_OVERHEAD] if operation == READ else timing[WRITE_OVERHEAD]
    if operation == WRITE and control[READ_ONLY]:
        control[REFUSED] += 1
        length = 0
    else:
        count_command(counters, operation, length)
    size = control[PAGE_SECTORS] * SECTOR
    end = offset + length
    page = offset // size
    while page * size < end and length > 0 and operation != FLUSH:
        sectors = (min(end, (page + 1) * size) - max(offset, page * size)) // SECTOR
        whole = sectors == control[PAGE_SECTORS]
        if operation == WRITE and control[READ_ONLY]:
            control[REFUSED] += 1
            break
        if operation != TRIM or whole:
            rows = translate(
                operation, page, 0 if whole else 1, control, pools, blocks, mapping, pages, own, plan, victim, opens, levels
            )  # fmt: skip
            if rows < 0 or control[BROKEN]:
                return False
            if operation == TRIM:
                trimmed[page] = next_write_id(control)
            add_operations(
                engine, operations, servers, gates, control, pools, plan, timing, rows, command, request, sectors
            )  # fmt: skip
        page += 1
    if acquire(servers, operations, control[DIES] + control[CHANNELS] + 1, command, now):
        schedule(engine, heap, operations, command, WAITING, now + operations[command, OVERHEAD])
    return True


@lean_kernel
def dispatch(
    host: Integers,
    requests: Integers,
    commands: Integers,
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    pools: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    trimmed: Narrow,
    own: Integers,
    plan: Integers,
    timing: Integers,
    counters: Integers,
    translate: Any,
    victim: Any,
    opens: Any,
    levels: Any,
) -> int:
    """Admit waiting commands while fewer than the depth are in flight; DONE, or why it stopped short."""
    while host[READY_HEAD] >= 0 and host[IN_FLIGHT] < host[DEPTH]:
        request = host[READY_HEAD]
        row = requests[request - host[REQUEST_BASE], FIRST_COMMAND] + host[DISPATCHED] - host[COMMAND_BASE]
        if engine[LIVE] + rows_needed(control, commands[row, OPERATION], commands[row, LENGTH]) > operations.shape[0]:
            return TABLE_FULL
        command = take_command(host, requests)
        if not admit(
            engine, heap, operations, servers, gates, control, pools, blocks, mapping, pages, trimmed, own, plan, timing, counters,
            translate, victim, opens, levels, request, command, commands[row, OPERATION], commands[row, OFFSET],
            commands[row, LENGTH], host[NOW],
        ):  # fmt: skip
            return POLICY_FAILED
    return DONE


@lean_kernel
def rows_needed(control: Integers, operation: int, length: int) -> int:
    """The most rows of the operation table that a command can take."""
    touched = length // (control[PAGE_SECTORS] * SECTOR) + 2
    if operation == READ:
        return touched + 1
    if operation == WRITE:
        return touched * control[PLAN_ROWS] + 1
    return 1
