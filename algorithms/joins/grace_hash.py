"""Grace hash join: both relations are split into buckets by a hash of the key, then bucket is joined with bucket (do2009, section 3.3)."""

from __future__ import annotations

import math

from algorithms.buckets import SecondPhase, join_buckets, partition
from algorithms.joins.base import JoinParameters, folders, settle
from algorithms.partitioning.base import PartitionBuffers
from algorithms.temporaries import temporary_files
from flashsim.execution.requests import Algorithm, Phase
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation, GraceAllocation
from models.allocation.grace_hash import grace_hash

#: In `models.join_costs`.
FORMULA = "grace-hash"
OPTIONS = ("partition", "sub_buffer", "strands")


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> GraceAllocation:
    """Buckets and buffers by Haas et al.: all buffers equal."""
    return grace_hash(r_pages, s_pages, parameters.memory, parameters.fudge)


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller.

    Raises
    ------
    InvalidParameterError
        Memory not above sqrt(F |R|), or an allocation that does not fit.
    """
    return _join(r, s, parameters, settle(r, s, parameters, allocation, GraceAllocation, allocate))


def _join(r: File, s: File, parameters: JoinParameters, allocation: GraceAllocation) -> Algorithm:
    yield Phase("partition")
    if not r.pages or not s.pages:
        return
    buffers, partitioning = PartitionBuffers(allocation.input, allocation.output), parameters.partitioning
    buckets: list[list[File]] = []
    for file, folder in zip((r, s), folders("grace-hash", r, s), strict=True):
        expected = math.ceil(file.pages / allocation.buckets)
        buckets.append(temporary_files(folder, "bucket", allocation.buckets, file.layout, expected))
        yield from partition(file, buckets[-1], 0, buffers, partitioning)
    yield Phase("join")
    second = SecondPhase(parameters.memory, allocation.phase2_input, parameters.fudge, parameters.latency_ratio, partitioning)
    yield from join_buckets(buckets[0], buckets[1], second)
