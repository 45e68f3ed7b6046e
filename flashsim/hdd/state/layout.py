"""Numbering of a drive's sectors: zones, spares, slipped and defective sectors become a short table of extents.

Within a zone sectors are numbered track after track.  Left out are spares, sectors that were found bad when the drive was made (slips:
the numbering goes on behind them), and empty space.  A sector that went bad later (a defect) keeps its number and moves to a spare.  What
results are runs of equal tracks: an extent is a run of tracks that hold equally many numbered sectors from the same slot on, or a part of
one track.

What the schemes of sparing (`hdd.description.SPARING`) mean follows DiskSim's manual of disk models, 1.4:

========================  =======================================================================================================
none                      no spares
tracks                    whole tracks at the end of a zone; slips and defects are whole tracks
cylinder, track           sectors at the end of each cylinder or track, which slips there use up
range, zone               the same for so many cylinders, and for the whole zone
cylinder-front            sectors at the start of each cylinder
end                       none but what slips push out of the zone
...-slip-on               slips use up no spares, but push the numbering on through the whole zone
========================  =======================================================================================================
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flashsim.core.records import RecordArray, as_table, record_dtype
from flashsim.hdd.description import DriveDescription
from flashsim.hdd.state.seek import seek_curve

SLOT_UNIT = 1_000_000  #: Slots are counted in millionths, since skews need not be whole sectors.


class Extent(NamedTuple):
    """A run of equal tracks."""

    #: The first sector and the one after the last.
    first: int
    end: int
    track: int  #: Track of the first sector, counted over the drive.
    #: Sectors that each track holds, the slot of the first of them, and slots of the track.
    per_track: int
    slot: int
    slots: int
    zone_track: int  #: The first track of the zone.
    #: Place of the zone's first slot, and the offset of each track, and beyond that of each cylinder, in parts of a slot.
    offset: int
    track_skew: int
    cylinder_skew: int


EXTENT = record_dtype(int64=" ".join(Extent._fields))

Run = tuple[int, int]  # a position in the zone, in slots, and a number of sectors


class Zone(NamedTuple):
    """A row of the zone table with nothing left out; skews and offset in parts of a slot."""

    cylinders: int
    slots: int
    track_skew: int
    cylinder_skew: int
    offset: int
    empty: int
    spares: int
    first_cylinder: int


def zones_of(parameters: DriveDescription) -> list[Zone]:
    """The zones.  A row without skews gets those that hide a head switch and a seek to the next cylinder, settling for a write included."""
    zones, cylinder = [], 0
    single = int(seek_curve(parameters)[1]) if parameters.cylinders > 1 else 0
    if parameters.heads > 1:
        single = max(single, parameters.head_switch)
    for row in parameters.zones:
        cylinders, slots = int(row[0]), int(row[1])
        track_skew, cylinder_skew, offset = (round(value * SLOT_UNIT) for value in row[2:5] or (0, 0, 0))
        empty, spares, left_out = (int(value) for value in row[5:] or (0, 0, 0))
        if len(row) == 2:
            # the fewest whole slots that last as long
            track_skew, cylinder_skew = (
                -(-max(0, time + parameters.write_settle) * slots // parameters.rotation) * SLOT_UNIT
                for time in (parameters.head_switch, single)
            )
        zones.append(Zone(cylinders, slots, track_skew, cylinder_skew, offset, empty, spares, cylinder + left_out))
        cylinder += left_out + cylinders
    return zones


def extents_of(parameters: DriveDescription) -> list[Extent]:
    """The extents of a drive in the order of their sectors."""
    rows: list[Extent] = []
    sector = 0
    for number, zone in enumerate(zones_of(parameters)):
        zone_track = zone.first_cylinder * parameters.heads
        for track, slot, per_track, tracks, shift in _pieces(parameters, number, zone):
            shape = (per_track, slot, zone.slots, zone_track, zone.offset + shift * SLOT_UNIT, zone.track_skew, zone.cylinder_skew)
            end, last = sector + per_track * tracks, rows[-1] if rows else None
            if last and last[3:] == shape and last.track + (sector - last.first) // per_track == zone_track + track:
                rows[-1] = last._replace(end=end)
            else:
                rows.append(Extent(sector, end, zone_track + track, *shape))
            sector = end
    return rows


def extent_table(parameters: DriveDescription) -> RecordArray:
    """`extents_of` for kernels, EXTENT."""
    return as_table(np.array(extents_of(parameters), EXTENT))


def sectors_of(parameters: DriveDescription) -> int:
    return sum(count for number, zone in enumerate(zones_of(parameters)) for _, count in _runs(parameters, number, zone))


def _numbers(table: Iterable[Sequence[float]], zone: int) -> list[tuple[int, ...]]:
    return sorted({tuple(int(value) for value in row[1:]) for row in table if row[0] == zone})


def _runs(parameters: DriveDescription, number: int, zone: Zone) -> list[Run]:
    unit = zone.slots if parameters.sparing == "tracks" else 1
    slips = [unit * slip for (slip,) in _numbers(parameters.slips, number)]
    runs = _trim_runs(list(_usable(parameters, zone, slips, unit)), zone.empty, True)
    for bad, spare in _numbers(parameters.defects, number):
        runs = list(_remap_runs(runs, unit * bad, unit * spare, unit))
    return runs


def _usable(parameters: DriveDescription, zone: Zone, slips: list[int], unit: int) -> Iterator[Run]:
    scheme = parameters.sparing
    total = zone.cylinders * parameters.heads * zone.slots
    group = {
        "cylinder": parameters.heads * zone.slots,
        "track": zone.slots,
        "range": parameters.sparing_range * parameters.heads * zone.slots,
    }
    size = group.get(scheme.split("-")[0], total)
    spares = 0 if scheme in ("none", "end") else zone.spares * unit
    if not slips and not spares:
        yield 0, total
        return
    for start in range(0, total, size):
        end, front = min(start + size, total), "front" in scheme
        here = [slip for slip in slips if start <= slip < end]
        reserved = spares if end - start == size else 0  # a last range that is not whole has none
        if "slip-on" in scheme:
            start, end = (start + reserved, end) if front else (start, end - reserved)
            reserved = 0
        yield from _trim_runs(list(_sound(start, end, here, unit)), max(0, reserved - unit * len(here)), front)


def _sound(first: int, end: int, slips: list[int], unit: int) -> Iterator[Run]:
    for slip in slips:
        if first <= slip < end:
            if slip > first:
                yield first, slip - first
            first = slip + unit
    if end > first:
        yield first, end - first


def _trim_runs(runs: list[Run], count: int, front: bool) -> list[Run]:
    rest = []
    for position, length in runs if front else reversed(runs):
        cut = min(count, length)
        count -= cut
        if length > cut:
            rest.append((position + cut * front, length - cut))
    return rest if front else rest[::-1]


def _remap_runs(runs: Iterable[Run], bad: int, spare: int, unit: int) -> Iterator[Run]:
    for position, length in runs:
        if not position <= bad < position + length:
            yield position, length
            continue
        count = min(unit, position + length - bad)
        if bad > position:
            yield position, bad - position
        yield spare, count
        if position + length > bad + count:
            yield bad + count, position + length - bad - count


def _pieces(parameters: DriveDescription, number: int, zone: Zone) -> Iterator[tuple[int, int, int, int, int]]:
    """The runs as (track in the zone, slot, sectors a track, tracks, slots by which slips before push it on)."""
    pushes = _pushing_slips(parameters, number, zone)
    for position, length in _runs(parameters, number, zone):
        while length > 0:
            track, slot = divmod(position, zone.slots)
            shift = sum(start <= track for start in pushes)
            if slot or length < zone.slots:
                per_track, tracks = min(length, zone.slots - slot), 1
            else:
                ends = [start - track for start in pushes if start > track]
                per_track, tracks = zone.slots, min([length // zone.slots, *ends])
            yield track, slot, per_track, tracks, shift
            position += per_track * tracks
            length -= per_track * tracks


def _pushing_slips(parameters: DriveDescription, number: int, zone: Zone) -> list[int]:
    """The track from which on each slip has pushed the start of tracks on by a slot: where spares lie in each cylinder or track."""
    scheme = parameters.sparing
    slips = [slip for (slip,) in _numbers(parameters.slips, number)]
    if scheme == "track":
        return [slip // zone.slots + 1 for slip in slips]
    if scheme.startswith("cylinder"):
        return [(slip // (zone.slots * parameters.heads) + 1) * parameters.heads for slip in slips]
    return []
