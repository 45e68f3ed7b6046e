"""Types of text files' columns: by a rule that loses no digit, or by a user's word.

A column is of integers, of any width, if every field is one without a plus or leading zeros; else of doubles, if every field is a decimal
number without these and without an exponent that a double holds to its last digit, and no integer among them is beyond 2**53; else of
texts, as spelled.  An empty field is NULL; only among texts is one in quotes an empty text.
"""

import re
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import InvalidParameterError, SchemaError, shorten
from flashsim.storage.columns import one_array
from flashsim.storage.texts import from_texts

_INTEGER = r"-?(0|[1-9][0-9]*)"
_NUMBER = r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)"
#: Characters of a decimal number, with its point, that any double holds; digits that int64, and decimals, hold.
_HELD, _INT64, _DECIMAL128, _DECIMAL256 = 16, 18, 38, 76
_MOST_WHOLE = 2**53
#: Names of types besides Arrow's own.
_NAMES = {"text": pa.large_string(), "date": pa.date32(), "timestamp": pa.timestamp("us")}
#: Spellings that Arrow would read too, and otherwise than a user means them, by what accepts a type.
_SPELLED = {pa.types.is_integer: "-?[0-9]+", pa.types.is_boolean: "(?i)true|false|0|1"}


def type_named(name: str, parameter: str) -> pa.DataType:
    """The type of a name such as ``int64``, ``double``, ``text``, ``date``, ``timestamp`` or ``decimal(15,2)``."""
    if match := re.fullmatch(r"decimal(?:128|256)?\((\d+),(\d+)\)", name.replace(" ", "")):
        digits, scale = map(int, match.groups())
        if 0 < digits <= _DECIMAL256 and scale <= digits:
            return pa.decimal128(digits, scale) if digits <= _DECIMAL128 else pa.decimal256(digits, scale)
    with suppress(ValueError):
        return _NAMES.get(name) or pa.type_for_alias(name)
    raise InvalidParameterError(parameter, repr(shorten(name)), "types are int64, double, text, date, timestamp, decimal(15,2), ...")


def type_name(kind: pa.DataType) -> str:
    known = {each: name for name, each in _NAMES.items()}
    return known.get(kind, re.sub(r" |(?<=decimal)\d+", "", str(kind)))


def column_of_fields(fields: pa.ChunkedArray) -> tuple[pa.ChunkedArray, bool]:
    """Values of a column by the rule, and whether they are integers that no type holds, which are texts."""
    values = _without_empty(fields)
    if values.null_count == len(values):
        return (fields, False) if fields.null_count < len(fields) else (pa.chunked_array([pa.nulls(len(fields))]), False)
    if _all_match(values, _INTEGER):
        return _integers(values)
    if _all_match(values, _NUMBER) and _is_held(values):
        return values.cast(pa.float64()), False
    return fields, False


def typed_fields(fields: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        return fields
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return pa.chunked_array([from_texts(one_array(_without_empty(fields)), kind)])
    values = _without_empty(fields)
    if (typed := _cast(values, kind)) is not None:
        return typed
    bad = next((field for field in values.unique().drop_null() if _cast(pa.chunked_array([pa.repeat(field, 1)]), kind) is None), None)
    raise SchemaError(f"{shorten(str(bad))!r} is not a value of type {type_name(kind)}")


def _cast(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Fields as values of a type that is none of texts, dates and times; None if one is no such value."""
    pattern = next((text for test, text in _SPELLED.items() if test(kind)), ".*")
    if pa.types.is_decimal(kind):  # Arrow's cast loses digits before the point without a word
        pattern = rf"[+-]?0*[0-9]{{0,{kind.precision - kind.scale}}}(\.[0-9]*)?"
    try:
        return values.cast(kind) if _all_match(values, f"(?s){pattern}") else None
    except pa.ArrowException:
        return None


def _without_empty(fields: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(fields, ""), pa.scalar(None, fields.type), fields)


def _all_match(values: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, f"^({pattern})$"), min_count=0).as_py())


def _integers(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, bool]:
    digits = int(pc.max(pc.binary_length(pc.utf8_ltrim(values, "-"))).as_py())
    for kind in (pa.int64(), pa.uint64()) if digits <= _INT64 + 2 else ():
        with suppress(pa.ArrowInvalid):
            return values.cast(kind), False
    if digits <= _DECIMAL256:
        return values.cast(pa.decimal128(digits, 0) if digits <= _DECIMAL128 else pa.decimal256(digits, 0)), False
    return values, True


def _is_held(values: pa.ChunkedArray) -> bool:
    """True if the shortest spelling of the double that each number becomes is the number, and no integer is beyond 2**53."""
    long = values.filter(pc.greater_equal(pc.binary_length(values), _HELD))
    is_whole = pc.match_substring_regex(long, f"^{_INTEGER}$")
    if any(abs(Decimal(text)) > _MOST_WHOLE for text in long.filter(is_whole).unique().to_pylist()):
        return False
    long = long.filter(pc.invert(is_whole))
    long = long.filter(pc.greater(pc.binary_length(long), _HELD))
    doubtful = long.filter(pc.not_equal(long.cast(pa.float64()).cast(pa.large_string()), long))
    return all(Decimal(repr(float(text))) == Decimal(text) for text in doubtful.unique().to_pylist())
