"""The page that reports share: words of files stay words, what has nothing to say is left out, and wide tables become cards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flashsim.core.request import COMPLETION
from flashsim.experiments.presentation.plots import STEPS, legend, lines, style, svg
from flashsim.experiments.presentation.report import Report, Section, cards
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.replaying.device_report import DeviceReport
from flashsim.experiments.replaying.report import report_of
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
