"""The read segments of a drive's buffer: what is in them, which one serves a read or is taken, and how far read-ahead goes."""

from __future__ import annotations

from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.hdd.description import BOUNDS
from flashsim.hdd.geometry import cylinder_end, extent_of, track_bounds
from flashsim.hdd.layout import SLOTS
from flashsim.hdd.stream import position, sector_end
from flashsim.hdd.terms import (
    CURRENT,
    HEADS,
    LEAST,
    NEXT_HITS,
    PARTIAL_HITS,
    PIVOT,
    READ_AHEAD,
    READ_AHEAD_BOUND,
    READING,
    REST,
    SECTORS,
    SEGMENT_END,
    SEGMENT_FIRST,
    SEGMENT_SIZE,
    SEGMENT_USED,
    SEGMENTS,
    STREAM,
    USES,
    WRITING,
)

_TRACK, _CYLINDER, _NEXT_TRACK = (BOUNDS.index(name) for name in ("track", "cylinder", "next-track"))


@inlined_kernel
def destaged(drives: Integers, drive: int, time: int) -> int:
    """When all writes are on the media, not before `time`."""
    return max(time, drives[drive, REST]) if drives[drive, STREAM] == WRITING else time


@inlined_kernel
def interruptible(control: Integers, drives: Integers, extents: Integers, seeks: Integers, drive: int, time: int) -> int:
    """When the mechanism can leave its stream, not before `time`: writes are destaged, and the least of a read-ahead is done."""
    if drives[drive, STREAM] == WRITING:
        return max(time, drives[drive, REST])
    if drives[drive, STREAM] == READING and drives[drive, LEAST] > drives[drive, PIVOT]:
        return max(time, sector_end(control, drives, extents, seeks, drive, drives[drive, LEAST] - 1))
    return time


@inlined_kernel
def fill(control: Integers, drives: Integers, extents: Integers, seeks: Integers, segments: Integers, drive: int, time: int) -> None:
    """Put into the segment what the stream has read until `time`."""
    row = drives[drive, CURRENT]
    if row >= 0 and drives[drive, STREAM] == READING:
        segments[row, SEGMENT_END] = position(control, drives, extents, seeks, drive, time, True)
        bound(control, segments, row)


@inlined_kernel
def bound(control: Integers, segments: Integers, row: int) -> None:
    """A full segment loses what was read first."""
    if control[SEGMENT_SIZE] > 0:
        segments[row, SEGMENT_FIRST] = max(segments[row, SEGMENT_FIRST], segments[row, SEGMENT_END] - control[SEGMENT_SIZE])


@inlined_kernel
def use(drives: Integers, segments: Integers, drive: int, row: int) -> None:
    """Note that a segment is used now."""
    drives[drive, USES] += 1
    segments[row, SEGMENT_USED] = drives[drive, USES]


@inlined_kernel
def hit(control: Integers, drives: Integers, segments: Integers, drive: int, first: int, end: int) -> int:
    """The row of the segment that serves a read; -1 if none does.  One that holds all of it is better, and then the stream's."""
    best = -1
    best_value = 0
    for row in range(drive * control[SEGMENTS], (drive + 1) * control[SEGMENTS]):
        streams = row == drives[drive, CURRENT] and drives[drive, STREAM] == READING
        within = first < segments[row, SEGMENT_END] or (
            streams and control[NEXT_HITS] == 1 and control[READ_AHEAD] > 0 and first == segments[row, SEGMENT_END]
        )
        whole = end <= segments[row, SEGMENT_END]
        if first >= segments[row, SEGMENT_FIRST] and within and (whole or streams or control[PARTIAL_HITS] == 1):
            value = 1 + streams + 2 * whole
            if value > best_value:
                best, best_value = row, value
    return best


@inlined_kernel
def victim(control: Integers, segments: Integers, drive: int) -> int:
    """The row of the segment that a miss takes: an empty one, or the one that was used the longest time ago."""
    best = drive * control[SEGMENTS]
    for row in range(best, best + control[SEGMENTS]):
        if segments[row, SEGMENT_FIRST] == segments[row, SEGMENT_END]:
            return row
        if segments[row, SEGMENT_USED] < segments[best, SEGMENT_USED]:
            best = row
    return best


@inlined_kernel
def forget_overlapped(control: Integers, segments: Integers, drive: int, first: int, end: int) -> None:
    """Empty the segments that hold what is being written."""
    for row in range(drive * control[SEGMENTS], (drive + 1) * control[SEGMENTS]):
        if first < segments[row, SEGMENT_END] and segments[row, SEGMENT_FIRST] < end:
            segments[row, SEGMENT_END] = segments[row, SEGMENT_FIRST]


@inlined_kernel
def read_limit(control: Integers, extents: Integers, end: int, segment_first: int) -> int:
    """Up to where the drive reads for a request that ends before `end`, read-ahead included."""
    bound = control[READ_AHEAD_BOUND]
    if control[READ_AHEAD] == 0 or end == control[SECTORS]:
        return end
    limit = min(end + control[READ_AHEAD], control[SECTORS])
    if bound == _NEXT_TRACK:
        track_first, track_end = track_bounds(extents, end)
        if segment_first < track_first:
            track_end += extents[extent_of(extents, end), SLOTS]
        return min(track_end, control[SECTORS])
    if bound == _TRACK:
        _, track_end = track_bounds(extents, end - 1)
        return max(end, min(limit, track_end))
    if bound == _CYLINDER:
        return max(end, min(limit, cylinder_end(extents, end - 1, control[HEADS])))
    return limit
