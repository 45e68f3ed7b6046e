"""Numbers of pages equal those of a dictionary, whatever the ids and the batches, in the memory that is promised."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.page_numbers import PageNumbers
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import Integers
from tests.cases import with_each
from tests.tiers import examples

IDS = st.integers(-5, 40) | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 60).map(lambda power: 1 << power)


def by_dictionary(ids: list[int]) -> list[int]:
    known: dict[int, int] = {}
    return [known.setdefault(page, FIRST_PAGE + len(known)) for page in ids]


def in_batches(ids: Integers, size: int) -> tuple[list[int], PageNumbers]:
    pages = PageNumbers()
    parts = [pages.number(ids[begin : begin + size]) for begin in range(0, len(ids), size)]
    return [number for part in parts for number in part.tolist()], pages


@settings(max_examples=examples(60), deadline=None)
@given(ids=st.lists(IDS, max_size=300), size=st.integers(1, 90))
def test_numbers_are_those_of_a_dictionary(ids: list[int], size: int) -> None:
    numbers, pages = in_batches(np.array(ids, np.int64), size)
    assert numbers == by_dictionary(ids)
    assert pages.ids().tolist() == list(dict.fromkeys(ids))
    assert len(pages) == len(set(ids))


@with_each("spread", [1, 4096, 1 << 40, (1 << 32) + 1])
def test_tables_grow_under_ids_of_any_spread(spread: int) -> None:
    ids = np.random.default_rng(1).integers(0, 6000, 20000) * spread
    numbers, pages = in_batches(ids, 3000)
    assert numbers == by_dictionary(ids.tolist())
    assert len(pages) == len(np.unique(ids))


def test_pages_whose_hashes_are_the_same_are_told_apart() -> None:
    """Hashes of 32 bits of ids that differ in both halves in the ratio of the factors: low * a ^ high * b is 0 for both."""
    low, high = 0x27D4EB2F, 0x2545F491
    ids = [low * times | high * times << 32 for times in (0, 1, 2, 3)] * 2
    assert in_batches(np.array(ids, np.int64), 8)[0] == by_dictionary(ids)


def test_a_page_takes_at_most_24_bytes() -> None:
    pages = PageNumbers()
    for begin in range(0, 60000, 2000):
        pages.number(np.arange(begin, begin + 2000) * 8192)
        assert pages.memory <= 24 * max(len(pages), 2000)
