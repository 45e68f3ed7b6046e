"""What policies did as tables, pictures and a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.replacement.base import Replacement
from experiments.caching.comparison import METHOD, OPTIMUM, Comparison
from experiments.caching.session import Simulated
from experiments.presentation.plots import LINES, WIDTH, legend, style, svg
from experiments.presentation.report import Report
from experiments.presentation.section import Section
from experiments.presentation.tables import Entry, Table
from flashsim.core.units import MICROSECONDS, SECONDS, format_size

_STROKES = ("-", "--", ":", "-.")
EXPLAINED = (
    "First: misses of pages never referenced before; again: of pages that had left. A miss reads its page, a dirty page that leaves is "
    "written; what is dirty at the end is not counted. us: processor time a reference."
)


SERVED = (
    "On the device each miss is read and each write-back written before the next reference, or so many at once as its depth is; pages lie "
    "in the order of their ids, without gaps. Flush: what is dirty at the end."
)


def policies_tables(told: Iterable[tuple[str, Replacement]]) -> list[Table]:
    """A row a policy, and a row a parameter."""
    policies: list[list[Entry]] = []
    parameters: list[list[Entry]] = []
    for name, member in told:
        policies.append([name, member.TITLE])
        for parameter, one in member.PARAMETERS.items():
            parameters.append([f"{name}:{parameter}", one.default, f"{one.least:,} to {one.most:,}", one.meaning])
    tables = [Table(["policy", "title"], policies), Table(["parameter", "default", "bounds", "meaning"], parameters)]
    return [table for table in tables if len(table)]


def runs_table(done: Simulated) -> Table:
    """A row a size and policy; what writes would come to only where some are known."""
    header = ["size", "pages", "policy", "hit %", "hits", "misses", "first", "again", "of reads", "of writes", "evictions", "write-backs"]
    rows: list[list[Entry]] = []
    for row in done.rows():
        counts: list[Entry] = [row[name] for name in ("hits", "misses", "first", "again", "read_misses", "write_misses", "evictions")]
        if not done.writes:
            counts[4:6] = None, None
        moved = [row["write_backs"] if done.writes else None, format_size(row["bytes_read"])]
        moved.append(format_size(row["bytes_written"]) if done.writes else None)
        rows.append([row["size"], row["pages"], row["policy"], 100 * row["hit_ratio"], *counts, *moved, row["reference_us"]])
    return Table([*header, "read", "written", "us"], rows, digits=3)


def ratios_table(done: Simulated) -> Table:
    """A row a policy, a column a size: hit ratios."""
    sizes = list(dict.fromkeys(each.size.label for each in done.runs))
    rows: dict[str, list[Entry]] = {}
    for each in done.runs:
        rows.setdefault(each.policy, [each.policy]).append(100 * each.hit_ratio)
    return Table(["hit % at", *sizes], list(rows.values()))


def served_table(done: Simulated) -> Table:
    """A row a size and policy: what a device took."""
    rows: list[list[Entry]] = []
    for row in (each for each in done.rows() if "device" in each):
        times = [row["io_s"], row["cpu_s"], row["total_s"], row["total_s"] * SECONDS / MICROSECONDS / row["references"]]
        rows.append([row["size"], row["policy"], row["pages_read"], row["pages_written"], *times, row["pages_flushed"], row["flush_s"]])
    header = ["size", "policy", "pages read", "written", "I/O s", "CPU s", "total s", "us a reference", "flushed", "flush s"]
    return Table(header, rows, f"On {done.rows()[0].get('device', 'no device')}", digits=3)


def pairs_table(told: Comparison) -> Table:
    """A row a size and policy: its hit ratio, and by how much it hits more often than the first."""
    rows: list[list[Entry]] = []
    for frames, runs in told.by_size():
        first, bound = runs[0], next((each.hit_ratio for each in runs if each.policy == OPTIMUM), 0.0)
        for each in runs:
            row: list[Entry] = [each.size.label, frames, each.policy, 100 * each.hit_ratio]
            row.append(100 * each.hit_ratio / bound if bound else None)
            if each is first:
                rows.append([*row, None, None, None])
                continue
            apart = told.pair(frames, each.policy, first.policy)
            said = {1: "better", -1: "worse", 0: "not told apart"}[apart.sign] + ("" if apart.independent else ", windows depend")
            rows.append([*row, f"{100 * apart.mean:+.3f} ± {100 * apart.half:.3f}", apart.windows, said])
    header = ["size", "pages", "policy", "hit %", "% of opt", f"points more than {told.done.runs[0].policy}", "windows", "is"]
    return Table(header, rows, digits=3)


def best_table(told: Comparison) -> Table:
    """A row a size: who is best there."""
    rows: list[list[Entry]] = [
        [row["size"], row["pages"], row["best"], ", ".join(row["alike"]) or None, 100 * row["hit_ratio"], _percent(row["optimum"])]
        for row in told.best()
    ]
    return Table(["size", "pages", "best", "not told apart from it", "hit %", "opt hit %"], rows, digits=3)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def picture(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Miss ratios over the size, a line a policy; of one size bars."""
    frame = pd.DataFrame(rows)
    names = list(dict.fromkeys(frame["policy"]))
    several = frame["pages"].nunique() > 1
    with style():
        figure = Figure(figsize=(WIDTH, 3.4 + 0.12 * len(names)), layout="constrained")
        axes = figure.subplots()
        if several:
            for number, name in enumerate(names):
                _line(axes, number, frame[frame["policy"] == name], "pages", 1 - frame["hit_ratio"], name)
            axes.set(xscale="log", xlabel="pool, pages", ylabel="miss ratio", ylim=(0, None))
            legend(figure, axes)
        else:
            axes.barh(names, 1 - frame["hit_ratio"], color=LINES[0][0])
            axes.invert_yaxis()
            axes.set(xlabel=f"miss ratio in a pool of {frame['pages'].iloc[0]:,} pages")
    return figure


def differences(told: Comparison) -> Figure:
    """By how much policies hit more often than the first, with intervals, over the size."""
    first = told.done.runs[0].policy
    names = [each.policy for _, runs in told.by_size() for each in runs if each.policy not in (first, OPTIMUM)]
    with style():
        figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        axes = figure.subplots()
        for number, name in enumerate(dict.fromkeys(names)):
            colour, marker = LINES[number % len(LINES)]
            apart = [(frames, told.pair(frames, name, first)) for frames, _ in told.by_size()]
            points = [100 * each.mean for _, each in apart]
            halves = [100 * each.half for _, each in apart]
            stroke = _STROKES[number // len(LINES) % len(_STROKES)]
            axes.errorbar([frames for frames, _ in apart], points, halves, color=colour, marker=marker, markersize=4, linestyle=stroke,
                          capsize=3, label=name)  # fmt: skip
        axes.axhline(0, color="#555555", linewidth=0.8)
        axes.set(xscale="log", xlabel="pool, pages", ylabel=f"points more than {first}")
        legend(figure, axes)
    return figure


def _line(axes: Axes, number: int, rows: pd.DataFrame, x: str, y: pd.Series[float], name: str) -> None:
    colour, marker = LINES[number % len(LINES)]
    stroke = _STROKES[number // len(LINES) % len(_STROKES)]
    axes.plot(rows[x], y[rows.index], color=colour, marker=marker, linestyle=stroke, markersize=4, label=name)


def write_report(folder: Path, *, done: Simulated, origin: Mapping[str, Any], told: Comparison | None = None) -> None:
    """Fill a folder with ``report.html``, tables (CSV) and pictures (SVG)."""
    drawn = {"miss_ratios": svg(picture(done.rows()))} | ({"differences": svg(differences(told))} if told else {})
    sections = [Section("Pictures", pictures=drawn)]
    if told:
        sections.append(Section("Who is better", METHOD, [best_table(told), pairs_table(told)]))
    sections.append(Section("Policies", EXPLAINED, [runs_table(done)]))
    figures = [("references", f"{done.references:,}"), ("pages", f"{done.pages:,}"), ("writes", f"{done.writes:,}")]
    pd.DataFrame(done.rows()).to_csv(folder / "runs.csv", index=False)
    Report(done.trace, done.title(), figures, sections, origin).write(folder)
