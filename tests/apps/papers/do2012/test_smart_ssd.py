"""Chapter 5 at a small scale: the verdicts are those of the whole table, since all but the first and last requests are alike."""

from __future__ import annotations

import pytest

from flashsim.apps.papers.base import Settings, load
from flashsim.apps.papers.do2012.scans import DISK, DISK_POWER, PAGE, ROWS, ROWS_A_PAGE, SMART, SSD, bandwidth, inside, on_host
from flashsim.device import presets
from flashsim.device.smart.inside import HOST_BYTE, MACHINE_IDLE
from flashsim.experiments.judging.claims import Verdict
from flashsim.experiments.runs.jobs import make

PART = 1 / 200


@pytest.mark.parametrize("claim", ["table5.1", "fig5.4", "fig5.5"])
def test_verdicts_of_chapter_5(claim: str) -> None:
    paper, settings = load("do2012"), Settings(PART)
    told = paper.claim(claim)
    judgement = paper.judge(told, make(paper.exhibit(str(told.exhibit)).jobs([claim], settings), settings))
    assert judgement.verdict is Verdict.FITTED
    assert all(cell.inside for cell in judgement.cells)


def test_bandwidths_are_those_of_table_5_1() -> None:
    rates = [bandwidth(name, 10**9)["mb_s"] for name in (DISK, SSD, SMART)]
    assert rates == pytest.approx([80, 550, 1560], rel=0.01)


def test_the_solved_powers_are_the_published_energies() -> None:
    """19.4 and 10.6 over idle, and the disk's 295 kJ, determine all three (the arithmetic of the thesis, without a simulator)."""
    size, smart = ROWS / ROWS_A_PAGE["NSM"] * PAGE, presets.load(SMART)
    assert smart.inside and smart.flash
    disk = 295_000 - 1188 * MACHINE_IDLE
    reading = smart.inside.active / 1000 / smart.flash.bus_rate
    in_drive = reading * ROWS / ROWS_A_PAGE["PAX"] * PAGE + 2 * smart.inside.core_power / 1000 * 85
    assert in_drive == pytest.approx(disk / 19.4, rel=0.02)
    assert (reading + HOST_BYTE) * size == pytest.approx(10.6 * disk / 19.4, rel=0.02)
    assert HOST_BYTE * size + DISK_POWER * 1205 == pytest.approx(disk, rel=0.02)


@pytest.mark.deep
def test_half_of_the_rows_is_where_the_drive_stops_to_gain() -> None:
    """55 % by the thesis's seconds alone."""
    rows = ROWS // 200
    ssd = on_host(SSD, rows)["seconds"]
    below, above = (inside(rows, "PAX", share, False)["seconds"] for share in (0.48, 0.6))
    assert below < ssd < above


@pytest.mark.deep
def test_more_cores_help_up_to_the_bus() -> None:
    rows = ROWS // 200
    two, four, eight = (inside(rows, "PAX", 0.001, False, cores)["seconds"] for cores in (2, 4, 8))
    assert two / four == pytest.approx(ROWS * 283e-9 / 2 / (ROWS / ROWS_A_PAGE["PAX"] * PAGE / 1560e6), rel=0.03)
    assert four == pytest.approx(eight, rel=0.01)
