"""Power cuts of a database on drives of presets: what recovery finds is what the drives' own tests say that survives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from algorithms.restart.base import RESTARTS
from flashsim.device import presets
from flashsim.device.scaling import small_drive
from flashsim.execution.pooled.system import DISK, LOG, SSD
from flashsim.experiments.crashing.drives import DrivePowerCuts
from flashsim.experiments.crashing.histories import drawn_history
from flashsim.experiments.crashing.injection import CrashReport, exhaustive

HARD_DISK = "seagate-st3300655lc"
FLASH = [name for name in presets.names() if presets.load(name).flash and not presets.load(name).array]


def drives(ssd: str, disk: str = HARD_DISK, model: str = "engine") -> DrivePowerCuts:
    return DrivePowerCuts({DISK: small_drive(disk), SSD: small_drive(ssd), LOG: small_drive(disk)}, model)


@pytest.mark.parametrize("ssd", ["mtron-msd-sata3025-16gb", "intel-x25e-64gb"])
@pytest.mark.parametrize("restart", RESTARTS.names())
@pytest.mark.parametrize("seed", [0, 2])
def test_no_power_cut_loses_or_resurrects_data(seed: int, restart: str, ssd: str) -> None:
    """Nor does any drive lose a write that its law keeps, or hold another one than the database takes for durable."""
    report = exhaustive(restart, 2, seed=seed, inject=drives(ssd))
    assert not report.violations and report.points > 20
    assert (report.kept > 0) == (restart != "none")


@pytest.mark.deep
@pytest.mark.parametrize("ssd", FLASH)
@pytest.mark.parametrize("restart", RESTARTS.names())
def test_no_power_cut_of_any_preset_loses_data(restart: str, ssd: str) -> None:
    report = exhaustive(restart, 12, seed=100, inject=drives(ssd))
    assert not report.violations and report.points > 120


def test_a_database_wholly_on_flash_survives_power_cuts() -> None:
    assert not exhaustive("lvr", 6, inject=drives("mtron-msd-sata3025-16gb", disk="mtron-msd-sata3025-16gb")).violations


@pytest.mark.deep
def test_without_forced_unit_access_drives_lose_what_the_database_takes_for_durable() -> None:
    """The loss is of the drives' own making: their models are only asked differently."""
    report = exhaustive("mmr", 12, without=["force-unit-access"], limit=0, inject=drives("mtron-msd-sata3025-16gb"))
    assert report.violations
    history = replace(report.violations[0].history, without=())
    assert drives("mtron-msd-sata3025-16gb")(history, CrashReport("mmr", ())) is None


def test_without_images_pages_torn_on_flash_are_lost() -> None:
    """A page of several flash pages of which some had been programmed."""
    whole_on_flash = drives("mtron-msd-sata3025-16gb", disk="mtron-msd-sata3025-16gb")
    report = exhaustive("lvr", 12, without=["page-images"], limit=0, inject=whole_on_flash)
    assert any("torn" in problem for violation in report.violations for problem in violation.problems)


@pytest.mark.parametrize("seed", range(3))
def test_engine_and_specification_hold_the_same(seed: int) -> None:
    engine, specification = (drives("mtron-msd-sata3025-16gb", model=model) for model in ("engine", "specification"))
    system = engine.build(drawn_history(seed, "lrr"))
    for _ in range(4):
        for _ in range(100):
            system.env.step()
        ours, theirs = engine.lose_power(system), specification.lose_power(system)
        assert {each: ours[each].sectors for each in ours} == {each: theirs[each].sectors for each in theirs}
        assert any(each.sectors for each in ours.values())
