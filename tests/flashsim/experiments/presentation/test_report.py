"""The page that reports share: words of files stay words, what has nothing to say is left out, and wide tables become cards."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.request import COMPLETION
from flashsim.experiments.bench.session import BenchSession
from flashsim.experiments.bench.uflip import COLUMNS
from flashsim.experiments.presentation.plots import STEPS, legend, lines, style, svg
from flashsim.experiments.presentation.report import Report, Section, cards
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.replaying.device_report import DeviceReport
from flashsim.experiments.replaying.report import report_of
from flashsim.experiments.validation.joins_report import Witnesses, noise_table
from flashsim.experiments.validation.joins_report import table as joins_table
from flashsim.operations.face.bench import BenchOutcome
from tests.html_page import whole
from traces.file.schema import make_batch

#: What a file or a preset may be called.
HOSTILE = "<script>alert('$x$ $y$')</script> --><img src=x> --!>\"onload='1' &amp;"


def drawing(label: str) -> str:
    with style():
        figure = Figure(figsize=(4, 3), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], label=label)
        legend(figure, axes)
    return svg(figure)


def test_words_of_files_are_words_and_nothing_else() -> None:
    sections = [
        Section(HOSTILE, HOSTILE, [Table([HOSTILE], [[HOSTILE]], note=HOSTILE)], {HOSTILE: drawing(HOSTILE)}, terms=[(HOSTILE, HOSTILE)])
    ]
    page = whole(Report(HOSTILE, HOSTILE, [(HOSTILE, HOSTILE)], sections, {"trace": HOSTILE}).html())
    assert page.words.count("<script>alert('$x$ $y$')</script>") >= 10 and page.tags["img"] == 0


def test_lines_are_told_apart_and_a_section_takes_figures() -> None:
    figure = lines({str(number): ([0, 1], [number, number]) for number in range(12)}, xlabel="time, s")
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == 12 and len(figure.legends[0].texts) == 12
    assert Section("Lines", pictures={"lines": figure}).pictures["lines"].startswith("<svg")
    assert not lines({"": ([0, 1], [1, 2])}, line=STEPS).legends


def test_dollars_in_the_names_of_runs_begin_no_formula() -> None:
    assert "\\frac" in drawing(r"a$\frac$.bin")  # which would be refused as a formula


def test_sections_without_anything_to_show_are_left_out_of_page_and_contents() -> None:
    report = Report("one", "lead", [], [Section("Nothing"), Section("Words", "so")], {})
    page = whole(report.html())
    assert "Nothing" not in page.words and {"words", "provenance", "top"} <= set(page.ids)
    assert page.addresses.count("#words") == 1


def test_columns_without_an_entry_are_left_out_and_only_wide_tables_become_cards() -> None:
    table = Table(["join", "never", "s"], [["bnl", None, 1.5]])
    page = whole(Report("one", "lead", [], [Section("Words", tables=[table])], {}).html())
    assert "never" not in page.words and "1.50" in page.words
    widths = [int(re.sub(r"\D", "", cards(Table(["number"] * count, [[1e6] * count]))) or 0) for count in (1, 3, 6, 9, 30)]
    assert widths == sorted(widths) and widths[0] == 0 < widths[2]


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


def replayed(latencies: Any) -> DeviceReport:
    report = DeviceReport()
    completions = np.zeros(len(latencies), COMPLETION)
    completions["submitted"] = completions["started"] = np.arange(len(latencies)) * 10**9
    completions["completed"] = completions["submitted"] + latencies
    report.add(make_batch({"offset": np.arange(len(latencies)) * 4096, "length": np.full(len(latencies), 4096)}), completions)
    return report


def test_a_distribution_is_drawn_of_many_requests_that_differ(tmp_path: Path) -> None:
    for number, latencies in enumerate(([5] * 100, [5, 5_000_000], np.arange(1, 101) * 10_000)):
        folder = tmp_path / str(number)
        folder.mkdir()
        report_of("title", "lead", replayed(np.array(latencies)), {}, {}).write(folder)
        assert (folder / "latency.svg").exists() is (number == 2)
        assert whole((folder / "report.html").read_text(encoding="utf-8")).tags["svg"] == (number == 2)


def test_noise_is_told_of_repeats_only() -> None:
    times = [np.array([1.0, 2.0]), np.array([1.5, 2.0])]
    for repeats, shown in ((1, False), (2, True)):
        join = Witnesses("bnl", ["join"], [2], [1.0], None, 8192, executed=times[:repeats], replayed={"builtin": times[:repeats]})
        done: Any = SimpleNamespace(setting=SimpleNamespace(repeats=repeats), engines=["builtin"], joins=[join])
        table = noise_table(done)
        assert ("executed: noise" in table.columns) is shown and ("noise" in table.attrs["note"]) is shown
        assert "engines differ by" not in table.columns


def test_a_bound_is_no_formula_that_a_run_is_held_against() -> None:
    """Its row, and that of the whole, say so; a phase without a formula does not count as one of no time."""
    phases, times = ["project", "fetch", "sort candidates"], [np.array([1.0, 2.0, 3.0])]
    begins = [(phase, number) for number, phase in enumerate(phases)]
    join = Witnesses("digest", phases, [1] * 3, [1.0] * 3, [1.0, 0.1, 0.0], ["", "lower bound", "no formula"], 8192, executed=times)
    join.begins = begins
    done: Any = SimpleNamespace(joins=[join])
    rows = joins_table(done).set_index("phase")
    assert rows["remark"].to_dict() | {"project": None} == {
        "project": None, "fetch": "lower bound", "sort candidates": "no formula", "total": "lower bound, no formula"
    }  # fmt: skip
    assert [each is None for each in rows["formula / executed"]] == [False, True, True, True]
    join.remarks = [""] * 3
    assert "remark" not in joins_table(done).columns
