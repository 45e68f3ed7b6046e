"""Functions and aggregates of every type, and of every two: DuckDB's value, or one line in flashsim's own words."""

from __future__ import annotations

import datetime
import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from algorithms.expressions.expression import Column, evaluate
from flashsim.apps.smart.plans import StoredTable, run
from flashsim.apps.smart.scalars import scalar
from flashsim.apps.smart.sql import plan_of
from flashsim.core.errors import FlashsimError
from flashsim.storage.source.base import TableRecords

#: Values of each type: ordinary ones, and the least and the greatest.
VALUES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    **{
        f"{sign}int{bits}": (
            pa.type_for_alias(f"{sign}int{bits}"),
            [1, 3],
            [int(np.iinfo(f"{sign}int{bits}").min), int(np.iinfo(f"{sign}int{bits}").max)],
        )
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "float32": (pa.float32(), [1.5, 3.0], [float(np.finfo(np.float32).max), math.nan]),
    "float64": (pa.float64(), [2.5, 3.0], [1.7e308, math.nan]),
    "decimal15": (pa.decimal128(15, 2), [Decimal("3.25"), Decimal(3)], [Decimal("-9999999999999.99"), Decimal("9999999999999.99")]),
    "decimal38": (pa.decimal128(38, 4), [Decimal("3.2500"), Decimal(3)], [Decimal("-" + "9" * 34 + ".9999"), Decimal("9" * 34 + ".9999")]),
    "date32": (pa.date32(), [datetime.date(2020, 2, 29), datetime.date(1, 1, 1)], [datetime.date(9999, 12, 31), datetime.date(1970, 1, 1)]),
    "timestamp": (pa.timestamp("us"), [datetime.datetime(2020, 2, 29), datetime.datetime(1, 1, 1)], [datetime.datetime(9999, 1, 1), None]),
    "string": (pa.large_string(), ["3", "ab"], ["", "äöü"]),
    "binary": (pa.large_binary(), [b"ab", b"3"], [b"", b"\xff"]),
    "bool": (pa.bool_(), [True, False], [True, False]),
    "null": (pa.null(), [None, None], [None, None]),
}  # fmt: skip
TYPES = list(VALUES)
EXACT: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
#: What no message of flashsim's says.
FOREIGN = re.compile(r"arrow|kernel|matching input|failed to|cast|rescal|does not fit|precision|NotImplemented", re.IGNORECASE)


@cache
def rows() -> pa.RecordBatch:
    """Of every type a column for each side: ordinary values, those beside NULL, and the extremes beside each other."""
    columns = {}
    for name, (kind, usual, extremes) in VALUES.items():
        columns[f"{name}_a"] = pa.array([usual[0], usual[1], usual[0], None, *(each for each in extremes for _ in range(2))], kind)
        columns[f"{name}_b"] = pa.array([usual[0], usual[1], None, usual[0], *extremes * 2], kind)
    return pa.RecordBatch.from_pydict(columns)


@cache
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("arrow", pa.table(rows()))
    connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    return connection


def ours(expression: str, batch: pa.RecordBatch) -> list[Any] | str:
    """Values, or the message of a refusal."""
    try:
        parsed = sqlglot.parse_one(expression, dialect="duckdb")
        bound = scalar(parsed, _column)
        return list(evaluate(bound, batch).to_pylist())
    except FlashsimError as problem:
        return own_words(str(problem))


def _column(node: sqlglot.exp.Expression) -> Column | None:
    return Column(node.name) if isinstance(node, sqlglot.exp.Column) else None


def own_words(message: str) -> str:
    """A message that is one line, and flashsim's."""
    assert not FOREIGN.search(message) and len(message.splitlines()) == 1, message
    return message


def same(left: Any, right: Any, single: bool) -> bool:
    """Equal as SQL values; numbers by value, and of single precision in that."""
    if left is None or right is None:
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        with np.errstate(over="ignore"):
            numbers = (np.float32(left), np.float32(right)) if single else (float(left), float(right))
        return bool(np.isclose(*numbers, rtol=1e-6 if single else 1e-14, atol=0, equal_nan=True))
    return bool(left == right)


def check(expression: str, exact: Callable[[int], Any] | None = None) -> bool:
    """Whether an expression is answered at all: then each row is DuckDB's, or, where DuckDB refuses one, the exact number."""
    found = ours(expression, rows())
    each_row = found if isinstance(found, list) else [ours(expression, rows().slice(row, 1)) for row in range(len(rows()))]
    if all(isinstance(value, str) and value.startswith("query: ") for value in each_row):
        return False
    try:
        wanted = [value for (value,) in oracle().execute(f"SELECT TRY({expression}) FROM t ORDER BY rowid").fetchall()]
    except duckdb.BinderException as problem:
        raise AssertionError(f"{expression} is {found}, but DuckDB has none: {problem}") from None
    for row, (value, other) in enumerate(zip(each_row, wanted, strict=True)):
        if isinstance(found, str):
            if isinstance(value, str) and value.startswith("query: "):
                continue  # refused, and so the whole
            (value,) = value
        if other is None and value is not None and exact:
            other = exact(row)
        assert same(value, other, "float32" in expression), f"{expression}, row {row}: {value}, but {other}"
    return True


def exact_number(function: str, left: str, right: str) -> Callable[[int], Any] | None:
    """The exact result of integers and decimals in some row, where DuckDB's type of the result is too narrow for it."""

    def compute(row: int) -> Any:
        with localcontext(prec=100):
            sides = [rows().column(name)[row].as_py() if name.isidentifier() else name for name in (left, right)]
            return EXACT[function](*map(Decimal, sides))

    numbers = all(name.startswith(("int", "uint", "decimal")) or not name.isidentifier() for name in (left, right))
    return compute if numbers and function in EXACT else None


#: All pairs of types in so many parts, of which the default tier takes one.
PARTS = 11
#: Types whose values can be computed with; what else is not of one kind may be refused.
NUMBERS = [name for name in TYPES if name.startswith(("int", "uint", "float", "decimal"))]


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.deep) for part in range(1, PARTS))])
@pytest.mark.parametrize("function", ["=", "<", "+", "-", "*", "/"])
def test_functions_of_two_types(function: str, part: int) -> None:
    for left, right in list(product(TYPES, repeat=2))[part::PARTS]:
        expression = f"{left}_a {function} {right}_b"
        answered = check(expression, exact_number(function, f"{left}_a", f"{right}_b"))
        alike = left == right or {left, right} <= {*NUMBERS} or "null" in (left, right) or {left, right} == {"date32", "timestamp"}
        must = alike if function in ("=", "<") else {left, right} <= {*NUMBERS, "null"}
        assert answered or not must, f"{expression}: {ours(expression, rows().slice(0, 1))}"


@pytest.mark.parametrize("function", ["+", "-", "*", "/"])
def test_a_float_and_any_number_are_computed_as_precisely_as_by_duckdb(function: str) -> None:
    """FLOAT with integers and decimals gives FLOAT, with DOUBLE it gives DOUBLE: the same type, and the same bits."""
    draw = np.random.default_rng(5)
    columns = {
        "f": pa.array((draw.normal(size=40) * 10.0 ** draw.integers(-3, 9, 40)).astype(np.float32)),
        "x": pa.array(draw.normal(size=40)),
    }
    for name in NUMBERS:
        if "int" in name:
            bounds = np.iinfo(name)
            columns[name] = pa.array(draw.integers(max(1, bounds.min), bounds.max, 40, dtype=name, endpoint=True))
    for digits, scale in ((4, 1), (15, 2), (38, 4)):
        numbers = [Decimal(int(each)).scaleb(-scale) for each in draw.integers(1, 10 ** min(digits, 18), 40)]
        columns[f"decimal{digits}"] = pa.array(numbers, pa.decimal128(digits, scale))
    batch = pa.RecordBatch.from_pydict(columns)
    with duckdb.connect() as connection:
        connection.register("arrow", pa.table(batch))
        connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
        for other in (*columns, "16777217", "0.1", "1e0"):
            for expression in (f"f {function} {other}", f"{other} {function} f"):
                bound = scalar(sqlglot.parse_one(expression, dialect="duckdb"), _column)
                found = evaluate(bound, batch)
                wanted = connection.execute(f"SELECT typeof({expression}), ({expression})::DOUBLE FROM t ORDER BY rowid").fetchall()
                assert {"float": "FLOAT", "double": "DOUBLE"}[str(found.type)] == wanted[0][0], expression
                assert found.cast(pa.float64()).to_pylist() == [value for _, value in wanted], expression


@pytest.mark.parametrize("function", ["abs", "length", "-", "upper", "year", "NOT"])
def test_functions_of_a_type(function: str) -> None:
    takes = {"length": ["string"], "upper": ["string"], "year": ["date32", "timestamp"], "NOT": ["bool"]}.get(function, NUMBERS)
    for name in TYPES:
        answered = check(f"{function}({name}_a)", lambda row, name=name: abs(rows().column(f"{name}_a")[row].as_py()) if function == "abs"
                         else -rows().column(f"{name}_a")[row].as_py())  # fmt: skip
        assert answered or name not in takes, f"{function} of {name}"


@pytest.mark.parametrize(
    "expression",
    [
        "NULL = NULL", "NULL < 3", "NULL + 1", "NULL * NULL", "-NULL", "abs(NULL)", "length(NULL)", "upper(NULL)", "NOT NULL",
        "NULL AND TRUE",
        "NULL IN (1, 2)", "coalesce(NULL, NULL)", "coalesce(NULL, null_a, 'x')", "CASE WHEN NULL THEN 1 END", "null_a = null_b",
        "null_a IS NULL",
        "null_a LIKE 'a%'", "binary_a = 'ab'", "binary_a < 'b'", "'ab' = binary_a", "binary_a IN ('ab', '3')", "uint64_a * int8_b",
        "uint64_a * 3", "decimal38_a * decimal38_b", "decimal38_a * 2", "decimal38_a * 0.5", "abs(int16_a)", "abs(int32_a)",
    ],
)  # fmt: skip
def test_what_duckdb_answers_is_answered(expression: str) -> None:
    name = re.sub(r"abs\(|_a\)", "", expression)
    assert check(
        expression, (lambda row: abs(rows().column(f"{name}_a")[row].as_py())) if "abs(int" in expression else _product(expression)
    )


def _product(expression: str) -> Callable[[int], Any] | None:
    left, _, right = expression.partition(" * ")
    return exact_number("*", left, right) if right and left != "NULL" else None


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("length(date32_a)", "length(date32_a) of date32[day]: length takes texts"),
        ("string_a + 1", "+ takes numbers"),
        ("date32_a - date32_b", "- takes numbers"),
        ("binary_a = 'ä'", "bytes are compared with texts of ASCII"),
        ("string_a = 3", "large_string and int64 are of different kinds; --types COLUMN=TYPE names the type of a text file's column"),
        ("bool_a = 1", "bool and int64 are of different kinds"),
        ("coalesce(string_a, 1)", "are of different kinds"),
        ("string_a AND bool_a", "large_string is neither true nor false"),
        ("abs(int64_a)", "a result, or a value on the way to it, is beyond its type"),
        ("decimal38_a + decimal38_b", "a result, or a value on the way to it, is beyond its type"),
        ("date32_a = 'today'", "'today' is not a value of type date32[day]"),
        ("string_a LIKE string_b", "a pattern is a literal text"),
    ],
)
def test_refusals_are_in_flashsims_own_words(expression: str, message: str) -> None:
    found = ours(expression, rows())
    assert isinstance(found, str) and message in found, found


@pytest.mark.parametrize("function", ["count", "sum", "avg", "min", "max"])
@pytest.mark.parametrize("name", TYPES)
def test_aggregates_of_a_type(name: str, function: str) -> None:
    """Of all values, of no rows, and by group, of which one has but NULL; and a group that is NULL."""
    kind, usual, extremes = VALUES[name]
    table = pa.table({"g": [1, 1, 1, 2, None, 3, 3], "v": pa.array([*usual, None, None, usual[1], *extremes], kind)})
    stored = StoredTable.of("t", TableRecords("t", table), 8192, "pax")
    with duckdb.connect() as connection:
        connection.register("t", table)
        for rest in ("", " WHERE g > 5", " WHERE g < 3", " WHERE g = 2"):
            for query in (f"SELECT {function}(v) AS x FROM t{rest}", f"SELECT g, {function}(v) AS x FROM t{rest} GROUP BY g ORDER BY g"):
                plan = plan_of(query, {"t": stored.schema})
                refusal = ""
                try:
                    found = [tuple(row.values()) for row in run(plan, {"t": stored}, 0).rows.to_pylist()]
                except FlashsimError as problem:
                    refusal = own_words(str(problem))
                if refusal:
                    assert name not in NUMBERS, refusal
                    continue
                wanted = connection.execute(query).fetchall()
                assert len(found) == len(wanted)
                for row, other in zip(found, wanted, strict=True):
                    assert all(same(*pair, name == "float32") for pair in zip(row, other, strict=True)), f"{query}: {found}, but {wanted}"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t ORDER BY n, id", "SELECT n, count(*) AS c FROM t GROUP BY n", "SELECT t.id FROM t JOIN u ON t.n = u.n",
        "SELECT t.id FROM t JOIN u ON t.n = u.id", "SELECT id FROM t WHERE n IN (SELECT id FROM u)", "SELECT DISTINCT n FROM t",
        "SELECT id FROM t WHERE n = 1 OR n = 'x' OR n < DATE '2020-01-01' OR id = 1", "SELECT id FROM t WHERE NULL",
        "SELECT id FROM t WHERE n",
        "SELECT count(n) AS c, max(n) AS m, sum(n) AS s FROM t", "SELECT id FROM t WHERE NOT n IS NULL OR length(n) > 1 OR n LIKE 'a%'",
    ],
)  # fmt: skip
def test_columns_without_a_type(query: str) -> None:
    """Such as an empty one of a text file."""
    tables = {name: pa.table({"id": [1, 2, 3], "n": pa.nulls(3)}) for name in "tu"}
    stored = {name: StoredTable.of(name, TableRecords(name, table), 8192, "pax") for name, table in tables.items()}
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        plan = plan_of(query, {name: table.schema for name, table in stored.items()})
        for stages in range(plan.most_pushed + 1):
            found = sorted(map(repr, (tuple(row.values()) for row in run(plan, stored, stages).rows.to_pylist())))
            assert found == sorted(map(repr, connection.execute(query).fetchall()))
