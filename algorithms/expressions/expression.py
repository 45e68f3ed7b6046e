"""Expressions over batches of rows: columns, literals and functions of them, NULL as SQL has it.

A type is that of an expression's values over no rows, so that no rule of types stands twice.  NaN equals itself and is larger than any
number, as in DuckDB and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from algorithms.expressions.floats import has_nan, nearest, order_keys
from flashsim.core.errors import SchemaError, option
from flashsim.storage.texts import from_texts, parts_of, texts_of

Values = Any  #: Arrow's arrays and single values.
#: Digits of decimals, and of a product of two before it is one.
_MOST_DIGITS, _MOST_ON_THE_WAY = 38, 76
_INT64, _TEXT = pa.int64(), pa.large_string()
#: Kinds of values (`kind_of`); those of any other type are of its own.
NULL, NUMBERS, TEXTS, DAYS = "NULL", "numbers", "texts", "dates and timestamps"


@dataclass(frozen=True)
class Column:
    """The values of a column."""

    name: str


@dataclass(frozen=True)
class Literal:
    """The same value for every row."""

    value: pa.Scalar


@dataclass(frozen=True)
class FunctionCall:
    """A function of other expressions, by its name in `FUNCTIONS`."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Column | Literal | FunctionCall


def columns_of(expression: Expression) -> Iterator[str]:
    """Names of the columns that an expression reads."""
    if isinstance(expression, Column):
        yield expression.name
    elif isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from columns_of(argument)


def calls_of(expression: Expression) -> int:
    """Number of functions that an expression computes a row."""
    return 1 + sum(map(calls_of, expression.arguments)) if isinstance(expression, FunctionCall) else 0


def text_of(expression: Expression) -> str:
    """An expression as people read it.

    >>> text_of(FunctionCall("<", (Column("t.a"), Literal(pa.scalar(3)))))
    '(t.a < 3)'
    """
    if isinstance(expression, Column):
        return expression.name
    if isinstance(expression, Literal):
        value = expression.value
        is_spelled = value.is_valid and pa.types.is_temporal(value.type)
        return str(texts_of(pa.repeat(value, 1))[0] if is_spelled else value) if value.is_valid else "NULL"
    texts = [text_of(argument) for argument in expression.arguments]
    if (len(texts) == 2 and not expression.function.isidentifier()) or expression.function in ("and", "or", "like"):
        return f"({f' {expression.function} '.join(texts)})"
    return f"{expression.function}({', '.join(texts)})"


def evaluate(expression: Expression, batch: pa.RecordBatch) -> pa.Array:
    """The values of an expression for the rows of a batch, shape (rows,).

    Raises SchemaError: a column does not exist, types cannot be combined, or a result is beyond its type.
    """
    values = _values(expression, batch)
    return pa.repeat(values, batch.num_rows) if isinstance(values, pa.Scalar) else values


def type_of(expression: Expression, schema: pa.Schema) -> pa.DataType:
    """The type of an expression's values over rows of a schema."""
    return evaluate(expression, pa.RecordBatch.from_pylist([], schema)).type


def _values(expression: Expression, batch: pa.RecordBatch) -> Values:
    if isinstance(expression, Column):
        return batch.column(expression.name)
    if isinstance(expression, Literal):
        return expression.value
    arguments = [_values(argument, batch) for argument in expression.arguments]
    taken = _TAKEN.get(expression.function)
    try:
        if taken and not all(kind_of(argument.type) in (taken, NULL if taken != DAYS else taken) for argument in arguments):
            raise SchemaError(f"{expression.function} takes {taken}")
        return FUNCTIONS[expression.function](*arguments)
    except (pa.ArrowException, SchemaError) as problem:
        types = ", ".join(str(argument.type) for argument in arguments)
        reason = problem.message if isinstance(problem, SchemaError) else "a result, or a value on the way to it, is beyond its type"
        raise SchemaError(f"query: {text_of(expression)} of {types}: " + reason) from None


def kind_of(kind: pa.DataType) -> str:
    """The kind that values of a type are of: those of one kind can be compared."""
    kinds: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
        NULL: (pa.types.is_null,),
        NUMBERS: (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        TEXTS: (pa.types.is_large_string, pa.types.is_string),
        DAYS: (pa.types.is_date, pa.types.is_timestamp),
    }
    return next((name for name, tests in kinds.items() if any(test(kind) for test in tests)), str(kind))


def remedy(*kinds: pa.DataType) -> str:
    """The end of a message on types without common values: a text file's column may have another."""
    return "; " + option("types") + " COLUMN=TYPE names the type of a text file's column" if TEXTS in map(kind_of, kinds) else ""


def align(left: Values, right: Values) -> tuple[Values, Values]:
    """Two operands in a type that holds both: a number of the other's kind, or a literal text as the date, time or bytes that it spells."""
    a, b = left.type, right.type
    if a == b:
        return left, right
    if pa.types.is_null(a) or pa.types.is_null(b):
        return (left.cast(b), right) if pa.types.is_null(a) else (left, right.cast(a))
    for text, other in ((left, b), (right, a)):
        if (
            pa.types.is_large_string(text.type)
            and isinstance(text, pa.Scalar)
            and (pa.types.is_temporal(other) or pa.types.is_large_binary(other))
        ):
            spelled = from_texts(pa.repeat(text, 1), other)[0] if pa.types.is_temporal(other) else _bytes(text)
            return (spelled, right) if text is left else (left, spelled)
    if kind_of(a) == kind_of(b) == DAYS or (pa.types.is_time(a) and pa.types.is_time(b)):
        unit = pa.time64("ns") if pa.types.is_time(a) else pa.timestamp("us")
        return left.cast(unit), right.cast(unit)
    if not kind_of(a) == kind_of(b) == NUMBERS:
        raise SchemaError(f"{a} and {b} are of different kinds" + remedy(a, b))
    if pa.types.is_floating(a) or pa.types.is_floating(b):
        floats = [kind for kind in (a, b) if pa.types.is_floating(kind)]
        kind = max(floats, key=lambda each: each.bit_width)
        return _number(left, kind), _number(right, kind)
    if _is_exact(a) or _is_exact(b):
        return _decimals(left, right)
    return _number(left, pa.int64()), _number(right, pa.int64())


def _is_exact(kind: pa.DataType) -> bool:
    """True if numbers of a type are computed as decimals: int64 does not hold them."""
    return bool(pa.types.is_decimal(kind) or pa.types.is_uint64(kind))


def _bytes(text: pa.Scalar) -> pa.Scalar:
    """The bytes that a literal text spells."""
    if "\\" in (text.as_py() or "") or not (text.as_py() or "").isascii():
        raise SchemaError("bytes are compared with texts of ASCII, without a backslash")
    return text.cast(pa.large_binary())


def _number(values: Values, kind: pa.DataType) -> Values:
    values = _with_type(values, kind)
    if values.type == kind or not pa.types.is_floating(kind):
        return values if values.type == kind else values.cast(kind)
    return (nearest(values) if pa.types.is_decimal(values.type) else values).cast(kind, safe=False)


def _decimal(values: Values) -> Values:
    return values if pa.types.is_decimal(values.type) else _number(values, pa.decimal128(20 if pa.types.is_uint64(values.type) else 19, 0))


def _decimals(left: Values, right: Values) -> tuple[Values, Values]:
    """Exact decimals of one type."""
    left, right = _decimal(left), _decimal(right)
    scale = max(left.type.scale, right.type.scale)
    digits = max(each.type.precision - each.type.scale for each in (left, right)) + scale
    if digits > _MOST_ON_THE_WAY:
        raise SchemaError(f"both take decimals of {digits} digits, which have {_MOST_ON_THE_WAY}")
    kind = pa.decimal128(digits, scale) if digits <= _MOST_DIGITS else pa.decimal256(digits, scale)
    return left.cast(kind), right.cast(kind)


def _with_type(values: Values, kind: pa.DataType = _INT64) -> Values:
    return values.cast(kind) if pa.types.is_null(values.type) else values


def _comparison(function: Callable[[Values, Values], Values]) -> Callable[[Values, Values], Values]:
    def compare(left: Values, right: Values) -> Values:
        left, right = map(_with_type, align(left, right))
        if pa.types.is_floating(left.type) and (has_nan(left) or has_nan(right)):
            return function(order_keys(left), order_keys(right))
        return function(left, right)

    return compare


def _arithmetic(function: Callable[[Values, Values], Values], product: bool = False) -> Callable[[Values, Values], Values]:
    """Arithmetic of integers, refused where it overflows, of exact decimals, or of floating-point numbers."""

    def compute(left: Values, right: Values) -> Values:
        if any(pa.types.is_null(each.type) for each in (left, right)):
            left, right = map(_with_type, align(left, right))
        kinds = left.type, right.type
        is_exact = any(map(_is_exact, kinds)) and not any(map(pa.types.is_floating, kinds))
        if not is_exact:
            a, b = align(left, right)
        else:
            a, b = (_decimal(left), _decimal(right)) if product else _decimals(left, right)
        if pa.types.is_integer(a.type) and not is_exact:
            return function(a.cast(pa.int64()), b.cast(pa.int64()))
        if not is_exact:
            return function(a, b)
        scale = a.type.scale + b.type.scale if product else a.type.scale
        digits = (a.type.precision + b.type.precision if product else max(a.type.precision, b.type.precision)) + 1
        if digits <= _MOST_DIGITS:
            return function(a, b)
        if scale > _MOST_DIGITS:
            raise SchemaError(f"its result has {scale} digits after the point, and decimals have {_MOST_DIGITS}")
        a, b = (each.cast(pa.decimal256(each.type.precision, each.type.scale)) for each in (a, b))
        if digits > _MOST_ON_THE_WAY:  # one of the two has a digit less, or the result too many
            a, b = _shorter(a, b)
        return function(a, b).cast(pa.decimal128(_MOST_DIGITS, scale))

    return compute


def _shorter(a: Values, b: Values) -> tuple[Values, Values]:
    """Two factors whose product Arrow computes, which has 76 digits at most: either in as many digits fewer as it has too many."""
    spare = _MOST_ON_THE_WAY - 1
    try:
        return a, b.cast(pa.decimal256(max(1, spare - a.type.precision), b.type.scale))
    except pa.ArrowInvalid:
        return a.cast(pa.decimal256(max(1, spare - b.type.precision), a.type.scale)), b


def _quotient(left: Values, right: Values) -> Values:
    """A quotient in double precision, or in single precision as sums and products with such a number are."""
    kinds = left.type, right.type
    kind = pa.float32() if pa.float32() in kinds and pa.float64() not in kinds else pa.float64()
    return pc.divide(_number(left, kind), _number(right, kind))


def _unify(values: list[Values]) -> list[Values]:
    first = values[0]
    for each in values[1:]:
        first = align(first, each)[0]
    return [align(each, first)[0] for each in values]


def _case(*arguments: Values) -> Values:
    """Conditions and values in turn, and the value otherwise."""
    values = _unify(list(arguments[1::2]) + [arguments[-1]])
    chosen = values.pop()
    for condition, value in zip(reversed(arguments[:-1:2]), reversed(values), strict=True):
        chosen = pc.if_else(pc.fill_null(_truth(condition), False), value, chosen)
    return chosen


def _negate(values: Values) -> Values:
    return FUNCTIONS["-"](pa.scalar(0, pa.int64()), values) if pa.types.is_integer(values.type) else pc.negate(_with_type(values))


def _truth(values: Values) -> Values:
    """Truth values, of numbers too: those but 0 are true."""
    if not pa.types.is_boolean(values.type) and kind_of(values.type) not in (NUMBERS, NULL):
        raise SchemaError(f"{values.type} is neither true nor false")
    return values.cast(pa.bool_())


def _like(values: Values, pattern: Values) -> Values:
    if not isinstance(pattern, pa.Scalar) or pattern.as_py() is None:
        raise SchemaError("a pattern is a literal text")
    return pc.match_like(_with_type(values, _TEXT), pattern.as_py().replace("\\", "\\\\"))


def _part(place: int) -> Callable[[Values], Values]:
    """Year, month or day of dates or timestamps, an array or a single value."""
    return lambda values: parts_of(values)[place] if isinstance(values, pa.Array) else parts_of(pa.repeat(values, 1))[place][0]


_COMPARISONS = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
#: Functions of expressions, by name.
FUNCTIONS: dict[str, Callable[..., Values]] = {
    **{name: _comparison(function) for name, function in _COMPARISONS.items()},
    "and": lambda left, right: pc.and_kleene(_truth(left), _truth(right)),
    "or": lambda left, right: pc.or_kleene(_truth(left), _truth(right)),
    "not": lambda values: pc.invert(_truth(values)),
    "is null": pc.is_null,
    "+": _arithmetic(pc.add_checked),
    "-": _arithmetic(pc.subtract_checked),
    "*": _arithmetic(pc.multiply_checked, product=True),
    "/": _quotient,
    "negate": _negate,
    "like": _like,
    "case": _case,
    "coalesce": lambda *values: pc.coalesce(*_unify(list(values))),
    "abs": lambda values: pc.abs_checked(values.cast(pa.int64()) if pa.types.is_signed_integer(values.type) else _with_type(values)),
    "lower": lambda values: pc.utf8_lower(_with_type(values, _TEXT)),
    "upper": lambda values: pc.utf8_upper(_with_type(values, _TEXT)),
    "length": lambda values: pc.utf8_length(_with_type(values, _TEXT)).cast(pa.int64()),
    **{name: _part(place) for place, name in enumerate(("year", "month", "day"))},
    "double": lambda values: _number(values, pa.float64()),
}
#: The kind that a function takes, of those that take one.
_TAKEN = {
    **dict.fromkeys(("+", "-", "*", "/", "negate", "abs", "double"), NUMBERS),
    **dict.fromkeys(("lower", "upper", "length", "like"), TEXTS),
    **dict.fromkeys(("year", "month", "day"), DAYS),
}


def true_rows(predicate: Expression, batch: pa.RecordBatch) -> pa.Array:
    """Rows for which a predicate is true, and neither false nor unknown."""
    return pc.fill_null(_truth(evaluate(predicate, batch)), False)
