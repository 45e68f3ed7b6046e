"""Joins on a zoned drive: temporary files fill zones in order, zones are reset when nothing is left in them, and no page moves."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from algorithms.joins.base import JOINS, JoinParameters, page_format, plan
from flashsim.core.errors import InvalidParameterError
from flashsim.core.parameters import build
from flashsim.core.request import Integers
from flashsim.core.units import KIB
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.execution.drivers import simulate
from flashsim.execution.machine import Machine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.precondition import Precondition
from flashsim.ssd.zones import ZoneError, ZoneState
from flashsim.storage.heap_file import heap_file
from flashsim.storage.relation import Relation
from flashsim.storage.source.base import load_pair, open_source

PAGE = 4 * KIB
#: Four planes of 20 blocks of 16 pages: 16 zones of 256 KiB, a block of each plane.
ZONED: dict[str, Any] = {
    "page_size": "4KiB", "pages_per_block": 16, "blocks_per_plane": 20, "channels": 2, "packages_per_channel": 1, "dies_per_package": 1,
    "planes_per_die": 2, "capacity": "4MiB", "ftl": "block", "gc": "none", "allocation": "static", "read": "40us", "program": "200us",
    "erase": "1.5ms", "channel_rate": "400MB/s", "link_read_rate": "3GB/s", "link_write_rate": "3GB/s", "read_latency": "60us",
    "write_latency": "220us", "queue_depth": 32, "gc_reserve": 2,
}  # fmt: skip
ZONES = {"zone_size": "256KiB", "zone_open_limit": 2, "zone_active_limit": 2}
#: The same flash under a layer that collects, without zones.
COLLECTING: dict[str, Any] = {**ZONED, "ftl": "page", "gc": "greedy", "allocation": "round-robin"}


def device(parameters: dict[str, Any]) -> Device:
    return Device(Preset("drive", "ssd", "a drive", build(SsdParameters, parameters), {}))


@pytest.fixture(scope="module")
def relations() -> tuple[Relation, Relation]:
    return load_pair(open_source("do2009:customer@0.002"), open_source("do2009:orders@0.002"), "c_custkey", "o_custkey")


def rows_of(join: str, relations: tuple[Relation, Relation], drive: Device, placement: str, full: bool = False) -> list[tuple[int, int]]:
    """Pairs of row ids that a join returns on a drive, which holds the relations if it is full."""
    files = [heap_file(relation, PAGE, page_format=page_format(join)) for relation in relations]
    algorithm, rows = plan(join, files[0], files[1], JoinParameters(memory=16)), list[tuple[int, int]]()

    def collect(r: Integers, s: Integers) -> None:
        rows.extend(zip(r.tolist(), s.tolist(), strict=True))

    simulate(algorithm, files, [Machine([drive], full=full)], placement=placement, results=collect)
    return sorted(rows)


@pytest.mark.parametrize("join", JOINS.names())
def test_a_join_writes_its_zones_in_order_and_leaves_them_empty(join: str, relations: tuple[Relation, Relation]) -> None:
    """At most one zone of relations and one of temporary files are being written, and every page is programmed once."""
    drive = device(ZONED | ZONES)
    assert rows_of(join, relations, drive, "zoned") == rows_of(join, relations, device(ZONED), "packed")
    held = sum(state != ZoneState.EMPTY for state in drive.zones.states)
    loaded = sum(-(-heap_file(relation, PAGE, page_format=page_format(join)).pages * PAGE // drive.zone_size) for relation in relations)
    assert 1 <= held <= loaded
    assert not (drive.statistics()["write_amplification"] > 1)  # none without writes


def test_files_are_written_again_only_where_zones_were_reset(relations: tuple[Relation, Relation]) -> None:
    for placement, is_refused in (("zoned", False), ("packed", True)):
        drive = device(ZONED | ZONES)
        rows_of("grace-hash", relations, drive, placement)
        with pytest.raises(ZoneError) if is_refused else nullcontext():
            rows_of("grace-hash", relations, drive, placement)


def test_pages_that_do_not_divide_a_zone_are_refused(relations: tuple[Relation, Relation]) -> None:
    drive = device(ZONED | {"pages_per_block": 15, "zone_size": "240KiB", "capacity": "3840KiB"})
    files = [heap_file(relation, 64 * KIB) for relation in relations]
    with pytest.raises(InvalidParameterError, match="zones of 240 KiB hold no whole number"):
        simulate(plan("grace-hash", files[0], files[1], JoinParameters(memory=16)), files, [Machine([drive])], placement="zoned")


def test_a_drive_that_collects_moves_pages_where_zones_move_none(relations: tuple[Relation, Relation]) -> None:
    """Joins one after another on a full drive of the same flash, whose temporary files overwrite what lay there."""
    zoned, collecting = device(ZONED | ZONES), device(COLLECTING)
    collecting.precondition(Precondition("random"))
    for _ in range(3):
        rows_of("grace-hash", relations, zoned, "zoned")
        rows_of("grace-hash", relations, collecting, "packed", full=True)
    assert zoned.statistics()["write_amplification"] == 1
    assert collecting.statistics()["write_amplification"] > 1.3


def test_pages_that_are_shorter_than_the_writes_of_a_zoned_drive_are_refused(relations: tuple[Relation, Relation]) -> None:
    drive = device(
        {**ZONED, **ZONES, "page_size": "8KiB", "capacity": "8MiB", "zone_size": "512KiB", "read_latency": "90us", "write_latency": "250us"}
    )
    with pytest.raises(InvalidParameterError, match="page_size: 4 KiB, but drive is zoned, and writes 8 KiB at least: --page-size 8KiB"):
        rows_of("grace-hash", relations, drive, "zoned")
