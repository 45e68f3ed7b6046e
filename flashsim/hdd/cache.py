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

from flashsim.core.kernel import lean_kernel, spliced_kernel
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE, Integers
from flashsim.hdd.segments import destaged, fill, hit, interruptible, read_limit, use, victim
from flashsim.hdd.stream import begin, extend, sector_end, stop
from flashsim.hdd.terms import (
    AFTER,
    BUS_READ,
    COMPLETE_READ,
    CURRENT,
    DATA_PREPARATION,
    DISCONNECT_READ,
    FLUSHES,
    HITS_WHILE_WRITING,
    KEEP_READ,
    LAST_END,
    LEAST,
    LIMIT,
    READ_AHEAD_AGAIN,
    READ_AHEAD_LEAST,
    READ_AHEAD_ON_HIT,
    READ_BYTES,
    READ_HIT,
    READ_HITS,
    READ_MISS,
    READ_PRECEDING,
    READING,
    READS,
    RESELECT_FIRST,
    REST,
    SEGMENT_END,
    SEGMENT_FIRST,
    STREAM,
    WRITING,
)
from flashsim.hdd.transfer import count_crossing, overhead_of, read_out, sectors_to_start
from flashsim.hdd.write_back import serve_write


@spliced_kernel
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
    time = start + overhead_of(control, operation, end - first)
    if operation == READ:
        return serve_read(control, drives, extents, seeks, segments, drive, first, end, time)
    if operation == WRITE:
        return serve_write(
            control, drives, extents, seeks, segments, ring, drive, request, first, end, flags & FORCE_UNIT_ACCESS != 0, time
        )
    if operation == FLUSH:
        drives[drive, FLUSHES] += 1
        return destaged(drives, drive, time)
    return time  # a trim means nothing to magnetic media


@spliced_kernel
def serve_read(
    control: Integers, drives: Integers, extents: Integers, seeks: Integers, segments: Integers, drive: int, first: int, end: int, time: int
) -> int:
    """Serve a read that the drive takes up at `time`; return when it completes."""
    count_crossing(control, drives, drive, READS, READ_BYTES, end - first, control[BUS_READ])
    fill(control, drives, extents, seeks, segments, drive, time)
    after = drives[drive, AFTER]
    busy = drives[drive, STREAM] == WRITING and drives[drive, REST] > time
    reselection = control[RESELECT_FIRST] + control[DATA_PREPARATION]
    away = time + control[READ_MISS + after] + control[DISCONNECT_READ + after]
    row = hit(control, drives, segments, drive, first, end)
    if row >= 0:
        drives[drive, READ_HITS] += 1
        link = time + control[READ_HIT + after] + control[DATA_PREPARATION]
        if busy and control[HITS_WHILE_WRITING] == 0:
            link = max(away, drives[drive, REST]) + reselection
        arrived = segments[row, SEGMENT_END]
        link = max(link, _go_on(control, drives, extents, seeks, segments, drive, row, end, time))
    else:
        row = victim(control, segments, drive)
        _stream_into(control, drives, extents, seeks, segments, drive, row, first, read_limit(control, extents, end, first), time, True)
        last = first + sectors_to_start(control, end - first) - 1
        link = max(away, sector_end(control, drives, extents, seeks, drive, last)) + reselection
        arrived = first
    use(drives, segments, drive, row)
    if drives[drive, CURRENT] == row:
        drives[drive, LEAST] = min(drives[drive, LIMIT], end + control[READ_AHEAD_LEAST])
    done = read_out(control, drives, extents, seeks, drive, first, end, arrived, link)
    if control[KEEP_READ] == 0:
        segments[row, SEGMENT_FIRST] = end
        segments[row, SEGMENT_END] = max(end, segments[row, SEGMENT_END])
    drives[drive, AFTER] = 0
    drives[drive, LAST_END] = end
    return done + control[COMPLETE_READ]


@lean_kernel
def _go_on(
    control: Integers, drives: Integers, extents: Integers, seeks: Integers, segments: Integers, drive: int, row: int, end: int, time: int
) -> int:
    """After a hit: the stream goes on, or begins where the segment ends, or is left; return when it can do that for what is missing.

    For read-ahead alone the mechanism does not wait until it can leave its stream.
    """
    limit = read_limit(control, extents, end, segments[row, SEGMENT_FIRST])
    stopped = interruptible(control, drives, extents, seeks, drive, time)
    if row == drives[drive, CURRENT] and drives[drive, STREAM] == READING:
        streams = drives[drive, REST] > time
        if streams or control[READ_AHEAD_ON_HIT] == 1 or end > drives[drive, LIMIT]:
            goes = time if streams else time + control[READ_MISS + drives[drive, AFTER]]
            extend(control, drives, extents, seeks, drive, limit, goes, goes)
        return time
    reached = segments[row, SEGMENT_END]
    if reached < end or (stopped == time and control[READ_AHEAD_AGAIN] == 1 and reached < limit):
        _stream_into(control, drives, extents, seeks, segments, drive, row, reached, limit, time, False)
        return stopped if reached < end else time
    if stopped == time and drives[drive, STREAM] == READING:
        stop(control, drives, extents, seeks, drive, time)
        drives[drive, CURRENT] = -1
    return time


@lean_kernel
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
    stopped = interruptible(control, drives, extents, seeks, drive, time)
    fill(control, drives, extents, seeks, segments, drive, stopped)
    moves = max(stopped, time + control[READ_MISS + drives[drive, AFTER]])
    before = begin(control, drives, extents, seeks, drive, READING, first, limit, stopped, moves, moves)
    if fresh:
        segments[row, SEGMENT_FIRST] = first - before if control[READ_PRECEDING] == 1 else first
    segments[row, SEGMENT_END] = first
    drives[drive, CURRENT] = row
