"""What an ad hoc join costs on one device, as counts of seeks, requests and pages, and as seconds (the model of Haas et al.).

A join costs NS Ts + NIO Tl + NX Tx: NS seeks of Ts each, NIO requests that each wait a latency Tl, NX pages that each take a transfer
Tx.  Writing the result is left out.  Base relations and temporaries do not disturb each other's positions, as on two disks.

TR's quotients are taken as they stand, except that a run or bucket which is not empty takes one request at least.

Source: Haas, Carey and Livny, "SEEKing the Truth About Ad Hoc Join Costs", UW-Madison TR 1148 (1993), sections 3 to 7: here *TR*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.units import MILLISECONDS_A_SECOND
from models import allocation as allocations
from models.allocation import (
    FUDGE,
    Allocation,
    GraceAllocation,
    HybridAllocation,
    NestedLoopsAllocation,
    SimpleHashAllocation,
    SortMergeAllocation,
    exact,
)
from models.disk import Disk


@dataclass(frozen=True)
class Traffic:
    """Seeks, requests and pages moved in one direction."""

    seeks: int = 0
    requests: int = 0
    pages: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.seeks + other.seeks, self.requests + other.requests, self.pages + other.pages)


@dataclass(frozen=True)
class PhaseCounts:
    """What one phase of a join reads and writes."""

    name: str
    reads: Traffic = Traffic()
    writes: Traffic = Traffic()

    @property
    def total(self) -> Traffic:
        """Reads and writes together."""
        return self.reads + self.writes

    def seconds(self, disk: Disk) -> float:
        """NS Ts + NIO Tl + NX Tx, in seconds."""
        total = self.total
        write_ms = disk.page_transfer_ms if disk.page_write_ms is None else disk.page_write_ms
        transfer = self.reads.pages * disk.page_transfer_ms + self.writes.pages * write_ms
        return (total.seeks * disk.seek_ms + total.requests * disk.latency_ms + transfer) / MILLISECONDS_A_SECOND


@dataclass(frozen=True)
class JoinCost:
    """A join's cost, whole and by phase.

    Phases are ``partition`` and ``join`` (hash joins), ``sort`` and ``merge`` (sort-merge), ``first`` and ``further`` (iterations of
    simple hash), and ``join`` alone (block nested loops).  A hybrid hash that keeps R in memory has no second phase.
    """

    algorithm: str
    allocation: Allocation
    disk: Disk
    phases: tuple[PhaseCounts, ...]

    @property
    def reads(self) -> Traffic:
        """Reads of all phases."""
        return sum((phase.reads for phase in self.phases), Traffic())

    @property
    def writes(self) -> Traffic:
        """Writes of all phases."""
        return sum((phase.writes for phase in self.phases), Traffic())

    @property
    def seeks(self) -> int:
        """NS."""
        return self.reads.seeks + self.writes.seeks

    @property
    def requests(self) -> int:
        """NIO."""
        return self.reads.requests + self.writes.requests

    @property
    def pages(self) -> int:
        """NX."""
        return self.reads.pages + self.writes.pages

    @property
    def seconds(self) -> float:
        """Time of all phases."""
        return sum(phase.seconds(self.disk) for phase in self.phases)


@dataclass(frozen=True)
class Sizes:
    """Pages of the relations, of temporaries that would hold all of them, memory, and the fudge factor.

    What memory holds of a relation is counted in pages of the relation, as TR does.
    """

    r: int
    s: int
    r_temporary: int
    s_temporary: int
    memory: int
    fudge: float = FUDGE


def _ceil(pages: int, per: int) -> int:
    return -(-pages // per)


def _in_parts(pages: int, per: Fraction | int, parts: int) -> int:
    """Requests of `per` pages that move `pages` pages in `parts` runs or buckets: each part takes one at least, unless it is empty."""
    return max(math.ceil(Fraction(pages) / per), min(parts, pages))


def _nested_loops(sizes: Sizes, a: NestedLoopsAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 3: NB = ceil(|R| F / M_R); NX = |R| + NB |S|; NIO = NB (1 + ceil(|S| / M_S)); NS = 2 NB."""
    chunks = a.chunks(sizes.r, sizes.fudge)
    return (PhaseCounts("join", Traffic(2 * chunks, chunks * (1 + _ceil(sizes.s, a.inner)), sizes.r + chunks * sizes.s)),)


def _sort_merge(sizes: Sizes, a: SortMergeAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 4.  The second pass divides memory evenly, MPR = M / (NR_R + NR_S) pages a run, and seeks at every request."""
    r_runs, s_runs = a.runs(sizes.r, sizes.fudge), a.runs(sizes.s, sizes.fudge)
    temporary = sizes.r_temporary + sizes.s_temporary
    share = Fraction(sizes.memory, max(1, r_runs + s_runs))
    merges = _in_parts(sizes.r_temporary, share, r_runs) + _in_parts(sizes.s_temporary, share, s_runs)
    return (
        PhaseCounts(
            "sort",
            Traffic(2, _ceil(sizes.r, a.input) + _ceil(sizes.s, a.input), sizes.r + sizes.s),
            Traffic(2, _ceil(sizes.r_temporary, a.output) + _ceil(sizes.s_temporary, a.output), temporary),
        ),
        PhaseCounts("merge", Traffic(merges, merges, temporary)),
    )


def _simple_hash(sizes: Sizes, a: SimpleHashAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 5: each of NI iterations reads what is left and writes all but K_R + K_S pages of it; the last writes nothing.

    The second and later iterations read temporaries.  Requests are rounded up once an iteration and relation, where TR divides.
    """
    table = sizes.r * exact(sizes.fudge)
    iterations = max(1, math.ceil(table / a.workspace))
    kept_r = min(sizes.r, math.floor(a.workspace / exact(sizes.fudge)))
    kept_s = sizes.s * kept_r // max(1, sizes.r)
    shares = [(sizes.r - i * kept_r, sizes.s - i * kept_s) for i in range(iterations)]
    first, further = (PhaseCounts(name) for name in ("first", "further"))
    for i, (r, s) in enumerate(shares):
        left = [r, s] if i == 0 else [_written(r, sizes.r, sizes.r_temporary), _written(s, sizes.s, sizes.s_temporary)]
        reads, writes = Traffic(2, sum(_ceil(pages, a.input) for pages in left), sum(left)), Traffic()
        if i + 1 < iterations:
            r, s = shares[i + 1]
            passed = [_written(r, sizes.r, sizes.r_temporary), _written(s, sizes.s, sizes.s_temporary)]
            writes = Traffic(2, sum(_ceil(pages, a.output) for pages in passed), sum(passed))
        if i == 0:
            first = replace(first, reads=reads, writes=writes)
        else:
            further = replace(further, reads=further.reads + reads, writes=further.writes + writes)
    return (first, further) if iterations > 1 else (first,)


def _written(part: int, whole: int, temporary: int) -> int:
    """Pages of a temporary that takes `part` of a relation of `whole` pages; all of it would take `temporary` pages."""
    return _ceil(part * temporary, whole) if whole else 0


def _grace(sizes: Sizes, a: GraceAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 6: as hybrid hash that keeps nothing in memory."""
    return _hybrid(sizes, allocations.grace_as_hybrid(a))


def _hybrid(sizes: Sizes, a: HybridAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 7: |R0| = floor(WS / F) pages of R stay in memory; S' = ceil(|S| (1 - |R0| / |R|)) goes to disk.

    Every write of a buffer seeks.  In the second phase a bucket of R takes one request.
    """
    base = Traffic(2, _ceil(sizes.r, a.input) + _ceil(sizes.s, a.input), sizes.r + sizes.s)
    if a.buckets == 0:
        return (PhaseCounts("partition", base),)
    kept = min(sizes.r, math.floor(a.workspace / exact(sizes.fudge)))
    r = _written(sizes.r - kept, sizes.r, sizes.r_temporary)
    s = _written(sizes.r - kept, sizes.r, sizes.s_temporary)
    writes = _in_parts(r, a.output, a.buckets) + _in_parts(s, a.output, a.buckets)
    loads, seeks_of_s = min(a.buckets, r), min(a.buckets, s)
    return (
        PhaseCounts("partition", base, Traffic(writes, writes, r + s)),
        PhaseCounts("join", Traffic(loads + seeks_of_s, loads + _in_parts(s, a.phase2_input, a.buckets), r + s)),
    )


_COUNTS: dict[str, tuple[type[Any], Callable[[Sizes, Any], tuple[PhaseCounts, ...]]]] = {
    "bnl": (NestedLoopsAllocation, _nested_loops),
    "sort-merge": (SortMergeAllocation, _sort_merge),
    "simple-hash": (SimpleHashAllocation, _simple_hash),
    "grace-hash": (GraceAllocation, _grace),
    "hybrid-hash": (HybridAllocation, _hybrid),
}


def _page_sized(phase: PhaseCounts) -> PhaseCounts:
    return replace(phase, reads=replace(phase.reads, requests=phase.reads.pages), writes=replace(phase.writes, requests=phase.writes.pages))


def counts(algorithm: str, sizes: Sizes, allocation: Allocation, page_io: bool = False) -> tuple[PhaseCounts, ...]:
    """Seeks, requests and pages of each phase of a join.

    Parameters
    ----------
    algorithm
        ``bnl``, ``sort-merge``, ``simple-hash``, ``grace-hash`` or ``hybrid-hash``.
    sizes
        Relations, temporaries and memory.
    allocation
        The join's buffers.
    page_io
        Each buffer is moved by requests of one page, one after the other: as many requests as pages, and the seeks of blocked I/O.

    Raises
    ------
    UnknownNameError
        Another algorithm.
    InvalidParameterError
        The allocation is another algorithm's, or does not fit the memory.
    """
    if algorithm not in _COUNTS:
        raise UnknownNameError("algorithm", algorithm, _COUNTS)
    kind, count = _COUNTS[algorithm]
    if not isinstance(allocation, kind):
        raise InvalidParameterError("allocation", type(allocation).__name__, f"{algorithm} needs a {kind.__name__}")
    allocations.check(allocation, sizes.memory)
    phases = count(sizes, allocation)
    return tuple(_page_sized(phase) for phase in phases) if page_io else phases


def cost(
    algorithm: str,
    r_pages: int,
    s_pages: int,
    memory: int,
    disk: Disk,
    allocation: Allocation | None = None,
    page_io: bool = False,
    *,
    fudge: float = FUDGE,
    r_temporary: int | None = None,
    s_temporary: int | None = None,
) -> JoinCost:
    """The cost of a join.

    Parameters
    ----------
    algorithm, page_io
        As for `counts`.
    r_pages, s_pages, memory
        |R|, |S| and M, in pages.
    disk
        The device.
    allocation
        The join's buffers; by default the closed form for this device (`models.allocation.allocate`).
    fudge
        F.
    r_temporary, s_temporary
        Pages of temporaries that would hold all of R, of S, where they are filled otherwise than the base relations.

    Raises
    ------
    UnknownNameError, InvalidParameterError
        As for `counts`, or too little memory for the algorithm.

    Examples
    --------
    >>> disk = Disk.from_rates(seek_ms=12, latency_ms=5.56, page_size=8192, read_rate=34 * 2**20)
    >>> join = cost("grace-hash", 93_440, 655_360, 12_800, disk)
    >>> join.seeks, join.requests, join.pages, round(join.seconds, 2)
    (667, 1709, 2246400, 533.68)
    """
    if allocation is None:
        allocation = allocations.allocate(algorithm, r_pages, s_pages, memory, disk.latency_ratio, disk.access_ratio, fudge)
    r_temporary = r_pages if r_temporary is None else r_temporary
    s_temporary = s_pages if s_temporary is None else s_temporary
    sizes = Sizes(r_pages, s_pages, r_temporary, s_temporary, memory, fudge)
    return JoinCost(algorithm, allocation, disk, counts(algorithm, sizes, allocation, page_io))
