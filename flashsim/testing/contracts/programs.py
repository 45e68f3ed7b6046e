"""The contract of query programs: rows do not depend on how they are cut into batches or shared among drives."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from algorithms.expressions.expression import Call, Column, Literal
from algorithms.programs.aggregation import Aggregate
from algorithms.programs.base import PROGRAMS, Operator, one_batch, through
from algorithms.programs.top_k import Order
from flashsim.testing.contract import Contract

ROWS = pa.RecordBatch.from_pydict(
    {
        "k": pa.array([None if number % 11 == 0 else number % 40 for number in range(500)], pa.int64()),
        "x": pa.array([number * 0.5 for number in range(500)]),
    }
)
BUILD = pa.RecordBatch.from_pydict({"b": pa.array([3, 5, 5, None, 77], pa.int64())})
TWICE = Call("*", (Column("k"), Literal(pa.scalar(2))))
#: Parameters of each member; those of a file of one's own are none.
PARAMETERS: dict[str, dict[str, Any]] = {
    "selection": {"predicate": Call("<", (TWICE, Literal(pa.scalar(40))))},
    "projection": {"columns": {"twice": TWICE}},
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


class ProgramContract(Contract):
    """Properties of a query program (`algorithms.programs.base`); one of a file of its own is started without parameters."""

    FAMILY = PROGRAMS

    def test_rows_do_not_depend_on_batches_and_drives(self) -> None:
        """Five hundred rows in up to 500 batches, on up to three drives whose parts are made whole."""
        expected = outcome(self.name, 1, 1)
        assert expected, "there are no rows"
        for cuts, drives in ((7, 1), (500, 1), (20, 3), (2, 2)):
            assert outcome(self.name, cuts, drives) == expected, f"other rows by {cuts} batches on {drives} drives"

    def test_work_is_counted_and_no_rows_give_no_error(self) -> None:
        operator = started(self.name)
        operator.step(ROWS)
        left = operator.finish()
        assert not left or PROGRAMS.load(self.name).BLOCKING, "BLOCKING is False, but rows are handed on after the last batch"
        work: Any = operator.work.values()
        assert all(isinstance(count, int | np.integer) and count >= 0 for count in work), "work is negative, or not whole"
        assert any(work), "no work is counted"
        nothing = list(through([started(self.name)], [ROWS.slice(0, 0)]))
        assert sum(each.num_rows for each in nothing) == 0, "rows are made of none"
