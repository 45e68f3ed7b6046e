"""Key codes: int64 numbers that compare as the keys of both relations of a join do.

Integers of any width are their own codes.  Everything else takes its rank in one dictionary over both columns.  Numbers compare exactly
(1 equals 1.0, and 2**53 + 1 equals no double), texts by code points, as SQLite's binary collation does.  NaN equals itself and follows
all other numbers, as in DuckDB and PostgreSQL.
"""

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, SchemaError
from flashsim.core.request import Integers
from flashsim.storage.columns import array_of, column_of, plain_array
from flashsim.storage.texts import stored_column

#: The code of a NULL key, which joins nothing.
NULL_KEY = np.iinfo(np.int64).min

_INT32 = np.iinfo(np.int32)
_NAN = float("nan")
#: Kinds that may meet in a join besides values of one kind.
_PAIRS = {frozenset(pair) for pair in (("integer", "real"), ("integer", "decimal"), ("decimal", "real"))} | {
    frozenset(("mixed", kind)) for kind in ("integer", "real", "text", "blob")
}


def encode_keys(
    r_values: pa.Array | pa.ChunkedArray, s_values: pa.Array | pa.ChunkedArray, r_name: str, s_name: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Order-preserving codes of two key columns, shape (rows,) each: equal codes mean equal keys.  Error messages call them by their names.

    Returns
    -------
    tuple
        Codes of R and of S, int32 where no key is NULL and all fit, otherwise int64 with NULL_KEY for NULL.
    """
    r, s = plain_array(r_values), plain_array(s_values)
    kinds = [_kind(r.type, r_name), _kind(s.type, s_name)]
    if "null" in kinds:
        return _beside_nulls(r, s, r_name, s_name)
    met = set(kinds)
    try:
        fractions = [column.type for column in (r, s) if pa.types.is_decimal(column.type) and column.type.scale]
        if len(met) == 2 and (frozenset(met) not in _PAIRS or ("real" in met and fractions)):
            raise pa.ArrowInvalid("different kinds")
        if met == {"integer"}:
            return _integers(r, s)
        if "mixed" in met or met in ({"integer", "real"}, {"decimal", "real"}):
            return _by_value(r, s)
        return _by_rank(*_comparable(r, s, met))
    except pa.ArrowInvalid:
        text = f"{r_name} is {r_values.type}, but {s_name} is {s_values.type}: they cannot be compared"
        raise SchemaError(f"key: {text}") from None


def _beside_nulls(r: pa.Array, s: pa.Array, r_name: str, s_name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Codes where at least one column holds no value at all, and so has no type."""
    nulls = [pa.types.is_null(column.type) for column in (r, s)]
    if all(nulls):
        return np.full(len(r), NULL_KEY), np.full(len(s), NULL_KEY)
    other, name = (s, s_name) if nulls[0] else (r, r_name)
    codes = encode_keys(other, other, name, name)[0]
    return (np.full(len(r), NULL_KEY), codes) if nulls[0] else (codes, np.full(len(s), NULL_KEY))


def _kind(kind: pa.DataType, name: str) -> str:
    tests = {
        "null": pa.types.is_null,
        "integer": pa.types.is_integer,
        "real": pa.types.is_floating,
        "decimal": pa.types.is_decimal,
        "text": pa.types.is_large_string,
        "blob": pa.types.is_large_binary,
        "boolean": pa.types.is_boolean,
        "date": pa.types.is_date,
        "time": pa.types.is_time,
        "timestamp": pa.types.is_timestamp,
        "mixed": pa.types.is_union,
    }
    for kind_of_value, test in tests.items():
        if test(kind):
            return kind_of_value
    raise SchemaError(f"key: {name} is {kind}, but keys are numbers, texts, bytes, booleans, dates or times")


def _integers(r: pa.Array, s: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The integers themselves, unless one lies outside what a code can hold."""
    extremes = [pc.min_max(column) for column in (r, s)]
    least = min((low for each in extremes if (low := each["min"].as_py()) is not None), default=0)
    most = max((high for each in extremes if (high := each["max"].as_py()) is not None), default=0)
    if least <= NULL_KEY or most > np.iinfo(np.int64).max:
        exact = pa.decimal128(38, 0)
        return _by_rank(*(column.cast(pa.decimal128(20, 0)).cast(exact) for column in (r, s)))
    codes = []
    for column, each in zip((r, s), extremes, strict=True):
        low, high = each["min"].as_py(), each["max"].as_py()
        small = column.null_count == 0 and (low is None or (low >= _INT32.min and high <= _INT32.max))
        codes.append(_numbers(column, np.dtype(np.int32 if small else np.int64)))
    return codes[0], codes[1]


def _numbers(column: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An integer column as an array, not copied where it is of that width and has no NULL."""
    values = array_of(column.cast(pa.int64()) if column.null_count else column, NULL_KEY)
    return values.view(dtype) if values.dtype.itemsize == dtype.itemsize else values.astype(dtype)


def _comparable(r: pa.Array, s: pa.Array, kinds: set[str]) -> tuple[pa.ChunkedArray, pa.Array]:
    """Both columns in one type in which values are equal exactly when their keys are."""
    if kinds == {"real"}:
        return _canonical(r), _canonical(s)
    if "decimal" in kinds:
        common = pa.decimal256(76, max((column.type.scale for column in (r, s) if pa.types.is_decimal(column.type)), default=0))
        wide = [column.cast(pa.decimal128(20, 0)) if pa.types.is_integer(column.type) else column for column in (r, s)]
        return wide[0].cast(common), wide[1].cast(common)
    types = [r.type, s.type]
    if kinds == {"timestamp"}:
        if len({kind.tz is None for kind in types}) > 1:
            raise pa.ArrowInvalid("one has a time zone, the other not")
        return (r.cast(pa.int64()), s.cast(pa.int64())) if types[0].unit == types[1].unit else (_nanoseconds(r), _nanoseconds(s))
    (kind,) = kinds
    common = {"boolean": pa.uint8(), "date": pa.date32(), "time": pa.time64("ns"), "text": pa.large_binary()}.get(kind, types[0])
    return r.cast(common), s.cast(common)


def _nanoseconds(column: pa.Array) -> pa.Array:
    """Times since 1970, exactly: 64 bits of nanoseconds end in 2262, and coarser units go on."""
    scale = 1000 ** (3 - ["s", "ms", "us", "ns"].index(column.type.unit))
    counted = column.cast(pa.int64()).cast(pa.decimal128(19, 0))
    return pc.multiply(counted, pa.scalar(Decimal(scale), pa.decimal128(10, 0)))


def _canonical(column: pa.Array) -> pa.Array:
    """Doubles of which equal ones have equal bits."""
    doubles = pc.add(column.cast(pa.float64()), 0.0)
    return pc.if_else(pc.is_nan(doubles), _NAN, doubles)


def _lookup_key(value: Any) -> Any:
    """A value that is found among others by what it equals: NaN is one object."""
    return value if value == value else _NAN


def _by_rank(r: pa.Array, s: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    distinct = pc.unique(pa.concat_arrays([pc.unique(r), pc.unique(s)])).drop_null()
    ordered = distinct.take(pc.array_sort_indices(distinct))
    codes = []
    for column in (r, s):
        codes.append(_numbers(pc.index_in(column, ordered), np.dtype(np.int32 if column.null_count == 0 else np.int64)))
    return codes[0], codes[1]


def _by_value(r: pa.Array, s: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Ranks among values of several classes, which compare as in SQLite: numbers, then texts, then blobs."""
    columns = [_distinct(column) for column in (r, s)]
    met = {_lookup_key(value) for values, _ in columns for value in values if value is not None}
    code = {value: rank for rank, value in enumerate(sorted(met, key=_sqlite_order))}
    code[None] = NULL_KEY
    codes = []
    for values, at in columns:
        ranks = np.array([code[_lookup_key(value)] for value in values], np.int64)[at]
        codes.append(ranks.astype(np.int32) if not (ranks == NULL_KEY).any() else ranks)
    return codes[0], codes[1]


def _sqlite_order(value: Any) -> tuple[int, Any]:
    if isinstance(value, (int, float, Decimal)):
        return (0, value) if value == value else (1, 0)
    return (2 if isinstance(value, str) else 3), value


def _distinct(column: pa.Array) -> tuple[list[Any], Integers]:
    """Distinct values as Python objects, and where each row's stands."""
    if pa.types.is_union(column.type):
        values = column.to_pylist()
        position = {value: index for index, value in enumerate(dict.fromkeys(values))}
        return list(position), np.array([position[value] for value in values], np.int64)
    if pa.types.is_floating(column.type):
        column = _canonical(column)
    encoded = column.dictionary_encode()
    at = array_of(encoded.indices, len(encoded.dictionary))
    return [*encoded.dictionary.to_pylist(), None], at.astype(np.int64)


class StoredKeys:
    """Finds the code of a key as it is stored on a page.

    The name is the relation's, for error messages; `values` and `codes` are the key column and its codes, shape (rows,) each.
    """

    def __init__(self, name: str, values: pa.Array | pa.ChunkedArray, codes: npt.NDArray[Any]) -> None:
        self.name, self._has_null = name, bool((codes == NULL_KEY).any())
        self._codes_of_values: dict[Any, int] | None = None
        plain = plain_array(values)
        whole = plain.cast(pa.int64(), safe=False) if pa.types.is_integer(plain.type) and plain.null_count else plain
        if len(codes) and not (pa.types.is_integer(plain.type) and np.array_equal(array_of(whole, NULL_KEY), codes)):
            distinct, first = np.unique(codes, return_index=True)
            stored = stored_column(plain.take(column_of(first)))
            self._codes_of_values = dict(zip(map(_lookup_key, stored.to_pylist()), distinct.tolist(), strict=True)) | {None: NULL_KEY}

    def codes(self, stored: pa.Array) -> Integers:
        """Codes of stored values, shape (n,); NULL_KEY for NULL, which some row must have."""
        codes = self._codes(stored)
        if not self._has_null and (codes == NULL_KEY).any():
            raise DamagedFileError(f"relation {self.name}: a page holds the key NULL, which no row has")
        return codes

    def _codes(self, stored: pa.Array) -> Integers:
        if self._codes_of_values is None:
            if not pa.types.is_integer(stored.type):
                if stored.null_count < len(stored):
                    raise DamagedFileError(f"relation {self.name}: a page holds a key of type {stored.type}, but keys are integers")
                return np.full(len(stored), NULL_KEY)
            numbers: Integers = array_of(stored.cast(pa.int64()), NULL_KEY)
            return numbers
        try:
            return np.array([self._codes_of_values[_lookup_key(value)] for value in stored.to_pylist()], np.int64)
        except KeyError as unknown:
            raise DamagedFileError(f"relation {self.name}: a page holds the key {unknown}, which no row has") from None
