"""Simple hash join: each iteration joins what memory holds of R, and passes all else over to the next (Haas et al., TR 1148, section 5)."""

import math

from algorithms.files import drop, folders
from algorithms.hashing.buckets import Pass, Resident, keep, meet
from algorithms.hashing.table import nested_blocks
from algorithms.joins.base import JoinParameters, settle
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.requests import Algorithm, Phase
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation, SimpleHashAllocation, exact
from models.allocation.divisions import nested_loops, simple_hash

#: An iteration that fills less of its memory than this met a key that most of R carries.
_LEAST_FILLED = 0.5

#: In `models.join_costs`.
FORMULA = "simple-hash"


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> SimpleHashAllocation:
    """The hash table and two equal buffers, by Haas et al."""
    return simple_hash(r_pages, s_pages, parameters.memory, parameters.latency_ratio, parameters.fudge)


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller."""
    shares = settle(r, s, parameters, allocation, SimpleHashAllocation, allocate)
    if shares.workspace < parameters.fudge:
        raise InvalidParameterError("workspace", f"{shares.workspace} pages", f"a page of R with its hash table takes {parameters.fudge:g}")
    return _join(r, s, parameters, shares)


def _join(r: File, s: File, parameters: JoinParameters, allocation: SimpleHashAllocation) -> Algorithm:
    yield Phase("first")
    names, partitioning = folders("simple-hash", r, s), PartitionParameters(page_io=parameters.page_io, in_series=parameters.in_series)
    room = math.floor(allocation.workspace / exact(parameters.fudge))
    # As many more are let in as chance may lack; what is too many goes back to the others, which costs nothing here.
    chance = 1 + 2 / math.sqrt(max(1.0, r.tuples * room / max(1, r.pages)))
    number = 0
    while r.pages and s.pages:
        if number == 1:
            yield Phase("further")
        share = min(1.0, room / r.pages)
        overflow = [
            File(f"{name}/pass-{number:03}", file.layout, expected_pages=round((1 - share) * file.pages))
            for name, file in zip(names, (r, s), strict=True)
        ]
        resident = Resident(r.layout, room * r.layout.room, 1.0 if share == 1 else share * chance, slack=1.0)
        how = Pass(PartitionBuffers(allocation.input, allocation.output, 1), number, partitioning)
        yield from keep(r, overflow[:1], resident, how)
        yield from meet(s, overflow[1:] if overflow[0].pages else [], resident, how)
        for file in (r, s):
            yield from drop(file)
        r, s = overflow
        number += 1
        if resident.fill_level < _LEAST_FILLED and s.pages:
            loops = nested_loops(r.pages, s.pages, parameters.memory, parameters.latency_ratio, parameters.fudge)
            yield from nested_blocks(r, s, loops.chunks(r.pages, parameters.fudge), loops.inner, partitioning)
            break
    for file in (r, s):
        yield from drop(file)
