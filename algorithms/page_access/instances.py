"""Page graphs to try planners on: the families that were published, and those of joins.

General, geometric and bipartite graphs are those of Lim, Kwan and Oon, "Page access sequencing in join processing", CIKM 1999, with their
sizes as defaults.
"""

import inspect
import math
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from algorithms.page_access.graph import PageGraph
from flashsim.core.errors import InvalidParameterError, check_known
from flashsim.core.parameters import check_once
from flashsim.core.rng import generator

#: Pages of which every pair is drawn, pages of other graphs, and edges that may be expected.
_MOST_DRAWN, _MOST, _MOST_EDGES = 10_000, 1 << 24, 1 << 27


def general(pages: int = 500, density: float = 0.05, seed: int = 0) -> PageGraph:
    """Each two pages must meet with the same probability."""
    _share("density", density)
    _count("pages", pages, _MOST_DRAWN)
    first, second = np.triu_indices(pages, 1)
    is_edge = generator(seed, "general").random(len(first)) < density
    return PageGraph.of(first[is_edge], second[is_edge], pages)


def geometric(pages: int = 500, degree: float = 25.0, seed: int = 0) -> PageGraph:
    """Pages at random places of a square meet those that are near; `degree` is how many these would be but for its edges."""
    from scipy.spatial import cKDTree

    _count("pages", pages, _MOST)
    most = min(pages, _MOST_EDGES // pages)
    if not 0 <= degree <= most:
        raise InvalidParameterError("degree", degree, f"it must lie between 0 and {most} with {pages} pages")
    places = generator(seed, "geometric").random((pages, 2))
    pairs = cKDTree(places).query_pairs(math.sqrt(degree / (pages * math.pi)), output_type="ndarray")
    return PageGraph.of(pairs[:, 0], pairs[:, 1], pages)


def bipartite(pages: int = 250, density: float = 0.05, seed: int = 0) -> PageGraph:
    """Twice as many pages, each of one half meeting each of the other with the same probability."""
    _share("density", density)
    _count("pages", pages, _MOST_DRAWN)
    first, second = np.nonzero(generator(seed, "bipartite").random((pages, pages)) < density)
    return PageGraph.of(first, second + pages, 2 * pages)


def complete(pages: int = 30, others: int = 40) -> PageGraph:
    """Every one of `pages` meets every one of `others`: the block nested loop's problem."""
    for what, value in (("pages", pages), ("others", others)):
        _count(what, value, _MOST_DRAWN)
    first, second = np.divmod(np.arange(pages * others), others)
    return PageGraph.of(first, second + pages, pages + others)


def join_graph(pages: int = 8192, tuples: int = 25, selectivity: float = 0.5, *, same_order: bool = False, seed: int = 0) -> PageGraph:
    """The join of a relation with itself on its key, of whose results a share is drawn (Li et al., MDM 2009, section IV A).

    `pages`: of each input. `tuples`: on a page. `same_order`: both inputs lie in the same order, so that each page meets one other; without
    it, in independent ones.
    """
    _share("selectivity", selectivity)
    _count("pages", pages, _MOST)
    _count("tuples", tuples, _MOST_EDGES // pages)
    random = generator(seed, "join graph")
    rows = np.arange(pages * tuples)
    other = rows if same_order else random.permutation(rows)
    is_edge = random.random(len(rows)) < selectivity
    return PageGraph.of(rows[is_edge] // tuples, pages + other[is_edge] // tuples, 2 * pages)


#: All families by name.
FAMILIES: dict[str, Callable[..., PageGraph]] = {
    "general": general,
    "geometric": geometric,
    "bipartite": bipartite,
    "complete": complete,
    "join": join_graph,
}


def instance_of(text: str, **values: Any) -> PageGraph:
    """An instance of a family by its name, which parameters may follow: ``join:pages=100,selectivity=0.1``.

    Parameters may be given as values too, beside those of the text.

    >>> instance_of("complete:pages=3", others=4)
    PageGraph(7 pages, 12 edges)
    """
    name, _, rest = text.partition(":")
    check_known("graph", name, FAMILIES)
    accepted = inspect.signature(FAMILIES[name]).parameters
    pairs = [part.partition("=")[::2] for part in rest.split(",") if part]
    check_once(name, (parameter for parameter, _ in pairs))
    arguments = {}
    for parameter, value in (dict(pairs) | values).items():
        check_known(f"parameter of {name}", parameter, accepted)
        arguments[parameter] = _value(parameter, value, type(accepted[parameter].default))
    return FAMILIES[name](**arguments)


def _value(parameter: str, value: Any, kind: type[Any]) -> Any:
    """A parameter's value, which may be a text, as its kind: a truth value, a whole number or another."""
    try:
        if kind is bool:
            return {"true": True, "false": False}[str(value).lower()]
        if kind is float:
            return float(value)
        return int(value) if isinstance(value, str) else index(value)
    except (KeyError, ValueError, TypeError, OverflowError):
        kind_of_value = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise InvalidParameterError(parameter, repr(value), f"{kind_of_value} is needed") from None


def _share(what: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InvalidParameterError(what, value, "it must lie between 0 and 1")


def _count(what: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidParameterError(what, value, f"it must lie between 1 and {most}")
