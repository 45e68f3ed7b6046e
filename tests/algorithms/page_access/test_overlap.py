"""The overlap planner on graphs for which blocks of twice the frames are no good."""

from __future__ import annotations

import pytest

from algorithms.page_access.instances import complete
from algorithms.page_access.planners.base import plan


@pytest.mark.parametrize("others", [200, 1000])
def test_a_block_nested_loop_is_no_better_where_all_pages_meet(others: int) -> None:
    """Also of more edges than those for which blocks of several sizes are tried."""
    graph = complete(300, others)
    made = plan(graph, 256, "overlap")
    made.check()
    assert made.fetches <= plan(graph, 256, "blocks").fetches
