"""Every query program: its rows do not depend on how they are cut into batches or shared among drives, and memory has a bound."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from algorithms.expressions.expression import Call, Column, Literal
from algorithms.programs.aggregation import Aggregate
from algorithms.programs.base import PROGRAMS, Operator, one_batch, through
from algorithms.programs.top_k import Order
from flashsim.core.errors import InvalidParameterError

ROWS = pa.RecordBatch.from_pydict(
    {
        "k": pa.array([None if number % 11 == 0 else number % 40 for number in range(500)], pa.int64()),
        "x": pa.array([number * 0.5 for number in range(500)]),
    }
)
BUILD = pa.RecordBatch.from_pydict({"b": pa.array([3, 5, 5, None, 77], pa.int64())})
PREDICATE = Call("<", (Column("k"), Literal(pa.scalar(20))))
#: Parameters of each member; those of a file of one's own are none.
PARAMETERS: dict[str, dict[str, Any]] = {
    "selection": {"predicate": PREDICATE},
    "projection": {"columns": {"twice": Call("*", (Column("k"), Literal(pa.scalar(2))))}},
    "aggregation": {"keys": ["k"], "aggregates": [Aggregate("sum", "k", "s"), Aggregate("max", "x", "m"), Aggregate("count", None, "c")]},
    "top-k": {"orders": [Order("x", descending=True)], "limit": 7},
    "hash-join": {"build": BUILD, "probe": "k", "key": "b"},
    "semi-join": {"build": BUILD, "probe": "k"},
    "partitioning": {"by": "k", "parts": "4", "block": "16"},
}


def started(name: str, **more: int) -> Operator:
    return PROGRAMS.load(name).start(ROWS.schema, **PARAMETERS.get(name, {}), **more)


def outcome(name: str, cuts: int, drives: int, **more: int) -> Counter[tuple[Any, ...]]:
    """The rows of a program over batches that are dealt to drives."""
    size = -(-ROWS.num_rows // cuts)
    batches = [ROWS.slice(first, size) for first in range(0, ROWS.num_rows, size)]
    parts: list[pa.RecordBatch] = []
    for drive in range(drives):
        operator = started(name, **more)
        parts += through([operator], batches[drive::drives])
    whole = operator.whole()
    rows = one_batch((whole or operator).schema, through([whole], parts) if whole else parts)
    return Counter(tuple(row.values()) for row in rows.to_pylist())


@pytest.mark.parametrize("name", PROGRAMS.names())
def test_rows_do_not_depend_on_batches_and_drives(name: str) -> None:
    expected = outcome(name, 1, 1)
    assert expected
    for cuts, drives in ((7, 1), (500, 1), (20, 3), (2, 2)):
        assert outcome(name, cuts, drives) == expected


@pytest.mark.parametrize("name", PROGRAMS.names())
def test_work_is_counted_and_no_rows_give_no_error(name: str) -> None:
    operator = started(name)
    list(through([operator], [ROWS]))
    assert all(count >= 0 for count in operator.work.values())
    nothing = list(through([started(name)], [ROWS.slice(0, 0)]))
    assert sum(each.num_rows for each in nothing) == 0


def test_a_full_table_of_groups_is_handed_on_and_begins_anew() -> None:
    spilled = list(through([started("aggregation", room=200)], [ROWS.slice(first, 50) for first in range(0, 500, 50)]))
    assert len(spilled) > 5
    assert outcome("aggregation", 10, 2, room=200) == outcome("aggregation", 1, 1)


@pytest.mark.parametrize("name", ["hash-join", "semi-join", "top-k", "partitioning"])
def test_a_table_beyond_memory_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameterError, match="memory: 1 B, but the program needs"):
        list(through([started(name, room=1)], [ROWS]))


def test_a_bloom_filter_passes_few_strangers() -> None:
    build = pa.RecordBatch.from_pydict({"b": list(range(2000))})
    probe = pa.RecordBatch.from_pydict({"k": list(range(100_000))})
    operator = PROGRAMS.load("semi-join").start(probe.schema, build=build, probe="k")
    passed = operator.step(probe)
    assert passed is not None and 2000 <= passed.num_rows < 2000 + 0.03 * 98_000
    whole = operator.whole()
    assert whole is not None and whole.step(passed).column(0).to_pylist() == list(range(2000))  # type: ignore[union-attr]
