"""A plan at work: real pages through programs, a first part inside the drives and the rest on the host, with counts of work by extent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from algorithms.programs.base import Operator, finished, one_batch, pushed
from flashsim.core.request import Integers
from flashsim.studies.smart.plan import Plan
from flashsim.studies.smart.tables import Scan, Table, parts_of


@dataclass
class DriveRun:
    """What one drive's part of a plan did: by extent the pages, work by kind and operator, and bytes handed to the host.

    The last row is what the last extent leaves (`finish`).
    """

    first_pages: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    work: list[Counter[str]] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    rows: int = 0
    memory: int = 0


@dataclass
class PlanRun:
    """Rows of a plan, and what its parts did."""

    rows: pa.RecordBatch
    drives: list[DriveRun]
    host: Counter[str]
    plan: Plan
    pushed: int
    builds: list[PlanRun] = field(default_factory=list)


def run(plan: Plan, tables: Mapping[str, Table], pushed_stages: int, drives: int = 1, room: int | None = None) -> PlanRun:
    """Run a plan.

    Parameters
    ----------
    pushed_stages
        How many stages run where the pages are, behind the scan; the rest runs behind them on the host.
    drives
        Over how many the table is striped.
    room
        Bytes of memory that each pushed program's table may take.
    """
    table = tables[plan.table]
    schema = plan.scanned(table.schema)
    builds = {number: run(stage.build, tables, 0, drives) for number, stage in enumerate(plan.stages) if stage.build}
    parts, outputs, wholes = [], [], None
    extents = table.extents()
    for mine in parts_of(extents, drives):
        scan, operators = Scan(table, plan.columns, schema), started(plan, schema, 0, pushed_stages, builds, room)
        part, rows = drive_part(scan, operators, extents, mine)
        parts.append(part)
        outputs += rows
        wholes = operators
    assert wholes is not None
    behind = wholes[-1].schema if wholes else schema
    host = []
    if wholes and (whole := wholes[-1].whole()) is not None:
        host, behind = [whole], whole.schema
    host += with_wholes(started(plan, behind, pushed_stages, len(plan.stages), builds))
    rows = one_batch(host[-1].schema if host else behind, through_host(host, outputs))
    return PlanRun(rows, parts, sum((each.work for each in host), Counter()), plan, pushed_stages, list(builds.values()))


def started(plan: Plan, schema: pa.Schema, first: int, last: int, builds: Mapping[int, PlanRun], room: int | None = None) -> list[Operator]:
    """Operators of some stages, the first for rows of a schema."""
    operators: list[Operator] = []
    for number in range(first, last):
        build = builds[number].rows if number in builds else None
        operators.append(plan.stages[number].start(schema, build, room))
        schema = (operators[-1].whole() or operators[-1]).schema
    return operators


def with_wholes(operators: list[Operator]) -> list[Operator]:
    """Operators, with those that make wholes of parts behind each that needs one."""
    every: list[Operator] = []
    for operator in operators:
        every.append(operator)
        if (whole := operator.whole()) is not None:
            every.append(whole)
    return every


def drive_part(scan: Scan, operators: list[Operator], extents: Integers, mine: Integers) -> tuple[DriveRun, list[pa.RecordBatch]]:
    """Run operators over some extents."""
    part = DriveRun()
    outputs: list[pa.RecordBatch] = []
    for number in mine.tolist():
        begin, end = int(extents[number]), int(extents[number + 1])
        batch = scan.read(begin, end)
        part.rows += batch.num_rows
        _note(part, [scan, *operators], begin, end - begin, pushed(operators, batch), outputs)
    for rows in finished(operators):
        _note(part, operators, 0, 0, rows, outputs)
    part.memory = sum(each.memory for each in operators)
    return part, outputs


def _note(
    part: DriveRun, operators: list[Operator], first: int, pages: int, rows: pa.RecordBatch | None, outputs: list[pa.RecordBatch]
) -> None:
    work: Counter[str] = Counter()
    for operator in operators:
        work += operator.work
        operator.work.clear()
    if rows is not None and rows.num_rows:
        outputs.append(rows)
    part.first_pages.append(first)
    part.pages.append(pages)
    part.work.append(work)
    part.results.append(0 if rows is None else rows.nbytes)


def through_host(operators: list[Operator], batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Rows behind operators on the host."""
    rows = [each for batch in batches if (each := pushed(operators, batch)) is not None]
    return rows + list(finished(operators))
