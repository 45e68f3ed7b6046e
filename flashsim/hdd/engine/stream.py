"""Work of the mechanism, as a walk from track to track: it transfers one run of consecutive sectors at a time, its stream.

A stream starts at a sector once the arm is there, the data are there (a write) and the sector's slot comes round; it goes on, piece of a
track after piece of a track, up to its limit, and rests there.  Within a piece a sector's transfer ends when its slot has passed, so one
revolution's start says when any sector of the piece does; the next piece follows after a move of the arm, if it lies on another track, and
a wait for its first slot.  The limit may be moved on.  If the stream has not rested, nothing changes; otherwise it starts again at the old
limit.  Of the way only the piece that was being transferred at the last command is kept (`position`).

What is kept stands in `hdd.state.disk.Disk`.
"""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.hdd.state.disk import IDLE, WRITING, DiskState
from flashsim.hdd.state.geometry import extent_of, head_of, passing, piece_first, revolution_for, slots_ended, track_angle, track_of
from flashsim.hdd.state.layout import SLOT_UNIT


@inlined_kernel
def move_time(disk: DiskState, source: int, source_extent: int, target: int, target_extent: int, writing: bool) -> int:
    """Nanoseconds from one track to another: of a seek and a change of head the longer, and settling for a write."""
    if source == target:
        return 0
    heads = disk.control.heads
    time = disk.seeks[abs(source // heads - target // heads)]
    order = disk.control.head_order
    if head_of(disk.extents, source_extent, source, heads, order) != head_of(disk.extents, target_extent, target, heads, order):
        time = max(time, disk.control.head_switch)
    return max(0, time + disk.control.write_settle) if writing else time


@inlined_kernel
def _next_piece(disk: DiskState, extent: int, track: int, sector: int, departure: int, writing: bool) -> tuple[int, int, int, int, int]:
    """The piece that begins with a sector, reached from a track that is left at a time: extent, track, its end, angle and revolution."""
    following = extent if sector < disk.extents[extent].end else extent + 1
    target = track_of(disk.extents, following, sector)
    angle = track_angle(disk.extents, following, target, disk.control.heads)
    there = departure + move_time(disk, track, extent, target, following, writing)
    base = revolution_for(there, passing(angle, disk.extents[following].slots, disk.control.rotation), disk.control.rotation)
    return following, target, sector + disk.extents[following].per_track, angle, base


@lean_kernel
def passage(disk: DiskState, sector: int, edge: int) -> int:
    """Time when the start (edge 0) or end (edge 1) of a sector, not before the pivot, passes the head while streaming."""
    extent, track, first, end = disk.state.extent, disk.state.piece_track, disk.state.pivot, disk.state.piece_end
    angle, base = disk.state.angle, disk.state.revolution
    while sector >= end:
        departure = base + passing(angle + (end - first) * SLOT_UNIT, disk.extents[extent].slots, disk.control.rotation)
        first = end
        extent, track, end, angle, base = _next_piece(disk, extent, track, first, departure, disk.state.stream == WRITING)
    return base + passing(angle + (sector - first + edge) * SLOT_UNIT, disk.extents[extent].slots, disk.control.rotation)


@inlined_kernel
def sector_end(disk: DiskState, sector: int) -> int:
    """Time when the stream has transferred a sector, which lies between pivot and limit."""
    return passage(disk, sector, 1)


@lean_kernel
def position(disk: DiskState, time: int, keep: bool) -> int:
    """The first sector that the stream has not transferred at `time`.  With `keep` the piece it lies in becomes the drive's."""
    if time >= disk.state.rest:
        return disk.state.limit
    extent, track, first, end = disk.state.extent, disk.state.piece_track, disk.state.pivot, disk.state.piece_end
    angle, base = disk.state.angle, disk.state.revolution
    while True:
        slots = slots_ended(time - base, angle, disk.extents[extent].slots, disk.control.rotation)
        if first + slots < end:
            break
        departure = base + passing(angle + (end - first) * SLOT_UNIT, disk.extents[extent].slots, disk.control.rotation)
        first = end
        extent, track, end, angle, base = _next_piece(disk, extent, track, first, departure, disk.state.stream == WRITING)
    if keep:
        disk.state.extent, disk.state.piece_track, disk.state.angle, disk.state.revolution = extent, track, angle, base
        disk.state.pivot, disk.state.piece_end = first, end
    return first + max(0, slots)


@inlined_kernel
def arm_at(disk: DiskState, time: int) -> tuple[int, int]:
    """Track and extent of the arm: where the stream's next sector is, and at rest still where the last one was."""
    if disk.state.stream == IDLE:
        return disk.state.arm, disk.state.arm_extent
    sector = position(disk, time, False)
    if sector == disk.state.limit:
        sector -= 1
    extent = extent_of(disk.extents, sector)
    return track_of(disk.extents, extent, sector), extent


@inlined_kernel
def _start(disk: DiskState, extent: int, sector: int, time: int) -> int:
    """Let the transfer begin at a sector, on whose track the arm is, not before `time`; return the rotational wait."""
    track = track_of(disk.extents, extent, sector)
    first = piece_first(disk.extents, extent, sector)
    angle = track_angle(disk.extents, extent, track, disk.control.heads) + (sector - first) * SLOT_UNIT
    offset = passing(angle, disk.extents[extent].slots, disk.control.rotation)
    disk.state.extent, disk.state.piece_track, disk.state.angle = extent, track, angle
    disk.state.pivot, disk.state.piece_end = sector, first + disk.extents[extent].per_track
    disk.state.revolution = revolution_for(time, offset, disk.control.rotation)
    return disk.state.revolution + offset - time


@lean_kernel
def begin(disk: DiskState, stream: int, first: int, limit: int, time: int, moves: int, ready: int) -> int:
    """Leave the stream at `time` and begin another: the arm moves from `moves` on, and what is to be written is there at `ready`.

    Return how many sectors of its track pass whole while it waits for the first one, at most those before that.
    """
    source, source_extent = arm_at(disk, time)
    extent = extent_of(disk.extents, first)
    target = track_of(disk.extents, extent, first)
    move = move_time(disk, source, source_extent, target, extent, stream == WRITING)
    if stream == WRITING:
        move = max(move, disk.control.write_move)
    distance = abs(source // disk.control.heads - target // disk.control.heads)
    if distance > 0:
        disk.counters.seeks += 1
        disk.counters.seek_time += move
        disk.counters.seek_cylinders += distance
    disk.state.stream = stream
    disk.state.set_out, disk.state.arrived, disk.state.able = moves, moves + move, max(moves + move, ready)
    wait = _start(disk, extent, first, disk.state.able)
    disk.state.passed = disk.state.able + wait
    disk.counters.waits += 1
    disk.counters.wait_time += wait
    disk.state.limit = limit
    disk.state.least = first
    disk.state.rest = sector_end(disk, limit - 1)
    return min(first - piece_first(disk.extents, extent, first), wait * disk.extents[extent].slots // disk.control.rotation)


@lean_kernel
def extend(disk: DiskState, limit: int, time: int, ready: int) -> None:
    """Move the stream's limit on; beyond the old one the mechanism goes from `time` on, and writes what is there at `ready`."""
    if limit <= disk.state.limit:
        return
    next_sector = disk.state.limit
    last_extent = extent_of(disk.extents, next_sector - 1)
    extent = last_extent if next_sector < disk.extents[last_extent].end else last_extent + 1
    source = track_of(disk.extents, last_extent, next_sector - 1)
    target = track_of(disk.extents, extent, next_sector)
    move = move_time(disk, source, last_extent, target, extent, disk.state.stream == WRITING)
    earliest = max(max(time, disk.state.rest) + move, ready)
    if earliest > passage(disk, next_sector, 0):
        _start(disk, extent, next_sector, earliest)
    disk.state.limit = limit
    disk.state.rest = sector_end(disk, limit - 1)


@inlined_kernel
def stop(disk: DiskState, time: int) -> None:
    """Leave the stream at `time`; the arm stays where it is, or goes on to where it was going."""
    disk.state.arm, disk.state.arm_extent = arm_at(disk, time)
    disk.state.stream = IDLE
