"""Contract of query programs: a program is one operator, which takes batches of rows and hands rows on.

A member's ``start`` makes an `Operator` for rows of a schema.  The same operator runs on the host and inside a drive; it counts its work by
kind (`flashsim.execution.requests.Work`), which the place prices.  Of an operator that ends a drive's part, `whole` makes one result of the
parts of several drives, on the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from flashsim.core.errors import FlashsimError, InvalidParameterError, in_one_line
from flashsim.core.members import Family
from flashsim.core.units import MIB


class Operator:
    """An operator at work, which hands on rows of a schema; a subclass defines `step`, and those of the others that it needs."""

    memory = 0  #: Largest memory so far, bytes.
    program = ""  #: Name of its program in messages.

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.work: Counter[str] = Counter()

    def step(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Take a batch; hand on rows, or None."""
        raise NotImplementedError

    def finish(self) -> pa.RecordBatch | None:
        """Hand on the rows that are left after the last batch."""
        return None

    def whole(self) -> Operator | None:
        """The operator that makes one result of parts, wherever these come from; None: they are the result, one after another."""
        return None

    def use(self, memory: int, room: int) -> None:
        """Note memory in use, bytes, of which there is so much room."""
        self.memory = max(self.memory, memory)
        if memory > room:
            raise InvalidParameterError("memory", f"{room} B", f"the program needs {memory} B for its table")


class Program(Protocol):
    """A member's module."""

    TITLE: str
    BLOCKING: bool = False  #: True if rows are handed on after the last batch: inside a drive, nothing follows it.
    #: Makes an `Operator`, given the schema of the rows that it takes, and its parameters by name: of a member's own kinds where a query
    #: gives them; where a user does, whole numbers if the annotation has ``int``, and else texts.
    start: Callable[..., Operator]


PROGRAMS = Family("algorithms.programs", "query program", Program)
ROOM = 256 * MIB  #: Memory of a program without a bound of its own, bytes.


def through(operators: list[Operator], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of batches behind operators; those that the last batch leaves follow at the end."""
    for batch in batches:
        if (rows := push(operators, batch)) is not None:
            yield rows
    yield from finish(operators)


def push(operators: list[Operator], batch: pa.RecordBatch | None) -> pa.RecordBatch | None:
    """A batch behind operators; None if nothing is handed on."""
    for operator in operators:
        if batch is None:
            return None
        batch = handed_on(operator, operator.step, batch)
    return batch


def finish(operators: list[Operator]) -> Iterator[pa.RecordBatch]:
    """The rows that operators have left, first those of the first."""
    for place, operator in enumerate(operators):
        if (rest := push(operators[place + 1 :], handed_on(operator, operator.finish))) is not None:
            yield rest


def whole_of(operator: Operator) -> Operator | None:
    """The operator that makes one result of parts, which bears the program's name."""
    with naming(operator.program):
        whole = operator.whole()
    if not isinstance(whole, Operator | None):
        raise FlashsimError(f"query program: {operator.program}: whole must return an Operator, or None")
    if whole is not None:
        whole.program = operator.program
    return whole


def work_of(operator: Operator) -> Counter[str]:
    """Work of an operator since it was last taken."""
    with naming(operator.program):
        work = Counter({kind: int(count) for kind, count in operator.work.items()})
        operator.work.clear()
    return work


def handed_on(operator: Operator, function: Callable[..., Any], *batch: pa.RecordBatch) -> pa.RecordBatch | None:
    """Rows that one of a program's functions hands on, if they have the columns that the program has said."""
    with naming(operator.program):
        rows = function(*batch)
        fits = rows is None or (isinstance(rows, pa.RecordBatch) and rows.schema.equals(operator.schema))
    if not fits:
        raise FlashsimError(f"query program: {operator.program}: it must hand on batches of its schema, or None")
    return rows


@contextmanager
def naming(program: str) -> Iterator[None]:
    """Say in one line which program failed, and how."""
    try:
        yield
    except FlashsimError:
        raise
    except Exception as problem:
        raise FlashsimError(f"query program: {program}: {in_one_line(problem)}") from problem


def one_batch(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches as one."""
    table = pa.Table.from_batches(list(batches), schema).combine_chunks()
    return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema)
