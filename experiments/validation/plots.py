"""The cumulative distributions of measured and simulated response times."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.presentation.plots import LINES, WIDTH, legend, style, svg
from experiments.presentation.report import Report
from experiments.presentation.section import Section
from experiments.presentation.tables import Table
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
        figure = Figure(figsize=(WIDTH, 0.4 + 2.4 * len(panels)), layout="constrained")
        every = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        for axes, (name, rows) in zip(every, panels.items(), strict=True):
            times = {"measured": loop.measured[rows], "simulated": loop.simulated[rows]}
            shares = 100 * (np.arange(int(rows.sum())) + 1) / rows.sum()
            for (label, values), (colour, _), line in zip(times.items(), LINES, ("-", "--"), strict=False):
                axes.step(np.sort(values) / MILLISECONDS, shares, line, where="post", color=colour, label=label, linewidth=1.2)
            axes.set_title(f"{name}: demerit {demerit(*times.values()) / MILLISECONDS:.3f} ms", fontsize=9)
            axes.set_xlim(0, 1.02 * max(float(np.percentile(values, 99.9)) for values in times.values()) / MILLISECONDS)
            axes.grid(color="#dddddd", linewidth=0.5)
        figure.supxlabel("response time, ms", fontsize=9)
        figure.supylabel("share of requests, %", fontsize=9)
        legend(figure, every[0])
    return figure


def write_report(folder: Path, title: str, loop: ClosedLoop, groups: list[Group], others: list[Table], origin: dict[str, Any]) -> None:
    """Fill a folder with ``report.html``, the distributions (SVG), the tables (CSV), and every request with both times (CSV)."""
    whole = groups[0]
    figures = [("demerit", f"{whole.demerit:.3f} ms"), ("of the mean", f"{100 * whole.demerit / whole.measured_mean:.2f} %")]
    figures += [(f"mean error, {group.name}", f"{100 * group.mean_error:+.2f} %") for group in groups[:3]]
    sections = [
        Section("Response times", "Measured drawn solid, simulated dashed.", pictures={"response_times": svg(cumulative(loop))}),
        Section("Means and errors", tables=[replace(summary_table(groups), title="summary")]),
        Section("Percentiles", tables=[replace(percentile_table(groups), title="percentiles")]),
        *(Section("Without each part of the model", tables=[table]) for table in others),
    ]
    lead = "The requests that were measured on the drive, on its model: a closed loop."
    Report(title, lead, figures, sections, origin).write(folder)
    with (folder / "requests.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["operation", "sector", "sectors", "measured_us", "simulated_us"])
        for operation, offset, length, measured, simulated in zip(
            loop.operation, loop.offset, loop.length, loop.measured, loop.simulated, strict=True
        ):
            times = measured / MICROSECONDS, simulated / MICROSECONDS
            writer.writerow([OPERATIONS[operation], offset // SECTOR, length // SECTOR, *times])
