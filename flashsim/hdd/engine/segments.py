"""The read segments of a drive's buffer: what is in them, which one serves a read or is taken, and how far read-ahead goes."""

from flashsim.core.kernel import inlined_kernel
from flashsim.hdd.description import BOUNDS
from flashsim.hdd.engine.stream import position, sector_end
from flashsim.hdd.state.disk import Disk
from flashsim.hdd.state.geometry import cylinder_end, extent_of, track_bounds
from flashsim.hdd.state.layout import SLOTS
from flashsim.hdd.state.terms import (
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
    STREAM,
    USES,
    WRITING,
)

_TRACK, _CYLINDER, _NEXT_TRACK = (BOUNDS.index(name) for name in ("track", "cylinder", "next-track"))


@inlined_kernel
def destaged(disk: Disk, time: int) -> int:
    """When all writes are on the media, not before `time`."""
    return max(time, disk.state[REST]) if disk.state[STREAM] == WRITING else time


@inlined_kernel
def interruptible(disk: Disk, time: int) -> int:
    """When the mechanism can leave its stream, not before `time`: writes are destaged, and the least of a read-ahead is done."""
    if disk.state[STREAM] == WRITING:
        return max(time, disk.state[REST])
    if disk.state[STREAM] == READING and disk.state[LEAST] > disk.state[PIVOT]:
        return max(time, sector_end(disk, disk.state[LEAST] - 1))
    return time


@inlined_kernel
def fill(disk: Disk, time: int) -> None:
    """Put into the segment what the stream has read until `time`."""
    row = disk.state[CURRENT]
    if row >= 0 and disk.state[STREAM] == READING:
        disk.segments[row, SEGMENT_END] = position(disk, time, True)
        bound(disk, row)


@inlined_kernel
def bound(disk: Disk, row: int) -> None:
    """A full segment loses what was read first."""
    if disk.control[SEGMENT_SIZE] > 0:
        disk.segments[row, SEGMENT_FIRST] = max(
            disk.segments[row, SEGMENT_FIRST], disk.segments[row, SEGMENT_END] - disk.control[SEGMENT_SIZE]
        )


@inlined_kernel
def use(disk: Disk, row: int) -> None:
    disk.state[USES] += 1
    disk.segments[row, SEGMENT_USED] = disk.state[USES]


@inlined_kernel
def hit(disk: Disk, first: int, end: int) -> int:
    """The row of the segment that serves a read; -1 if none does.  One that holds all of it is better, and then the stream's."""
    best = -1
    best_value = 0
    for row in range(disk.segments.shape[0]):
        streams = row == disk.state[CURRENT] and disk.state[STREAM] == READING
        within = first < disk.segments[row, SEGMENT_END] or (
            streams and disk.control[NEXT_HITS] == 1 and disk.control[READ_AHEAD] > 0 and first == disk.segments[row, SEGMENT_END]
        )
        whole = end <= disk.segments[row, SEGMENT_END]
        if first >= disk.segments[row, SEGMENT_FIRST] and within and (whole or streams or disk.control[PARTIAL_HITS] == 1):
            value = 1 + streams + 2 * whole
            if value > best_value:
                best, best_value = row, value
    return best


@inlined_kernel
def victim(disk: Disk) -> int:
    """The row of the segment that a miss takes: an empty one, or the one that was used the longest time ago."""
    best = 0
    for row in range(disk.segments.shape[0]):
        if disk.segments[row, SEGMENT_FIRST] == disk.segments[row, SEGMENT_END]:
            return row
        if disk.segments[row, SEGMENT_USED] < disk.segments[best, SEGMENT_USED]:
            best = row
    return best


@inlined_kernel
def forget_overlapped(disk: Disk, first: int, end: int) -> None:
    """Empty the segments that hold what is being written."""
    for row in range(disk.segments.shape[0]):
        if first < disk.segments[row, SEGMENT_END] and disk.segments[row, SEGMENT_FIRST] < end:
            disk.segments[row, SEGMENT_END] = disk.segments[row, SEGMENT_FIRST]


@inlined_kernel
def read_limit(disk: Disk, end: int, segment_first: int) -> int:
    """Up to where the drive reads for a request that ends before `end`, read-ahead included."""
    bound = disk.control[READ_AHEAD_BOUND]
    if disk.control[READ_AHEAD] == 0 or end == disk.control[SECTORS]:
        return end
    limit = min(end + disk.control[READ_AHEAD], disk.control[SECTORS])
    if bound == _NEXT_TRACK:
        track_first, track_end = track_bounds(disk.extents, end)
        if segment_first < track_first:
            track_end += disk.extents[extent_of(disk.extents, end), SLOTS]
        return min(track_end, disk.control[SECTORS])
    if bound == _TRACK:
        _, track_end = track_bounds(disk.extents, end - 1)
        return max(end, min(limit, track_end))
    if bound == _CYLINDER:
        return max(end, min(limit, cylinder_end(disk.extents, end - 1, disk.control[HEADS])))
    return limit
