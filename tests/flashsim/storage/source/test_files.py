"""Parquet and CSV files: their rows, and one line for those that are missing, truncated, foreign, or of no flat columns."""

from __future__ import annotations

import datetime
import gzip
import lzma
import random
import re
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from flashsim.core.errors import (
    CapacityError,
    DamagedFileError,
    FlashsimError,
    InvalidParameterError,
    MissingFileError,
    SchemaError,
    UnknownNameError,
)
from flashsim.storage import packed_files
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.source import load_pair, open_source
from flashsim.storage.source._fields import type_named
from flashsim.storage.source.base import TextRecords
from flashsim.storage.texts import readable
from flashsim.testing.contracts.format import PACKERS
from flashsim.testing.strategies import tables
from tests.cases import with_each
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
        {"k": 3, "text": "a, b", "day": "2020-02-29"},
        {"k": None, "text": "", "day": "2021-01-01"},
        {"k": -1, "text": None, "day": None},
    ]


@with_each(
    ("fields", "values", "kind"),
    [
        (["1", "-0", ""], [1, 0, None], "int64"),
        (["9007199254740993", "18446744073709551615"], [2**53 + 1, 2**64 - 1], "uint64"),
        (["-1", "18446744073709551615"], [-1, 2**64 - 1], "decimal128(20, 0)"),
        (["1" * 40, "5"], [int("1" * 40), 5], "decimal256(40, 0)"),
        (["1" * 80, "5"], ["1" * 80, "5"], "large_string"),
        (["0.1", "-.5", "5.", "0.30000000000000004", "1.10"], [0.1, -0.5, 5, 0.1 + 0.2, 1.1], "double"),
        (["1.5", "9007199254740992"], [1.5, 2.0**53], "double"),
        (["1.5", "9007199254740993"], ["1.5", "9007199254740993"], "large_string"),
        (["0.1", "0.10000000000000001"], ["0.1", "0.10000000000000001"], "large_string"),
        *(
            ([text, "1", ""], [text, "1", None], "large_string")
            for text in ("1E3", "1.5e0", "0x10", "007", "+7", " 7", "-", ".", "nan", "\u0661")
        ),
        (["", ""], [None, None], "null"),
    ],
)
def test_a_column_of_text_has_the_type_of_all_its_fields(fields: list[str], values: list[Any], kind: str, tmp_path: Path) -> None:
    """The odd field stands last of ten thousand, too."""
    (tmp_path / "x.csv").write_text("k,other\n" + "".join(f"{field},x\n" for field in [*fields[1:] * 5000, fields[0]]), encoding="utf-8")
    source = open_source(str(tmp_path / "x.csv"))
    assert str(source.key("k").type) == kind and source.key("k").to_pylist()[-2:] == [values[-1], values[0]]


def test_columns_may_be_parted_by_other_signs_than_commas(tmp_path: Path) -> None:
    for part, name in ((";", "x.csv"), ("\t", "x.tsv"), ("|", "x.csv"), (",", "x.tsv")):
        (tmp_path / name).write_text(f"k{part}text\n1{part}{'a;b' if part == ',' else 'a,b'}\n")
        assert open_source(str(tmp_path / name)).take(np.arange(1)).to_pylist() == [{"k": 1, "text": "a;b" if part == "," else "a,b"}]
    (tmp_path / "x.csv").write_text("price,eur;name\n1,5;a;b\n")
    assert open_source(str(tmp_path / "x.csv")).names == ["price", "eur;name"]  # by semicolons, lines differ in length
    (tmp_path / "x.csv").write_text("price,eur;name\n1,5;a\n")
    with pytest.raises(DamagedFileError, match="commas as well as semicolons part it"):
        open_source(str(tmp_path / "x.csv"))


def test_an_empty_field_is_null_wherever_it_stands(tmp_path: Path) -> None:
    """Last in a file without an end of line, and alone in its line where there is one column."""
    (tmp_path / "x.csv").write_text("k,text\n1,a\n2,")
    assert open_source(str(tmp_path / "x.csv")).key("text").to_pylist() == ["a", None]
    (tmp_path / "x.csv").write_text('k\n1\n\n""\n2\n')
    assert open_source(str(tmp_path / "x.csv")).key("k").to_pylist() == [1, None, None, 2]
    (tmp_path / "x.csv").write_text("k,text")
    assert open_source(str(tmp_path / "x.csv")).rows == 0


def test_lines_in_quotes_and_large_files(tmp_path: Path) -> None:
    """A text with line ends lies across the blocks that are read at once."""
    (tmp_path / "x.csv").write_text("k,text\n" + "".join(f'{row},"{"line" * 30}\n{row}"\n' for row in range(20_000)))
    source = open_source(str(tmp_path / "x.csv"))
    assert source.rows == 20_000 and source.key("text")[-1].as_py() == "line" * 30 + "\n19999"


@with_each("ending", PACKERS)
def test_a_packed_csv_is_read_whatever_its_name(ending: str, tmp_path: Path) -> None:
    """Its name may end in what packed it, or say nothing of that; without an end of the last line, too."""
    for name, text in ((f"some.csv.{ending}", 'k,"a b"\n3,x\n9007199254740993,\n'), ("some.TSV", "k\ta b\n3\tx\n9007199254740993\t")):
        (tmp_path / name).write_bytes(PACKERS[ending](text.encode()))
        source = open_source(str(tmp_path / name))
        assert source.name == "some" and isinstance(source, TextRecords) and source.spelled("k").to_pylist() == ["3", "9007199254740993"]
        assert source.take(np.arange(2)).to_pylist() == [{"k": 3, "a b": "x"}, {"k": 2**53 + 1, "a b": None}]
    damaged = tmp_path / f"damaged.csv.{ending}"
    damaged.write_bytes(PACKERS[ending](b"k\n1\n2\n")[:-5])
    with pytest.raises(DamagedFileError, match=re.escape(f"{damaged} cannot be unpacked beyond byte")):
        open_source(str(damaged))


def test_what_packed_a_file_is_named_where_it_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"a.csv.zip": b"PK\x03\x04", "a.csv": b"Rar!", "a.parquet.gz": gzip.compress(b"PAR1"), "a.db.xz:t": lzma.compress(b"")}
    for (name, data), program in zip(content.items(), ("zip", "rar", "gzip", "xz"), strict=True):
        (tmp_path / name.partition(":")[0]).write_bytes(data)
        with pytest.raises(DamagedFileError, match=f"{program} packed it; unpack it first"):
            open_source(str(tmp_path / name))
    (tmp_path / "large.csv").write_bytes(gzip.compress(b"k\n" + b"1\n" * 5000))
    monkeypatch.setattr(packed_files, "free_memory", lambda: 9999)
    with pytest.raises(CapacityError, match="unpacked it takes more than the .* of memory that are free"):
        open_source(str(tmp_path / "large.csv"))


def test_what_is_not_utf_8_is_named_by_line_and_column(tmp_path: Path) -> None:
    texts = [(b"id,b\nM\xfcller,p\n", 2, 1), (b"id,b\xfc\n1,2\n", 1, 2), (b'id,b\r\n1,2\r\n"a,b",x\xff', 3, 2), (b"\xff\xfei\0d\0", 1, 1)]
    for data, line, column in texts:
        (tmp_path / "x.csv").write_bytes(data)
        with pytest.raises(DamagedFileError, match=rf"x\.csv: not UTF-8, line {line}, column {column}$"):
            open_source(str(tmp_path / "x.csv"))


@with_each(
    ("text", "reason"),
    [
        ('id,v\n1,"a\n2,b\n', "line 2, column 2: a quote opens the field, but none closes it"),
        ('id,v\n1,"a\n2,"b\n', "line 2, column 2: a quote opens the field, but none closes it"),
        ('id;v\n1;"a;b"\n"2"";3\n', "line 3, column 1: a quote opens the field, but none closes it"),
        ("id,v\n1,a\n2\n3,c\n", r"row 3 \(the names are row 1\): fields 1, but columns 2"),
        ("", "it is empty"),
    ],
)
def test_text_that_is_no_table_is_named_by_line_and_column(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(DamagedFileError, match=rf"x\.csv: {reason}$"):
        open_source(str(tmp_path / "x.csv"))


def test_quotes_within_fields_are_letters(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('id,v\n1,"a,""b"\n2,5" pipe\n3,""""\n')
    assert [each.as_py() for each in open_source(str(tmp_path / "x.csv")).key("v")] == ['a,"b', '5" pipe', '"']


@pytest.mark.parametrize(("name", "pairs"), [("uint64-ids", [(0, 1)]), ("exponent-ids", []), ("semicolon", [(1, 0)])])
def test_cases_of_public_reports(name: str, pairs: list[tuple[int, int]], test_data: Path) -> None:
    r, s = load_pair(*(open_source(str(test_data / "cases" / f"{name}-{side}.csv")) for side in "rs"), "id", "id")
    assert [(left, right) for left, code in enumerate(r.codes) for right, other in enumerate(s.codes) if code == other] == pairs


def pair_of_keys(tmp_path: Path, r: str, s: list[Any] | str) -> list[tuple[int, int]]:
    """Pairs of rows of a text file and of another, or of a Parquet file."""
    (tmp_path / "r.csv").write_text(f"k,other\n{r}")
    if isinstance(s, str):
        (tmp_path / "s.csv").write_text(f"k,other\n{s}")
    else:
        pq.write_table(pa.table({"k": s}), tmp_path / "s.parquet")
    second = tmp_path / ("s.csv" if isinstance(s, str) else "s.parquet")
    left, right = load_pair(open_source(str(tmp_path / "r.csv")), open_source(str(second)), "k", "k")
    return [(a, b) for a, code in enumerate(left.codes) for b, other in enumerate(right.codes) if code == other != NULL_KEY]


def test_text_is_compared_as_spelled_and_integers_of_any_width_exactly(tmp_path: Path) -> None:
    assert pair_of_keys(tmp_path, "1.50,\n2.5,\n,\n", "1.50,\n1.5,\n2.5,\nx,\n,\n") == [(0, 0), (1, 2)]
    assert pair_of_keys(tmp_path, "7,\n8,\n", "007,\n8,\n") == [(1, 1)]
    assert pair_of_keys(tmp_path, "18446744073709551616,\n9007199254740993,\n", [9007199254740993, 5]) == [(1, 0)]
    assert pair_of_keys(tmp_path, f"{'1' * 80},\n9007199254740993,\n", [9007199254740992, 9007199254740993]) == [(1, 1)]
    assert pair_of_keys(tmp_path, "18446744073709551616,\n18446744073709551617,\n1,\n", [2.0**64, 1.0, 1.5]) == [(0, 0), (2, 1)]
    assert pair_of_keys(tmp_path, "a,\nb,\n", ["b", None]) == [(1, 0)]
    for keys, kind in (([7], "int64"), ([7.5], "double"), ([datetime.date(2020, 1, 1)], "date"), ([Decimal("1.50")], r"decimal\(3,2\)")):
        with pytest.raises(SchemaError, match=rf"cannot be compared; r is text: --types k={kind} names its type"):
            pair_of_keys(tmp_path, "007,\n", keys)


def test_text_beside_a_column_of_several_types_is_refused_unless_its_type_is_named(tmp_path: Path) -> None:
    """SQLite's 5 is not the text 5, and would be left out without a word."""
    (tmp_path / "r.csv").write_text("k\n5\n007\n")
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        database.execute("CREATE TABLE t (k)")
        database.executemany("INSERT INTO t VALUES (?)", [(5,), ("007",)])
        database.commit()
    text, other = open_source(str(tmp_path / "r.csv")), open_source(f"{tmp_path / 's.db'}:t")
    assert isinstance(text, TextRecords)
    with pytest.raises(SchemaError, match="r.k is text, but the other column has values of several types: --types k=text compares texts"):
        load_pair(text, other, "k", "k")
    r, s = load_pair(text.with_type("k", type_named("text", "types")), other, "k", "k")
    assert r.codes[1] == s.codes[1] and r.codes[0] not in s.codes


def test_types_that_a_user_names(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('k,day,price\n007,2020-02-29,12.50\n,"",\n')
    source = open_source(str(tmp_path / "x.csv"))
    assert isinstance(source, TextRecords)
    for column, name, value in (
        ("k", "int8", 7), ("k", "text", "007"), ("day", "date", datetime.date(2020, 2, 29)), ("price", "decimal(5,2)", Decimal("12.50")),
        ("price", "text", "12.50"), ("day", "timestamp", datetime.datetime(2020, 2, 29)), ("k", "double", 7.0),
    ):  # fmt: skip
        values = source.with_type(column, type_named(name, "types")).key(column).to_pylist()
        assert values == [value, None] or (column, name, values) == ("day", "text", ["2020-02-29", ""])
    for column, name in (("day", "int64"), ("price", "int64"), ("price", "decimal(3,2)"), ("k", "bool"), ("k", "date")):
        with pytest.raises(SchemaError, match=rf"x: column {column}: '.*' is not a value of type {re.escape(name)}"):
            source.with_type(column, type_named(name, "types"))
    for name in ("duration[s]", "null"):
        with pytest.raises(SchemaError, match="x: column price: "):
            source.with_type("price", type_named(name, "types"))
    with pytest.raises(InvalidParameterError, match="types: 'int128'"):
        type_named("int128", "types")
    (tmp_path / "days.csv").write_text("day,time\n5874897-12-31,23:59:59\n0044-03-15 (BC),00:00:00\n")
    days = open_source(str(tmp_path / "days.csv"))
    assert isinstance(days, TextRecords)
    shown = readable(days.with_type("day", pa.date32()).with_type("time", pa.time64("us")).table).to_pydict()
    assert shown == {"day": ["5874897-12-31", "0044-03-15 (BC)"], "time": [datetime.time(23, 59, 59), datetime.time(0)]}
    (tmp_path / "x.csv").write_text("k,day,price\n")
    with pytest.raises(DamagedFileError, match="x: it changed while it was read"):
        source.with_type("k", pa.int64())


def test_a_flipped_bit_in_a_page_of_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(
        pa.table({"k": [10**15 + row for row in range(100)]}), path, write_page_checksum=True, compression="none", use_dictionary=False
    )
    whole = bytearray(path.read_bytes())
    whole[whole.index((10**15 + 50).to_bytes(8, "little"))] ^= 1
    path.write_bytes(whole)
    with pytest.raises(DamagedFileError, match=r"x\.parquet: it cannot be read: .*CRC"):
        open_source(str(path))


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


@with_each("suffix", ["parquet", "csv", "sqlite:t", "db:t"])
def test_missing_files(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no such file"):
        open_source(str(tmp_path / f"x.{suffix}"))
    (tmp_path / f"x.{suffix}".split(":")[0]).mkdir()
    with pytest.raises(MissingFileError, match="it is not a file"):
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


@with_each("text", ["tpcd:customer@1", "x.txt", "", "parquet", ".csv:", "sqlite:t", "postgres:file"])
def test_sources_of_no_known_kind_are_refused(text: str) -> None:
    with pytest.raises(UnknownNameError, match="source: "):
        open_source(text)


def test_pairs_share_codes_and_keep_their_names(tmp_path: Path) -> None:
    for name, keys in (("r", [2, 1, None]), ("s", [1.0, 2.5, None])):
        pq.write_table(pa.table({"k": keys}), tmp_path / f"{name}.parquet")
    r, s = (open_source(str(tmp_path / f"{name}.parquet")) for name in "rs")
    one, other = load_pair(r, s, "k", "k")
    assert (one.name, other.name, one.key) == ("r", "s", "k")
    assert one.codes[1] == other.codes[0] and one.codes[0] != other.codes[1] and one.codes[2] == other.codes[2]
    assert [relation.name for relation in load_pair(r, r, "k", "k")] == ["r", "r 2"]
    for columns in (("x", "k"), ("k", "x")):
        with pytest.raises(UnknownNameError, match="column of [rs]: 'x' is unknown"):
            load_pair(r, s, *columns)
    pq.write_table(pa.table({"k": ["1"]}), tmp_path / "t.parquet")
    with pytest.raises(SchemaError, match=r"r\.k is int64, but t\.k is large_string"):
        load_pair(r, open_source(str(tmp_path / "t.parquet")), "k", "k")


def test_unreadable_text_is_one_of_flashsims_errors() -> None:
    with pytest.raises(FlashsimError):
        open_source("\0.parquet")
