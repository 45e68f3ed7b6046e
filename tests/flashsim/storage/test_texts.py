"""The extremes of every type go through pages, queries, joins, frames, prints and files, and come out as they are."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import flashsim as fs
from flashsim.apps.smart import session
from flashsim.core.errors import SchemaError
from flashsim.experiments.presentation.tables import as_text
from flashsim.storage.texts import from_texts, parts_of, readable, texts_of
from tests.cases import with_each
from tests.commands import Run

SMART = "samsung-smart-400gb"


def of_numbers(kind: pa.DataType, *numbers: int) -> pa.Array:
    """Values of a type by the numbers that it is stored as."""
    return pa.array([*numbers, None], pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


def integers(kind: pa.DataType) -> pa.Array:
    least, most = np.iinfo(kind.to_pandas_dtype()).min, np.iinfo(kind.to_pandas_dtype()).max
    return pa.array([int(least), int(most), 0, None], kind)


INT64 = np.iinfo(np.int64)
#: 0001-01-01 and 9999-12-31, the days before and after them, PostgreSQL's last day, and the ends of 32 bits.
DAYS = (-719_162, 2_932_896, -719_163, 2_932_897, int(np.datetime64("5874897-12-31").astype(np.int64)), -(2**31), 2**31 - 1, 0)
EXTREMES: dict[str, pa.Array] = {
    **{f"{sign}int{bits}": integers(pa.type_for_alias(f"{sign}int{bits}")) for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float": pa.array([np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal, -0.0, np.inf, -np.inf, None], pa.float32()),
    "double": pa.array([np.finfo(np.float64).max, np.finfo(np.float64).smallest_subnormal, 2.0**53, np.inf, -np.inf, None]),
    "decimal128(38, 0)": pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), None], pa.decimal128(38, 0)),
    "decimal128(38, 38)": pa.array([Decimal("0." + "9" * 38), Decimal("1e-38"), None], pa.decimal128(38, 38)),
    "decimal256(76, 0)": pa.array([Decimal("9" * 76), Decimal("-" + "9" * 76), None], pa.decimal256(76, 0)),
    "date32": of_numbers(pa.date32(), *DAYS),
    "date32, of the calendar": of_numbers(pa.date32(), *DAYS[:2]),
    "date64": of_numbers(pa.date64(), *(86_400_000 * day for day in DAYS)),
    **{f"timestamp[{unit}]": of_numbers(pa.timestamp(unit), INT64.min, INT64.max, 0, -(10**9)) for unit in ("s", "ms", "us", "ns")},
    "timestamp[us], of the calendar": of_numbers(pa.timestamp("us"), 86_400_000_000 * DAYS[0], 86_400_000_000 * (DAYS[1] + 1) - 1),
    "timestamp[us, UTC]": of_numbers(pa.timestamp("us", "UTC"), INT64.min, INT64.max, 86_400_000_000 * (DAYS[1] + 1) - 1),
    "time32[s]": of_numbers(pa.time32("s"), 0, 86_399),
    "time64[us]": of_numbers(pa.time64("us"), 0, 86_400 * 10**6 - 1),
    "time64[ns]": of_numbers(pa.time64("ns"), 0, 86_400 * 10**9 - 1),
    "string": pa.array(["", "\U0010ffff", "NULL", "(BC)", None], pa.large_string()),
    "binary": pa.array([b"", bytes(range(256)), None], pa.large_binary()),
    "bool": pa.array([True, False, None]),
    "null": pa.nulls(3),
}  # fmt: skip


@cache
def spelled_by_duckdb(name: str) -> list[str | None]:
    """DuckDB's text of each value, ``infinity`` where it takes one for that; NumPy's of what is beyond DuckDB's microseconds."""
    if name in ("timestamp[s]", "timestamp[ms]"):
        texts = np.datetime_as_string(np.array(EXTREMES[name].cast(pa.int64()).fill_null(0)).view(f"M8[{EXTREMES[name].type.unit}]"))
        return ["infinity" if text == "NaT" else text.replace("T", " ") for text in texts[:-1].tolist()] + [None]
    with duckdb.connect() as connection:
        connection.register("extremes", pa.table({"v": EXTREMES[name]}))
        return [text for (text,) in connection.execute("SELECT v::VARCHAR FROM extremes").fetchall()]


def same_texts(found: list[Any], name: str) -> bool:
    """Whether texts are DuckDB's, apart from zeros behind a point, the zone, and DuckDB's infinities."""

    def plain(text: str) -> str:
        text = re.sub(r"(Z|[+]00(:00)?)$", "", text)
        return (text.rstrip("0").rstrip(".") if "." in text else text).removesuffix(" 00:00:00")

    texts = [None if each is None or each != each else str(each) for each in found]
    return all(
        each == other if each is None or other is None else "infinity" in other or plain(each) == plain(other)
        for each, other in zip(texts, spelled_by_duckdb(name), strict=True)
    )


def table_of(*without: str) -> pa.Table:
    """A column a type, of as many rows, behind the numbers of these."""
    rows = max(map(len, EXTREMES.values()))
    columns = {
        name: pa.concat_arrays([each, pa.nulls(rows - len(each), each.type)]) for name, each in EXTREMES.items() if name not in without
    }
    return pa.table({"id": range(rows), **columns})


def check(table: pa.Table, rows: Any, *without: str) -> None:
    """A table has all values as they are, and a frame of it those that pandas holds, and texts of the others."""
    for name in EXTREMES.keys() - without:
        values = EXTREMES[name]
        assert table.column(name).combine_chunks()[: len(values)].cast(values.type).equals(values), name
        column = list(rows[name])[: len(values)] if name in rows else values.to_pylist()
        if name.startswith(("date", "time")):
            assert same_texts(column, name), f"{name}: {column}"
        elif "int" in name:
            assert column == values.to_pylist(), name  # beside NULL, too


@pytest.mark.parametrize("page_format", ["pax", "sqlite"])
def test_queries_give_them_as_they_are(page_format: str) -> None:
    outcome = fs.smart("SELECT * FROM t ORDER BY id", table={"t": table_of()}, device=SMART, page_format=page_format)
    assert outcome.result.frame().schema.types[1:] == [each.type for each in EXTREMES.values()]
    check(outcome.result.frame(), outcome.rows())
    printed = as_text(next(part for part in reversed(list(outcome.printout())) if isinstance(part, pd.DataFrame)))
    assert "5874897-12-31" in printed and "290309-12-21 (BC)" in printed and "out of range" not in printed


def test_joins_give_them_as_they_are() -> None:
    """Parquet, in which rows are written, has no seconds: as milliseconds some are too many."""
    other = pa.table({"id": range(9), "w": range(9)})
    options = {"on": "id", "algorithm": "grace-hash", "device": "ocz-core-60gb", "memory": "256KiB"}
    joined = fs.join(table_of("timestamp[s]"), other, **options)
    order = np.argsort(joined.table["id"])
    check(joined.table.take(order), joined.rows().iloc[order], "timestamp[s]")
    with pytest.raises(SchemaError, match=r"column timestamp\[s\]: a value of timestamp\[s\] that timestamp\[ms\], Parquet's"):
        fs.join(table_of(), other, **options).rows()
    odd = {
        "id": pa.array([0, 1]),
        "spans": pa.array([INT64.min, 5]).cast(pa.duration("s")),
        "hundreds": pa.array([Decimal(1200), None], pa.decimal128(5, -2)),
    }
    rows = fs.join(pa.table(odd), other, **options).rows().sort_values("id")
    assert rows["spans"].tolist() == [f"{INT64.min} s", "5 s"] and rows["hundreds"].tolist() == [Decimal(1200), None]
    odd["day"] = pa.array([-(2**62) // 86_400_000 * 86_400_000, 0]).cast(pa.date64())
    with pytest.raises(SchemaError, match=r"column day: a value of date64\[ms\] that date32\[day\], Parquet's, does not hold"):
        fs.join(pa.table(odd), other, **options).rows()


def test_files_hold_them(here: Path, flashsim: Run) -> None:
    pq.write_table(table_of("timestamp[s]"), here / "t.parquet")
    for out in ("o.csv", "o.parquet"):
        done = flashsim(f'smart run "SELECT * FROM t ORDER BY id" --table t=t.parquet --device {SMART} --out {out}')
        assert done.exit_code == 0 and "out of range" not in done.stdout, done.output
    names = [name for name in EXTREMES if name.startswith(("date", "time"))]
    options = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""])
    texts = pa.csv.read_csv(here / "o.csv", convert_options=options, parse_options=pa.csv.ParseOptions(newlines_in_values=True))
    check(
        pq.read_table(here / "o.parquet"),
        {name: texts.column(name).to_pylist() for name in names if name in texts.column_names},
        "timestamp[s]",
    )


@with_each("name", [name for name in EXTREMES if name.startswith(("date", "timestamp"))])
def test_texts_of_days_are_read_back_and_have_duckdbs_parts(name: str) -> None:
    values = EXTREMES[name]
    assert same_texts(texts_of(values).to_pylist(), name)
    if not getattr(values.type, "tz", None):
        assert from_texts(texts_of(values), values.type).equals(values)
    for part, found in zip(("year", "month", "day"), parts_of(values), strict=True):
        held = [row for row, text in enumerate(spelled_by_duckdb(name)) if "infinity" not in (text or "")]
        zone = " AT TIME ZONE 'UTC'" if "UTC" in name else ""
        with duckdb.connect() as connection:
            connection.register("those", pa.table({"v": values.take(pa.array(held, pa.int64()))}))
            if name not in ("timestamp[s]", "timestamp[ms]"):
                parts = connection.execute(f"SELECT {part}(v{zone}) FROM those").fetchall()
                assert parts == [(found[row].as_py(),) for row in held]


@with_each("text", ["2020-02-30", "5874897-02-29", "10000-13-01", "10000-01-01 25:00:00", "10000-01-01 00:00:00.1234567", "", "x"])
def test_texts_of_no_day_are_refused(text: str) -> None:
    for kind in (pa.date32(), pa.timestamp("us")):
        with pytest.raises(SchemaError, match=f"'{text}' is not a value of type "):
            from_texts(pa.array([text]), kind)
    with pytest.raises(SchemaError, match="does not hold"):
        from_texts(pa.array(["5881580-07-12"]), pa.date32())


def test_a_time_beyond_a_day_is_refused() -> None:
    for number in (-1, 86_400):
        with pytest.raises(SchemaError, match="a time of day is before 0:00 or not before 24:00"):
            readable(pa.table({"t": of_numbers(pa.time32("s"), number)}))


def test_postgresqls_last_day_is_read_compared_and_shown(tmp_path: Path) -> None:
    fs.export({"d": of_numbers(pa.date32(), DAYS[4], 0)}, tmp_path / "pages", page_format="postgresql")
    source = f"pg:{tmp_path / 'pages' / 'table'}"
    query = "SELECT d, year(d) AS y FROM t WHERE d > DATE '9999-12-31' AND d = '5874897-12-31' AND d <> DATE '0044-03-15 (BC)'"
    outcome = fs.smart(query, table={"t": source}, device=SMART)
    assert isinstance(outcome.result, session.QueryAnswer) and outcome.rows().values.tolist() == [["5874897-12-31", 5874897]]
    partitioned = fs.smart("SELECT d FROM t ORDER BY d", table={"t": source}, device=SMART, drives=2, partition={"t": "d"}, where="drive")
    assert partitioned.rows()["d"].dropna().tolist() == ["1970-01-01", "5874897-12-31"]


def test_days_beyond_the_calendar_are_pages_of_graphs_and_of_traces() -> None:
    days = of_numbers(pa.date32(), DAYS[4], DAYS[5], 0).drop_null()
    edges = fs.fetch(pa.table({"a": days, "b": days.take(pa.array([1, 2, 0]))}), frames=2, planner="overlap")
    assert set(edges.plan("overlap").to_frame()["page"]) == {"5874897-12-31", "5877642-06-23 (BC)", "1970-01-01"}
    assert fs.cache(pa.concat_arrays([days, days]), policy="lru", size=3).summary()["hits"].tolist() == [3]
