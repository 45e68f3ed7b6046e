"""A plan at work: real pages through programs, a first part where the pages are and the rest on the host, with counts of work by extent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from algorithms.programs.base import Operator, finished, one_batch, pushed, through
from flashsim.core.request import Integers
from flashsim.execution.requests import Work
from flashsim.studies.smart.plan import Plan
from flashsim.studies.smart.tables import Scan, StoredTable


@dataclass
class DrivePart:
    """A plan's part over one drive's extents: by extent pages, work by kind and bytes handed on, and those after the last."""

    pages: list[int] = field(default_factory=list)
    work: list[Counter[str]] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    last: Counter[str] = field(default_factory=Counter)
    last_results: int = 0
    rows: int = 0
    memory: int = 0

    def account(self, operators: Iterable[Operator], rows: pa.RecordBatch | None) -> tuple[Counter[str], int]:
        """Work of operators since the last call, with that of handing rows on, and the bytes of these."""
        work: Counter[str] = Counter()
        for operator in operators:
            work.update(operator.work)
            operator.work.clear()
        if rows is None:
            return work, 0
        self.rows += rows.num_rows
        work[Work.EMIT] += rows.num_rows
        return work, rows.nbytes


@dataclass
class PlanRun:
    """Rows of a plan, what its parts did, and the host's work behind them; of each stage with a build side, the run of that."""

    rows: pa.RecordBatch
    parts: list[DrivePart]
    host: Counter[str]
    builds: Mapping[int, PlanRun]

    @property
    def results(self) -> int:
        """Bytes that the parts handed to the host."""
        return sum(sum(part.results) + part.last_results for part in self.parts)

    @property
    def part_rows(self) -> int:
        return sum(part.rows for part in self.parts)


def run(
    plan: Plan,
    tables: Mapping[str, StoredTable],
    stages: int,
    drives: int = 1,
    room: int | None = None,
    ranges: Integers | None = None,
    builds: Mapping[int, PlanRun] | None = None,
) -> PlanRun:
    """Run a plan.

    Parameters
    ----------
    stages
        How many run where the pages are, behind the scan; the rest runs behind them on the host.
    drives
        Over how many the table is striped.
    room
        Bytes of memory that each program's table may take where the pages are.
    ranges
        First and last page of each extent, the last one excluded, shape (n, 2); the whole table without it.
    builds
        Runs of build sides that were made before, by stage.
    """
    table = tables[plan.table]
    schema = plan.scanned(table.schema)
    if builds is None:
        builds = build_runs(plan, tables)
    ranges = table.extents() if ranges is None else ranges
    parts: list[DrivePart] = []
    outputs: list[pa.RecordBatch] = []
    for drive in range(drives):
        operators = started(plan, schema, 0, stages, builds, room)
        mine = np.arange(drive, len(ranges), drives)
        parts.append(_part(Scan(table, plan.columns, schema), operators, ranges, mine, outputs))
    host: list[Operator] = []
    behind = operators[-1].schema if operators else schema
    if operators and (whole := operators[-1].whole()) is not None:
        host, behind = [whole], whole.schema
    for operator in started(plan, behind, stages, len(plan.stages), builds):
        host += [operator] if (whole := operator.whole()) is None else [operator, whole]
    rows = one_batch(host[-1].schema if host else behind, through(host, outputs))
    return PlanRun(rows, parts, sum((each.work for each in host), Counter()), builds)


def build_runs(plan: Plan, tables: Mapping[str, StoredTable]) -> dict[int, PlanRun]:
    """Runs of the plans whose rows stages need first, by stage: on the host."""
    return {number: run(stage.build, tables, stage.build.most_pushed) for number, stage in enumerate(plan.stages) if stage.build}


def started(plan: Plan, schema: pa.Schema, first: int, last: int, builds: Mapping[int, PlanRun], room: int | None = None) -> list[Operator]:
    """Operators of some stages, the first for rows of a schema."""
    operators: list[Operator] = []
    for number in range(first, last):
        operators.append(plan.stages[number].start(schema, builds[number].rows if number in builds else None, room))
        schema = (operators[-1].whole() or operators[-1]).schema
    return operators


def _part(scan: Scan, operators: list[Operator], ranges: Integers, mine: Integers, outputs: list[pa.RecordBatch]) -> DrivePart:
    """Run operators over some extents, and append the rows that they hand on."""
    part = DrivePart()
    for number in mine.tolist():
        begin, end = ranges[number].tolist()
        rows = pushed(operators, scan.read(begin, end))
        work, results = part.account([scan, *operators], rows)
        part.pages.append(end - begin)
        part.work.append(work)
        part.results.append(results)
        outputs += [] if rows is None else [rows]
    for rows in [*finished(operators), None] if part.pages else []:
        work, results = part.account(operators, rows)
        part.last.update(work)
        part.last_results += results
        outputs += [] if rows is None else [rows]
    part.memory = sum(each.memory for each in operators)
    return part
