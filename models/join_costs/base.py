"""Contract of formulas of a join's cost: seeks, requests and pages of each phase.

A member follows `JoinFormula`.  TR's quotients are taken as they stand, except that a run or bucket which is not empty takes one request at
least.

Source: Haas, Carey and Livny, "SEEKing the Truth About Ad Hoc Join Costs", UW-Madison TR 1148 (1993), sections 3 to 7: here *TR*.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import add
from typing import Any, Protocol

from flashsim.core.errors import FlashsimError
from flashsim.core.members import Family, optional
from flashsim.core.units import MILLISECONDS_A_SECOND
from models.allocation.buffers import FUDGE, Allocation
from models.disk import Disk


@dataclass(frozen=True)
class Traffic:
    """Seeks, requests and pages moved in one direction; `spared` are the pages that those parts would make which are left out of them.

    Of the requests, `together` are handed over along with another, and do not wait for themselves; `further` read a second or later part of
    a page.
    """

    seeks: int = 0
    requests: int = 0
    pages: int = 0
    spared: float = 0.0
    together: int = 0
    further: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*map(add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class PhaseCounts:
    """Reads and writes of one phase of a join."""

    name: str
    reads: Traffic = Traffic()
    writes: Traffic = Traffic()
    #: No plan takes less, and most take more.
    is_bound: bool = False

    @property
    def total(self) -> Traffic:
        """Reads and writes together."""
        return self.reads + self.writes

    def seconds(self, disk: Disk) -> float:
        """NS Ts + NIO Tl + NX Tx, in seconds; requests that go along with another are priced apart."""
        total = self.total
        write_ms = disk.page_transfer_ms if disk.page_write_ms is None else disk.page_write_ms
        transfer = (self.reads.pages - self.reads.spared) * disk.page_transfer_ms + self.writes.pages * write_ms
        own = disk.latency_ms if disk.together_ms is None else disk.together_ms
        waits = (total.requests - total.together) * disk.latency_ms + total.together * own
        return (total.seeks * disk.seek_ms + waits + transfer) / MILLISECONDS_A_SECOND


@dataclass(frozen=True)
class Parts:
    """Parts of a page that are read: the number of requests, for a share of its bytes; of `whole` pages a request may read several."""

    requests: int = 1
    share: float = 1.0
    whole: bool = False


@dataclass(frozen=True)
class LateSide:
    """A relation as a join sees it that joins keys first and fetches rows afterwards."""

    #: How many it has, how many of these have a key, and how many are in the result.
    rows: int
    keyed: int
    matches: int
    #: Keys with row ids that a page holds.
    digests_a_page: int
    #: Pages of memory that these take as they are scanned.
    key_pages: int = 0
    #: What a scan reads of a page, and what a fetch.
    keys: Parts = Parts()
    columns: Parts = Parts()
    #: Entries of the join index with what is fetched of this relation that a page holds.
    carried_a_page: int = 1

    @property
    def digests(self) -> int:
        """Pages that keys take with row ids."""
        return ceil_div(self.keyed, self.digests_a_page)


@dataclass(frozen=True)
class Late:
    """Figures beside pages on which the cost of fetching late depends."""

    r: LateSide
    s: LateSide
    #: Entries of the join index.
    results: int
    #: Pages that it takes.
    index: int
    #: The formula of the join of digests or keys, and what that join is called; both are empty if there is no such join.
    inner: str = ""
    title: str = ""
    #: Pages of the inner join's last phase, if its entries are fetched as they come; 0 where the join index is written.
    streams_in: int = 0
    #: y = Tl / Tx and x = (Tl + Ts) / Tl of the device that the first join's buffers are divided for.
    latency_ratio: float = 0.0
    access_ratio: float = 1.0


@dataclass(frozen=True)
class Sizes:
    """Pages of the relations, of temporaries that would hold all of them, memory, and the fudge factor.

    What memory holds of a relation is counted in pages of the relation, as TR does.  `last_phase` is the memory of a join's last phase,
    where that is not all; `late` is told to formulas of joins that fetch rows late.  `options` are the join's own, a record of its file.
    """

    r: int
    s: int
    r_temporary: int
    s_temporary: int
    memory: int
    fudge: float = FUDGE
    last_phase: int | None = None
    late: Late | None = None
    options: Any = None
    #: Bytes of a page, and how many tuples R and S have.
    page_size: int = 0
    tuples: tuple[int, int] = (0, 0)


class JoinFormula(Protocol):
    """A member of the family; one of a join that brings its own buffers only counts."""

    #: The buffers that it is made for.
    ALLOCATION: type[Any] = object

    def counts(self, sizes: Sizes, a: Any) -> tuple[PhaseCounts, ...]:
        """Reads and writes of each phase of the join with an allocation of the kind above, in requests that move whole buffers."""

    @optional
    def allocate(self, sizes: Sizes, latency_ratio: float, access_ratio: float) -> Allocation:
        """The default division of the buffers, for a device with y = Tl / Tx and x = (Tl + Ts) / Tl.

        Joins that run divide by their own (`algorithms.joins.base.Join`).  This one is called by `allocate` below, for formulas without a
        run, and by the formulas of `digest` and `flash-join` for the join within them.
        """
        raise FlashsimError("allocation: this formula has no default; give the join's own")


FORMULAS = Family("models.join_costs", "formula", JoinFormula)


def allocate(
    algorithm: str, r_pages: int, s_pages: int, memory: int, latency_ratio: float, access_ratio: float, fudge: float = FUDGE
) -> Allocation:
    """The default division of a join's buffers, by the join's name.

    Parameters
    ----------
    algorithm
        A formula's name, which is the join's.
    r_pages, s_pages, memory
        |R|, |S| and M, in pages.
    latency_ratio, access_ratio
        y = Tl / Tx and x = (Tl + Ts) / Tl of the device.
    fudge
        F.

    Raises
    ------
    UnknownNameError
        Another algorithm.
    InvalidParameterError
        Too little memory for the algorithm.

    Examples
    --------
    >>> allocate("grace-hash", 93_440, 655_360, 12_800, latency_ratio=24.2, access_ratio=3.16)
    GraceAllocation(buckets=10, output=1163, input=1170, phase2_input=1587, phase2_workspace=11213)
    """
    sizes = Sizes(r_pages, s_pages, r_pages, s_pages, memory, fudge)
    return FORMULAS.load(algorithm).allocate(sizes, latency_ratio, access_ratio)


def ceil_div(pages: int, per: int) -> int:
    """Requests of `per` pages that move `pages` pages."""
    return -(-pages // per)


def in_parts(pages: int, per: Fraction | int, parts: int) -> int:
    """Requests of `per` pages that move `pages` pages in `parts` runs or buckets: each part takes one at least, unless it is empty."""
    return max(int(-(-pages // per)), min(parts, pages))


def temporary_pages(part: int, whole: int, temporary: int) -> int:
    """Pages of a temporary that takes `part` of a relation of `whole` pages; all of it would take `temporary` pages."""
    return ceil_div(part * temporary, whole) if whole else 0
