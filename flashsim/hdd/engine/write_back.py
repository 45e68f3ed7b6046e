"""Writes: into the buffer, acknowledged there or from the media, and destaged at once (the rules are told in `hdd.engine.cache`)."""

from flashsim.core.kernel import inlined_kernel, spliced_kernel
from flashsim.hdd.engine.segments import bound, fill, forget_overlapped, interruptible, use, victim
from flashsim.hdd.engine.stream import begin, extend, position, sector_end
from flashsim.hdd.engine.transfer import count_crossing
from flashsim.hdd.state.disk import Disk
from flashsim.hdd.state.geometry import extent_of
from flashsim.hdd.state.layout import SLOTS
from flashsim.hdd.state.link import crossing_time
from flashsim.hdd.state.terms import (
    AFTER,
    BUS_WRITE,
    COMPLETE_WRITE,
    CURRENT,
    DATA_PREPARATION,
    DESTAGES,
    DISCONNECT_WRITE,
    EXTRA_COMMAND,
    EXTRA_DISCONNECT,
    EXTRA_DISCONNECT_FIRST,
    EXTRA_DISCONNECT_SECOND,
    EXTRA_PAUSE,
    EXTRA_SEEK_DELAY,
    LAST_END,
    LIMIT,
    LINK_RATE,
    OWN_WRITE_SEGMENT,
    PIVOT,
    READ_WRITTEN,
    RESELECT_FIRST,
    RESELECT_OTHER,
    REST,
    RING_COUNT,
    RING_END,
    RING_FIRST,
    RING_HEAD,
    RING_REQUEST,
    RING_TAG,
    ROTATION,
    SECTOR_SIZE,
    SECTORS,
    SEGMENT_END,
    SEGMENT_FIRST,
    SHARE_UNIT,
    STREAM,
    WRITE_BEHIND,
    WRITE_HIT,
    WRITE_MISS,
    WRITE_START,
    WRITE_START_MOST,
    WRITES,
    WRITING,
    WRITTEN_BYTES,
)


@spliced_kernel
def serve_write(disk: Disk, request: int, tag: int, first: int, end: int, forced: bool, time: int) -> int:
    """Serve a write that the drive takes up at `time`; return when it completes."""
    crossing = count_crossing(disk, WRITES, WRITTEN_BYTES, end - first, disk.control[BUS_WRITE])
    fill(disk, time)
    after = disk.state[AFTER]
    fits = end - first <= disk.control[WRITE_BEHIND]
    buffered = fits and not forced
    work = disk.control[WRITE_HIT + after] if buffered else disk.control[WRITE_MISS + after]
    busy = disk.state[STREAM] == WRITING and disk.state[REST] > time
    extra = False
    if busy and first == disk.state[LIMIT] and fits:
        link = _continue(disk, first, end, time + work, crossing)
    else:
        extra = disk.control[EXTRA_DISCONNECT] == 1 and not busy and after == 1 and first != disk.state[LAST_END]
        link = _destage(disk, first, end, time, time + work, busy, extra, crossing)
    disk.state[AFTER] = 1
    disk.state[LAST_END] = end
    done = link + crossing
    if not buffered:
        done += disk.control[EXTRA_DISCONNECT_SECOND] if extra else disk.control[DISCONNECT_WRITE]
        done = max(done, disk.state[REST]) + (disk.control[RESELECT_OTHER] if extra else disk.control[RESELECT_FIRST])
        return done + disk.control[COMPLETE_WRITE]
    slot = (disk.state[RING_HEAD] + disk.state[RING_COUNT]) % disk.ring.shape[0]
    disk.ring[slot, RING_FIRST] = first
    disk.ring[slot, RING_END] = end
    disk.ring[slot, RING_REQUEST] = request
    disk.ring[slot, RING_TAG] = tag
    disk.state[RING_COUNT] += 1
    return done + disk.control[COMPLETE_WRITE]


@spliced_kernel
def _continue(disk: Disk, first: int, end: int, worked: int, crossing: int) -> int:
    link = worked + disk.control[DATA_PREPARATION]
    full = end - disk.control[WRITE_BEHIND] - 1  # the last sector that must be destaged to make room
    if full >= disk.state[PIVOT]:
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
    _forget_destaged(disk, disk.control[SECTORS])
    moves = worked
    link = moves + disk.control[DATA_PREPARATION]
    if extra:
        moves = time + disk.control[EXTRA_COMMAND] + disk.control[EXTRA_SEEK_DELAY]
        link = time + disk.control[EXTRA_COMMAND] + disk.control[EXTRA_DISCONNECT_FIRST] + disk.control[EXTRA_PAUSE]
        link += disk.control[RESELECT_FIRST] + disk.control[DATA_PREPARATION]
    elif busy:
        link = max(moves + disk.control[DISCONNECT_WRITE], stopped) + disk.control[RESELECT_FIRST] + disk.control[DATA_PREPARATION]
    link = max(link, stopped)
    disk.state[DESTAGES] += 1
    begin(disk, WRITING, first, end, stopped, max(moves, stopped), _ready(disk, first, end, link, crossing))
    disk.state[CURRENT] = -1
    forget_overlapped(disk, first, end)
    if disk.control[OWN_WRITE_SEGMENT] == 0:
        row = victim(disk)
        use(disk, row)
        disk.segments[row, SEGMENT_FIRST] = first
        disk.segments[row, SEGMENT_END] = end if disk.control[READ_WRITTEN] == 1 else first
        bound(disk, row)
    return int(link)


@inlined_kernel
def _ready(disk: Disk, first: int, end: int, link: int, crossing: int) -> int:
    """When enough of a write is in the buffer to begin on the media, so that the rest arrives in time."""
    count = end - first
    needed = max(1, count * disk.control[WRITE_START] // SHARE_UNIT)
    if disk.control[WRITE_START_MOST] > 0:
        needed = min(needed, disk.control[WRITE_START_MOST])
    there = link + crossing_time(needed, disk.control[SECTOR_SIZE], disk.control[LINK_RATE], disk.control[BUS_WRITE])
    media = (count - 1) * disk.control[ROTATION] // disk.extents[extent_of(disk.extents, first), SLOTS]
    return max(there, link + crossing - media)


@inlined_kernel
def _forget_destaged(disk: Disk, sector: int) -> None:
    """Drop writes that are wholly before `sector` from the ring; their rows stay, for a power cut may come before they are destaged."""
    while disk.state[RING_COUNT] > 0 and disk.ring[disk.state[RING_HEAD], RING_END] <= sector:
        disk.state[RING_HEAD] = (disk.state[RING_HEAD] + 1) % disk.ring.shape[0]
        disk.state[RING_COUNT] -= 1
