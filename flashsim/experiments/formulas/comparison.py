"""The formula beside the simulation: both counts and seconds of a join, phase by phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from algorithms.joins.base import JOINS, JoinOptions, JoinParameters
from algorithms.late_fetch.columns import digest_layout, key_column, part_bytes
from algorithms.late_fetch.fetch import Side
from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.core.errors import InvalidParameterError
from flashsim.core.options import options_in
from flashsim.core.rng import generator
from flashsim.experiments.runs.joining import JoinResult, PhaseSeconds
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, key_tuples
from models.allocation.buffers import Allocation
from models.disk import Disk
from models.haas import JoinCost, counts
from models.join_costs.base import FORMULAS, Late, LateSide, Parts, PhaseCounts, Sizes

if TYPE_CHECKING:
    from flashsim.experiments.presentation.tables import Entry, Table

#: Remarks on a formula, in the row of the phase: what it counts less of than any plan needs, and what it supposes that is not so here.
BOUND, SCATTERED, EVEN = "lower bound", "supposes scattered rows", "supposes even keys"
#: Rows lie together if they share pages so much more than by chance; keys are uneven if one has more than such a share of the rows, and
#: more than a few.
_TOGETHER, _UNEVEN, _A_FEW = 0.8, 0.01, 10


def sizes_of(
    files: tuple[HeapFile, HeapFile], memory: int, algorithm: str = "", parameters: JoinParameters | None = None, results: int = 0
) -> Sizes:
    """Sizes of two base files for a formula: the smaller is R, and temporary files are as full as they are written.

    One that fetches rows late needs the join, its parameters, and the rows of its result.
    """
    r, s = sorted(files, key=lambda file: file.pages)
    r_temporary, s_temporary = (heap_file(file.relation, file.page_size, page_format=file.layout.page_format).pages for file in (r, s))
    sizes = Sizes(r.pages, s.pages, r_temporary, s_temporary, memory)
    if parameters is None:
        return sizes
    join = JOINS.load(algorithm)
    options = parameters.options_of(join.OPTIONS)
    if r is not files[0]:
        options = options.with_roles_swapped()
    late = _late_sizes(join.INNER, (r, s), parameters, options, results) if join.FETCHES else None
    return replace(sizes, late=late, options=options, page_size=r.page_size, tuples=(len(r.relation), len(s.relation)))


def _late_sizes(
    inner_option: str, files: tuple[HeapFile, HeapFile], parameters: JoinParameters, options: JoinOptions, results: int
) -> Late:
    """Sizes for the formula of a join that fetches rows late, beside pages: rows that join, digests and the join index.

    The smaller file is first; `options` name columns accordingly.
    """
    r, s = (_side(file, other) for file, other in zip(files, reversed(files), strict=True))
    if "columns" in options_in(type(options)):
        r, s = (_by_column(side, file, options.columns_of(label)) for side, file, label in zip((r, s), files, "RS", strict=True))
    late = Late(
        r,
        s,
        results,
        -(-results // _entries_a_page(files[0])),
        latency_ratio=parameters.latency_ratio,
        access_ratio=parameters.access_ratio,
    )
    if not inner_option:
        return late
    inner = getattr(options, inner_option)
    least, memory = JOINS.load(inner).STREAMS_IN, parameters.memory
    streams_in = least if 0 < least <= memory - LEAST_FRAMES and r.digests + s.digests >= memory else 0
    return replace(late, inner=formula_of(inner), title=Path(inner).stem if inner.endswith(".py") else inner, streams_in=streams_in)


def _entries_a_page(file: HeapFile, more: int = 0) -> int:
    """Entries of a join index that a page holds, with so many bytes more each."""
    return _a_page(Layout(FixedRows("join index", {"key": 4, "row": 4}, more), file.page_size, file.layout.page_format))


def _a_page(layout: Layout) -> int:
    """Tuples of one size that a page holds."""
    return layout.room // int(layout.cell_sizes(key_tuples(np.zeros(1, np.int64), np.zeros(1, np.int64)))[0])


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
    if sizes.late and sizes.late.title and not sizes.late.inner:
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
    #: Phases of the whole without a formula, and their requests, pages and seconds, which the difference leaves out.
    phases_left_out: tuple[str, ...] = ()
    requests_left_out: int = 0
    pages_left_out: int = 0
    io_left_out: float = 0.0
    #: What must be known of the formula in this row: that it is a bound, or what it supposes that is not so.
    remark: str = ""

    def difference(self, name: str) -> float | None:
        """The relative difference of the simulation's ``requests``, ``pages`` or ``io`` from the formula's."""
        return relative(getattr(self, name) - getattr(self, f"{name}_left_out"), getattr(self, f"formula_{name}"))

    def as_dict(self) -> dict[str, Entry]:
        differences = {f"{name}_difference": self.difference(name) for name in ("requests", "pages", "io")}
        return vars(self) | differences


def remarks(result: JoinResult) -> dict[str, str]:
    """What a join's formula supposes of the data that is not so, by ``fetch`` for phases that fetch and ``keys`` for those that hash.

    A formula counts rows that lie anywhere, so that those which join are on as many pages, and in as many pairs of pages, as by chance; and
    buckets that are equal, which one frequent key prevents.
    """
    files, options = result.files, result.setting.options
    codes = [file.relation.codes[file.relation.codes != NULL_KEY] for file in files]
    join = JOINS.load(result.setting.algorithm)
    names = [result.setting.algorithm, getattr(options, join.INNER) if join.INNER else ""]
    found = {}
    counts_of = [np.unique(each, return_counts=True)[1] for each in codes]
    if any("hash" in name or name == "rare" for name in names) and any(
        count.max(initial=0) > max(_A_FEW, _UNEVEN * count.sum()) for count in counts_of
    ):
        found["keys"] = EVEN
    if join.FETCHES and not _are_scattered(files):
        found["fetch"] = SCATTERED
    return found


def _are_scattered(files: tuple[HeapFile, HeapFile]) -> bool:
    """True if rows that join, a pair of each key drawn of all, share pages and pairs of pages no more than by chance."""
    from models.page_fetching import cardenas  # brings SciPy, which a join does without

    orders = [generator(0, "pairs", file.name).permutation(file.tuples) for file in files]
    (r, r_rows), (s, s_rows) = (np.unique(file.relation.codes[order], return_index=True) for file, order in zip(files, orders, strict=True))
    common, *places_of = np.intersect1d(r, s, assume_unique=True, return_indices=True)
    rows = [order[own[at[common != NULL_KEY]]] for order, own, at in zip(orders, (r_rows, s_rows), places_of, strict=True)]
    pages = [np.searchsorted(file.first_rows, own, "right") - 1 for file, own in zip(files, rows, strict=True)]
    places = [
        (pages[0], files[0].pages),
        (pages[1], files[1].pages),
        (pages[0] * files[1].pages + pages[1], files[0].pages * files[1].pages),
    ]
    return all(len(np.unique(page)) >= _TOGETHER * cardenas(max(1.0, of), len(page)) for page, of in places)


def left_out(rows: Sequence[PhaseComparison]) -> str:
    """The phases without a formula, in a sentence; empty if there are none."""
    names = rows[-1].phases_left_out
    return f"The total is compared without {', '.join(names)}: there is no formula." if names else ""


def compare(
    measured: Sequence[PhaseSeconds], join: JoinCost | None, supposed: Mapping[str, str] = MappingProxyType({})
) -> list[PhaseComparison]:
    """Every phase beside the formula's of that name, and the total, which is the last and compared over phases that have a formula.

    `supposed` is what the formula supposes wrongly (`remarks`).
    """
    *phases, total = measured
    formulas = {phase.name: phase for phase in join.phases} if join else {}
    rows = []
    for phase in phases:
        formula = formulas.get(phase.phase)
        row = _phase_comparison(
            phase, (formula.total.requests, formula.total.pages, formula.seconds(join.disk)) if formula and join else None
        )
        rows.append(replace(row, remark=_remark(formula, join, supposed)) if formula and join else row)
    if join is None:
        return [*rows, _phase_comparison(total, None)]
    omitted = [phase for phase in phases if phase.phase not in formulas and phase.requests]
    whole = _phase_comparison(total, (join.requests, join.pages, join.seconds))
    requests, pages, io = (sum(getattr(phase, name) for phase in omitted) for name in ("requests", "pages", "io"))
    names = tuple(phase.phase for phase in omitted)
    remark = ", ".join(dict.fromkeys(row.remark for row in rows if row.remark))
    left_out = {"phases_left_out": names, "requests_left_out": requests, "pages_left_out": pages, "io_left_out": io}
    return [*rows, replace(whole, remark=remark, **left_out)]


def _remark(phase: PhaseCounts, join: JoinCost, supposed: Mapping[str, str]) -> str:
    """What a phase supposes wrongly, or that it is a bound; keys are divided evenly where several phases hash them."""
    if phase.name.startswith("fetch"):
        scattered = supposed.get("fetch", "")
        return (f"{BOUND} for scattered rows" if scattered else BOUND) if phase.is_bound else scattered
    hashed = [each.name for each in join.phases if not each.name.startswith(("project", "index", "fetch"))]
    return supposed.get("keys", "") if len(hashed) > 1 and phase.name in hashed and not phase.name.endswith("partition") else ""


def _phase_comparison(row: PhaseSeconds, formula: tuple[int, int, float] | None) -> PhaseComparison:
    requests, pages, seconds = formula or (None, None, None)
    return PhaseComparison(row.phase, row.requests, row.pages, row.io, row.cpu, row.total, requests, pages, seconds)


def compare_join(result: JoinResult) -> list[list[PhaseComparison]]:
    """Simulation and formula by phase, for each device of a join."""
    joins = formulas(result)
    supposed = remarks(result) if any(joins) else {}
    return [compare(result.phase_seconds(index), join, supposed) for index, join in enumerate(joins)]


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
    from flashsim.experiments.presentation.tables import Table  # loads pandas

    header = ["phase", "requests", "pages", "I/O s", "CPU s", "total s"]
    header += ["formula requests", "formula pages", "formula I/O s", "I/O differs by"]
    header += ["remark"] if (remarked := any(row.remark for row in rows)) else []
    body: list[list[Entry]] = []
    for row in rows:
        share = row.difference("io")
        difference = None if share is None or BOUND in row.remark else f"{100 * share:+.1f} %"
        formula: list[Entry] = [row.formula_requests, row.formula_pages, row.formula_io, difference]
        body.append([row.phase, row.requests, row.pages, row.io, row.cpu, row.total, *formula, *([row.remark or None] if remarked else [])])
    return Table(header, body, digits=3 if rows[-1].total < 10 else 2)
