"""DigestJoin with every first join and every fetch strategy, in all drivers, against DuckDB: TPC-H, made relations, and Chinook."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.fetching.base import FETCHING
from algorithms.joins.base import JOINS, JoinParameters, plan
from algorithms.joins.digest import DigestOptions
from algorithms.late_fetch.columns import with_digests
from flashsim.storage.keys import NULL_KEY
from flashsim.testing.strict_driver import relation_file, run
from tests.oracle.test_joins_duckdb import duckdb_pairs
from tests.oracle.test_joins_everywhere import check
from tests.tiers import examples

FIRSTS = [name for name in JOINS.names() if not JOINS.load(name).FETCHES]
STRATEGIES = FETCHING.names()
WAYS = list(product(FIRSTS, STRATEGIES))


def ways(number: int) -> list[tuple[str, dict[str, Any]]]:
    """As many as there are first joins or strategies, so that each is among them; every other one finds digests stored."""
    count = max(len(FIRSTS), len(STRATEGIES))
    chosen = [(FIRSTS[(i + number) % len(FIRSTS)], STRATEGIES[i % len(STRATEGIES)]) for i in range(count)]
    return [("digest", {"first": first, "fetch": fetch, "digests_stored": i % 2 == 1}) for i, (first, fetch) in enumerate(chosen)]


@pytest.mark.parametrize("first", FIRSTS)
def test_tpch(first: str) -> None:
    """A key and its references, with every strategy."""
    told = [("digest", {"first": first, "fetch": fetch}) for fetch in STRATEGIES]
    assert check("tpch:nation@0.01", "tpch:supplier@0.01", "n_nationkey", "s_nationkey", 8, 512, "sqlite", ways=told) == 100


@pytest.mark.parametrize("number, page_io", [(0, False), (1, True)])
def test_many_pairs(number: int, page_io: bool) -> None:
    """Every row of a relation joins some thirty of the other."""
    assert check("tpch:supplier@0.005", "tpch:customer@0.005", "s_nationkey", "c_nationkey", 24, 4096, "pax", page_io, ways(number)) > 1000


@pytest.mark.parametrize(
    ("number", "left", "right", "left_key", "right_key"),
    [
        (0, "Artist", "Album", "ArtistId", "ArtistId"),
        (1, "Track", "InvoiceLine", "TrackId", "TrackId"),
        (2, "Employee", "Employee", "EmployeeId", "ReportsTo"),
        (3, "Customer", "Employee", "LastName", "LastName"),
        (4, "Customer", "Invoice", "Country", "BillingCountry"),
    ],
)
def test_chinook(test_data: Path, number: int, left: str, right: str, left_key: str, right_key: str) -> None:
    database = test_data / "sqlite" / "Chinook_Sqlite.sqlite"
    check(f"{database}:{left}", f"{database}:{right}", left_key, right_key, 20, 4096, ["sqlite", "pax"][number % 2], ways=ways(number))


@st.composite
def keys(draw: st.DrawFn) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Few or many keys, skewed or not, some or all of them NULL; no rows at all."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows, domain = draw(st.integers(0, 150)), draw(st.sampled_from([1, 4, 60, 5000]))
    skew = draw(st.sampled_from([0, 1.2, 3.0]))
    codes = np.minimum(rng.zipf(skew, rows), domain) if skew else rng.integers(-domain, domain, rows)
    return np.where(rng.random(rows) < draw(st.sampled_from([0, 0.1, 1])), NULL_KEY, codes)


@pytest.mark.parametrize("first, fetch", WAYS)
@settings(max_examples=examples(4))
@given(keys(), keys(), st.integers(6, 40), st.booleans(), st.booleans(), st.booleans())
def test_made_relations(first: str, fetch: str, left: Any, right: Any, memory: int, page_io: bool, stored: bool, same: bool) -> None:
    """Requests are checked on the way: nothing is read that was not written, or more of it than memory holds."""
    files = (relation_file("a", left), relation_file("b", right))
    if same:
        right, files = left, (files[0], files[0])
    if stored:
        with_digests(files)
    parameters = JoinParameters(memory, page_io, options=DigestOptions(first=first, digests_stored=stored, fetch=fetch))
    outcome = run(plan("digest", *files, parameters), memory)
    np.testing.assert_array_equal(outcome.sorted_pairs(), duckdb_pairs(left, right))
