"""Writes: into the buffer, acknowledged there or from the media, and destaged at once (the rules are told in `hdd.cache`)."""

from __future__ import annotations

from flashsim.core.kernel import inlined_kernel, spliced_kernel
from flashsim.core.request import Integers
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
def serve_write(
    control: Integers,
    drives: Integers,
    extents: Integers,
    seeks: Integers,
    segments: Integers,
    ring: Integers,
    drive: int,
    request: int,
    first: int,
    end: int,
    forced: bool,
    time: int,
) -> int:
    """Serve a write that the drive takes up at `time`; return when it completes."""
    crossing = count_crossing(control, drives, drive, WRITES, WRITTEN_BYTES, end - first, control[BUS_WRITE])
    fill(control, drives, extents, seeks, segments, drive, time)
    after = drives[drive, AFTER]
    fits = end - first <= control[WRITE_BEHIND]
    buffered = fits and not forced
    work = control[WRITE_HIT + after] if buffered else control[WRITE_MISS + after]
    busy = drives[drive, STREAM] == WRITING and drives[drive, REST] > time
    extra = False
    if busy and first == drives[drive, LIMIT] and fits:
        link = time + work + control[DATA_PREPARATION]
        full = end - control[WRITE_BEHIND] - 1  # the last sector that must be destaged to make room
        if full >= drives[drive, PIVOT]:
            link = max(link, sector_end(control, drives, extents, seeks, drive, full))
        _forget_destaged(drives, ring, drive, position(control, drives, extents, seeks, drive, link, True))
        extend(control, drives, extents, seeks, drive, end, link, _ready(control, extents, first, end, link, crossing))
        forget_overlapped(control, segments, drive, first, end)
    else:
        stopped = interruptible(control, drives, extents, seeks, drive, time)
        fill(control, drives, extents, seeks, segments, drive, stopped)
        _forget_destaged(drives, ring, drive, control[SECTORS])
        extra = control[EXTRA_DISCONNECT] == 1 and not busy and after == 1 and first != drives[drive, LAST_END]
        moves = time + work
        link = moves + control[DATA_PREPARATION]
        if extra:
            moves = time + control[EXTRA_COMMAND] + control[EXTRA_SEEK_DELAY]
            link = time + control[EXTRA_COMMAND] + control[EXTRA_DISCONNECT_FIRST] + control[EXTRA_PAUSE]
            link += control[RESELECT_FIRST] + control[DATA_PREPARATION]
        elif busy:
            link = max(moves + control[DISCONNECT_WRITE], stopped) + control[RESELECT_FIRST] + control[DATA_PREPARATION]
        link = max(link, stopped)
        drives[drive, DESTAGES] += 1
        ready = _ready(control, extents, first, end, link, crossing)
        begin(control, drives, extents, seeks, drive, WRITING, first, end, stopped, max(moves, stopped), ready)
        drives[drive, CURRENT] = -1
        forget_overlapped(control, segments, drive, first, end)
        if control[OWN_WRITE_SEGMENT] == 0:
            row = victim(control, segments, drive)
            use(drives, segments, drive, row)
            segments[row, SEGMENT_FIRST] = first
            segments[row, SEGMENT_END] = end if control[READ_WRITTEN] == 1 else first
            bound(control, segments, row)
    drives[drive, AFTER] = 1
    drives[drive, LAST_END] = end
    done = link + crossing
    if not buffered:
        done += control[EXTRA_DISCONNECT_SECOND] if extra else control[DISCONNECT_WRITE]
        done = max(done, drives[drive, REST]) + (control[RESELECT_OTHER] if extra else control[RESELECT_FIRST])
        return done + control[COMPLETE_WRITE]
    size = _ring_size(drives, ring)
    slot = drive * size + (drives[drive, RING_HEAD] + drives[drive, RING_COUNT]) % size
    ring[slot, RING_FIRST] = first
    ring[slot, RING_END] = end
    ring[slot, RING_REQUEST] = request
    drives[drive, RING_COUNT] += 1
    return done + control[COMPLETE_WRITE]


@inlined_kernel
def _ready(control: Integers, extents: Integers, first: int, end: int, link: int, crossing: int) -> int:
    """When enough of a write is in the buffer to begin on the media, so that the rest arrives in time."""
    count = end - first
    needed = max(1, count * control[WRITE_START] // SHARE_UNIT)
    if control[WRITE_START_MOST] > 0:
        needed = min(needed, control[WRITE_START_MOST])
    there = link + crossing_time(needed, control[SECTOR_SIZE], control[LINK_RATE], control[BUS_WRITE])
    media = (count - 1) * control[ROTATION] // extents[extent_of(extents, first), SLOTS]
    return max(there, link + crossing - media)


@inlined_kernel
def _ring_size(drives: Integers, ring: Integers) -> int:
    """Rows of the ring that one drive has; of the states every drive has two."""
    return ring.shape[0] * 2 // drives.shape[0]


@inlined_kernel
def _forget_destaged(drives: Integers, ring: Integers, drive: int, sector: int) -> None:
    """Drop writes that are wholly before `sector` from the ring; their rows stay, for a power cut may come before they are destaged."""
    size = _ring_size(drives, ring)
    while drives[drive, RING_COUNT] > 0 and ring[drive * size + drives[drive, RING_HEAD], RING_END] <= sector:
        drives[drive, RING_HEAD] = (drives[drive, RING_HEAD] + 1) % size
        drives[drive, RING_COUNT] -= 1
