"""Drives in miniature: what they take is the scale's part of what the large drive takes, and rates stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.errors import RefusedError
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.units import KIB, MIB
from flashsim.device import presets
from flashsim.device.block_layer import MAXIMUM_COMMAND
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.device.scaling import STEP, miniature, small_drive
from tests.cases import with_each

DISK, FLASH = "toshiba-5400-320gb", "ocz-core-60gb"
SCALE = 8 * STEP


def taken(preset: Preset, operation: int, offsets: np.ndarray, length: int) -> int:
    """Nanoseconds for requests one after the other."""
    device = Device(preset)
    return int(device.serve(make_requests(operation, offsets, length, serial=True))["completed"].max())


@pytest.mark.parametrize("scale", [2 * STEP, 6 * STEP, 0.5])
def test_a_disk_s_nominal_times_shrink_and_its_rate_stays(scale: float) -> None:
    large = presets.load(DISK)
    small = miniature(large, scale, page=8192).nominal
    assert small.seek == pytest.approx(scale * large.nominal.seek) and small.latency == pytest.approx(scale * large.nominal.latency)
    assert small.read_rate == pytest.approx(large.nominal.read_rate, rel=0.02)


def test_an_erase_block_shrinks_with_the_drive_and_takes_the_same_part() -> None:
    large, small = presets.load(FLASH).flash, miniature(presets.load(FLASH), SCALE).flash
    assert large and small and small.pages_per_block == 8 and small.erase == large.erase / 8
    assert small.capacity == large.capacity // 8 // 4096 * 4096
    assert (small.read, small.program, small.page_size, small.channel_rate) == (large.read, large.program, 4096, large.channel_rate)


@with_each("name", ["corsair-mp600-elite-2tb", "hp-fx700-2tb"])
@with_each("scale", [0.1, 0.5])
def test_an_slc_cache_keeps_its_share_of_the_drive(name: str, scale: float) -> None:
    large, small = presets.load(name).flash, miniature(presets.load(name), scale).flash
    assert large and small and small.slc_cache / small.capacity == pytest.approx(large.slc_cache / large.capacity, rel=1e-6)
    assert small.slc_blocks * small.slc_pages == pytest.approx(large.slc_blocks * large.slc_pages * scale, rel=0.05)


@with_each("name", [DISK, FLASH])
@with_each("operation", [READ, WRITE])
def test_commands_in_order_take_as_long_on_a_miniature(name: str, operation: int) -> None:
    """A command of the miniature stands for eight: its latency shrinks, and the link makes up for the others'."""
    large = presets.load(name)
    offsets = np.zeros(1, np.int64)
    whole, part = (taken(preset, operation, offsets, 16 * MIB) for preset in (large, miniature(large, SCALE)))
    assert part == pytest.approx(whole, rel=0.04)


@pytest.mark.parametrize("operation", [READ, WRITE])
def test_a_request_s_way_to_a_flash_drive_shrinks(operation: int) -> None:
    """Synchronous requests of 1 MiB, and of an eighth, whose commands hold the link besides their bytes."""
    preset = presets.load(FLASH)
    assert preset.flash
    held = {"read_submission": 400_000, "write_submission": 600_000, "link_read_command": 100_000, "link_write_command": 300_000}
    large = replace(preset, parameters=replace(preset.flash, **held))
    places = np.arange(20) * 8 * MIB
    whole = taken(large, operation, places, MIB)
    part = taken(miniature(large, SCALE), operation, places // 8, MIB // 8)
    assert part == pytest.approx(whole / 8, rel=0.04)


def test_a_request_far_away_takes_the_scale_s_part_of_the_time() -> None:
    """Random requests that shrink with the drive; a command is the grain, and the disk has no shorter ones."""
    large = presets.load(DISK)
    length = MAXIMUM_COMMAND
    places = np.random.default_rng(1).integers(0, 250_000 * MIB // (8 * length), 200) * 8 * length
    whole = taken(large, READ, places, 8 * length)
    part = taken(miniature(large, SCALE), READ, places // 8, length)
    assert part == pytest.approx(whole / 8, rel=0.04)


def test_where_each_request_is_a_page_only_the_first_of_those_that_it_stands_for_is_not_continued() -> None:
    flash, disk = (miniature(presets.load(name), SCALE, page=8192) for name in (FLASH, DISK))
    large = presets.load(FLASH).flash
    assert flash.flash and large and disk.disk
    assert flash.flash.continuation_latency == large.continuation_latency and flash.flash.link_read_rate == large.link_read_rate
    assert flash.flash.read_latency == large.continuation_latency + (large.read_latency - large.continuation_latency) // 8
    assert disk.disk.read_hit_after_read == 360_000 and disk.disk.read_miss_after_read == 315_000
    longer = miniature(presets.load(FLASH), SCALE, page=32 * KIB).flash
    assert longer and longer.read_latency == large.read_latency  # none of them is continued


def test_drives_that_cannot_shrink_are_refused() -> None:
    with pytest.raises(RefusedError, match="hp-c2200a has .*seek"):
        miniature(presets.load("hp-c2200a"), 0.5)
    disk = presets.load(DISK)
    assert disk.disk
    with pytest.raises(RefusedError, match="skews"):
        miniature(replace(disk, parameters=replace(disk.disk, zones=((130_000, 1520, 0, 0, 0, 0, 0, 0),), capacity=0)), 0.5)


def test_a_zoned_drive_has_fewer_zones_in_a_part_and_none_that_are_shorter() -> None:
    whole, part = presets.load("wd-zn540-1tb").flash, small_drive("wd-zn540-1tb").flash
    assert whole and part and part.zone_size == whole.zone_size and part.capacity < whole.capacity and part.capacity % part.zone_size == 0
    assert (part.zone_open_limit, part.zone_active_limit) == (min(14, part.capacity // part.zone_size),) * 2
    with pytest.raises(RefusedError, match="wd-zn540-1tb is zoned, and its erase blocks, which make its zones, cannot be shorter"):
        miniature(presets.load("wd-zn540-1tb"), 0.5)
