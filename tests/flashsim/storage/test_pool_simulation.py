"""Policies alone: what a pool counts, in its compiled and in its plain form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.replacement.base import replacement_policy
from flashsim.core.errors import InvalidParameterError
from flashsim.core.replacement import FIRST_PAGE
from flashsim.storage.pool.simulation import Counts, PlainSimulation, Simulation, simulation

LRU = replacement_policy("lru")


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans())), st.integers(1, 8), st.integers(1, 5))
def test_both_forms_count_what_a_list_of_pages_counts(references: list[tuple[int, bool]], frames: int, batch: int) -> None:
    """In whatever batches references come."""
    order: list[int] = []
    dirty: set[int] = set()
    seen: set[int] = set()
    hits = first = write_misses = evictions = write_backs = 0
    for page, write in references:
        if page in order:
            hits += 1
            order.remove(page)
        else:
            first += page not in seen
            write_misses += write
            if len(order) == frames:
                leaving = order.pop(0)
                evictions += 1
                write_backs += leaving in dirty
                dirty.discard(leaving)
        order.append(page)
        seen.add(page)
        if write:
            dirty.add(page)
    expected = Counts(len(references), sum(write for _, write in references), hits, first, write_misses, evictions, write_backs)
    pages = np.array([page + FIRST_PAGE for page, _ in references], np.int32)
    writes = np.array([write for _, write in references], np.uint8)
    for pool in (Simulation(LRU, frames), PlainSimulation(LRU, frames)):
        for row in range(0, len(pages), batch):
            pool.refer(pages[row : row + batch], writes[row : row + batch])
        assert pool.counts == expected


def test_a_pool_without_frames_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="size: 0 pages, but a pool has at least one"):
        simulation(LRU, 0)


@pytest.mark.parametrize("form", [Simulation, PlainSimulation])
def test_a_policy_that_must_know_the_future_is_not_asked_without(form: type[Simulation] | type[PlainSimulation]) -> None:
    with pytest.raises(InvalidParameterError, match="replacement policy: 'opt', but it must know the future, which is not known here"):
        form(replacement_policy("opt"), 2).refer(np.array([FIRST_PAGE], np.int32))
