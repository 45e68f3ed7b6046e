"""A query from its text to its rows: planned, placed, run on real pages, and timed in both places that it can have."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pyarrow as pa

from algorithms.programs.base import PROGRAMS
from flashsim.apps.smart import timing
from flashsim.apps.smart.placing import AUTO, DRIVE, ERROR, HOST, Estimates, PlanPlacement, estimates
from flashsim.apps.smart.plans import EXTENT, Plan, PlanRun, Stage, StoredTable, run
from flashsim.apps.smart.sql import plan_of
from flashsim.apps.smart.timing import SmartMachine
from flashsim.core.errors import CapacityError, FlashsimError, InvalidParameterError, UnknownNameError
from flashsim.core.parameters import check_once
from flashsim.core.processes import free_memory
from flashsim.core.protocols import Progress
from flashsim.core.units import SECONDS, format_duration, format_size, parse_count
from flashsim.device.latency_parts import parts_of
from flashsim.device.smart.client import Polling
from flashsim.device.smart.runtime import SmartDrive
from flashsim.experiments.presentation.timeline import write_timeline
from flashsim.storage.relation import Records

#: Bytes of a page in the map of a simulated drive.
_MAP_ENTRY = 4
#: Extents of the largest table for which several placements are simulated.
MOST_EXTENTS = 256
#: Why a placement was chosen: it was asked for, or what compared it with the others.
REQUEST, FORMULA, SIMULATION = "request", "formula", "simulation"


@dataclass(frozen=True)
class Trial:
    """A placement's run, and its time, simulated, s: of the host's reading of build sides, and then of the scan and all behind it."""

    placement: PlanPlacement
    run: PlanRun
    seconds: float
    build_seconds: float
    drives: list[SmartDrive] = field(repr=False)

    @property
    def total(self) -> float:
        return self.seconds + self.build_seconds


@dataclass(frozen=True)
class Choice:
    """All placements by formula, those that may be the fastest, the run of the chosen one, and simulated seconds of all that were run."""

    estimates: Estimates
    candidates: list[PlanPlacement]
    trial: Trial
    simulated: Mapping[PlanPlacement, float]
    by: str

    def reason(self) -> str | None:
        """Why placements were simulated or not, in a line; None if no two may be the fastest."""
        if len(self.candidates) < 2:
            return None
        closer = f"{len(self.candidates)} placements may be the fastest: their estimates differ by less than they may err, "
        error = f"{ERROR:.0%} each and, inside a drive, half of the host's pause of {format_duration(Polling().pause)}. "
        if self.by == SIMULATION:
            return closer + error + "They were simulated, and the fastest was taken."
        return closer + error + f"The table has more than {MOST_EXTENTS} extents of {format_size(EXTENT)}, so the formula decides."


def choose(plan: Plan, tables: Mapping[str, StoredTable], machine: SmartMachine, where: str, progress: Progress) -> Choice:
    """Run the best placement for `where`; of `AUTO` all that may be the fastest, of which that is taken.

    A placement that the sample takes for possible may need more memory than there is: of `AUTO` it is left out then.
    """
    known, simulated = estimates(plan, tables, machine), dict[PlanPlacement, float]()
    most = None if len(tables[plan.table].extents()) <= MOST_EXTENTS else 1
    best: Trial | None = None
    while remaining := [each for each in known.candidates(where)[:most] if each not in simulated]:
        placement = remaining[0]
        progress(len(simulated), len(simulated) + len(remaining), placement.where)
        try:
            trial = _trial(plan, tables, machine, placement, known.builds)
        except (InvalidParameterError, CapacityError) as problem:
            if where != AUTO:
                raise
            known = known.without(placement, str(problem))
            continue
        simulated[placement] = trial.total
        best = trial if best is None or trial.total < best.total else best
    assert best is not None  # without a candidate the query is refused
    by = REQUEST if where != AUTO else SIMULATION if len(simulated) > 1 else FORMULA
    return Choice(known, known.candidates(where), best, simulated, by)


def _trial(
    plan: Plan, tables: Mapping[str, StoredTable], machine: SmartMachine, placement: PlanPlacement, builds: Mapping[int, PlanRun]
) -> Trial:
    inside, table = placement.where == DRIVE, tables[plan.table]
    page_size = table.file.page_size
    if inside and machine.preset.flash and (free := free_memory()) is not None:  # each simulated drive has a map of its pages
        count = sum(len(extents) > 0 for _, extents in table.on_drives(machine.drives))
        if (size := count * machine.preset.flash.logical_pages * _MAP_ENTRY) > free:
            raise CapacityError(f"drives: {count} simulated drives take {format_size(size)} of memory, and {format_size(free)} are free")
    result = run(plan, tables, placement.stages, machine.drives, machine.room if inside else None, builds=builds)
    drives = timing.fresh_drives(machine, result) if inside else []
    seconds = timing.drive_seconds(machine, result, page_size, drives) if inside else timing.host_seconds(machine, result, page_size)
    return Trial(placement, result, seconds, timing.build_seconds(machine, result, page_size, result.own if inside else ()), drives)


PLACES = (AUTO, HOST, DRIVE)
#: As many drives as no host has.
MOST_DRIVES = 4096


@dataclass(frozen=True)
class QueryAnswer:
    """Rows of a query, and where and how fast it ran."""

    plan: Plan
    table: StoredTable
    machine: SmartMachine
    choice: Choice

    @property
    def estimates(self) -> Estimates:
        return self.choice.estimates

    @property
    def seconds(self) -> float:
        """Simulated time of the scan and all behind it."""
        return self.choice.trial.seconds

    @property
    def cpu_name(self) -> str | None:
        """The CPU preset that prices the host's work."""
        return self.machine.cpu.name if self.machine.cpu else None

    def title(self) -> str:
        drives = f"{self.machine.drives} x " if self.machine.drives > 1 else ""
        where = "in the drive" if self.choice.trial.placement.where == DRIVE else "on the host"
        took, pages = format_duration(round(self.choice.trial.total * SECONDS)), self.table.file.layout.page_title
        rows, machine = self.choice.trial.run.rows.num_rows, f"{drives}{self.machine.preset.name}, CPU {self.cpu_name or 'none'}"
        return f"{rows:,} row{'s' * (rows != 1)} in {took}, {where}: {machine}, pages of {pages}"

    def rows(self) -> list[dict[str, Any]]:
        """A row a placement: seconds by formula, and of those that were run simulated."""
        rows = []
        for each in self.choice.estimates.placements:
            inside = [stage.program for stage in self.plan.stages[: each.stages]]
            row: dict[str, Any] = {"where": each.where, "inside": " > ".join(["scan", *inside]) if each.where == DRIVE else "nothing"}
            row |= {"estimate_s": None if each.problem else each.seconds, "rows_to_host": None if each.problem else round(each.rows)}
            row |= {"chosen": each == self.choice.trial.placement, "simulated_s": self.choice.simulated.get(each)}
            rows.append(row | {"problem": each.problem})
        return rows

    def explain(self) -> list[dict[str, Any]]:
        """A row an operator: where it runs, and what it does."""
        trial = self.choice.trial
        inside = trial.placement.stages if trial.placement.where == DRIVE else -1
        scan = f"{self.plan.table}: {', '.join(self.plan.columns)}"
        rows = [{"operator": "scan", "where": DRIVE if inside >= 0 else HOST, "detail": scan}]
        for number, stage in enumerate(self.plan.stages):
            where = DRIVE if number < inside else HOST
            rows.append({"operator": stage.program, "where": where, "detail": stage.text})
            if stage.build:
                own, size = where == DRIVE and number in trial.run.own, f"{trial.run.builds[number].rows.num_rows:,} rows"
                how = ", co-partitioned" if own else ", broadcast" if where == DRIVE else ""
                rows.append({"operator": "build side", "where": DRIVE if own else HOST, "detail": f"{stage.build.table}: {size}{how}"})
        return rows

    def as_dict(self) -> dict[str, Any]:
        """The answer JSON-ready, without its rows."""
        trial, run = self.choice.trial, self.choice.trial.run
        drives, energy = timing.energies(self.machine, run, self.table.file.page_size, trial.drives, trial.seconds, trial.build_seconds)
        document: dict[str, Any] = {"where": trial.placement.where, "chosen_by": self.choice.by, "cpu": self.cpu_name}
        document |= {"seconds": trial.seconds, "build_seconds": trial.build_seconds}
        document |= {"result_rows": run.rows.num_rows, "result_bytes": run.results}
        document |= {"program_memory": max((part.memory for part in run.parts), default=0)}
        document |= {"break_even": self.choice.estimates.break_even, "drives": drives, "energy": energy, "explain": self.explain()}
        return document | {"placements": [{name: value for name, value in row.items() if value != ""} for row in self.rows()]}

    def write_timeline(self, path: Path, packed: bool) -> None:
        """Serve the first drive's reads, or run its program, anew, and write what the drive's parts and cores did."""
        flash, inside, page_size = self.machine.preset.flash, self.machine.preset.inside, self.table.file.page_size
        run = self.choice.trial.run
        parts = {"dies": flash.dies, "channels": flash.channels} if flash else {}
        cores = (inside.cores if inside else 0) if flash and flash.bus_rate else None
        with write_timeline(path, packed, self.machine.preset.name, **parts, cores=cores) as timeline:
            if self.choice.trial.drives:
                drives = timing.fresh_drives(self.machine, run)
                drives[0].record_spans(True)
                timing.drive_seconds(self.machine, run, page_size, drives)
                timeline.add_spans(drives[0].spans())
            elif part := next((each for each in run.parts if each.pages), None):
                device, requests = timing.host_reads(self.machine, part, page_size)
                device.record_spans()
                completions = device.serve(requests, settle=False)
                spans = device.spans()
                timeline.add_spans(spans)
                timeline.add_requests(requests, completions, parts_of(device, spans, requests, completions))

    def frame(self) -> pa.Table:
        """The rows of the result; sums of integers as such where they are small enough."""
        rows = self.choice.trial.run.rows
        return pa.table({name: _narrow(column) for name, column in zip(rows.schema.names, rows.columns, strict=True)})


def _narrow(column: pa.Array) -> pa.Array:
    if pa.types.is_decimal(column.type) and column.type.scale == 0 and column.type.precision > 30:
        with suppress(pa.ArrowInvalid):
            return column.cast(pa.int64())
    return column


def answer(
    query: str, sources: Mapping[str, Records], machine: SmartMachine, where: str, page_size: int, page_format: str, then: str | None,
    partition: Mapping[str, str] | None, progress: Progress,
) -> QueryAnswer:  # fmt: skip
    """Plan, place, run and time a query; one outside the language, or whose placement is not possible, is refused.

    `sources` are rows of the tables by the names that the query uses; `then` is a program behind its own stages (`stage_of`); `partition`
    are columns by whose hash tables are on drives, by table, while extents of the others are striped.
    """
    if where != HOST:
        _ = machine.inside  # refuses a drive without
    for name in sources:
        if not name.isidentifier():
            raise InvalidParameterError("table", repr(name), "its name must be one that a query can use: letters, digits and _")
    tables = {name: StoredTable.of(name, records, page_size, page_format) for name, records in sources.items()}
    for name, column in (partition or {}).items():
        if name not in tables:
            raise UnknownNameError("table", name, tables)
        tables[name] = tables[name].partition_by(column, machine.drives)
    rows = {name: table.records.rows for name, table in tables.items()}
    plan = plan_of(query, {name: table.schema for name, table in tables.items()}, rows)
    if then:
        plan.stages.append(stage_of(then))
    table = tables[plan.table]
    timing.check_capacity(machine, tables.values())
    return QueryAnswer(plan, table, machine, choose(plan, tables, machine, where, progress))


def stage_of(text: str) -> Stage:
    """A program with parameters, as ``partitioning:by=a,parts=8``; those that its ``start`` takes as whole numbers become such."""
    name, _, rest = text.partition(":")
    parts = [part.partition("=") for part in rest.split(",") if rest]
    if not all(equals for _, equals, _ in parts):
        raise InvalidParameterError("then", text, "it must read NAME:parameter=value,...")
    check_once(name, [parameter for parameter, _, _ in parts])
    start = PROGRAMS.load(name).start
    if not callable(start):
        raise FlashsimError(f"query program: {name}: start must be a function or a class")
    declared = list(signature(start).parameters.values())[1:]
    known = {each.name: each for each in declared if each.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)}
    values = {each: _of_kind(f"{each} of {name}", known[each].annotation if each in known else str, value) for each, _, value in parts}
    if len(known) == len(declared) and (unknown := values.keys() - known):
        raise UnknownNameError(f"parameter of {name}", min(unknown), known)
    for each, parameter in known.items():
        if parameter.default is Parameter.empty and each not in values:
            raise InvalidParameterError(f"{each} of {name}", "missing", "it is required")
    return Stage(name, values, rest)


def _of_kind(name: str, hint: Any, value: str) -> Any:
    """A parameter's value of a kind that its annotation names: a whole number, or a text."""
    kinds = set(re.findall(r"\w+", hint.__name__ if isinstance(hint, type) else str(hint)))
    if "int" in kinds:
        return parse_count(value, name)
    if hint is not Parameter.empty and ("str" not in kinds or kinds & {"dict", "Sequence"}):
        raise InvalidParameterError(name, repr(value), "only a query can give it")
    return value
