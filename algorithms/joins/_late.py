"""Joins of keys alone, after which columns of the rows that join are fetched: what RARE-join and FlashJoin have in common."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

from algorithms.joins.base import JoinOptions, JoinParameters, settle
from algorithms.late_fetch.columns import KeyColumn, Selection, key_column
from algorithms.late_fetch.fetch import LateFetch, Side, check_columns_apart
from flashsim.core.errors import InvalidParameterError
from flashsim.core.options import Option
from flashsim.storage.heap_file import File, HeapFile
from models.allocation.buffers import Allocation, LateAllocation

#: Pages for joining keys, at least: a table, and a buffer of each side.
_LEAST = 3
#: The part of memory that the join index has meanwhile.
_INDEX_SHARE = 8
_COLUMNS = "Columns of the result, such as R.c_name,S.o_totalprice; rare and flash-join read no others."


@dataclass(frozen=True, kw_only=True)
class LateOptions(JoinOptions):
    """Options of joins that fetch columns late."""

    columns: Annotated[tuple[str, ...] | None, Option(_COLUMNS, "LIST", kind="names")] = None

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

    def with_roles_swapped(self) -> Self:
        """The same, when R and S change roles."""
        columns = {side: [f"{other}.{name}" for name in self.columns_of(side) or ()] for side, other in (("R", "S"), ("S", "R"))}
        return self if self.columns is None else replace(self, columns=(*columns["S"], *columns["R"]))


@dataclass(frozen=True)
class LateJoin:
    """Parts of a join that fetches late: keys as files of digests, memory for joining them, and the fetch."""

    r: KeyColumn
    s: KeyColumn
    memory: int
    fetch: LateFetch


def late_allocation(r_pages: int, s_pages: int, parameters: JoinParameters) -> LateAllocation:
    """An eighth of memory for the join index, and the rest for the join of keys."""
    index = max(1, parameters.memory // _INDEX_SHARE)
    return LateAllocation(parameters.memory - index, index)


def late_join(
    name: str, r: File, s: File, parameters: JoinParameters, allocation: Allocation | None, where: Sequence[Selection | None] = (None, None)
) -> LateJoin:
    """Check what a join is given, and make ready what it needs."""
    shares = settle(r, s, parameters, allocation, LateAllocation, late_allocation)
    if shares.join < _LEAST:
        raise InvalidParameterError("memory", f"{parameters.memory} pages", f"{name} needs {_LEAST} to join keys and 1 for the join index")
    if not isinstance(r, HeapFile) or not isinstance(s, HeapFile):
        raise InvalidParameterError("relation", r.name, "columns are fetched from base relations")
    for file in (r, s):
        check_columns_apart(file, f"{name} reads columns alone")
    options = parameters.options_of(LateOptions)
    sides = [Side(label, file, options.columns_of(label)) for label, file in (("R", r), ("S", s))]
    keys = [key_column(file, page_io=parameters.page_io, selection=selection) for file, selection in zip((r, s), where, strict=True)]
    return LateJoin(keys[0], keys[1], shares.join, LateFetch(name, sides, parameters.memory, shares.index, page_io=parameters.page_io))
