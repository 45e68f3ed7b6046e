"""What the mechanism does, as a walk from track to track: it transfers one run of consecutive sectors at a time, its stream.

A stream starts at a sector once the arm is there, the data are there (a write) and the sector's slot comes round; it goes on, piece of a
track after piece of a track, up to its limit, and rests there.  Within a piece a sector's transfer ends when its slot has passed, so one
revolution's start says when any sector of the piece does; the next piece follows after a move of the arm, if it lies on another track, and
a wait for its first slot.  The limit may be moved on.  If the stream has not rested, nothing changes; otherwise it starts again at the old
limit.  Of a drive's state only the piece that was being transferred at the last command is kept (`catch_up`).

Arrays: `control` (the drive's constants), `drives` (their states, one a row), `extents` and `seeks`; columns in `hdd.terms`, `hdd.layout`.
"""

from __future__ import annotations

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import Integers
from flashsim.hdd.geometry import extent_of, head_of, piece_first, track_angle, track_of
from flashsim.hdd.layout import END, HELD, SLOT_UNIT, SLOTS
from flashsim.hdd.rotation import passing, revolution_for, slots_ended
from flashsim.hdd.terms import (
    ANGLE,
    ARM,
    ARM_EXTENT,
    BASE,
    EXTENT,
    HEAD_ORDER,
    HEAD_SWITCH,
    HEADS,
    IDLE,
    LEAST,
    LIMIT,
    PIECE_END,
    PIECE_TRACK,
    PIVOT,
    REST,
    ROTATION,
    SEEK_CYLINDERS,
    SEEK_TIME,
    SEEKS,
    STREAM,
    WAIT_TIME,
    WAITS,
    WRITE_MOVE,
    WRITE_SETTLE,
    WRITING,
)


@inlined_kernel
def move_time(
    control: Integers, extents: Integers, seeks: Integers, source: int, source_extent: int, target: int, target_extent: int, writing: bool
) -> int:
    """Nanoseconds from one track to another: of a seek and a change of head the longer, and settling for a write."""
    if source == target:
        return 0
    heads = control[HEADS]
    time = seeks[abs(source // heads - target // heads)]
    order = control[HEAD_ORDER]
    if head_of(extents, source_extent, source, heads, order) != head_of(extents, target_extent, target, heads, order):
        time = max(time, control[HEAD_SWITCH])
    return max(0, time + control[WRITE_SETTLE]) if writing else time


@inlined_kernel
def _next_piece(
    control: Integers, extents: Integers, seeks: Integers, extent: int, track: int, sector: int, left: int, writing: bool
) -> tuple[int, int, int, int, int]:
    """The piece that begins with a sector, reached from a track that is left at a time: extent, track, its end, angle and revolution."""
    following = extent if sector < extents[extent, END] else extent + 1
    target = track_of(extents, following, sector)
    angle = track_angle(extents, following, target, control[HEADS])
    there = left + move_time(control, extents, seeks, track, extent, target, following, writing)
    base = revolution_for(there, passing(angle, extents[following, SLOTS], control[ROTATION]), control[ROTATION])
    return following, target, sector + extents[following, HELD], angle, base


@lean_kernel
def passage(control: Integers, drives: Integers, extents: Integers, seeks: Integers, drive: int, sector: int, edge: int) -> int:
    """When the start (edge 0) or end (edge 1) of a sector, not before the pivot, passes the head while streaming."""
    extent, track, first, end = drives[drive, EXTENT], drives[drive, PIECE_TRACK], drives[drive, PIVOT], drives[drive, PIECE_END]
    angle, base = drives[drive, ANGLE], drives[drive, BASE]
    while sector >= end:
        left = base + passing(angle + (end - first) * SLOT_UNIT, extents[extent, SLOTS], control[ROTATION])
        first = end
        extent, track, end, angle, base = _next_piece(control, extents, seeks, extent, track, first, left, drives[drive, STREAM] == WRITING)
    return base + passing(angle + (sector - first + edge) * SLOT_UNIT, extents[extent, SLOTS], control[ROTATION])


@inlined_kernel
def sector_end(control: Integers, drives: Integers, extents: Integers, seeks: Integers, drive: int, sector: int) -> int:
    """When the stream has transferred a sector, which lies between pivot and limit."""
    return passage(control, drives, extents, seeks, drive, sector, 1)


@lean_kernel
def position(control: Integers, drives: Integers, extents: Integers, seeks: Integers, drive: int, time: int, keep: bool) -> int:
    """The first sector that the stream has not transferred at `time`.  With `keep` the piece it lies in becomes the drive's."""
    if time >= drives[drive, REST]:
        return drives[drive, LIMIT]
    extent, track, first, end = drives[drive, EXTENT], drives[drive, PIECE_TRACK], drives[drive, PIVOT], drives[drive, PIECE_END]
    angle, base = drives[drive, ANGLE], drives[drive, BASE]
    while True:
        slots = slots_ended(time - base, angle, extents[extent, SLOTS], control[ROTATION])
        if first + slots < end:
            break
        left = base + passing(angle + (end - first) * SLOT_UNIT, extents[extent, SLOTS], control[ROTATION])
        first = end
        extent, track, end, angle, base = _next_piece(control, extents, seeks, extent, track, first, left, drives[drive, STREAM] == WRITING)
    if keep:
        drives[drive, EXTENT], drives[drive, PIECE_TRACK], drives[drive, PIVOT], drives[drive, PIECE_END] = extent, track, first, end
        drives[drive, ANGLE], drives[drive, BASE] = angle, base
    return first + max(0, slots)


@inlined_kernel
def arm_at(control: Integers, drives: Integers, extents: Integers, seeks: Integers, drive: int, time: int) -> tuple[int, int]:
    """Track and extent of the arm: where the stream's next sector is, and at rest still where the last one was."""
    if drives[drive, STREAM] == IDLE:
        return drives[drive, ARM], drives[drive, ARM_EXTENT]
    sector = position(control, drives, extents, seeks, drive, time, False)
    if sector == drives[drive, LIMIT]:
        sector -= 1
    extent = extent_of(extents, sector)
    return track_of(extents, extent, sector), extent


@inlined_kernel
def _start(control: Integers, drives: Integers, extents: Integers, drive: int, extent: int, sector: int, time: int) -> int:
    """Let the transfer begin at a sector, on whose track the arm is, not before `time`; return the rotational wait."""
    track = track_of(extents, extent, sector)
    first = piece_first(extents, extent, sector)
    angle = track_angle(extents, extent, track, control[HEADS]) + (sector - first) * SLOT_UNIT
    offset = passing(angle, extents[extent, SLOTS], control[ROTATION])
    drives[drive, PIVOT] = sector
    drives[drive, PIECE_END] = first + extents[extent, HELD]
    drives[drive, EXTENT] = extent
    drives[drive, PIECE_TRACK] = track
    drives[drive, ANGLE] = angle
    drives[drive, BASE] = revolution_for(time, offset, control[ROTATION])
    return drives[drive, BASE] + offset - time


@lean_kernel
def begin(
    control: Integers,
    drives: Integers,
    extents: Integers,
    seeks: Integers,
    drive: int,
    stream: int,
    first: int,
    limit: int,
    time: int,
    moves: int,
    ready: int,
) -> int:
    """Leave the stream at `time` and begin another: the arm moves from `moves` on, and what is to be written is there at `ready`.

    Return how many sectors of its track pass whole while it waits for the first one, at most those before that.
    """
    source, source_extent = arm_at(control, drives, extents, seeks, drive, time)
    extent = extent_of(extents, first)
    target = track_of(extents, extent, first)
    move = move_time(control, extents, seeks, source, source_extent, target, extent, stream == WRITING)
    if stream == WRITING:
        move = max(move, control[WRITE_MOVE])
    distance = abs(source // control[HEADS] - target // control[HEADS])
    if distance > 0:
        drives[drive, SEEKS] += 1
        drives[drive, SEEK_TIME] += move
        drives[drive, SEEK_CYLINDERS] += distance
    drives[drive, STREAM] = stream
    wait = _start(control, drives, extents, drive, extent, first, max(moves + move, ready))
    drives[drive, WAITS] += 1
    drives[drive, WAIT_TIME] += wait
    drives[drive, LIMIT] = limit
    drives[drive, LEAST] = first
    drives[drive, REST] = sector_end(control, drives, extents, seeks, drive, limit - 1)
    return min(first - piece_first(extents, extent, first), wait * extents[extent, SLOTS] // control[ROTATION])


@lean_kernel
def extend(control: Integers, drives: Integers, extents: Integers, seeks: Integers, drive: int, limit: int, time: int, ready: int) -> None:
    """Move the stream's limit on; beyond the old one the mechanism goes from `time` on, and writes what is there at `ready`."""
    if limit <= drives[drive, LIMIT]:
        return
    next_sector = drives[drive, LIMIT]
    last_extent = extent_of(extents, next_sector - 1)
    extent = last_extent if next_sector < extents[last_extent, END] else last_extent + 1
    source = track_of(extents, last_extent, next_sector - 1)
    target = track_of(extents, extent, next_sector)
    move = move_time(control, extents, seeks, source, last_extent, target, extent, drives[drive, STREAM] == WRITING)
    earliest = max(max(time, drives[drive, REST]) + move, ready)
    if earliest > passage(control, drives, extents, seeks, drive, next_sector, 0):
        _start(control, drives, extents, drive, extent, next_sector, earliest)
    drives[drive, LIMIT] = limit
    drives[drive, REST] = sector_end(control, drives, extents, seeks, drive, limit - 1)


@inlined_kernel
def stop(control: Integers, drives: Integers, extents: Integers, seeks: Integers, drive: int, time: int) -> None:
    """Leave the stream at `time`; the arm stays where it is, or goes on to where it was going."""
    drives[drive, ARM], drives[drive, ARM_EXTENT] = arm_at(control, drives, extents, seeks, drive, time)
    drives[drive, STREAM] = IDLE
