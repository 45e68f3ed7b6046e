"""The CPU preset of do2009: it holds what the fit finds, the fit sees the calibration cells alone, and other cells follow from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flashsim.apps.papers import base as papers
from flashsim.apps.papers.do2009 import cpu_fit
from flashsim.apps.papers.do2009.cpu_fit import ROWS
from flashsim.apps.papers.do2009.runs import CPU, DEVICES, JOINS
from flashsim.core.units import SECONDS
from flashsim.execution import cpu
from flashsim.execution.requests import Work
from tests.cases import with_each


@pytest.fixture(scope="module")
def found() -> cpu.CpuModel:
    return cpu_fit.fit_preset()[0]


def test_the_preset_holds_what_the_fit_finds(found: cpu.CpuModel) -> None:
    preset = cpu.load(CPU)
    assert dict(preset.prices()) == pytest.approx(dict(found.prices()), rel=2e-3)  # another library may round the third digit otherwise
    assert set(preset.sources) == set(found.sources)
    assert all(source.startswith("fitted: do2009, table") for source in preset.sources.values())


def test_the_fit_sees_the_calibration_cells_alone() -> None:
    claims = {claim.id: claim for claim in papers.load("do2009").claims}
    solved_from = {parameter.name: parameter.solved_from for parameter in claims["table3-join"].rests_on}["prices of CPU work"]
    assert solved_from["table3-join"] == [f"{memory} MB" for memory in cpu_fit.CALIBRATION_MEMORY]
    assert solved_from["table5"] == [f"{kilobytes} KB" for kilobytes in cpu_fit.CALIBRATION_ROWS]
    wanted = []
    for join in JOINS:
        wanted += [claims["table3-join"].published[join][place] for place in (1, 4)]
    for device in DEVICES:
        wanted += [claims["table5"].published[f"{device}, user"][place] for place in (2, 4)]
    assert [cell.published for cell in cpu_fit.cells()] == wanted


def test_kernel_prices_give_their_rows_exactly() -> None:
    published = next(claim for claim in papers.load("do2009").claims if claim.id == "table5").published
    kernel = cpu_fit.fit_kernel()
    for device in kernel:
        for kilobytes in cpu_fit.CALIBRATION_ROWS:
            seconds = cpu_fit.kernel_seconds(kernel, device, cpu_fit.page_sized(kilobytes))
            assert seconds == pytest.approx(published[f"{device}, kernel"][ROWS.index(kilobytes)], rel=1e-9)


def test_cells_made_from_prices_are_found_again() -> None:
    """What the cells do not tell is left to the rule for dividing, so cells come back, and prices need not."""
    prices = np.geomspace(100, 1500, len(Work))
    made = [replace(cell, published=cell.value(prices)) for cell in cpu_fit.cells()]
    again = cpu_fit.fit_user(made)
    assert [cell.value(again) for cell in made] == pytest.approx([cell.published for cell in made], rel=5e-3)


@with_each("kilobytes", sorted(set(ROWS) - set(cpu_fit.CALIBRATION_ROWS)))
@with_each("device", DEVICES)
def test_rows_of_table_5_that_the_fit_did_not_see_follow(found: cpu.CpuModel, device: str, kilobytes: int) -> None:
    claim = next(claim for claim in papers.load("do2009").claims if claim.id == "table5")
    run, kind = cpu_fit.page_sized(kilobytes), device.lower()
    kernel = (found.per_request[kind] * run["commands"] + found.per_byte[kind] * run["bytes"]) / SECONDS
    work: dict[str, int] = {each: run[each] for each in Work if each in run}
    for time, seconds in (("user", found.user_time(work) / SECONDS), ("kernel", kernel)):
        assert seconds == pytest.approx(claim.published[f"{device}, {time}"][ROWS.index(kilobytes)], rel=claim.limits["each"])


@pytest.mark.parametrize("join", JOINS)
def test_the_committed_counts_are_those_of_a_small_run_at_scale(join: str) -> None:
    """Counts are proportional to the scale, but for the depth of a tournament tree, and for blocks that are not full."""
    scale = 0.03  # from 0.02 on, nested loops reads R in as many chunks as at scale 1
    small, large = cpu_fit.count_work(join, 500, scale), cpu_fit.committed_work()[0][join, 500]
    assert small["bytes"] / scale == pytest.approx(large["bytes"], rel=0.1)
    for kind in set(Work) - {Work.COMPARE, Work.PAGE}:
        assert small.get(kind, 0) / scale == pytest.approx(large.get(kind, 0), rel=0.1)
    if join != "sort-merge":
        assert small[Work.COMPARE] / scale == pytest.approx(large[Work.COMPARE], rel=1e-6)


@pytest.mark.deep
@pytest.mark.timeout(1200)  # two minutes on an idle machine
def test_the_committed_counts_are_what_the_algorithms_count() -> None:
    assert cpu_fit.work_text() == cpu_fit.FILE.read_text(encoding="utf-8")
