"""Hybrid hash join: as Grace hash, but a part of R never leaves memory, and S's tuples meet it as they are read (do2009, section 3.4)."""

import math

from algorithms.files import folders, temporary_files
from algorithms.hashing.buckets import Pass, Resident, SecondPhase, join_buckets, keep, meet
from algorithms.joins.base import BucketOptions, JoinParameters, check_partitioning, partitioning_of, settle
from algorithms.partitioning.base import PartitionBuffers, bucket_layouts, check_buffers
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.requests import Algorithm, Phase
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation, HybridAllocation, exact
from models.allocation.divisions import hybrid_hash

#: In `models.join_costs`.
FORMULA = "hybrid-hash"
OPTIONS = BucketOptions
check = check_partitioning


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> HybridAllocation:
    """Workspace, buckets and buffers by Haas et al."""
    return hybrid_hash(r_pages, s_pages, parameters.memory, parameters.latency_ratio, parameters.fudge)


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller."""
    shares = settle(r, s, parameters, allocation, HybridAllocation, allocate)
    table = math.ceil(r.pages * exact(parameters.fudge))
    if shares.buckets == 0 and shares.workspace < table:
        raise InvalidParameterError("workspace", f"{shares.workspace} pages", f"without buckets on disk all of R must fit: F |R| = {table}")
    check_buffers((r, s), PartitionBuffers(shares.input, shares.output, shares.buckets), partitioning_of(parameters))
    return _join(r, s, parameters, shares)


def _join(r: File, s: File, parameters: JoinParameters, allocation: HybridAllocation) -> Algorithm:
    yield Phase("partition")
    if not r.pages or not s.pages:
        return
    buffers, partitioning = PartitionBuffers(allocation.input, allocation.output, allocation.buckets), partitioning_of(parameters)
    layouts = bucket_layouts((r, s), buffers, partitioning)
    finer, share = r.page_size // layouts[0].page_size, max(1, allocation.buckets)
    r_files, s_files = (
        temporary_files(folder, "bucket", allocation.buckets, layout, file.pages // share * finer)
        for file, folder, layout in zip((r, s), folders("hybrid-hash", r, s), layouts, strict=True)
    )
    pages = math.floor(allocation.workspace / exact(parameters.fudge))
    resident = Resident(r.layout, pages * r.layout.room, 1.0 if allocation.buckets == 0 else pages / r.pages)
    how = Pass(buffers, 0, partitioning)
    yield from keep(r, r_files, resident, how)
    yield from meet(s, s_files, resident, how)
    yield Phase("join")
    second = SecondPhase(parameters.memory, allocation.phase2_input, parameters.fudge, parameters.latency_ratio, partitioning)
    yield from join_buckets(r_files, s_files, second.on_pages_of(r_files, r))
