"""Polishing: short runs of a plan's edges are moved elsewhere, and stay there unless that takes more fetches; for small graphs."""

import numpy as np

from algorithms.page_access.belady import Replay, belady, go_through, replay
from algorithms.page_access.graph import Pages
from algorithms.page_access.plan import FetchPlan
from flashsim.core.draws import mixed
from flashsim.core.kernel import lean_kernel

#: Edges of the longest run that is moved.
_LONGEST = 4


def polished(plan: FetchPlan, effort: int) -> FetchPlan:
    """A plan of no more fetches.

    Parameters
    ----------
    effort
        How many edges may be looked at, over all moves.
    """
    graph, order = plan.graph, plan.edges.copy()
    if graph.edges < 2 or plan.fetches <= graph.needed_pages:
        return plan
    _move_runs(order, np.empty_like(order), replay(graph, plan.frames), graph.needed_pages, effort // graph.edges)
    return min(plan, belady(graph, order, plan.frames), key=lambda made: made.fetches)


@lean_kernel
def _move_runs(order: Pages, moved: Pages, room: Replay, enough: int, moves: int) -> None:
    """Move runs of an order, forwards or turned round, as long as more than enough pages are fetched."""
    edges = order.shape[0]
    fewest = go_through(order, room)
    for move in range(moves):
        if fewest <= enough:
            break
        length = 1 + mixed(4 * move) % min(_LONGEST, edges - 1)
        begin = mixed(4 * move + 1) % (edges - length + 1)
        target = mixed(4 * move + 2) % (edges - length + 1)
        turned = mixed(4 * move + 3) & 1
        taken = 0
        for place in range(edges):
            if target <= place < target + length:
                run = place - target
                moved[place] = order[begin + length - 1 - run] if turned else order[begin + run]
            else:
                moved[place] = order[taken + length if taken >= begin else taken]
                taken += 1
        fetches = go_through(moved, room)
        if fetches <= fewest:
            fewest = fetches
            for place in range(edges):
                order[place] = moved[place]
