"""Pictures of a trace: sizes, times between arrivals, the working set over time, and where on the device requests began."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from flashsim.core.units import GIB, KIB, MIB, MICROSECONDS, SECONDS
from flashsim.studies.presentation import trace_tables
from flashsim.studies.presentation.plots import BINARY, LINES, STEPS, legend, lines, panels
from flashsim.studies.presentation.report import Report
from flashsim.studies.presentation.section import Section


def write_report(folder: Path, title: str, summary: dict[str, Any], origin: dict[str, Any]) -> None:
    """Fill a folder with a report of what `describe` told, pictures only where there is more than one value to show."""
    sizes = sizes_frame(summary)
    sizes.to_csv(folder / "sizes.csv", index=False)
    pictures = {"sizes": share_by_size(sizes)} if sizes["bytes"].nunique() > 1 else {}
    if summary["between"]:
        between = pd.DataFrame({"nanoseconds": summary["between"]["values"], "share": summary["between"]["shares"]})
        between.to_csv(folder / "between.csv", index=False)
        pictures |= {"between": times_between(between)} if len(between) > 1 else {}
    if summary["reuse"]:
        caches = pd.DataFrame({"cache": summary["reuse"]["cache"], "served": summary["reuse"]["served"]})
        caches.to_csv(folder / "reuse.csv", index=False)
        pictures |= {"reuse": served(caches)} if len(caches) > 1 else {}
    if summary["over_time"]:
        windows = windows_frame(summary["over_time"])
        windows.to_csv(folder / "over_time.csv", index=False)
        pictures |= {"working_set": working_set(windows, summary["over_time"])}
        lengths = pd.DataFrame(summary["over_time"]["by_length"])
        lengths.to_csv(folder / "working_set_by_window.csv", index=False)
        pictures |= {"working_set_by_window": working_set_by_window(lengths, summary["over_time"])} if len(lengths) > 1 else {}
        pictures |= {"offsets": offsets(summary["over_time"])}
    tables = trace_tables.tables(summary)
    facts = [table for table in tables if table.columns[0] == "fact"]
    others = [table for table in tables if table.columns[0] != "fact"]
    figures = [(str(name), str(value)) for table in facts for name, value in table.itertuples(index=False) if value is not None]
    sections = [Section("Pictures", pictures=pictures), Section("Operations, times and files", tables=others)]
    Report(title, f"Format: {summary['format']}.", figures, sections, origin).write(folder)


def sizes_frame(summary: dict[str, Any]) -> pd.DataFrame:
    """A row an operation and size: bytes, and how many requests."""
    rows = [
        (name, int(size), count) for name, told in summary["operations"].items() for size, count in told["sizes"].items() if size.isdigit()
    ]
    return pd.DataFrame(rows, columns=["operation", "bytes", "requests"])


def windows_frame(over_time: dict[str, Any]) -> pd.DataFrame:
    """A row a window: where it begins (in its unit), requests, bytes moved, and distinct bytes in it and until its end."""
    columns = {name: over_time[name] for name in ("requests", "bytes", "working_set", "footprint")}
    begin = np.arange(len(over_time["requests"])) * over_time["length"]
    return pd.DataFrame({f"begin_{over_time['unit']}": begin, **columns})


def share_by_size(sizes: pd.DataFrame) -> Figure:
    """The share of an operation's requests that are of at most so many bytes (columns `operation`, `bytes`, `requests`)."""
    series = {}
    for name, rows in sizes.sort_values("bytes").groupby("operation", sort=False):
        values = np.maximum(rows["bytes"].to_numpy(), 1) / KIB
        shares = 100 * rows["requests"].cumsum().to_numpy() / rows["requests"].sum()
        series[str(name)] = np.append(values[0], values), np.append(0, shares)
    ordered = {name: series[name] for name in sizes["operation"].unique()}
    return lines(ordered, line=STEPS, xscale=BINARY, ylim=(0, 103), xlabel="size, KiB", ylabel="share of requests, %")


def times_between(between: pd.DataFrame) -> Figure:
    """The share of arrivals that come at most so long after the one before (columns `nanoseconds`, `share`)."""
    step = np.maximum(between["nanoseconds"], 1) / MICROSECONDS, 100 * between["share"]
    label = "time from one arrival to the next, µs"
    return lines({"": step}, line=STEPS, xscale="log", ylim=(0, 103), xlabel=label, ylabel="share of requests, %")


def served(caches: pd.DataFrame) -> Figure:
    """The share of references that a cache serves which replaces the least recently used page (columns `cache`, bytes, and `served`)."""
    line = caches["cache"] / MIB, 100 * caches["served"]
    return lines({"": line}, xscale=BINARY, ylim=(0, 103), xlabel="LRU cache, MiB", ylabel="references served, %")


def working_set_by_window(lengths: pd.DataFrame, over_time: dict[str, Any]) -> Figure:
    """Distinct bytes in windows of each length (columns `length`, `mean`, `most`)."""
    series = {name: (lengths["length"] / _unit(over_time), lengths[name] / MIB) for name in ("most", "mean")}
    label = f"window, {'s' if over_time['unit'] == 'ns' else 'requests'}"
    return lines(series, xscale=BINARY, ylim=(0, None), xlabel=label, ylabel="distinct, MiB")


def working_set(windows: pd.DataFrame, over_time: dict[str, Any]) -> Figure:
    """Distinct bytes since the begin (column `footprint`); distinct bytes of each window and what it moved (`working_set`, `bytes`)."""
    edges = np.arange(len(windows) + 1) * over_time["length"] / _unit(over_time)
    largest = max(1, int(windows[["working_set", "footprint"]].to_numpy().max()))
    unit, name = next((unit, name) for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "B")) if largest >= unit)
    with panels(4.4, 2, sharex=True) as (figure, (above, below)):
        above.stairs(windows["footprint"] / unit, edges, color=LINES[1][0], baseline=None)
        above.set_ylabel(f"distinct since the begin, {name}")
        below.stairs(windows["working_set"] / unit, edges, color=LINES[0][0], fill=True, label="distinct")
        below.stairs(windows["bytes"] / unit, edges, color=LINES[2][0], label="moved", baseline=None)
        below.set_ylabel(f"in the window, {name}")
        below.set_xlabel(_axis(over_time))
        legend(figure, below)
        for axes in (above, below):
            axes.set_ylim(0, None)
    return figure


def offsets(over_time: dict[str, Any]) -> Figure:
    """How many requests began at which place of the device, over time; devices of one trace lie on one another."""
    counts = np.array(over_time["places"]).T
    extent = (0.0, counts.shape[1] * over_time["length"] / _unit(over_time), 0.0, counts.shape[0] * over_time["place"] / GIB)
    with panels(3.6) as (figure, axes):
        shown = np.ma.masked_equal(counts, 0)
        scale = LogNorm(1, max(2, counts.max()))
        picture = axes.imshow(
            shown, aspect="auto", origin="lower", interpolation="nearest", cmap="viridis", norm=scale, extent=extent, rasterized=True
        )
        axes.set_xlabel(_axis(over_time))
        axes.set_ylabel("offset, GiB")
        figure.colorbar(picture, ax=axes, label="requests")
    return figure


def _unit(over_time: dict[str, Any]) -> int:
    return SECONDS if over_time["unit"] == "ns" else 1


def _axis(over_time: dict[str, Any]) -> str:
    return "time, s" if over_time["unit"] == "ns" else "requests"
