"""What the drive's buffer makes of each command: a command is served alone, and all its times follow when it starts.

Reads.  A read that begins in a segment, or with the sector that is next to arrive there, may be a hit.  Any other read is a miss: it takes
the segment that has been empty or unused longest, and the mechanism begins a new stream with it and goes on reading ahead.  Hits move the
stream's limit on.  When the mechanism leaves for something else, the segment keeps what had arrived, until a write overlaps it or a miss
takes it.  Sectors that the host has read leave the segment, unless the drive keeps them.

Writes.  Data cross the link once there is room for the whole command; with that a write is acknowledged, and the mechanism destages it at
once.  A write that starts where the last one ended, before that has been destaged, joins its stream.  Every other write and every miss
first wait until all is destaged: so a read of data that are not yet on the media is served from the media afterwards.  Writes with force
unit access, and those larger than the buffer, are acknowledged when they are on the media.

Work, disconnects and the like stand between these steps as in DiskSim, whose manual (version 4.0, 5.2.1) names them; all are 0 in a simple
drive.
"""

from numba import types

from flashsim.core.kernel import compiled_apart, lean_kernel, spliced_kernel
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE
from flashsim.hdd.engine.segments import destaged, fill, hit, interruptible, read_limit, use, victim
from flashsim.hdd.engine.stream import begin, extend, sector_end, stop
from flashsim.hdd.engine.transfer import count_crossing, overhead_of, read_out, sectors_to_start
from flashsim.hdd.engine.write_back import serve_write
from flashsim.hdd.state.disk import DISK, READING, WRITING, Disk


@spliced_kernel
def serve(disk: Disk, request: int, tag: int, operation: int, flags: int, first: int, end: int, start: int) -> int:
    """Serve one command from `start` on; return when it completes."""
    time = start + overhead_of(disk.control, operation, end - first)
    if operation == READ:
        return serve_read(disk, first, end, time)
    if operation == WRITE:
        return serve_write(disk, request, tag, first, end, flags & FORCE_UNIT_ACCESS != 0, time)
    if operation == FLUSH:
        disk.counters.flushes += 1
        return destaged(disk, time)
    return time  # a trim means nothing to magnetic media


@spliced_kernel
def serve_read(disk: Disk, first: int, end: int, time: int) -> int:
    """Serve a read that the drive takes up at `time`; return when it completes."""
    count_crossing(disk, end - first, disk.control.bus_read)
    disk.counters.reads += 1
    disk.counters.read_bytes += (end - first) * disk.control.sector_size
    fill(disk, time)
    after = disk.state.after
    busy = disk.state.stream == WRITING and disk.state.rest > time
    reselection = disk.control.reselect_first + disk.control.data_preparation
    away = time + disk.control.read_miss[after] + disk.control.disconnect_read[after]
    row = hit(disk, first, end)
    if row >= 0:
        disk.counters.read_hits += 1
        link = time + disk.control.read_hit[after] + disk.control.data_preparation
        if busy and disk.control.hits_while_writing == 0:
            link = max(away, disk.state.rest) + reselection
        arrived = disk.segments[row].end
        link = max(link, _go_on(disk, row, end, time))
    else:
        row = victim(disk)
        _stream_into(disk, row, first, read_limit(disk, end, first), time, True)
        last = first + sectors_to_start(disk.control, end - first) - 1
        link = max(away, sector_end(disk, last)) + reselection
        arrived = first
    use(disk, row)
    if disk.state.current == row:
        disk.state.least = min(disk.state.limit, end + disk.control.read_ahead_least)
    done = read_out(disk, first, end, arrived, link)
    if disk.control.keep_read == 0:
        disk.segments[row].first = end
        disk.segments[row].end = max(end, disk.segments[row].end)
    disk.state.after = 0
    disk.state.last_end = end
    return done + disk.control.complete_read


@compiled_apart(DISK, types.int64, types.int64, types.int64)
@lean_kernel
def _go_on(disk: Disk, row: int, end: int, time: int) -> int:
    """After a hit: the stream goes on, or begins where the segment ends, or is left; return when it can do that for what is missing.

    For read-ahead alone the mechanism does not wait until it can leave its stream.
    """
    limit = read_limit(disk, end, disk.segments[row].first)
    stopped = interruptible(disk, time)
    if row == disk.state.current and disk.state.stream == READING:
        streams = disk.state.rest > time
        if streams or disk.control.read_ahead_on_hit == 1 or end > disk.state.limit:
            goes = time if streams else time + disk.control.read_miss[disk.state.after]
            extend(disk, limit, goes, goes)
        return time
    reached = disk.segments[row].end
    if reached < end or (stopped == time and disk.control.read_ahead_again == 1 and reached < limit):
        _stream_into(disk, row, reached, limit, time, False)
        return stopped if reached < end else time
    if stopped == time and disk.state.stream == READING:
        stop(disk, time)
        disk.state.current = -1
    return time


@lean_kernel
def _stream_into(disk: Disk, row: int, first: int, limit: int, time: int, fresh: bool) -> None:
    """Let the mechanism read from `first` on into a segment, in place of what that holds (`fresh`) or behind it."""
    stopped = interruptible(disk, time)
    fill(disk, stopped)
    moves = max(stopped, time + disk.control.read_miss[disk.state.after])
    before = begin(disk, READING, first, limit, stopped, moves, moves)
    if fresh:
        disk.segments[row].first = first - before if disk.control.read_preceding == 1 else first
    disk.segments[row].end = first
    disk.state.current = row
