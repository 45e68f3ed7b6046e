"""Fetch plans: which pages are fetched in which order, what each replaces, and which pairs then meet.

At the end, plans that fetch pages in the order in which they are stored, where that costs little: what follows the page before is cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from algorithms.page_access.graph import PageGraph, Pages
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers

if TYPE_CHECKING:
    import pandas as pd

#: Victim of a fetch while there are free frames.
NONE = -1
LEAST_FRAMES = 2


@dataclass(frozen=True, eq=False)
class FetchPlan:
    """Plan by which all pairs of a page graph meet in memory."""

    graph: PageGraph  #: Which pairs those are.
    frames: int  #: Pages that memory holds at most.
    pages: Pages  #: The pages fetched, in order: int32, shape (fetches,).
    victims: Pages  #: The page that each of them replaces, or `NONE`.
    edges: Pages  #: All edges of the graph, in the order in which they meet: int32, shape (edges,).
    after: Pages  #: After how many fetches each of them does: int32, shape (edges,), ascending.

    @property
    def fetches(self) -> int:
        return len(self.pages)

    @property
    def over_needed(self) -> float:
        """Fetches over the pages that must be fetched at all; 1 is best."""
        return self.fetches / max(1, self.graph.needed_pages)

    @property
    def edges_met(self) -> npt.NDArray[np.int64]:
        """Pairs that meet between each fetch and the next one, shape (fetches,)."""
        return np.bincount(self.after, minlength=self.fetches + 1)[1:]

    def to_frame(self) -> pd.DataFrame:
        """A row a fetch: the page, what it replaces (empty while frames are free), and how many pairs meet before the next one."""
        import pandas as pd

        names = [self.graph.name(page) for page in self.pages.tolist()]
        replaced = [None if victim == NONE else self.graph.name(victim) for victim in self.victims.tolist()]
        return pd.DataFrame({"page": names, "replaces": pd.array(replaced), "edges_met": self.edges_met})

    def check(self) -> None:
        """Go through the plan and refuse one that does not keep its word."""
        if not np.array_equal(np.sort(self.edges), np.arange(self.graph.edges)) or np.any(np.diff(self.after) < 0):
            raise FlashsimError("plan: its edges are not those of the graph, each once and in order of fetches")
        resident: set[int] = set()
        met = 0
        for number, (page, victim) in enumerate(zip(self.pages.tolist(), self.victims.tolist(), strict=True), start=1):
            if page in resident or (victim != NONE and victim not in resident):
                raise FlashsimError(f"plan: fetch {number} brings page {page} for page {victim}: one is there already, or the other is not")
            resident.discard(victim)
            resident.add(page)
            if len(resident) > self.frames:
                raise FlashsimError(f"plan: {len(resident)} pages are in memory after fetch {number}, but there are {self.frames} frames")
            while met < len(self.after) and self.after[met] <= number:
                edge = self.edges[met]
                if not {int(self.graph.first[edge]), int(self.graph.second[edge])} <= resident:
                    raise FlashsimError(f"plan: the pages of edge {edge} are not both in memory after fetch {number}")
                met += 1
        if met < self.graph.edges:
            raise FlashsimError(f"plan: {self.graph.edges - met} edges are left at its end")

    def __repr__(self) -> str:
        return f"FetchPlan({self.fetches} fetches of {self.graph.needed_pages} pages with {self.frames} frames)"


def check_frames(frames: int, least: int = LEAST_FRAMES) -> None:
    """Refuse fewer frames than two pages need to meet, or than `least`."""
    if not least <= frames < 1 << 31:
        together = "two pages must be in memory together, so " if least == LEAST_FRAMES else ""
        raise InvalidParameterError("frames", frames, f"{together}at least {least} are needed, and below 2^31")


def reading_cost(pages: Pages | Integers, latency_ratio: float) -> float:
    """Cost of reading pages in a given order, in transfer times of a page: a page that does not follow the previous one costs a latency.

    >>> reading_cost(np.array([4, 5, 6, 2]), 0.5)
    5.0
    """
    return len(pages) + latency_ratio * (int(np.count_nonzero(np.diff(pages) != 1)) + min(1, len(pages)))


def in_windows(plan: FetchPlan, window: int) -> FetchPlan:
    """A plan with so many frames more, which makes as many fetches ahead and sorts them; it never takes more fetches than the plan.

    `window` is at least 1.
    """
    pages, victims = np.empty_like(plan.pages), np.full_like(plan.pages, NONE)
    ends = np.zeros(-(-plan.fetches // window) + 1, np.int32)
    frames = min(plan.frames + window, plan.graph.pages)
    states = np.zeros((plan.graph.pages, 3), np.int32)
    count = _gather(plan.pages, plan.victims, window, states, np.empty(frames, np.int32), pages, victims, ends)
    order = np.lexsort((pages[:count], np.repeat(np.arange(len(ends) - 1), np.diff(ends))))
    after = ends[1 + (plan.after - 1) // window]
    return FetchPlan(plan.graph, plan.frames + window, pages[order], victims[:count].copy(), plan.edges, after)


#: Columns of a page's state: whether it is in memory by the plan, whether it is held, and the last window that needs it, from 1.
_PLANNED, _HELD, _WINDOW = range(3)


@lean_kernel
def _gather(fetched: Pages, replaced: Pages, window: int, states: Pages, resident: Pages, pages: Pages, victims: Pages, ends: Pages) -> int:
    """Find what each window fetches, in any order, and what that replaces; `ends` tells where windows end.  Returns the fetches."""
    count = size = 0
    for number in range(1, ends.shape[0]):
        begin, end = (number - 1) * window, min(number * window, fetched.shape[0])
        write = dropped = more = 0
        for place in range(begin, end):
            page = fetched[place]
            if states[page, _HELD] == 0 and states[page, _WINDOW] != number:
                more += 1
            states[page, _WINDOW] = number
        for place in range(size):
            page = resident[place]
            if size - dropped + more > resident.shape[0] and states[page, _PLANNED] == 0 and states[page, _WINDOW] != number:
                states[page, _HELD] = 0
                victims[count + dropped] = page
                dropped += 1
            else:
                resident[write] = page
                write += 1
        size = write
        for place in range(begin, end):
            page = fetched[place]
            if states[page, _HELD] == 0:
                states[page, _HELD] = 1
                pages[count], resident[size] = page, page
                count, size = count + 1, size + 1
            states[page, _PLANNED] = 1
            if replaced[place] >= 0:
                states[replaced[place], _PLANNED] = 0
        ends[number] = count
    return count


def in_blocks(graph: PageGraph, frames: int, *, of_lower: bool = True) -> FetchPlan:
    """A block nested loop: all frames but one are filled with pages, ascending, and the pages that they need go through the last one.

    Pages ascend there too.  Blocks are of the lower pages of edges, or of the higher ones; no page may be the lower of one edge and not of
    another, as in a join graph, whose pages of R come first.
    """
    ends = (graph.first, graph.second) if of_lower else (graph.second, graph.first)
    outer = np.unique(ends[0])
    block_of = np.searchsorted(outer, ends[0]) // (frames - 1)
    key = block_of * graph.pages + ends[1]
    visits = np.unique(key)
    visit_blocks, visited = np.divmod(visits, graph.pages)
    stays = np.diff(visited, prepend=NONE) == 0  # a block may begin with the page that the one before it ended with
    blocks = np.concatenate([np.arange(len(outer)) // (frames - 1), visit_blocks[~stays]])
    of_visit = np.repeat([False, True], [len(outer), len(blocks) - len(outer)])
    pages = np.concatenate([outer, visited[~stays]])
    before = np.concatenate([outer[: -(frames - 1)] if len(outer) >= frames else outer[:0], visited[~stays][:-1]])
    free = np.full(min(len(outer), frames - 1), NONE)
    victims = np.concatenate([free, before[: len(outer) - len(free)], [NONE], before[len(outer) - len(free) :]])[: len(pages)]
    order = np.lexsort((pages, of_visit, blocks))
    # an edge meets after its visit, or, if that page stayed, after its block is there
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(1, len(order) + 1)
    block_ends = np.append(np.flatnonzero(np.diff(blocks[: len(outer)])), len(outer) - 1)
    times = np.where(stays, number[block_ends[visit_blocks]], 0)
    times[~stays] = number[len(outer) :]
    after = times[np.searchsorted(visits, key)]
    edges = np.argsort(after, kind="stable")
    return FetchPlan(graph, frames, *(each.astype(np.int32) for each in (pages[order], victims[order], edges, after[edges])))
