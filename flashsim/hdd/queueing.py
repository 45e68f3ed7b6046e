"""Which command a drive serves next: what the host dispatches waits at its drive, and the scheduler chooses among the first of it."""

from __future__ import annotations

from typing import Any

from flashsim.core.host import COMMAND_BASE, FLAGS, LENGTH, NOW, OFFSET, OPERATION, OWNER, next_queue, take_command
from flashsim.core.kernel import inlined_kernel, lean_kernel, spliced_kernel
from flashsim.core.request import READ, WRITE, Integers
from flashsim.hdd.cache import serve
from flashsim.hdd.geometry import extent_of, piece_first, track_angle, track_of
from flashsim.hdd.layout import SLOT_UNIT, SLOTS
from flashsim.hdd.rotation import passing, revolution_for
from flashsim.hdd.scheduler.base import CYLINDER, DELAY
from flashsim.hdd.stream import arm_at, move_time
from flashsim.hdd.terms import (
    ACTIVE,
    BUSY_UNTIL,
    DIRECTION,
    DRIVE_COLUMNS,
    HEADS,
    QUEUE_DEPTH,
    ROTATION,
    SECTOR_SIZE,
    SECTORS,
    WAITING_COMMAND,
    WAITING_COUNT,
    WAITING_HEAD,
    WAITING_NEXT,
    WAITING_TAIL,
)
from flashsim.hdd.transfer import overhead_of

#: What `choose` may answer that the engine cannot go on with.
BAD_CHOICE = -2


@inlined_kernel
def _join(drives: Integers, waiting: Integers, drive: int, command: int) -> None:
    """Let a command wait behind the others of its drive; row 0 of the pool of waiting commands leads to the rows that are free."""
    row = waiting[0, WAITING_NEXT]
    waiting[0, WAITING_NEXT] = waiting[row, WAITING_NEXT]
    waiting[row, WAITING_COMMAND] = command
    waiting[row, WAITING_NEXT] = -1
    if drives[drive, WAITING_COUNT] == 0:
        drives[drive, WAITING_HEAD] = row
    else:
        waiting[drives[drive, WAITING_TAIL], WAITING_NEXT] = row
    drives[drive, WAITING_TAIL] = row
    drives[drive, WAITING_COUNT] += 1


@inlined_kernel
def _leave(drives: Integers, waiting: Integers, drive: int, index: int) -> int:
    """Take the command at a place of a drive's queue out of it; return the command."""
    before = -1
    row = drives[drive, WAITING_HEAD]
    for _ in range(index):
        before = row
        row = waiting[row, WAITING_NEXT]
    if before < 0:
        drives[drive, WAITING_HEAD] = waiting[row, WAITING_NEXT]
    else:
        waiting[before, WAITING_NEXT] = waiting[row, WAITING_NEXT]
    if drives[drive, WAITING_TAIL] == row:
        drives[drive, WAITING_TAIL] = before
    drives[drive, WAITING_COUNT] -= 1
    waiting[row, WAITING_NEXT] = waiting[0, WAITING_NEXT]
    waiting[0, WAITING_NEXT] = row
    return waiting[row, WAITING_COMMAND]


@lean_kernel
def _list_candidates(
    host: Integers, commands: Integers, control: Integers, drives: Integers, extents: Integers, seeks: Integers, waiting: Integers,
    candidates: Integers, drive: int, count: int,
) -> int:  # fmt: skip
    """Fill in the first commands that wait at a drive as its scheduler sees them; return the cylinder of the arm."""
    source, source_extent = arm_at(control, drives, extents, seeks, drive, host[NOW])
    row = drives[drive, WAITING_HEAD]
    for index in range(count):
        at = waiting[row, WAITING_COMMAND] - host[COMMAND_BASE]
        row = waiting[row, WAITING_NEXT]
        candidates[index, CYLINDER] = source // control[HEADS]
        candidates[index, DELAY] = 0
        if commands[at, OPERATION] in (READ, WRITE):
            sector = commands[at, OFFSET] // control[SECTOR_SIZE] - drive * control[SECTORS]
            extent = extent_of(extents, sector)
            track = track_of(extents, extent, sector)
            free = host[NOW] + overhead_of(control, commands[at, OPERATION], commands[at, LENGTH] // control[SECTOR_SIZE])
            there = free + move_time(control, extents, seeks, source, source_extent, track, extent, commands[at, OPERATION] == WRITE)
            index_on_track = sector - piece_first(extents, extent, sector)
            part = track_angle(extents, extent, track, control[HEADS]) + index_on_track * SLOT_UNIT
            offset = passing(part, extents[extent, SLOTS], control[ROTATION])
            candidates[index, CYLINDER] = track // control[HEADS]
            candidates[index, DELAY] = revolution_for(there, offset, control[ROTATION]) + offset - host[NOW]
    return source // control[HEADS]


@spliced_kernel
def admit(
    host: Integers, requests: Integers, commands: Integers, control: Integers, drives: Integers, extents: Integers, seeks: Integers,
    segments: Integers, ring: Integers, waiting: Integers, candidates: Integers, choose: Any,
) -> int:  # fmt: skip
    """Take what the host dispatches, and start the next command on every drive that is free; return 0, or BAD_CHOICE."""
    count = drives.shape[0] // 2
    size = control[SECTOR_SIZE] * control[SECTORS]
    while True:
        queue = next_queue(host)
        if queue < 0:
            break
        command = take_command(host, requests, queue)
        _join(drives, waiting, min(commands[command - host[COMMAND_BASE], OFFSET] // size, count - 1), command)
    for drive in range(count):
        if drives[drive, ACTIVE] >= 0 or drives[drive, WAITING_COUNT] == 0:
            continue
        index = 0
        seen = min(drives[drive, WAITING_COUNT], control[QUEUE_DEPTH])
        if seen > 1:
            cylinder = _list_candidates(host, commands, control, drives, extents, seeks, waiting, candidates, drive, seen)
            index = choose(candidates, seen, cylinder, drives[drive, DIRECTION])
            if index < 0 or index >= seen:
                return BAD_CHOICE
            if candidates[index, CYLINDER] != cylinder:
                drives[drive, DIRECTION] = 1 if candidates[index, CYLINDER] > cylinder else -1
        _begin_command(host, commands, control, drives, extents, seeks, segments, ring, drive, _leave(drives, waiting, drive, index))
    return 0


@spliced_kernel
def _begin_command(
    host: Integers, commands: Integers, control: Integers, drives: Integers, extents: Integers, seeks: Integers, segments: Integers,
    ring: Integers, drive: int, command: int,
) -> None:  # fmt: skip
    """Serve a command, and keep how the drive was before it: a power cut may come in its midst."""
    before = drive + drives.shape[0] // 2
    for column in range(DRIVE_COLUMNS):
        drives[before, column] = drives[drive, column]
    row = command - host[COMMAND_BASE]
    first = commands[row, OFFSET] // control[SECTOR_SIZE] - drive * control[SECTORS]
    end = first + commands[row, LENGTH] // control[SECTOR_SIZE]
    drives[drive, ACTIVE] = command
    drives[drive, BUSY_UNTIL] = serve(
        control, drives, extents, seeks, segments, ring, drive, commands[row, OWNER], commands[row, OPERATION], commands[row, FLAGS],
        first, end, host[NOW],
    )  # fmt: skip
