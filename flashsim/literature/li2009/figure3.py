"""Figure 3: the example of a join graph, its segments, which of them are chosen, and the fewest fetches."""

from collections.abc import Collection

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.optimum import fewest_fetches
from algorithms.page_access.planners.base import PLANNERS, plan
from algorithms.page_access.segments import candidates
from flashsim.literature.base import Cell, Claim, Entry, Job, Results, Section, Settings, Table
from flashsim.studies.judging.cells import statement

#: Pages 1 and 2 of one table, a to c of the other; a segment is named by its page and then its partners.
_GRAPH = PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4], names=list("12abc"))
_SEGMENTS = {"1abc", "2ac", "a12", "b1", "c12"}
#: Segments that may be chosen, by the pages in memory.
_CHOICES = {"": {"b1"}, "c": {"2ac", "b1"}}
_FRAMES = (2, 3, 4)


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return []


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The segments, the choices, and the fewest fetches, which the paper does not print: an exhaustive search has them."""
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


def sections(results: Results) -> list[Section]:
    rows: list[list[Entry]] = [["fewest, by exhaustive search", *(fewest_fetches(_GRAPH, frames) for frames in _FRAMES)]]
    rows += [[name, *(plan(_GRAPH, frames, name).fetches for frames in _FRAMES)] for name in PLANNERS.names()]
    header = ["planner", *(f"{frames} pages" for frames in _FRAMES)]
    text = "Fetches of its five pages with a cache of 2 to 4 pages."
    return [Section("The join graph of figure 3", text, [Table(header, rows, "figure3")])]
