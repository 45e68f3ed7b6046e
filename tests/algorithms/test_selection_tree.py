"""The tournament tree: who wins, and how many times two tuples are compared, against one that plays every match of every level."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.sorting import tournament as tree
from algorithms.sorting.runs import ReplacementSelection
from flashsim.storage.rows import key_tuples

_LEAST, _MOST = -(1 << 63) + 1, (1 << 63) - 1
keys = st.integers(-3, 3) | st.integers(_LEAST, _MOST) | st.sampled_from([_LEAST, _MOST, -(1 << 32), (1 << 32) - 1, 1 << 31])


class Tournament:
    """Node n plays nodes 2n and 2n + 1; leaves, at one depth or two, are the last nodes."""

    def __init__(self, leaves):
        self.leaves = leaves
        self.nodes = [None] * (2 * leaves)

    def enter(self, leaf, key):
        """Let a leaf hold a key, or nothing; returns the comparisons of two keys."""
        node, compared = self.leaves + leaf, 0
        self.nodes[node] = None if key is None else (key, leaf)
        while node > 1:
            both = [self.nodes[each] for each in (node, node ^ 1) if self.nodes[each] is not None]
            compared += len(both) == 2
            node //= 2
            self.nodes[node] = min(both, default=None)
        return compared

    @property
    def winner(self):
        return self.nodes[1]


@given(st.data(), st.integers(1, 70))
def test_every_replay_has_the_winner_and_the_comparisons_of_a_plain_tournament(data, leaves):
    nodes, plain = tree.empty_tree(leaves), Tournament(leaves)
    for leaf, key in data.draw(st.lists(st.tuples(st.integers(0, leaves - 1), st.none() | keys), min_size=1, max_size=60)):
        assert tree.enter(nodes, leaves, leaf, key or 0, key is None) == plain.enter(leaf, key)
        if plain.winner is None:
            assert nodes[1, tree.UPPER] >= tree.EMPTY
        else:
            assert tree.winner(nodes) == plain.winner


def test_four_nodes_that_are_compared_share_a_cache_line():
    for leaves in (1, 2, 3, 1000, 1025):
        assert tree.empty_tree(leaves).ctypes.data % 64 == 0


@pytest.mark.parametrize("capacity", [2_000, 1_000_000])  # trees that are looked ahead in, and not
def test_runs_are_those_of_a_heap(capacity):
    rng = np.random.default_rng(3)
    numbers, sizes = rng.integers(_LEAST, _MOST, 60_000), rng.integers(40, 60, 60_000)
    selection = ReplacementSelection(capacity, len(numbers))
    chosen, ends = [], []
    for tuples, run_ends in selection.feed(key_tuples(numbers, np.arange(60_000)), sizes, last=True):
        chosen += tuples.rows.tolist()
        if run_ends:
            ends.append(len(chosen))
    assert (chosen, ends) == of_a_heap(numbers.tolist(), sizes.tolist(), capacity)


def of_a_heap(numbers, sizes, capacity):
    """Rows in the order in which replacement selection gives them out, and where runs end, from a heap."""
    heap, chosen, ends, free, run, last = [], [], [], capacity, 0, _LEAST
    for row, (number, size) in enumerate(zip(numbers, sizes, strict=True)):
        while heap and size > free:
            if heap[0][0] > run:
                run, last = run + 1, _LEAST
                ends.append(len(chosen))
            _, last, out = heapq.heappop(heap)
            chosen.append(out)
            free += sizes[out]
        heapq.heappush(heap, (run + (number < last), number, row))
        free -= size
    for its_run, _, out in sorted(heap):
        if its_run > run:
            run += 1
            ends.append(len(chosen))
        chosen.append(out)
    return chosen, ends
