"""The read segments of a drive's buffer: what is in them, which one serves a read or is taken, and how far read-ahead goes."""

from flashsim.core.kernel import inlined_kernel
from flashsim.hdd.description import BOUNDS
from flashsim.hdd.engine.stream import position, sector_end
from flashsim.hdd.state.disk import READING, WRITING, Disk
from flashsim.hdd.state.geometry import cylinder_end, extent_of, track_bounds

_TRACK, _CYLINDER, _NEXT_TRACK = (BOUNDS.index(name) for name in ("track", "cylinder", "next-track"))


@inlined_kernel
def destaged(disk: Disk, time: int) -> int:
    """When all writes are on the media, not before `time`."""
    return max(time, disk.state.rest) if disk.state.stream == WRITING else time


@inlined_kernel
def interruptible(disk: Disk, time: int) -> int:
    """When the mechanism can leave its stream, not before `time`: writes are destaged, and the least of a read-ahead is done."""
    if disk.state.stream == WRITING:
        return max(time, disk.state.rest)
    if disk.state.stream == READING and disk.state.least > disk.state.pivot:
        return max(time, sector_end(disk, disk.state.least - 1))
    return time


@inlined_kernel
def fill(disk: Disk, time: int) -> None:
    """Put into the segment what the stream has read until `time`."""
    row = disk.state.current
    if row >= 0 and disk.state.stream == READING:
        disk.segments[row].end = position(disk, time, True)
        bound(disk, row)


@inlined_kernel
def bound(disk: Disk, row: int) -> None:
    """A full segment loses what was read first."""
    if disk.control.segment_size > 0:
        disk.segments[row].first = max(disk.segments[row].first, disk.segments[row].end - disk.control.segment_size)


@inlined_kernel
def use(disk: Disk, row: int) -> None:
    disk.state.uses += 1
    disk.segments[row].used = disk.state.uses


@inlined_kernel
def hit(disk: Disk, first: int, end: int) -> int:
    """The row of the segment that serves a read; -1 if none does.  One that holds all of it is better, and then the stream's."""
    best = -1
    best_value = 0
    for row in range(disk.segments.shape[0]):
        streams = row == disk.state.current and disk.state.stream == READING
        within = first < disk.segments[row].end or (
            streams and disk.control.next_hits == 1 and disk.control.read_ahead > 0 and first == disk.segments[row].end
        )
        whole = end <= disk.segments[row].end
        if first >= disk.segments[row].first and within and (whole or streams or disk.control.partial_hits == 1):
            value = 1 + streams + 2 * whole
            if value > best_value:
                best, best_value = row, value
    return best


@inlined_kernel
def victim(disk: Disk) -> int:
    """The row of the segment that a miss takes: an empty one, or the one that was used the longest time ago."""
    best = 0
    for row in range(disk.segments.shape[0]):
        if disk.segments[row].first == disk.segments[row].end:
            return row
        if disk.segments[row].used < disk.segments[best].used:
            best = row
    return best


@inlined_kernel
def forget_overlapped(disk: Disk, first: int, end: int) -> None:
    """Empty the segments that hold what is being written."""
    for row in range(disk.segments.shape[0]):
        if first < disk.segments[row].end and disk.segments[row].first < end:
            disk.segments[row].end = disk.segments[row].first


@inlined_kernel
def read_limit(disk: Disk, end: int, segment_first: int) -> int:
    """Up to where the drive reads for a request that ends before `end`, read-ahead included."""
    bound = disk.control.read_ahead_bound
    if disk.control.read_ahead == 0 or end == disk.control.sectors:
        return end
    limit = min(end + disk.control.read_ahead, disk.control.sectors)
    if bound == _NEXT_TRACK:
        track_first, track_end = track_bounds(disk.extents, end)
        if segment_first < track_first:
            track_end += disk.extents[extent_of(disk.extents, end)].slots
        return min(track_end, disk.control.sectors)
    if bound == _TRACK:
        _, track_end = track_bounds(disk.extents, end - 1)
        return max(end, min(limit, track_end))
    if bound == _CYLINDER:
        return max(end, min(limit, cylinder_end(disk.extents, end - 1, disk.control.heads)))
    return limit
