"""Join by sorted files as textbooks have it: plain runs, passes that read and write all, and a merge of two sorted files.

What fits in memory is sorted there and not written.
"""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from algorithms.files import drop, folders, gather, read_block, spans, write_out
from algorithms.sorting.runs import Matching, merge, merge_into
from flashsim.execution.requests import Algorithm, Answer, Cpu, Phase, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples
from models.allocation.buffers import ExternalSortMergeAllocation
from models.allocation.divisions import pages_kept


class _SortedFile(NamedTuple):
    """A sorted file: its first tuples, which stay in memory, and those behind them, which were written."""

    kept: Tuples
    rest: File


def join_sorted(
    r: File, s: File, allocation: ExternalSortMergeAllocation, memory: int, last_phase: int | None = None, *, page_io: bool
) -> Algorithm:
    """Join R with S, the larger: sort both, and merge the sorted files; `last_phase` is pages for that, if it is not all of memory."""
    yield Phase("sort")
    if not r.pages or not s.pages:
        return
    names = folders("external-sort-merge", r, s)
    merging = last_phase or memory
    kept = pages_kept(r.pages, s.pages, allocation.workspace, merging)
    sides: list[_SortedFile] = []
    inputs = list(zip((r, s), names, kept, strict=True))
    for file, folder, pages in reversed(inputs) if kept[0] else inputs:  # S has all of memory to be sorted in
        sides += yield from _sort(file, folder, allocation, memory, pages, page_io=page_io)
    yield Phase("merge")
    if len(sides) == 2:
        of_r, of_s = reversed(sides) if kept[0] else sides
        block = merging - kept[0] if kept[0] else merging // 3
        group = kept[0] - of_r.rest.pages if kept[0] else merging - 2 * block  # of R that stays a group lies in its own pages
        matching = Matching(r.layout, 1, group, names[0], page_io=page_io)
        files, first = (of_r.rest, of_s.rest), (of_r.kept, of_s.kept)
        yield from merge(files, block, matching.consume, page_io=page_io, first=first)
        yield from matching.finish()
    for side in sides:
        yield from drop(side.rest)


def _sort(
    file: File, folder: str, allocation: ExternalSortMergeAllocation, memory: int, kept: int, *, page_io: bool
) -> Generator[Request, Answer, list[_SortedFile]]:
    """Sort a file, of which so many pages stay in memory; returns the sorted one, or nothing if no tuple can join."""
    runs: list[File] = []
    head = gather([])
    for first, pages in spans(file.pages, allocation.workspace):
        tuples = yield from read_block(file, first, pages, page_io)
        if not len(tuples):
            continue
        order = np.argsort(tuples.keys, kind="stable")
        yield Cpu({Work.COMPARE: len(tuples) * (len(tuples) - 1).bit_length()})
        runs.append(File(f"{folder}/run-{len(runs):03d}", file.layout, expected_pages=pages))
        tuples = tuples.select(order)
        end = int(file.layout.pack(tuples)[: kept + 1][-1]) if kept else 0
        head = tuples.select(slice(0, end))
        if end < len(tuples):
            yield from write_out(runs[-1], tuples.select(slice(end, None)), allocation.workspace, page_io=page_io)
    number = 0
    while len(runs) > 1:
        number += 1
        groups = [runs[begin : begin + allocation.fan_in] for begin in range(0, len(runs), allocation.fan_in)]
        runs = []
        for group in groups:  # one run that is left over is written too
            name = f"{folder}/pass-{number}-run-{len(runs):03d}"
            runs.append((yield from merge_into(name, group, memory, page_io=page_io)))
    return [_SortedFile(head, run) for run in runs]
