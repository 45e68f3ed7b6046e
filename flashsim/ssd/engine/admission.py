"""A command enters the drive: the translation layer plans it page by page, and its operations take their places in the dies' queues."""

from __future__ import annotations

from typing import Any

from flashsim.core.host import COMMAND_BASE, FLAGS, HEAD, LENGTH, NOW, OFFSET, OPERATION, next_command, next_queue, take_command
from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, SECTOR, TRIM, WRITE, Integers
from flashsim.ssd.engine.buffering import await_destaging, destage, drop_entry, fill_entry, read_entry
from flashsim.ssd.engine.continuation import goes_on, read_ahead, write_behind
from flashsim.ssd.engine.dies import schedule
from flashsim.ssd.engine.operations import (
    COMMAND_KIND,
    FIRST_PART,
    FLUSH_MARK,
    FLUSHING,
    HOST_COMMAND,
    LEFT,
    LIVE,
    OVERHEAD,
    REQUEST,
    WAITING,
    acquire,
    take_row,
)
from flashsim.ssd.engine.queueing import add_operations
from flashsim.ssd.state.drive_state import BUFFER_HITS, BUFFER_OVERWRITES, FLUSHES, READ_BYTES, READS, TRIMS, WRITE_BYTES, WRITES
from flashsim.ssd.state.flash_array import Narrow
from flashsim.ssd.state.geometry import BROKEN, CHANNELS, DIES, MAP_PAGES, PAGE_SECTORS, PLAN_ROWS, READ_ONLY, REFUSED
from flashsim.ssd.state.pools import next_write_id
from flashsim.ssd.state.timing import CONTINUATION, POWER_PROTECTED, READ_OVERHEAD, WRITE_OVERHEAD
from flashsim.ssd.state.write_buffer import (
    OLDEST_ENTRY,
    PLACES,
    SECTOR_MASK,
    THRESHOLD,
    WAITING_ENTRIES,
    WRITE_THROUGH,
    enter_buffer,
    find_entry,
    sector_mask,
)

# Why the engine stopped.
DONE, TABLE_FULL, POLICY_FAILED, LOG_FULL = range(4)


@inlined_kernel
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


@inlined_kernel
def admit_page(
    engine: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    pools: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    own: Integers,
    plan: Integers,
    timing: Integers,
    counters: Integers,
    translate: Any,
    victim: Any,
    opens: Any,
    levels: Any,
    command: int,
    request: int,
    operation: int,
    page: int,
    sectors: int,
    continues: bool,
) -> bool:
    """Plan one page of a command that the write buffer has no part in; False if a policy broke its contract."""
    partial = 0 if sectors == control[PAGE_SECTORS] else 1
    rows = translate(operation, page, partial, control, pools, blocks, mapping, pages, own, plan, victim, opens, levels)
    if rows < 0 or control[BROKEN]:
        return False
    if continues and operation == READ:
        read_ahead(plan, rows, counters)
    add_operations(engine, operations, servers, gates, control, pools, plan, timing, rows, command, request, sectors)
    if continues and operation == WRITE:
        write_behind(engine, operations, plan, rows)
    return True


@inlined_kernel
def admit_buffered(
    engine: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    pools: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    own: Integers,
    plan: Integers,
    buffer: Integers,
    timing: Integers,
    counters: Integers,
    translate: Any,
    victim: Any,
    opens: Any,
    levels: Any,
    command: int,
    request: int,
    operation: int,
    page: int,
    first: int,
    sectors: int,
    through: bool,
) -> bool:
    """Plan one page of a command on a drive with a write buffer, from sector `first` of the page on; False if a policy broke its contract.

    A write `through` the buffer is acknowledged when it is programmed.
    """
    entry, done = find_entry(buffer, page), True
    if operation == WRITE:
        counters[BUFFER_OVERWRITES] += entry >= 0
        is_new = entry < 0
        entry = enter_buffer(control, buffer, entry, page, sector_mask(first, sectors))
        fill_entry(engine, operations, buffer, command, request, entry, sectors, is_new, not through)
        leaving = entry if through else buffer[0, OLDEST_ENTRY]
        if through or buffer[0, WAITING_ENTRIES] > buffer[0, THRESHOLD]:
            done = destage(
                engine, operations, servers, gates, control, pools, blocks, mapping, pages, own, plan, buffer, timing, translate,
                victim, opens, levels, command, request, leaving, through,
            )  # fmt: skip
        return done
    if entry >= 0 and operation == READ and sector_mask(first, sectors) & ~buffer[entry, SECTOR_MASK] == 0:
        counters[BUFFER_HITS] += 1
        read_entry(engine, operations, buffer, command, request, entry, sectors)
        return True
    if entry >= 0 and operation == READ:
        done = destage(
            engine, operations, servers, gates, control, pools, blocks, mapping, pages, own, plan, buffer, timing, translate, victim,
            opens, levels, command, request, entry, False,
        )  # fmt: skip
    elif entry >= 0:
        drop_entry(engine, operations, buffer, command, request, entry)
    return done and admit_page(
        engine, operations, servers, gates, control, pools, blocks, mapping, pages, own, plan, timing, counters, translate, victim,
        opens, levels, command, request, operation, page, sectors, False,
    )  # fmt: skip


@inlined_kernel
def admit(
    engine: Integers,
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
    buffer: Integers,
    timing: Integers,
    counters: Integers,
    translate: Any,
    victim: Any,
    opens: Any,
    levels: Any,
    command: int,
    request: int,
    operation: int,
    offset: int,
    length: int,
    through: bool,
    continues: bool,
) -> bool:
    """Plan the pages of a command, in order; False if a policy broke its contract.  Only whole flash pages are trimmed."""
    size = control[PAGE_SECTORS] * SECTOR
    end = offset + length
    page = offset // size
    while page * size < end:
        first = max(offset, page * size)
        sectors = (min(end, (page + 1) * size) - first) // SECTOR
        if operation == WRITE and control[READ_ONLY]:
            control[REFUSED] += 1
            break
        if operation == TRIM and sectors < control[PAGE_SECTORS]:
            page += 1
            continue
        if buffer[0, PLACES] > 0:
            done = admit_buffered(
                engine, operations, servers, gates, control, pools, blocks, mapping, pages, own, plan, buffer, timing, counters,
                translate, victim, opens, levels, command, request, operation, page, (first - page * size) // SECTOR, sectors, through,
            )  # fmt: skip
        else:
            done = admit_page(
                engine, operations, servers, gates, control, pools, blocks, mapping, pages, own, plan, timing, counters, translate,
                victim, opens, levels, command, request, operation, page, sectors, continues,
            )  # fmt: skip
        if not done:
            return False
        if operation == TRIM:
            trimmed[page] = next_write_id(control)
        page += 1
    return True


@inlined_kernel
def take_command_row(
    host: Integers, requests: Integers, queue: int, engine: Integers, operations: Integers, timing: Integers, operation: int
) -> int:
    """A row for the next command of a submission queue."""
    command = take_row(engine, operations, COMMAND_KIND)
    operations[command, REQUEST] = host[queue + HEAD]
    operations[command, LEFT] = 0
    operations[command, FIRST_PART] = -1
    operations[command, FLUSH_MARK] = 0
    operations[command, HOST_COMMAND] = take_command(host, requests, queue)
    operations[command, OVERHEAD] = timing[READ_OVERHEAD] if operation == READ else timing[WRITE_OVERHEAD]
    return command


@inlined_kernel
def enter_controller(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, control: Integers, command: int, now: int
) -> None:
    """An admitted command queues for the controller."""
    if acquire(servers, operations, control[DIES] + control[CHANNELS] + 1, command, now):
        schedule(engine, heap, operations, command, WAITING, now + operations[command, OVERHEAD])


@inlined_kernel
def admit_flush(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, gates: Integers, control: Integers, pools: Integers,
    blocks: Integers, mapping: Narrow, pages: Narrow, own: Integers, plan: Integers, buffer: Integers, timing: Integers, translate: Any,
    victim: Any, opens: Any, levels: Any, now: int,
) -> int:  # fmt: skip
    """Plan to write all that the buffer holds, and let the flush wait for it; DONE, or why it stopped short."""
    command = engine[FLUSHING]
    while buffer[0, WAITING_ENTRIES] > 0:
        if engine[LIVE] + control[PLAN_ROWS] > operations.shape[0]:
            return TABLE_FULL
        if not destage(
            engine, operations, servers, gates, control, pools, blocks, mapping, pages, own, plan, buffer, timing, translate, victim,
            opens, levels, command, operations[command, REQUEST], buffer[0, OLDEST_ENTRY], False,
        ):  # fmt: skip
            return POLICY_FAILED
    engine[FLUSHING] = -1
    await_destaging(engine, operations, command)
    enter_controller(engine, heap, operations, servers, control, command, now)
    return DONE


@inlined_kernel
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
    buffer: Integers,
    timing: Integers,
    counters: Integers,
    translate: Any,
    victim: Any,
    opens: Any,
    levels: Any,
) -> int:
    """Admit waiting commands, the submission queues in turn, while those have room; DONE, or why it stopped short."""
    while True:
        if engine[FLUSHING] >= 0:
            status = admit_flush(
                engine, heap, operations, servers, gates, control, pools, blocks, mapping, pages, own, plan, buffer, timing, translate,
                victim, opens, levels, host[NOW],
            )  # fmt: skip
            if status != DONE:
                return status
            continue
        queue = next_queue(host)
        if queue < 0:
            return DONE
        request = host[queue + HEAD]
        row = next_command(host, requests, queue) - host[COMMAND_BASE]
        operation, offset, length = commands[row, OPERATION], commands[row, OFFSET], commands[row, LENGTH]
        if engine[LIVE] + rows_needed(control, buffer, operation, length) > operations.shape[0]:
            return TABLE_FULL
        command = take_command_row(host, requests, queue, engine, operations, timing, operation)
        if operation == WRITE and control[READ_ONLY]:
            control[REFUSED] += 1
            length = 0
        else:
            count_command(counters, operation, length)
        if operation == FLUSH and (buffer[0, PLACES] > 0 or timing[CONTINUATION] > 0) and not timing[POWER_PROTECTED]:
            engine[FLUSHING] = command
            continue
        forced = commands[row, FLAGS] & FORCE_UNIT_ACCESS != 0
        through = buffer[0, WRITE_THROUGH] != 0 or forced
        continues = goes_on(engine, control, timing, counters, operation, offset, length, forced)
        if continues:
            operations[command, OVERHEAD] = timing[CONTINUATION]
        if operation != FLUSH and length > 0 and not admit(
            engine, operations, servers, gates, control, pools, blocks, mapping, pages, trimmed, own, plan, buffer, timing, counters,
            translate, victim, opens, levels, command, request, operation, offset, length, through, continues,
        ):  # fmt: skip
            return POLICY_FAILED
        enter_controller(engine, heap, operations, servers, control, command, host[NOW])


@inlined_kernel
def rows_needed(control: Integers, buffer: Integers, operation: int, length: int) -> int:
    """The most rows of the operation table that a command can take; a flush asks for them as it goes."""
    touched = length // (control[PAGE_SECTORS] * SECTOR) + 2
    if operation == WRITE or (operation != FLUSH and (control[MAP_PAGES] > 0 or buffer[0, PLACES] > 0)):
        return touched * (control[PLAN_ROWS] + 1) + 1
    return (touched if operation != FLUSH else 0) + 1
