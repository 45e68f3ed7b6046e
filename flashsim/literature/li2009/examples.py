"""The paper's examples: page accesses of section II, counted as they are executed, and the join graph of figure 3 with its segments."""

from collections.abc import Collection, Mapping

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.optimum import fewest_fetches
from algorithms.page_access.planners.base import PLANNERS, plan
from algorithms.page_access.segments import candidates
from flashsim.literature.base import Cell, Claim, Entry, Exhibit, Job, Judged, Runs, Section, Table
from flashsim.literature.li2009.runs import count_pages
from flashsim.studies.judging.cells import statement

#: Pages 1 and 2 of one table, a to c of the other; a segment is named by its page and then its partners.
_GRAPH = PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4], names=list("12abc"))
_SEGMENTS = {"1abc", "2ac", "a12", "b1", "c12"}
#: Segments that may be chosen, by the pages in memory.
_CHOICES = {"": {"b1"}, "c": {"2ac", "b1"}}
_FRAMES = (2, 3, 4)


def _graph(claim: Claim, runs: Runs) -> list[Cell]:
    """The segments, and those that may be chosen."""
    every = [_sets("segments", _SEGMENTS, _segments(""))]
    for resident, choices in _CHOICES.items():
        segments = _segments(resident)
        least = min(segments.values())
        names = [name for name, missing in segments.items() if missing == least]
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
    header = ["planner", *(f"{frames} pages" for frames in _FRAMES)]
    text = "Fetches of its five pages with a cache of 2 to 4 pages."
    return [Section("The join graph of figure 3", text, [Table(header, rows, "figure3")])]


class _Counts(Runs):
    job = staticmethod(lambda example, settings: Job.of(count_pages, example, seed=settings.seed))


_EXAMPLE = "the worked example"
_JUDGES = {"example": lambda claim, runs: claim.numbers(runs.get(_EXAMPLE)), "fig3": _graph}
EXHIBITS: Mapping[str, Exhibit] = {
    "example": Judged([_EXAMPLE], runs=_Counts, judges=_JUDGES),
    "figure3": Judged([], _fetches, judges=_JUDGES),
}
