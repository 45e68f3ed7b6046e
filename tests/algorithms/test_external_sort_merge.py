"""The textbook's sort-merge and DigestJoin on it move the pages that li2009's worked example counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.joins.base import JoinParameters, plan
from algorithms.joins.digest import DigestOptions
from algorithms.late_fetch.columns import with_digests
from flashsim.execution.drivers import trace_only
from flashsim.execution.run import PhaseCost
from flashsim.storage.heap_file import HeapFile
from flashsim.testing.contracts.joins import options_of
from flashsim.testing.strict_driver import oracle, relation_file, run
from models.join_costs.base import Sizes
from models.join_costs.external_sort_merge import allocate, counts
from tests.tiers import examples

PAGE = 4096


def _table(name: str, pages: dict[int, int], record: dict[int, int]) -> HeapFile:
    """So many pages of so many tuples each, full with records of that size, in the order of their keys."""
    sizes = np.concatenate([np.full(count * tuples, record[tuples]) for tuples, count in pages.items()])
    return relation_file(name, np.arange(len(sizes)), record=sizes, page_size=PAGE)


@pytest.fixture(scope="module")
def tables() -> tuple[HeapFile, HeapFile]:
    """CUSTOMER of 10,000 and ORDERS of 5,000 pages, whose digests of 215 a page take 600 and 450."""
    customer = _table("customer", {13: 9000, 12: 1000}, {13: 300, 12: 330})
    orders = _table("orders", {20: 1750, 19: 3250}, {20: 195, 19: 203})
    assert (customer.pages, orders.pages) == (10_000, 5_000)
    return customer, orders


def _phases(name: str, tables: tuple[HeapFile, HeapFile], **told: str) -> dict[str, PhaseCost]:
    traced = trace_only(plan(name, *tables, JoinParameters(20, options=options_of(name, **told))), tables)
    assert traced.result_rows == tables[1].tuples
    return {phase.name: phase for phase in traced.phases}


def test_the_worked_example_s_six_numbers(tables: tuple[HeapFile, HeapFile]) -> None:
    """Section II, at 20 pages of memory; passes of 4 and 3, and of 3 and 3 over the digests."""
    basic = _phases("external-sort-merge", tables)
    assert basic["sort"].pages == 4 * 2 * 10_000 + 3 * 2 * 5_000 == 110_000
    whole = basic["sort"].pages + basic["merge"].pages
    assert whole == 125_000
    digest = _phases("digest", tables, first="external-sort-merge", fetch="naive")
    built = digest["project"].pages
    assert (built, digest["project"].pages_written) == (16_050, 600 + 450)
    joined = digest["digest external-sort-merge: sort"].pages + digest["digest external-sort-merge: merge"].pages
    assert joined == 3 * 2 * 600 + 3 * 2 * 450 + 600 + 450 == 7_350
    assert built + joined == 23_400
    assert whole - built - joined == 101_600
    assert "index" not in digest and 15_000 > digest["fetch"].pages >= 7_500


def test_digests_that_are_there_are_not_projected(tables: tuple[HeapFile, HeapFile]) -> None:
    files = with_digests(tables)
    assert [file.pages for file in files[2:]] == [600, 450]
    parameters = JoinParameters(20, options=DigestOptions(first="external-sort-merge", digests_stored=True, fetch="naive"))
    first, second, *_ = trace_only(plan("digest", *tables, parameters), files).phases
    assert first.pages + second.pages == 7_350


def _passes(pages: int, memory: int) -> int:
    """1 + ceil(log_(B-1) ceil(N / B)), in whole numbers."""
    passes = 1
    while (memory - 1) ** (passes - 1) < -(-pages // memory):
        passes += 1
    return passes


@settings(max_examples=examples(60))
@given(st.integers(41, 5000), st.integers(41, 5000), st.integers(3, 40))
def test_the_formula_counts_the_textbook_s_passes(r: int, s: int, memory: int) -> None:
    sizes = Sizes(r, s, r, s, memory)
    sort, merge = counts(sizes, allocate(sizes, 1, 1))
    assert sort.reads.pages == sort.writes.pages == _passes(r, memory) * r + _passes(s, memory) * s
    assert merge.total.pages == r + s


def _pages(name: str, count: int, keys: int) -> tuple[np.ndarray, HeapFile]:
    """Keys in random order, 5 a page, and their file."""
    codes = np.random.default_rng(count).permutation(5 * count) % keys
    return codes, relation_file(name, codes, record=90)


@pytest.mark.parametrize(
    ("r", "s", "sort", "merge"),
    [
        (4, 6, (10, 0), 0),  # both fit
        (4, 7, (11, 7), 7),  # one page too many: S is written, and R waits for it
        (9, 10, (19, 10), 10),  # a page is left to read S through
        (10, 10, (20, 11), 11),  # none is, so that one of R is written
        (10, 12, (22 + 12, 1 + 2 * 12), 1 + 12),  # S is merged of two runs
        (11, 12, (2 * 23, 2 * 23), 23),  # neither fits
    ],
)
@pytest.mark.parametrize("keys", [1 << 20, 7, 1])
def test_what_fits_in_ten_pages_is_not_written(r: int, s: int, sort: tuple[int, int], merge: int, keys: int) -> None:
    """Counted by hand, as the formula does, whatever keys are equal; a group of equal keys that outgrows memory is written besides."""
    (left, r_file), (right, s_file) = _pages("r", r, keys), _pages("s", s, keys)
    assert (r_file.pages, s_file.pages) == (r, s)
    outcome = run(plan("external-sort-merge", r_file, s_file, JoinParameters(10)), 10)
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(left, right))
    moved = Counter[tuple[str, str]]()
    for (kind, name, _, count), phase in zip(outcome.extents, outcome.in_phase, strict=True):
        moved[phase, kind] += count * ("group" not in name)
    assert (moved["sort", "read"], moved["sort", "write"]) == sort
    assert (moved["merge", "read"], moved["merge", "write"]) == (merge, 0)
    sizes = Sizes(r, s, r, s, 10)
    counted = counts(sizes, allocate(sizes, 1, 1))
    assert (counted[0].reads.pages, counted[0].writes.pages, counted[1].total.pages) == (*sort, merge)
    if keys > 1 and s <= 10:  # where the runs that are merged are of one length
        assert outcome.count(phase="sort") == counted[0].total.requests and outcome.count(phase="merge") == counted[1].total.requests


@pytest.mark.parametrize("memory", [32, 33])
def test_digests_that_fit_together_are_joined_before_rows_are_fetched(memory: int) -> None:
    """32 pages of digests need a page besides for the join index; in fewer they are written, since the cache takes the memory."""
    tables = [relation_file(name, np.arange(400), record=90) for name in ("r", "s")]
    digests = with_digests(tables)[2:]
    assert sum(file.pages for file in digests) == 32
    parameters = JoinParameters(memory, options=DigestOptions(first="external-sort-merge", digests_stored=True, fetch="naive"))
    sort, merge, *others = trace_only(plan("digest", *tables, parameters), with_digests(tables)).phases
    assert (sort.pages, merge.pages, [phase.name for phase in others]) == (
        (32, 0, ["index", "fetch"]) if memory == 33 else (64, 32, ["fetch"])
    )


@settings(max_examples=examples(25))
@given(st.integers(0, 99), st.integers(3, 30), st.integers(1, 400), st.integers(1, 900))
def test_pages_are_those_of_the_formula(seed: int, memory: int, r_rows: int, s_rows: int) -> None:
    """Whole rows of one size fill every page alike, so that the formula's pages are exact, and its requests where no run is odd."""
    rng = np.random.default_rng(seed)
    left, right = rng.permutation(r_rows), rng.integers(0, r_rows, s_rows)
    files = relation_file("r", left, record=64), relation_file("s", right, record=64)
    r, s = sorted(file.pages for file in files)
    outcome = run(plan("external-sort-merge", *files, JoinParameters(memory)), memory)
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(left, right))
    sizes = Sizes(r, s, r, s, memory)
    sort, merge = counts(sizes, allocate(sizes, 1, 1))
    moved = sum(count for (_, _, _, count), phase in zip(outcome.extents, outcome.in_phase, strict=True) if phase == "sort")
    assert moved == pytest.approx(sort.total.pages, abs=4 * (_passes(r, memory) + _passes(s, memory)))
    assert outcome.count(phase="merge") == merge.total.requests
