"""Every query program, and what it does beyond its memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

from algorithms.programs.base import PROGRAMS, through
from flashsim.core.errors import InvalidParameterError
from flashsim.testing.contracts.operators import ROWS, ProgramContract, outcome, start_operator
from tests.contract.members import each_of

MINE = """
import pyarrow as pa
from algorithms.programs.base import Operator

TITLE = "values of the first column, each once"
BLOCKING = True


class Distinct(Operator):
    def __init__(self, schema):
        super().__init__(pa.schema([schema.field(0)]))
        self.values = set()

    def step(self, batch):
        self.work["compare"] += batch.num_rows
        self.values |= set(batch.column(0).to_pylist())

    def finish(self):
        return pa.RecordBatch.from_arrays([pa.array(sorted(self.values, key=str), self.schema.field(0).type)], schema=self.schema)

    def whole(self):
        return Distinct(self.schema)


def start(schema):
    return Distinct(schema)
"""


@each_of(PROGRAMS)
class TestPrograms(ProgramContract):
    """Every member."""


def test_a_full_table_of_groups_is_handed_on_and_begins_anew() -> None:
    spilled = list(through([start_operator("aggregation", room=200)], [ROWS.slice(first, 50) for first in range(0, 500, 50)]))
    assert len(spilled) > 5
    assert outcome("aggregation", 10, 2, room=200) == outcome("aggregation", 1, 1)


@pytest.mark.parametrize("name", ["hash-join", "semi-join", "top-k", "partitioning"])
def test_a_table_beyond_memory_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameterError, match="memory: 1 B, but the program needs"):
        list(through([start_operator(name, room=1)], [ROWS]))


def test_a_bloom_filter_passes_few_strangers() -> None:
    build = pa.RecordBatch.from_pydict({"b": list(range(2000))})
    probe = pa.RecordBatch.from_pydict({"k": list(range(100_000))})
    operator = PROGRAMS.load("semi-join").start(probe.schema, build=build, probe="k")
    passed = operator.step(probe)
    assert passed is not None and 2000 <= passed.num_rows < 2000 + 0.03 * 98_000
    whole = operator.whole()
    assert whole is not None and whole.step(passed).column(0).to_pylist() == list(range(2000))  # type: ignore[union-attr]
