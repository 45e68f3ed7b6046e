"""Pictures of papers' published numbers, each with ours beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from flashsim.studies.presentation.plots import panels, svg

#: A row of the page: numbers inside, and published ones.
_ROW = re.compile(r"^\| [\w.-]+ \|[^|]*\| (\d+) of (\d+) \|", re.MULTILINE)
#: Ratios that are drawn where they are; what lies beyond stands at the edge.
EDGES = (0.4, 2.5)
_TICKS = (0.4, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 2.5)
_INSIDE: dict[str, Any] = {"marker": "o", "color": "#1f4e79", "linestyle": "", "markersize": 4}
_OUTSIDE: dict[str, Any] = {"marker": "D", "color": "#b3261e", "linestyle": "", "markersize": 4}
_BAND: dict[str, Any] = {"color": "#d9d9d9", "linewidth": 0}


def write_pictures(reference: Path, folder: Path) -> None:
    """Write a picture of each paper on the page of claims, and Markdown that shows it, for other pages to include."""
    folder.mkdir(exist_ok=True)
    beside = dict(list(pd.read_csv(reference / "claims.csv").groupby("paper")))
    page = (reference / "claims.md").read_text(encoding="utf-8")
    for paper, text in re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL):
        inside, published = (sum(map(int, each)) for each in zip(*_ROW.findall(text), strict=True))
        words = f"Of {published} published numbers of {paper} that nothing was solved from {inside} are inside their tolerance"
        (folder / f"numbers-{paper}.svg").write_text(_ratios(beside[paper]), encoding="utf-8")
        lead = "Each published number, and ours as a multiple of it: a mark at 1 is equal."
        shown = f"{lead}\n\n![{words}](../reference/generated/numbers-{paper}.svg)\n"
        (folder / f"numbers-{paper}.md").write_text(shown, encoding="utf-8")


def _ratios(cells: pd.DataFrame) -> str:
    """A line a number, in blocks by claim."""
    blocks = list(cells.groupby("claim", sort=False))
    heights = [max(0.3, 0.085 * len(block)) for _, block in blocks]
    with panels(0.9 + sum(heights)) as (figure, axes):
        top, places = 0.0, {}
        for (claim, block), height in zip(blocks, heights, strict=True):
            step = height / len(block)
            for number, (_, cell) in enumerate(block.iterrows()):
                _draw(axes, cell, top + (number + 0.5) * step, step)
            places[top + height / 2] = claim
            top += height
            axes.axhline(top, color="#eeeeee", linewidth=0.8, zorder=0)
        axes.axvline(1, color="#555555", linewidth=0.9, linestyle="--")
        axes.set(xscale="log", xlim=EDGES, ylim=(top, 0), xlabel="ours over the published number")
        axes.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        axes.set_xticks([], minor=True)
        more = [Line2D([], [], label="outside: published, then ours", **_OUTSIDE)] * (not cells.inside.all())
        more += [Line2D([], [], label="a parameter was solved from it, or it follows", markerfacecolor="white", **_INSIDE)]
        _finish(figure, axes, places, [Patch(label="tolerance", **_BAND), *more])
    return svg(figure)


def _draw(axes: Axes, cell: Any, y: float, step: float) -> None:
    """A number's tolerance, and ours; of one outside both numbers."""
    width = cell.limit / abs(cell.published) if cell.points and cell.published else cell.limit
    left, right = max(1 - width, EDGES[0]), min(1 + width, EDGES[1])
    axes.barh(y, right - left, 0.9 * step, left=left, zorder=0, **_BAND)
    ratio = cell.ours / cell.published if cell.published else 1.0
    x, look = min(max(ratio, EDGES[0]), EDGES[1]), _INSIDE if cell.inside else _OUTSIDE
    axes.plot(x, y, clip_on=False, markerfacecolor=look["color"] if cell.counts else "white", **look)
    if not cell.inside:
        place = {"xytext": (-5, 0), "ha": "right"} if ratio > 1.8 else {"xytext": (5, 0), "ha": "left"}
        words = f"{cell.published:.4g}, {cell.ours:.3g}"
        axes.annotate(words, (x, y), textcoords="offset points", fontsize=6.5, va="center", color=_OUTSIDE["color"], **place)


def _finish(figure: Any, axes: Axes, names: dict[float, str], more: list[Any]) -> None:
    """Name the claims and the marks."""
    axes.set_yticks(list(names), list(names.values()))
    axes.tick_params(axis="y", length=0)
    handles = [Line2D([], [], label="inside", **_INSIDE), *more]
    figure.legend(handles=handles, frameon=False, ncols=2, fontsize=8, loc="outside upper center")
