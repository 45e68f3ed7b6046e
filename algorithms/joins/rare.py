"""RARE-join: the key columns alone are read and hashed, and columns of rows that join are fetched by a join index, as in Jive join.

Source: Shah, Harizopoulos, Wiener and Graefe, "Fast Scans and Joins using Flash Drives" (DaMoN 2008).
"""

import math

from algorithms.files import folders, read_block, spans
from algorithms.hashing.buckets import SecondPhase, join_buckets, partition_both
from algorithms.hashing.table import build, build_work, probe
from algorithms.joins._late import LateJoin, LateOptions, late_allocation, late_join
from algorithms.joins.base import JoinParameters
from algorithms.late_fetch.columns import scan_columns
from algorithms.late_fetch.fetch import PAGE_FORMAT
from algorithms.partitioning.base import PartitionParameters
from flashsim.execution.requests import Algorithm, Phase
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation, exact
from models.allocation.divisions import bucket_division

__all__ = ["PAGE_FORMAT", "allocate", "check", "join"]

#: In `models.join_costs`.
FORMULA = "rare"
#: Rows of base relations.
FETCHES = True
OPTIONS = LateOptions
allocate = late_allocation


def check(parameters: JoinParameters) -> None:
    """Refuse columns of neither relation."""
    parameters.options_of(LateOptions).columns_of("R")


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller.

    The keys of R are hashed in memory if they fit there, or else keys and row ids of both relations go to buckets on disk.
    """
    return _join(late_join("rare", r, s, parameters, allocation), parameters)


def _join(late: LateJoin, parameters: JoinParameters) -> Algorithm:
    table = math.ceil(late.r.pages * exact(parameters.fudge))
    keys = _in_memory(late, late.memory - table, parameters) if table < late.memory else _in_buckets(late, parameters)
    yield from scan_columns(keys, late.fetch.append)
    yield from late.fetch.finish(sort_again=False)


def _in_memory(late: LateJoin, input_pages: int, parameters: JoinParameters) -> Algorithm:
    yield Phase("scan")
    if not late.r.pages or not late.s.pages:
        return
    tuples = yield from read_block(late.r, 0, late.r.pages, parameters.page_io)
    yield build_work(tuples)
    table = build([tuples])
    yield Phase("join")
    for first, pages in spans(late.s.pages, input_pages):
        yield from probe(table, (yield from read_block(late.s, first, pages, parameters.page_io)))


def _in_buckets(late: LateJoin, parameters: JoinParameters) -> Algorithm:
    """Two passes: keys and row ids of both relations go to buckets."""
    yield Phase("partition")
    partitioning = PartitionParameters(page_io=parameters.page_io)
    second = SecondPhase(late.memory, 1, parameters.fudge, parameters.latency_ratio, partitioning)
    allocation = bucket_division(late.r.pages, late.s.pages, late.memory, parameters.fudge)
    r_files, s_files = yield from partition_both((late.r, late.s), folders("rare", late.r, late.s), 0, allocation, partitioning)
    yield Phase("join")
    yield from join_buckets(r_files, s_files, second)
