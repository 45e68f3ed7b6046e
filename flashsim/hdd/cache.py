"""What the drive's two cache segments make of each command: a command is served alone, and all its times follow when it starts.

Read-ahead.  A read that finds its first sector in the segment, or next to arrive there, is a hit.  Any other read is a miss: the
mechanism begins a new stream with it and goes on reading, up to the segment's size after the last sector asked for.  The segment
keeps what lies beyond the last read; hits move the stream's limit on.  When the mechanism leaves for a write, the segment keeps what
had arrived and serves reads that lie in it whole, until a write overlaps it or a miss replaces it.

Write-behind.  Data are in the segment when they have crossed the link, which they do once there is room for the whole command; with
that a write is acknowledged, and the mechanism destages it at once.  A write that starts where the last one ended, before that has
been destaged, joins its stream.  Every other write and every miss first wait until the segment has been destaged: so a read of data
that are not yet on the media is served from the media afterwards.  Writes with force unit access, and those larger than the segment,
are acknowledged when they are on the media.
"""

from __future__ import annotations

from flashsim.core.kernel import kernel
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE, Integers
from flashsim.hdd.stream import (
    DESTAGES,
    FLUSHES,
    KEPT,
    KEPT_END,
    LIMIT,
    LINK_RATE,
    LINK_TIME,
    OVERHEAD,
    PIVOT,
    READ_AHEAD,
    READ_BYTES,
    READ_HITS,
    READING,
    READS,
    REST,
    RING_COUNT,
    RING_HEAD,
    SECTOR_SIZE,
    SECTORS,
    STREAM,
    WRITE_BEHIND,
    WRITES,
    WRITING,
    WRITTEN_BYTES,
    begin,
    extend,
    position,
    sector_end,
)

#: Where read-ahead ends before its size: nowhere, at the end of the track or cylinder of the request, or at the end of the track of the
#: sector behind it, one track later if the segment begins before that track.
BOUNDS = ("none", "track", "cylinder", "next-track")

# Columns of the ring of acknowledged writes.
RING_FIRST, RING_END, RING_REQUEST = range(3)
RING_COLUMNS = 3

_SECOND = 1_000_000_000


@kernel
def crossing_time(size: int, rate: int) -> int:
    """Nanoseconds for `size` bytes to cross a link of `rate` bytes a second, rounded to nearest, at least 1."""
    return max(1, size // rate * _SECOND + (size % rate * _SECOND + rate // 2) // rate)


@kernel
def serve(
    drive: Integers,
    zones: Integers,
    seeks: Integers,
    ring: Integers,
    request: int,
    operation: int,
    flags: int,
    offset: int,
    length: int,
    start: int,
) -> int:
    """Serve one command from `start` on; return when it completes."""
    time = start + drive[OVERHEAD]
    first = offset // drive[SECTOR_SIZE]
    end = first + length // drive[SECTOR_SIZE]
    if operation == READ:
        return _read(drive, zones, seeks, first, end, time)
    if operation == WRITE:
        return _write(drive, zones, seeks, ring, request, first, end, flags & FORCE_UNIT_ACCESS != 0, time)
    if operation == FLUSH:
        drive[FLUSHES] += 1
        return _destaged(drive, time)
    return time  # a trim means nothing to magnetic media


@kernel
def _destaged(drive: Integers, time: int) -> int:
    """When the write-behind segment is empty, not before `time`."""
    return max(time, drive[REST]) if drive[STREAM] == WRITING else time


@kernel
def _read(drive: Integers, zones: Integers, seeks: Integers, first: int, end: int, time: int) -> int:
    size = (end - first) * drive[SECTOR_SIZE]
    crossing = crossing_time(size, drive[LINK_RATE])
    drive[READS] += 1
    drive[READ_BYTES] += size
    drive[LINK_TIME] += crossing
    arrived = 0
    if drive[STREAM] == READING:
        arrived = position(drive, zones, seeks, time)
        hit = drive[READ_AHEAD] > 0 and drive[KEPT] <= first <= arrived
    else:
        arrived = drive[KEPT_END]
        hit = drive[KEPT] <= first and end <= arrived
    limit = min(end + drive[READ_AHEAD], drive[SECTORS])
    if hit:
        drive[READ_HITS] += 1
        if drive[STREAM] == READING:
            extend(drive, zones, seeks, limit, time, time)
    else:
        time = _destaged(drive, time)
        begin(drive, zones, seeks, READING, first, limit, time, time)
        arrived = first
    drive[KEPT] = end
    first_there = time if first < arrived else sector_end(drive, zones, seeks, first)
    last_there = time if end <= arrived else sector_end(drive, zones, seeks, end - 1)
    return max(first_there + crossing, last_there + crossing_time(drive[SECTOR_SIZE], drive[LINK_RATE]))


@kernel
def _write(
    drive: Integers, zones: Integers, seeks: Integers, ring: Integers, request: int, first: int, end: int, forced: bool, time: int
) -> int:
    size = (end - first) * drive[SECTOR_SIZE]
    crossing = crossing_time(size, drive[LINK_RATE])
    drive[WRITES] += 1
    drive[WRITTEN_BYTES] += size
    drive[LINK_TIME] += crossing
    if drive[STREAM] == READING:
        drive[KEPT_END] = position(drive, zones, seeks, time)
    if first < drive[KEPT_END] and drive[KEPT] < end:
        drive[KEPT_END] = drive[KEPT]
    fits = end - first <= drive[WRITE_BEHIND]
    if drive[STREAM] == WRITING and drive[REST] > time and first == drive[LIMIT] and fits:
        full = end - drive[WRITE_BEHIND] - 1  # the last sector that must be destaged to make room
        if full >= drive[PIVOT]:
            time = max(time, sector_end(drive, zones, seeks, full))
        _forget_destaged(drive, ring, position(drive, zones, seeks, time))
        extend(drive, zones, seeks, end, time, time + crossing)
    else:
        time = _destaged(drive, time)
        _forget_destaged(drive, ring, drive[SECTORS])
        drive[DESTAGES] += 1
        begin(drive, zones, seeks, WRITING, first, end, time, time + crossing)
    if forced or not fits:
        return drive[REST]
    slot = (drive[RING_HEAD] + drive[RING_COUNT]) % ring.shape[0]
    ring[slot, RING_FIRST] = first
    ring[slot, RING_END] = end
    ring[slot, RING_REQUEST] = request
    drive[RING_COUNT] += 1
    return time + crossing


@kernel
def _forget_destaged(drive: Integers, ring: Integers, sector: int) -> None:
    """Drop writes that are wholly before `sector` from the ring; their rows stay, for a power cut may come before they are destaged."""
    while drive[RING_COUNT] > 0 and ring[drive[RING_HEAD], RING_END] <= sector:
        drive[RING_HEAD] = (drive[RING_HEAD] + 1) % ring.shape[0]
        drive[RING_COUNT] -= 1
