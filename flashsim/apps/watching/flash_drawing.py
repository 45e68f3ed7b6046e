"""Drawings of a drive small enough to see every page, and of the operations of its parts over time."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Integers
from flashsim.core.spans import CAUSES, KINDS, Spans, holds, server_names
from flashsim.core.units import MICROSECONDS
from flashsim.experiments.presentation.plots import LINES, panels
from flashsim.ssd.lab.drive import FREE_PAGE, MARKS, PAGE_NAMES, block_letters, logical_pages, page_states, pool_name
from flashsim.ssd.state.drive_state import DriveState

#: White, blue, grey, light blue, red: free, valid, invalid, in flight, torn; as in ``templates/steps.css`` on a light page.
PAGE_COLOURS = ("#ffffff", "#5b8fc7", "#bfbfbf", "#c6dcf2", "#c00000")
#: Planes of more flash pages than this are drawn without the numbers of logical pages, and drives of more are not drawn.
MOST_NUMBERED, MOST_DRAWN = 1024, 1 << 16


def draw_pages(drive: Any, title: str = "") -> Figure:
    """Every flash page by the `state` of a drive (the lab's, the engine or the specification): a panel a plane, a column a block.

    Page 0 is at the bottom.

    On small drives a mapped page shows the logical page that it holds, and others the mark of their state; below a block stand its number
    and the letter of its state, as in `flashsim.ssd.lab.drive`, and above it its erases.
    """
    state: DriveState = drive.state
    parameters = state.parameters
    if len(state.spare) > MOST_DRAWN:
        raise InvalidParameterError("flash pages", len(state.spare), f"at most {MOST_DRAWN} can be drawn")
    pools, per_pool = parameters.pools, parameters.blocks_per_plane
    width, height = max(4.0, 0.34 * per_pool), 0.9 + 0.2 * parameters.slots_per_block
    with panels(min(height, 5.0) * pools, pools, width=min(width, 14.0), squeeze=False) as (figure, grid):
        for pool, axes in enumerate(grid[:, 0]):
            _plane(axes, state, slice(pool * per_pool, (pool + 1) * per_pool))
            axes.set_title(pool_name(state, pool), fontsize=8, loc="left", pad=9)
            axes.set_ylabel("page", fontsize=8)
        axes.set_xlabel("block", fontsize=8)
        handles = [Patch(facecolor=colour, edgecolor="black", label=name) for colour, name in zip(PAGE_COLOURS, PAGE_NAMES, strict=True)]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
        if title:
            figure.suptitle(title, fontsize=10)
    return figure


def _plane(axes: Axes, state: DriveState, own: slice) -> None:
    states, logical = page_states(state)[own], logical_pages(state)[own]
    blocks, pages = states.shape
    axes.pcolormesh(
        np.arange(blocks + 1), np.arange(pages + 1), states.T, cmap=ListedColormap(PAGE_COLOURS), vmin=-0.5, vmax=len(PAGE_COLOURS) - 0.5,
        edgecolors="black", linewidth=0.3,
    )  # fmt: skip
    if states.size <= MOST_NUMBERED:
        for block, page in np.argwhere(states != FREE_PAGE):
            label = str(logical[block, page]) if logical[block, page] >= 0 else MARKS[states[block, page]]
            axes.text(block + 0.5, page + 0.5, label, ha="center", va="center", fontsize=5.5)
        names = [f"{own.start + block}\n{letter}" for block, letter in enumerate(block_letters(state)[own])]
        axes.set_xticks(np.arange(blocks) + 0.5, names, fontsize=6)
        for block, erases in enumerate(state.blocks.erases[own]):
            axes.text(block + 0.5, pages + 0.15, str(erases), ha="center", va="bottom", fontsize=5, color="#7f7f7f")
    axes.tick_params(length=0)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def draw_spans(spans: Spans, dies: int, channels: int, begin: int = 0, end: int | None = None) -> Figure:
    """Operations of each part of a drive over time, a row a part, coloured by cause; long bars name the operation.

    Spans are of dtype `flashsim.core.spans.SPAN`, as a device gives them after ``record_spans``.  The time from `begin` to `end`, ns, is
    drawn, up to the last span if there is no end.
    """
    end = int(spans["end"].max(initial=begin + 1)) if end is None else end
    visible = holds(spans[(spans["end"] > begin) & (spans["begin"] < end)])
    inside = int(visible["server"].max(initial=0)) - dies - channels - 2  # cores, where the memory's bus is among the parts
    names = server_names(dies, channels, inside if inside >= 0 else None)
    with panels(0.9 + 0.32 * len(names), width=10) as (figure, axes):
        for cause in np.unique(visible["cause"]):
            of_cause = visible[visible["cause"] == cause]
            lengths = (of_cause["end"] - of_cause["begin"]) / MICROSECONDS
            axes.barh(
                of_cause["server"], lengths, 0.8, of_cause["begin"] / MICROSECONDS, color=LINES[cause][0], alpha=0.75, edgecolor="black",
                linewidth=0.3, label=CAUSES[cause],
            )  # fmt: skip
        shown: Integers = visible["end"] - visible["begin"]
        for span in visible[shown > (end - begin) / 25]:
            middle = (max(begin, span["begin"]) + min(end, span["end"])) / 2 / MICROSECONDS
            axes.text(middle, span["server"], KINDS[span["kind"]], ha="center", va="center", fontsize=6)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(begin / MICROSECONDS, end / MICROSECONDS)
        axes.set_xlabel("time (µs)")
        if len(visible):
            axes.legend(frameon=False, fontsize=8, ncols=5, loc="lower right", bbox_to_anchor=(1, 1))
    return figure
