"""Fetch plans: which pages are fetched in which order, what each replaces, and which pairs then meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from algorithms.page_access.graph import PageGraph, Pages
from flashsim.core.errors import FlashsimError, InvalidParameterError

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
