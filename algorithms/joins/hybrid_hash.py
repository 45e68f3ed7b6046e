"""Hybrid hash join: as Grace hash, but a part of R never leaves memory, and S's tuples meet it as they are read (do2009, section 3.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from algorithms.blocks import read_block, spans
from algorithms.buckets import SecondPhase, bucket_numbers, join_buckets
from algorithms.hashing import Hashes, HashTable, hash_keys, probe
from algorithms.joins.base import JoinParameters, folders, settle
from algorithms.resident import Resident
from algorithms.temporaries import Output, temporary_files
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.requests import Algorithm, Cpu, Phase, Work
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.rows import Tuples
from models.allocation import Allocation, HybridAllocation, exact, hybrid_hash


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> HybridAllocation:
    """Workspace, buckets and buffers by Haas et al."""
    return hybrid_hash(r_pages, s_pages, parameters.memory, parameters.latency_ratio, parameters.fudge)


def join(r: HeapFile, s: HeapFile, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller.

    Raises
    ------
    InvalidParameterError
        Memory not above sqrt(F |R|), or an allocation that does not fit, such as one without buckets whose workspace cannot hold R.
    """
    chosen = settle(r, s, parameters, allocation, HybridAllocation, allocate)
    table = math.ceil(r.pages * exact(parameters.fudge))
    if chosen.buckets == 0 and chosen.workspace < table:
        raise InvalidParameterError("workspace", f"{chosen.workspace} pages", f"without buckets on disk all of R must fit: F |R| = {table}")
    return _join(r, s, parameters, chosen)


def _join(r: HeapFile, s: HeapFile, parameters: JoinParameters, allocation: HybridAllocation) -> Algorithm:
    yield Phase("partition")
    if not r.pages or not s.pages:
        return
    r_files, s_files = (
        temporary_files(folder, "bucket", allocation.buckets, file.layout, file.pages // max(1, allocation.buckets))
        for file, folder in zip((r, s), folders("hybrid-hash", r, s), strict=True)
    )
    pages = math.floor(allocation.workspace / exact(parameters.fudge))
    resident = Resident(r.layout, pages * r.layout.room, 1.0 if allocation.buckets == 0 else pages / r.pages)
    yield from _partition_r(r, r_files, resident, allocation, page_io=parameters.page_io)
    table = HashTable(*resident.tuples())
    yield Cpu({Work.BUILD: len(resident)})
    yield from _partition_s(s, s_files, resident, table, allocation, page_io=parameters.page_io)
    yield Phase("join")
    second = SecondPhase(parameters.memory, allocation.phase2_input, parameters.fudge, parameters.latency_ratio, parameters.page_io)
    yield from join_buckets(r_files, s_files, second)


class _Spill:
    """The buckets that go to disk; there may be none."""

    def __init__(self, files: Sequence[File], pages: int, *, page_io: bool) -> None:
        self._count = len(files)
        self._output = Output(files, pages, page_io=page_io) if files else None

    def append(self, tuples: Tuples, hashes: Hashes) -> Algorithm:
        if self._output is not None and len(tuples):
            yield from self._output.append(tuples, bucket_numbers(hashes, self._count))

    def finish(self) -> Algorithm:
        if self._output is not None:
            yield from self._output.finish()


def _partition_r(r: File, files: Sequence[File], resident: Resident, allocation: HybridAllocation, *, page_io: bool) -> Algorithm:
    spill = _Spill(files, allocation.output, page_io=page_io)
    for first, pages in spans(r.pages, allocation.input):
        tuples = yield from read_block(r, first, pages, page_io)
        yield Cpu({Work.HASH: len(tuples)})
        hashes = hash_keys(tuples.keys, 0)
        stays = resident.holds(hashes)
        resident.admit(tuples.chosen(stays), hashes[stays])
        yield from spill.append(tuples.chosen(~stays), hashes[~stays])
        if resident.overfull():
            yield from spill.append(*resident.demote((first + pages) / r.pages))
    yield from spill.finish()


def _partition_s(
    s: File, files: Sequence[File], resident: Resident, table: HashTable, allocation: HybridAllocation, *, page_io: bool
) -> Algorithm:
    spill = _Spill(files, allocation.output, page_io=page_io)
    for first, pages in spans(s.pages, allocation.input):
        tuples = yield from read_block(s, first, pages, page_io)
        yield Cpu({Work.HASH: len(tuples)})
        hashes = hash_keys(tuples.keys, 0)
        meets = resident.holds(hashes)
        yield from probe(table, tuples.chosen(meets), hashes[meets])
        yield from spill.append(tuples.chosen(~meets), hashes[~meets])
    yield from spill.finish()
