"""The presets as the cost model sees them, and the comparison with a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashsim.core.errors import MissingFileError
from flashsim.device import presets
from flashsim.experiments.formulas.comparison import compare, compare_join, formulas, left_out
from flashsim.experiments.runs.drives import disk_of
from flashsim.experiments.runs.joining import JoinSetting, lay_out, open_pair, simulate_join
from models.haas import JoinCost
from tests.cases import with_each
from tests.test_house import ROOT


def test_presets_have_the_nominal_figures_of_table_2() -> None:
    hdd, ssd = (disk_of(presets.load(name), 8192) for name in ("toshiba-5400-320gb", "ocz-core-60gb"))
    assert hdd.seek_ms == 12 and hdd.latency_ms == pytest.approx(5.56, abs=0.01)
    assert hdd.page_transfer_ms == pytest.approx(8192 / 34e6 * 1000, rel=1e-5) and hdd.page_write_ms is None
    assert (ssd.seek_ms, ssd.latency_ms) == (0, 0.35)
    assert ssd.page_transfer_ms == pytest.approx(8192 / 120e6 * 1000)
    assert ssd.page_write_ms == pytest.approx(8192 / 80e6 * 1000)


@pytest.fixture(scope="module")
def sort_merge() -> object:
    pair = open_pair("do2009:customer@0.05", "do2009:orders@0.05", "c_custkey=o_custkey")
    files = (lay_out(pair[0], 8192), lay_out(pair[1], 8192))
    return simulate_join(JoinSetting("sort-merge", 128), files, ["toshiba-5400-320gb", "ocz-core-60gb"])


def test_one_pass_gives_both_machines_the_same_requests(sort_merge) -> None:
    hdd, ssd = (run.total() for run in sort_merge.runs)
    assert (hdd.reads, hdd.writes, hdd.pages_read, hdd.pages_written) == (ssd.reads, ssd.writes, ssd.pages_read, ssd.pages_written)
    assert hdd.io_time > ssd.io_time


def test_formula_and_run_have_the_same_phases_and_nearly_the_same_pages(sort_merge) -> None:
    rows = compare_join(sort_merge)[0]
    assert len(rows) == 3 and rows[-1].phase == "total"
    for row in rows:
        assert row.pages == pytest.approx(row.formula_pages, rel=0.02)
        assert row.total == pytest.approx(row.io + row.cpu)


@with_each("algorithm", ["bnl", "sort-merge", "simple-hash", "grace-hash", "hybrid-hash"])
def test_formula_and_run_call_the_phases_by_the_same_names(algorithm: str) -> None:
    pair = open_pair("do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey")
    files = (lay_out(pair[0], 8192), lay_out(pair[1], 8192))
    result = simulate_join(JoinSetting(algorithm, 24), files, ["ocz-core-60gb"])
    assert [phase.name for phase in result.runs[0].phases] == [phase.name for phase in formulas(result)[0].phases]
    assert all(row.formula_requests is not None for row in compare_join(result)[0])


def test_a_join_without_a_formula_is_compared_with_nothing(sort_merge) -> None:
    rows = compare(sort_merge.phase_seconds(), None)
    assert all(row.formula_io is None and row.as_dict()["io_difference"] is None for row in rows)


def test_a_join_of_ones_own_brings_its_formula(tmp_path: Path) -> None:
    """In a file beside it, or in its own; without one the join is shown alone."""
    member = (ROOT / "algorithms" / "joins" / "bnl.py").read_text()
    (tmp_path / "twice.py").write_text(
        "from models.join_costs.base import PhaseCounts, Traffic\n"
        "from models.join_costs.bnl import counts as once\n"
        "def counts(sizes, a):\n"
        "    (phase,) = once(sizes, a)\n"
        "    return (PhaseCounts('join', phase.reads + phase.reads),)\n"
    )
    own = (
        "from models.join_costs.base import PhaseCounts, Traffic\n"
        "def counts(sizes, a):\n"
        "    return (PhaseCounts('join', Traffic(1, 2, 3)),)\n"
    )
    pair = open_pair("do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey")
    files = (lay_out(pair[0], 8192), lay_out(pair[1], 8192))

    def told(formula: str, more: str = "") -> JoinCost | None:
        path = tmp_path / "mine.py"
        path.write_text(member.replace('FORMULA = "bnl"', formula) + more)
        return formulas(simulate_join(JoinSetting(str(path), 24, cpu=None), files, ["ocz-core-60gb"]))[0]

    usual, twice, ours = told('FORMULA = "bnl"'), told('FORMULA = "twice.py"'), told("FORMULA = __file__", own)
    assert usual is not None and twice is not None and ours is not None
    assert (twice.seeks, twice.requests, twice.pages) == (2 * usual.seeks, 2 * usual.requests, 2 * usual.pages)
    assert (ours.seeks, ours.requests, ours.pages) == (1, 2, 3)
    assert told("") is None
    with pytest.raises(MissingFileError, match=r"formula: no file at .*elsewhere\.py"):
        told('FORMULA = "elsewhere.py"')


def test_a_phase_without_io_is_not_said_to_lack_a_formula() -> None:
    """Hybrid hash that keeps all of R in memory has nothing left to join."""
    pair = open_pair("do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey")
    files = (lay_out(pair[0], 8192), lay_out(pair[1], 8192))
    result = simulate_join(JoinSetting("hybrid-hash", 256), files, ["ocz-core-60gb"])
    rows = compare_join(result)[0]
    assert rows[-1].phases_left_out == () and left_out(rows) == ""
