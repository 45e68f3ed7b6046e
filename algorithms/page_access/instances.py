"""Page graphs to try planners on: the families that were published, and those of joins.

General, geometric and bipartite graphs are those of Lim, Kwan and Oon, "Page access sequencing in join processing", CIKM 1999, with their
sizes as defaults.
"""

from __future__ import annotations

import math

import numpy as np

from algorithms.page_access.graph import PageGraph
from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator


def general(pages: int = 500, density: float = 0.05, seed: int = 0) -> PageGraph:
    """Each two pages must meet with the same probability."""
    _share("density", density)
    first, second = np.triu_indices(pages, 1)
    drawn = generator(seed, "general").random(len(first)) < density
    return PageGraph.of(first[drawn], second[drawn], pages)


def geometric(pages: int = 500, degree: float = 25, seed: int = 0) -> PageGraph:
    """Pages at random places of a square meet those that are near; `degree` is how many these would be but for its edges."""
    from scipy.spatial import cKDTree

    places = generator(seed, "geometric").random((pages, 2))
    pairs = cKDTree(places).query_pairs(math.sqrt(degree / (pages * math.pi)), output_type="ndarray")
    return PageGraph.of(pairs[:, 0], pairs[:, 1], pages)


def bipartite(pages: int = 250, density: float = 0.05, seed: int = 0) -> PageGraph:
    """Twice as many pages, each of one half meeting each of the other with the same probability."""
    _share("density", density)
    first, second = np.nonzero(generator(seed, "bipartite").random((pages, pages)) < density)
    return PageGraph.of(first, second + pages, 2 * pages)


def complete(pages: int, others: int) -> PageGraph:
    """Every one of `pages` meets every one of `others`: the block nested loop's problem."""
    first, second = np.divmod(np.arange(pages * others), others)
    return PageGraph.of(first, second + pages, pages + others)


def join_graph(pages: int = 8192, tuples: int = 25, selectivity: float = 0.5, *, same_order: bool = False, seed: int = 0) -> PageGraph:
    """The join of a relation with itself on its key, of whose results a share is drawn (Li et al., MDM 2009, section IV A).

    Parameters
    ----------
    pages
        Of each input.
    tuples
        On a page.
    same_order
        Both inputs lie in the same order, so that each page meets one other; without it, in independent ones.
    """
    _share("selectivity", selectivity)
    random = generator(seed, "join graph")
    rows = np.arange(pages * tuples)
    other = rows if same_order else random.permutation(rows)
    drawn = random.random(len(rows)) < selectivity
    return PageGraph.of(rows[drawn] // tuples, pages + other[drawn] // tuples, 2 * pages)


def _share(what: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InvalidParameterError(what, value, "it must lie between 0 and 1")
