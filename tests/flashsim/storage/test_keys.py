"""Key codes compare as the keys do."""

from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import DamagedFileError, SchemaError
from flashsim.storage.columns import mixed_array
from flashsim.storage.keys import NULL_KEY, StoredKeys, encode_keys
from flashsim.storage.texts import stored_column
from tests.cases import with_each

INTEGER_TYPES = [kind() for kind in (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64)]


def encode(r: Any, s: Any) -> tuple[np.ndarray, np.ndarray]:
    return encode_keys(r if isinstance(r, pa.Array) else pa.array(r), s if isinstance(s, pa.Array) else pa.array(s), "a.x", "b.y")


def ordered(value: Any) -> tuple[int, Any]:
    """SQLite's order, and NaN, which equals itself, behind all other numbers, as DuckDB has it."""
    if isinstance(value, (int, float)):
        return (0, value) if value == value else (1, 0)
    return (2 if isinstance(value, str) else 3), value


def check_order(r: list[Any], s: list[Any], codes: tuple[np.ndarray, np.ndarray]) -> None:
    """Codes of all values of both sides are ordered, and equal, exactly as the values are."""
    assert len(codes[0]) == len(r) and len(codes[1]) == len(s)
    coded = list(zip([*r, *s], [*codes[0].tolist(), *codes[1].tolist()], strict=True))
    for value, code in coded:
        assert (code == NULL_KEY) == (value is None)
    known = sorted((ordered(value), code) for value, code in coded if code != NULL_KEY)
    for (one, first), (other, second) in pairwise(known):
        assert (one == other) == (first == second)
        assert first <= second


@st.composite
def integer_column(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from(INTEGER_TYPES))
    bits = kind.bit_width
    low, high = (0, 2**bits - 1) if pa.types.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return pa.array(draw(st.lists(st.none() | st.integers(low, high) | st.integers(0, 3), max_size=20)), kind)


@given(integer_column(), integer_column())
def test_integers_of_any_width(r: pa.Array, s: pa.Array) -> None:
    codes = encode(r, s)
    check_order(r.to_pylist(), s.to_pylist(), codes)
    everything = [value for value in [*r.to_pylist(), *s.to_pylist()] if value is not None]
    if all(-(2**63) < value < 2**63 for value in everything):
        assert [code for code in codes[0].tolist() if code != NULL_KEY] == [value for value in r.to_pylist() if value is not None]


numbers = st.none() | st.floats() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 0.0, -0.0, 1, 1.0, 2**53, 2**53 + 1, 2.0**53])


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)),
    st.lists(st.none() | st.floats() | st.integers(-2, 2).map(float)),
)
def test_integers_meet_doubles_exactly(r: list[int | None], s: list[float | None]) -> None:
    check_order(r, s, encode(pa.array(r, pa.int64()), pa.array(s, pa.float64())))


@given(st.lists(st.none() | st.floats()), st.lists(st.none() | st.floats(width=32)))
def test_doubles(r: list[float | None], s: list[float | None]) -> None:
    check_order(r, s, encode(pa.array(r, pa.float64()), pa.array(s, pa.float32())))


@given(st.lists(st.none() | st.text()), st.lists(st.none() | st.text(max_size=2)))
def test_texts_by_code_points(r: list[str | None], s: list[str | None]) -> None:
    check_order(r, s, encode(pa.array(r, pa.string()), pa.array(s, pa.large_string())))


def union(values: list[Any]) -> pa.Array:
    classes = np.array(
        [3 if isinstance(v, bytes) else 2 if isinstance(v, str) else 1 if isinstance(v, float) else 0 for v in values], np.int8
    )
    columns = [
        pa.array([v if class_ == mine else None for v, mine in zip(values, classes, strict=True)], kind)
        for class_, kind in enumerate((pa.int64(), pa.float64(), pa.large_string(), pa.large_binary()))
    ]
    return mixed_array(classes, *columns)


mixed = st.lists(numbers.filter(lambda v: v == v) | st.text(max_size=3) | st.binary(max_size=3) | st.sampled_from(["1", b"1", 1, 1.0]))


@given(mixed, mixed)
def test_mixed_columns_compare_as_in_sqlite(r: list[Any], s: list[Any]) -> None:
    check_order(r, s, encode(union(r), union(s)))


def test_one_kind_in_several_forms() -> None:
    day, hour = datetime.date(2020, 2, 29), datetime.time(1, 2, 3)
    moment = datetime.datetime(2020, 2, 29, 1, 2, 3)
    for r, s in (
        (pa.array([Decimal("1.50"), Decimal("2")]), pa.array([Decimal("1.5"), Decimal("2.0")], pa.decimal128(30, 10))),
        (pa.array([Decimal("1.00"), Decimal("7")]), pa.array([1, 7], pa.int16())),
        (pa.array([day]), pa.array([day], pa.date64())),
        (pa.array([hour], pa.time32("s")), pa.array([hour], pa.time64("ns"))),
        (pa.array([moment], pa.timestamp("s")), pa.array([moment], pa.timestamp("ns"))),
        (pa.array([True, False]), pa.array([True, False])),
        (pa.array(["a", "b", "a"]).dictionary_encode(), pa.array(["a", "b", "a"], pa.string_view())),
        (pa.array([b"abc"], pa.binary(3)), pa.array([b"abc"])),
    ):
        codes = encode(r, s)
        assert codes[0].tolist() == codes[1].tolist()


def test_times_that_the_finer_unit_cannot_hold_compare_with_those_that_it_can() -> None:
    """64 bits of nanoseconds end in 2262."""
    moment = datetime.datetime(2020, 2, 29, 1, 2, 3)
    coarse = [None, datetime.datetime(1, 1, 1), moment, moment + datetime.timedelta(microseconds=1), datetime.datetime(9999, 12, 31)]
    for unit in ("s", "ms", "us"):
        r, s = encode(pa.array([coarse[0], *coarse[1:3], coarse[4]], pa.timestamp(unit)), pa.array([moment], pa.timestamp("ns")))
        assert r[0] == NULL_KEY and r[1] < r[2] == s[0] < r[3]
    r, s = encode(pa.array(coarse, pa.timestamp("us", "UTC")), pa.array([moment], pa.timestamp("ns", "Europe/Berlin")))
    assert r[0] == NULL_KEY and r[1] < r[2] == s[0] < r[3] < r[4]


@with_each(
    ("r", "s"),
    [
        (pa.array([1]), pa.array(["1"])),
        (pa.array(["1"]), pa.array([b"1"])),
        (pa.array([1.0]), pa.array(["1.0"])),
        (pa.array([datetime.date(2020, 1, 1)]), pa.array(["2020-01-01"])),
        (pa.array([True]), pa.array([1])),
        (pa.array([0], pa.timestamp("us", "UTC")), pa.array([0], pa.timestamp("us"))),
        (union([1, "a"]), pa.array([Decimal(1)])),
    ],
)
def test_unlike_columns_are_refused_with_names_and_types(r: pa.Array, s: pa.Array) -> None:
    for one, other in ((r, s), (s, r)):
        with pytest.raises(SchemaError) as refused:
            encode(one, other)
        for part in ("a.x", "b.y", str(one.type), str(other.type)):
            assert part in str(refused.value)


def test_nested_keys_are_refused() -> None:
    with pytest.raises(SchemaError, match=r"a\.x is list"):
        encode(pa.array([[1]]), pa.array([1]))


def test_a_column_of_nulls_joins_nothing_and_meets_anything() -> None:
    for other in (pa.array([1]), pa.array(["a"]), union([1, b"a"]), pa.array([], pa.null()), pa.nulls(2)):
        codes = encode(pa.nulls(3), other)
        assert codes[0].tolist() == [NULL_KEY] * 3 and len(codes[1]) == len(other)


def test_codes_are_narrow_where_they_can_be() -> None:
    assert [codes.dtype for codes in encode([1, 2], [1, None])] == [np.int32, np.int64]
    assert [codes.dtype for codes in encode([2**31], [2**31 - 1])] == [np.int64, np.int32]
    values = np.arange(10, dtype=np.uint32)
    assert np.shares_memory(encode(pa.array(values), [1])[0], values)


@given(mixed)
def test_stored_keys_find_their_codes_again(values: list[Any]) -> None:
    column = union(values)
    codes = encode(column, column)[0]
    assert StoredKeys("r", column, codes).codes(stored_column(column)).tolist() == codes.tolist()


def test_stored_keys_that_no_row_has_are_damage() -> None:
    column = pa.array(["a", "b"])
    with pytest.raises(DamagedFileError, match="'c', which no row has"):
        StoredKeys("r", column, encode(column, column)[0]).codes(pa.array(["c"]))
    with pytest.raises(DamagedFileError, match="keys are integers"):
        StoredKeys("r", pa.array([1]), np.array([1])).codes(pa.array(["c"]))
