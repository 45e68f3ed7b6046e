"""The report of a replay: the device under it as one HTML page, with its tables (CSV) and pictures (SVG) beside it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flashsim.core.spans import CAUSES
from flashsim.core.units import MB, MILLISECONDS, SECONDS, format_duration
from flashsim.experiments.presentation.plots import LINES, STEPS, legend, lines, panels
from flashsim.experiments.presentation.report import Report, Section
from flashsim.experiments.replaying.device_report import DeviceReport, ReplayComparison, by_operation
from flashsim.ssd.state.drive_state import BlockMap
from traces.summary.histogram import Histogram

#: A distribution of fewer requests, and a history of fewer intervals, say less than the table beside them.
_LEAST_REQUESTS, _LEAST_INTERVALS = 20, 3
#: Blocks of a die are drawn in so many columns at most, neighbours together as their mean.
_MOST_COLUMNS = 1024
_TEXTS = {"Latencies": "Queueing: from arrival to dispatch; service: from there to the end; latency: both."}


def report_of(
    title: str, lead: str, report: DeviceReport, origin: Mapping[str, Any], statistics: dict[str, Any],
    blocks: BlockMap | None = None, comparison: ReplayComparison | None = None,
) -> Report:  # fmt: skip
    """The report of a replay; `lead` is trace, device and pace, in a sentence.

    Statistics and erase blocks are of a simulated device, and the comparison is with other runs of the same requests.
    """
    tables, pictures, frames = report.tables(statistics), dict[str, dict[str, Figure]](), {"operations": report.as_frame()}
    distributions = {name: times for name, times in by_operation(report).items() if name != "all"}
    if _has_shape(distributions):
        pictures["Latencies"] = {"latency": latencies(distributions)}
    if len(busy := report.busy_frame(statistics)):
        frames["busy"] = busy
        pictures |= {"Busy parts": {"busy": busy_parts(busy)}} if len(busy) > 2 else {}
    history = report.observation.history.as_frame() if report.observation and report.observation.history else None
    if history is not None and len(history):
        frames["write_amplification"] = history
        if history["write_amplification"].notna().sum() >= _LEAST_INTERVALS:
            pictures["Write amplification"] = {"write_amplification": amplification_over_time(history)}
    _, last = tables.popitem()
    sections = [_beside(comparison)] if comparison and len(comparison.runs) > 1 else []
    sections += [Section(name, _TEXTS.get(name, ""), [table], pictures.get(name, {})) for name, table in tables.items()]
    if blocks and (blocks.erases.any() or ((blocks.valid > 0) & (blocks.valid < blocks.pages)).any()):
        sections.append(Section("Erase blocks", "A row a die; retired blocks are blank.", pictures={"blocks": block_heat(blocks)}))
    sections.append(Section("Counters of the device", tables=[last] if len(last) else []))
    frames |= {"comparison": pd.DataFrame(comparison.rows())} if comparison else {}
    return Report(title, lead, _figures(report, statistics), sections, origin, frames)


def _figures(report: DeviceReport, statistics: dict[str, Any]) -> list[tuple[str, str]]:
    result = report.as_dict(statistics)
    figures = [("time", format_duration(result["duration"])), ("requests", f"{result['requests']:,}")]
    if result["iops"]:
        figures += [("requests a second", f"{result['iops']:,.0f}"), ("MB/s", f"{result['bytes_per_second'] / MB:,.1f}")]
    for name, row in result["operations"].items():
        times = {"mean latency": row["latency_mean"], "99 % within": row["latency_p99"]}
        figures += [(f"{name}: {what}", format_duration(round(time))) for what, time in times.items()]
    if result.get("write_amplification"):
        figures.append(("write amplification", f"{result['write_amplification']['total']:.2f}"))
    return figures


def _beside(comparison: ReplayComparison) -> Section:
    histograms = {name: by_operation(report) for name, report in comparison.runs.items()}
    operations, pictures = [*histograms[comparison.name]], {}
    for operation in operations if len(operations) > 2 else operations[:1]:  # the last is all of them
        times = {name: each[operation] for name, each in histograms.items() if operation in each}
        if _has_shape(times):
            pictures[f"comparison_{operation}"] = latencies(times)
    return Section("Beside other runs of the same requests", "", [comparison.table()], pictures)


def _has_shape(times: Mapping[str, Histogram]) -> bool:
    """A distribution is of enough requests, and not of one latency alone."""
    return any(each.count >= _LEAST_REQUESTS and len(each.distribution()[0]) > 1 for each in times.values())


def latencies(times: Mapping[str, Histogram]) -> Figure:
    """The share of requests that took at most so long, by operation, with equal room for 90 %, 99 %, 99.9 %, ... of them."""
    series = {}
    for name, histogram in times.items():
        if histogram.count:  # how many nines a share has; the last request stands half a request above the one before
            values, shares = histogram.distribution()
            series[name] = np.maximum(values, 1) / MILLISECONDS, -np.log10(np.maximum(1 - shares, 0.5 / histogram.count))
    most = max([1.0, *(float(nines[-1]) for _, nines in series.values())])
    figure = lines(series, 3.4, line=STEPS, xscale="log", ylim=(0, 1.03 * most), xlabel="latency (ms)", ylabel="share of requests")
    ticks = range(int(most) + 1)
    (axes,) = figure.axes
    axes.set_yticks(list(ticks), ["0 %", *(f"{100 - 100 / 10**nine:.{max(0, nine - 2)}f} %" for nine in ticks[1:])])
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    return figure


def busy_parts(busy: pd.DataFrame) -> Figure:
    """The busy share of each part, those of a kind side by side in one colour (columns `part`, `busy`)."""
    with panels(2.4) as (figure, axes):
        kinds = busy["part"].str.split().str[0]
        for kind, (colour, _) in zip(kinds.unique(), LINES, strict=False):
            places = np.flatnonzero(kinds == kind)
            axes.bar(places, 100 * busy["busy"].iloc[places], 0.9, color=colour, label=kind)
        axes.set(xticks=[], ylim=(0, 105), ylabel="busy (%)")
        legend(figure, axes)
    return figure


def amplification_over_time(history: pd.DataFrame) -> Figure:
    """Write amplification by interval, stacked by cause where counters have causes (columns of `observation.CounterHistory`)."""
    with panels(2.8) as (figure, axes):
        causes = [cause for cause in CAUSES if f"write_amplification_{cause}" in history]
        columns = [f"write_amplification_{cause}" for cause in causes] or ["write_amplification"]
        filled = history.fillna(0.0)
        edges = np.append(filled["begin"], filled["time"].iloc[-1]) / SECONDS
        floor = np.zeros(len(edges))
        for label, column, (colour, _) in zip(causes or ["all causes"], columns, LINES, strict=False):
            values = np.append(filled[column], filled[column].iloc[-1])
            if values.any():
                axes.fill_between(edges, floor, floor + values, step="post", color=colour, label=label, linewidth=0)
            floor = floor + values
        axes.set(ylim=(0, None), xlabel="time (s)", ylabel="write amplification")
        legend(figure, axes, 5)
    return figure


def block_heat(blocks: BlockMap) -> Figure:
    """The erase blocks of every die (a row each): which share of a block is valid, and how often it was erased; retired ones are blank."""
    with panels(1.6 + 2 * min(4.0, 0.4 + 0.12 * len(blocks.valid)), 2, sharex=True) as (figure, (above, below)):
        values = [np.ma.array(values, mask=blocks.retired) for values in (blocks.valid / blocks.pages, blocks.erases)]
        _heat(figure, above, values[0], "valid share", 1.0)
        _heat(figure, below, values[1], "erases", max(1.0, float(blocks.erases.max())))
        below.set_xlabel("block of the die")
    return figure


def _heat(figure: Figure, axes: Axes, values: Any, label: str, most: float) -> None:
    dies, count = values.shape
    step, rows = -(-count // _MOST_COLUMNS), np.arange(0, dies, max(1, dies // 8))
    means = np.ma.stack([values[:, start : start + step].mean(axis=1) for start in range(0, count, step)], axis=1)
    picture = axes.imshow(means, aspect="auto", interpolation="nearest", cmap="viridis", vmin=0.0, vmax=most, extent=(0, count, dies, 0))
    axes.set_ylabel("die")
    axes.set_yticks(rows + 0.5, map(str, rows))
    figure.colorbar(picture, ax=axes, label=label)


def over_time(timelines: Mapping[str, pd.DataFrame]) -> Figure:
    """Latencies of one drive or several over time, and below them write amplification where there is any.

    Frames have columns `begin_s`, `end_s`, `p50_us`, `p99_us` and perhaps `write_amplification`.
    """
    has_writes = {name: frame.get("write_amplification", pd.Series(dtype=float)).notna().any() for name, frame in timelines.items()}
    rows, height = (2, 4.6) if any(has_writes.values()) else (1, 3)
    with panels(height, rows, squeeze=False, sharex=len(timelines) == 1) as (figure, grid):
        above, below = grid[0, 0], grid[-1, 0]
        for number, (name, frame) in enumerate(timelines.items()):
            colour, middle = LINES[number % len(LINES)][0], (frame["begin_s"] + frame["end_s"]) / 2
            above.plot(middle, frame["p50_us"], color=colour, label=f"{name}, median")
            above.plot(middle, frame["p99_us"], color=colour, linestyle=":", label=f"{name}, 99 %")
            if has_writes[name]:
                below.plot(middle, frame["write_amplification"], color=colour)
        above.set(yscale="log", ylabel="latency (µs)")
        if rows == 2:
            below.set(ylim=(0, None), ylabel="write amplification")
        legend(figure, above)
        below.set_xlabel("time (s)")
    return figure
