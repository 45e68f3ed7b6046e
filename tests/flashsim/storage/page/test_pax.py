"""PAX pages: minipages as they are described, every type of column, the most tuples that fit, and damage refused in one line."""

from __future__ import annotations

import datetime
import struct
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError, DamagedFileError, SchemaError
from flashsim.core.request import SECTOR
from flashsim.storage.columns import mixed_array, plain_array
from flashsim.storage.heap_file import heap_file
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import Layout
from flashsim.storage.relation import Relation
from flashsim.storage.rows import Tuples, key_tuples
from flashsim.storage.source import load_pair, open_source
from flashsim.storage.source.base import TableRecords
from tests.cases import with_each
from tests.tiers import examples

DAYS = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "half": (pa.float16(), st.floats(width=16)),
    "double": (pa.float64(), st.floats()),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), DAYS),
    "time": (pa.time64("us"), st.times()),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))),
    "duration": (pa.duration("us"), st.timedeltas(datetime.timedelta(-9), datetime.timedelta(9))),
    "decimal": (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2)),
    "long decimal": (pa.decimal256(50, 2), st.decimals(-1000, 1000, places=2)),
    "text": (pa.string(), st.text(max_size=12)),
    "bytes": (pa.binary(), st.binary(max_size=5)),
    "fixed bytes": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "bcd"])),
    "null": (pa.null(), st.none()),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A few columns of any type, with or without NULL, of a few rows or none."""
    rows = draw(st.integers(0, 30))
    columns: dict[str, pa.Array] = {"id": pa.array(range(rows), pa.int32())}
    for number, kind in enumerate(draw(st.lists(st.sampled_from([*KINDS, "mixed"]), max_size=6))):
        columns[f"{kind} {number}"] = _mixed(draw, rows) if kind == "mixed" else _column(draw, kind, rows)
    return pa.table(columns)


def _column(draw: st.DrawFn, kind: str, rows: int) -> pa.Array:
    type_, values = KINDS[kind]
    some = draw(st.sampled_from([values, st.none() | values, st.none()]))
    return pa.array(draw(st.lists(some, min_size=rows, max_size=rows)), type_)


def _mixed(draw: st.DrawFn, rows: int) -> pa.Array:
    classes = np.array(draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)), np.int8)
    kinds = ("int64", "double", "text", "bytes")
    integers, reals, texts, blobs = (pa.array(draw(st.lists(KINDS[kind][1], min_size=rows, max_size=rows))) for kind in kinds)
    null = np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), np.bool_)
    integers = pa.array(integers.to_pylist(), pa.int64(), mask=null)
    return mixed_array(classes, integers, reals.cast(pa.float64()), texts.cast(pa.large_string()), blobs.cast(pa.large_binary()))


def relation_of(table: pa.Table, key: str = "id") -> Relation:
    records = TableRecords("t", table)
    return load_pair(records, records, key, key)[0]


@settings(max_examples=examples(100, 4))
@given(table=tables(), page_size=st.sampled_from([512, 1536, 8192, 65536]), data=st.data())
def test_rows_of_any_types_come_back_as_they_are(table: pa.Table, page_size: int, data: st.DataObject) -> None:
    """Any rows in any order, as on temporary pages too; what is read is put on pages of the very same bytes."""
    relation = relation_of(table)
    try:
        layout = Layout(relation, page_size, "pax")
    except CapacityError:
        assert page_size == 512
        return
    rows = np.array(data.draw(st.lists(st.integers(0, len(relation) - 1), max_size=90) if len(relation) else st.just([])), np.int64)
    tuples = key_tuples(relation.keys(rows), rows)
    tuples.pages = layout.pack(tuples)
    pages = layout.encode(tuples)
    found = layout.decode(pages)
    assert np.array_equal(found.rows, rows) and np.array_equal(found.keys, tuples.keys) and np.array_equal(found.pages, tuples.pages)
    values = layout.decode_values(pages, tuple(table.column_names))
    wanted = table.take(pa.array(rows))
    for name in table.column_names:
        assert values.column(name).type == plain_array(table.column(name)).type
        assert repr(values.column(name).to_pylist()) == repr(plain_array(wanted.column(name)).to_pylist())  # NaN and -0.0 too
    assert np.array_equal(layout.encode(found), pages)


@given(table=tables(), page_size=st.sampled_from([512, 4096, 65536]))
def test_minipages_hold_the_most_tuples_and_never_meet(table: pa.Table, page_size: int) -> None:
    relation = relation_of(table)

    def taken(tuples: int) -> int:
        """Bytes of a page for so many tuples, by the description."""
        found = 0
        for attribute in relation.attributes:
            found += 4 + -(-tuples // 8) * attribute.nullable + tuples * (2 * attribute.varies + attribute.size)
        return found

    try:
        layout = Layout(relation, page_size, "pax")
    except CapacityError:
        assert taken(1) > page_size
        return
    (size,) = set(layout.cell_sizes(key_tuples(np.zeros(1, np.int64), np.zeros(1, np.int64))).tolist())
    capacity = layout.room // size
    assert taken(capacity) <= page_size < taken(capacity + 1)
    sectors = [layout.parts(("row",)), *(layout.parts((), (name,)) for name in table.column_names)]
    for (before,), (after,) in pairwise(sectors):  # each at most begins in the sector in which the one before it ends
        assert before[0] + before[1] - SECTOR <= after[0] <= before[0] + before[1]
    assert layout.parts(("row",), tuple(table.column_names)) == ((0, -(-taken(capacity) // SECTOR) * SECTOR),)


def test_a_page_is_as_it_is_described() -> None:
    """Read by hand: a head, bits, ends and values, one minipage after the other."""
    names = ["ab", None, "", "cdé"]
    table = pa.table({"id": pa.array([7, 8, 9, -1], pa.int32()), "name": names, "price": pa.array([1.5, 2.5, None, 4.5])})
    file = heap_file(relation_of(table), 512, page_format="pax")
    capacity = file.layout.room // int(file.layout.cell_sizes(file.run(0, 1))[0])
    assert capacity == (512 - 4 * 4 - 2 * 3) // (4 + 4 + 2 + 4 + 8)  # 22 tuples have bits of 3 bytes in each of two minipages
    page = file.layout.encode(file.run(0, 1)).tobytes()
    at = 0
    assert struct.unpack_from("<BBH4i", page, at) == (0xA8, 0, 4, 0, 1, 2, 3)
    at += 4 + 4 * capacity
    assert struct.unpack_from("<BBH4i", page, at) == (0xA8, 1, 4, 7, 8, 9, -1)
    at += 4 + 4 * capacity
    assert struct.unpack_from("<BBHB", page, at) == (0xA8, 2, 4, 0b1101)
    at += 4 + 3
    assert struct.unpack_from("<4H", page, at) == (2, 2, 2, 6)
    at += 2 * capacity
    assert page[at : at + 6].decode() == "abcdé"
    at += 4 * capacity
    assert struct.unpack_from("<BBHB", page, at) == (0xA8, 3, 4, 0b1011)
    assert struct.unpack_from("<4d", page, at + 4 + 3) == (1.5, 2.5, 0.0, 4.5)


@with_each(
    ("minipage", "at", "value", "message"),
    [
        ("name", 0, 0, "page 0 of those read has no minipage 2 of as many tuples"),  # no mark
        ("name", 1, 1, "page 0 of those read has no minipage 2 of as many tuples"),  # another minipage's
        ("name", 2, 3, "page 0 of those read has no minipage 2 of as many tuples"),  # fewer than the others
        ("name", 2, 200, "page 0 of those read has no minipage 2 of as many tuples"),  # more than there is room for
        ("name", 7, 255, "page 0 of those read has a value behind its minipage 2"),
        ("name", 9, 1, "page 0 of those read has a value behind its minipage 2"),  # it ends before it begins
        ("name", -1, 0xC3, "a text is not valid UTF-8"),
        ("mixed", -1, 9, "a value of several types has none of them"),
        ("row", 4, 200, "a page that was read holds a cell of no row"),
        ("row", 7, 255, "a page that was read holds a cell of no row"),
    ],
)
def test_damage_is_refused_in_one_line(minipage: str, at: int, value: int, message: str) -> None:
    mixed = mixed_array(np.zeros(4, np.int8), pa.array([1, 2, None, 4]), None, None, None)
    table = pa.table({"id": pa.array([7, 8, 9, -1], pa.int32()), "name": ["ab", None, "", "cdef"], "mixed": mixed})
    file = heap_file(relation_of(table), 512, page_format="pax")
    capacity = file.layout.room // int(file.layout.cell_sizes(file.run(0, 1))[0])
    begin = {"row": 0, "id": 4 + 4 * capacity, "name": 8 + 8 * capacity}
    bits = -(-capacity // 8)
    begin["mixed"] = begin["name"] + 4 + bits + 6 * capacity
    values = {"name": begin["name"] + 4 + bits + 2 * capacity, "mixed": begin["mixed"] + 4 + bits + 2 * capacity}
    page = file.layout.encode(file.run(0, 1))
    place = values[minipage] if at < 0 else begin[minipage] + at + (bits - 3 if at > 6 and minipage == "name" else 0)
    assert page[0, place] != value
    page[0, place] = value
    with pytest.raises(DamagedFileError, match=message) as refused:
        file.layout.decode(page)
        file.layout.decode_values(page, ("id", "name", "mixed"))
    assert str(refused.value).startswith("relation t: ") and "\n" not in str(refused.value)


@given(table=tables(), damage=st.lists(st.tuples(st.integers(0, 511), st.integers(0, 255)), min_size=1, max_size=9), data=st.data())
def test_any_damage_is_refused_or_is_rows_of_the_relation(table: pa.Table, damage: list[tuple[int, int]], data: st.DataObject) -> None:
    try:
        file = heap_file(relation_of(table, data.draw(st.sampled_from(table.column_names))), 512, page_format="pax")
    except (CapacityError, SchemaError):  # a row is too long, or durations are no keys
        return
    pages = file.layout.encode(file.run(0, file.pages))
    for place, value in damage if len(pages) else []:
        pages[-1, place] = value
    for read in (file.layout.decode, lambda pages: file.layout.decode_values(pages, tuple(table.column_names))):
        with suppress(DamagedFileError):
            found = read(pages)
            if isinstance(found, Tuples) and len(found):
                assert 0 <= found.rows.min() <= found.rows.max() < len(file.relation) and found.pages[-1] == len(found)
                assert np.isin(found.keys, file.relation.keys(slice(None))).all() or pa.types.is_integer(
                    table.schema.field(file.relation.key).type
                )


def test_a_time_that_no_day_has_is_damage() -> None:
    table = pa.table({"id": pa.array(range(8), pa.int32()), "time": pa.array([0] * 8, pa.time64("us"))})
    file = heap_file(relation_of(table, "time"), 512, page_format="pax")
    refused = list[str]()
    for place in range(512):
        pages = file.layout.encode(file.run(0, 1))
        pages[0, place] = 1
        try:
            file.layout.decode(pages)
        except DamagedFileError as problem:
            refused.append(str(problem))
    assert any("a time of day" in message for message in refused)


def test_a_key_that_no_row_has_is_refused() -> None:
    file = heap_file(relation_of(pa.table({"id": ["a", "b"]})), 512, page_format="pax")
    page = file.layout.encode(file.run(0, 1))
    page[0, np.flatnonzero(page[0] == ord("b"))] = ord("c")
    with pytest.raises(DamagedFileError, match="relation t: a page holds the key 'c', which no row has"):
        file.layout.decode(page)


def test_a_key_that_is_null_where_no_row_s_is_is_refused() -> None:
    """A column of several types has a bit a row that says so, whether or not one is NULL."""
    mixed = mixed_array(np.zeros(2, np.int8), pa.array([1, 2]), None, None, None)
    file = heap_file(relation_of(pa.table({"id": mixed})), 512, page_format="pax")
    page, refused = file.layout.encode(file.run(0, 1)), 0
    for place in range(len(page[0])):
        damaged = page.copy()
        damaged[0, place] = 0
        try:
            assert file.layout.decode(damaged).keys.min() > NULL_KEY
        except DamagedFileError as problem:
            refused += str(problem) == "relation t: a page holds the key NULL, which no row has"
    assert refused


def test_columns_of_one_length_have_no_ends_and_rows_no_more_than_they_need() -> None:
    """The padding of do2009's customers is 130 bytes of each row, their key 4, and so are row ids."""
    records = open_source("do2009:customer@0.001")
    file = heap_file(load_pair(records, records, "c_custkey", "c_custkey")[0], 8192, page_format="pax")
    assert file.first_rows[1] == (8192 - 3 * 4) // (4 + 4 + 130)
    assert [(one.name, one.size, one.varies, one.nullable) for one in file.relation.attributes] == [
        (None, 4, False, False),
        ("c_custkey", 4, False, False),
        ("padding", 130, False, False),
    ]
    general = TableRecords("t", records.take(np.arange(records.rows))).attributes()
    assert [(one.name, one.kind, one.size, one.varies, one.nullable) for one in general] == [
        (one.name, one.kind, one.size, one.varies, one.nullable) for one in records.attributes()
    ]
