"""The formula beside the simulation: both counts and seconds of a join, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from algorithms.joins.base import JOINS, JoinParameters
from algorithms.late_fetch.columns import digest_layout, key_column, part_bytes
from algorithms.late_fetch.fetch import Side
from algorithms.page_access.plan import LEAST_FRAMES
from algorithms.partitioning.base import PartitionParameters
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MILLISECONDS
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, keyed
from flashsim.studies.runs.joining import JoinResult, PhaseSeconds
from models.allocation.buffers import Allocation
from models.disk import Disk
from models.haas import JoinCost, counts
from models.join_costs.base import FORMULAS, Late, LateSide, Partitioned, Parts, Sizes

if TYPE_CHECKING:
    from flashsim.studies.presentation.tables import Entry, Table

#: Why the counts of a formula and of a simulation may differ.
WHY = (
    "Requests are counted before the block layer splits them. Temporary files are written full, so they are shorter than base files with "
    "room on their pages; the formula counts them so. What is left: the last block of a run or bucket is not full, buckets are not "
    "exactly equal, and runs of replacement selection are only about twice the memory. Times differ where a request is split into "
    "commands that each pay a latency, where read-ahead and write-behind hide a latency, and where a seek is not of mean length."
)

#: The same of a join that fetches rows late.
WHY_LATE = (
    "Fetches are counted for rows that join lying anywhere: naive and pooled fetching by what a least-recently-used cache misses, block "
    "nested loops without what they sort, and other strategies by what no plan can do without, which may be far less than what is fetched."
)


def sizes_of(
    files: tuple[HeapFile, HeapFile], memory: int, algorithm: str = "", parameters: JoinParameters | None = None, results: int = 0
) -> Sizes:
    """Sizes of two base files for a formula: the smaller is R, and temporary files are as full as they are written.

    One that fetches rows late needs the join, its parameters, and the rows of its result.
    """
    r, s = sorted(files, key=lambda file: file.pages)
    r_temporary, s_temporary = (heap_file(file.relation, file.page_size, page_format=file.layout.page_format).pages for file in (r, s))
    if parameters and r is not files[0]:
        parameters = parameters.swapped()
    buckets = None
    if parameters and parameters.partition != PartitionParameters.method:
        tuples = (len(r.relation), len(s.relation))
        buckets = Partitioned(parameters.partition, r.page_size, parameters.sub_buffer, *tuples)
    late = _late_sizes(algorithm, (r, s), parameters, results) if parameters and JOINS.load(algorithm).FETCHES else None
    return Sizes(r.pages, s.pages, r_temporary, s_temporary, memory, late=late, partitioned=buckets)


def _late_sizes(algorithm: str, files: tuple[HeapFile, HeapFile], parameters: JoinParameters, results: int) -> Late:
    """Sizes for the formula of a join that fetches rows late, beside pages: rows that join, digests and the join index.

    The smaller file is first; `parameters` name columns accordingly.
    """
    r, s = (_side(file, other) for file, other in zip(files, reversed(files), strict=True))
    if "columns" in JOINS.load(algorithm).OPTIONS:
        r, s = (_by_column(side, file, parameters.columns_of(label)) for side, file, label in zip((r, s), files, "RS", strict=True))
    least = JOINS.load(parameters.first).STREAMS_IN
    return Late(
        r,
        s,
        results,
        -(-results // _entries_a_page(files[0])),
        formula_of(parameters.first),
        Path(parameters.first).stem if parameters.first.endswith(".py") else parameters.first,
        parameters.fetch,
        formula_of(parameters.kernel),
        least if 0 < least <= parameters.memory - LEAST_FRAMES and r.digests + s.digests >= parameters.memory else 0,
        parameters.digests_stored,
        parameters.latency_ratio,
        parameters.access_ratio,
    )


def _entries_a_page(file: HeapFile, more: int = 0) -> int:
    """Entries of a join index that a page holds, with so many bytes more each."""
    return _a_page(Layout(FixedRows("join index", {"key": 4, "row": 4}, more), file.page_size, file.layout.page_format))


def _a_page(layout: Layout) -> int:
    """Tuples of one size that a page holds."""
    return layout.room // int(layout.cell_sizes(keyed(np.zeros(1, np.int64), np.zeros(1, np.int64)))[0])


def _side(file: HeapFile, other: HeapFile) -> LateSide:
    codes = file.relation.codes
    has_key = codes != NULL_KEY
    joining = np.isin(codes, other.relation.codes) & has_key
    return LateSide(file.tuples, int(np.count_nonzero(has_key)), int(np.count_nonzero(joining)), _a_page(digest_layout(file)))


def _by_column(side: LateSide, file: HeapFile, columns: tuple[str, ...] | None) -> LateSide:
    """Sizes of a relation whose columns lie apart."""
    keys, late = key_column(file, page_io=False), Side("", file, columns)
    scan = Parts(len(keys.parts), part_bytes(keys.parts) / file.page_size)
    fetch = Parts(1 if late.parts is None else len(late.parts), late.page_bytes / file.page_size, late.parts is None)
    return replace(side, key_pages=keys.pages, keys=scan, columns=fetch, carried_a_page=_entries_a_page(file, late.width))


def formula_of(algorithm: str) -> str:
    """The formula that a join's file names: a member's name or a path; empty where it names none."""
    join = JOINS.load(algorithm)
    if not isinstance(join.FORMULA, str):
        raise InvalidParameterError("formula", join.FORMULA, "it must be a name or the path of a Python file")
    return str(Path(join.__file__).parent / join.FORMULA) if join.FORMULA.endswith(".py") else join.FORMULA


def formula(algorithm: str, sizes: Sizes, disk: Disk, allocation: Allocation, *, page_io: bool = False) -> JoinCost | None:
    """The cost model's answer, by the formula that the join's own file names; None where it, or a join that it runs, names none."""
    name = formula_of(algorithm)
    if sizes.late and not (sizes.late.first and sizes.late.kernel):
        return None
    return JoinCost(algorithm, allocation, disk, counts(name, sizes, allocation, page_io)) if name else None


def check_formula(algorithm: str) -> None:
    """Refuse a join that names a formula which cannot be had, before it is run."""
    if name := formula_of(algorithm):
        FORMULAS.load(name)


def formulas(result: JoinResult) -> list[JoinCost | None]:
    """The cost model's answer for each device of a join; none for a real device, and none of strands, whose times overlap."""
    setting = result.setting
    if result.parameters.strands > 1:
        return [None] * len(result.disks)
    sizes = sizes_of(result.files, setting.memory, setting.algorithm, result.parameters, result.runs[0].result_rows)
    by_disk = {disk: formula(setting.algorithm, sizes, disk, result.allocation, page_io=setting.page_io) for disk in result.disks if disk}
    return [by_disk[disk] if disk else None for disk in result.disks]


def with_measured_seek(join: JoinCost, total: PhaseSeconds) -> JoinCost | None:
    """Counts on a device whose mean seek is the one that a run measured; None where nothing sought."""
    if not total.seeks or join.disk.seek_ms == 0:
        return None
    return replace(join, disk=replace(join.disk, seek_ms=total.seek_time / total.seeks / MILLISECONDS))


@dataclass(frozen=True)
class PhaseComparison:
    """A phase, or the whole of a join, in a simulation and by the formula; times are seconds, None where the formula has nothing."""

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
    #: Phases of the whole without a formula, and their requests, pages and seconds, which the difference leaves out.
    phases_left_out: tuple[str, ...] = ()
    requests_left_out: int = 0
    pages_left_out: int = 0
    io_left_out: float = 0.0

    def difference(self, name: str) -> float | None:
        """The relative difference of the simulation's ``requests``, ``pages`` or ``io`` from the formula's."""
        return relative(getattr(self, name) - getattr(self, f"{name}_left_out"), getattr(self, f"formula_{name}"))

    def as_dict(self) -> dict[str, Entry]:
        differences = {f"{name}_difference": self.difference(name) for name in ("requests", "pages", "io")}
        return vars(self) | differences


def why(algorithm: str, whole: PhaseComparison) -> str:
    """Reasons why the counts of a join's formula and of a run may differ, and which phases its whole leaves out of the comparison."""
    omission = f" The total is compared without {', '.join(whole.phases_left_out)}: there is no formula." if whole.phases_left_out else ""
    return f"{WHY} {WHY_LATE}{omission}" if JOINS.load(algorithm).FETCHES else WHY + omission


def compare(measured: Sequence[PhaseSeconds], join: JoinCost | None) -> list[PhaseComparison]:
    """Every phase beside the formula's of that name, and the total, which is the last and compared over phases that have a formula."""
    *phases, total = measured
    sought = with_measured_seek(join, total) if join else None
    formulas = {phase.name: phase for phase in join.phases} if join else {}
    rows = []
    for phase in phases:
        formula = formulas.get(phase.phase)
        rows.append(
            _phase_comparison(
                phase,
                (formula.total.requests, formula.total.pages, formula.seconds(join.disk)) if formula and join else None,
                formula.seconds(sought.disk) if formula and sought else None,
            )
        )
    if join is None:
        return [*rows, _phase_comparison(total, None, None)]
    omitted = [phase for phase in phases if phase.phase not in formulas]
    whole = _phase_comparison(total, (join.requests, join.pages, join.seconds), sought.seconds if sought else None)
    requests, pages, io = (sum(getattr(phase, name) for phase in omitted) for name in ("requests", "pages", "io"))
    names = tuple(phase.phase for phase in omitted)
    return [*rows, replace(whole, phases_left_out=names, requests_left_out=requests, pages_left_out=pages, io_left_out=io)]


def _phase_comparison(row: PhaseSeconds, formula: tuple[int, int, float] | None, measured_seek: float | None) -> PhaseComparison:
    requests, pages, seconds = formula or (None, None, None)
    return PhaseComparison(row.phase, row.requests, row.pages, row.io, row.cpu, row.total, requests, pages, seconds, measured_seek)


def compare_join(result: JoinResult) -> list[list[PhaseComparison]]:
    """Simulation and formula by phase, for each device of a join."""
    return [compare(result.measured(index), join) for index, join in enumerate(formulas(result))]


def as_dict(result: JoinResult) -> dict[str, Any]:
    document = result.as_dict()
    for machine, rows in zip(document["machines"], compare_join(result), strict=True):
        machine["comparison"] = [row.as_dict() for row in rows]
    return document


def relative(value: float, reference: float | None) -> float | None:
    """``value / reference - 1``, or None where there is nothing to divide by.

    Examples
    --------
    >>> relative(3, 2), relative(3, None)
    (0.5, None)
    """
    return value / reference - 1 if reference else None


def comparison_table(rows: Sequence[PhaseComparison]) -> Table:
    from flashsim.studies.presentation.tables import Table  # loads pandas

    header = ["phase", "requests", "pages", "I/O s", "CPU s", "total s"]
    header += ["formula requests", "formula pages", "formula I/O s", "with measured seek", "I/O differs by"]
    body: list[list[Entry]] = []
    for row in rows:
        share = row.difference("io")
        difference = None if share is None else f"{100 * share:+.1f} %"
        formula: list[Entry] = [row.formula_requests, row.formula_pages, row.formula_io, row.formula_io_measured_seek, difference]
        body.append([row.phase, row.requests, row.pages, row.io, row.cpu, row.total, *formula])
    return Table(header, body, digits=3 if rows[-1].total < 10 else 2)
