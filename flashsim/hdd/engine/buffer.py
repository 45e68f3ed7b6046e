"""The drive's buffer: read segments, which one serves a read or is taken, how far read-ahead goes, and how data cross the link.

Data cross in time of link, bus and buffer, and not before they have come off the media.
"""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import RecordArray
from flashsim.core.request import READ, WRITE
from flashsim.hdd.description import BOUNDS
from flashsim.hdd.engine.stream import position, sector_end
from flashsim.hdd.state.disk import READING, SHARE_UNIT, WRITING, DiskState
from flashsim.hdd.state.geometry import crossing_time, cylinder_end, extent_of, piece_first, track_bounds

_TRACK, _CYLINDER, _NEXT_TRACK = (BOUNDS.index(name) for name in ("track", "cylinder", "next-track"))


@inlined_kernel
def destage_time(disk: DiskState, time: int) -> int:
    """Time when all writes are on the media, not before `time`."""
    return max(time, disk.state.rest) if disk.state.stream == WRITING else time


@inlined_kernel
def interruptible(disk: DiskState, time: int) -> int:
    """Time when the mechanism can leave its stream, not before `time`: writes are destaged, and the least of a read-ahead is done."""
    if disk.state.stream == READING and disk.state.least > disk.state.pivot:
        return max(time, sector_end(disk, disk.state.least - 1))
    return destage_time(disk, time)


@inlined_kernel
def fill(disk: DiskState, time: int) -> None:
    """Put into the segment what the stream has read until `time`."""
    row = disk.state.current
    if row >= 0 and disk.state.stream == READING:
        disk.segments[row].end = position(disk, time, True)
        limit_segment(disk, row)


@inlined_kernel
def limit_segment(disk: DiskState, row: int) -> None:
    """A full segment loses what was read first."""
    if disk.control.segment_size > 0:
        disk.segments[row].first = max(disk.segments[row].first, disk.segments[row].end - disk.control.segment_size)


@inlined_kernel
def use(disk: DiskState, row: int) -> None:
    disk.state.uses += 1
    disk.segments[row].used = disk.state.uses


@inlined_kernel
def find_hit(disk: DiskState, first: int, end: int) -> int:
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
def victim(disk: DiskState) -> int:
    """The row of the segment that a miss takes: an empty one, or the one that was used the longest time ago."""
    best = 0
    for row in range(disk.segments.shape[0]):
        if disk.segments[row].first == disk.segments[row].end:
            return row
        if disk.segments[row].used < disk.segments[best].used:
            best = row
    return best


@inlined_kernel
def forget_overlapped(disk: DiskState, first: int, end: int) -> None:
    """Empty the segments that hold what is being written."""
    for row in range(disk.segments.shape[0]):
        if first < disk.segments[row].end and disk.segments[row].first < end:
            disk.segments[row].end = disk.segments[row].first


@inlined_kernel
def read_limit(disk: DiskState, end: int, segment_first: int) -> int:
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


@inlined_kernel
def overhead_of(control: RecordArray, operation: int, sectors: int) -> int:
    """The controller's work on a command before anything else; of a read or write in parts, on all but the first besides."""
    if control.command_size == 0 or operation not in (READ, WRITE):
        return control.overhead
    hit = control.read_hit[0] if operation == READ else control.write_hit[1]
    further = (sectors + control.command_size - 1) // control.command_size - 1
    return control.overhead + further * (control.overhead + hit)


@inlined_kernel
def crossing(disk: DiskState, sectors: int, bus: int) -> int:
    """Time of sectors over the link and a bus of `bus` ns a sector."""
    return crossing_time(sectors, disk.control.sector_size, disk.control.link_rate, bus)


@inlined_kernel
def sectors_to_start(control: RecordArray, sectors: int) -> int:
    """Sectors of a read that must be there before its transfer starts."""
    share = sectors * control.read_start // SHARE_UNIT
    return min(sectors, max(share, control.read_start_least))


@lean_kernel
def read_out(disk: DiskState, first: int, end: int, arrived: int, link: int) -> int:
    """Time when sectors have crossed to the host: the link is theirs at `link`, and from `arrived` on they come with the stream."""
    bus = disk.control.bus_read
    if disk.control.hold_reads == 0 and arrived < end:
        return _read_out_in_parts(disk, first, end, arrived, link)
    end_time = link + crossing(disk, end - first, bus)
    sector = max(first, arrived)
    while sector < end:
        extent = extent_of(disk.extents, sector)
        last = min(end, piece_first(disk.extents, extent, sector) + disk.extents[extent].per_track) - 1
        end_time = max(end_time, sector_end(disk, sector) + crossing(disk, end - sector, bus))
        end_time = max(end_time, sector_end(disk, last) + crossing(disk, end - last, bus))
        sector = last + 1
    return end_time


@lean_kernel
def _read_out_in_parts(disk: DiskState, first: int, end: int, arrived: int, link: int) -> int:
    """Read out (see `read_out`), but give the link away whenever all that is there has crossed, until enough has come again."""
    bus = disk.control.bus_read
    time = link
    out = first
    while out < end:
        there = arrived
        if disk.state.stream == READING:
            there = max(arrived, position(disk, time, False))
        there = min(there, end)
        if there > out:
            time += crossing(disk, there - out, bus)
            out = there
        else:
            last = out + min(end - out, sectors_to_start(disk.control, end - first)) - 1
            time = max(time + disk.control.disconnect_read[disk.state.after], sector_end(disk, last))
            time += disk.control.reselect_first + disk.control.data_preparation
    return time
