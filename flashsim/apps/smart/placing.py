"""Placement of operators: every placement's time by formula, from a sample of the table's pages, and the one with the least.

A placement is either the host, or the drive with so many stages behind the scan.  Work is extrapolated from two samples in proportion to
pages, and bytes of groups by a power of them.  Estimates err, so those that are close to the least are to be simulated.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from flashsim.apps.smart.plans import EXTENT, READ_COLUMNS, Plan, PlanRun, StoredTable, build_runs, run
from flashsim.apps.smart.timing import OUTSTANDING, SmartMachine, price_work
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import SECONDS
from flashsim.device.smart.client import Polling
from flashsim.execution.requests import Work as Kind
from models.smart_scan import ScanRates, ScanWork, break_even, build_time, drive_time, host_time

HOST, DRIVE, AUTO = "host", "drive", "auto"
#: Extents below which a table has no break-even.
_FEW = 32
#: Share of an estimate by which it may err; inside a drive half of the host's pause comes on top.
ERROR = 0.1


class PlanPlacement(NamedTuple):
    """A place where a plan may run, and its time by formula, s, of its build sides too; of a placement that cannot be, the reason.

    `stages` are those behind the scan inside the drive, and `rows` those that the drive hands to the host; on the host, of the result.
    """

    where: str
    stages: int
    seconds: float
    rows: float
    problem: str = ""

    @property
    def error(self) -> float:
        """Bound of the error of the estimate, s."""
        return ERROR * self.seconds + (Polling().pause / 2 / SECONDS if self.where == DRIVE else 0)


class Estimates(NamedTuple):
    """All placements of a plan, and what their runs share."""

    placements: list[PlanPlacement]
    builds: Mapping[int, PlanRun]
    break_even: float | None

    def best(self, where: str) -> PlanPlacement:
        """The fastest placement of all (`AUTO`), the host's, or the one with most stages inside the drive; it is refused if none can be."""
        every = [each for each in self.placements if where in (AUTO, each.where)]
        possible = [each for each in every if not each.problem]
        if not possible:
            raise InvalidParameterError("where", where, every[-1].problem)
        return max(possible, key=lambda each: each.stages) if where == DRIVE else min(possible, key=lambda each: each.seconds)

    def candidates(self, where: str) -> list[PlanPlacement]:
        """The best placement, and of `AUTO` those that may be as fast: estimates differ by less than they may err."""
        best = self.best(where)
        possible = [each for each in self.placements if where == AUTO and each != best and not each.problem]
        return [best, *(each for each in possible if each.seconds - each.error <= best.seconds + best.error)]

    def without(self, placement: PlanPlacement, problem: str) -> "Estimates":
        impossible = placement._replace(seconds=math.inf, rows=0, problem=problem)
        return self._replace(placements=[impossible if each == placement else each for each in self.placements])


def estimates(plan: Plan, tables: Mapping[str, StoredTable], machine: SmartMachine) -> Estimates:
    builds = build_runs(plan, tables)
    placements = [_estimate(plan, tables, machine, plan.most_pushed, HOST, builds)]  # what the host cannot run, nothing can
    for stages in range(plan.most_pushed + 1) if machine.preset.inside else ():
        try:
            placements.append(_estimate(plan, tables, machine, stages, DRIVE, builds))
        except InvalidParameterError as problem:
            placements.append(PlanPlacement(DRIVE, stages, math.inf, 0, str(problem)))
    return Estimates(placements, builds, _break_even(plan, tables[plan.table], machine) if machine.preset.inside else None)


def rates_of(machine: SmartMachine, pages: Sequence[int]) -> ScanRates:
    """Rates of a machine's drives and cores, for a table with `pages` pages on each drive."""
    nominal, flash, inside = machine.preset.nominal, machine.preset.flash, machine.preset.inside
    drives = sum(pages) / max(pages) if any(pages) else 1.0
    if flash is None:
        return ScanRates(nominal.read_rate, host_cores=machine.host_cores, drives=drives, start=nominal.seek + nominal.latency)
    flows = [flash.channels * flash.channel_rate, flash.dies * flash.page_size * SECONDS / flash.read]
    flow, cores = min([*flows, flash.bus_rate] if flash.bus_rate else flows), inside.cores if inside else 1
    return ScanRates(min(nominal.read_rate, flow), flow, cores, machine.host_cores, drives, nominal.latency, Polling().pause, OUTSTANDING)


def _estimate(
    plan: Plan, tables: Mapping[str, StoredTable], machine: SmartMachine, stages: int, where: str, builds: Mapping[int, PlanRun]
) -> PlanPlacement:
    table, inside = tables[plan.table], where == DRIVE
    on_each, extents = table.pages_on(machine.drives), sum(len(ranges) for _, ranges in table.on_drives(machine.drives))
    pages = sum(on_each)
    runs = [run(plan, tables, stages, 1, machine.room if inside else None, each, builds) for each in (2, 1)]
    half, whole = (each.pages for each in runs)
    copies = machine.drives // len(runs[0].parts)  # drives for which a part of the sample stands
    # rows that gathering stages hand on are fewer, and grow in number more slowly than those that they take
    gathers = stages > 0 and plan.stages[stages - 1].program in ("aggregation", "top-k")

    def line(value: Callable[[PlanRun], float]) -> float:
        first, last = map(value, runs)
        growth = (last - first) / (whole - half) if whole > half else 0.0
        return max(0.0, last + growth * (pages - whole))

    def power(value: Callable[[PlanRun], float]) -> float:
        first, last = map(value, runs)
        if not gathers or min(first, last) <= 0 or whole == half:
            return line(value)
        exponent = math.log(last / first) / math.log(whole / half)
        each = last * (pages / copies / whole) ** min(1.0, max(0.0, exponent))
        return min(copies * each, line(value))

    prices, rates = machine.drive_prices if inside else machine.host_prices, rates_of(machine, on_each)
    inner, outer = line(lambda each: _inner(each, prices)), power(lambda each: price_work(each.host, machine.host_prices))
    last = power(lambda each: sum(price_work(part.last, prices) for part in each.parts))
    first = max(price_work(part.first, prices) for part in runs[1].parts)
    results, handed = power(lambda each: each.results), power(lambda each: sum(part.rows for part in each.parts))
    size = pages * table.file.page_size
    if inside:
        time = drive_time(rates, ScanWork(size, size / EXTENT, inner, outer, results, last / rates.drives, first, runs[1].sent_bytes))
    else:
        first *= -(-machine.drives // machine.host_cores)
        time = host_time(rates, ScanWork(size, size / EXTENT, 0, inner + _kernel(machine, extents), 0, last + outer, first))
    time += _builds_time(machine, runs[1], table.file.page_size, runs[1].own if inside else ())
    return PlanPlacement(where, stages, time / SECONDS, handed)


def _builds_time(machine: SmartMachine, run: PlanRun, page_size: int, own: Sequence[int]) -> float:
    """Time by formula until stages have their build sides, ns: those of some are read by each drive, the others by the host."""
    time = 0.0
    for stage, build in run.builds.items():
        rates = rates_of(machine, [sum(part.pages) for part in build.parts])
        work = ScanWork(build.pages * page_size, build.pages * page_size / EXTENT, 0, 0, 0)
        if stage in own:
            time += build_time(rates, work._replace(drive=_inner(build, machine.drive_prices)))
            continue
        first, last = (sum((getattr(part, name) for part in build.parts), Counter[str]()) for name in ("first", "last"))
        host = _inner(build, machine.host_prices) + _kernel(machine, sum(len(part.pages) for part in build.parts))
        work = work._replace(
            host=host, first=price_work(first, machine.host_prices), last=price_work(last + build.host, machine.host_prices)
        )
        time += host_time(rates, work) + _builds_time(machine, build, page_size, ())
    return time


def _inner(run: PlanRun, prices: Mapping[str, float]) -> float:
    return sum(price_work(work, prices) for part in run.parts for work in part.work)


def _kernel(machine: SmartMachine, extents: int) -> float:
    return 0.0 if machine.cpu is None else float(machine.cpu.per_request.get(machine.preset.kind, 0)) * extents


def _break_even(plan: Plan, table: StoredTable, machine: SmartMachine) -> float | None:
    """The share of rows at which a selection takes as long in both places.

    None for other plans, if one place always wins, and for tables of few extents, whose time hangs on when the host asks for results.
    """
    if [stage.program for stage in plan.stages] != ["selection", "projection"] or len(table.extents()) < _FEW:
        return None
    drive, host, rows = machine.drive_prices, machine.host_prices, table.records.rows
    rates, size = rates_of(machine, table.pages_on(machine.drives)), table.file.pages * table.file.page_size
    visited = {READ_COLUMNS if table.by_column else Kind.READ_TUPLE: rows, Kind.PAGE: table.file.pages}
    on_host = price_work(visited, host) + _kernel(machine, len(table.extents()))
    scan = ScanWork(size, size / EXTENT, price_work(visited, drive), on_host, 0)
    width = sum(each.size for each in table.records.attributes() if each.name in plan.columns)
    return break_even(rates, scan, price_work({Kind.EMIT: 1}, drive), price_work({Kind.EMIT: 1}, host), width, rows)
