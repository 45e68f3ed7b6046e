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

from __future__ import annotations

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE, Integers
from flashsim.hdd.geometry import cylinder_end, extent_of, track_bounds
from flashsim.hdd.layout import SLOTS
from flashsim.hdd.stream import begin, extend, position, sector_end, stop
from flashsim.hdd.terms import (
    AFTER,
    BUS_READ,
    BUS_WRITE,
    COMPLETE_READ,
    COMPLETE_WRITE,
    CURRENT,
    DATA_PREPARATION,
    DESTAGES,
    DISCONNECT_READ,
    DISCONNECT_WRITE,
    EXTRA_COMMAND,
    EXTRA_DISCONNECT,
    EXTRA_DISCONNECT_FIRST,
    EXTRA_DISCONNECT_SECOND,
    EXTRA_PAUSE,
    EXTRA_SEEK_DELAY,
    FLUSHES,
    HEADS,
    HITS_WHILE_WRITING,
    KEEP_READ,
    LAST_END,
    LEAST,
    LIMIT,
    LINK_RATE,
    LINK_TIME,
    NEXT_HITS,
    OVERHEAD,
    OWN_WRITE_SEGMENT,
    PARTIAL_HITS,
    PIVOT,
    READ_AHEAD,
    READ_AHEAD_AGAIN,
    READ_AHEAD_BOUND,
    READ_AHEAD_LEAST,
    READ_AHEAD_ON_HIT,
    READ_BYTES,
    READ_HIT,
    READ_HITS,
    READ_MISS,
    READ_PRECEDING,
    READ_WRITTEN,
    READING,
    READS,
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
    SEGMENT_SIZE,
    SEGMENT_USED,
    SEGMENTS,
    SHARE_UNIT,
    STREAM,
    USES,
    WRITE_BEHIND,
    WRITE_HIT,
    WRITE_MISS,
    WRITE_START,
    WRITE_START_MOST,
    WRITES,
    WRITING,
    WRITTEN_BYTES,
)
from flashsim.hdd.transfer import crossing_time, read_out, sectors_to_start

#: Where read-ahead ends before its size: nowhere, at the end of the track or cylinder of the request, or at the end of the track of the
#: sector behind it, one track later if the segment begins before that track.
BOUNDS = ("none", "track", "cylinder", "next-track")
_TRACK, _CYLINDER, _NEXT_TRACK = 1, 2, 3


@lean_kernel
def serve(
    control: Integers,
    drives: Integers,
    extents: Integers,
    seeks: Integers,
    segments: Integers,
    ring: Integers,
    drive: int,
    request: int,
    operation: int,
    flags: int,
    first: int,
    end: int,
    start: int,
) -> int:
    """Serve one command of a drive from `start` on; return when it completes."""
    time = start + control[OVERHEAD]
    if operation == READ:
        return _read(control, drives, extents, seeks, segments, drive, first, end, time)
    if operation == WRITE:
        return _write(control, drives, extents, seeks, segments, ring, drive, request, first, end, flags & FORCE_UNIT_ACCESS != 0, time)
    if operation == FLUSH:
        drives[drive, FLUSHES] += 1
        return _destaged(drives, drive, time)
    return time  # a trim means nothing to magnetic media


@inlined_kernel
def _destaged(drives: Integers, drive: int, time: int) -> int:
    """When all writes are on the media, not before `time`."""
    return max(time, drives[drive, REST]) if drives[drive, STREAM] == WRITING else time


@inlined_kernel
def _interruptible(control: Integers, drives: Integers, extents: Integers, seeks: Integers, drive: int, time: int) -> int:
    """When the mechanism can leave its stream, not before `time`: writes are destaged, and the least of a read-ahead is done."""
    if drives[drive, STREAM] == WRITING:
        return max(time, drives[drive, REST])
    if drives[drive, STREAM] == READING and drives[drive, LEAST] > drives[drive, PIVOT]:
        return max(time, sector_end(control, drives, extents, seeks, drive, drives[drive, LEAST] - 1))
    return time


@inlined_kernel
def _fill(control: Integers, drives: Integers, extents: Integers, seeks: Integers, segments: Integers, drive: int, time: int) -> None:
    """Put into the segment what the stream has read until `time`."""
    row = drives[drive, CURRENT]
    if row >= 0 and drives[drive, STREAM] == READING:
        segments[row, SEGMENT_END] = position(control, drives, extents, seeks, drive, time, True)
        _bound(control, segments, row)


@inlined_kernel
def _bound(control: Integers, segments: Integers, row: int) -> None:
    """A full segment loses what was read first."""
    if control[SEGMENT_SIZE] > 0:
        segments[row, SEGMENT_FIRST] = max(segments[row, SEGMENT_FIRST], segments[row, SEGMENT_END] - control[SEGMENT_SIZE])


@inlined_kernel
def _use(drives: Integers, segments: Integers, drive: int, row: int) -> None:
    drives[drive, USES] += 1
    segments[row, SEGMENT_USED] = drives[drive, USES]


@inlined_kernel
def _hit(control: Integers, drives: Integers, segments: Integers, drive: int, first: int, end: int) -> int:
    """The row of the segment that serves a read; -1 if none does.  One that holds all of it is better, and then the stream's."""
    best = -1
    best_value = 0
    for row in range(drive * control[SEGMENTS], (drive + 1) * control[SEGMENTS]):
        streams = row == drives[drive, CURRENT] and drives[drive, STREAM] == READING
        within = first < segments[row, SEGMENT_END] or (
            streams and control[NEXT_HITS] == 1 and control[READ_AHEAD] > 0 and first == segments[row, SEGMENT_END]
        )
        whole = end <= segments[row, SEGMENT_END]
        if first >= segments[row, SEGMENT_FIRST] and within and (whole or streams or control[PARTIAL_HITS] == 1):
            value = 1 + streams + 2 * whole
            if value > best_value:
                best, best_value = row, value
    return best


@inlined_kernel
def _victim(control: Integers, segments: Integers, drive: int) -> int:
    """The row of the segment that a miss takes: an empty one, or the one that was used the longest time ago."""
    best = drive * control[SEGMENTS]
    for row in range(best, best + control[SEGMENTS]):
        if segments[row, SEGMENT_FIRST] == segments[row, SEGMENT_END]:
            return row
        if segments[row, SEGMENT_USED] < segments[best, SEGMENT_USED]:
            best = row
    return best


@inlined_kernel
def _ahead(control: Integers, extents: Integers, end: int, segment_first: int) -> int:
    """Up to where the drive reads for a request that ends before `end`, read-ahead included."""
    bound = control[READ_AHEAD_BOUND]
    if control[READ_AHEAD] == 0 or end == control[SECTORS]:
        return end
    limit = min(end + control[READ_AHEAD], control[SECTORS])
    if bound == _NEXT_TRACK:
        track_first, track_end = track_bounds(extents, end)
        if segment_first < track_first:
            track_end += extents[extent_of(extents, end), SLOTS]
        return min(track_end, control[SECTORS])
    if bound == _TRACK:
        _, track_end = track_bounds(extents, end - 1)
        return max(end, min(limit, track_end))
    if bound == _CYLINDER:
        return max(end, min(limit, cylinder_end(extents, end - 1, control[HEADS])))
    return limit


@lean_kernel
def _read(
    control: Integers, drives: Integers, extents: Integers, seeks: Integers, segments: Integers, drive: int, first: int, end: int, time: int
) -> int:
    _count_crossing(control, drives, drive, READS, READ_BYTES, end - first, control[BUS_READ])
    _fill(control, drives, extents, seeks, segments, drive, time)
    after = drives[drive, AFTER]
    busy = drives[drive, STREAM] == WRITING and drives[drive, REST] > time
    reselection = control[RESELECT_FIRST] + control[DATA_PREPARATION]
    away = time + control[READ_MISS + after] + control[DISCONNECT_READ + after]
    row = _hit(control, drives, segments, drive, first, end)
    if row >= 0:
        drives[drive, READ_HITS] += 1
        link = time + control[READ_HIT + after] + control[DATA_PREPARATION]
        if busy and control[HITS_WHILE_WRITING] == 0:
            link = max(away, drives[drive, REST]) + reselection
        arrived = segments[row, SEGMENT_END]
        link = max(link, _go_on(control, drives, extents, seeks, segments, drive, row, end, time))
    else:
        row = _victim(control, segments, drive)
        _stream_into(control, drives, extents, seeks, segments, drive, row, first, _ahead(control, extents, end, first), time, True)
        last = first + sectors_to_start(control, end - first) - 1
        link = max(away, sector_end(control, drives, extents, seeks, drive, last)) + reselection
        arrived = first
    _use(drives, segments, drive, row)
    if drives[drive, CURRENT] == row:
        drives[drive, LEAST] = min(drives[drive, LIMIT], end + control[READ_AHEAD_LEAST])
    done = read_out(control, drives, extents, seeks, drive, first, end, arrived, link)
    if control[KEEP_READ] == 0:
        segments[row, SEGMENT_FIRST] = end
        segments[row, SEGMENT_END] = max(end, segments[row, SEGMENT_END])
    drives[drive, AFTER] = 0
    drives[drive, LAST_END] = end
    return done + control[COMPLETE_READ]


@inlined_kernel
def _go_on(
    control: Integers, drives: Integers, extents: Integers, seeks: Integers, segments: Integers, drive: int, row: int, end: int, time: int
) -> int:
    """After a hit: the stream goes on, or begins where the segment ends, or is left; return when the mechanism is there for what is missing.

    For read-ahead alone it does not wait until it can leave its stream.
    """
    limit = _ahead(control, extents, end, segments[row, SEGMENT_FIRST])
    stopped = _interruptible(control, drives, extents, seeks, drive, time)
    if row == drives[drive, CURRENT] and drives[drive, STREAM] == READING:
        if drives[drive, REST] > time:
            extend(control, drives, extents, seeks, drive, limit, time, time)
        elif control[READ_AHEAD_ON_HIT] == 1 or end > drives[drive, LIMIT]:
            after_work = time + control[READ_MISS + drives[drive, AFTER]]
            extend(control, drives, extents, seeks, drive, limit, after_work, after_work)
    elif segments[row, SEGMENT_END] < end:
        _stream_into(control, drives, extents, seeks, segments, drive, row, segments[row, SEGMENT_END], limit, time, False)
        return stopped
    elif stopped == time and control[READ_AHEAD_AGAIN] == 1 and segments[row, SEGMENT_END] < limit:
        _stream_into(control, drives, extents, seeks, segments, drive, row, segments[row, SEGMENT_END], limit, time, False)
    elif stopped == time and drives[drive, STREAM] == READING:
        stop(control, drives, extents, seeks, drive, time)
        drives[drive, CURRENT] = -1
    return time


@inlined_kernel
def _stream_into(
    control: Integers,
    drives: Integers,
    extents: Integers,
    seeks: Integers,
    segments: Integers,
    drive: int,
    row: int,
    first: int,
    limit: int,
    time: int,
    fresh: bool,
) -> None:
    """Let the mechanism read from `first` on into a segment, in place of what that holds (`fresh`) or behind it."""
    stopped = _interruptible(control, drives, extents, seeks, drive, time)
    _fill(control, drives, extents, seeks, segments, drive, stopped)
    moves = max(stopped, time + control[READ_MISS + drives[drive, AFTER]])
    before = begin(control, drives, extents, seeks, drive, READING, first, limit, stopped, moves, moves)
    if fresh:
        segments[row, SEGMENT_FIRST] = first - before if control[READ_PRECEDING] == 1 else first
    segments[row, SEGMENT_END] = first
    drives[drive, CURRENT] = row


@lean_kernel
def _write(
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
    crossing = _count_crossing(control, drives, drive, WRITES, WRITTEN_BYTES, end - first, control[BUS_WRITE])
    _fill(control, drives, extents, seeks, segments, drive, time)
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
        _forget_overlapped(control, segments, drive, first, end)
    else:
        stopped = _interruptible(control, drives, extents, seeks, drive, time)
        _fill(control, drives, extents, seeks, segments, drive, stopped)
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
        _forget_overlapped(control, segments, drive, first, end)
        if control[OWN_WRITE_SEGMENT] == 0:
            row = _victim(control, segments, drive)
            _use(drives, segments, drive, row)
            segments[row, SEGMENT_FIRST] = first
            segments[row, SEGMENT_END] = end if control[READ_WRITTEN] == 1 else first
            _bound(control, segments, row)
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
def _count_crossing(control: Integers, drives: Integers, drive: int, commands: int, moved: int, sectors: int, bus: int) -> int:
    """Count a transfer over the link, and return how long it takes."""
    crossing = crossing_time(sectors, control[SECTOR_SIZE], control[LINK_RATE], bus)
    drives[drive, commands] += 1
    drives[drive, moved] += sectors * control[SECTOR_SIZE]
    drives[drive, LINK_TIME] += crossing
    return crossing


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
def _forget_overlapped(control: Integers, segments: Integers, drive: int, first: int, end: int) -> None:
    """Empty the segments that hold what is being written."""
    for row in range(drive * control[SEGMENTS], (drive + 1) * control[SEGMENTS]):
        if first < segments[row, SEGMENT_END] and segments[row, SEGMENT_FIRST] < end:
            segments[row, SEGMENT_END] = segments[row, SEGMENT_FIRST]


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
