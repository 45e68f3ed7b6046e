"""Hash buckets: partitioning a file into them, and joining a bucket of R with its bucket of S, whatever its size."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from algorithms.hashing import LOW_HALF, hash_keys
from algorithms.nested_blocks import nested_blocks
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters, Put, bucket_layouts, distribute
from algorithms.temporaries import drop, temporary_files
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Answer, Cpu, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples
from models.allocation.bounds import ceil_sqrt
from models.allocation.buffers import GraceAllocation, exact
from models.allocation.grace_hash import grace_hash
from models.allocation.nested_loops import nested_loops


@dataclass(frozen=True)
class SecondPhase:
    """How buckets are joined.

    Parameters
    ----------
    memory
        Pages.
    input
        Pages of S that are read at a time, where the bucket of R leaves so many.
    fudge, latency_ratio
        As in `algorithms.joins.base.JoinParameters`.
    partitioning
        How a bucket that does not fit is divided, and whether every request is one page long.
    """

    memory: int
    input: int
    fudge: float
    latency_ratio: float
    partitioning: PartitionParameters

    def on_pages_of(self, buckets: Sequence[File], file: File) -> SecondPhase:
        """The same, told in pages of buckets rather than those of the file that they were made of."""
        finer = file.page_size // buckets[0].page_size if buckets else 1
        return replace(self, memory=self.memory * finer, input=self.input * finer, latency_ratio=self.latency_ratio * finer)


def bucket_numbers(hashes: npt.NDArray[np.uint64], count: int) -> Integers:
    """The bucket of each hash, shape (n,): its lower half scaled to 0 .. count - 1."""
    return ((hashes & LOW_HALF) * np.uint64(count) >> np.uint64(32)).view(np.int64)


def partition(file: File, files: Sequence[File], level: int, buffers: PartitionBuffers, parameters: PartitionParameters) -> Algorithm:
    """Distribute the tuples of a file over buckets by the hash function of a level."""

    def route(tuples: Tuples, _: int, put: Put) -> Algorithm:
        yield Cpu({Work.HASH: len(tuples)})
        yield from put(tuples, bucket_numbers(hash_keys(tuples.keys, level), len(files)))

    yield from distribute(file, files, buffers, route, parameters)


def partition_both(
    files: Sequence[File], folders: Sequence[str], level: int, allocation: GraceAllocation, parameters: PartitionParameters
) -> Generator[Request, Answer, list[list[File]]]:
    """Distribute R and then S over buckets in folders of theirs; returns the files of the buckets of each."""
    buffers, buckets = PartitionBuffers(allocation.input, allocation.output, allocation.buckets), []
    for file, folder, layout in zip(files, folders, bucket_layouts(files, buffers, parameters), strict=True):
        expected = math.ceil(file.pages / allocation.buckets) * (file.page_size // layout.page_size)
        buckets.append(temporary_files(folder, "bucket", allocation.buckets, layout, expected))
        yield from partition(file, buckets[-1], level, buffers, parameters)
    return buckets


def join_buckets(r_files: Sequence[File], s_files: Sequence[File], second: SecondPhase, level: int = 0) -> Algorithm:
    """Join buckets pairwise and drop them.

    A bucket of R is read in one I/O block, and S's in blocks of `second.input` pages; the input buffer gives way to a bucket that is
    larger than planned.  One that does not fit even so was overfull at `level`, and goes to the next.
    """
    total = sum(file.pages for file in r_files)
    for r, s in zip(r_files, s_files, strict=True):
        if r.pages and s.pages:
            table = math.ceil(r.pages * exact(second.fudge))
            if table < second.memory:
                yield from _nested_blocks(r, s, 1, min(second.input, second.memory - table), second.partitioning)
            else:
                spreads = 2 * len(r_files) * r.pages <= (len(r_files) + 1) * total
                yield from _join_overfull(r, s, second, level + 1, spreads=spreads)
        yield from drop(r)
        yield from drop(s)


def _join_overfull(r: File, s: File, second: SecondPhase, level: int, *, spreads: bool) -> Algorithm:
    """Join a bucket that does not fit: by block nested loops, or in smaller buckets if that moves fewer pages.

    Partitioning reads and writes everything and reads it again.  It cannot split a key: a bucket that holds its share, 1 / k, and more
    than half of the rest is taken to be mostly one key, and is not split again (`spreads`).
    """
    loops = nested_loops(r.pages, s.pages, second.memory, second.latency_ratio, second.fudge)
    chunks = loops.chunks(r.pages, second.fudge)
    if not spreads or r.pages + chunks * s.pages <= 3 * (r.pages + s.pages):
        yield from _nested_blocks(r, s, chunks, loops.inner, second.partitioning)
        return
    r_parts, s_parts = yield from partition_both((r, s), (r.name, s.name), level, division(r, s, second), second.partitioning)
    yield from join_buckets(r_parts, s_parts, second.on_pages_of(r_parts, r), level)


def _nested_blocks(r: File, s: File, chunks: int, inner: int, how: PartitionParameters) -> Algorithm:
    yield from nested_blocks(r, s, chunks, inner, page_io=how.page_io, strands=how.strands)


def division(r: File, s: File, second: SecondPhase) -> GraceAllocation:
    """Buffers for partitioning a bucket: Grace hash's, or as many buckets as possible where those would still overflow."""
    memory = second.memory
    if memory > ceil_sqrt(r.pages * exact(second.fudge)):
        return grace_hash(r.pages, s.pages, memory, second.fudge)
    return GraceAllocation(memory - 1, 1, 1, 1, memory - 1)
