"""Tables with NULL, NaN and texts beyond ASCII, queries drawn over them, and the comparison of their rows."""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa


def _with_nulls(rng: np.random.Generator, values: Any, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, kind, mask=rng.random(len(values)) < 0.1)


def _table(seed: int, rows: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    real = np.round(rng.normal(size=rows), 2)
    real[rng.random(rows) < 0.03] = -0.0
    day = rng.integers(8000, 8200, rows).astype("M8[D]")
    return pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "small": _with_nulls(rng, rng.integers(-5, 30, rows), pa.int32()),
            "large": _with_nulls(rng, rng.integers(-(1 << 62), 1 << 62, rows)),
            "tiny": pa.array(rng.integers(0, 5, rows), pa.uint8()),
            "real": _with_nulls(rng, real),
            "word": _with_nulls(rng, np.array(["a", "ab", "äöü", "zebra", "", "A"])[rng.integers(0, 6, rows)].tolist(), pa.string()),
            "day": _with_nulls(rng, day),
            "moment": _with_nulls(rng, day.astype("M8[us]") + rng.integers(0, 86400, rows).astype("m8[s]")),
            "price": _with_nulls(rng, [Decimal(int(each)).scaleb(-2) for each in rng.integers(-50000, 50000, rows)], pa.decimal128(15, 2)),
            "flag": _with_nulls(rng, (rng.random(rows) < 0.5).tolist(), pa.bool_()),
        }
    )


def _rare(rows: int) -> pa.Table:
    """Types that few tables have."""
    rng = np.random.default_rng(4)
    precise = [Decimal(int(each)).scaleb(-10) for each in rng.integers(-(10**12), 10**12, rows)]
    return pa.table(
        {
            "single": _with_nulls(rng, np.round(rng.random(rows), 1).astype(np.float32)),
            "huge": _with_nulls(rng, rng.integers(0, 1 << 64, rows, np.uint64), pa.uint64()),
            "short": _with_nulls(rng, rng.integers(-5, 6, rows).astype(np.int16)),
            "clock": _with_nulls(rng, rng.integers(0, 24, rows) * 3600 * 10**6, pa.time64("us")),
            "blob": _with_nulls(rng, [bytes([each, 0, 255]) for each in rng.integers(0, 9, rows)], pa.binary()),
            "zoned": _with_nulls(rng, rng.integers(0, 10**15, rows), pa.timestamp("us")),
            "precise": _with_nulls(rng, precise, pa.decimal128(20, 10)),
            "nothing": pa.nulls(rows, pa.int32()),
        }
    )


#: A large table, a small one, one without rows, and one of other types.
TABLES = {"t": _table(1, 1000), "u": _table(2, 60), "nothing": _table(3, 0), "rare": _rare(700)}

NUMBERS = ("id", "small", "tiny", "real", "price", "large")
LITERALS = {
    "id": lambda rng: str(rng.randrange(1000)),
    "small": lambda rng: rng.choice([str(rng.randrange(-6, 31)), "2.5", "NULL"]),
    "large": lambda rng: str(rng.randrange(-(1 << 62), 1 << 62)),
    "tiny": lambda rng: str(rng.randrange(-1, 6)),
    "real": lambda rng: rng.choice([f"{rng.gauss(0, 1):.2f}", "0", "1e0", "-0.5"]),
    "word": lambda rng: rng.choice(["'a'", "'zebra'", "'äöü'", "''", "'B'"]),
    "day": lambda rng: rng.choice([f"DATE '1992-0{rng.randrange(1, 6)}-11'", "'1992-03-01'", "DATE '1992-05-01' - INTERVAL '30' DAY"]),
    "moment": lambda rng: f"TIMESTAMP '1992-0{rng.randrange(1, 6)}-11 10:00:00'",
    "price": lambda rng: rng.choice(["0.05", "17", "-250.50", "3e1", "100.125"]),
}


def condition(rng: random.Random, prefix: str, depth: int = 2) -> str:
    if depth and rng.random() < 0.45:
        parts = [condition(rng, prefix, depth - 1) for _ in range(2)]
        return rng.choice([f"({parts[0]} AND {parts[1]})", f"({parts[0]} OR {parts[1]})", f"NOT ({parts[0]})"])
    column = rng.choice(list(LITERALS))
    name, value = f"{prefix}{column}", LITERALS[column]
    forms = [f"{name} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {value(rng)}"] * 4
    forms += [f"{name} IS NULL", f"{name} IS NOT NULL", f"{name} BETWEEN {value(rng)} AND {value(rng)}"]
    forms += [f"{name} IN ({value(rng)}, {value(rng)})", f"{name} NOT IN ({value(rng)}, {value(rng)})"]
    forms += [
        f"{prefix}word {rng.choice(['LIKE', 'NOT LIKE'])} '{rng.choice(['%a%', 'a_', 'ä%', '%'])}'",
        f"{prefix}flag",
        f"NOT {prefix}flag",
    ]
    forms += [f"{prefix}small * 2 > {prefix}tiny", f"{prefix}price / 4 < {prefix}real", f"{prefix}small = {prefix}tiny"]
    return rng.choice(forms)


def value(rng: random.Random, prefix: str) -> str:
    column = prefix + rng.choice([*LITERALS, "flag"])
    numbers = [
        f"{prefix}small + {prefix}tiny",
        f"{prefix}price * (1 - {prefix}small)",
        f"-{prefix}small",
        f"{prefix}real * 2",
        f"abs({prefix}price)",
    ]
    others = [f"upper({prefix}word)", f"length({prefix}word)", f"year({prefix}day)", f"coalesce({prefix}small, {prefix}tiny, 0)"]
    cases = [f"CASE WHEN {condition(rng, prefix, 1)} THEN {prefix}small ELSE 0 END", f"{prefix}price / {prefix}tiny"]
    return rng.choice([column, column, *numbers, *others, *cases])


def aggregate(rng: random.Random, prefix: str) -> str:
    function = rng.choice(["count", "sum", "avg", "min", "max"])
    if function in ("sum", "avg"):
        return f"{function}({prefix}{rng.choice(NUMBERS)})"
    return rng.choice([f"{function}({prefix}{rng.choice(list(LITERALS))})", "count(*)", f"sum({prefix}price * {prefix}tiny)"])


def drawn_join(rng: random.Random) -> str:
    """A query over two tables, of which one may be empty."""
    small = rng.choice(["u"] * 5 + ["nothing"])
    left, right = rng.choice([("small", "small"), ("word", "word"), ("day", "day"), ("real", "real"), ("small", "tiny"), ("price", "tiny")])
    where = f" WHERE {condition(rng, 't.', 1)} AND {condition(rng, 'o.', 1)}"
    form = rng.random()
    if form < 0.3:
        return f"SELECT t.id, {value(rng, 't.')} AS c FROM t WHERE {left} IN (SELECT {right} FROM {small} o)"
    if form < 0.5:
        return f"SELECT count(*) AS n, {aggregate(rng, 't.')} AS a FROM t SEMI JOIN {small} o ON t.{left} = o.{right} AND o.tiny < 3"
    source = rng.choice([f"t JOIN {small} o ON t.{left} = o.{right}", f"{small} AS o JOIN t ON o.{right} = t.{left} AND o.id < t.id"])
    if form < 0.75:
        return f"SELECT t.id, o.id AS other, {value(rng, 'o.')} AS c FROM {source}{where}"
    return f"SELECT t.tiny, {aggregate(rng, 'o.')} AS a, {aggregate(rng, 't.')} AS b FROM {source}{where} GROUP BY t.tiny"


def drawn_query(rng: random.Random) -> str:
    """A query of the language."""
    if rng.random() < 0.2:
        return drawn_join(rng)
    table = rng.choice(["t"] * 8 + ["u", "nothing"])
    where = f" WHERE {condition(rng, '')}" if rng.random() < 0.8 else ""
    form = rng.random()
    if form < 0.35:
        return f"SELECT {', '.join(value(rng, '') + f' AS c{number}' for number in range(rng.randrange(1, 4)))} FROM {table}{where}"
    if form < 0.6:
        return f"SELECT {', '.join(aggregate(rng, '') + f' AS a{number}' for number in range(rng.randrange(1, 4)))} FROM {table}{where}"
    if form < 0.85:
        keys = rng.sample(["small", "tiny", "word", "day", "flag", "real", "year(day)"], rng.randrange(1, 3))
        having = f" HAVING {rng.choice(['count(*) > 5', 'min(small) < 0', 'sum(tiny) > 10'])}" if rng.random() < 0.3 else ""
        items = [*keys, *(aggregate(rng, "") + f" AS a{number}" for number in range(rng.randrange(1, 3)))]
        return f"SELECT {', '.join(items)} FROM {table}{where} GROUP BY {', '.join(keys)}{having}"
    if form < 0.9:
        return f"SELECT DISTINCT word, tiny FROM {table}{where}"
    order = ", ".join(f"{rng.choice(list(LITERALS))}{rng.choice(['', ' DESC', ' DESC NULLS FIRST'])}" for _ in range(2))
    limit = rng.randrange(0, 30)
    return f"SELECT id, {value(rng, '')} AS c FROM {table}{where} ORDER BY {order}, id LIMIT {limit} OFFSET {rng.randrange(0, 3)}"


def _plain(value: Any) -> Any:
    """A value that can be compared: floating-point numbers to ten digits, all numbers that are whole alike."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.10g}") + 0.0
    return value


def same_rows(query: str, rows: pa.RecordBatch, expected: list[tuple[Any, ...]]) -> str:
    """Rows that are missing or too many, in words; empty if there are none."""
    table = [tuple(map(_plain, row)) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]
    wanted = [tuple(map(_plain, row)) for row in expected]
    if "ORDER BY" in query:
        return "" if table == wanted else f"{table[:5]} instead of {wanted[:5]}"
    missing, further = Counter(wanted) - Counter(table), Counter(table) - Counter(wanted)
    return f"missing {list(missing)[:3]}, further {list(further)[:3]}" if missing or further else ""
