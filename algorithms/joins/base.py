"""Contract of joins: a join is a generator over two files that yields requests and emits pairs of row ids.

A member defines the functions of `Join`.  `plan` chooses roles: its result rows come in the caller's order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from algorithms.fetching.base import ENTRY_BYTES
from algorithms.page_access.plan import LEAST_FRAMES
from algorithms.partitioning.base import PartitionParameters
from flashsim.core.errors import InvalidParameterError
from flashsim.core.members import Family, optional
from flashsim.core.units import KIB, MIB, MILLISECONDS_A_SECOND
from flashsim.execution.requests import Algorithm, Emit, Request, rewrite
from flashsim.storage.heap_file import File
from flashsim.storage.layout import PAGE_FORMAT
from models.allocation.buffers import FUDGE, Allocation, check, exact

Division = TypeVar("Division", bound=Allocation)


@dataclass(frozen=True)
class JoinParameters:
    """Parameters of a join besides its relations."""

    #: The buffer pool, in pages.
    memory: int
    #: Every request is one page long; buffers are divided as ever.
    page_io: bool = False
    #: F: memory that a page of tuples takes in a hash table or a tournament tree.
    fudge: float = FUDGE
    #: Pages that the last phase of a join may hold, if it is not all of memory: the joins with `STREAMS_IN` can do with so few.
    last_phase: int | None = None
    #: What DigestJoin joins digests with, and its page-fetch strategy: members of their families, or paths of Python files.
    first: str = "sort-merge"
    fetch: str = "planned"
    #: What FlashJoin joins keys with.
    kernel: str = "hybrid-hash"
    #: Of graph-based fetching (`algorithms.fetching.base.FetchParameters`); 1 without it.
    k: float | None = None
    #: Columns that the result wants, as ``R.name`` or ``S.name``; all without it.  Joins that fetch columns after the join read no others.
    columns: tuple[str, ...] | None = None
    #: Of graph-based fetching, as `k`.
    entry_bytes: int = ENTRY_BYTES
    ties: str = "most"
    least_frames: int = LEAST_FRAMES
    #: Of pooled fetching: which page is replaced (`algorithms.replacement`); LRU's choice without it.
    policy: str | None = None
    #: Whether the relations' digests are on the device before DigestJoin begins (`algorithms.late_fetch.columns.with_digests`).
    digests_stored: bool = False
    #: How buckets are made: `algorithms.partitioning.base.PartitionParameters`.
    partition: str = "traditional"
    sub_buffer: int = 0
    strands: int = 1
    #: Requests one after another are told together: pages that are fetched in a `Series`, blocks of a scan in `Blocks`.
    in_series: bool = False
    #: y = Dl / Dx and x = (Dl + Ds) / Dl of the device that buffers are divided for.  The defaults are the HDD of do2009, table 2, with
    #: pages of 8 KiB: Ds = 12 ms, Dl = 5.56 ms, 34 MiB a second.
    latency_ratio: float = 5.56 / (8 * KIB / (34 * MIB) * MILLISECONDS_A_SECOND)
    access_ratio: float = (12 + 5.56) / 5.56

    @property
    def partitioning(self) -> PartitionParameters:
        """Parameters of the partition method."""
        return PartitionParameters(self.partition, self.page_io, self.sub_buffer, self.strands, self.in_series and self.strands == 1)

    def columns_of(self, side: str) -> tuple[str, ...] | None:
        """Columns of the result that come from a relation, ``"R"`` or ``"S"``; None: all.

        Raises
        ------
        InvalidParameterError
            One of `columns` belongs to neither.
        """
        for name in self.columns or ():
            if name[:2] not in ("R.", "S."):
                raise InvalidParameterError("columns", repr(name), "a column is named R.COLUMN or S.COLUMN")
        if self.columns is None:
            return None
        return tuple(dict.fromkeys(name[2:] for name in self.columns if name.startswith(f"{side}.")))

    def swapped(self) -> JoinParameters:
        """The same, when R and S change roles."""
        columns = {side: [f"{other}.{name}" for name in self.columns_of(side) or ()] for side, other in (("R", "S"), ("S", "R"))}
        return self if self.columns is None else replace(self, columns=(*columns["S"], *columns["R"]))


class Join(Protocol):
    """A member of the family."""

    #: Page format that the join's relations need; any if empty.
    PAGE_FORMAT: str = ""
    #: Formula: a member of `models.join_costs`, or the path of a Python file, from the folder of the join's own file; none if empty.
    FORMULA: str = ""
    #: Least pages of the last phase, the only one that emits; 0 if that phase needs all of memory.
    STREAMS_IN: int = 0
    #: True if the join fetches rows from base relations by their ids, and so cannot join digests.
    FETCHES: bool = False
    #: Fields of `JoinParameters` that the join takes and not all joins do.
    OPTIONS: tuple[str, ...] = ()
    __file__: str

    def allocate(self, r_pages: int, s_pages: int, parameters: JoinParameters) -> Allocation:
        """The default division of memory among the buffers."""

    @optional
    def check(self, parameters: JoinParameters) -> None:
        """Refuse parameters as far as they do not depend on the relations, before any data are read."""

    def join(self, r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
        """Join R with S; R is the smaller.

        Raises
        ------
        InvalidParameterError
            Too little memory, or an allocation that does not fit.
        """


#: All joins; ``JOINS.load("bnl").join`` is one.
JOINS = Family("algorithms.joins", "join", Join)


def settle(
    r: File,
    s: File,
    parameters: JoinParameters,
    allocation: Allocation | None,
    kind: type[Division],
    default: Callable[[int, int, JoinParameters], Division],
) -> Division:
    """The allocation to use: the argument, if it is of the right kind and fits the memory, or else the default.

    Raises
    ------
    InvalidParameterError
        Memory for less than a page of R with its table and a page of S, or less than the default needs; an allocation that is
        another algorithm's or needs more memory; relations whose page sizes differ.
    """
    least = math.ceil(exact(parameters.fudge)) + 1
    if parameters.memory < least:
        raise InvalidParameterError("memory", f"{parameters.memory} pages", f"a join needs at least {least}")
    if r.page_size != s.page_size:
        raise InvalidParameterError("page size", f"{r.page_size} B and {s.page_size} B", "both relations need the same")
    if allocation is None:
        allocation = default(r.pages, s.pages, parameters)
    elif not isinstance(allocation, kind):
        raise InvalidParameterError("allocation", type(allocation).__name__, f"this join needs a {kind.__name__}")
    check(allocation, parameters.memory)
    return allocation


def page_format(*names: str) -> str:
    """The page format of the relations of some joins where none is asked for: one that any of them needs, or the usual."""
    return next((needed for name in names if (needed := JOINS.load(name).PAGE_FORMAT)), PAGE_FORMAT)


def folders(algorithm: str, r: File, s: File) -> tuple[str, str]:
    """Prefixes of the names of temporary files of R and of S; a relation may be joined with itself.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> folders("grace-hash", SimpleNamespace(name="staff"), SimpleNamespace(name="staff"))
    ('grace-hash/staff-r', 'grace-hash/staff-s')
    """
    sides = ("-r", "-s") if r.name == s.name else ("", "")
    return f"{algorithm}/{r.name}{sides[0]}", f"{algorithm}/{s.name}{sides[1]}"


def plan(name: str, left: File, right: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """A join of two relations in any order: the one with fewer pages becomes R, and pairs are emitted as (left, right).

    `name` is a member's, or the path of a Python file that is one.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such join.
    InvalidParameterError
        Too little memory, or an allocation that does not fit.
    """
    join = JOINS.load(name).join
    if left.pages <= right.pages:
        return join(left, right, parameters, allocation)
    return rewrite(join(right, left, parameters.swapped(), allocation), _swapped)


def _swapped(request: Request) -> Request:
    return Emit(request.s_rows, request.r_rows, request.more) if isinstance(request, Emit) else request
