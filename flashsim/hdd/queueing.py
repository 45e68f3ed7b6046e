"""Which command a drive serves next: what the host dispatches waits at its drive, and the scheduler chooses among the first of it."""

from __future__ import annotations

from flashsim.core.host import COMMAND_BASE, FLAGS, LENGTH, NOW, OFFSET, OPERATION, OWNER, Host, next_queue, take_command
from flashsim.core.kernel import inlined_kernel, lean_kernel, spliced_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import READ, WRITE
from flashsim.hdd.cache import serve
from flashsim.hdd.disk import Disk
from flashsim.hdd.geometry import extent_of, piece_first, track_angle, track_of
from flashsim.hdd.layout import SLOT_UNIT, SLOTS
from flashsim.hdd.rotation import passing, revolution_for
from flashsim.hdd.scheduler.base import CYLINDER, DELAY, choose_of
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
def _join(disk: Disk, drive: int, command: int) -> None:
    """Let a command wait behind the others of its drive; row 0 of the pool of waiting commands leads to the rows that are free."""
    row = disk.waiting[0, WAITING_NEXT]
    disk.waiting[0, WAITING_NEXT] = disk.waiting[row, WAITING_NEXT]
    disk.waiting[row, WAITING_COMMAND] = command
    disk.waiting[row, WAITING_NEXT] = -1
    if disk.drives[drive, WAITING_COUNT] == 0:
        disk.drives[drive, WAITING_HEAD] = row
    else:
        disk.waiting[disk.drives[drive, WAITING_TAIL], WAITING_NEXT] = row
    disk.drives[drive, WAITING_TAIL] = row
    disk.drives[drive, WAITING_COUNT] += 1


@inlined_kernel
def _leave(disk: Disk, drive: int, index: int) -> int:
    """Take the command at a place of a drive's queue out of it; return the command."""
    before = -1
    row = disk.drives[drive, WAITING_HEAD]
    for _ in range(index):
        before = row
        row = disk.waiting[row, WAITING_NEXT]
    if before < 0:
        disk.drives[drive, WAITING_HEAD] = disk.waiting[row, WAITING_NEXT]
    else:
        disk.waiting[before, WAITING_NEXT] = disk.waiting[row, WAITING_NEXT]
    if disk.drives[drive, WAITING_TAIL] == row:
        disk.drives[drive, WAITING_TAIL] = before
    disk.drives[drive, WAITING_COUNT] -= 1
    disk.waiting[row, WAITING_NEXT] = disk.waiting[0, WAITING_NEXT]
    disk.waiting[0, WAITING_NEXT] = row
    return disk.waiting[row, WAITING_COMMAND]


@lean_kernel
def _list_candidates(host: Host, disk: Disk, drive: int, count: int) -> int:
    """Fill in the first commands that wait at a drive as its scheduler sees them; return the cylinder of the arm."""
    source, source_extent = arm_at(disk, drive, host.scalars[NOW])
    row = disk.drives[drive, WAITING_HEAD]
    for index in range(count):
        at = disk.waiting[row, WAITING_COMMAND] - host.scalars[COMMAND_BASE]
        row = disk.waiting[row, WAITING_NEXT]
        disk.candidates[index, CYLINDER] = source // disk.control[HEADS]
        disk.candidates[index, DELAY] = 0
        if host.commands[at, OPERATION] in (READ, WRITE):
            sector = host.commands[at, OFFSET] // disk.control[SECTOR_SIZE] - drive * disk.control[SECTORS]
            extent = extent_of(disk.extents, sector)
            track = track_of(disk.extents, extent, sector)
            free = host.scalars[NOW] + overhead_of(
                disk.control, host.commands[at, OPERATION], host.commands[at, LENGTH] // disk.control[SECTOR_SIZE]
            )
            there = free + move_time(disk, source, source_extent, track, extent, host.commands[at, OPERATION] == WRITE)
            index_on_track = sector - piece_first(disk.extents, extent, sector)
            part = track_angle(disk.extents, extent, track, disk.control[HEADS]) + index_on_track * SLOT_UNIT
            offset = passing(part, disk.extents[extent, SLOTS], disk.control[ROTATION])
            disk.candidates[index, CYLINDER] = track // disk.control[HEADS]
            disk.candidates[index, DELAY] = revolution_for(there, offset, disk.control[ROTATION]) + offset - host.scalars[NOW]
    return source // disk.control[HEADS]


@spliced_kernel
def admit(host: Host, disk: Disk, policies: Policies) -> int:
    """Take what the host dispatches, and start the next command on every drive that is free; return 0, or BAD_CHOICE."""
    count = disk.drives.shape[0] // 2
    size = disk.control[SECTOR_SIZE] * disk.control[SECTORS]
    while True:
        queue = next_queue(host)
        if queue < 0:
            break
        command = take_command(host, queue)
        _join(disk, min(host.commands[command - host.scalars[COMMAND_BASE], OFFSET] // size, count - 1), command)
    for drive in range(count):
        if disk.drives[drive, ACTIVE] >= 0 or disk.drives[drive, WAITING_COUNT] == 0:
            continue
        index = 0
        seen = min(disk.drives[drive, WAITING_COUNT], disk.control[QUEUE_DEPTH])
        if seen > 1:
            cylinder = _list_candidates(host, disk, drive, seen)
            index = choose_of(policies)(disk.candidates, seen, cylinder, disk.drives[drive, DIRECTION])
            if index < 0 or index >= seen:
                return BAD_CHOICE
            if disk.candidates[index, CYLINDER] != cylinder:
                disk.drives[drive, DIRECTION] = 1 if disk.candidates[index, CYLINDER] > cylinder else -1
        _begin_command(host, disk, drive, _leave(disk, drive, index))
    return 0


@spliced_kernel
def _begin_command(host: Host, disk: Disk, drive: int, command: int) -> None:
    """Serve a command, and keep how the drive was before it: a power cut may come in its midst."""
    before = drive + disk.drives.shape[0] // 2
    for column in range(DRIVE_COLUMNS):
        disk.drives[before, column] = disk.drives[drive, column]
    row = command - host.scalars[COMMAND_BASE]
    first = host.commands[row, OFFSET] // disk.control[SECTOR_SIZE] - drive * disk.control[SECTORS]
    end = first + host.commands[row, LENGTH] // disk.control[SECTOR_SIZE]
    disk.drives[drive, ACTIVE] = command
    disk.drives[drive, BUSY_UNTIL] = serve(
        disk, drive, host.commands[row, OWNER], host.commands[row, OPERATION], host.commands[row, FLAGS], first, end, host.scalars[NOW]
    )
