"""The examples, of section II and figure 3; and figures 6 to 15, I/O seconds over one parameter, with what the paper says of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.optimum import fewest_fetches
from algorithms.page_access.planners.base import PLANNERS, plan
from algorithms.page_access.segments import candidates
from flashsim.apps.papers.base import Cell, Claim, Entry, Exhibit, Job, Judged, Runs, Section, Table
from flashsim.apps.papers.li2009.runs import BASIC, LABELS, FetchSetup, count_pages
from flashsim.core.units import KIB
from flashsim.experiments.judging.cells import (
    NONE,
    crossing,
    difference,
    differences,
    falling,
    less,
    number,
    ratio,
    rising,
    saving,
    statement,
)
from flashsim.experiments.presentation.plots import series_over

#: The strategies of the paper; with sort-merge before and flashsim's own beside them, all that figures show.
STRATEGIES = ("naive", "page-based", "graph-based")
METHODS = (BASIC, *STRATEGIES, "planned")
_LOW, _HIGH = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.08, 0.1), (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
_EVERY = (*_LOW, *_HIGH[1:])
_KIB, _MEMORY = (4, 8, 16, 32), (256, 512, 1024, 2048, 4096, 8192)
_THETA, _LAMBDA = (0.0, 0.25, 0.5, 0.75, 1.0), (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
#: What stands along a figure's axis, and the run of it.
Point = tuple[float, FetchSetup]
#: Seconds or a share of a setup at a place.
Value = Callable[[Any, FetchSetup, float], float | None]


def panel(methods: Sequence[str], field: str, places: Sequence[float], unit: int = 1, **fixed: Any) -> list[Point]:
    """Lines of setups that differ in one field, the place in some unit; without a field, they are the same."""
    changes: list[dict[str, Any]] = [{field: place * unit} if field else {} for place in places]
    return [(place, FetchSetup(method, **fixed, **change)) for method in methods for place, change in zip(places, changes, strict=True)]


#: What is shown, by figure; of 7 and 8 other selectivities are asked for too, since "overall" means both figures.
_POINTS = {
    6: panel(["graph-based"], "k", (0.5, 1.0, 2.0, 3.0, 4.0)),
    7: panel(METHODS, "selectivity", _LOW),
    8: panel([BASIC, "page-based", "graph-based", "planned"], "selectivity", _HIGH),
    9: panel([BASIC, "graph-based", "original"], "selectivity", _EVERY),
    10: panel(METHODS, "page_size", _KIB, KIB, selectivity=0.05),
    11: panel(METHODS, "page_size", _KIB, KIB, selectivity=0.2),
    12: panel(METHODS, "memory", _MEMORY),
    13: panel(METHODS, "theta", _THETA, selectivity=0.1, refilled=True),
    14: panel(METHODS, "", _LAMBDA, selectivity=0.05),
    15: panel(METHODS, "", _LAMBDA, selectivity=0.2),
}
_BESIDE = {7: panel(["naive"], "selectivity", _HIGH[1:2]), 8: panel(["page-based", "graph-based"], "selectivity", _LOW)}


class _FetchRuns(Runs):
    def value(self, setup: FetchSetup, what: str = "seconds") -> float | None:
        """Seconds or page accesses; None where the run was not asked for."""
        figures: Mapping[str, float] | None = self.get(setup)
        return figures[what] if figures else None

    def seconds(self, setup: FetchSetup, place: float = 0.0) -> float | None:
        return self.value(setup)

    def scale_time(self, setup: FetchSetup, factor: float) -> float | None:
        """Seconds of reads, divided by the factor, and of writes, multiplied by the factor (section IV H)."""
        read, write = self.value(setup, "read"), self.value(setup, "write")
        return None if read is None or write is None else read / factor + write * factor

    def over_basic(self, setup: FetchSetup, place: float = 0.0) -> float | None:
        return ratio(self.value(setup), self.value(setup.with_method(BASIC)))

    def lines(self, points: Sequence[Point], value: Value = seconds) -> dict[str, list[float | None]]:
        by_method: dict[str, list[float | None]] = {}
        for place, setup in points:
            by_method.setdefault(setup.method, []).append(value(self, setup, place))
        return by_method

    def saved_time(self, points: Sequence[Point], value: Value = seconds) -> dict[str, list[float | None]]:
        """Time saved over sort-merge, percent, by strategy."""
        ours = [point for point in points if point[1].method in STRATEGIES]
        return self.lines(ours, lambda _, one, place: saving(value(self, one, place), value(self, one.with_method(BASIC), place)))


def _of_k(claim: Claim, runs: _FetchRuns) -> list[Cell]:
    clearly, almost = 1 + claim.limits["clearly"], 1 + claim.limits["almost"]
    half, *others = runs.lines(_POINTS[6])["graph-based"]
    worse = statement("k = 0.5 and k = 1, s", f"more than {clearly:g} times", [half, others[0]], lambda half, one: half > clearly * one)
    return [worse, statement("k = 1 to 4, s", f"within {almost:g} times", others, lambda *all: max(all) <= almost * min(all))]


def _crossing(claim: Claim, runs: _FetchRuns, method: str) -> Cell:
    """Abscissa at which a strategy crosses sort-merge."""
    (published,) = claim.published[name := f"{method} crosses sort-merge"]
    place = crossing(list(zip(_EVERY, runs.lines(panel([method], "selectivity", _EVERY), _FetchRuns.over_basic)[method], strict=True)))
    return number(name, published, place, claim.limits["crossover"], points=True, equal=(NONE,))


def _at_each(
    runs: _FetchRuns, words: str, selectivities: Sequence[float], methods: Sequence[str], holds: Callable[..., bool]
) -> list[Cell]:
    by_place = zip(selectivities, *runs.lines(panel(methods, "selectivity", selectivities)).values(), strict=True)
    return [statement(f"selectivity {place:g}", words, seconds, holds) for place, *seconds in by_place]


def _low(claim: Claim, runs: _FetchRuns) -> list[Cell]:
    below, methods = [each for each in _LOW if each <= claim.limits["low"]], ["page-based", "graph-based", "naive", BASIC]
    return [_crossing(claim, runs, "naive"), *_at_each(runs, "page-based below each, s", below, methods, less(claim.limits["margin"]))]


def _high(claim: Claim, runs: _FetchRuns) -> list[Cell]:
    saved = [each for each in runs.saved_time(panel(["graph-based"], "selectivity", _EVERY))["graph-based"] if each is not None]
    extremes = zip(("least", "most"), claim.published["graph-based saves, least and most"], (min(saved), max(saved)), strict=True)
    gains = [difference(f"graph-based saves, {word} %", gain, ours, claim.limits["points"]) for word, gain, ours in extremes]
    return [_crossing(claim, runs, "page-based"), *gains]


def _original(claim: Claim, runs: _FetchRuns) -> list[Cell]:
    cell, equal = _crossing(claim, runs, "original"), 1 + claim.limits["equal"]
    below, words = [each for each in _EVERY if each < claim.published[cell.name][0]], f"original at most {equal:g} times graph-based, s"
    return [cell, *_at_each(runs, words, below, ["graph-based", "original"], lambda graph, original: original <= equal * graph)]


def _of_pages(claim: Claim, runs: _FetchRuns) -> list[Cell]:
    """Direction of each line, and the side of 8 KB on which naive fetching loses to sort-merge."""
    every, seconds = list[Cell](), {figure: runs.lines(_POINTS[figure]) for figure in (10, 11)}
    for method, figure in [(BASIC, 10), *((method, figure) for method in STRATEGIES for figure in (10, 11))]:
        direction = rising if method == "naive" else falling
        line, holds = seconds[figure][method], direction(claim.limits["margin"])
        every.append(statement(f"{method}, figure {figure}, s", direction.__name__, line, holds))
    over, words = runs.lines(_POINTS[10], _FetchRuns.over_basic)["naive"], "above 1 past 8 KB only"
    return [*every, statement("naive over sort-merge, figure 10", words, over, lambda *sizes: max(sizes[:2]) <= 1 < min(sizes[2:]))]


def _of_memory(claim: Claim, runs: _FetchRuns) -> list[Cell]:
    margin, ends = claim.limits["margin"], (_MEMORY[0], _MEMORY[-1])
    seconds = {method: line for method, line in runs.lines(_POINTS[12]).items() if method != "planned"}
    every = [statement(f"{method}, s", "falling", line, falling(margin)) for method, line in seconds.items()]
    last = [line[-1] for line in seconds.values()]
    every.append(statement(f"sort-merge and strategies with {ends[1]} pages, s", "sort-merge below each", last, less(margin)))
    gaps = [saving(seconds["page-based"][end], seconds["graph-based"][end]) for end in (0, -1)]
    for memory, gap, ours in zip(ends, *claim.published.values(), gaps, strict=True):
        every.append(difference(f"gap with {memory} pages, %", gap, ours, claim.limits["points"]))
    return [*every, differences(f"gap with {ends[0]} and {ends[1]} pages, %", "rising", gaps, rising(claim.limits["rise"]))]


def _of_skew(claim: Claim, runs: _FetchRuns) -> list[Cell]:
    saved, rise = runs.saved_time(_POINTS[13]), rising(claim.limits["rise"])
    pairs = zip(saved["graph-based"], saved["page-based"], strict=True)
    ahead = [graph - page if graph is not None and page is not None else None for graph, page in pairs]
    return [
        *(differences(f"{method} saves, %", "rising", values, rise) for method, values in saved.items()),
        differences("naive saves, %", "above 0 in most cases", saved["naive"], lambda *all: 2 * sum(each > 0 for each in all) > len(all)),
        differences("graph-based before page-based, points", "rising", ahead, rise),
    ]


def _of_speeds(claim: Claim, runs: _FetchRuns) -> list[Cell]:
    every, limit = list[Cell](), claim.limits["points"]
    for figure in (14, 15):
        saved, rise = runs.saved_time(_POINTS[figure], _FetchRuns.scale_time), rising(claim.limits["rise"])
        every += [differences(f"{method} saves, figure {figure}, %", "rising", values, rise) for method, values in saved.items()]
        name, last = f"strategies save, lambda = 3, figure {figure}, %", [values[-1] for values in saved.values()]
        every.append(differences(name, f"within {limit:g} points", last, lambda *all: max(all) - min(all) <= limit))
    return every


@dataclass(frozen=True)
class _Figure:
    """The figures of a claim, a panel each, whose titles are by number."""

    title: str
    axis: str
    panels: Mapping[int, str]
    judge: Callable[[Claim, _FetchRuns], list[Cell]]
    value: Value = _FetchRuns.seconds

    def setups(self) -> list[FetchSetup]:
        """Setups of a figure, each behind that of sort-merge."""
        setups = [setup for number in self.panels for _, setup in (*_POINTS[number], *_BESIDE.get(number, ()))]
        return [one for setup in setups for one in (setup.with_method(BASIC), setup)]

    def sections(self, name: str, runs: _FetchRuns) -> list[Section]:
        every = [(f"figure {number}: {title}", point) for number, title in self.panels.items() for point in _POINTS[number]]
        rows = [(panel, place, LABELS[setup.method], self.value(runs, setup, place)) for panel, (place, setup) in every]
        if not (rows := [row for row in rows if row[-1] is not None]):
            return []
        frame = pd.DataFrame(rows, columns=["figure", self.axis, "method", "I/O time, s"])
        wide = frame.pivot_table("I/O time, s", ["figure", self.axis], "method", sort=False).reset_index()
        columns = wide if wide["figure"].nunique() > 1 else wide.drop(columns="figure")
        table = Table(list(columns.columns), columns.astype(object).values.tolist(), name, digits=3)
        picture = series_over(frame, self.axis, "I/O time, s", "method", ["figure"], self.axis)
        return [Section(self.title, "I/O seconds.", [table], {name: picture}, on_terminal=True)]


def _accesses(runs: _FetchRuns) -> list[Section]:
    kinds = ("sequential_reads", "random_reads", "sequential_writes", "random_writes")
    setups = [(figure, setup) for figure in (14, 15) for place, setup in _POINTS[figure] if place == 1]
    rows = [[figure, LABELS[setup.method], *(runs.value(setup, kind) for kind in kinds)] for figure, setup in setups]
    table = Table(["figure", "method", *(kind.replace("_", " ") for kind in kinds)], rows, "accesses", digits=0)
    text = "a sequential one goes on where the last one of its kind ended, so that the first page of a run is a random write"
    return [Section("Page accesses", f"Page accesses; {text}.", [table])]


def _exhibit(figures: Mapping[str, _Figure], more: Callable[[_FetchRuns], list[Section]] = lambda runs: []) -> Exhibit:
    """The figures of some claims, and what is shown besides."""

    def show(runs: _FetchRuns) -> list[Section]:
        return [*(section for claim, figure in figures.items() for section in figure.sections(claim, runs)), *more(runs)]

    judges = {claim: figure.judge for claim, figure in figures.items()}
    return Judged({claim: figure.setups() for claim, figure in figures.items()}, show, runs=_FetchRuns, judges=judges)


#: Pages 1 and 2 of one table, a to c of the other; a segment is named by its page and then its partners.
_GRAPH = PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4], names=list("12abc"))
_SEGMENTS = {"1abc", "2ac", "a12", "b1", "c12"}
#: Segments that may be chosen, by the pages in memory.
_CHOICES = {"": {"b1"}, "c": {"2ac", "b1"}}
_FRAMES = (2, 3, 4)


def _of_graph(claim: Claim, runs: Runs) -> list[Cell]:
    """The segments, and those that may be chosen."""
    every = [_sets("segments", _SEGMENTS, _segments(""))]
    for resident, choices in _CHOICES.items():
        segments = _segments(resident)
        names = [name for name, missing in segments.items() if missing == min(segments.values())]
        every.append(_sets(f"choices with {f'page {resident}' if resident else 'no page'} in memory", choices, names))
    return every


def _segments(resident: str) -> dict[str, int]:
    return {each.page + "".join(each.partners): each.missing for each in candidates(_GRAPH, resident)}


def _sets(name: str, published: Collection[str], ours: Collection[str]) -> Cell:
    """A set of segments: as many as are in both sets, and in ours."""
    both = [len(set(published) & set(ours)), len(ours)]
    words = f"{', '.join(sorted(published))}: {len(published)} of {len(published)}"
    return statement(name, words, both, lambda shared, mine: shared == mine == len(published), digits=0)


def _fetches(runs: Runs) -> list[Section]:
    """The fewest fetches, which the paper does not print, by an exhaustive search, and those of planners."""
    rows: list[list[Entry]] = [["fewest, by exhaustive search", *(fewest_fetches(_GRAPH, frames) for frames in _FRAMES)]]
    rows += [[name, *(plan(_GRAPH, frames, name).fetches for frames in _FRAMES)] for name in PLANNERS.names()]
    table = Table(["planner", *(f"{frames} pages" for frames in _FRAMES)], rows, "figure3")
    return [Section("The join graph of figure 3", "Fetches of its five pages with a cache of 2 to 4 pages.", [table])]


class _PageCounts(Runs):
    job = staticmethod(lambda example, settings: Job.of(count_pages, example, seed=settings.seed))


_EXAMPLE = "the worked example"
EXHIBITS: Mapping[str, Exhibit] = {
    "example": Judged([_EXAMPLE], runs=_PageCounts, judges={"example": lambda claim, runs: claim.numbers(runs.get(_EXAMPLE))}),
    "figure3": Judged([], _fetches, judges={"fig3": _of_graph}),
    "selectivity": _exhibit({
        "fig7": _Figure("Low selectivities (figure 7)", "selectivity", {7: "512 pages"}, _low),
        "fig8": _Figure("High selectivities (figure 8)", "selectivity", {8: "512 pages"}, _high),
        "fig9": _Figure("The original heuristic (figure 9)", "selectivity", {9: "512 pages"}, _original),
    }),
    "variations": _exhibit({
        "fig6": _Figure("The parameter k (figure 6)", "k", {6: "selectivity 0.05, 512 pages"}, _of_k),
        "fig10-11": _Figure("Page sizes (figures 10 and 11)", "page, KB", {10: "selectivity 0.05, 2 MB", 11: "selectivity 0.2, 2 MB"},
                            _of_pages),
        "fig12": _Figure("Memory (figure 12)", "memory, pages", {12: "selectivity 0.05"}, _of_memory),
        "fig13": _Figure("Skew (figure 13)", "theta", {13: "selectivity 0.1, 512 pages"}, _of_skew),
    }),
    "speeds": _exhibit({"fig14-15": _Figure(
        "Reads and writes (figures 14 and 15)", "lambda", {14: "selectivity 0.05", 15: "selectivity 0.2"}, _of_speeds, _FetchRuns.scale_time
    )}, _accesses),
}  # fmt: skip
