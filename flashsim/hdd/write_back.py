"""Writes: into the buffer, acknowledged there or from the media, and destaged at once (the rules are told in `hdd.cache`)."""

from __future__ import annotations

from flashsim.core.kernel import inlined_kernel, spliced_kernel
from flashsim.hdd.disk import Disk
from flashsim.hdd.geometry import extent_of
from flashsim.hdd.layout import SLOTS
from flashsim.hdd.segments import bound, fill, forget_overlapped, interruptible, use, victim
from flashsim.hdd.stream import begin, extend, position, sector_end
from flashsim.hdd.terms import (
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
from flashsim.hdd.transfer import count_crossing, crossing_time


@spliced_kernel
def serve_write(disk: Disk, drive: int, request: int, first: int, end: int, forced: bool, time: int) -> int:
    """Serve a write that the drive takes up at `time`; return when it completes."""
    crossing = count_crossing(disk, drive, WRITES, WRITTEN_BYTES, end - first, disk.control[BUS_WRITE])
    fill(disk, drive, time)
    after = disk.drives[drive, AFTER]
    fits = end - first <= disk.control[WRITE_BEHIND]
    buffered = fits and not forced
    work = disk.control[WRITE_HIT + after] if buffered else disk.control[WRITE_MISS + after]
    busy = disk.drives[drive, STREAM] == WRITING and disk.drives[drive, REST] > time
    extra = False
    if busy and first == disk.drives[drive, LIMIT] and fits:
        link = time + work + disk.control[DATA_PREPARATION]
        full = end - disk.control[WRITE_BEHIND] - 1  # the last sector that must be destaged to make room
        if full >= disk.drives[drive, PIVOT]:
            link = max(link, sector_end(disk, drive, full))
        _forget_destaged(disk, drive, position(disk, drive, link, True))
        extend(disk, drive, end, link, _ready(disk, first, end, link, crossing))
        forget_overlapped(disk, drive, first, end)
    else:
        stopped = interruptible(disk, drive, time)
        fill(disk, drive, stopped)
        _forget_destaged(disk, drive, disk.control[SECTORS])
        extra = disk.control[EXTRA_DISCONNECT] == 1 and not busy and after == 1 and first != disk.drives[drive, LAST_END]
        moves = time + work
        link = moves + disk.control[DATA_PREPARATION]
        if extra:
            moves = time + disk.control[EXTRA_COMMAND] + disk.control[EXTRA_SEEK_DELAY]
            link = time + disk.control[EXTRA_COMMAND] + disk.control[EXTRA_DISCONNECT_FIRST] + disk.control[EXTRA_PAUSE]
            link += disk.control[RESELECT_FIRST] + disk.control[DATA_PREPARATION]
        elif busy:
            link = max(moves + disk.control[DISCONNECT_WRITE], stopped) + disk.control[RESELECT_FIRST] + disk.control[DATA_PREPARATION]
        link = max(link, stopped)
        disk.drives[drive, DESTAGES] += 1
        ready = _ready(disk, first, end, link, crossing)
        begin(disk, drive, WRITING, first, end, stopped, max(moves, stopped), ready)
        disk.drives[drive, CURRENT] = -1
        forget_overlapped(disk, drive, first, end)
        if disk.control[OWN_WRITE_SEGMENT] == 0:
            row = victim(disk, drive)
            use(disk, drive, row)
            disk.segments[row, SEGMENT_FIRST] = first
            disk.segments[row, SEGMENT_END] = end if disk.control[READ_WRITTEN] == 1 else first
            bound(disk, row)
    disk.drives[drive, AFTER] = 1
    disk.drives[drive, LAST_END] = end
    done = link + crossing
    if not buffered:
        done += disk.control[EXTRA_DISCONNECT_SECOND] if extra else disk.control[DISCONNECT_WRITE]
        done = max(done, disk.drives[drive, REST]) + (disk.control[RESELECT_OTHER] if extra else disk.control[RESELECT_FIRST])
        return done + disk.control[COMPLETE_WRITE]
    size = _ring_size(disk)
    slot = drive * size + (disk.drives[drive, RING_HEAD] + disk.drives[drive, RING_COUNT]) % size
    disk.ring[slot, RING_FIRST] = first
    disk.ring[slot, RING_END] = end
    disk.ring[slot, RING_REQUEST] = request
    disk.drives[drive, RING_COUNT] += 1
    return done + disk.control[COMPLETE_WRITE]


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
def _ring_size(disk: Disk) -> int:
    """Rows of the ring that one drive has; of the states every drive has two."""
    return disk.ring.shape[0] * 2 // disk.drives.shape[0]


@inlined_kernel
def _forget_destaged(disk: Disk, drive: int, sector: int) -> None:
    """Drop writes that are wholly before `sector` from the ring; their rows stay, for a power cut may come before they are destaged."""
    size = _ring_size(disk)
    while disk.drives[drive, RING_COUNT] > 0 and disk.ring[drive * size + disk.drives[drive, RING_HEAD], RING_END] <= sector:
        disk.drives[drive, RING_HEAD] = (disk.drives[drive, RING_HEAD] + 1) % size
        disk.drives[drive, RING_COUNT] -= 1
