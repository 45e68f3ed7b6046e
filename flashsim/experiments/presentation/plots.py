"""Pictures: their style, bars of I/O and CPU time, published values beside ours, and SVG; made directly, without pyplot's global state."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.scale import LogScale

#: Dark for I/O and light for CPU, one hue a label; without colour their order and the names under the bars distinguish them.
COLOURS = (("#1f4e79", "#9dc3e6"), ("#7f3f00", "#f4b183"), ("#385723", "#a9d18e"), ("#5b2c6f", "#c9a7d8"))
_STYLE: dict[Any, Any] = {"svg.fonttype": "path", "svg.hashsalt": "flashsim", "font.size": 9.0}
_STYLE |= {"axes.spines.top": False, "axes.spines.right": False}
#: Formats of pictures, by suffix.
FORMATS = (".svg", ".png", ".pdf")
#: Inches across a picture of a report: narrow, so that its words can be read on a phone, where it shrinks to the width of the screen.
WIDTH = 5.4

#: Line and marker of one series after another, distinct without colour too; once all are taken, the next series have the next stroke.
LINES = (("#1f4e79", "o"), ("#c55a11", "s"), ("#385723", "^"), ("#7030a0", "v"), ("#7f7f7f", "D"), ("#bf9000", "x"))
STROKES = ("-", "--", ":", "-.")
#: Looks of lines: with marks at their points, or as steps, which distributions are.
MARKED: dict[str, Any] = {"markersize": 4}
STEPS: dict[str, Any] = {"drawstyle": "steps-post", "marker": ""}
#: A scale of powers of two.
BINARY = LogScale(None, base=2)

#: Axis labels of columns whose names say too little; others are `axis_label`'s.
_LABELS = {"io_s": "I/O time (s)", "cpu_s": "CPU time (s)", "mean_us": "mean latency (µs)", "transactions_s": "transactions/s"}
_LABELS |= {"I/O time, s": "I/O time (s)"}
_TIMES = {"s": "s", "ms": "ms", "us": "µs", "ns": "ns"}

_ABOVE: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom", "fontsize": 7, "rotation": 90}
_BESIDE: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7}
_DOT: dict[str, Any] = {"marker": "o", "linestyle": "", "color": "black", "markerfacecolor": "white", "markersize": 3.5}


#: Published values are hollow and dashed, ours filled and solid; those outside the tolerance also differ in shape.
_PUBLISHED: dict[str, Any] = {"marker": "o", "color": "#555555", "markerfacecolor": "white", "markersize": 5.5}
_PUBLISHED |= {"linestyle": "--", "linewidth": 0.9}
_OURS: dict[str, Any] = {"marker": "o", "linestyle": "-", "color": "#1f4e79", "markersize": 4.5, "linewidth": 1.4}
_OUTSIDE: dict[str, Any] = {"marker": "D", "linestyle": "", "color": "#b3261e", "markersize": 5}
_BAND: dict[str, Any] = {"color": "#e3e3e3", "linewidth": 0}


@dataclass(frozen=True)
class Beside:
    """Published values and ours at the same places, in order; None where one of them is unknown."""

    #: Names below the axis: buffer pools, page sizes, joins.
    places: Sequence[str]
    published: Sequence[float | None]
    ours: Sequence[float | None]
    #: Relative; the band around a published value that ours is judged by. 0 draws none.
    tolerance: float = 0.0

    def errors(self) -> list[float | None]:
        """Differences of ours from the published values, in percent."""
        pairs = zip(self.published, self.ours, strict=True)
        return [100 * (ours / published - 1) if published and ours is not None else None for published, ours in pairs]

    def outside(self) -> list[int]:
        """The numbers of the places where ours is outside the tolerance; none without one."""
        limit = 100 * self.tolerance or float("inf")
        return [number for number, error in enumerate(self.errors()) if error is not None and abs(error) > limit]


@dataclass(frozen=True)
class Bar:
    """A bar: I/O seconds with CPU seconds on top, in a group; `formula` is drawn as a dot."""

    group: str
    label: str
    io: float
    cpu: float
    formula: float | None = None


def style() -> AbstractContextManager[None]:
    """The style of all pictures, within a ``with``."""
    return matplotlib.rc_context(_STYLE)


@contextmanager
def panels(height: float, rows: int = 1, columns: int = 1, width: float = WIDTH, **shared: Any) -> Iterator[tuple[Figure, Any]]:
    """A figure of that height (inches), and its axes, one or an array of them, to be drawn on in our style."""
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots(rows, columns, **shared)


def stroke(number: int) -> dict[str, Any]:
    colour, marker = LINES[number % len(LINES)]
    return {"color": colour, "marker": marker, "linestyle": STROKES[number // len(LINES) % len(STROKES)]}


def lines(
    series: Mapping[str, tuple[Any, Any]], height: float = 3.2, *, names: int = 4, line: dict[str, Any] = MARKED, **axis: Any
) -> Figure:
    """A figure of lines, distinct by colour, marker and stroke, with their names above it, `names` beside each other.

    `series` are places along both axes by name; a single line needs none.  `line` are arguments of `matplotlib.axes.Axes.plot` for each
    line, such as `STEPS`, and others those of `matplotlib.axes.Axes.set`: labels, scales and limits.
    """
    with panels(height) as (figure, axes):
        for number, (name, (x, y)) in enumerate(series.items()):
            axes.plot(x, y, **stroke(number) | {"label": name} | line)
        axes.set(**axis)
        if any(series):
            legend(figure, axes, names)
    return figure


def stacked_bars(by_title: Mapping[str, Sequence[Bar]]) -> Figure:
    """A figure of grouped, stacked bars by title, a panel below the other on one scale; groups and labels in order of appearance."""
    rows = max(1, len(by_title))
    with panels(0.3 + 2.6 * rows, rows, sharey=True, squeeze=False) as (figure, every):
        for axes, (title, bars) in zip(every[:, 0], by_title.items(), strict=False):
            _stack(axes, bars)
            axes.set_ylabel("time (s)")
            axes.set_title(title, fontsize=10)
            axes.margins(x=0.01, y=0.12)
        dots = [bar for bars in by_title.values() for bar in bars if bar.formula is not None]
        handles: list[Any] = [Patch(color=COLOURS[0][0], label="I/O"), Patch(color=COLOURS[0][1], label="CPU")]
        handles += [Line2D([], [], label="I/O by the formula", **_DOT)] if dots else []
        figure.legend(handles=handles, frameon=False, ncols=3, loc="outside upper center")
    return figure


def waterfall(steps: Sequence[tuple[str, float]], title: str) -> Figure:
    """A figure of steps from a first to a last value, seconds: bars of both, and of each difference where the one before ends."""
    with panels(0.6 + 0.36 * len(steps)) as (figure, axes):
        at = 0.0
        for place, (_, seconds) in enumerate(steps):
            is_end = place in (0, len(steps) - 1)
            left = 0.0 if is_end else at
            axes.barh(place, seconds, 0.7, left, color=COLOURS[0][0] if is_end else COLOURS[1 if seconds > 0 else 2][1])
            at = seconds if is_end else at + seconds
            axes.annotate(f"{seconds:.3g}" if is_end else f"{seconds:+.3g}", (max(left, left + seconds), place), (3, -3), **_BESIDE)
        axes.set_yticks(range(len(steps)), [name for name, _ in steps])
        axes.invert_yaxis()
        axes.set_xlabel("I/O time (s)")
        axes.margins(x=0.14)
        figure.suptitle(title, fontsize=9, wrap=True)
    return figure


def _stack(axes: Axes, bars: Sequence[Bar]) -> None:
    groups, labels = list(dict.fromkeys(bar.group for bar in bars)), list(dict.fromkeys(bar.label for bar in bars))
    width = 0.84 / max(1, len(labels))
    for bar in bars:
        number = labels.index(bar.label)
        dark, light = COLOURS[number % len(COLOURS)]
        place = groups.index(bar.group) + (number - (len(labels) - 1) / 2) * width
        axes.bar(place, bar.io, 0.92 * width, color=dark)
        axes.bar(place, bar.cpu, 0.92 * width, bottom=bar.io, color=light)
        above = max(bar.io + bar.cpu, bar.formula or 0)
        axes.annotate(bar.label, (place, above), (0, 5 if bar.formula else 2), **_ABOVE)
        if bar.formula is not None:
            axes.plot(place, bar.formula, **_DOT)
    axes.set_xticks(np.arange(len(groups)), groups)


def plot_beside_published(by_title: Mapping[str, Beside], x: str, y: str, *, columns: int = 2, share: bool = True) -> Figure:
    """A figure of published values beside ours, a panel a row of the published table, on one scale if they share it."""
    rows = -(-len(by_title) // columns)
    with panels(0.5 + 1.75 * rows, rows, columns, sharey=share, squeeze=False) as (figure, grid):
        every = grid.ravel()
        for axes, (title, panel) in zip(every, by_title.items(), strict=False):
            _compare(axes, panel)
            axes.set_title(title, fontsize=9)
            axes.margins(y=0.12)
        for number, axes in enumerate(every):  # once all are drawn: the scale may be one for all
            axes.set_ylim(bottom=0) if number < len(by_title) else axes.remove()
        figure.supxlabel(x, fontsize=9)
        figure.supylabel(y, fontsize=9)
        handles = _handles([*by_title.values()])
        figure.legend(handles=handles, frameon=False, ncols=4, loc="outside upper center", fontsize=8, columnspacing=1.2)
    return figure


def _compare(axes: Axes, panel: Beside) -> None:
    places = np.arange(len(panel.places))
    published, ours = (np.array([np.nan if value is None else value for value in values]) for values in (panel.published, panel.ours))
    if panel.tolerance:
        for place, value in zip(places, published, strict=True):
            axes.bar(place, 2 * panel.tolerance * value, 0.7, bottom=(1 - panel.tolerance) * value, zorder=0, **_BAND)
    axes.plot(places, published, **_PUBLISHED)
    axes.plot(places, ours, **_OURS)
    axes.plot(places[panel.outside()], ours[panel.outside()], **_OUTSIDE)
    axes.set_xticks(places, panel.places, fontsize=8)
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelleft=True)


def _handles(panels: Sequence[Beside]) -> list[Any]:
    tolerances = {panel.tolerance for panel in panels if panel.tolerance}
    band = f"± {100 * max(tolerances):.3g} %" if len(tolerances) == 1 else "tolerance"
    published = any(value is not None for panel in panels for value in panel.published)
    handles: list[Any] = [Line2D([], [], label="published", **_PUBLISHED)] if published else []
    handles += [Patch(label=band, **_BAND)] if tolerances else []
    handles.append(Line2D([], [], label="flashsim", **_OURS))
    return handles + ([Line2D([], [], label="outside", **_OUTSIDE)] if any(panel.outside() for panel in panels) else [])


def axis_label(column: str) -> str:
    """The label of an axis that shows a column: `total_s` is "total time (s)", and other names stay as they are."""
    name, _, unit = column.rpartition("_")
    return _LABELS.get(column) or (f"{name.replace('_', ' ')} time ({_TIMES[unit]})" if name and unit in _TIMES else column)


def series_over(frame: pd.DataFrame, x: str, y: str, series: str | None, split: Sequence[str], x_label: str) -> Figure:
    """A line a series over `x`, in a panel for each combination of values of the columns `split`.

    Column `x` holds numbers, or texts that stand in the order of their appearance.
    """
    groups = list(frame.groupby(list(split), sort=False)) if split else [((), frame)]
    with panels(0.4 + 2.6 * len(groups), len(groups), squeeze=False) as (figure, every):
        for axes, (values, rows) in zip(every[:, 0], groups, strict=True):
            for number, (name, points) in enumerate(rows.groupby(series, sort=False) if series else [(None, rows)]):
                in_order = points.sort_values(x) if pd.api.types.is_numeric_dtype(points[x]) else points
                axes.plot(in_order[x], in_order[y], label=name, **stroke(number) | MARKED)
            axes.set_title(", ".join(map(str, values)), fontsize=9)
            axes.set(xlabel=x_label, ylabel=axis_label(y), ylim=(0, None))
        if series:
            legend(figure, figure.axes[0])
    return figure


def scatter_beside(rows: pd.DataFrame, x: str, y: str, split: str, names: tuple[str, str]) -> Figure:
    """A scatter plot of two columns on logarithmic axes, with the line where they agree.

    Rows where the truth value `split` holds, and the others, look different; `names` are theirs.
    """
    visible = rows[(rows[x] > 0) & (rows[y] > 0)]
    with panels(4.4, width=4.6) as (figure, axes):
        for holds, name, (colour, marker) in zip((True, False), names, LINES, strict=False):
            group = visible[visible[split].astype(bool) == holds]
            axes.plot(group[x], group[y], linestyle="", color=colour, marker=marker, markersize=4, label=name)
        ends = (visible[[x, y]].min().min(), visible[[x, y]].max().max()) if len(visible) else (1, 10)
        axes.plot(ends, ends, color="#999999", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel=axis_label(x), ylabel=axis_label(y))
        legend(figure, axes)
    return figure


def name_ticks(drawing: Figure, names: Mapping[float, str]) -> None:
    """Name places on the horizontal axis of a picture that has one pair of axes."""
    (axes,) = drawing.axes
    axes.set_xticks(list(names), [*names.values()], fontsize=7)
    axes.tick_params(axis="x", which="minor", length=0)


def legend(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """Name the series of a picture above it, where they cover no line; dollars in the names of files begin no formula."""
    handles, labels = axes.get_legend_handles_labels()
    names = [label.replace("$", r"\$") for label in labels]
    figure.legend(handles, names, frameon=False, fontsize=8, ncols=columns, loc="outside upper center")


def svg(figure: Figure) -> str:
    """A figure as an SVG element, the same bytes for the same figure, to stand inside a page or in a file."""
    with style():
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": "flashsim"})
    return "<svg" + stream.getvalue().partition("<svg")[2]


def save(figure: Figure, path: Path, suffix: str) -> None:
    """Write a figure into a file, as what the suffix, one of `FORMATS`, says."""
    if suffix == ".svg":
        path.write_text(svg(figure), encoding="utf-8")
        return
    with style():
        figure.savefig(path, format=suffix[1:], dpi=150)
