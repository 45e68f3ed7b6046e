"""Plans of queries: a scan of a table, and programs behind it, each of which may first need another plan's rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import pyarrow as pa

from algorithms.programs.base import PROGRAMS, Operator, naming
from flashsim.core.errors import FlashsimError


@dataclass(frozen=True)
class Stage:
    """A program in a plan."""

    #: A member of `algorithms.programs`, or the path of a Python file.
    program: str
    #: What the member's ``start`` takes.
    parameters: Mapping[str, Any]
    #: The stage as EXPLAIN shows it.
    text: str
    #: A plan whose rows are the program's parameter ``build``, as one batch.
    build: Plan | None = None

    def start(self, schema: pa.Schema, build: pa.RecordBatch | None = None, room: int | None = None) -> Operator:
        """The operator for rows of a schema, with so many bytes of memory for its table; without `room` the program's own bound."""
        program, more = PROGRAMS.load(self.program), {} if build is None else {"build": build}
        if room is not None and "room" not in self.parameters and "room" in signature(program.start).parameters:
            more["room"] = room
        with naming(self.program):
            operator: Any = program.start(schema, **self.parameters, **more)
        if not isinstance(operator, Operator) or not vars(operator).keys() >= {"schema", "work"}:
            raise FlashsimError(f"query program: {self.program}: start must return an Operator that has called Operator.__init__")
        operator.program = self.program
        return operator

    @property
    def gathers(self) -> bool:
        """True if the rows that it hands on are fewer, and grow in number more slowly than those that it takes."""
        return self.program in ("aggregation", "top-k")


@dataclass(frozen=True)
class Plan:
    """A scan of some columns of a table, and stages."""

    table: str
    #: The table's name in the query: the scan calls a column ``alias.column``.
    alias: str
    #: Those that are read, in the table's order.
    columns: tuple[str, ...]
    stages: list[Stage] = field(default_factory=list)

    def scanned(self, schema: pa.Schema) -> pa.Schema:
        """Schema of the rows that the scan hands on, given the table's."""
        return pa.schema([(f"{self.alias}.{name}", schema.field(name).type) for name in self.columns])

    @property
    def most_pushed(self) -> int:
        """Number of stages that may run inside a drive: up to the first that hands rows on at the end."""
        blocking = (number for number, stage in enumerate(self.stages, 1) if PROGRAMS.load(stage.program).BLOCKING)
        return next(blocking, len(self.stages))
