"""What every join promises, whichever files the family's folder holds."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.joins.base import JOINS, JoinParameters, page_format, plan
from algorithms.partitioning.base import PARTITIONING
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Work
from flashsim.storage.keys import NULL_KEY
from flashsim.testing.strategies import EXTREME_KEYS, key_codes
from flashsim.testing.strict_driver import Outcome, oracle, relation_file, run
from models.allocation.buffers import NestedLoopsAllocation, SimpleHashAllocation, check

NAMES = JOINS.names()
#: Joins that make buckets, by each of the ways to do so but the usual one.
BUCKETS = [(name, method) for name in NAMES if "partition" in JOINS.load(name).OPTIONS for method in PARTITIONING.names()]
WAYS = [(name, "traditional") for name in NAMES] + [way for way in BUCKETS if way[1] != "traditional"]
#: Joins that fetch rows for their results once keys have met.
FETCHING = [name for name in NAMES if {"columns", "fetch"} & set(JOINS.load(name).OPTIONS)]


def relations(name, r_codes, s_codes, seed=None):
    """Files of rows that are all of one size, or, with a seed, of sizes from 4 to 300 bytes, on pages that the join takes."""
    if seed is None:
        sizes = 60, 90
    else:
        rng = np.random.default_rng(seed)
        sizes = rng.integers(4, 300, len(r_codes)), rng.integers(4, 300, len(s_codes))
    return file(name, "r", r_codes, record=sizes[0]), file(name, "s", s_codes, record=sizes[1])


def file(name, relation, codes, **sizes):
    """A relation's file on pages that the join takes."""
    return relation_file(relation, codes, page_format=page_format(name), **sizes)


def outcome_or_refusal(name, left, right, parameters, allocation=None) -> Outcome | None:
    """What a join does, or None if it refuses before it starts."""
    try:
        algorithm = plan(name, left, right, parameters, allocation)
    except InvalidParameterError:
        return None
    return run(algorithm, parameters.memory)


def test_the_classic_joins_are_members():
    assert {"bnl", "sort-merge", "simple-hash", "grace-hash", "hybrid-hash"} <= set(NAMES)


@pytest.mark.parametrize(("name", "method"), WAYS)
@settings(max_examples=40)
@given(key_codes(), key_codes(), st.integers(1, 60), st.booleans(), st.one_of(st.none(), st.integers(0, 99)))
@example(np.full(150, 7), np.full(150, 7), 9, False, None)
@example(np.full(150, NULL_KEY), np.full(150, NULL_KEY), 9, False, None)
@example(np.arange(150)[::-1].copy(), np.arange(150)[::-1].copy(), 9, True, None)
def test_rows_equal_the_oracle_s(name, method, left, right, memory, page_io, seed):
    if name in FETCHING and len(oracle(left, right)) > 1000:  # rows are fetched for each result: fewer rows of the same keys
        left, right = left[:30], right[:30]
    files = relations(name, left, right, seed)
    outcome = outcome_or_refusal(name, *files, JoinParameters(memory, page_io=page_io, partition=method))
    if outcome is None:
        needed = np.sqrt(1.2 * max(file.pages for file in files))
        assert memory < 2 * needed + 4, "memory well above every bound is refused"
    else:
        np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(left, right))


@pytest.mark.parametrize(("name", "method"), WAYS)
@pytest.mark.parametrize("skew", [0, 0.7])
def test_every_memory_from_the_least_up(name, method, skew):
    rng, memories, sizes = np.random.default_rng(3), [*range(1, 40), 60, 100, 1000], (200, 500)
    if skew and name == "digest":  # fetches whole rows for every pair
        memories, sizes = [*range(1, 12), *memories[20::7]], (80, 200)
    left, right = rng.integers(0, 150, sizes[0]), rng.integers(0, 200, sizes[1])
    left, right = np.where(rng.random(sizes[0]) < skew, 5, left), np.where(rng.random(sizes[1]) < skew, 5, right)
    files, expected = relations(name, left, right), oracle(left, right)
    served = []
    for memory in memories:
        parameters = JoinParameters(
            memory, columns=() if skew else None, partition=method
        )  # half a million results, and nothing fetched for each
        outcome = outcome_or_refusal(name, *files, parameters)
        served.append(outcome is not None)
        if outcome is not None:
            np.testing.assert_array_equal(outcome.sorted_pairs(), expected)
    assert served == sorted(served), "more memory never turns a join impossible"
    assert not served[0] and served[memories.index(21)]


@pytest.mark.parametrize(("name", "method"), WAYS)
@settings(max_examples=15)
@given(key_codes(), key_codes(), st.integers(8, 40))
def test_page_io_moves_the_same_pages_one_by_one(name, method, left, right, memory):
    if name in FETCHING:
        left, right = left[:30], right[:60]
    files = relations(name, left, right)
    blocked = outcome_or_refusal(name, *files, JoinParameters(memory, partition=method))
    paged = outcome_or_refusal(name, *relations(name, left, right), JoinParameters(memory, page_io=True, partition=method))
    if blocked is None or paged is None:
        assert blocked is paged is None
        return
    assert all(count == 1 for _, _, _, count in paged.extents)
    assert paged.requests == blocked.requests
    split = [(kind, name, page) for kind, name, start, count in blocked.extents for page in range(start, start + count)]
    assert split == [(kind, name, page) for kind, name, page, _ in paged.extents]
    np.testing.assert_array_equal(paged.pairs, blocked.pairs)
    assert paged.work == blocked.work and paged.phases == blocked.phases


@pytest.mark.parametrize(("name", "method"), WAYS)
def test_the_same_requests_every_time_and_in_every_driver(name, method):
    rng = np.random.default_rng(5)
    left, right = rng.integers(0, 300, 400), rng.integers(0, 300, 900)
    parameters = JoinParameters(30, partition=method)
    first, second = (run(plan(name, *relations(name, left, right, 1), parameters), 30) for _ in range(2))
    assert first.extents == second.extents
    np.testing.assert_array_equal(first.pairs, second.pairs)
    files, pairs = relations(name, left, right, 1), []
    traced = trace_only(plan(name, *files, parameters), files, results=lambda r, s: pairs.append(np.column_stack([r, s])))
    np.testing.assert_array_equal(np.concatenate(pairs), first.pairs)
    total = traced.total()
    assert (total.reads, total.pages_read) == (first.count("read"), first.pages("read"))
    assert (total.writes, total.pages_written) == (first.count("write"), first.pages("write"))
    counted = dict(total.work)
    assert counted.pop(Work.PAGE) == total.pages_read + total.pages_written  # the driver counts these, and no join does
    assert counted == first.work
    assert traced.result_rows == len(first.pairs)


@pytest.mark.parametrize("name", NAMES)
def test_roles_swap_and_columns_stay(name):
    left, right = np.arange(600) % 70, np.arange(50)
    larger, smaller = relations(name, left, right)
    outcome = run(plan(name, larger, smaller, JoinParameters(40)), 40)
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(left, right))
    mirrored = run(plan(name, smaller, larger, JoinParameters(40)), 40)
    assert mirrored.extents == outcome.extents
    np.testing.assert_array_equal(mirrored.pairs, outcome.pairs[:, ::-1])


@pytest.mark.parametrize("name", NAMES)
def test_a_relation_joins_itself(name):
    codes = np.arange(300) % 120
    staff = file(name, "staff", codes)
    outcome = run(plan(name, staff, staff, JoinParameters(30)), 30)
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(codes, codes))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [(0, 0), (0, 50), (50, 0)])
def test_an_empty_relation_costs_nothing(name, rows):
    outcome = run(plan(name, *relations(name, np.arange(rows[0]), np.arange(rows[1])), JoinParameters(30)), 30)
    assert len(outcome.pairs) == 0 and outcome.extents == [] and outcome.phases


@pytest.mark.parametrize("name", NAMES)
def test_results_stream_out(name):
    """120,000 pairs from 800 tuples: no batch holds more than a part of them."""
    left, right = np.zeros(200, np.int64), np.zeros(600, np.int64)
    parameters = JoinParameters(60, columns=())  # what is fetched after a join need not move so often here
    outcome = run(plan(name, *relations(name, left, right), parameters), 60)
    assert len(outcome.pairs) == 120_000 == len(np.unique(outcome.pairs, axis=0))
    assert max(outcome.batches) <= 1 << 16


@pytest.mark.parametrize(("name", "method"), WAYS)
@settings(max_examples=25)
@given(st.data())
def test_any_allocation_that_fits_gives_the_same_rows(name, method, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    left, right = rng.integers(0, 60, 120), rng.integers(0, 60, 200)
    files, memory = relations(name, left, right), data.draw(st.integers(3, 40))
    default = JOINS.load(name).allocate(*(file.pages for file in files), JoinParameters(1000))
    changes = {field.name: data.draw(st.integers(-1, 12), field.name) for field in dataclasses.fields(default)}
    allocation = dataclasses.replace(default, **changes)
    outcome = outcome_or_refusal(name, *files, JoinParameters(memory, partition=method), allocation)
    if outcome is not None:
        check(allocation, memory)
        np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(left, right))


@pytest.mark.parametrize("name", NAMES)
def test_bad_parameters_are_refused_before_anything_is_read(name):
    r, s = relations(name, np.arange(100), np.arange(300))
    module = JOINS.load(name)
    fits = module.allocate(r.pages, s.pages, JoinParameters(100))
    for parameters, allocation in [
        (JoinParameters(99), fits),
        (JoinParameters(100), dataclasses.replace(fits, **{dataclasses.fields(fits)[-1].name: -1})),
        (JoinParameters(100), SimpleHashAllocation(1, 1, 1)),
        (JoinParameters(2), None),
        (JoinParameters(0), None),
        (JoinParameters(-5), None),
        (JoinParameters(100, fudge=0.5), None),
        (JoinParameters(100, fudge=float("nan")), None),
    ]:
        with pytest.raises(InvalidParameterError):
            plan(name, r, s, parameters, allocation)
    with pytest.raises(InvalidParameterError, match="page size: 512 B and 1024 B, but both relations need the same"):
        plan(name, r, file(name, "s", np.arange(300), page_size=1024), JoinParameters(100))


def test_messages_name_parameter_value_and_bound():
    r, s = relations("grace-hash", np.arange(100), np.arange(300))
    with pytest.raises(InvalidParameterError, match="allocation: NestedLoopsAllocation, but this join needs a GraceAllocation"):
        plan("grace-hash", r, s, JoinParameters(100), NestedLoopsAllocation(50, 50))
    with pytest.raises(UnknownNameError, match="join: 'grace-hush' is unknown; did you mean grace-hash"):
        plan("grace-hush", r, s, JoinParameters(100))


def digest() -> str:
    """Rows, requests and work of every join on one small case."""
    rng = np.random.default_rng(11)
    left = np.where(rng.random(150) < 0.3, 9, rng.integers(-50, 50, 150))
    right = np.concatenate([rng.integers(-50, 50, 300), EXTREME_KEYS])
    state = hashlib.sha256()
    for name, method in WAYS:
        outcome = run(plan(name, *relations(name, left, right, 4), JoinParameters(20, partition=method)), 20)
        work = sorted((kind.value, count) for kind, count in outcome.work.items())
        state.update(repr((outcome.extents, outcome.pairs.tolist(), work)).encode())
    return state.hexdigest()


def test_without_the_compiler_everything_is_the_same():
    root = Path(__file__).parents[2]
    code = "import warnings; warnings.simplefilter('error'); from tests.contract.test_joins import digest; print(digest())"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(root)}
    plain = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=True)
    assert plain.stdout.strip() == digest()
