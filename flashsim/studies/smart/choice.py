"""Choice of a placement: the fastest by formula, or by simulation of those whose estimates are closer than their errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.processes import free_memory
from flashsim.core.protocols import Progress
from flashsim.core.units import format_duration, format_size
from flashsim.device.smart.client import Polling
from flashsim.device.smart.runtime import SmartDrive
from flashsim.studies.smart.placing import AUTO, DRIVE, ERROR, Estimates, Placement, estimates
from flashsim.studies.smart.plans import Plan, PlanRun, run
from flashsim.studies.smart.tables import EXTENT, StoredTable
from flashsim.studies.smart.timing import Machine, build_seconds, drive_seconds, fresh_drives, host_seconds

#: Bytes of a page in the map of a simulated drive.
_MAP_ENTRY = 4
#: Extents of the largest table for which several placements are simulated.
MOST_EXTENTS = 256
#: Why a placement was chosen: it was asked for, or what compared it with the others.
REQUEST, FORMULA, SIMULATION = "request", "formula", "simulation"


@dataclass(frozen=True)
class Trial:
    """A placement's run, and its time, simulated, s: of the host's reading of build sides, and then of the scan and all behind it."""

    placement: Placement
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
    candidates: list[Placement]
    trial: Trial
    simulated: Mapping[Placement, float]
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


def choose(plan: Plan, tables: Mapping[str, StoredTable], machine: Machine, where: str, progress: Progress) -> Choice:
    """Run the best placement for `where`; of `AUTO` all that may be the fastest, of which that is taken.

    A placement that the sample takes for possible may need more memory than there is: of `AUTO` it is left out then.
    """
    known, simulated = estimates(plan, tables, machine), dict[Placement, float]()
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


def _trial(plan: Plan, tables: Mapping[str, StoredTable], machine: Machine, placement: Placement, builds: Mapping[int, PlanRun]) -> Trial:
    inside, table = placement.where == DRIVE, tables[plan.table]
    page_size = table.file.page_size
    if inside:
        _check_memory(machine, table)
    result = run(plan, tables, placement.stages, machine.drives, machine.room if inside else None, builds=builds)
    drives = fresh_drives(machine, result) if inside else []
    seconds = drive_seconds(machine, result, page_size, drives) if inside else host_seconds(machine, result, page_size)
    return Trial(placement, result, seconds, build_seconds(machine, result, page_size, result.own if inside else ()), drives)


def _check_memory(machine: Machine, table: StoredTable) -> None:
    """Refuse more simulated drives at once than memory holds: each has a map of its pages."""
    count, flash = sum(len(extents) > 0 for _, extents in table.on_drives(machine.drives)), machine.preset.flash
    size, free = count * flash.logical_pages * _MAP_ENTRY if flash else 0, free_memory()
    if free is not None and size > free:
        raise CapacityError(f"drives: {count} simulated drives take {format_size(size)} of memory, and {format_size(free)} are free")
