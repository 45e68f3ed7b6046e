"""External sort-merge join as textbooks have it: plain runs, passes that read and write all, and a merge of two sorted files.

What fits in memory is sorted there and not written.

Source: Li, On, Xu, Choi and Hu, "DigestJoin" (MDM 2009), section II, the join called Basic in section IV.
"""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from algorithms.files import drop, gathered, read_block, spans, write_out
from algorithms.joins.base import JoinParameters, folders, settle
from algorithms.sorting.runs import Matching, merge, merge_into
from flashsim.execution.requests import Algorithm, Answer, Cpu, Phase, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples
from models.allocation.buffers import Allocation, ExternalSortMergeAllocation
from models.allocation.divisions import external_sort_merge, pages_kept

#: In `models.join_costs`.
FORMULA = "external-sort-merge"
#: A page of each sorted file, and one for tuples of R that have the same key.
STREAMS_IN = 3


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> ExternalSortMergeAllocation:
    """Runs of B pages, merged B - 1 at a time, with B pages of memory."""
    return external_sort_merge(parameters.memory)


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller.

    Each file is sorted in 1 + ceil(log_(B-1) ceil(N / B)) passes that read and write its N pages; the last one writes too, and the
    sorted files are then read once more.  What stays in memory once it is sorted (`pages_kept`) is neither written nor read again.
    """
    return _join(r, s, parameters, settle(r, s, parameters, allocation, ExternalSortMergeAllocation, allocate))


class _Sorted(NamedTuple):
    """A sorted file: its first tuples, which stay in memory, and those behind them, which were written."""

    kept: Tuples
    rest: File


def _join(r: File, s: File, parameters: JoinParameters, allocation: ExternalSortMergeAllocation) -> Algorithm:
    yield Phase("sort")
    if not r.pages or not s.pages:
        return
    names = folders("external-sort-merge", r, s)
    memory = parameters.last_phase or parameters.memory
    kept = pages_kept(r.pages, s.pages, allocation.workspace, memory)
    sides: list[_Sorted] = []
    inputs = list(zip((r, s), names, kept, strict=True))
    for file, folder, pages in reversed(inputs) if kept[0] else inputs:  # S has all of memory to be sorted in
        sides += yield from _sort(file, folder, parameters, allocation, pages)
    yield Phase("merge")
    if len(sides) == 2:
        of_r, of_s = reversed(sides) if kept[0] else sides
        block = memory - kept[0] if kept[0] else memory // 3
        group = kept[0] - of_r.rest.pages if kept[0] else memory - 2 * block  # of R that stays a group lies in its own pages
        matching = Matching(r.layout, 1, group, names[0], page_io=parameters.page_io)
        files, first = (of_r.rest, of_s.rest), (of_r.kept, of_s.kept)
        yield from merge(files, block, matching.consume, page_io=parameters.page_io, first=first)
        yield from matching.finish()
    for side in sides:
        yield from drop(side.rest)


def _sort(
    file: File, folder: str, parameters: JoinParameters, allocation: ExternalSortMergeAllocation, kept: int
) -> Generator[Request, Answer, list[_Sorted]]:
    """Sort a file, of which so many pages stay in memory; returns the sorted one, or nothing if no tuple can join."""
    runs: list[File] = []
    head = gathered([])
    for first, pages in spans(file.pages, allocation.workspace):
        tuples = yield from read_block(file, first, pages, parameters.page_io)
        if not len(tuples):
            continue
        order = np.argsort(tuples.keys, kind="stable")
        yield Cpu({Work.COMPARE: len(tuples) * (len(tuples) - 1).bit_length()})
        runs.append(File(f"{folder}/run-{len(runs):03d}", file.layout, expected_pages=pages))
        tuples = tuples.chosen(order)
        end = int(file.layout.pack(tuples)[: kept + 1][-1]) if kept else 0
        head = tuples.chosen(slice(0, end))
        if end < len(tuples):
            yield from write_out(runs[-1], tuples.chosen(slice(end, None)), allocation.workspace, page_io=parameters.page_io)
    number = 0
    while len(runs) > 1:
        number += 1
        groups = [runs[begin : begin + allocation.fan_in] for begin in range(0, len(runs), allocation.fan_in)]
        runs = []
        for group in groups:  # one run that is left over is written too
            name = f"{folder}/pass-{number}-run-{len(runs):03d}"
            runs.append((yield from merge_into(name, group, parameters.memory, page_io=parameters.page_io)))
    return [_Sorted(head, run) for run in runs]
