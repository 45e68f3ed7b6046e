"""Pictures: their style, stacked bars of I/O and CPU time, and SVG; figures are made directly, without pyplot and its global state."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

#: Dark for I/O and light for CPU, one hue a label; told apart without colour by their order and by the names under the bars.
COLOURS = (("#1f4e79", "#9dc3e6"), ("#7f3f00", "#f4b183"), ("#385723", "#a9d18e"), ("#5b2c6f", "#c9a7d8"))
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "flashsim",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

#: Line and marker of one series after another, told apart without colour too.
LINES = (("#1f4e79", "o"), ("#c55a11", "s"), ("#385723", "^"), ("#7030a0", "v"), ("#7f7f7f", "D"), ("#bf9000", "x"))

_DOT: dict[str, Any] = {"marker": "o", "linestyle": "", "color": "black", "markerfacecolor": "white", "markersize": 3.5}


@dataclass(frozen=True)
class Bar:
    """One bar: I/O seconds with CPU seconds on top, in a group; `formula` is drawn as a dot."""

    group: str
    label: str
    io: float
    cpu: float
    formula: float | None = None


def style() -> AbstractContextManager[None]:
    """How all pictures look, within a ``with``."""
    return matplotlib.rc_context(_STYLE)


def stacked_bars(panels: Mapping[str, Sequence[Bar]], unit: str = "seconds") -> Figure:
    """A figure of grouped, stacked bars.

    Parameters
    ----------
    panels
        Bars by title, one panel below the other on one scale; groups and labels are taken in order of appearance.
    """
    with style():
        figure = Figure(figsize=(8, 2.8 * max(1, len(panels))), layout="constrained")
        every = figure.subplots(max(1, len(panels)), 1, sharey=True, squeeze=False)[:, 0]
        for axes, (title, bars) in zip(every, panels.items(), strict=False):
            _panel(axes, bars)
            axes.set_ylabel(unit)
            axes.set_title(title, fontsize=10)
        dots = [bar for bars in panels.values() for bar in bars if bar.formula is not None]
        handles: list[Any] = [Patch(color=COLOURS[0][0], label="I/O"), Patch(color=COLOURS[0][1], label="CPU")]
        handles += [Line2D([], [], label="I/O by the formula", **_DOT)] if dots else []
        every[0].legend(handles=handles, frameon=False, fontsize=8, ncols=3, loc="upper right")
    return figure


def _panel(axes: Axes, bars: Sequence[Bar]) -> None:
    groups, labels = list(dict.fromkeys(bar.group for bar in bars)), list(dict.fromkeys(bar.label for bar in bars))
    width = 0.8 / max(1, len(labels))
    for bar in bars:
        number = labels.index(bar.label)
        dark, light = COLOURS[number % len(COLOURS)]
        place = groups.index(bar.group) + (number - (len(labels) - 1) / 2) * width
        axes.bar(place, bar.io, 0.92 * width, color=dark)
        axes.bar(place, bar.cpu, 0.92 * width, bottom=bar.io, color=light)
        axes.annotate(bar.label, (place, bar.io + bar.cpu), ha="center", va="bottom", fontsize=6.5)
        if bar.formula is not None:
            axes.plot(place, bar.formula, **_DOT)
    axes.set_xticks(np.arange(len(groups)), groups)


def svg(figure: Figure) -> str:
    """A figure as an SVG element, the same bytes for the same figure, to stand inside a page or in a file."""
    with style():
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": "flashsim"})
    text = stream.getvalue()
    return text[text.index("<svg") :]
