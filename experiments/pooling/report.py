"""What systems of pools did as tables, pictures over virtual time and a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.pooling.session import Pools
from experiments.presentation.plots import LINES, WIDTH, legend, style, svg
from experiments.presentation.report import Report
from experiments.presentation.section import Section
from experiments.presentation.tables import Entry, Table
from flashsim.core.units import SECONDS, format_duration

EXPLAINED = (
    "Rates and shares are those of the last part of the time, from an empty memory and an empty SSD on. SSD %: of what memory missed. "
    "Dirty: frames whose page is newer than on disk. MB/s: read from and written to the disk and the SSD, with what the cleaner moves."
)
_STROKES = ("-", "--", ":", "-.")


def runs_table(done: Pools) -> Table:
    """A row a run."""
    rows: list[list[Entry]] = []
    metric = next((row["metric"] for row in done.rows() if "metric" in row), None)
    first = done.rows()[0]["transactions_s"]
    for row in done.rows():
        shares: list[Entry] = [
            100 * row[name] for name in ("memory_hit_ratio", "ssd_hit_ratio", "used_share", "dirty_share", "invalid_share")
        ]
        moved: list[Entry] = [row[name] for name in ("disk_read_mb_s", "disk_written_mb_s", "ssd_read_mb_s", "ssd_written_mb_s")]
        over = row["transactions_s"] / first if first else None
        rates: list[Entry] = [row["transactions_s"], row.get("metric_value"), over, row["over_whole"]]
        rows.append([row["design"], row["without"], *rates, *shares, *moved])
    header = ["design", "without", "transactions/s", metric or "metric", f"over {done.runs[0].name}", "over whole"]
    shares_of = ["memory %", "SSD %", "used %", "dirty %", "invalid %"]
    return Table([*header, *shares_of, "disk read MB/s", "disk written", "SSD read", "SSD written"], rows)


def traffic_table(done: Pools) -> Table:
    """A row a run, device and cause, of those for which pages moved."""
    rows: list[list[Entry]] = [
        [each.name, row["device"], row["cause"], row["how"], row["pages_s"], row["mb_s"], row["pages"]]
        for each in done.runs
        for row in each.traffic()
        if row["pages"]
    ]
    return Table(["design", "device", "cause", "is", "pages/s", "MB/s", "pages in all"], rows, "traffic")


def series_frame(done: Pools) -> pd.DataFrame:
    """A row a run and interval."""
    frames = [pd.DataFrame({"design": each.design, "without": each.without} | each.series()) for each in done.runs]
    return pd.concat(frames, ignore_index=True)


def ramp_up(done: Pools) -> Figure:
    """Transactions a second over time, a line a run; below, the SSD's hit ratio and its dirty share (Do, 2012, figures 3.6 and 3.8)."""
    panels = (
        ("transactions_s", "transactions/s", 1),
        ("ssd_hit_ratio", "SSD hits, % of misses", 100),
        ("dirty_share", "dirty, % of SSD", 100),
    )
    with style():
        figure = Figure(figsize=(WIDTH, 6.4), layout="constrained")
        every = figure.subplots(len(panels), 1, sharex=True)
        for axes, (name, label, factor) in zip(every, panels, strict=True):
            for number, each in enumerate(done.runs):
                told = each.series()
                colour, stroke = LINES[number % len(LINES)][0], _STROKES[number // len(LINES) % len(_STROKES)]
                axes.plot(told["seconds"], [factor * value for value in told[name]], color=colour, linestyle=stroke, label=each.name)
            axes.set_ylabel(label)
            axes.set_ylim(0, None)
        every[-1].set_xlabel("virtual time, s")
        legend(figure, every[0])
    return figure


def traffic(done: Pools) -> Figure:
    """Megabytes a second to and from the disk and the SSD over time, a row a run (Do, 2012, figure 3.9)."""
    with style():
        figure = Figure(figsize=(WIDTH, 0.6 + 1.9 * len(done.runs)), layout="constrained")
        rows = figure.subplots(len(done.runs), 2, squeeze=False, sharex=True)
        for pair, each in zip(rows, done.runs, strict=True):
            told = each.series()
            for axes, device in zip(pair, ("disk", "ssd"), strict=True):
                for (colour, _), how in zip(LINES, ("read", "written"), strict=False):
                    axes.plot(told["seconds"], told[f"{device}_{how}_mb_s"], color=colour, label=how)
                axes.set_title(f"{each.name}: {'disk' if device == 'disk' else 'SSD'}", fontsize=9)
                axes.set_ylim(0, None)
        for axes in rows[-1]:
            axes.set_xlabel("virtual time, s")
        figure.supylabel("MB/s", fontsize=9)
        legend(figure, rows[0, 0])
    return figure


def write_report(folder: Path, *, done: Pools, origin: Mapping[str, Any]) -> None:
    """Fill a folder with ``report.html``, tables (CSV) and pictures (SVG)."""
    sections = [
        Section("Over time", pictures={"ramp_up": svg(ramp_up(done)), "traffic": svg(traffic(done))}),
        Section("Designs", EXPLAINED, [runs_table(done)]),
        Section("Traffic", "Pages that moved in the last part of the time, by device and cause.", [traffic_table(done)]),
    ]
    pd.DataFrame(done.rows()).to_csv(folder / "runs.csv", index=False)
    series_frame(done).to_csv(folder / "series.csv", index=False)
    asked = done.asked
    figures = [("pages", f"{done.pages:,}"), ("clients", str(done.runs[0].system.clients)), ("time", format_duration(asked.time))]
    length = round(done.rows()[0]["told_over_s"] * SECONDS)
    Report(asked.workload, f"{done.title()}; rates over the last {format_duration(length)}.", figures, sections, origin).write(folder)
