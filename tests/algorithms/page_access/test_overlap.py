"""The overlap planner on graphs for which blocks of twice the frames are no good."""

from __future__ import annotations

import time

import numpy as np
import pytest

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.instances import complete
from algorithms.page_access.planners.base import plan


@pytest.mark.parametrize("others", [200, 1000])
def test_a_block_nested_loop_is_no_better_where_all_pages_meet(others: int) -> None:
    """Also of more edges than those for which blocks of several sizes are tried."""
    graph = complete(300, others)
    made = plan(graph, 256, "overlap")
    made.check()
    assert made.fetches <= plan(graph, 256, "blocks").fetches


def test_two_pages_that_meet_all_others_are_no_work_in_proportion_to_their_square() -> None:
    others = np.arange(2, 60_002)
    graph = PageGraph.of(np.repeat([0, 1], len(others)), np.tile(others, 2))
    plan(complete(2, 2), 2, "overlap")  # compiled
    begin = time.process_time()
    made = plan(graph, 2, "overlap")
    assert time.process_time() - begin < 5  # segments take 13 s
    made.check()
    assert made.fetches <= 2 * len(others) + 2
