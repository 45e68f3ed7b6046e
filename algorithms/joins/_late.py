"""What RARE-join and FlashJoin share: they join keys that are read alone, and fetch columns of the rows that join afterwards."""

from dataclasses import dataclass

from algorithms.joins.base import JoinParameters, settle
from algorithms.late_fetch import LateFetch, Side
from algorithms.minipages import KeyColumn, Selection, key_column
from flashsim.core.errors import InvalidParameterError
from flashsim.storage.heap_file import File, HeapFile
from models.allocation.buffers import Allocation, LateAllocation

#: In which columns lie apart.
PAGE_FORMAT = "pax"
#: Rows of base relations.
FETCHES = True
#: Pages for joining keys, at least: a table, and a buffer of each side.
_LEAST = 3
#: The part of memory that the join index has meanwhile.
_INDEX_SHARE = 8


@dataclass(frozen=True)
class LateJoin:
    """What such a join works with: keys as files of digests, memory for joining them, and the fetch that takes the join index."""

    r: KeyColumn
    s: KeyColumn
    memory: int
    fetch: LateFetch


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> LateAllocation:
    """An eighth of memory for the join index, and the rest for the join of keys."""
    index = max(1, parameters.memory // _INDEX_SHARE)
    return LateAllocation(parameters.memory - index, index)


def check(parameters: JoinParameters) -> None:
    """Refuse columns of neither relation."""
    parameters.wanted("R")


def prepare(
    name: str,
    r: File,
    s: File,
    parameters: JoinParameters,
    allocation: Allocation | None,
    where: tuple[Selection | None, Selection | None] = (None, None),
) -> LateJoin:
    """Check what a join is given, and make ready what it needs."""
    chosen = settle(r, s, parameters, allocation, LateAllocation, allocate)
    if chosen.join < _LEAST:
        raise InvalidParameterError("memory", f"{parameters.memory} pages", f"{name} needs {_LEAST} to join keys and 1 for the join index")
    if not isinstance(r, HeapFile) or not isinstance(s, HeapFile):
        raise InvalidParameterError("relation", r.name, "columns are fetched from base relations")
    for file in (r, s):
        if not file.layout.keeps_columns_apart:
            bound = f"{name} reads columns alone: {file.name} must be on pages such as {PAGE_FORMAT}"
            raise InvalidParameterError("page format", file.layout.page_format, bound)
    sides = [Side(label, file, parameters.wanted(label)) for label, file in (("R", r), ("S", s))]
    keys = [key_column(file, page_io=parameters.page_io, selection=selection) for file, selection in zip((r, s), where, strict=True)]
    return LateJoin(keys[0], keys[1], chosen.join, LateFetch(name, sides, parameters.memory, chosen.index, page_io=parameters.page_io))
