"""A drive that contradicts itself is refused by name, and so are commands that it cannot serve."""

from __future__ import annotations

from typing import Any

import pytest

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.units import KIB
from flashsim.device import presets
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.testing.disks import small_drive
from tests.cases import with_each


@with_each(
    ("changes", "message"),
    [
        ({"capacity": "1MiB"}, "zones: 1320 sectors"),
        ({"capacity": 1000}, "capacity: 1000 B"),
        ({"read_ahead": 100}, "read_ahead: 100 B"),
        ({"write_behind": 100}, "write_behind: 100 B"),
        ({"sector_size": 700, "capacity": 7000, "read_ahead": 0, "write_behind": 0}, "sector_size: 700 B"),
        ({"write_settle": 1501}, "write_settle: 1501 ns"),
        ({"seek_average": 10, "seek_full": 10}, "seek_average: 10 ns"),
        ({"seek_average": 10_000}, "seek_average: 10000 ns"),
        ({"zones": []}, "zones: none"),
        ({"zones": [(10,)]}, "zones:"),
        ({"zones": [(10, 3)]}, "zones:"),
        ({"zones": [(10, 2000.5)]}, "zones:"),
        ({"zones": [(10**15, 2000)]}, "zones:"),
        ({"overhead": 0}, "overhead: 0"),
        ({"rotation": 10}, "zones:"),
        ({"zones": [(20, 30, 30.0, 0, 0, 0, 0, 0)]}, "zones:"),
        ({"zones": [(20, 30, 1, 1, 0, 0.5, 0, 0)]}, "zones:"),
        ({"zones": [(20, 30, 1, 1, 0, 0, 2, 0)]}, "sparing: none"),
        ({"zones": [(20, 30, 1, 1, 0, 0, 30, 0)], "sparing": "tracks", "slips": [(0, 40)]}, "slips:"),
        ({"zones": [(20, 30, 1, 1, 0, 0, 2, 0)], "sparing": "zone", "defects": [(1, 5, 6)]}, "defects:"),
        ({"capacity": 0, "zones": [(20, 30, 1, 1, 0, 1200, 0, 0)]}, "zones: 0 sectors"),
        ({"seek_single": 0}, "seek_single: 0 ns"),
        ({"seek_formula": [(1, 2, 3)]}, "seek_formula:"),
        ({"seek_formula": [(100, 0.0, 0.0, 1.0, 0.1)]}, "seek_formula:"),
        ({"seek_table": [(4, 0.001), (2, 0.001)]}, "seek_table:"),
        ({"read_ahead_least": "32KiB"}, "read_ahead_least: 32 KiB"),
        ({"read_start": 1.5}, "read_start: 1.5"),
    ],
)
def test_contradictions_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{message}"):
        small_drive(**changes)


@with_each("field", ["sparing", "head_order", "read_ahead_bound", "scheduler"])
def test_unknown_names_are_refused(field: str) -> None:
    with pytest.raises(UnknownNameError, match="nothing"):
        small_drive(**{field: "nothing"})


def test_a_drive_without_a_capacity_has_all_that_its_zones_hold() -> None:
    assert small_drive(capacity=0).capacity == (12 * 30 + 20 * 15) * 2 * 512


@with_each("model", [HddEngine, HddSpecification])
@with_each(("offset", "length"), [(0, 0), (100, 512), (0, 100), (-512, 512), (2**19, 512), (2**19 - 512, 1024), (0, 2**62)])
def test_impossible_commands_are_refused(model: type[HddEngine] | type[HddSpecification], offset: int, length: int) -> None:
    device = model(small_drive())
    for operation in (READ, WRITE):
        requests = make_requests(operation, offset, length)
        with pytest.raises(InvalidParameterError, match=r"^command"):
            device.submit(requests, one_command_each(requests), 0)
    unknown = make_requests(7, 0, 512)
    with pytest.raises(InvalidParameterError, match=r"^operation: 7"):
        device.submit(unknown, one_command_each(unknown), 0)
    assert device.outstanding == 0


@pytest.mark.parametrize("model", [HddEngine, HddSpecification])
def test_the_clock_does_not_go_back(model: type[HddEngine] | type[HddSpecification]) -> None:
    device = model(small_drive())
    device.advance(1000)
    with pytest.raises(InvalidParameterError, match=r"^until: 999 ns"):
        device.advance(999)


def test_the_preset_is_the_papers_drive() -> None:
    drive = presets.load("toshiba-5400-320gb").parameters
    assert drive.capacity == 320 * 10**9
    assert drive.seek_average == 12_000_000
    assert drive.rotation / 2 == pytest.approx(5.56e6, rel=0.001)
    command = 128 * KIB
    for work in (drive.read_hit_after_read, drive.read_hit_after_write, drive.write_hit_after_read, drive.write_hit_after_write):
        assert drive.overhead + work == 380_000
        assert command / (command / drive.link_rate + (drive.overhead + work) / 1e9) == pytest.approx(34e6, rel=1e-5)
