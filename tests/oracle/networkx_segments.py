"""The segment heuristic of Chan and Ooi on a graph of NetworkX, as its description has it: every choice looks at all pages."""

from __future__ import annotations

from typing import Any

import networkx


def fetches_by_segments(graph: networkx.Graph[Any], frames: int) -> int:
    """How many pages are fetched; ties are broken by the pages' order in the graph."""
    left, resident, fetches = graph.copy(), set[Any](), 0

    def missing(page: Any) -> int:
        return sum(other not in resident for other in left[page])

    while left.number_of_edges():
        owner = min((page for page in left if left[page]), key=lambda page: (missing(page), page not in resident))
        while left[owner]:
            absent = [page for page in (owner, *left[owner]) if page not in resident]
            page = owner if owner in absent else max(absent, key=lambda page: left.degree(page) - missing(page))
            if len(resident) == frames:
                resident.remove(min(resident - {owner}, key=missing))
            resident.add(page)
            fetches += 1
            left.remove_edges_from([(page, other) for other in left[page] if other in resident])
    return fetches
