"""Place of a sector: its extent, track, head and angle, for kernels, and once more in Python for the specification; and its movement.

The angle of the platter is a function of absolute time, in integers, so that it never drifts.  At time 0 angle 0 passes under the heads.  A
track of n slots is divided into n * SLOT_UNIT parts; part p passes ``p * rotation // (n * SLOT_UNIT)`` nanoseconds after angle 0, also for
later revolutions, since ``(p + n * SLOT_UNIT) * rotation // (n * SLOT_UNIT)`` is just a rotation more.
"""

from bisect import bisect_right
from typing import NamedTuple

from flashsim.core.kernel import inlined_kernel
from flashsim.core.records import RecordArray
from flashsim.core.units import SECONDS
from flashsim.hdd.description import HEAD_ORDERS, DriveDescription
from flashsim.hdd.state.layout import SLOT_UNIT, Extent, extents_of

_TURNING_IN_ZONE, _TURNING = HEAD_ORDERS.index("turning-in-zone"), HEAD_ORDERS.index("turning")


@inlined_kernel
def extent_of(extents: RecordArray, sector: int) -> int:
    """The row of the extent of a sector."""
    low = 0
    high = extents.shape[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if sector < extents[middle].end:
            high = middle
        else:
            low = middle + 1
    return low


@inlined_kernel
def track_of(extents: RecordArray, extent: int, sector: int) -> int:
    """The track of a sector of an extent, counted over the drive; divided by the heads it is the cylinder."""
    return extents[extent].track + (sector - extents[extent].first) // extents[extent].per_track


@inlined_kernel
def piece_first(extents: RecordArray, extent: int, sector: int) -> int:
    """The first sector of an extent's part of the track that holds a sector."""
    return sector - (sector - extents[extent].first) % extents[extent].per_track


@inlined_kernel
def track_angle(extents: RecordArray, extent: int, track: int, heads: int) -> int:
    """Begin of a track's first numbered slot of an extent, in parts of a slot, 0 <= angle < one revolution."""
    within = track - extents[extent].zone_track
    cylinder = within // heads
    switches = within - cylinder  # one less in each cylinder than it has heads
    angle = extents[extent].offset + switches * extents[extent].track_skew + cylinder * extents[extent].cylinder_skew
    return (angle + extents[extent].slot * SLOT_UNIT) % (extents[extent].slots * SLOT_UNIT)


@inlined_kernel
def head_of(extents: RecordArray, extent: int, track: int, heads: int, order: int) -> int:
    head = track % heads
    turns = 0
    if order == _TURNING_IN_ZONE:
        turns = (track - extents[extent].zone_track) // heads
    elif order == _TURNING:
        turns = track // heads
    return heads - 1 - head if turns % 2 == 1 else head


@inlined_kernel
def track_bounds(extents: RecordArray, sector: int) -> tuple[int, int]:
    """The first sector of a sector's track, and the one after the last, counting sectors whose numbers follow one another."""
    extent = extent_of(extents, sector)
    track = track_of(extents, extent, sector)
    first = piece_first(extents, extent, sector)
    end = first + extents[extent].per_track
    before = extent - 1
    while before >= 0 and first == extents[before].end and track_of(extents, before, first - 1) == track:
        first -= extents[before].per_track
        before -= 1
    after = extent + 1
    while after < extents.shape[0] and end == extents[after].first and extents[after].track == track:
        end += extents[after].per_track
        after += 1
    return first, end


@inlined_kernel
def cylinder_end(extents: RecordArray, sector: int, heads: int) -> int:
    """The sector after the last of a sector's cylinder, counting sectors whose numbers follow one another."""
    extent = extent_of(extents, sector)
    cylinder = track_of(extents, extent, sector) // heads
    end = piece_first(extents, extent, sector) + extents[extent].per_track
    while True:
        if end == extents[extent].end:
            extent += 1
        if extent == extents.shape[0] or track_of(extents, extent, end) // heads != cylinder:
            return end
        tracks = (cylinder + 1) * heads - track_of(extents, extent, end)
        end = min(extents[extent].end, end + tracks * extents[extent].per_track)


class Place(NamedTuple):
    """Place of a sector."""

    track: int  # counted over the drive
    cylinder: int
    head: int
    part: int  # where its slot begins, in parts of a slot, from the track's angle 0 on
    slots: int  # of the track
    first: int  # the first sector of those that lie in one piece around it
    end: int  # the sector after them


class Geometry:
    """Finds sectors of a drive.

    With two heads and ten sectors a track, sector 12 is the third under head 1; that track starts a skew of two slots later.

    >>> from flashsim.core.parameters import build
    >>> from flashsim.hdd.parameters import HddParameters
    >>> drive = dict(capacity=20480, sector_size=512, rotation=10_000, heads=2, zones=[(2, 10)], seek_single=3000,
    ...              seek_average=3000, seek_full=3000, head_switch=2000, write_settle=0, link_rate=10**6, overhead=1,
    ...              read_ahead=0, write_behind=0, queue_depth=1)
    >>> place = Geometry(build(HddParameters, drive)).locate(12)
    >>> place.cylinder, place.head, place.part / 10**6, (place.first, place.end)
    (0, 1, 4.0, (10, 20))
    """

    def __init__(self, parameters: DriveDescription) -> None:
        self.heads = parameters.heads
        self.order = parameters.head_order
        self.extents: list[Extent] = extents_of(parameters)
        self._ends = [row.end for row in self.extents]

    def locate(self, sector: int) -> Place:
        """The place of a sector, by walking from zone to cylinder to track."""
        row = self.extents[bisect_right(self._ends, sector)]
        track_in_extent, index = divmod(sector - row.first, row.per_track)
        track = row.track + track_in_extent
        cylinder, head = divmod(track, self.heads)
        own_cylinder, own_head = divmod(track - row.zone_track, self.heads)
        skew = row.offset + own_cylinder * ((self.heads - 1) * row.track_skew + row.cylinder_skew) + own_head * row.track_skew
        part = (skew + row.slot * SLOT_UNIT) % (row.slots * SLOT_UNIT) + index * SLOT_UNIT
        turned = {"first": 0, "turning-in-zone": own_cylinder, "turning": cylinder}[self.order] % 2
        first = sector - index
        return Place(track, cylinder, self.heads - 1 - head if turned else head, part, row.slots, first, first + row.per_track)

    def track_bounds(self, sector: int) -> tuple[int, int]:
        place = self.locate(sector)
        first, end = place.first, place.end
        while first > 0 and self.locate(first - 1).track == place.track:
            first = self.locate(first - 1).first
        while end < self._ends[-1] and self.locate(end).track == place.track:
            end = self.locate(end).end
        return first, end

    def cylinder_end(self, sector: int) -> int:
        cylinder, end = self.locate(sector).cylinder, self.locate(sector).end
        while end < self._ends[-1] and self.locate(end).cylinder == cylinder:
            end = self.locate(end).end
        return end


@inlined_kernel
def passing(part: int, slots: int, rotation: int) -> int:
    """Nanoseconds from angle 0 until a part of a track of so many slots passes."""
    return part * rotation // (slots * SLOT_UNIT)


@inlined_kernel
def revolution_for(time: int, offset: int, rotation: int) -> int:
    """The earliest passage of angle 0 from which `offset` nanoseconds later is not before `time`."""
    return -((offset - time) // rotation) * rotation


@inlined_kernel
def slots_ended(elapsed: int, part: int, slots: int, rotation: int) -> int:
    """Slots, the first of which begins at a part of the track, that have ended `elapsed` nanoseconds after angle 0."""
    return (((elapsed + 1) * slots * SLOT_UNIT - 1) // rotation - part) // SLOT_UNIT


@inlined_kernel
def crossing_time(sectors: int, size: int, rate: int, bus: int) -> int:
    """Nanoseconds for sectors of `size` bytes to cross a link of `rate` bytes a second and a bus of `bus` ns a sector, at least 1."""
    total = sectors * size
    return max(1, total // rate * SECONDS + (total % rate * SECONDS + rate // 2) // rate, sectors * bus)
