"""Writes: into the buffer, acknowledged there or from the media, and destaged at once (the rules are told in `hdd.engine.cache`)."""

from flashsim.core.kernel import inlined_kernel, spliced_kernel
from flashsim.hdd.engine.segments import bound, fill, forget_overlapped, interruptible, use, victim
from flashsim.hdd.engine.stream import begin, extend, position, sector_end
from flashsim.hdd.engine.transfer import count_crossing
from flashsim.hdd.state.disk import SHARE_UNIT, WRITING, Disk
from flashsim.hdd.state.geometry import extent_of
from flashsim.hdd.state.link import crossing_time


@spliced_kernel
def serve_write(disk: Disk, request: int, tag: int, first: int, end: int, forced: bool, time: int) -> int:
    """Serve a write that the drive takes up at `time`; return when it completes."""
    crossing = count_crossing(disk, end - first, disk.control.bus_write)
    disk.counters.writes += 1
    disk.counters.written_bytes += (end - first) * disk.control.sector_size
    fill(disk, time)
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
    disk.state.after = 1
    disk.state.last_end = end
    done = link + crossing
    if not buffered:
        done += disk.control.extra_disconnect_second if extra else disk.control.disconnect_write
        done = max(done, disk.state.rest) + (disk.control.reselect_other if extra else disk.control.reselect_first)
        return done + disk.control.complete_write
    slot = (disk.state.ring_head + disk.state.ring_count) % disk.ring.shape[0]
    disk.ring[slot].first = first
    disk.ring[slot].end = end
    disk.ring[slot].request = request
    disk.ring[slot].tag = tag
    disk.state.ring_count += 1
    return done + disk.control.complete_write


@spliced_kernel
def _continue(disk: Disk, first: int, end: int, worked: int, crossing: int) -> int:
    link = worked + disk.control.data_preparation
    full = end - disk.control.write_behind - 1  # the last sector that must be destaged to make room
    if full >= disk.state.pivot:
        link = max(link, sector_end(disk, full))
    _forget_destaged(disk, position(disk, link, True))
    extend(disk, end, link, _ready(disk, first, end, link, crossing))
    forget_overlapped(disk, first, end)
    return int(link)


@spliced_kernel
def _destage(disk: Disk, first: int, end: int, time: int, worked: int, busy: bool, extra: bool, crossing: int) -> int:
    """Begin the stream of a write once the mechanism can leave the one before; return when the write has the link."""
    stopped = interruptible(disk, time)
    fill(disk, stopped)
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
    forget_overlapped(disk, first, end)
    if disk.control.own_write_segment == 0:
        row = victim(disk)
        use(disk, row)
        disk.segments[row].first = first
        disk.segments[row].end = end if disk.control.read_written == 1 else first
        bound(disk, row)
    return int(link)


@inlined_kernel
def _ready(disk: Disk, first: int, end: int, link: int, crossing: int) -> int:
    """When enough of a write is in the buffer to begin on the media, so that the rest arrives in time."""
    count = end - first
    needed = max(1, count * disk.control.write_start // SHARE_UNIT)
    if disk.control.write_start_most > 0:
        needed = min(needed, disk.control.write_start_most)
    there = link + crossing_time(needed, disk.control.sector_size, disk.control.link_rate, disk.control.bus_write)
    media = (count - 1) * disk.control.rotation // disk.extents[extent_of(disk.extents, first)].slots
    return max(there, link + crossing - media)


@inlined_kernel
def _forget_destaged(disk: Disk, sector: int) -> None:
    """Drop writes that are wholly before `sector` from the ring; their rows stay, for a power cut may come before they are destaged."""
    while disk.state.ring_count > 0 and disk.ring[disk.state.ring_head].end <= sector:
        disk.state.ring_head = (disk.state.ring_head + 1) % disk.ring.shape[0]
        disk.state.ring_count -= 1
