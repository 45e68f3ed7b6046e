"""Expressions of SQL as `algorithms.expressions` has them."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import ErrorLevel, exp
from sqlglot.optimizer.simplify import simplify

from algorithms.expressions.expression import Expression, FunctionCall, Literal
from flashsim.core.errors import FlashsimError, SchemaError, shorten
from flashsim.storage.texts import from_texts

LANGUAGE = (
    "SELECT of columns, expressions and aggregates FROM a table, [SEMI] JOIN ... ON equality, WHERE (also IN (SELECT column ...)), "
    "GROUP BY, HAVING, ORDER BY, LIMIT"
)
_COMPARISONS: dict[type[exp.Expression], str] = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_ARITHMETIC: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Neg: "negate"}
_SAME_NAMES = ("not", "abs", "lower", "upper", "length", "year", "month", "day", "like")
#: Classes of functions with as many arguments as the class has, by their names here.
_CALLS = {**_COMPARISONS, **_ARITHMETIC, **{getattr(exp, name.title()): name for name in _SAME_NAMES}}
_PARTS = ("year", "month", "day")
#: Parts of a node that `scalar` understands; `safe` and `typed` say how other dialects divide.
_UNDERSTOOD = {"this", "expression", "expressions", "low", "high", "ifs", "true", "default", "to", "is_string", "safe", "typed"}
_MOST_DIGITS = 38

Resolve = Callable[[exp.Expression], Expression | None]


def unsupported_error(node: exp.Expression) -> FlashsimError:
    """The error for what is outside the language."""
    text = shorten(node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE) or node.key.upper())
    return FlashsimError(f"query: {text!r} is not supported; supported: {LANGUAGE}")


def scalar(node: exp.Expression, resolve: Resolve) -> Expression:
    """An expression; `resolve` gives that of a node that stands for a column, or for something computed before, and None of others."""
    known = resolve(node)
    if known is not None:
        return known
    if node.args.get("negate"):  # NOT LIKE and its like
        positive = node.copy()
        positive.set("negate", None)
        return FunctionCall("not", (scalar(positive, resolve),))
    if isinstance(node, exp.TryCast) or any(value for part, value in node.args.items() if part not in _UNDERSTOOD):
        raise unsupported_error(node)
    if isinstance(node, exp.Paren):
        return scalar(node.this, resolve)
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
        node = simplify(node.copy(), dialect="duckdb")  # a date
    if (literal := _literal(node)) is not None:
        return Literal(literal)
    if isinstance(node, exp.Is):
        if not isinstance(node.expression, exp.Null):
            raise unsupported_error(node)
        return FunctionCall("is null", (scalar(node.this, resolve),))
    if isinstance(node, exp.Between):
        bounds = [(">=", node.args["low"]), ("<=", node.args["high"])]
        return FunctionCall(
            "and", tuple(FunctionCall(name, (scalar(node.this, resolve), scalar(bound, resolve))) for name, bound in bounds)
        )
    if isinstance(node, exp.In) and node.expressions:
        return join_conditions("or", [FunctionCall("=", (scalar(node.this, resolve), scalar(each, resolve))) for each in node.expressions])
    if isinstance(node, exp.And | exp.Or):
        parts: Iterable[Any] = node.flatten()
        return join_conditions(node.key, [scalar(each, resolve) for each in parts])
    if isinstance(node, exp.Case):
        whens = [exp.EQ(this=node.this, expression=each.this) if node.this else each.this for each in node.args["ifs"]]
        parts = [scalar(part, resolve) for when, each in zip(whens, node.args["ifs"], strict=True) for part in (when, each.args["true"])]
        return FunctionCall("case", (*parts, scalar(node.args.get("default") or exp.Null(), resolve)))
    if isinstance(node, exp.Coalesce):
        return FunctionCall("coalesce", tuple(scalar(each, resolve) for each in (node.this, *node.expressions)))
    if isinstance(node, exp.Extract) and node.this.name.lower() in _PARTS:
        return FunctionCall(node.this.name.lower(), (scalar(node.expression, resolve),))
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.DOUBLE):
        return FunctionCall("double", (scalar(node.this, resolve),))
    function = _CALLS.get(type(node))
    if function is None:
        raise unsupported_error(node)
    return FunctionCall(
        function, tuple(scalar(each, resolve) for each in (node.args.get("this"), node.args.get("expression")) if each is not None)
    )


def join_conditions(by: str, conditions: list[Expression]) -> Expression:
    """Conditions joined by ``and`` or ``or``, halves first, so that a long list is no deep tree."""
    half = len(conditions) // 2
    return FunctionCall(by, (join_conditions(by, conditions[:half]), join_conditions(by, conditions[half:]))) if half else conditions[0]


def _literal(node: exp.Expression) -> pa.Scalar | None:
    if isinstance(node, exp.Null):
        return pa.scalar(None)
    if isinstance(node, exp.Boolean):
        return pa.scalar(bool(node.this))
    if isinstance(node, exp.Literal):
        try:
            return pa.scalar(node.this, pa.large_string()) if node.is_string else _number(node.this)
        except (ValueError, ArithmeticError):  # no number of Python's, or one of thousands of digits
            raise unsupported_error(node) from None
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        names = exp.DataType.Type
        kinds = {names.DATE: pa.date32(), names.TIMESTAMP: pa.timestamp("us"), names.TIMESTAMPNTZ: pa.timestamp("us")}
        if (kind := kinds.get(node.to.this)) is not None:
            try:
                return from_texts(pa.array([node.this.this]), kind)[0]
            except SchemaError as problem:
                raise SchemaError(f"query: {shorten(node.sql(dialect='duckdb'))}: " + problem.message) from None
    return None


def _number(text: str) -> pa.Scalar:
    if "e" in text.lower():
        return pa.scalar(float(text))
    if "." not in text and int(text) < 1 << 63:
        return pa.scalar(int(text), pa.int64())
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    precision = max(len(digits), -int(exponent))
    return pa.scalar(value, pa.decimal128(precision, -int(exponent))) if precision <= _MOST_DIGITS else pa.scalar(float(text))


def conjuncts(node: exp.Expression | None) -> list[exp.Expression]:
    """Conditions that all must hold."""
    if node is None:
        return []
    bare: Any = node.unnest()
    parts: Iterable[Any] = bare.flatten() if isinstance(bare, exp.And) else ()
    return [each for part in parts for each in conjuncts(part)] or [bare]
