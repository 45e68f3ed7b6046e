"""Joins against DuckDB: the same pairs of rows on made tables."""

from __future__ import annotations

from functools import cache

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flashsim as fs
from algorithms.joins.base import JoinParameters, page_format, plan
from flashsim.storage.heap_file import heap_file
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.source import load_pair, open_source
from flashsim.testing.contracts.joins import options_of
from flashsim.testing.strict_driver import relation_file, run
from tests.contract.test_joins import WAYS
from tests.tiers import examples


def table(codes) -> pd.DataFrame:
    keys = pd.array(codes, dtype="Int64")
    keys[np.asarray(codes) == NULL_KEY] = pd.NA
    return pd.DataFrame({"key": keys, "row": np.arange(len(codes))})


@cache
def database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def duckdb_pairs(left, right):
    query = "SELECT a.row, b.row FROM a JOIN b ON a.key = b.key ORDER BY 1, 2"
    for name, codes in (("a", left), ("b", right)):
        database().register(name, table(codes))
    result = database().execute(query).fetchnumpy()
    return np.column_stack([np.asarray(column, np.int64) for column in result.values()]).reshape(-1, 2)


def check_all(left, right, memory):
    expected = duckdb_pairs(left, right)
    columns = () if len(expected) > 5000 else None  # joins that fetch columns need not do so for every one of many pairs
    for name, method in WAYS:
        for page_io in (False, True):
            files = [relation_file(side, codes, page_format=page_format(name)) for side, codes in (("a", left), ("b", right))]
            parameters = JoinParameters(memory, page_io, options=options_of(name, columns=columns, partition=method))
            outcome = run(plan(name, *files, parameters), memory)
            np.testing.assert_array_equal(outcome.sorted_pairs(), expected, err_msg=f"{name} {method}")


@settings(max_examples=examples(15))
@given(st.integers(0, 10**6), st.integers(0, 400), st.integers(0, 600), st.sampled_from([2, 50, 5000]), st.floats(1.1, 3))
def test_zipf_keys(seed, left_rows, right_rows, domain, skew):
    rng = np.random.default_rng(seed)
    left, right = (rng.zipf(skew, rows) % domain - domain // 3 for rows in (left_rows, right_rows))
    right = np.where(rng.random(right_rows) < 0.05, NULL_KEY, right)
    check_all(left, right, 40)


@pytest.mark.parametrize("memory", [80, 130, 700])
def test_foreign_keys(memory):
    """The shape of customer and orders: a primary key, and references that leave every third of them out."""
    rng = np.random.default_rng(memory)
    left = rng.permutation(np.arange(1, 2001))
    right = rng.choice(left[left % 3 != 0], 20_000)
    expected = duckdb_pairs(left, right)
    for name, method in WAYS:
        relations = {"customer": left, "orders": right}.items()
        files = [relation_file(relation, codes, page_size=1024, page_format=page_format(name)) for relation, codes in relations]
        np.testing.assert_array_equal(
            run(plan(name, *files, JoinParameters(memory, options=options_of(name, partition=method))), memory).sorted_pairs(),
            expected,
            err_msg=f"{name} {method}",
        )


@pytest.mark.parametrize("page_format", ["sqlite", "postgresql", "pax"])
def test_nan_equals_itself_and_null_nothing(page_format, tmp_path):
    """In ``fs.join``, in ``fs.smart`` and in DuckDB, whatever bits a NaN has; and keys that are read from pages are those in memory."""
    odd = np.array([0xFFF8_0000_0000_0001], np.uint64).view(np.float64)[0]
    r = pa.table({"k": pa.array([1.5, np.nan, -0.0, None, 2.0, odd]), "row": range(6)})
    s = pa.table({"k": pa.array([np.nan, 0.0, None, 1.5, np.nan], pa.float32()), "row": range(5)})
    for name, table in (("r", r), ("s", s)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    paths = [str(tmp_path / f"{name}.parquet") for name in "rs"]
    expected = sorted(duckdb.sql(f"SELECT r.row, s.row FROM '{paths[0]}' r JOIN '{paths[1]}' s ON r.k = s.k").fetchall())
    assert len(expected) == 6
    options = {"device": "ocz-core-60gb", "memory": "256KiB", "page_format": page_format}
    rows = fs.join(*paths, on="k", algorithm="grace-hash", **options).rows()
    assert sorted(zip(rows["row"], rows["row_s"], strict=True)) == expected
    query = "SELECT r.row AS a, s.row AS b FROM r JOIN s ON r.k = s.k"
    rows = fs.smart(query, table=dict(zip("rs", paths, strict=True)), device="samsung-smart-400gb", page_format=page_format).rows()
    assert sorted(zip(rows["a"], rows["b"], strict=True)) == expected
    for relation in load_pair(*map(open_source, paths), "k", "k"):
        file = heap_file(relation, 4096, page_format=page_format)
        assert np.array_equal(file.layout.decode(file.layout.encode(file.run(0, file.pages))).keys, relation.codes)
