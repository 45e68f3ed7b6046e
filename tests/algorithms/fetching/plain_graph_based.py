"""Algorithm 3 of Li et al. (MDM 2009) in plain Python, a page pair at a time, with what is printed and what it takes to come to an end."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from algorithms.fetching.base import ENTRY_BYTES


class StandsStillError(Exception):
    """Many pages were fetched, and nothing joined meanwhile."""


@dataclass
class Algorithm3:
    """Graph-based fetching.

    Parameters
    ----------
    memory
        Pages of graph and cache.
    page_size
        Bytes of a page of the graph, in which an entry takes `ENTRY_BYTES`.
    pinned
        Whether a segment's vertex stays in the cache while the segment is joined; the paper does not say so.
    gives_back
        How the graph's needed pages are compared with those that it has, before it gives one back; printed is ``operator.gt``.
    """

    memory: int
    page_size: int
    k: float = 1.0
    pinned: bool = True
    gives_back: Callable[[int, int], bool] = operator.lt
    partners: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    entries: Counter[tuple[int, int]] = field(default_factory=Counter)
    cache: dict[int, None] = field(default_factory=dict)  # oldest first
    graph_pages: int = 1
    fetches: int = 0
    joined: int = 0
    graph_history: list[int] = field(default_factory=list)

    @property
    def frames(self) -> int:
        return self.memory - self.graph_pages

    def run(self, pairs: Iterable[tuple[int, int]]) -> Algorithm3:
        """Take all entries, each a page of R and one of S, and drain the graph."""
        for pair in pairs:
            self.insert(*pair)
            self.graph_history.append(self.graph_pages)
        while self.partners:
            self.join_segment(self.segment())
            if self.gives_back(self.needed(), self.graph_pages):
                self.graph_pages = max(1, self.needed())
        return self

    def insert(self, r: int, s: int) -> None:
        if self.present(r, s):
            return
        freed = False
        while not freed and (self.entries.total() + 1) * ENTRY_BYTES > self.graph_pages * self.page_size:
            if self.k * (max(map(len, self.partners.values())) + 1) < self.frames and self.frames > 2:
                self.graph_pages += 1
                while len(self.cache) > self.frames:
                    self.drop(None)
            else:
                self.join_segment(self.segment())
                freed = True
        if not self.present(r, s):
            self.entries[r, s] += 1
            self.partners[r].add(s)
            self.partners[s].add(r)
        if freed and self.gives_back(self.needed(), self.graph_pages):
            self.graph_pages -= 1

    def present(self, r: int, s: int) -> bool:
        """Join an entry at once if its pages are there."""
        there = r in self.cache and s in self.cache
        self.joined += there
        return there

    def needed(self) -> int:
        return -(-self.entries.total() * ENTRY_BYTES // self.page_size)

    def missing(self, page: int) -> int:
        return sum(partner not in self.cache for partner in self.partners[page])

    def segment(self) -> int:
        """Whose segment has the fewest missing pages; of equals that with the most entries, then one that is there, then any."""
        worth: Counter[int] = Counter()
        for (r, s), count in self.entries.items():
            worth[r] += count
            worth[s] += count
        return min(self.partners, key=lambda page: (self.missing(page), -worth[page], page not in self.cache, page * 2654435761 % 1009))

    def join_segment(self, vertex: int) -> None:
        idle = 0
        while self.partners.get(vertex):
            pages = [page for page in (vertex, *self.partners[vertex]) if page not in self.cache]
            most = max(pages, key=lambda page: sum(partner in self.cache for partner in self.partners[page]))
            page = vertex if vertex in pages and not (self.cache and self.partners[vertex] & set(self.cache)) else most
            before = self.joined
            self.fetch(page, vertex if self.pinned else None)
            idle = 0 if self.joined > before else idle + 1
            if idle > 10_000:
                raise StandsStillError

    def fetch(self, page: int, stays: int | None) -> None:
        if len(self.cache) == self.frames:
            self.drop(stays)
        self.cache[page] = None
        self.fetches += 1
        for partner in [each for each in self.partners[page] if each in self.cache]:
            self.joined += self.entries.pop((page, partner), 0) + self.entries.pop((partner, page), 0)
            for one, other in ((page, partner), (partner, page)):
                self.partners[one].discard(other)
                if not self.partners[one]:
                    del self.partners[one]

    def drop(self, stays: int | None) -> None:
        """Replace the page with the fewest missing partners."""
        del self.cache[min((page for page in self.cache if page != stays), key=lambda page: len(self.partners.get(page, ())))]
