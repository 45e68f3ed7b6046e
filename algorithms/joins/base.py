"""Contract of joins: a join is a generator over two files that yields requests and emits pairs of row ids.

A member defines the functions of `Join`.  `plan` chooses roles: its result rows come in the caller's order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Protocol, Self, TypeVar

from algorithms.partitioning.base import PartitionOptions, PartitionParameters, check_options
from flashsim.core.errors import InvalidParameterError
from flashsim.core.members import Family, optional
from flashsim.core.options import Option, options_in
from flashsim.core.units import KIB, MIB, MILLISECONDS_A_SECOND
from flashsim.execution.requests import Algorithm, swap_sides
from flashsim.storage.heap_file import File
from flashsim.storage.layout import PAGE_FORMAT
from models.allocation.buffers import FUDGE, Allocation, check, exact

Division = TypeVar("Division", bound=Allocation)


@dataclass(frozen=True)
class JoinOptions:
    """Options of a join: a member with some of its own declares them in a record of this kind.

    A field with an `Option` is one that commands and functions of `fs` have; others can be set in Python files.
    """

    def columns_of(self, side: str) -> tuple[str, ...] | None:
        """Columns of the result that come from a relation, ``"R"`` or ``"S"``; None: all."""
        return None

    def with_roles_swapped(self) -> Self:
        """The same, when R and S change roles."""
        return self


Options = TypeVar("Options", bound=JoinOptions)


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
    #: Those that only this join has, a record of its `OPTIONS`; its defaults without it.
    options: JoinOptions | None = None
    #: Requests one after another are told together: pages that are fetched in a `Series`, blocks of a scan in `Blocks`.
    in_series: bool = False
    #: y = Dl / Dx and x = (Dl + Ds) / Dl of the device that buffers are divided for.  The defaults are the HDD of do2009, table 2, with
    #: pages of 8 KiB: Ds = 12 ms, Dl = 5.56 ms, 34 MiB a second.
    latency_ratio: float = 5.56 / (8 * KIB / (34 * MIB) * MILLISECONDS_A_SECOND)
    access_ratio: float = (12 + 5.56) / 5.56

    def options_of(self, kind: type[Options]) -> Options:
        """The options of a join that takes those of a kind; of a record that the kind extends, with its defaults for the rest.

        Raises
        ------
        InvalidParameterError
            They are another join's.
        """
        if self.options is None:
            return kind()
        if issubclass(kind, type(self.options)):
            return kind(**vars(self.options))
        if not isinstance(self.options, kind):
            raise InvalidParameterError("options", type(self.options).__name__, f"this join takes {kind.__name__}")
        return self.options

    @property
    def strands(self) -> int:
        """Strands of control that the join runs in."""
        return getattr(self.options, "strands", 1)


@dataclass(frozen=True)
class BucketOptions(PartitionOptions, JoinOptions):
    """Options of joins that make buckets.

    A join with an option more extends them by a record of its own, its `OPTIONS`; partition methods get only these.
    """


def partitioning_of(parameters: JoinParameters) -> PartitionParameters:
    """Parameters of the partition method of a join that makes buckets."""
    options = parameters.options_of(BucketOptions)
    in_series = parameters.in_series and options.strands == 1
    of_method = {field.name: getattr(options, field.name) for field in fields(PartitionOptions)}
    return PartitionParameters(**of_method, page_io=parameters.page_io, in_series=in_series)


def check_partitioning(parameters: JoinParameters) -> None:
    """Refuse what the partition method does not take."""
    check_options(partitioning_of(parameters))


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
    #: Kind of the options that the join takes.
    OPTIONS: type[JoinOptions] = JoinOptions
    #: Which of them names the join of keys or digests that this one runs; empty if there is none.
    INNER: str = ""
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


@cache
def join_options() -> dict[str, Option]:
    """Options of the joins in the family's folder by name: first those of joins that fetch rows, of which those apart come last."""
    joins = [JOINS.load(name) for name in JOINS.own_names()]
    options: dict[str, Option] = {}
    for fetches in (True, False):
        group = [each for join in joins if fetches == join.FETCHES for each in options_in(join.OPTIONS).items()]
        options |= sorted(group, key=lambda each: each[1].apart)
    return options


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
    swapped = replace(parameters, options=parameters.options and parameters.options.with_roles_swapped())
    return swap_sides(join(right, left, swapped, allocation))
