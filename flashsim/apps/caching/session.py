"""A study of policies, from a trace to the counts of every policy at every size; and their plain forms, reference by reference."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from algorithms.replacement.base import replacement_policy
from flashsim.apps.caching import running
from flashsim.apps.caching.numbered import NumberedTrace
from flashsim.apps.caching.on_device import Target
from flashsim.apps.caching.running import CacheStudy
from flashsim.core.errors import InvalidParameterError
from flashsim.core.page_numbers import PageNumbers
from flashsim.core.protocols import Progress
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.transactions import ReferenceBatches
from flashsim.core.units import format_size
from flashsim.experiments.presentation.plots import panels
from flashsim.storage.pool.reference import TOOK_FREE, WAS_RESIDENT, WRITE_BACK, PlainPool
from traces.summary.reuse import sampled_rows


class NamedReferences(Protocol):
    """A source of references, whose name is the trace in words; each call of `batches` begins with the first reference."""

    @property
    def name(self) -> str: ...

    def batches(self) -> ReferenceBatches: ...


@dataclass(frozen=True)
class CacheRuns:
    """Runs of a study of policies: references of the whole trace, those that write, and distinct pages, estimates if there is a sample."""

    trace: str
    references: int
    writes: int
    pages: int
    page_size: int
    sample: float
    runs: Sequence[running.PolicyRun]

    def title(self) -> str:
        references = f"{self.trace}: {self.references:,} references ({self.writes / self.references:.1%} writes) to {self.pages:,} pages"
        estimate = "" if self.sample == 1 else f"; estimated from {self.sample:.3g} of the pages"
        return f"{references} of {format_size(self.page_size)}{estimate}"

    def rows(self) -> list[dict[str, Any]]:
        """A row a size and policy (`flashsim.apps.caching.running.Run.row`)."""
        return [each.row(self.page_size, self.pages) for each in self.runs]

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "runs"} | {"runs": self.rows()}


def execute(source: NamedReferences, study: CacheStudy, progress: Progress | None = None, target: Target | None = None) -> CacheRuns:
    """Let policies replace the pages of pools of several sizes as a trace refers to them; a target serves the pools one by one.

    A trace without pages, or a warm-up that leaves no reference, is an InvalidParameterError; a policy that breaks its contract, or a trace
    that cannot be read, a FlashsimError.
    """
    amounts, names = running.parse_sizes(study.sizes), running.policy_names(study.policies)
    if target is not None and study.sample != 1:
        raise InvalidParameterError("sample", f"{study.sample:.4g}", "a device serves all pages")
    keep = None if study.sample == 1 else partial(sampled_rows, rate=study.sample)
    batches, compiling = source.batches(), running.compilation(names)
    with ExitStack() as closing:
        closing.callback(compiling.stop)
        trace = closing.enter_context(NumberedTrace(source.name, batches, study.limit, keep, progress))
        pages = round(trace.pages / study.sample)
        sizes = running.pool_sizes(amounts, pages, study.page_size)
        if (least := sizes[0].frames) * study.sample < 0.5:
            raise InvalidParameterError("sample", f"{study.sample:.4g}", f"a pool of {least:,} pages is less than a page of the sample")
        if target is not None and target.sink is not None and (count := len(names) * len(sizes)) > 1:
            raise InvalidParameterError("requests", f"{count} runs", "those of one policy at one size are recorded")
        warm_up = running.warm_up_references(study.warm_up, trace.read)
        compiling.wait("policies")
        policies = [replacement_policy(name) for name in names]
        runs = running.run(trace, policies, sizes, study, warm_up, progress)
        if target is not None:
            by_name, common = {policy.name: policy for policy in policies}, (study.page_size, warm_up, study.seed, progress)
            costs = [target.serve(trace, by_name[each.policy], each.size.frames, *common) for each in runs]
            cpu = target.cpu_name if target.preset else None
            runs = [replace(each, cost=cost, cpu=cpu) for each, cost in zip(runs, costs, strict=True)]
    writes = round(trace.writes / study.sample)
    return CacheRuns(source.name, trace.read, writes, pages, study.page_size, study.sample, runs)


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


def draw_steps(steps: Sequence[PolicyStep]) -> Figure:
    """A panel a policy: a column a reference, a row a frame; below, who left."""
    names = list(dict.fromkeys(step.policy for step in steps))
    by_policy = [[step for step in steps if step.policy == name][:MOST_DRAWN] for name in names]
    rows, width = min(len(steps[0].frames), MOST_FRAMES_DRAWN), max(4.0, 0.6 + 0.22 * len(by_policy[0]))
    with panels((0.75 + 0.19 * rows) * len(names) + 0.3, len(names), width=width, squeeze=False) as (figure, grid):
        for axes, steps_of in zip(grid[:, 0], by_policy, strict=True):
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
    axes.spines[:].set_visible(False)


def _text(axes: Axes, column: int, row: int, text: str, **more: Any) -> None:
    axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=6.5, **more)
