"""Page-access scheduling against the optimum: published values, NetworkX, other searches, and how near our planner comes."""

from __future__ import annotations

import itertools
from collections import deque

import networkx
import numpy as np
import pytest

from algorithms.page_access.belady import belady
from algorithms.page_access.graph import PageGraph
from algorithms.page_access.instances import bipartite, complete, general, geometric, join_graph
from algorithms.page_access.optimum import fewest_fetches, fewest_frames
from algorithms.page_access.planners.base import plan
from flashsim.core.rng import generator
from models.page_fetching import least_fetches

#: The join graph of Li et al. (MDM 2009), figure 3: pages 1 and 2, and a, b, c.
FIGURE_3 = PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4])


def two_frames(edges: int, components: int) -> tuple[int, float]:
    """Least and most fetches of the best plan with 2 frames: e + c and 1.25 e + c, of e edges in c components.

    The least is reached just if the line graph of each component has a Hamiltonian path (Merrett, Kambayashi and Yasuura, VLDB 1981; Cai,
    Chakaravarthy, Kaushik and Naughton, PODS 2001).
    """
    return edges + components, 1.25 * edges + components


def frames_of_complete(pages: int, others: int) -> int:
    """The least frames with which no page of a complete bipartite graph is fetched twice: the smaller side, and one."""
    return min(pages, others) + 1


def drawn(number: int) -> tuple[PageGraph, int]:
    """A graph of 8 to 10 pages and 2 to 4 frames."""
    random = generator(number, "small graphs")
    pages = int(random.integers(8, 11))
    pairs = np.array(list(itertools.combinations(range(pages), 2)))
    chosen = pairs[random.permutation(len(pairs))[: random.integers(pages - 1, 2 * pages + 3)]]
    return PageGraph.of(chosen[:, 0], chosen[:, 1]), int(random.integers(2, 5))


def breadth_first(graph: PageGraph, frames: int) -> int:
    """The optimum by plain breadth-first search."""
    edges = {frozenset(ends) for ends in zip(graph.first.tolist(), graph.second.tolist(), strict=True)}
    begin = (frozenset[int](), frozenset(edges))
    seen, waiting = {begin}, deque([(begin, 0)])
    while True:
        (resident, left), fetches = waiting.popleft()
        if not left:
            return fetches
        for page in set().union(*left) - resident:
            for victim in [set[int](), *({each} for each in resident)]:
                memory = resident - victim | {page}
                if len(memory) <= frames:
                    state = memory, frozenset(edge for edge in left if not edge <= memory)
                    if state not in seen:
                        seen.add(state)
                        waiting.append((state, fetches + 1))


def pathwidth(graph: networkx.Graph) -> int:
    """By its definition as vertex separation: over all orders of the pages, by dynamic programming over sets."""
    pages = list(graph)
    least: dict[frozenset[int], int] = {frozenset(): 0}
    for size in range(1, len(pages) + 1):
        following: dict[frozenset[int], int] = {}
        for chosen in itertools.combinations(pages, size):
            group = frozenset(chosen)
            border = sum(any(other not in group for other in graph[page]) for page in group)
            following[group] = max(border, min(least[group - {page}] for page in group))
        least = following
    return least[frozenset(pages)]


def test_published_values() -> None:
    assert two_frames(9, 1) == (10, 12.25)
    assert [fewest_fetches(FIGURE_3, frames) for frames in (2, 3, 4)] == [6, 5, 5] and fewest_frames(FIGURE_3) == 3
    k33 = complete(3, 3)
    assert [fewest_fetches(k33, frames) for frames in (2, 3, 4)] == [10, 8, 6] and fewest_frames(k33) == 4
    for n, m in itertools.product(range(1, 5), repeat=2):
        assert fewest_frames(complete(n, m)) == frames_of_complete(n, m)


@pytest.mark.parametrize("number", range(6))
def test_both_searches_agree(number: int) -> None:
    random = generator(number, "tiny graphs")
    pairs = np.array(list(itertools.combinations(range(6), 2)))[random.permutation(15)[: random.integers(4, 9)]]
    graph = PageGraph.of(pairs[:, 0], pairs[:, 1])
    for frames in (2, 3, 4):
        assert fewest_fetches(graph, frames) == breadth_first(graph, frames)


@pytest.mark.parametrize("number", range(12))
def test_the_fewest_frames_are_the_pathwidth_and_one(number: int) -> None:
    graph, _ = drawn(number)
    assert fewest_frames(graph) == pathwidth(graph.to_networkx()) + 1


@pytest.mark.parametrize("number", range(40))
def test_two_frames(number: int) -> None:
    """The optimum lies between |E| + c and 1.25 |E| + c, and is the former just if line graphs have Hamiltonian paths."""
    random = generator(number, "two frames")
    pairs = np.array(list(itertools.combinations(range(7), 2)))[random.permutation(21)[: random.integers(3, 12)]]
    graph = PageGraph.of(pairs[:, 0], pairs[:, 1])
    shape = graph.to_networkx()
    shape.remove_nodes_from(list(networkx.isolates(shape)))
    least, most = two_frames(graph.edges, networkx.number_connected_components(shape))
    optimum = fewest_fetches(graph, 2)
    assert optimum is not None and least <= optimum <= most
    traceable = all(_traceable(networkx.line_graph(shape.subgraph(part))) for part in networkx.connected_components(shape))
    assert (optimum == least) == traceable


def _traceable(graph: networkx.Graph) -> bool:
    """Whether a graph has a Hamiltonian path."""

    def goes_on(path: list[object], visited: set[object]) -> bool:
        if len(visited) == len(graph):
            return True
        return any(goes_on([*path, each], visited | {each}) for each in graph[path[-1]] if each not in visited)

    return any(goes_on([begin], {begin}) for begin in graph)


def _nearness(numbers: range) -> float:
    ratios = []
    for number in numbers:
        graph, frames = drawn(number)
        optimum = fewest_fetches(graph, frames)
        assert optimum is not None
        made = plan(graph, frames)
        made.check()
        assert least_fetches(graph.needed_pages, graph.edges, frames, int(graph.degrees.max())) <= optimum <= made.fetches
        assert optimum <= min(plan(graph, frames, name).fetches for name in ("segments", "blocks", "as-given"))
        ratios.append(made.fetches / optimum)
    return float(np.mean(ratios))


def test_ours_is_near_the_optimum() -> None:
    assert _nearness(range(100)) <= 1.03


@pytest.mark.deep
def test_ours_is_near_the_optimum_of_a_thousand_graphs() -> None:
    assert _nearness(range(1000)) <= 1.03


@pytest.mark.parametrize(("selectivity", "limit"), [(0.05, 1.0), (0.1, 1.25), (0.3, 2.6), (0.5, 3.7)])
def test_ours_on_independent_orders(selectivity: float, limit: float) -> None:
    """At the size of Li et al., with what is left of 512 pages for pages of the relations."""
    graph = join_graph(selectivity=selectivity)
    made = plan(graph, 510)
    made.check()
    assert made.over_needed <= limit
    assert made.fetches <= min(plan(graph, 510, other).fetches for other in ("segments", "blocks", "as-given"))


@pytest.mark.parametrize("make", [general, geometric, bipartite])
@pytest.mark.parametrize("frames", [8, 32, 128, 200])
def test_ours_on_published_families(make: type[PageGraph], frames: int) -> None:
    graph = make()
    others = min(plan(graph, frames, other).fetches for other in ("segments", "blocks", "as-given"))
    assert plan(graph, frames).fetches <= others


@pytest.mark.parametrize("number", range(20))
def test_belady_is_the_best_replacement_for_an_order(number: int) -> None:
    """Against a search over all victims."""
    random = generator(number, "orders")
    graph, frames = drawn(number)
    order = random.permutation(graph.edges)[:]
    made = belady(graph, order, frames)
    made.check()
    states = {frozenset[int](): 0}
    for edge in order:
        for page in (int(graph.first[edge]), int(graph.second[edge])):
            ends = {int(graph.first[edge]), int(graph.second[edge])}
            following: dict[frozenset[int], int] = {}
            for memory, fetches in states.items():
                choices = [memory] if page in memory else [memory | {page}] if len(memory) < frames else []
                choices = choices or [memory - {victim} | {page} for victim in memory - ends]
                for choice in choices:
                    cost = fetches + (page not in memory)
                    following[choice] = min(cost, following.get(choice, cost))
            states = following
    assert made.fetches == min(states.values())
