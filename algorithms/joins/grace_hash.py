"""Grace hash join: both relations are split into buckets by a hash of the key, then bucket is joined with bucket (do2009, section 3.3)."""

from algorithms.files import folders
from algorithms.hashing.buckets import SecondPhase, join_buckets, partition_both
from algorithms.joins.base import BucketOptions, JoinParameters, check_partitioning, partitioning_of, settle
from algorithms.partitioning.base import PartitionBuffers, check_buffers
from flashsim.execution.requests import Algorithm, Phase
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation, GraceAllocation
from models.allocation.divisions import grace_hash

#: In `models.join_costs`.
FORMULA = "grace-hash"
OPTIONS = BucketOptions
check = check_partitioning


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> GraceAllocation:
    """Buckets and buffers by Haas et al.: all buffers equal."""
    return grace_hash(r_pages, s_pages, parameters.memory, parameters.fudge)


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller."""
    shares = settle(r, s, parameters, allocation, GraceAllocation, allocate)
    check_buffers((r, s), PartitionBuffers(shares.input, shares.output, shares.buckets), partitioning_of(parameters))
    return _join(r, s, parameters, shares)


def _join(r: File, s: File, parameters: JoinParameters, allocation: GraceAllocation) -> Algorithm:
    yield Phase("partition")
    if not r.pages or not s.pages:
        return
    partitioning = partitioning_of(parameters)
    r_files, s_files = yield from partition_both((r, s), folders("grace-hash", r, s), 0, allocation, partitioning)
    yield Phase("join")
    second = SecondPhase(parameters.memory, allocation.phase2_input, parameters.fudge, parameters.latency_ratio, partitioning)
    yield from join_buckets(r_files, s_files, second.on_pages_of(r_files, r))
