"""The lower bound of fetches for independent orders: each step of its proof, and the whole of it against exhaustive search."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.instances import join_graph
from algorithms.page_access.optimum import fewest_fetches
from algorithms.page_access.plan import FetchPlan
from algorithms.page_access.planners.base import plan
from flashsim.core.errors import InvalidParameterError
from models.page_fetching import least_fetches_of_independent_orders, log_chance

PAGES, TUPLES = 3, 2
ORDERS = np.array(list(itertools.permutations(range(PAGES * TUPLES))))


@pytest.mark.parametrize("results", [(2, 2, 2), (2, 1, 2), (2, 2, 0), (1, 0, 1)])
def test_no_pairs_chosen_before_hold_all_results_more_often(results: tuple[int, ...]) -> None:
    """Against all orders and all sets of pairs of pages of two tiny relations."""
    rows = [TUPLES * page + slot for page, count in enumerate(results) for slot in range(count)]
    pairs = np.array(rows) // TUPLES * PAGES + ORDERS[:, rows] // TUPLES
    masks = np.bitwise_or.reduce(1 << pairs, axis=1)
    most = np.zeros(PAGES * PAGES + 1)
    for chosen in range(1 << PAGES * PAGES):
        size = chosen.bit_count()
        most[size] = max(most[size], np.mean(masks & ~chosen == 0))
    for covered in range(1, PAGES * PAGES + 1):
        assert most[covered] <= math.exp(log_chance(results, PAGES, TUPLES, covered)) * (1 + 1e-9)


def pairs_met(made: FetchPlan, phase: int) -> float:
    """Most pairs of a page of either relation that could meet in a phase of a plan."""
    resident: set[int] = set()
    side, met = made.graph.pages // 2, []
    for begin in range(0, made.fetches, phase):
        there = set(resident)
        for page, victim in zip(made.pages[begin : begin + phase].tolist(), made.victims[begin : begin + phase].tolist(), strict=True):
            resident.discard(victim)
            resident.add(page)
        fetched = set(made.pages[begin : begin + phase].tolist())
        of_r, held_r = (sum(page < side for page in pages) for pages in (there | fetched, there - fetched))
        met.append(of_r * (len(there | fetched) - of_r) - held_r * (len(there - fetched) - held_r))
    return max(met)


@pytest.mark.parametrize("planner", ["overlap", "blocks", "segments"])
@pytest.mark.parametrize("phase", [3, 10, 40])
def test_no_more_pages_meet_in_a_phase(planner: str, phase: int) -> None:
    made = plan(join_graph(60, selectivity=0.4), 10, planner)
    assert pairs_met(made, phase) <= max(10 * phase, (10 + phase) ** 2 / 4)


@pytest.mark.parametrize("frames", [2, 3])
def test_it_fails_no_more_often_than_it_may(frames: int) -> None:
    """Over all orders of a tiny relation, by the optimum of each."""
    of_graph: dict[frozenset[int], int] = {}
    optima = []
    for order in ORDERS:
        key = frozenset((np.arange(len(order)) // TUPLES * PAGES + order // TUPLES).tolist())
        if key not in of_graph:
            first, second = np.divmod(np.array(sorted(key)), PAGES)
            of_graph[key] = fewest_fetches(PageGraph.of(first, second + PAGES), frames) or 0
        optima.append(of_graph[key])
    for doubt in (0.9, 0.5, 0.1, 0.01):
        bound = least_fetches_of_independent_orders([TUPLES] * PAGES, PAGES, TUPLES, frames, doubt)
        assert np.mean(np.array(optima) < bound) <= doubt


@pytest.mark.parametrize(("selectivity", "over_pages", "gap"), [(0.3, 1.3, 1.75), (0.5, 1.75, 1.8)])
def test_at_the_size_of_li_et_al(selectivity: float, over_pages: float, gap: float) -> None:
    """It is well above the pages that are needed, and our plan is not far above it."""
    graph = join_graph(selectivity=selectivity)
    results = np.bincount(graph.first, graph.results, 8192).astype(np.int64)
    bound = least_fetches_of_independent_orders(results, 8192, 25, 510)
    made = plan(graph, 510).fetches
    print(f"selectivity {selectivity}: {made} fetches, at least {bound}, {graph.needed_pages} pages")
    assert over_pages * graph.needed_pages <= bound <= made <= gap * bound


def test_unfit_numbers_are_refused() -> None:
    assert least_fetches_of_independent_orders([0, 0], 2, 5, 2) == 0
    with pytest.raises(InvalidParameterError, match="S has 4 rows"):
        least_fetches_of_independent_orders([5], 2, 2, 2)
    with pytest.raises(InvalidParameterError, match="doubt"):
        least_fetches_of_independent_orders([2], 2, 2, 2, 1.5)
