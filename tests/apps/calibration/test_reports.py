"""Tables and pages of benchmarks and of joins held against a real file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from flashsim.apps.calibration.bench_session import BenchSession
from flashsim.apps.calibration.face.bench import BenchOutcome
from flashsim.apps.calibration.validation.joins_report import Witnesses, noise_table, table
from flashsim.experiments.bench.uflip import COLUMNS
from tests.html_page import whole


def session(*runs: tuple[int, float]) -> BenchSession:
    """A benchmark of runs with these values and means."""
    rows = [("order", "Incr", "", "SR", value, 8, 0, int(mean), mean, int(mean), 0.0, mean, 1e6) for value, mean in runs]
    return BenchSession("drive", 0, "", 0, [], pd.DataFrame(rows, columns=COLUMNS))


def test_a_benchmark_of_one_value_has_no_picture(tmp_path: Path) -> None:
    for name, shown in (("one", session((1, 5e5))), ("two", session((1, 5e5), (16, 2e6)))):
        BenchOutcome(shown, {}).report(tmp_path / name)
        assert (tmp_path / name / "order.svg").exists() is (name == "two")
        page = whole((tmp_path / name / "report.html").read_text(encoding="utf-8"))
        assert page.tags["svg"] == (name == "two")
    assert "4.00" in page.words  # times as long


def test_noise_is_told_of_repeats_only() -> None:
    times = [np.array([1.0, 2.0]), np.array([1.5, 2.0])]
    for repeats, shown in ((1, False), (2, True)):
        join = Witnesses("bnl", ["join"], [2], [1.0], None, 8192, executed=times[:repeats], replayed={"builtin": times[:repeats]})
        done: Any = SimpleNamespace(setting=SimpleNamespace(repeats=repeats), engines=["builtin"], joins=[join])
        noises = noise_table(done)
        assert ("executed: noise" in noises.columns) is shown and ("noise" in noises.attrs["note"]) is shown
        assert "engines differ by" not in noises.columns


def test_a_bound_is_no_formula_that_a_run_is_held_against() -> None:
    """Its row, and that of the whole, say so; a phase without a formula does not count as one of no time."""
    phases, times = ["project", "fetch", "sort candidates"], [np.array([1.0, 2.0, 3.0])]
    begins = [(phase, number) for number, phase in enumerate(phases)]
    join = Witnesses("digest", phases, [1] * 3, [1.0] * 3, [1.0, 0.1, 0.0], ["", "lower bound", "no formula"], 8192, executed=times)
    join.begins = begins
    done: Any = SimpleNamespace(joins=[join])
    rows = table(done).set_index("phase")
    assert rows["remark"].to_dict() | {"project": None} == {
        "project": None, "fetch": "lower bound", "sort candidates": "no formula", "total": "lower bound, no formula"
    }  # fmt: skip
    assert [each is None for each in rows["formula / executed"]] == [False, True, True, True]
    join.remarks = [""] * 3
    assert "remark" not in table(done).columns
