"""Runs of policies as tables, pictures and a page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.units import MICROSECONDS, SECONDS, format_size
from flashsim.studies.caching.comparison import METHOD, OPTIMUM, PolicyComparison
from flashsim.studies.caching.session import CacheRuns
from flashsim.studies.presentation.plots import LINES, MARKED, legend, lines, panels, stroke
from flashsim.studies.presentation.report import Report
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table, percent, same

EXPLAINED = (
    "First: misses of pages never referenced before; again: of pages that had left. A miss reads its page, a dirty page that leaves is "
    "written; what is dirty at the end is not counted. us: processor time a reference."
)
SERVED = (
    "On the device each miss is read and each write-back written before the next reference, or so many at once as its depth is; pages lie "
    "in the order of their ids, without gaps. Flush: what is dirty at the end."
)


def runs_table(results: CacheRuns) -> Table:
    """A row a size and policy; what writes would come to only where some are known."""
    columns = same("size", "pages", "policy") | {"hit %": ("hit_ratio", percent)} | same("hits", "misses", "first", "again")
    columns |= {"of reads": "read_misses", "of writes": "write_misses", "evictions": "evictions", "write-backs": "write_backs"}
    columns |= {"read": ("bytes_read", format_size), "written": ("bytes_written", format_size), "us": "reference_us"}
    unknown = () if results.writes else ("of reads", "of writes", "write-backs", "written")
    return Table.of(results.rows(), {head: column for head, column in columns.items() if head not in unknown}, digits=3)


def ratios_table(results: CacheRuns) -> Table:
    """A row a policy, a column a size: hit ratios."""
    sizes = list(dict.fromkeys(each.size.label for each in results.runs))
    rows: dict[str, list[Entry]] = {}
    for each in results.runs:
        rows.setdefault(each.policy, [each.policy]).append(100 * each.hit_ratio)
    return Table(["hit % at", *sizes], list(rows.values()))


def served_table(results: CacheRuns) -> Table:
    """A row a size and policy: what a device took."""
    rows = [row | {"each": row["total_s"] * SECONDS / MICROSECONDS / row["references"]} for row in results.rows() if "device" in row]
    columns = same("size", "policy") | {"pages read": "pages_read", "written": "pages_written", "I/O s": "io_s", "CPU s": "cpu_s"}
    columns |= {"total s": "total_s", "us a reference": "each", "flushed": "pages_flushed", "flush s": "flush_s"}
    return Table.of(rows, columns, title=f"On {results.rows()[0].get('device', 'no device')}", digits=3)


def pairs_table(comparison: PolicyComparison) -> Table:
    """A row a size and policy: its hit ratio, and by how much it hits more often than the first."""
    rows: list[list[Entry]] = []
    for frames, runs in comparison.by_size():
        first, bound = runs[0], next((each.hit_ratio for each in runs if each.policy == OPTIMUM), 0.0)
        for each in runs:
            row: list[Entry] = [each.size.label, frames, each.policy, 100 * each.hit_ratio]
            row.append(100 * each.hit_ratio / bound if bound else None)
            if each is first:
                rows.append([*row, None, None, None])
                continue
            apart = comparison.pair(frames, each.policy, first.policy)
            verdict = {1: "better", -1: "worse", 0: "not told apart"}[apart.sign] + ("" if apart.independent else ", windows depend")
            rows.append([*row, f"{100 * apart.mean:+.3f} ± {100 * apart.half:.3f}", apart.windows, verdict])
    header = ["size", "pages", "policy", "hit %", "% of opt", f"points more than {comparison.results.runs[0].policy}", "windows", "is"]
    return Table(header, rows, digits=3)


def best_table(comparison: PolicyComparison) -> Table:
    """A row a size: who is best there."""
    columns = same("size", "pages", "best") | {"not told apart from it": ("alike", lambda names: ", ".join(names) or None)}
    return Table.of(comparison.best(), columns | {"hit %": ("hit_ratio", percent), "opt hit %": ("optimum", percent)}, digits=3)


def picture(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Miss ratios over the size, a line a policy; of one size bars."""
    frame = pd.DataFrame(rows)
    names, height = list(dict.fromkeys(frame["policy"])), 3.4 + 0.12 * frame["policy"].nunique()
    if frame["pages"].nunique() > 1:
        series = {str(name): (of["pages"], 1 - of["hit_ratio"]) for name, of in frame.groupby("policy", sort=False)}
        return lines(series, height, xscale="log", xlabel="pool, pages", ylabel="miss ratio", ylim=(0, None))
    with panels(height) as (figure, axes):
        axes.barh(names, 1 - frame["hit_ratio"], color=LINES[0][0])
        axes.invert_yaxis()
        axes.set(xlabel=f"miss ratio in a pool of {frame['pages'].iloc[0]:,} pages")
    return figure


def differences(comparison: PolicyComparison) -> Figure:
    """The difference of hit ratios from the first policy's, with intervals, over the size."""
    first, sizes = comparison.results.runs[0].policy, [frames for frames, _ in comparison.by_size()]
    names = [each.policy for _, runs in comparison.by_size() for each in runs if each.policy not in (first, OPTIMUM)]
    with panels(3.4) as (figure, axes):
        for number, name in enumerate(dict.fromkeys(names)):
            apart = [comparison.pair(frames, name, first) for frames in sizes]
            points, halves = [100 * each.mean for each in apart], [100 * each.half for each in apart]
            axes.errorbar(sizes, points, halves, capsize=3, label=name, **stroke(number) | MARKED)
        axes.axhline(0, color="#555555", linewidth=0.8)
        axes.set(xscale="log", xlabel="pool, pages", ylabel=f"points more than {first}")
        legend(figure, axes)
    return figure


def write_report(folder: Path, *, results: CacheRuns, origin: Mapping[str, Any], comparison: PolicyComparison | None = None) -> None:
    """Fill a folder with ``report.html``, tables (CSV) and pictures (SVG)."""
    pictures = {"miss_ratios": picture(results.rows())} | ({"differences": differences(comparison)} if comparison else {})
    sections = [Section("Pictures", pictures=pictures)]
    if comparison:
        sections.append(Section("Who is better", METHOD, [best_table(comparison), pairs_table(comparison)]))
    sections.append(Section("Policies", EXPLAINED, [runs_table(results)]))
    figures = [("references", f"{results.references:,}"), ("pages", f"{results.pages:,}"), ("writes", f"{results.writes:,}")]
    pd.DataFrame(results.rows()).to_csv(folder / "runs.csv", index=False)
    Report(results.trace, results.title(), figures, sections, origin).write(folder)
