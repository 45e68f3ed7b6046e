"""Sort-merge: what replacement selection is known to do, exact request counts from run lengths, and groups beyond memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.joins import sort_merge
from algorithms.joins.base import JoinParameters
from algorithms.sorting.runs import ReplacementSelection
from flashsim.execution.requests import Work
from flashsim.storage.rows import key_tuples
from flashsim.testing.strict_driver import oracle, relation_file, run
from models.allocation.buffers import SortMergeAllocation
from tests.tiers import examples


def select(keys, sizes, capacity, block=64):
    """Runs of row numbers, and the comparisons made."""
    keys, sizes = np.asarray(keys, np.int64), np.asarray(sizes, np.int64)
    selection, runs = ReplacementSelection(capacity, len(keys)), [[]]
    starts = range(0, max(1, len(keys)), block)
    for start in starts:
        part = slice(start, start + block)
        tuples = key_tuples(keys[part], np.arange(len(keys))[part])
        for chosen, run_ends in selection.feed(tuples, sizes[part], last=start == starts[-1]):
            runs[-1] += chosen.rows.tolist()
            if run_ends:
                runs.append([])
    return runs, selection.take_comparisons()


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.integers(-5, 5) | st.integers(-(1 << 63) + 1, (1 << 63) - 1), st.integers(1, 50)), max_size=120),
    st.integers(1, 300),
)
def test_runs_are_sorted_and_hold_every_tuple_once(tuples, capacity):
    keys, sizes = [key for key, _ in tuples], [size for _, size in tuples]
    runs, _ = select(keys, sizes, capacity, block=17)
    assert sorted(row for rows in runs for row in rows) == list(range(len(keys)))
    for rows in runs:
        assert [keys[row] for row in rows] == sorted(keys[row] for row in rows)
    # A run ends only when memory is full of tuples that have missed it: all but the last are as long as memory less one tuple.
    for rows in runs[:-1]:
        assert sum(sizes[row] for row in rows) > capacity - 50


def test_runs_of_random_input_are_twice_the_memory():
    """Knuth, TAOCP 3, 5.4.1: the expected length tends to 2 P (the first run: e - 1 = 1.72, the last: what is left)."""
    keys = np.random.default_rng(1).permutation(60_000)
    runs, compared = select(keys, np.full(60_000, 10), 10_000)
    lengths = [len(rows) / 1000 for rows in runs[1:-2]]
    assert len(runs[0]) / 1000 == pytest.approx(math.e - 1, rel=0.05)
    assert np.mean(lengths) == pytest.approx(2, rel=0.03)
    # One path of the tree a tuple, log2(1000) = 9.97 matches, and one comparison with the last key put out.
    assert 0.85 * 10.97 < compared / 60_000 < 1.1 * 10.97


def test_sorted_input_is_one_run_and_falling_input_runs_of_memory():
    rising, compared = select(np.arange(5000), np.full(5000, 10), 1000)
    falling, _ = select(-np.arange(5000), np.full(5000, 10), 1000)
    assert len(rising) == 1
    assert [len(rows) for rows in falling] == [100] * 50
    assert compared > 0


def test_tuples_of_changing_size_refill_the_tree():
    """Large tuples leave room for many small ones, on leaves other than the winner's."""
    sizes = np.concatenate([np.full(300, 100), np.full(9000, 4)])
    keys = np.random.default_rng(2).permutation(len(sizes))
    runs, _ = select(keys, sizes, 2000)
    assert max(len(rows) for rows in runs) > 900


@pytest.mark.parametrize("memory", [60, 100, 250, 900])
def test_counts(memory):
    rng = np.random.default_rng(memory)
    # Records of 95 bytes fill pages to 500 of 504 bytes: memory is counted in bytes, the formula's in full pages.
    r, s = relation_file("r", rng.permutation(2000), record=95), relation_file("s", rng.integers(0, 2000, 6000), record=95)
    parameters = JoinParameters(memory)
    allocation = sort_merge.allocate(r.pages, s.pages, parameters)
    outcome = run(sort_merge.join(r, s, parameters), memory)
    runs = {side: [pages for name, pages in outcome.lengths.items() if name.startswith(f"sort-merge/{side}/run-")] for side in "rs"}
    every = runs["r"] + runs["s"]
    block = memory // len(every)
    assert outcome.phases == ["sort", "merge"]
    assert outcome.count("read", "sort") == math.ceil(r.pages / allocation.input) + math.ceil(s.pages / allocation.input)
    assert outcome.count("write", "sort") == sum(math.ceil(pages / allocation.output) for pages in every)
    assert outcome.count("read", "merge") == sum(math.ceil(pages / block) for pages in every)
    assert outcome.count("write", "merge") == 0
    # The formula has ceil(|R| / RL) runs of RL = 2 WS / F pages; the first run is shorter (1.72), and each run ends with part of a page.
    formula = allocation.runs(r.pages) + allocation.runs(s.pages)
    assert formula <= len(every) <= formula + 4
    moved = outcome.pages("read") + outcome.pages("write")
    assert 3 * (r.pages + s.pages) <= moved <= 3 * (r.pages + s.pages) + 2 * len(every)


def test_work():
    r, s = relation_file("r", np.arange(500)), relation_file("s", np.arange(1200) % 600)
    outcome = run(sort_merge.join(r, s, JoinParameters(100)), 100)
    assert outcome.work[Work.READ_TUPLE] == 2 * 1700
    assert outcome.work[Work.WRITE_TUPLE] == 1700
    assert outcome.work[Work.EMIT] == 1000
    assert outcome.work[Work.HASH] == outcome.work[Work.BUILD] == outcome.work[Work.PROBE] == 0
    assert outcome.work[Work.COMPARE] > 1700 * 5


def test_too_many_runs_are_merged_first():
    """A workspace of one page makes more runs than memory has pages."""
    rng = np.random.default_rng(1)
    r_codes, s_codes = rng.integers(0, 900, 600), rng.integers(0, 900, 1500)
    r, s = relation_file("r", r_codes), relation_file("s", s_codes)
    outcome = run(sort_merge.join(r, s, JoinParameters(12), SortMergeAllocation(2, 5, 5)), 12)
    assert any("/merged-" in name for name in outcome.lengths)
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(r_codes, s_codes))


@pytest.mark.parametrize("memory", [12, 20, 40])
def test_a_group_beyond_memory_is_spilled_and_scanned(memory):
    r_codes = np.concatenate([np.arange(50), np.full(400, 77), np.arange(100, 150)])
    s_codes = np.concatenate([np.full(500, 77), np.arange(140)])
    r, s = relation_file("r", r_codes), relation_file("s", s_codes)
    outcome = run(sort_merge.join(r, s, JoinParameters(memory), SortMergeAllocation(memory - 4, 2, 2)), memory)
    spilled = [name for name in outcome.lengths if "/group-" in name]
    assert len(spilled) == 1 and outcome.tuples[spilled[0]] == 400
    assert outcome.pages_by_file("read")[spilled[0]] >= outcome.lengths[spilled[0]]
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(r_codes, s_codes))
