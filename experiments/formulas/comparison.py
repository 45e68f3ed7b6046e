"""The formula beside the simulation: a preset as the cost model sees it, and both counts and seconds of a join, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.presentation.tables import Entry, Table
from flashsim.core.errors import UnknownNameError
from flashsim.core.units import MILLISECONDS, SECONDS
from flashsim.device.presets import Preset
from flashsim.execution.run import PhaseCost, Run
from flashsim.hdd.layout import SLOT_UNIT, zones_of
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.seek import mean_seek, seek_curve
from flashsim.storage.heap_file import HeapFile, heap_file
from models.allocation import Allocation
from models.haas import Disk, JoinCost, cost

#: Why the counts of a formula and of a simulation may differ.
WHY = (
    "Requests are counted before the block layer splits them. Temporary files are written full, so they are shorter than base files with "
    "room on their pages; the formula counts them so. What is left: the last block of a run or bucket is not full, buckets are not "
    "exactly equal, and runs of replacement selection are only about twice the memory. Times differ where a request is split into "
    "commands that each pay a latency, where read-ahead and write-behind hide a latency, and where a seek is not of mean length."
)


def disk_of(preset: Preset, page_size: int) -> Disk:
    """A preset's nominal figures: mean seek, latency of a request, sequential rates."""
    parameters = preset.parameters
    if isinstance(parameters, HddParameters):
        seek = parameters.seek_average or mean_seek(seek_curve(parameters), np.ones(parameters.cylinders))
        reads = _link_rate(parameters, parameters.bus_read, parameters.read_hit_after_read)
        writes = _link_rate(parameters, parameters.bus_write, parameters.write_hit_after_write)
        read, write = (min(streaming_rate(parameters), rate) for rate in (reads, writes))
        latency = parameters.rotation / 2 / MILLISECONDS
        return Disk.from_rates(seek / MILLISECONDS, latency, page_size, read, write if write != read else None)
    latency = parameters.read_latency / MILLISECONDS
    return Disk.from_rates(0, latency, page_size, parameters.link_read_rate, parameters.link_write_rate)


def _link_rate(parameters: HddParameters, bus: int, work: int) -> float:
    """Bytes a second that pass the link, the bus and the buffer where those are known (ns a sector), in commands with so much work (ns)."""
    slowest, command = max(bus, parameters.bulk_transfer), parameters.command_size
    rate = min(parameters.link_rate, parameters.sector_size * SECONDS / slowest if slowest else parameters.link_rate)
    return command / (command / rate + (parameters.overhead + work) / SECONDS) if command else rate


def streaming_rate(parameters: HddParameters) -> float:
    """Bytes a second of reading the whole drive in order, head switches and seeks to the next cylinder included."""
    sectors, time = 0, 0.0
    for zone in zones_of(parameters):
        skews = (parameters.heads - 1) * zone.track_skew + zone.cylinder_skew
        slots = parameters.heads * zone.slots + skews / SLOT_UNIT
        sectors += zone.cylinders * parameters.heads * zone.slots
        time += zone.cylinders * slots * parameters.rotation / zone.slots
    return sectors * parameters.sector_size * SECONDS / time


def formula(
    algorithm: str, r: HeapFile, s: HeapFile, memory: int, disk: Disk, allocation: Allocation, *, page_io: bool = False
) -> JoinCost | None:
    """The cost model's answer for two base files, with temporary files as full as they are written; None for a join it does not know.

    The smaller of the files is R.
    """
    if r.pages > s.pages:
        r, s = s, r
    temporary = [heap_file(file.relation, file.page_size).pages for file in (r, s)]
    try:
        return cost(algorithm, r.pages, s.pages, memory, disk, allocation, page_io, r_temporary=temporary[0], s_temporary=temporary[1])
    except UnknownNameError:
        return None


def with_measured_seek(join: JoinCost, run: Run) -> JoinCost | None:
    """The same counts on a device whose mean seek is the one that a run measured; None where nothing sought."""
    total = run.total()
    if not total.seeks or join.disk.seek_ms == 0:
        return None
    return replace(join, disk=replace(join.disk, seek_ms=total.seek_time / total.seeks / MILLISECONDS))


@dataclass(frozen=True)
class Compared:
    """One phase, or the whole of a join, in a simulation and by the formula; times are seconds, None where the formula has nothing."""

    phase: str
    requests: int
    pages: int
    io: float
    cpu: float
    total: float
    formula_requests: int | None
    formula_pages: int | None
    formula_io: float | None
    formula_io_measured_seek: float | None

    def as_dict(self) -> dict[str, Entry]:
        """JSON-ready, with relative differences."""
        differences = {
            f"{name}_difference": relative(getattr(self, name), getattr(self, f"formula_{name}")) for name in ("requests", "pages", "io")
        }
        return vars(self) | differences


def compare(run: Run, join: JoinCost | None) -> list[Compared]:
    """Every phase of a run beside the formula's of that name, and the total."""
    measured = with_measured_seek(join, run) if join else None
    told = {phase.name: phase for phase in join.phases} if join else {}
    rows = []
    for phase in run.phases:
        counts = told.get(phase.name)
        rows.append(
            _compared(
                phase,
                (counts.total.requests, counts.total.pages, counts.seconds(join.disk)) if counts and join else None,
                counts.seconds(measured.disk) if counts and measured else None,
            )
        )
    whole = (join.requests, join.pages, join.seconds) if join else None
    rows.append(_compared(run.total(), whole, measured.seconds if measured else None))
    return rows


def _compared(phase: PhaseCost, told: tuple[int, int, float] | None, measured_seek: float | None) -> Compared:
    io, cpu, total = (time / SECONDS for time in (phase.io_time, phase.cpu_time, phase.total_time))
    requests, pages, seconds = told or (None, None, None)
    return Compared(phase.name, phase.requests, phase.pages, io, cpu, total, requests, pages, seconds, measured_seek)


def relative(value: float, reference: float | None) -> float | None:
    """``value / reference - 1``, or None where there is nothing to divide by.

    Examples
    --------
    >>> relative(3, 2), relative(3, None)
    (0.5, None)
    """
    return value / reference - 1 if reference else None


def comparison_table(rows: Sequence[Compared], title: str = "") -> Table:
    """The comparison as a table for people."""
    header = ["phase", "requests", "pages", "I/O s", "CPU s", "total s"]
    header += ["formula: requests", "pages", "I/O s", "I/O s, measured seek", "I/O differs by"]
    body: list[list[Entry]] = []
    for row in rows:
        difference = relative(row.io, row.formula_io)
        shown = None if difference is None else f"{100 * difference:+.1f} %"
        told: list[Entry] = [row.formula_requests, row.formula_pages, row.formula_io, row.formula_io_measured_seek, shown]
        body.append([row.phase, row.requests, row.pages, row.io, row.cpu, row.total, *told])
    return Table(header, body, title, digits=3 if rows[-1].total < 10 else 2)
