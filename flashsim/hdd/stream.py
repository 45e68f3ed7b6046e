"""What the mechanism does, in closed form: it transfers one run of consecutive sectors at a time, its stream.

A stream starts at a sector once the arm is there, the data are there (a write) and the sector's slot comes round; it goes on, track
after track, up to its limit, and rests there.  From its pivot on, a sector's transfer ends at ``base + slot_start(slot + 1)``: one
revolution's start and a table of zones say when any sector passes.  The limit may be moved on.  If the stream has not rested, nothing
changes; otherwise it starts again at the old limit, which becomes the pivot.

Everything about a drive that changes, and the constants that go with it, is one row of numbers (`drive`).
"""

from __future__ import annotations

from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.hdd.geometry import END, HEADS, PER_TRACK, sectors_before, slot_of, track_of, zone_of
from flashsim.hdd.rotation import revolution_for, slot_start, slots_ended

#: What the mechanism streams.
IDLE, READING, WRITING = range(3)

# Columns of a drive.  Constants:
(ROTATION, HEAD_SWITCH, WRITE_SETTLE, SECTOR_SIZE, SECTORS, LINK_RATE, OVERHEAD, READ_AHEAD, WRITE_BEHIND) = range(9)
# The stream: what it does, where the arm is while there is none, the first sector whose time `BASE` gives, its zone, the
# revolution, the sector after the last, and when that is reached.
(STREAM, ARM, PIVOT, ZONE, BASE, LIMIT, REST) = range(9, 16)
# The read-ahead segment (once the stream that filled it has ended, up to KEPT_END), and the ring of acknowledged writes.
(KEPT, KEPT_END, RING_HEAD, RING_COUNT) = range(16, 20)
# The command being served (-1: none), when it completes, and those admitted after it.
(ACTIVE, BUSY_UNTIL, FIFO_HEAD, FIFO_COUNT) = range(20, 24)
# Counters; their order is that of COUNTERS.
(READS, WRITES, FLUSHES, READ_BYTES, WRITTEN_BYTES, READ_HITS, SEEKS, SEEK_TIME, SEEK_CYLINDERS, WAITS, WAIT_TIME, LINK_TIME, DESTAGES) = (
    range(24, 37)
)
DRIVE_COLUMNS = 37


@kernel
def move_time(drive: Integers, seeks: Integers, heads: int, source: int, target: int, writing: bool) -> int:
    """Nanoseconds from one track to another: a seek includes the change of head."""
    if source == target:
        return 0
    distance = abs(source // heads - target // heads)
    time = seeks[distance] if distance > 0 else drive[HEAD_SWITCH]
    return time + drive[WRITE_SETTLE] if writing else time


@kernel
def _into_next_zone(drive: Integers, zones: Integers, seeks: Integers, zone: int, base: int) -> int:
    """The revolution in which a stream enters the zone after `zone`: that zone's first track starts at angle 0."""
    last = zones[zone, END] - 1
    left = base + slot_start(slot_of(zones, zone, last) + 1, zones[zone, PER_TRACK], drive[ROTATION])
    track = track_of(zones, zone, last)
    return revolution_for(
        left + move_time(drive, seeks, zones[zone, HEADS], track, track + 1, drive[STREAM] == WRITING), 0, drive[ROTATION]
    )


@kernel
def _passage(drive: Integers, zones: Integers, seeks: Integers, sector: int, edge: int) -> int:
    """When the start (edge 0) or end (edge 1) of a sector, not before the pivot, passes the head while streaming."""
    zone = drive[ZONE]
    base = drive[BASE]
    while sector >= zones[zone, END]:
        base = _into_next_zone(drive, zones, seeks, zone, base)
        zone += 1
    return base + slot_start(slot_of(zones, zone, sector) + edge, zones[zone, PER_TRACK], drive[ROTATION])


@kernel
def sector_end(drive: Integers, zones: Integers, seeks: Integers, sector: int) -> int:
    """When the stream has transferred a sector, which lies between pivot and limit."""
    return _passage(drive, zones, seeks, sector, 1)


@kernel
def position(drive: Integers, zones: Integers, seeks: Integers, time: int) -> int:
    """The first sector that the stream has not transferred at `time`; what lies before the pivot has been."""
    if time >= drive[REST]:
        return drive[LIMIT]
    zone = drive[ZONE]
    base = drive[BASE]
    while True:
        slots = slots_ended(time - base, zones[zone, PER_TRACK], drive[ROTATION])
        sector = min(sectors_before(zones, zone, slots), zones[zone, END])
        if sector < zones[zone, END]:
            return max(drive[PIVOT], sector)
        base = _into_next_zone(drive, zones, seeks, zone, base)
        zone += 1


@kernel
def arm_at(drive: Integers, zones: Integers, seeks: Integers, time: int) -> int:
    """The track of the arm: where the stream's next sector is, and at rest still where the last one was."""
    if drive[STREAM] == IDLE:
        return drive[ARM]
    sector = position(drive, zones, seeks, time)
    if sector == drive[LIMIT]:
        sector -= 1
    return track_of(zones, zone_of(zones, sector), sector)


@kernel
def _start(drive: Integers, zones: Integers, sector: int, time: int, limit: int) -> int:
    """Let the transfer begin at a sector, on whose track the arm is, not before `time`; return the rotational wait."""
    zone = zone_of(zones, sector)
    offset = slot_start(slot_of(zones, zone, sector), zones[zone, PER_TRACK], drive[ROTATION])
    drive[PIVOT] = sector
    drive[ZONE] = zone
    drive[BASE] = revolution_for(time, offset, drive[ROTATION])
    drive[LIMIT] = limit
    return drive[BASE] + offset - time


@kernel
def begin(drive: Integers, zones: Integers, seeks: Integers, stream: int, first: int, limit: int, time: int, ready: int) -> None:
    """Leave the stream and begin another at `time`; what is to be written is there at `ready`."""
    source = arm_at(drive, zones, seeks, time)
    zone = zone_of(zones, first)
    target = track_of(zones, zone, first)
    heads = zones[zone, HEADS]
    move = move_time(drive, seeks, heads, source, target, stream == WRITING)
    distance = abs(source // heads - target // heads)
    if distance > 0:
        drive[SEEKS] += 1
        drive[SEEK_TIME] += move
        drive[SEEK_CYLINDERS] += distance
    drive[STREAM] = stream
    drive[WAITS] += 1
    drive[WAIT_TIME] += _start(drive, zones, first, max(time + move, ready), limit)
    drive[REST] = sector_end(drive, zones, seeks, limit - 1)


@kernel
def extend(drive: Integers, zones: Integers, seeks: Integers, limit: int, time: int, ready: int) -> None:
    """At `time`, move the stream's limit on; what is to be written there is there at `ready`."""
    if limit <= drive[LIMIT]:
        return
    next_sector = drive[LIMIT]
    zone = zone_of(zones, next_sector)
    last = next_sector - 1
    source = track_of(zones, zone_of(zones, last), last)
    target = track_of(zones, zone, next_sector)
    move = move_time(drive, seeks, zones[zone, HEADS], source, target, drive[STREAM] == WRITING)
    earliest = max(max(time, drive[REST]) + move, ready)
    if earliest > _passage(drive, zones, seeks, next_sector, 0):
        _start(drive, zones, next_sector, earliest, limit)
    drive[LIMIT] = limit
    drive[REST] = sector_end(drive, zones, seeks, limit - 1)
