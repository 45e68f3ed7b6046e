"""Hash buckets: a file is partitioned into them, a part of R may stay in memory, and a bucket of R is joined with its bucket of S.

What stays are all tuples whose hash lies below a threshold, which falls when they become too many: so does hybrid hash once, and simple
hash until nothing is left.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from algorithms.files import drop, gather, regions, temporary_files, together
from algorithms.hashing.table import LOW_HALF, Hashes, ends_of, hash_keys, nested_blocks, probe, probe_ahead, table_of
from algorithms.look_ahead import Ahead
from algorithms.partitioning.base import ByHash, PartitionBuffers, PartitionParameters, Put, PutBlocks, bucket_layouts, distribute
from flashsim.core.request import Integers, total
from flashsim.execution.requests import Acquire, Algorithm, Answer, Cpu, Latch, Release, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples, apply_mask
from models.allocation.buffers import GraceAllocation, exact
from models.allocation.divisions import bucket_division, nested_loops

#: The upper half of a hash is below this.
_RANGE = 1 << 32
#: Share of memory that expected tuples fill after it overflowed: the rest is for chance, so that skew alone makes it overflow again.
_SLACK = 0.98


@dataclass(frozen=True)
class SecondPhase:
    """Join of buckets."""

    #: Pages.
    memory: int
    #: Pages of S that are read at a time, where the bucket of R leaves so many.
    input: int
    #: As in `algorithms.joins.base.JoinParameters`.
    fudge: float
    latency_ratio: float
    #: How a bucket that does not fit is divided, and whether every request is one page long.
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
    by_hash = ByHash(lambda tuples: bucket_numbers(hash_keys(tuples.keys, level), len(files)))
    yield from distribute(file, files, buffers, by_hash, parameters)


def partition_both(
    files: Sequence[File], folders: Sequence[str], level: int, allocation: GraceAllocation, parameters: PartitionParameters
) -> Generator[Request, Answer, list[list[File]]]:
    """Distribute R and then S over buckets in folders of theirs; returns the files of the buckets of each."""
    buffers, buckets = PartitionBuffers(allocation.input, allocation.output, allocation.buckets), []
    for file, folder, layout in zip(files, folders, bucket_layouts(files, buffers, parameters), strict=True):
        bucket_pages = math.ceil(file.pages / allocation.buckets) * (file.page_size // layout.page_size)
        buckets.append(temporary_files(folder, "bucket", allocation.buckets, layout, bucket_pages))
        yield from partition(file, buckets[-1], level, buffers, parameters)
    return buckets


def join_buckets(r_files: Sequence[File], s_files: Sequence[File], second: SecondPhase, level: int = 0) -> Algorithm:
    """Join buckets pairwise and drop them.

    A bucket of R is read in one I/O block, and S's in blocks of `second.input` pages; the input buffer gives way to a bucket that is
    larger than planned.  One that does not fit even so was overfull at `level`, and goes to the next.
    """
    total, how = sum(file.pages for file in r_files), second.partitioning
    for r, s in zip(r_files, s_files, strict=True):
        if r.pages and s.pages:
            table = math.ceil(r.pages * exact(second.fudge))
            if table < second.memory:
                yield from nested_blocks(r, s, 1, min(second.input, second.memory - table), how)
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
        yield from nested_blocks(r, s, chunks, loops.inner, second.partitioning)
        return
    division = bucket_division(r.pages, s.pages, second.memory, second.fudge)
    r_parts, s_parts = yield from partition_both((r, s), (r.name, s.name), level, division, second.partitioning)
    yield from join_buckets(r_parts, s_parts, second.on_pages_of(r_parts, r), level)


class Resident:
    """Tuples in memory, of at most `capacity` bytes as they would take on pages, which a `share` of R is expected to fill.

    A threshold divides by key, so S can be divided by it after R: what is below the last one is joined in memory, all else on disk.
    When it overflows, memory is emptied to the part `slack` of the need expected so far.
    """

    def __init__(self, layout: Layout, capacity: int, share: float, slack: float = _SLACK) -> None:
        self._layout, self._capacity, self._slack = layout, capacity, slack
        self._threshold = np.uint64(min(_RANGE, int(share * _RANGE)))
        self._tuples, self._hashes, self._bytes = list[Tuples](), list[Hashes](), 0

    def __len__(self) -> int:
        return sum(len(part) for part in self._tuples)

    def holds(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Mask of the hashes whose keys belong in memory."""
        return hashes >> np.uint64(32) < self._threshold

    def admit(self, tuples: Tuples, hashes: Hashes) -> None:
        self._tuples.append(tuples)
        self._hashes.append(hashes)
        self._bytes += int(self._layout.cell_sizes(tuples).sum())

    def fitting(self, tuples: Tuples, stays: npt.NDArray[np.bool_], ends: Integers) -> int:
        """How many of some blocks, whose tuples end at these numbers, memory has room for; `stays` tells which of them belong in it."""
        sizes = np.concatenate([[0], np.cumsum(np.where(stays, self._layout.cell_sizes(tuples), 0))])
        return int(np.searchsorted(sizes[ends], self._capacity - self._bytes, side="right"))

    @property
    def pages(self) -> int:
        """Pages that the tuples would take."""
        return -(-self._bytes // self._layout.room)

    @property
    def fill_level(self) -> float:
        return self._bytes / self._capacity

    @property
    def overfull(self) -> bool:
        """True if there are more tuples than memory holds."""
        return self._bytes > self._capacity

    def demote(self, share: float) -> tuple[Tuples, Hashes]:
        """Lower the threshold so that the tuples below it will fit at the end of R; returns the tuples that must go, and their hashes.

        `share` is the part of R that has been read.
        """
        tuples, hashes = self.tuples()
        choices = hashes >> np.uint64(32)
        order = np.argsort(choices, kind="stable")
        sizes = np.cumsum(self._layout.cell_sizes(tuples)[order])
        rank = int(np.searchsorted(sizes, self._capacity * share * self._slack, side="right"))
        self._threshold = choices[order[rank]]
        stays = self.holds(hashes)
        self._tuples, self._hashes, self._bytes = [], [], 0
        self.admit(tuples.select(stays), hashes[stays])
        return tuples.select(~stays), hashes[~stays]

    def tuples(self) -> tuple[Tuples, Hashes]:
        return gather(self._tuples), np.concatenate([np.zeros(0, np.uint64), *self._hashes])


@dataclass(frozen=True)
class Pass:
    """Buffers of a pass over a relation, the level of its hash function, and the method that partitions tuples that do not stay."""

    buffers: PartitionBuffers
    level: int
    partitioning: PartitionParameters


class _Keeping:
    """The route of R's tuples: those below the threshold stay, and the rest goes to as many files as there are, or nowhere."""

    def __init__(self, r: File, files: Sequence[File], resident: Resident, how: Pass) -> None:
        self._r, self._count, self._resident, self._level, self._pages_read = r, len(files), resident, how.level, 0
        self._latch = Latch("what stays in memory") if how.partitioning.strands > 1 else None  # a driver of one strand knows none

    def __call__(self, tuples: Tuples, pages: int, put: Put) -> Algorithm:
        yield Cpu({Work.HASH: len(tuples)})
        hashes, resident = hash_keys(tuples.keys, self._level), self._resident
        if self._latch is not None:
            yield Acquire(self._latch)
        self._pages_read += pages
        stays = resident.holds(hashes)
        resident.admit(tuples.select(stays), apply_mask(hashes, stays))
        surplus = resident.demote(self._pages_read / self._r.pages) if resident.overfull else None
        if self._latch is not None:
            yield Release(self._latch)
        yield from put(tuples.select(~stays), bucket_numbers(apply_mask(hashes, ~stays), self._count))
        if surplus is not None:
            yield from put(surplus[0], bucket_numbers(surplus[1], self._count))

    def ahead(self, ahead: Ahead, put: PutBlocks) -> Generator[Request, Answer, int]:
        """Route the blocks before that with which memory overflows."""
        hashes, resident = hash_keys(ahead.tuples.keys, self._level), self._resident
        stays = resident.holds(hashes)
        fitting = resident.fitting(ahead.tuples, stays, ahead.ends)
        if not fitting:
            return 0
        if fitting < len(ahead.ends):
            ahead = ahead.part(fitting)
            hashes, stays = hashes[: len(ahead.tuples)], stays[: len(ahead.tuples)]
        tuples, goes = ahead.tuples, ~stays
        resident.admit(tuples.select(stays), apply_mask(hashes, stays))
        self._pages_read += total(ahead.blocks.counts)
        blocks = ahead.having({Work.HASH: np.diff(ahead.ends, prepend=0)})
        yield from put(blocks, tuples.select(goes), bucket_numbers(apply_mask(hashes, goes), self._count), ends_of(goes, ahead.ends))
        return fitting


def keep(r: File, files: Sequence[File], resident: Resident, how: Pass) -> Algorithm:
    """Read R: its part below the threshold stays, and the rest goes to the files, or nowhere without any."""
    yield from distribute(r, files, how.buffers, _Keeping(r, files, resident, how), how.partitioning)


class _Meeting:
    """The route of S's tuples: those below the threshold are joined, and the rest goes to as many files as there are, or nowhere."""

    def __init__(self, files: Sequence[File], resident: Resident, level: int) -> None:
        self._table, self._count, self._resident, self._level = table_of(*resident.tuples()), len(files), resident, level

    def __call__(self, tuples: Tuples, pages: int, put: Put) -> Algorithm:
        yield Cpu({Work.HASH: len(tuples)})
        hashes = hash_keys(tuples.keys, self._level)
        meets = self._resident.holds(hashes)
        yield from probe(self._table, tuples.select(meets), apply_mask(hashes, meets))
        yield from put(tuples.select(~meets), bucket_numbers(apply_mask(hashes, ~meets), self._count))

    def ahead(self, ahead: Ahead, put: PutBlocks) -> Generator[Request, Answer, int]:
        hashes = hash_keys(ahead.tuples.keys, self._level)
        meets = self._resident.holds(hashes)
        goes, tuples, ends = ~meets, ahead.tuples, ahead.ends
        work = yield from probe_ahead(self._table, tuples.select(meets), ends_of(meets, ends), apply_mask(hashes, meets))
        blocks = ahead.having({Work.HASH: np.diff(ends, prepend=0)}, work)
        yield from put(blocks, tuples.select(goes), bucket_numbers(apply_mask(hashes, goes), self._count), ends_of(goes, ends))
        return len(ends)


def meet(s: File, files: Sequence[File], resident: Resident, how: Pass) -> Algorithm:
    """Read S: its part below the threshold is joined with what stayed of R, and the rest goes to the files, or nowhere without any."""
    route = _Meeting(files, resident, how.level)

    def build(first: int, end: int) -> Algorithm:
        """The work of putting tuples, whose hashes are known, into the table; strands that have partitioned share it."""
        yield Cpu({Work.BUILD: end - first})

    yield from together([build(*share) for share in regions(0, len(resident), how.partitioning.strands) or [(0, 0)]])
    yield from distribute(s, files, how.buffers, route, how.partitioning)
