"""Where a sector lies: zones, cylinders, heads and skew.

Sectors fill a track, then the tracks of a cylinder from head 0, then the next cylinder; zones follow one another inwards.  Within
a zone every track starts a skew later than the one before it ends: just enough slots for a head switch or for a seek to the next
cylinder, settling for a write included, so that a stream of sectors loses no revolution.  Slots are therefore counted on from the
start of the zone, skews included: a sector's slot divided by the sectors a track leaves its angle, and consecutive sectors of a
stream pass the head exactly when their slots do.  Each zone starts at angle 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flashsim.core.kernel import kernel
from flashsim.core.request import Integers

if TYPE_CHECKING:
    from flashsim.hdd.parameters import HddParameters

# Columns of the zone table: first sector and the one after the last, first track (counted over the drive), heads, sectors a track,
# slots from a track's start to the next track's of the same cylinder, slots from a cylinder's start to the next cylinder's.
FIRST, END, FIRST_TRACK, HEADS, PER_TRACK, TRACK_SLOTS, CYLINDER_SLOTS = range(7)
ZONE_COLUMNS = 7


def zone_table(parameters: HddParameters) -> Integers:
    """The zones of a drive, shape (zones, ZONE_COLUMNS)."""
    zones = np.zeros((len(parameters.zones), ZONE_COLUMNS), np.int64)
    sector = track = 0
    for row, (cylinders, per_track) in enumerate((int(row[0]), int(row[1])) for row in parameters.zones):
        tracks = cylinders * parameters.heads
        track_skew = _slots(parameters.head_switch + parameters.write_settle, per_track, parameters.rotation)
        cylinder_skew = _slots(parameters.seek_single + parameters.write_settle, per_track, parameters.rotation)
        track_slots = per_track + track_skew
        cylinder_slots = parameters.heads * track_slots - track_skew + cylinder_skew
        zones[row] = sector, sector + tracks * per_track, track, parameters.heads, per_track, track_slots, cylinder_slots
        sector += tracks * per_track
        track += tracks
    return zones


def _slots(duration: int, per_track: int, rotation: int) -> int:
    """The fewest slots that last at least `duration`."""
    return -(-duration * per_track // rotation)


def sectors_by_cylinder(parameters: HddParameters) -> Integers:
    """Sectors of each cylinder, shape (cylinders,)."""
    cylinders, per_track = np.array(parameters.zones, np.int64).T
    return np.repeat(per_track * parameters.heads, cylinders)


@kernel
def zone_of(zones: Integers, sector: int) -> int:
    """The zone of a sector."""
    low = 0
    high = zones.shape[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if sector < zones[middle, END]:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def track_of(zones: Integers, zone: int, sector: int) -> int:
    """The track of a sector of a zone, counted over the drive; divided by the heads it is the cylinder."""
    return zones[zone, FIRST_TRACK] + (sector - zones[zone, FIRST]) // zones[zone, PER_TRACK]


@kernel
def slot_of(zones: Integers, zone: int, sector: int) -> int:
    """The slot of a sector, counted from the start of its zone."""
    track = (sector - zones[zone, FIRST]) // zones[zone, PER_TRACK]
    cylinder = track // zones[zone, HEADS]
    index = sector - zones[zone, FIRST] - track * zones[zone, PER_TRACK]
    return cylinder * zones[zone, CYLINDER_SLOTS] + (track - cylinder * zones[zone, HEADS]) * zones[zone, TRACK_SLOTS] + index


@kernel
def sectors_before(zones: Integers, zone: int, slot: int) -> int:
    """The first sector of a zone whose slot is not before `slot` (the inverse of `slot_of`; skews hold no sectors)."""
    if slot <= 0:
        return zones[zone, FIRST]
    cylinder = slot // zones[zone, CYLINDER_SLOTS]
    left = slot - cylinder * zones[zone, CYLINDER_SLOTS]
    head = min(left // zones[zone, TRACK_SLOTS], zones[zone, HEADS] - 1)
    index = min(left - head * zones[zone, TRACK_SLOTS], zones[zone, PER_TRACK])
    return zones[zone, FIRST] + (cylinder * zones[zone, HEADS] + head) * zones[zone, PER_TRACK] + index


class Place(NamedTuple):
    """Where a sector lies."""

    cylinder: int
    head: int
    offset: int  # sectors from the start of its track
    per_track: int
    slot: int  # its angle, in slots of its track, 0 <= slot < per_track
    track_end: int  # the sector after the last of its track


class Geometry:
    """Finds sectors of a drive.

    Parameters
    ----------
    parameters
        The drive.

    Examples
    --------
    With two heads and ten sectors a track, sector 12 is the third under head 1; that track starts a skew of two slots later.

    >>> from flashsim.core.parameters import build
    >>> drive = dict(capacity=20480, sector_size=512, rotation=10_000, heads=2, zones=[(2, 10)], seek_single=3000,
    ...              seek_average=3000, seek_full=3000, head_switch=2000, write_settle=0, link_rate=10**6, overhead=1,
    ...              read_ahead=0, write_behind=0, queue_depth=1)
    >>> from flashsim.hdd.parameters import HddParameters
    >>> place = Geometry(build(HddParameters, drive)).locate(12)
    >>> place.cylinder, place.head, place.offset, place.slot
    (0, 1, 2, 4)
    """

    def __init__(self, parameters: HddParameters) -> None:
        self.zones: list[list[int]] = zone_table(parameters).tolist()

    def locate(self, sector: int) -> Place:
        """The place of a sector, by walking down from zone to cylinder to track."""
        zone = next(row for row in self.zones if sector < row[END])
        track, index = divmod(sector - zone[FIRST], zone[PER_TRACK])
        cylinder, head = divmod(track, zone[HEADS])
        track_skew = zone[TRACK_SLOTS] - zone[PER_TRACK]
        cylinder_skew = zone[CYLINDER_SLOTS] - zone[HEADS] * zone[PER_TRACK]
        slot = (cylinder * cylinder_skew + head * track_skew + index) % zone[PER_TRACK]
        first_cylinder = zone[FIRST_TRACK] // zone[HEADS]
        return Place(first_cylinder + cylinder, head, index, zone[PER_TRACK], slot, sector - index + zone[PER_TRACK])
