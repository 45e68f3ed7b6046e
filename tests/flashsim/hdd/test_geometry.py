"""Every sector has its place: layouts against a naive numbering, kernels against the Python walk, and angles that never drift."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.kernel import is_compiled
from flashsim.hdd.description import SPARING
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state import geometry as kernels
from flashsim.hdd.state.geometry import Geometry, passing, revolution_for, slots_ended
from flashsim.hdd.state.layout import SLOT_UNIT, Extent, extent_table, extents_of, sectors_of, zones_of
from flashsim.testing.disks import random_drive, small_drive
from tests.cases import with_each
from tests.flashsim.hdd.deep_disks import deep_drive

WEEK = 7 * 24 * 3600 * 10**9


def naive_places(drive: HddParameters) -> list[tuple[int, int]]:
    """(track, slot) of every sector, by going through all slots of a zone one by one and numbering those that are left over."""
    found = []
    for number, zone in enumerate(zones_of(drive)):
        slips = {row[1] for row in drive.slips if row[0] == number}
        moved = {row[1]: row[2] for row in drive.defects if row[0] == number}
        total = zone.cylinders * drive.heads * zone.slots
        first_track = zone.first_cylinder * drive.heads
        if drive.sparing == "tracks":
            tracks = [track for track in range(total // zone.slots) if track not in slips]
            tracks = [moved.get(track, track) for track in tracks[: total // zone.slots - zone.spares]]
            sound = [track * zone.slots + slot for track in tracks for slot in range(zone.slots)]
        else:
            sizes = {"cylinder": drive.heads * zone.slots, "track": zone.slots, "range": drive.sparing_range * drive.heads * zone.slots}
            size = sizes.get(drive.sparing.split("-")[0], total)
            sound = []
            for start in range(0, total, size):
                group = list(range(start, min(start + size, total)))
                spares = zone.spares if len(group) == size and drive.sparing not in ("none", "end") else 0
                if drive.sparing.endswith("slip-on"):
                    group = group[spares:] if "front" in drive.sparing else group[: len(group) - spares]
                    sound += [position for position in group if position not in slips]
                else:
                    left = [position for position in group if position not in slips]
                    keep = len(left) if drive.sparing in ("none", "end") else min(len(left), len(group) - spares)
                    sound += left[len(left) - keep :] if "front" in drive.sparing else left[:keep]
            sound = [moved.get(position, position) for position in sound]
        found += [(first_track + position // zone.slots, position % zone.slots) for position in sound[zone.empty :]]
    return found


def slot_of(drive: HddParameters, extents: list[Extent], sector: int) -> int:
    row = next(row for row in extents if sector < row.end)
    return row.slot + (sector - row.first) % row.per_track


@pytest.mark.parametrize("seed", range(60))
def test_sectors_lie_where_a_naive_numbering_puts_them(seed: int) -> None:
    drive = deep_drive(seed)
    expected = naive_places(drive)
    assert sectors_of(drive) == len(expected)
    locator, extents = Geometry(drive), extents_of(drive)
    assert [(locator.locate(sector).track, slot_of(drive, extents, sector)) for sector in range(len(expected))] == expected
    assert len(set(expected)) == len(expected)


def test_every_scheme_of_sparing_is_among_the_layouts_tried() -> None:
    assert {deep_drive(seed).sparing for seed in range(60)} == set(SPARING)


def test_the_hp_c2247as_outer_zone() -> None:
    """Whole tracks of spares, two of them used up by slips before track 600, and 1632 empty sectors in front (diskspecs.md)."""
    drive = small_drive(
        rotation=11_111_111, heads=13, zones=[(559, 96, 14, 32, 0, 1632, 325, 0)], sparing="tracks", slips=[(0, 468), (0, 526)], capacity=0
    )
    assert drive.sectors == (559 * 13 - 325) * 96 - 1632
    locator = Geometry(drive)
    assert locator.locate(0).track == 17
    assert [locator.locate((track - 17) * 96).track for track in (467, 468, 524, 525, 600)] == [467, 469, 525, 527, 602]


@pytest.mark.parametrize("seed", range(20))
def test_kernels_find_what_the_walk_finds(seed: int) -> None:
    drive = deep_drive(seed)
    locator, extents = Geometry(drive), extent_table(drive)
    for sector in range(0, drive.sectors, 1 if is_compiled() else 7):
        place = locator.locate(sector)
        extent = kernels.extent_of(extents, sector)
        track = kernels.track_of(extents, extent, sector)
        first = kernels.piece_first(extents, extent, sector)
        angle = kernels.track_angle(extents, extent, track, drive.heads)
        order = ("first", "turning-in-zone", "turning").index(drive.head_order)
        assert (track, first, first + extents[extent].per_track) == (place.track, place.first, place.end)
        assert kernels.head_of(extents, extent, track, drive.heads, order) == place.head
        assert (angle + (sector - first) * SLOT_UNIT, extents[extent].slots) == (place.part, place.slots)
        assert kernels.track_bounds(extents, sector) == locator.track_bounds(sector)
        assert kernels.cylinder_end(extents, sector, drive.heads) == locator.cylinder_end(sector)


@with_each("seed", range(5))
def test_skew_hides_head_switch_and_seek(seed: int) -> None:
    """From the end of a track to the start of the next, exactly the slots pass that a switch for writing needs."""
    drive = random_drive(seed)
    locator, sector = Geometry(drive), 0
    for cylinders, slots in drive.zones:
        for track in range(min(cylinders * drive.heads - 1, 3 * drive.heads)):
            first = locator.locate(sector + int(track * slots))
            following = locator.locate(sector + int((track + 1) * slots))
            skew = (following.part - first.part) % (slots * SLOT_UNIT)
            same_cylinder = (track + 1) % drive.heads != 0
            switch = drive.head_switch if drive.heads > 1 else 0
            needed = (drive.head_switch if same_cylinder else max(drive.seek_single, switch)) + drive.write_settle
            assert skew == -(-needed * slots // drive.rotation) % slots * SLOT_UNIT
        sector += int(cylinders * slots) * drive.heads


def test_skews_and_offset_need_not_be_whole_sectors() -> None:
    drive = small_drive(heads=3, zones=[(4, 40, 2.5, 7.25, 1.5, 0, 0, 2)], capacity=0)
    locator = Geometry(drive)
    starts = [locator.locate(40 * track).part / SLOT_UNIT for track in range(5)]
    assert starts == [1.5, 4.0, 6.5, 13.75, 16.25]
    assert [locator.locate(40 * track).cylinder for track in range(5)] == [2, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("order", "heads"), [("first", [0, 1, 2, 0, 1, 2]), ("turning", [2, 1, 0, 0, 1, 2]), ("turning-in-zone", [0, 1, 2, 2, 1, 0])]
)
def test_heads_may_take_turns(order: str, heads: list[int]) -> None:
    """The zone begins at cylinder 1."""
    drive = small_drive(heads=3, zones=[(4, 40, 2, 7, 0, 0, 0, 1)], capacity=0, head_order=order)
    assert [Geometry(drive).locate(40 * track).head for track in range(6)] == heads


def test_slips_push_the_skew_on_where_spares_lie_in_each_cylinder() -> None:
    """DiskSim's layouts of that kind; elsewhere tracks start where they start without slips."""
    drive = small_drive(heads=2, zones=[(4, 20, 1, 2, 0, 0, 3, 0)], sparing="cylinder", slips=[(0, 5)], capacity=0)
    without = dataclasses.replace(drive, slips=())
    starts = [[Geometry(each).locate(37 * cylinder).part // SLOT_UNIT for cylinder in (0, 1, 2)] for each in (drive, without)]
    assert starts == [[0, 4, 7], [0, 3, 6]]


@given(time=st.integers(0, 1000 * WEEK), rotation=st.integers(1000, 20_000_000), slots=st.integers(4, 1000), share=st.floats(0, 0.999))
def test_the_angle_is_exact_at_any_time(time: int, rotation: int, slots: int, share: float) -> None:
    part = int(share * slots * SLOT_UNIT)
    offset = passing(part, slots, rotation)
    assert passing(part + slots * SLOT_UNIT, slots, rotation) == offset + rotation
    start = revolution_for(time, offset, rotation)
    assert start % rotation == 0
    assert time <= start + offset < time + rotation


@given(
    elapsed=st.integers(0, 10**8), rotation=st.integers(1000, 20_000_000), slots=st.integers(4, 1000), part=st.integers(0, 1000 * SLOT_UNIT)
)
def test_slots_ended_inverts_their_passing(elapsed: int, rotation: int, slots: int, part: int) -> None:
    ended = slots_ended(elapsed, part, slots, rotation)
    assert passing(part + ended * SLOT_UNIT, slots, rotation) <= elapsed < passing(part + (ended + 1) * SLOT_UNIT, slots, rotation)
