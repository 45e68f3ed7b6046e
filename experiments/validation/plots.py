"""The cumulative distributions of measured and simulated response times."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.presentation.plots import LINES, style, svg
from experiments.replaying.demerit import demerit
from experiments.validation.closed_loop import ClosedLoop
from experiments.validation.comparison import Group, percentile_table, summary_table
from flashsim.core.request import OPERATIONS, READ, SECTOR, WRITE
from flashsim.core.units import MICROSECONDS, MILLISECONDS


def cumulative(loop: ClosedLoop) -> Figure:
    """The share of all requests, of reads and of writes that took at most so long: measured drawn solid, simulated dashed."""
    whole = np.ones(len(loop.measured), np.bool_)
    panels = {"all": whole} | {f"{OPERATIONS[kind]}s": loop.operation == kind for kind in (READ, WRITE)}
    panels = {name: rows for name, rows in panels.items() if rows.any()}
    with style():
        figure = Figure(figsize=(3.2 * len(panels) + 0.6, 3.2), layout="constrained")
        every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (name, rows) in zip(every, panels.items(), strict=True):
            times = {"measured": loop.measured[rows], "simulated": loop.simulated[rows]}
            shares = 100 * (np.arange(int(rows.sum())) + 1) / rows.sum()
            for (label, values), (colour, _), line in zip(times.items(), LINES, ("-", "--"), strict=False):
                axes.step(np.sort(values) / MILLISECONDS, shares, line, where="post", color=colour, label=label, linewidth=1.2)
            axes.set_title(f"{name}: demerit {demerit(*times.values()) / MILLISECONDS:.3f} ms", fontsize=9)
            axes.set_xlabel("response time, ms")
            axes.set_xlim(0, 1.02 * max(float(np.percentile(values, 99.9)) for values in times.values()) / MILLISECONDS)
            axes.grid(color="#dddddd", linewidth=0.5)
        every[0].set_ylabel("share of requests, %")
        every[0].legend(frameon=False, loc="lower right")
    return figure


def write_folder(folder: Path, loop: ClosedLoop, groups: list[Group]) -> None:
    """Write the distributions (SVG), the tables (CSV), and every request with both times (CSV)."""
    (folder / "response_times.svg").write_text(svg(cumulative(loop)), encoding="utf-8")
    summary_table(groups).write_csv(folder / "summary.csv")
    percentile_table(groups).write_csv(folder / "percentiles.csv")
    with (folder / "requests.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["operation", "sector", "sectors", "measured_us", "simulated_us"])
        for operation, offset, length, measured, simulated in zip(
            loop.operation, loop.offset, loop.length, loop.measured, loop.simulated, strict=True
        ):
            times = measured / MICROSECONDS, simulated / MICROSECONDS
            writer.writerow([OPERATIONS[operation], offset // SECTOR, length // SECTOR, *times])
