"""Block nested loops join: R in equal chunks, each hashed in memory, and one scan of S a chunk (do2009, section 3.1)."""

from algorithms.hashing.table import nested_blocks
from algorithms.joins.base import JoinParameters, settle
from algorithms.partitioning.base import PartitionParameters
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.requests import Algorithm, Phase
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation, NestedLoopsAllocation
from models.allocation.divisions import nested_loops

#: In `models.join_costs`.
FORMULA = "bnl"


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> NestedLoopsAllocation:
    """The chunk of R and the input buffer of S, by Haas et al."""
    return nested_loops(r_pages, s_pages, parameters.memory, parameters.latency_ratio, parameters.fudge)


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller.

    Reads NB = ceil(F |R| / M_R) chunks of R in one I/O block each, and S as often in blocks of M_S pages: NB (1 + ceil(|S| / M_S))
    blocks of |R| + NB |S| pages (Haas et al., section 3).
    """
    buffers = settle(r, s, parameters, allocation, NestedLoopsAllocation, allocate)
    if buffers.outer < parameters.fudge:
        raise InvalidParameterError("outer", f"{buffers.outer} pages", f"a page of R with its hash table takes {parameters.fudge:g}")
    return _join(r, s, parameters, buffers)


def _join(r: File, s: File, parameters: JoinParameters, allocation: NestedLoopsAllocation) -> Algorithm:
    yield Phase("join")
    how = PartitionParameters(page_io=parameters.page_io, in_series=parameters.in_series)
    yield from nested_blocks(r, s, allocation.chunks(r.pages, parameters.fudge), allocation.inner, how)
