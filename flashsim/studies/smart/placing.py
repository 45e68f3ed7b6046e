"""Where operators run: every placement's time by formula, from a sample of the table's pages, and the one with the least.

A placement is either the host, or the drive with so many stages behind the scan.  Work is extrapolated from two samples in proportion to
pages, and bytes of groups by a power of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import SECONDS
from flashsim.device.smart.client import Polling
from flashsim.execution.requests import Work as Kind
from flashsim.studies.smart.plan import Plan
from flashsim.studies.smart.prices import drive_prices, inside_of, priced
from flashsim.studies.smart.running import PlanRun, build_runs, run
from flashsim.studies.smart.tables import EXTENT, READ_COLUMNS, StoredTable
from flashsim.studies.smart.timing import Machine
from models.smart_scan import Rates, Work, break_even, drive_time, host_time

HOST, DRIVE, AUTO = "host", "drive", "auto"


class Placement(NamedTuple):
    """Where a plan runs, and its time by formula, s; of a placement that cannot be, the reason.

    Attributes
    ----------
    stages
        Stages behind the scan inside the drive.
    rows
        Rows that the drive hands to the host; on the host, rows of the result.
    """

    where: str
    stages: int
    seconds: float
    rows: float
    problem: str = ""


class Estimates(NamedTuple):
    """All placements of a plan, and what their runs share."""

    placements: list[Placement]
    builds: Mapping[int, PlanRun]
    break_even: float | None

    def best(self, where: str) -> Placement:
        """The fastest placement of all (`AUTO`), the host's, or the one with most stages inside the drive.

        Raises
        ------
        InvalidParameterError
            None is possible.
        """
        every = [each for each in self.placements if where in (AUTO, each.where)]
        possible = [each for each in every if not each.problem]
        if not possible:
            raise InvalidParameterError("where", where, every[-1].problem)
        return max(possible, key=lambda each: each.stages) if where == DRIVE else min(possible, key=lambda each: each.seconds)


def estimates(plan: Plan, tables: Mapping[str, StoredTable], machine: Machine) -> Estimates:
    """Times of every placement by formula."""
    table, builds = tables[plan.table], build_runs(plan, tables)
    rates = rates_of(machine)
    placements = []
    for stages in range(plan.most_pushed + 1):
        for where in (HOST, DRIVE):
            if (where == HOST and stages < plan.most_pushed) or (where == DRIVE and machine.preset.inside is None):
                continue
            try:
                work, rows = _extrapolated(plan, tables, machine, stages, where, builds)
            except InvalidParameterError as problem:
                placements.append(Placement(where, stages, math.inf, 0, str(problem)))
                continue
            time = host_time(rates, work) if where == HOST else drive_time(rates, work)
            placements.append(Placement(where, stages, time / SECONDS, rows))
    share = None if machine.preset.inside is None else break_even_of(plan, table, machine, placements)
    return Estimates(placements, builds, share)


def rates_of(machine: Machine) -> Rates:
    """Rates of a machine's drives and cores, from its parameters."""
    nominal, flash, inside = machine.preset.nominal, machine.preset.flash, machine.preset.inside
    if flash is None:
        return Rates(nominal.read_rate, host_cores=machine.host_cores, drives=machine.drives, start=nominal.seek + nominal.latency)
    flows = [flash.channels * flash.channel_rate, flash.dies * flash.page_size * SECONDS / flash.read]
    flows += [flash.bus_rate] if flash.bus_rate else []
    cores = inside.cores if inside else 1
    return Rates(min(nominal.read_rate, *flows), min(flows), cores, machine.host_cores, machine.drives, nominal.latency, Polling().pause)


def _extrapolated(
    plan: Plan, tables: Mapping[str, StoredTable], machine: Machine, stages: int, where: str, builds: Mapping[int, PlanRun]
) -> tuple[Work, float]:
    """Work of a placement over the whole table, and the rows that it hands on."""
    table, room = tables[plan.table], machine.room if where == DRIVE else None
    pages, size = table.file.pages, table.file.pages * table.file.page_size
    ranges = [table.sample(share) for share in (2, 1)]
    half, whole = (int((each[:, 1] - each[:, 0]).sum()) for each in ranges)
    runs = [run(plan, tables, stages, 1, room, each, builds) for each in ranges]
    gathers = stages > 0 and plan.stages[stages - 1].gathers

    def line(value: Callable[[PlanRun], float]) -> float:
        first, last = map(value, runs)
        growth = (last - first) / (whole - half) if whole > half else 0.0
        return max(0.0, last + growth * (pages - whole))

    def power(value: Callable[[PlanRun], float]) -> float:
        first, last = map(value, runs)
        if not gathers or min(first, last) <= 0 or whole == half:
            return line(value)
        exponent = math.log(last / first) / math.log(whole / half)
        each = last * (pages / machine.drives / whole) ** min(1.0, max(0.0, exponent))
        return min(machine.drives * each, line(value))

    prices = drive_prices(inside_of(machine.preset)) if where == DRIVE else machine.host
    inner = line(lambda each: sum(priced(work, prices) for part in each.parts for work in part.work))
    outer, results = power(lambda each: priced(each.host, machine.host)), power(lambda each: each.results)
    extents = max(1, -(-size // EXTENT))
    handed = power(lambda each: each.part_rows)
    last = power(lambda each: sum(priced(part.last, prices) for part in each.parts)) / machine.drives
    if where == HOST:
        kernel = 0.0 if machine.cpu is None else float(machine.cpu.per_request.get(machine.preset.kind, 0)) * extents
        return Work(size, extents, 0, inner + kernel + outer + machine.drives * last, 0), handed
    sent = sum(build.rows.nbytes for build in builds.values()) * machine.drives
    return Work(size, extents, inner, outer, results + sent, last), handed


def break_even_of(plan: Plan, table: StoredTable, machine: Machine, placements: list[Placement]) -> float | None:
    """The share of rows at which a selection takes as long in both places; None for other plans, or if one place always wins."""
    if [stage.program for stage in plan.stages] != ["selection", "projection"]:
        return None
    inside, host = inside_of(machine.preset), machine.host
    visit = Work(table.file.pages * table.file.page_size, len(table.extents()), 0, 0, 0)
    rows = table.records.rows
    kind = READ_COLUMNS if table.by_column else Kind.READ_TUPLE
    drive = drive_prices(inside)
    visit = visit._replace(drive=rows * priced({kind: 1}, drive), host=rows * priced({kind: 1}, host))
    widths = [each.size for each in table.records.attributes() if each.name in plan.columns]
    return break_even(rates_of(machine), visit, priced({Kind.EMIT: 1}, drive), priced({Kind.EMIT: 1}, host), sum(widths), rows)
