"""Plans of queries: a scan and programs behind it; at work on real pages, a first part where the pages are and the rest on the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa

from algorithms.programs.base import PROGRAMS, Operator, finish, naming, one_batch, push, through, whole_of, work_of
from algorithms.programs.partitioning import partitions, same_partitions
from flashsim.core.errors import FlashsimError, InvalidParameterError, SchemaError
from flashsim.core.request import Integers
from flashsim.core.units import MIB
from flashsim.execution.requests import Work
from flashsim.storage.columns import one_array
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.record import Bytes
from flashsim.storage.relation import Records, Relation
from flashsim.storage.source.base import TableRecords, check_column
from flashsim.storage.texts import from_texts

#: Bytes of an extent: what a scan takes at a time.
EXTENT = MIB
#: Bytes of a table up to which its pages are kept.
_KEPT = 256 * MIB
#: Extents of a sample, and their pages at most.
_SAMPLES, _SAMPLE_PAGES = 48, 4
#: Kind of a scan's work: a tuple that is visited in pages that hold columns.
READ_COLUMNS = "read_columns"


@dataclass
class StoredTable:
    """A table on pages of one format, by the name that queries call it."""

    name: str
    file: HeapFile
    records: Records
    #: A column, and the rows of each drive, which its hash says; without them extents are striped over drives.
    by: str = ""
    partitions: tuple[StoredTable, ...] = ()
    _bytes: Bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, name: str, records: Records, page_size: int, page_format: str) -> StoredTable:
        for column, attribute in zip(records.names, records.attributes(), strict=True):
            if pa.types.is_union(attribute.kind) or pa.types.is_duration(attribute.kind):
                raise SchemaError(f"table {name}: column {column} is of type {attribute.kind}, which queries do not support")
        codes = np.broadcast_to(np.int32(0), records.rows)
        return cls(name, heap_file(Relation(name, records.names[0], codes, records), page_size, page_format=page_format), records)

    def partition_by(self, by: str, drives: int) -> StoredTable:
        """The table with the rows of each drive on pages of their own, equal values of a column on one."""
        check_column(self.records, by, self.name)
        numbers, layout = partitions(one_array(self.records.key(by)), drives), self.file.layout
        rows = [self.records.take(np.flatnonzero(numbers == drive)) for drive in range(drives)]
        parts = (StoredTable.of(self.name, TableRecords(self.name, each), layout.page_size, layout.page_format) for each in rows)
        return replace(self, by=by, partitions=tuple(parts))

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(each.name, each.kind) for each in self.records.attributes()])

    @property
    def by_column(self) -> bool:
        return self.file.layout.keeps_columns_apart

    def extents(self) -> Integers:
        """First and last page of each extent, the last one excluded, shape (extents, 2)."""
        step = max(1, EXTENT // self.file.page_size)
        return self._ranges(step, step)

    def _ranges(self, step: int, size: int, share: int = 1) -> Integers:
        """Ranges of so many pages, of which one begins each `step` pages; of these one in `share`."""
        firsts = np.arange(0, self.file.pages, step)[::share]
        return np.stack([firsts, np.minimum(firsts + size, self.file.pages)], axis=1)

    def on_drives(self, drives: int, share: int = 0) -> list[tuple[StoredTable, Integers]]:
        """Pages and extents of each drive; of a sample, extents of a few pages all over the table, or one in `share` of them."""
        step = max(1, self.file.pages // _SAMPLES)
        cut = [each._ranges(step, min(step, _SAMPLE_PAGES), share) if share else each.extents() for each in self.partitions or [self]]
        if self.partitions:
            return list(zip(self.partitions, cut, strict=True))
        return [(self, cut[0][drive::drives]) for drive in range(drives)]

    def pages_on(self, drives: int) -> list[int]:
        return [int((extents[:, 1] - extents[:, 0]).sum()) for _, extents in self.on_drives(drives)]

    def pages(self, begin: int, end: int) -> Bytes:
        """The bytes of some pages, shape (pages, page size)."""
        if self.file.pages * self.file.page_size <= _KEPT:
            if self._bytes is None:
                self._bytes = self.file.layout.encode(self.file.run(0, self.file.pages), np.arange(self.file.pages))
            return self._bytes[begin:end]
        return self.file.layout.encode(self.file.run(begin, end), np.arange(begin, end))


class Scan(Operator):
    """Rows of pages, of some columns; it takes ranges of pages instead of batches."""

    def __init__(self, table: StoredTable, columns: tuple[str, ...], schema: pa.Schema) -> None:
        super().__init__(schema)
        self._table, self._columns = table, columns

    def read(self, begin: int, end: int) -> pa.RecordBatch:
        """The rows of pages `begin` to `end`, without the last."""
        values = self._table.file.layout.decode_values(self._table.pages(begin, end), self._columns)
        self.work[Work.PAGE] += end - begin
        self.work[READ_COLUMNS if self._table.by_column else Work.READ_TUPLE] += values.num_rows
        arrays = [restore_type(one_array(column), kind.type) for column, kind in zip(values.columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def restore_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values in their column's type, where pages store another (`flashsim.storage.columns.stored_column`)."""
    if values.type == kind:
        return values
    if pa.types.is_union(values.type):
        values = pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())
    if pa.types.is_temporal(kind) and not pa.types.is_null(values.type):
        return from_texts(values, kind)
    if pa.types.is_decimal(kind):
        return values.cast(pa.string()).cast(kind)
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8()).cast(kind)
    return values.cast(kind, safe=not pa.types.is_floating(kind))


@dataclass(frozen=True)
class Stage:
    """A program in a plan: a member of `algorithms.programs` or the path of a Python file, with what its ``start`` takes.

    `text` is the stage as EXPLAIN shows it, and `build` a plan whose rows are the program's parameter ``build``, as one batch.
    """

    program: str
    parameters: Mapping[str, Any]
    text: str
    build: Plan | None = None

    def start(self, schema: pa.Schema, build: pa.RecordBatch | None = None, room: int | None = None) -> Operator:
        """The operator for rows of a schema, with `room` bytes of memory for its table; without `room` the program's own bound."""
        program, more = PROGRAMS.load(self.program), {} if build is None else {"build": build}
        if room is not None and "room" not in self.parameters and "room" in signature(program.start).parameters:
            more["room"] = room
        with naming(self.program):
            operator: Any = program.start(schema, **self.parameters, **more)
        if not isinstance(operator, Operator) or not vars(operator).keys() >= {"schema", "work"}:
            raise FlashsimError(f"query program: {self.program}: start must return an Operator that has called Operator.__init__")
        operator.program = self.program
        return operator


@dataclass(frozen=True)
class Plan:
    """A scan of the columns of a table that are read, in its order, and stages; the scan calls a column ``alias.column``."""

    table: str
    alias: str
    columns: tuple[str, ...]
    stages: list[Stage] = field(default_factory=list)

    @property
    def most_pushed(self) -> int:
        """Number of stages that may run inside a drive: up to the first that hands rows on at the end."""
        blocking = (number for number, stage in enumerate(self.stages, 1) if PROGRAMS.load(stage.program).BLOCKING)
        return next(blocking, len(self.stages))


@dataclass
class DrivePart:
    """A plan's part over one drive's extents: by extent pages, work by kind and bytes handed on, and those before and after all."""

    pages: list[int] = field(default_factory=list)
    work: list[Counter[str]] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    first: Counter[str] = field(default_factory=Counter)
    last: Counter[str] = field(default_factory=Counter)
    last_results: int = 0
    rows: int = 0
    memory: int = 0


@dataclass
class PlanRun:
    """Rows of a plan, what its parts did, and the host's work behind them; of each stage with a build side, the run of that."""

    rows: pa.RecordBatch
    parts: list[DrivePart]
    host: Counter[str]
    builds: Mapping[int, PlanRun]
    #: Stages of the parts whose build side is each part's own (co-partitioned), and whose build side all parts need.
    own: Sequence[int]
    broadcast: Sequence[int]

    @property
    def results(self) -> int:
        """Bytes that the parts handed to the host."""
        return sum(sum(part.results) + part.last_results for part in self.parts)

    @property
    def pages(self) -> int:
        return sum(sum(part.pages) for part in self.parts)

    @property
    def sent_bytes(self) -> int:
        """Bytes of build sides that the host sends to each drive."""
        return sum(self.builds[stage].rows.nbytes for stage in self.broadcast)

    def share(self, part: int) -> pa.RecordBatch:
        return self.rows.slice(sum(each.rows for each in self.parts[:part]), self.parts[part].rows)


def run(
    plan: Plan, tables: Mapping[str, StoredTable], stages: int, drives: int = 1, room: int | None = None, sample: int = 0,
    builds: Mapping[int, PlanRun] | None = None,
) -> PlanRun:  # fmt: skip
    """Run a plan: `stages` stages where the pages are, behind the scan, and the rest behind them on the host.

    A table that is not partitioned is striped over the drives.  `room` are bytes that each program's table may take where the pages are.
    Of a sample one in `sample` of its pages is read; 0: the whole table.  `builds` are runs of build sides that were made before, by stage.
    """
    table = tables[plan.table]
    schema = pa.schema([(f"{plan.alias}.{name}", table.schema.field(name).type) for name in plan.columns])
    if builds is None:
        builds = build_runs(plan, tables)
    own = [number for number in co_partitioned_stages(plan, tables) if number < stages]
    rows = {number: build.rows for number, build in builds.items()}
    parts: list[DrivePart] = []
    outputs: list[pa.RecordBatch] = []
    for drive, (mine, extents) in enumerate(table.on_drives(drives, sample)):
        scan = Scan(mine, plan.columns, schema)
        operators = _start(plan, schema, range(stages), rows | {number: builds[number].share(drive) for number in own}, room)
        parts.append(_part(scan, operators, extents, outputs))
    last = operators[-1] if operators else scan
    host = [*filter(None, [whole_of(last)])]
    for operator in _start(plan, [last, *host][-1].schema, range(stages, len(plan.stages)), rows):
        host += filter(None, [operator, whole_of(operator)])
    result = one_batch([last, *host][-1].schema, through(host, outputs))
    broadcast = [number for number in builds if number < stages and number not in own]
    plan_run = PlanRun(result, parts, sum(map(work_of, host), Counter()), builds, own, broadcast)
    if room is not None and plan_run.sent_bytes > room:
        raise InvalidParameterError("memory", f"{room} B", f"the host sends {plan_run.sent_bytes} B of build sides")
    return plan_run


def build_runs(plan: Plan, tables: Mapping[str, StoredTable]) -> dict[int, PlanRun]:
    """Runs of the plans whose rows stages need first, by stage: on the host."""
    return {number: run(stage.build, tables, stage.build.most_pushed) for number, stage in enumerate(plan.stages) if stage.build}


def co_partitioned_stages(plan: Plan, tables: Mapping[str, StoredTable]) -> list[int]:
    """Stages that join rows of one drive with rows of the same: both tables are partitioned by the columns that are joined."""
    scanned, stages = tables[plan.table], []
    columns = {f"{plan.alias}.{scanned.by}"}  # whose values say the drive
    for number, stage in enumerate(plan.stages):
        if stage.program == "hash-join" and stage.build and stage.parameters["probe"] in columns:
            build, key = tables[stage.build.table], stage.parameters["key"]
            kinds = [each.schema.field(each.by).type for each in (scanned, build) if each.by]
            if key == f"{stage.build.alias}.{build.by}" and same_partitions(*kinds):
                stages.append(number)
                columns.add(key)
    return stages


def _start(plan: Plan, schema: pa.Schema, stages: range, builds: Mapping[int, Any], room: int | None = None) -> list[Operator]:
    operators: list[Operator] = []
    for number in stages:
        operators.append(plan.stages[number].start(schema, builds.get(number), room))
        schema = (whole_of(operators[-1]) or operators[-1]).schema
    return operators


def _part(scan: Scan, operators: list[Operator], extents: Integers, outputs: list[pa.RecordBatch]) -> DrivePart:
    part = DrivePart()

    def account(rows: pa.RecordBatch | None) -> tuple[Counter[str], int]:
        """Work since the last call, with that of handing rows on, and the bytes of these."""
        work: Counter[str] = Counter()
        for operator in (scan, *operators):
            work.update(work_of(operator))
        if rows is None:
            return work, 0
        outputs.append(rows)
        part.rows += rows.num_rows
        work[Work.EMIT] += rows.num_rows
        return work, rows.nbytes

    part.first, _ = account(None)
    for begin, end in extents.tolist():
        work, results = account(push(operators, scan.read(begin, end)))
        part.pages.append(end - begin)
        part.work.append(work)
        part.results.append(results)
    for rows in [*finish(operators), None] if part.pages else []:
        work, results = account(rows)
        part.last.update(work)
        part.last_results += results
    for operator in operators:
        with naming(operator.program):
            part.memory += int(operator.memory)
    return part
