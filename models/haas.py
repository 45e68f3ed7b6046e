"""Cost of an ad hoc join on one device, as counts of seeks, requests and pages, and as seconds (the model of Haas et al.).

A join costs NS Ts + NIO Tl + NX Tx: NS seeks of Ts each, NIO requests that each wait a latency Tl, NX pages that each take a transfer
Tx.  Writing the result is left out.  Base relations and temporaries do not disturb each other's positions, as on two disks.

Source: Haas, Carey and Livny, "SEEKing the Truth About Ad Hoc Join Costs", UW-Madison TR 1148 (1993), sections 3 to 7: here *TR*.
"""

from dataclasses import dataclass, replace
from functools import cache

from flashsim.core.errors import InvalidParameterError
from models.allocation.buffers import FUDGE, Allocation, check
from models.disk import Disk
from models.join_costs.base import FORMULAS, PhaseCounts, Sizes, Traffic, allocate


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
        return sum((phase.reads for phase in self.phases), Traffic())

    @property
    def writes(self) -> Traffic:
        return sum((phase.writes for phase in self.phases), Traffic())

    @property
    def seeks(self) -> int:
        return self.reads.seeks + self.writes.seeks

    @property
    def requests(self) -> int:
        return self.reads.requests + self.writes.requests

    @property
    def pages(self) -> int:
        return self.reads.pages + self.writes.pages

    @property
    def seconds(self) -> float:
        return sum(phase.seconds(self.disk) for phase in self.phases)


def _by_page(phase: PhaseCounts) -> PhaseCounts:
    writes = phase.writes
    # Those that are handed over at once stay so many calls.
    together = writes.pages - (writes.requests - writes.together) if writes.together else 0
    writes = replace(writes, requests=writes.pages, together=max(0, together))
    return replace(phase, reads=replace(phase.reads, requests=phase.reads.pages + phase.reads.further), writes=writes)


_member = cache(FORMULAS.load)  #: A formula by its name: a search counts tens of thousands of divisions.


def counts(algorithm: str, sizes: Sizes, allocation: Allocation, page_io: bool = False) -> tuple[PhaseCounts, ...]:
    """Seeks, requests and pages of each phase of a join.

    `algorithm`: a formula of `models.join_costs` by its name, which is the join's, or as the path of a Python file; `sizes`: relations,
    temporaries and memory; `allocation`: the join's buffers; `page_io`: each buffer is moved by requests of one page, one after the other:
    as many requests as pages, and the seeks of blocked I/O.
    """
    formula = FORMULAS.load(algorithm) if algorithm.endswith(".py") else _member(algorithm)
    if not isinstance(allocation, formula.ALLOCATION):
        raise InvalidParameterError("allocation", type(allocation).__name__, f"{algorithm} needs a {formula.ALLOCATION.__name__}")
    check(allocation, sizes.memory)
    phases = formula.counts(sizes, allocation)
    return tuple(_by_page(phase) for phase in phases) if page_io else phases


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
        The join's buffers; by default the closed form for this device (`models.join_costs.base.allocate`).
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
        allocation = allocate(algorithm, r_pages, s_pages, memory, disk.latency_ratio, disk.access_ratio, fudge)
    r_temporary = r_pages if r_temporary is None else r_temporary
    s_temporary = s_pages if s_temporary is None else s_temporary
    sizes = Sizes(r_pages, s_pages, r_temporary, s_temporary, memory, fudge)
    return JoinCost(algorithm, allocation, disk, counts(algorithm, sizes, allocation, page_io))
