"""Pictures of a run: latencies with their tail, busy parts, write amplification over time, and the erase blocks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.presentation.plots import LINES, WIDTH, legend, style
from flashsim.core.spans import CAUSES
from flashsim.core.units import MILLISECONDS, SECONDS
from flashsim.ssd.state.block_map import BlockMap
from traces.histogram import Histogram

#: Blocks of a die are drawn in so many columns at most, neighbours together as their mean.
_MOST_COLUMNS = 1024


def latencies(times: dict[str, Histogram]) -> Figure:
    """The share of requests that took at most so long, by operation, with equal room for 90 %, 99 %, 99.9 %, ... of them."""
    with style():
        figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        axes = figure.subplots()
        most = 1.0
        for (name, histogram), (colour, _) in zip(times.items(), LINES, strict=False):
            if histogram.count:
                values, shares = histogram.distribution()
                nines = _nines(shares, histogram.count)
                most = max(most, float(nines[-1]))
                axes.step(np.maximum(values, 1) / MILLISECONDS, nines, where="post", label=name, color=colour)
        ticks = range(int(most) + 1)
        axes.set_yticks(list(ticks), ["0 %", *(f"{100 - 100 / 10**nine:.{max(0, nine - 2)}f} %" for nine in ticks[1:])])
        axes.set_xscale("log")
        axes.set_ylim(0, 1.03 * most)
        axes.set_xlabel("latency, ms")
        axes.set_ylabel("share of requests")
        axes.grid(axis="y", color="#dddddd", linewidth=0.5)
        legend(figure, axes)
    return figure


def _nines(shares: Any, count: int) -> Any:
    """How many nines a share has; the last request of all stands half a request above the one before."""
    return -np.log10(np.maximum(1 - shares, 0.5 / count))


def busy_parts(busy: pd.DataFrame) -> Figure:
    """The busy share of each part, those of a kind side by side in one colour (columns `part`, `busy`)."""
    with style():
        figure = Figure(figsize=(WIDTH, 2.4), layout="constrained")
        axes = figure.subplots()
        kinds = busy["part"].str.split().str[0]
        for kind, (colour, _) in zip(kinds.unique(), LINES, strict=False):
            places = np.flatnonzero(kinds == kind)
            axes.bar(places, 100 * busy["busy"].iloc[places], 0.9, color=colour, label=kind)
        axes.set_xticks([])
        axes.set_ylim(0, 105)
        axes.set_ylabel("busy, %")
        legend(figure, axes)
    return figure


def amplification_over_time(history: pd.DataFrame) -> Figure:
    """Write amplification by interval, stacked by cause where causes are told apart (columns of `amplification.History`)."""
    with style():
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        axes = figure.subplots()
        causes = [cause for cause in CAUSES if f"write_amplification_{cause}" in history]
        columns = [f"write_amplification_{cause}" for cause in causes] or ["write_amplification"]
        shown = history.fillna(0.0)
        edges = np.append(shown["begin"], shown["time"].iloc[-1]) / SECONDS
        floor = np.zeros(len(edges))
        for label, column, (colour, _) in zip(causes or ["all causes"], columns, LINES, strict=False):
            values = np.append(shown[column], shown[column].iloc[-1])
            if values.any():
                axes.fill_between(edges, floor, floor + values, step="post", color=colour, label=label, linewidth=0)
            floor = floor + values
        axes.set_ylim(0, None)
        axes.set_xlabel("time, s")
        axes.set_ylabel("flash bytes a host byte")
        legend(figure, axes, 5)
    return figure


def block_heat(blocks: BlockMap) -> Figure:
    """The erase blocks of every die (a row each): which share of a block is valid, and how often it was erased; retired ones are blank."""
    with style():
        dies = len(blocks.valid)
        figure = Figure(figsize=(WIDTH, 1.6 + 2 * min(4.0, 0.4 + 0.12 * dies)), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        shown = [np.ma.array(values, mask=blocks.retired) for values in (blocks.valid / blocks.pages, blocks.erases)]
        _heat(figure, above, shown[0], "valid share", 1.0)
        _heat(figure, below, shown[1], "erases", max(1.0, float(blocks.erases.max())))
        below.set_xlabel("block of the die")
    return figure


def _heat(figure: Figure, axes: Axes, values: Any, label: str, most: float) -> None:
    dies, count = values.shape
    step = -(-count // _MOST_COLUMNS)
    shown = np.ma.stack([values[:, start : start + step].mean(axis=1) for start in range(0, count, step)], axis=1)
    picture = axes.imshow(shown, aspect="auto", interpolation="nearest", cmap="viridis", vmin=0.0, vmax=most, extent=(0, count, dies, 0))
    axes.set_ylabel("die")
    axes.set_yticks(np.arange(0, dies, max(1, dies // 8)) + 0.5, [str(die) for die in range(0, dies, max(1, dies // 8))])
    figure.colorbar(picture, ax=axes, label=label)


def over_time(timelines: Mapping[str, pd.DataFrame]) -> Figure:
    """Latencies of one drive or several over time, and below them write amplification where there is any.

    Parameters
    ----------
    timelines
        By drive: columns `begin_s`, `end_s`, `p50_us`, `p99_us` and perhaps `write_amplification`.
    """
    amplified = [name for name, frame in timelines.items() if "write_amplification" in frame and frame["write_amplification"].notna().any()]
    with style():
        figure = Figure(figsize=(WIDTH, 4.6 if amplified else 3), layout="constrained")
        every = figure.subplots(2 if amplified else 1, 1, squeeze=False, sharex=len(timelines) == 1)[:, 0]
        for number, (name, frame) in enumerate(timelines.items()):
            colour = LINES[number % len(LINES)][0]
            middle = (frame["begin_s"] + frame["end_s"]) / 2
            every[0].plot(middle, frame["p50_us"], color=colour, label=f"{name}, median")
            every[0].plot(middle, frame["p99_us"], color=colour, linestyle=":", label=f"{name}, 99 %")
            if name in amplified:
                every[1].plot(middle, frame["write_amplification"], color=colour)
        every[0].set_yscale("log")
        every[0].set_ylabel("latency, µs")
        if amplified:
            every[1].set_ylim(0, None)
            every[1].set_ylabel("flash bytes a host byte")
        legend(figure, every[0])
        every[-1].set_xlabel("time, s")
    return figure
