"""Sectors are found, slots and sectors invert one another, and the angle never drifts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.hdd.geometry import Geometry, sectors_before, sectors_by_cylinder, slot_of, track_of, zone_of, zone_table
from flashsim.hdd.rotation import revolution_for, slot_start, slots_ended
from tests.flashsim.hdd.drives import random_drive, small_drive

WEEK = 7 * 24 * 3600 * 10**9


@pytest.mark.parametrize("seed", range(5))
def test_every_sector_has_its_own_place(seed: int) -> None:
    drive = random_drive(seed)
    geometry, zones = Geometry(drive), zone_table(drive)
    total = int(sectors_by_cylinder(drive).sum())
    places = [geometry.locate(sector) for sector in range(total)]
    assert len({(place.cylinder, place.head, place.offset) for place in places}) == total
    assert places == sorted(places, key=lambda place: (place.cylinder, place.head, place.offset))
    for sector, place in enumerate(places):
        zone = zone_of(zones, sector)
        assert track_of(zones, zone, sector) == place.cylinder * drive.heads + place.head
        assert slot_of(zones, zone, sector) % place.per_track == place.slot
        assert drive.zones[zone][1] == place.per_track
        assert geometry.locate(place.track_end - 1)[:2] == place[:2]


def test_sectors_of_a_zone_come_in_the_order_of_their_slots() -> None:
    zones = zone_table(small_drive())
    first, end = 0, int(zones[0, 1])
    slots = [slot_of(zones, 0, sector) for sector in range(first, end)]
    assert slots == sorted(set(slots))
    for slot in range(slots[-1] + 5):
        assert sectors_before(zones, 0, slot) == sum(taken < slot for taken in slots)


@pytest.mark.parametrize("seed", range(5))
def test_skew_hides_head_switch_and_seek(seed: int) -> None:
    """From the end of a track to the start of the next, exactly the slots pass that a switch for writing needs."""
    drive = random_drive(seed)
    zones = zone_table(drive)
    for zone, (cylinders, per_track) in enumerate(drive.zones):
        for track in range(min(cylinders * drive.heads - 1, 3 * drive.heads)):
            last = int(zones[zone, 0]) + (track + 1) * per_track - 1
            slots = slot_of(zones, zone, last + 1) - slot_of(zones, zone, last) - 1
            same_cylinder = (track + 1) % drive.heads != 0
            needed = (drive.head_switch if same_cylinder else drive.seek_single) + drive.write_settle
            assert slots * drive.rotation >= needed * per_track > (slots - 1) * drive.rotation


@given(time=st.integers(0, 1000 * WEEK), rotation=st.integers(1000, 20_000_000), per_track=st.integers(4, 1000), share=st.floats(0, 0.999))
def test_the_angle_is_exact_at_any_time(time: int, rotation: int, per_track: int, share: float) -> None:
    slot = int(share * per_track)
    offset = slot_start(slot, per_track, rotation)
    assert slot_start(slot + per_track, per_track, rotation) == offset + rotation
    start = revolution_for(time, offset, rotation)
    assert start % rotation == 0
    assert time <= start + offset < time + rotation


@given(elapsed=st.integers(0, 10**9), rotation=st.integers(1000, 20_000_000), per_track=st.integers(4, 1000))
def test_slots_ended_inverts_slot_start(elapsed: int, rotation: int, per_track: int) -> None:
    slots = slots_ended(elapsed, per_track, rotation)
    assert slot_start(slots, per_track, rotation) <= elapsed < slot_start(slots + 1, per_track, rotation)
