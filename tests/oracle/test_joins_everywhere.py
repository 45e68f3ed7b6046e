"""Joins in all drivers against DuckDB, row for row with all columns: TPC-H, made tables with every kind of key, and Chinook."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.joins.base import JOINS, BucketOptions, JoinParameters, plan
from algorithms.late_fetch.columns import with_digests
from flashsim.core.request import Integers
from flashsim.storage.heap_file import heap_file
from flashsim.storage.page import PAGE_FORMATS
from flashsim.storage.source.base import load_pair, open_source
from flashsim.testing.contracts.joins import options_of
from flashsim.testing.contracts.storage import page_sizes
from tests.contract.drivers import run_everywhere, run_strands_everywhere
from tests.contract.test_joins import WAYS
from tests.tiers import examples


def _texts(table: pa.Table) -> list[str]:
    """Rows as text, a dictionary each."""
    return [repr(row) for row in table.to_pylist()]


def _rows(left: list[str], right: list[str], pairs: Integers) -> list[str]:
    """Joined rows as sorted text."""
    return sorted(left[r] + right[s] for r, s in pairs.tolist())


def _duckdb_rows(left: pa.Table, right: pa.Table, left_key: str, right_key: str) -> list[str]:
    left = left.append_column("__left", pa.array(range(len(left)), pa.int64()))
    right = right.append_column("__right", pa.array(range(len(right)), pa.int64()))
    with duckdb.connect() as connection:
        connection.register("a", left)
        connection.register("b", right)
        query = f'SELECT __left, __right FROM a JOIN b ON a."{left_key}" = b."{right_key}"'
        pairs = connection.execute(query).fetchnumpy()
    texts = (_texts(side.drop([row])) for side, row in ((left, "__left"), (right, "__right")))
    return _rows(*texts, np.column_stack([pairs["__left"], pairs["__right"]]))


def check(
    left: str,
    right: str,
    left_key: str,
    right_key: str,
    memory: int,
    page_size: int,
    page_format: str,
    page_io: bool = False,
    ways: Iterable[tuple[str, dict[str, Any]]] = tuple((join, {"partition": method}) for join, method in WAYS),
) -> int:
    """Join two sources by every algorithm, or in these ways, in every driver, on pages of a format, or of the one that a join needs.

    Returns the number of result rows.
    """
    sources = open_source(left), open_source(right)
    relations = load_pair(*sources, left_key, right_key)
    tables = tuple(source.take(np.arange(source.rows)) for source in sources)
    expected, texts = _duckdb_rows(*tables, left_key, right_key), [_texts(table) for table in tables]
    with tempfile.TemporaryDirectory() as folder:
        for join, told in ways:
            parameters = JoinParameters(memory, page_io, options=options_of(join, **told))
            needed = JOINS.load(join).PAGE_FORMAT or page_format
            r, s = (heap_file(relation, page_size, page_format=needed) for relation in relations)
            placed = with_digests((r, s)) if told.get("digests_stored") else (r, s)
            pairs, runs, requests = run_everywhere(
                lambda join=join, r=r, s=s, told=parameters: plan(join, r, s, told), placed, Path(folder)
            )
            assert _rows(*texts, pairs) == expected, (join, told)
            total = runs[0].total()
            assert total.pages * page_size == requests.bytes or (needed == "pax" and total.pages * page_size > requests.bytes)
            assert total.requests <= len(requests.rows)  # a file in several places takes a device request for each
    return len(expected)


@pytest.mark.parametrize(
    ("left", "right", "left_key", "right_key", "page_format"),
    [
        ("tpch:customer@0.005", "tpch:orders@0.005", "c_custkey", "o_custkey", "sqlite"),
        ("tpch:supplier@0.01", "tpch:customer@0.01", "s_nationkey", "c_nationkey", "pax"),
        ("tpch:region@0.01", "tpch:nation@0.01", "r_regionkey", "n_regionkey", "postgresql"),
        ("tpch:part@0.001", "tpch:part@0.001", "p_container", "p_container", "pax"),
    ],
)
def test_tpch(left: str, right: str, left_key: str, right_key: str, page_format: str) -> None:
    assert check(left, right, left_key, right_key, memory=30, page_size=4096, page_format=page_format) > 0


@pytest.mark.parametrize("join", ["grace-hash", "hybrid-hash"])
@pytest.mark.parametrize(("strands", "memory"), [(3, 60), (8, 120)])
def test_strands(join: str, strands: int, memory: int, tmp_path: Path) -> None:
    sources = open_source("tpch:customer@0.01"), open_source("tpch:orders@0.01")
    files = [heap_file(relation, 4096) for relation in load_pair(*sources, "c_custkey", "o_custkey")]
    tables = tuple(source.take(np.arange(source.rows)) for source in sources)
    parameters = JoinParameters(memory, options=BucketOptions("para-hash", strands=strands))
    found, _, _ = run_strands_everywhere(lambda: plan(join, files[0], files[1], parameters), files, tmp_path)
    expected, texts = _duckdb_rows(*tables, "c_custkey", "o_custkey"), [_texts(table) for table in tables]
    for pairs in found:
        assert _rows(*texts, pairs) == expected


KEYS = {
    "small integers": (st.integers(-3, 3), pa.int32(), pa.int64()),
    "large integers": (st.sampled_from([-(2**62), -1, 0, 2**62, 2**62 + 1]), pa.int64(), pa.int64()),
    "text": (st.sampled_from(["", "a", "A", "ab", "ä", "b" * 60]), pa.string(), pa.string()),
    "bytes": (st.binary(max_size=2), pa.binary(), pa.binary()),
    "numbers": (st.sampled_from([-0.5, 0.0, 1.0, 2.5, 1e300]), pa.float64(), pa.float64()),
}


@settings(max_examples=examples(12))
@given(st.data(), st.sampled_from(sorted(KEYS)), st.sampled_from(PAGE_FORMATS.names()), st.booleans())
def test_made_tables(data: st.DataObject, kind: str, page_format: str, page_io: bool) -> None:
    values, *types = KEYS[kind]
    with tempfile.TemporaryDirectory() as folder:
        for name, key_type in zip(("left", "right"), types, strict=True):
            keys = data.draw(st.lists(st.one_of(st.none(), values), max_size=60))
            keys *= data.draw(st.sampled_from([1, 4]))
            table = pa.table({"number": pa.array(range(len(keys)), pa.int64()), "key": pa.array(keys, key_type)})
            pq.write_table(table, Path(folder) / f"{name}.parquet")
        check(
            f"{folder}/left.parquet",
            f"{folder}/right.parquet",
            "key",
            "key",
            memory=data.draw(st.integers(24, 60)),
            page_size=page_sizes(page_format)[0],
            page_format=page_format,
            page_io=page_io,
        )


@pytest.mark.parametrize(
    ("left", "right", "left_key", "right_key", "page_format"),
    [
        ("Artist", "Album", "ArtistId", "ArtistId", "sqlite"),
        ("Track", "InvoiceLine", "TrackId", "TrackId", "pax"),
        ("Genre", "Track", "GenreId", "GenreId", "sqlite"),
        ("PlaylistTrack", "InvoiceLine", "TrackId", "TrackId", "postgresql"),
        ("Employee", "Employee", "EmployeeId", "ReportsTo", "pax"),
        ("Customer", "Employee", "LastName", "LastName", "pax"),
        ("Customer", "Invoice", "Country", "BillingCountry", "postgresql"),
    ],
)
def test_chinook(test_data: Path, left: str, right: str, left_key: str, right_key: str, page_format: str) -> None:
    database = test_data / "sqlite" / "Chinook_Sqlite.sqlite"
    check(f"{database}:{left}", f"{database}:{right}", left_key, right_key, memory=40, page_size=4096, page_format=page_format)
