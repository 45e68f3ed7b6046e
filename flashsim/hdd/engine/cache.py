"""Service of each command by the drive's buffer: a command is served alone, and all its times follow when it starts.

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

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE
from flashsim.hdd.engine import buffer
from flashsim.hdd.engine.stream import begin, extend, position, sector_end, stop
from flashsim.hdd.state.disk import READING, SHARE_UNIT, WRITING, DiskState
from flashsim.hdd.state.geometry import extent_of


@inlined_kernel
def serve(disk: DiskState, request: int, tag: int, operation: int, flags: int, first: int, end: int, start: int) -> int:
    """Serve one command from `start` on; return when it completes."""
    time = start + buffer.overhead_of(disk.control, operation, end - first)
    disk.state.freed, disk.state.waits, disk.state.hit = time, 0, 0
    if operation == READ:
        return serve_read(disk, first, end, time)
    if operation == WRITE:
        return serve_write(disk, request, tag, first, end, flags & FORCE_UNIT_ACCESS != 0, time)
    if operation == FLUSH:
        disk.counters.flushes += 1
        disk.state.freed = buffer.destage_time(disk, time)
        return disk.state.freed
    return time  # a trim means nothing to magnetic media


@inlined_kernel
def serve_read(disk: DiskState, first: int, end: int, time: int) -> int:
    """Serve a read that the drive takes up at `time`; return when it completes."""
    disk.counters.link_time += buffer.crossing(disk, end - first, disk.control.bus_read)
    disk.counters.reads += 1
    disk.counters.read_bytes += (end - first) * disk.control.sector_size
    buffer.fill(disk, time)
    after = disk.state.after
    busy = disk.state.stream == WRITING and disk.state.rest > time
    reselection = disk.control.reselect_first + disk.control.data_preparation
    away = time + disk.control.read_miss[after] + disk.control.disconnect_read[after]
    row = buffer.find_hit(disk, first, end)
    if row >= 0:
        disk.counters.read_hits += 1
        link = time + disk.control.read_hit[after] + disk.control.data_preparation
        if busy and disk.control.hits_while_writing == 0:
            disk.state.freed = disk.state.rest
            link = max(away, disk.state.rest) + reselection
        arrived = disk.segments[row].end
        disk.state.hit = arrived >= end
        link = max(link, _go_on(disk, row, end, time))
    else:
        row = buffer.victim(disk)
        disk.state.freed, disk.state.waits = buffer.interruptible(disk, time), 1
        _stream_into(disk, row, first, buffer.read_limit(disk, end, first), time, True)
        last = first + buffer.sectors_to_start(disk.control, end - first) - 1
        link = max(away, sector_end(disk, last)) + reselection
        arrived = first
    buffer.use(disk, row)
    if disk.state.current == row:
        disk.state.least = min(disk.state.limit, end + disk.control.read_ahead_least)
    end_time = buffer.read_out(disk, first, end, arrived, link)
    if disk.control.keep_read == 0:
        disk.segments[row].first = end
        disk.segments[row].end = max(end, disk.segments[row].end)
    disk.state.after, disk.state.last_end = 0, end
    return end_time + disk.control.complete_read


@lean_kernel
def _go_on(disk: DiskState, row: int, end: int, time: int) -> int:
    """After a hit: the stream goes on, or begins where the segment ends, or is left; return when it can do that for what is missing.

    For read-ahead alone the mechanism does not wait until it can leave its stream.
    """
    limit = buffer.read_limit(disk, end, disk.segments[row].first)
    stopped = buffer.interruptible(disk, time)
    if row == disk.state.current and disk.state.stream == READING:
        streams = disk.state.rest > time
        if streams or disk.control.read_ahead_on_hit == 1 or end > disk.state.limit:
            goes = time if streams else time + disk.control.read_miss[disk.state.after]
            extend(disk, limit, goes, goes)
        return time
    reached = disk.segments[row].end
    if reached < end or (stopped == time and disk.control.read_ahead_again == 1 and reached < limit):
        if reached < end:
            disk.state.freed, disk.state.waits = max(disk.state.freed, stopped), 1
        _stream_into(disk, row, reached, limit, time, False)
        return stopped if reached < end else time
    if stopped == time and disk.state.stream == READING:
        stop(disk, time)
        disk.state.current = -1
    return time


@lean_kernel
def _stream_into(disk: DiskState, row: int, first: int, limit: int, time: int, fresh: bool) -> None:
    """Let the mechanism read from `first` on into a segment, in place of what that holds (`fresh`) or behind it."""
    stopped = buffer.interruptible(disk, time)
    buffer.fill(disk, stopped)
    moves = max(stopped, time + disk.control.read_miss[disk.state.after])
    before = begin(disk, READING, first, limit, stopped, moves, moves)
    if fresh:
        disk.segments[row].first = first - before if disk.control.read_preceding == 1 else first
    disk.segments[row].end = first
    disk.state.current = row


@inlined_kernel
def serve_write(disk: DiskState, request: int, tag: int, first: int, end: int, forced: bool, time: int) -> int:
    """Serve a write that the drive takes up at `time`; return when it completes."""
    crossing = buffer.crossing(disk, end - first, disk.control.bus_write)
    disk.counters.link_time += crossing
    disk.counters.writes += 1
    disk.counters.written_bytes += (end - first) * disk.control.sector_size
    buffer.fill(disk, time)
    after = disk.state.after
    fits = end - first <= disk.control.write_behind
    buffered = fits and not forced
    work = disk.control.write_hit[after] if buffered else disk.control.write_miss[after]
    busy = disk.state.stream == WRITING and disk.state.rest > time
    extra = False
    if busy and first == disk.state.limit and fits:
        link = _continue(disk, first, end, time + work, crossing)
    else:
        extra = disk.control.extra_disconnect == 1 and not busy and after == 1 and first != disk.state.last_end
        link = _destage(disk, first, end, time, time + work, busy, extra, crossing)
    disk.state.after, disk.state.last_end = 1, end
    end_time = link + crossing
    disk.state.waits = not buffered
    if not buffered:
        end_time += disk.control.extra_disconnect_second if extra else disk.control.disconnect_write
        end_time = max(end_time, disk.state.rest) + (disk.control.reselect_other if extra else disk.control.reselect_first)
        return end_time + disk.control.complete_write
    slot = (disk.state.ring_head + disk.state.ring_count) % disk.ring.shape[0]
    disk.ring[slot].first, disk.ring[slot].end = first, end
    disk.ring[slot].request, disk.ring[slot].tag = request, tag
    disk.state.ring_count += 1
    return end_time + disk.control.complete_write


@inlined_kernel
def _continue(disk: DiskState, first: int, end: int, worked: int, crossing: int) -> int:
    link = worked + disk.control.data_preparation
    full = end - disk.control.write_behind - 1  # the last sector that must be destaged to make room
    if full >= disk.state.pivot:
        freed = sector_end(disk, full)
        if freed > link:
            link = disk.state.freed = freed
    _forget_destaged(disk, position(disk, link, True))
    extend(disk, end, link, _ready(disk, first, end, link, crossing))
    buffer.forget_overlapped(disk, first, end)
    return int(link)


@inlined_kernel
def _destage(disk: DiskState, first: int, end: int, time: int, worked: int, busy: bool, extra: bool, crossing: int) -> int:
    """Begin the stream of a write once the mechanism can leave the one before; return when the write has the link."""
    stopped = disk.state.freed = buffer.interruptible(disk, time)
    buffer.fill(disk, stopped)
    _forget_destaged(disk, disk.control.sectors)
    moves = worked
    link = moves + disk.control.data_preparation
    if extra:
        moves = time + disk.control.extra_command + disk.control.extra_seek_delay
        link = time + disk.control.extra_command + disk.control.extra_disconnect_first + disk.control.extra_pause
        link += disk.control.reselect_first + disk.control.data_preparation
    elif busy:
        link = max(moves + disk.control.disconnect_write, stopped) + disk.control.reselect_first + disk.control.data_preparation
    link = max(link, stopped)
    disk.counters.destages += 1
    begin(disk, WRITING, first, end, stopped, max(moves, stopped), _ready(disk, first, end, link, crossing))
    disk.state.current = -1
    buffer.forget_overlapped(disk, first, end)
    if disk.control.own_write_segment == 0:
        row = buffer.victim(disk)
        buffer.use(disk, row)
        disk.segments[row].first = first
        disk.segments[row].end = end if disk.control.read_written == 1 else first
        buffer.limit_segment(disk, row)
    return int(link)


@inlined_kernel
def _ready(disk: DiskState, first: int, end: int, link: int, crossing: int) -> int:
    """Time when enough of a write is in the buffer to begin on the media, so that the rest arrives in time."""
    count = end - first
    sectors = max(1, count * disk.control.write_start // SHARE_UNIT)
    if disk.control.write_start_most > 0:
        sectors = min(sectors, disk.control.write_start_most)
    there = link + buffer.crossing(disk, sectors, disk.control.bus_write)
    media = (count - 1) * disk.control.rotation // disk.extents[extent_of(disk.extents, first)].slots
    return max(there, link + crossing - media)


@inlined_kernel
def _forget_destaged(disk: DiskState, sector: int) -> None:
    """Drop writes that are wholly before `sector` from the ring; their rows stay, for a power cut may come before they are destaged."""
    while disk.state.ring_count > 0 and disk.ring[disk.state.ring_head].end <= sector:
        disk.state.ring_head = (disk.state.ring_head + 1) % disk.ring.shape[0]
        disk.state.ring_count -= 1
