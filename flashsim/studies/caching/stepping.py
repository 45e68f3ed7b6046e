"""Policies reference by reference, in their plain forms: pages in frames, hits, and pages that leave."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from algorithms.replacement.base import replacement_policy
from flashsim.core.page_numbers import PageNumbers
from flashsim.core.replacement import FIRST_PAGE
from flashsim.storage.pool.reference import TOOK_FREE, WAS_RESIDENT, WRITE_BACK, PlainPool
from flashsim.studies.caching.numbered import NumberedTrace
from flashsim.studies.caching.session import NamedReferences
from flashsim.studies.presentation.plots import style

#: References and frames that are drawn at most.
MOST_DRAWN, MOST_FRAMES_DRAWN = 60, 24
HIT, FIRST, AGAIN = "hit", "first", "again"
#: White: stays; orange: has entered; blue: was hit.
_COLOURS = {HIT: "#c6dcf2", FIRST: "#fdd9b0", AGAIN: "#f59b42"}
_DIRTY = "#c00000"


@dataclass(frozen=True)
class PolicyStep:
    """The effect of one reference, the first is number 1, on one pool.

    The `outcome` is `HIT`, `FIRST` (a miss of a page that was never referenced before) or `AGAIN` (of one that had left); `left` is the
    page that left, if one did, and `written_back` if it was dirty; `frames` are the pages in the frames from then on, a page enters where
    one left, and `dirty` those of them that were written since they entered.
    """

    policy: str
    reference: int
    page: int
    write: bool
    outcome: str
    left: int | None
    written_back: bool
    frames: tuple[int | None, ...]
    dirty: frozenset[int]

    def row(self) -> dict[str, Any]:
        """JSON-ready, with the pages in frames as a text."""
        row = {name: value for name, value in vars(self).items() if name != "dirty"}
        names = ("-" if page is None else f"{page}*" if page in self.dirty else str(page) for page in self.frames)
        return row | {"frames": " ".join(names)}


def steps(source: NamedReferences, policies: Sequence[str], frames: int, limit: int, seed: int = 0) -> list[PolicyStep]:
    """The first references of a trace, by each policy."""
    numbers = PageNumbers()
    with NumberedTrace(source.name, source.batches(), limit) as trace:
        trace.look_ahead()
        pages, writes = trace.part(0, trace.references)
        next_uses = trace.next_uses(0, trace.references).tolist()
    for batch in source.batches():
        numbers.number(batch.pages[:limit])
        if len(numbers) >= trace.pages:
            break
    ids = numbers.ids().tolist()
    writing = [False] * len(pages) if writes is None else writes.astype(bool).tolist()
    rows = []
    for name in policies:
        pool, resident = PlainPool(replacement_policy(name), frames, seed), list[int | None]([None] * frames)
        for number, (page, write, next_use) in enumerate(zip(pages.tolist(), writing, next_uses, strict=True), start=1):
            known = page in pool.history
            outcome = pool.refer(page, write, next_use)
            gone = None
            if outcome != WAS_RESIDENT:
                gone = ids[outcome % WRITE_BACK - FIRST_PAGE] if outcome != TOOK_FREE else None
                resident[resident.index(gone)] = ids[page - FIRST_PAGE]
            dirty = frozenset(ids[each - FIRST_PAGE] for each, is_dirty in pool.resident.items() if is_dirty)
            kind = HIT if outcome == WAS_RESIDENT else AGAIN if known else FIRST
            rows.append(PolicyStep(name, number, ids[page - FIRST_PAGE], write, kind, gone, outcome >= WRITE_BACK, tuple(resident), dirty))
    return rows


def picture(steps: Sequence[PolicyStep]) -> Figure:
    """A panel a policy: a column a reference, a row a frame; below, who left."""
    names = list(dict.fromkeys(step.policy for step in steps))
    by_policy = [[step for step in steps if step.policy == name][:MOST_DRAWN] for name in names]
    columns, rows = len(by_policy[0]), min(len(steps[0].frames), MOST_FRAMES_DRAWN)
    with style():
        figure = Figure(figsize=(max(4.0, 0.6 + 0.22 * columns), (0.75 + 0.19 * rows) * len(names) + 0.3), layout="constrained")
        for axes, steps_of in zip(figure.subplots(len(names), 1, squeeze=False)[:, 0], by_policy, strict=True):
            _panel(axes, steps_of, rows)
        handles = [Patch(facecolor=_COLOURS[kind], label=label) for kind, label in ((HIT, "hit"), (FIRST, "first"), (AGAIN, "miss again"))]
        if any(step.write for step in steps):
            handles.append(Patch(facecolor="white", edgecolor=_DIRTY, label="red: dirty"))
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
    return figure


def _panel(axes: Axes, steps: Sequence[PolicyStep], rows: int) -> None:
    hits = sum(step.outcome == HIT for step in steps)
    axes.set_title(f"{steps[0].policy}: {hits} hits of {len(steps)} references", loc="left", fontsize=9)
    for column, step in enumerate(steps):
        label = f"{step.page}*" if step.write else str(step.page)
        _text(axes, column, -1, label, fontweight="bold")
        for row, page in enumerate(step.frames[:rows]):
            if page is not None:
                colour = _COLOURS[step.outcome] if page == step.page else "white"
                axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="#bfbfbf", linewidth=0.5))
                _text(axes, column, row, str(page), color=_DIRTY if page in step.dirty else "black")
        if step.left is not None:
            _text(axes, column, rows, str(step.left), color=_DIRTY if step.written_back else "#7f7f7f")
    axes.set(xlim=(0, len(steps)), ylim=(rows + 1, -1), xticks=[], yticks=[-0.5, rows + 0.5])
    axes.set_yticklabels(["page", "left"], fontsize=7)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _text(axes: Axes, column: int, row: int, text: str, **more: Any) -> None:
    axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=6.5, **more)
