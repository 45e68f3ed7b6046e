"""Parquet and CSV files: their rows, and one line for those that are missing, truncated, foreign, or of no flat columns."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from flashsim.core.errors import DamagedFileError, FlashsimError, MissingFileError, SchemaError, UnknownNameError
from flashsim.storage.source import load_pair, open_source
from flashsim.testing.tables import tables
from tests.tiers import examples

ROWS = pa.table({"k": [3, None, 1], "text": ["ä", "", None], "day": [datetime.date(2020, 2, 29)] * 3, "price": [Decimal("1.50")] * 3})


def test_parquet_rows(tmp_path: Path) -> None:
    path = tmp_path / "Some.PARQUET"
    pq.write_table(ROWS, path, row_group_size=2)
    source = open_source(str(path))
    assert source.name == "Some" and source.rows == 3 and source.names == ROWS.column_names
    assert source.take(np.array([2, 0, 0])).to_pylist() == ROWS.take([2, 0, 0]).to_pylist()


def test_csv_rows(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text('k,text,day\n3,"a, b",2020-02-29\n,"",2021-01-01\n-1,,\n')
    assert open_source(str(path)).take(np.arange(3)).to_pylist() == [
        {"k": 3, "text": "a, b", "day": datetime.date(2020, 2, 29)},
        {"k": None, "text": "", "day": datetime.date(2021, 1, 1)},
        {"k": -1, "text": None, "day": None},
    ]


@settings(max_examples=examples(30))
@given(tables())
def test_parquet_keeps_every_flat_type(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> None:
    flat = table.select([column.name for column in table.schema if not pa.types.is_union(column.type)])
    if not flat.num_columns:
        return
    path = tmp_path_factory.mktemp("parquet") / "t.parquet"
    pq.write_table(flat, path)
    source = open_source(str(path))
    assert repr(source.take(np.arange(source.rows)).to_pylist()) == repr(flat.to_pylist())


@pytest.mark.parametrize("suffix", ["parquet", "csv", "sqlite:t", "db:t"])
def test_missing_files(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no such file"):
        open_source(str(tmp_path / f"x.{suffix}"))
    (tmp_path / f"x.{suffix}".split(":")[0]).mkdir()
    with pytest.raises(MissingFileError, match="it is no file"):
        open_source(str(tmp_path / f"x.{suffix}"))


def refused(path: Path) -> bool:
    try:
        source = open_source(str(path))
        source.take(np.arange(source.rows))
        source.encode(np.arange(source.rows))
    except (DamagedFileError, SchemaError) as problem:
        return len(str(problem).splitlines()) == 1
    return False


def test_truncated_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(ROWS, path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 37):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedFileError, match=r"x\.parquet"):
            open_source(str(path))


@pytest.mark.parametrize("examples", [300, pytest.param(10_000, marks=pytest.mark.deep)])
def test_changed_bytes_of_parquet(examples: int, tmp_path: Path) -> None:
    """Rows or one line: never a traceback, and pages carry checksums, so that values are not silently changed."""
    path = tmp_path / "x.parquet"
    table = pa.table({"k": range(200), "text": [f"some text {row}" for row in range(200)], "real": [row / 7 for row in range(200)]})
    pq.write_table(table, path, write_page_checksum=True)
    whole = path.read_bytes()
    changes = random.Random("parquet")
    outcomes = []
    for _ in range(examples):
        damaged = bytearray(whole)
        for _ in range(changes.choice((1, 1, 4, 30))):
            damaged[changes.randrange(len(whole))] = changes.randrange(256)
        path.write_bytes(damaged)
        outcomes.append(refused(path))
    assert any(outcomes)


def test_foreign_files(tmp_path: Path) -> None:
    for content in (b"", b"PAR1", b"k,text\n1,2\n", bytes(1000), b"PAR1" + bytes(100) + b"PAR1"):
        (tmp_path / "x.parquet").write_bytes(content)
        with pytest.raises(DamagedFileError, match=r"x\.parquet: it cannot be read"):
            open_source(str(tmp_path / "x.parquet"))
    for text in (b"", b"k,text\n1\n", b"k\n\xff\xfe\n1\n"):
        (tmp_path / "x.csv").write_bytes(text)
        if text.startswith(b"k\n"):
            assert pa.types.is_large_binary(open_source(str(tmp_path / "x.csv")).take(np.arange(1)).schema.types[0])
            continue
        with pytest.raises(DamagedFileError, match=r"x\.csv: it cannot be read"):
            open_source(str(tmp_path / "x.csv"))


def test_columns_that_are_not_flat_are_refused_by_name(tmp_path: Path) -> None:
    for values in ([[1]], [{"a": 1}], [[("k", 1)]]):
        kind = pa.map_(pa.string(), pa.int64()) if isinstance(values[0], list) and isinstance(values[0][0], tuple) else None
        pq.write_table(pa.table({"k": [1], "deep": pa.array(values, kind)}), tmp_path / "x.parquet")
        with pytest.raises(SchemaError, match="column deep"):
            open_source(str(tmp_path / "x.parquet"))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("k,k\n1,2\n")
    with pytest.raises(SchemaError, match="two columns are named k"):
        open_source(str(tmp_path / "x.csv"))


@pytest.mark.parametrize("text", ["tpcd:customer@1", "x.txt", "", "parquet", ".csv:", "sqlite:t", "postgres:file"])
def test_sources_of_no_known_kind_are_refused(text: str) -> None:
    with pytest.raises(UnknownNameError, match="source: "):
        open_source(text)


def test_pairs_share_codes_and_keep_their_names(tmp_path: Path) -> None:
    for name, keys in (("r", [2, 1, None]), ("s", [1.0, 2.5, float("nan")])):
        pq.write_table(pa.table({"k": keys}), tmp_path / f"{name}.parquet")
    r, s = (open_source(str(tmp_path / f"{name}.parquet")) for name in "rs")
    one, other = load_pair(r, s, "k", "k")
    assert (one.name, other.name, one.key) == ("r", "s", "k")
    assert one.codes[1] == other.codes[0] and one.codes[0] != other.codes[1] and one.codes[2] == other.codes[2]
    assert [relation.name for relation in load_pair(r, r, "k", "k")] == ["r", "r 2"]
    for columns in (("x", "k"), ("k", "x")):
        with pytest.raises(UnknownNameError, match="column: 'x' is unknown"):
            load_pair(r, s, *columns)
    pq.write_table(pa.table({"k": ["1"]}), tmp_path / "t.parquet")
    with pytest.raises(SchemaError, match=r"r\.k is int64, but t\.k is large_string"):
        load_pair(r, open_source(str(tmp_path / "t.parquet")), "k", "k")


def test_unreadable_text_is_one_of_flashsims_errors() -> None:
    with pytest.raises(FlashsimError):
        open_source("\0.parquet")
