"""Fetching through a buffer pool: what is read are the misses that a simulation of the same references counts, whatever the policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.fetching.base import FETCHING, FetchOptions, FetchParameters, check_options
from algorithms.joins.base import JOINS, JoinParameters
from algorithms.joins.digest import DigestOptions
from algorithms.late_fetch.join_index import GivenIndex
from algorithms.late_fetch.page_cache import PageCache
from algorithms.replacement.base import REPLACEMENT, replacement_policy
from flashsim.core.errors import FlashsimError, InvalidParameterError, UnknownNameError
from flashsim.core.page_numbers import PageNumbers
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Algorithm, Phase
from flashsim.storage.pool.simulation import Simulation
from flashsim.testing.strict_driver import relation_file
from tests.oracle.test_joins_everywhere import check
from tests.tiers import examples

POLICIES = [name for name in REPLACEMENT.names() if not REPLACEMENT.load(name).FUTURE]


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(20))
@given(st.lists(st.tuples(st.integers(0, 31), st.integers(0, 31)), max_size=90), st.integers(2, 14), st.sampled_from([1, 7, 1000]))
def test_reads_are_the_misses_of_a_simulation(policy: str, entries: list[tuple[int, int]], frames: int, batch: int) -> None:
    files = (relation_file("r", np.arange(32)), relation_file("s", np.arange(32)))
    rows, pairs = np.array(entries, np.int64).reshape(-1, 2), [np.empty((0, 2), np.int64)]
    cache = PageCache(*files, frames)

    def algorithm() -> Algorithm:
        yield Phase("fetch")
        index = GivenIndex(rows[:, 0], rows[:, 1], batch)
        yield from FETCHING.load("pooled").fetch(index, cache, FetchParameters(frames, FetchOptions(policy=policy)))

    run = trace_only(algorithm(), files, results=lambda r, s: pairs.append(np.column_stack([r, s])))
    alone = Simulation(replacement_policy(policy), min(frames, cache.pages))
    alone.refer(PageNumbers().number(np.column_stack(cache.pages_of(rows[:, 0], rows[:, 1])).reshape(-1)))
    assert run.total().reads == cache.fetches == alone.counts.misses
    np.testing.assert_array_equal(np.concatenate(pairs), rows)


def test_policies_join_what_duckdb_joins() -> None:
    """In virtual time, on a real file and as a trace; that others return the same rows is tested above."""
    policies = ("lru", "mru", "lirs", "arc", "w-tinylfu", "lru-k:k=3")
    ways = [("digest", {"fetch": "pooled", "policy": policy, "first": "bnl"}) for policy in policies]
    assert check("tpch:nation@0.01", "tpch:supplier@0.01", "n_nationkey", "s_nationkey", 8, 512, "sqlite", ways=ways) == 100


def test_unfit_policies_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Plain: ...\n", encoding="utf-8")
    for fetch, policy, kind, told in [
        ("planned", "lirs", InvalidParameterError, "policy: lirs, but planned fetching does not take it"),
        ("pooled", "opt", InvalidParameterError, "policy: opt, but it must know the future"),
        ("pooled", "lrs", UnknownNameError, "did you mean"),
        ("pooled", str(tmp_path / "mine.py"), FlashsimError, "does not define"),
    ]:
        with pytest.raises(kind, match=told):
            JOINS.load("digest").check(JoinParameters(20, options=DigestOptions(fetch=fetch, policy=policy)))
    check_options(FetchOptions(fetch="pooled"))
