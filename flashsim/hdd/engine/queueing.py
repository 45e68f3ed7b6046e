"""Which command a drive serves next: what the host dispatches waits in the drive, and the scheduler chooses."""

from numba import types

from flashsim.core.host import HOST_TABLES, Host, next_queue, take_command
from flashsim.core.kernel import compiled_apart, inlined_kernel, lean_kernel, spliced_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import READ, WRITE
from flashsim.hdd.engine.cache import serve
from flashsim.hdd.engine.stream import arm_at, move_time
from flashsim.hdd.engine.transfer import overhead_of
from flashsim.hdd.scheduler.base import choose_of
from flashsim.hdd.state.disk import DISK, Disk
from flashsim.hdd.state.geometry import extent_of, piece_first, track_angle, track_of
from flashsim.hdd.state.layout import SLOT_UNIT
from flashsim.hdd.state.rotation import passing, revolution_for

#: What `choose` may answer that the engine cannot go on with.
BAD_CHOICE = -2


@inlined_kernel
def _leave(disk: Disk, index: int) -> int:
    command = disk.waiting[index]
    disk.state.waiting_count -= 1
    for place in range(index, disk.state.waiting_count):
        disk.waiting[place] = disk.waiting[place + 1]
    return command


@compiled_apart(HOST_TABLES, DISK, types.int64)
@lean_kernel
def _list_candidates(host: Host, disk: Disk, count: int) -> int:
    source, source_extent = arm_at(disk, host.scalars.now)
    for index in range(count):
        at = disk.waiting[index] - host.scalars.command_base
        disk.candidates[index].cylinder = source // disk.control.heads
        disk.candidates[index].delay = 0
        if host.commands[at].operation in (READ, WRITE):
            sector = host.commands[at].offset // disk.control.sector_size
            extent = extent_of(disk.extents, sector)
            track = track_of(disk.extents, extent, sector)
            free = host.scalars.now + overhead_of(
                disk.control, host.commands[at].operation, host.commands[at].length // disk.control.sector_size
            )
            there = free + move_time(disk, source, source_extent, track, extent, host.commands[at].operation == WRITE)
            index_on_track = sector - piece_first(disk.extents, extent, sector)
            part = track_angle(disk.extents, extent, track, disk.control.heads) + index_on_track * SLOT_UNIT
            offset = passing(part, disk.extents[extent].slots, disk.control.rotation)
            disk.candidates[index].cylinder = track // disk.control.heads
            disk.candidates[index].delay = revolution_for(there, offset, disk.control.rotation) + offset - host.scalars.now
    return source // disk.control.heads


@spliced_kernel
def admit(host: Host, disk: Disk, policies: Policies) -> int:
    """Take what the host dispatches, and start the next command if the drive is free; return 0, or BAD_CHOICE."""
    while True:
        queue = next_queue(host)
        if queue < 0:
            break
        disk.waiting[disk.state.waiting_count] = take_command(host, queue)
        disk.state.waiting_count += 1
    seen = disk.state.waiting_count
    if disk.state.active >= 0 or seen == 0:
        return 0
    index = 0
    if seen > 1:
        cylinder = _list_candidates(host, disk, seen)
        index = choose_of(policies)(disk.candidates, seen, cylinder, disk.state.direction)
        if index < 0 or index >= seen:
            return BAD_CHOICE
        if disk.candidates[index].cylinder != cylinder:
            disk.state.direction = 1 if disk.candidates[index].cylinder > cylinder else -1
    _begin_command(host, disk, _leave(disk, index))
    return 0


@spliced_kernel
def _begin_command(host: Host, disk: Disk, command: int) -> None:
    disk.before[0] = disk.state
    row = command - host.scalars.command_base
    first = host.commands[row].offset // disk.control.sector_size
    end = first + host.commands[row].length // disk.control.sector_size
    disk.state.active = command
    owner = host.commands[row].owner
    disk.state.busy_until = serve(
        disk, owner, host.requests[owner - host.scalars.request_base].tag, host.commands[row].operation, host.commands[row].request_flags,
        first, end, host.scalars.now,
    )  # fmt: skip
