"""External sort-merge join as textbooks have it: plain runs, passes that read and write all, and a merge of two sorted files.

Source: Li, On, Xu, Choi and Hu, "DigestJoin" (MDM 2009), section II, the join called Basic in section IV.
"""

import numpy as np

from algorithms.files import drop, read_block, spans, write_out
from algorithms.joins.base import JoinParameters, folders, settle
from algorithms.sorting.runs import Matching, merge, merge_into
from flashsim.execution.requests import Algorithm, Cpu, Phase, Work
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation, ExternalSortMergeAllocation
from models.allocation.external_sort_merge import external_sort_merge

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
    sorted files are then read once more.
    """
    return _join(r, s, parameters, settle(r, s, parameters, allocation, ExternalSortMergeAllocation, allocate))


def _join(r: File, s: File, parameters: JoinParameters, allocation: ExternalSortMergeAllocation) -> Algorithm:
    yield Phase("sort")
    if not r.pages or not s.pages:
        return
    names = folders("external-sort-merge", r, s)
    sides: list[File] = []
    for file, folder in zip((r, s), names, strict=True):
        yield from _sort(file, folder, parameters, allocation, sides)
    yield Phase("merge")
    if len(sides) == 2:
        pages = parameters.last_phase or parameters.memory
        block = pages // 3
        matching = Matching(r.layout, 1, pages - 2 * block, names[0], page_io=parameters.page_io)
        yield from merge(sides, block, matching.consume, page_io=parameters.page_io)
        yield from matching.finish()
    for file in sides:
        yield from drop(file)


def _sort(file: File, folder: str, parameters: JoinParameters, allocation: ExternalSortMergeAllocation, into: list[File]) -> Algorithm:
    """Sort a file; the sorted one is added, unless no tuple can join."""
    runs: list[File] = []
    for first, pages in spans(file.pages, allocation.workspace):
        tuples = yield from read_block(file, first, pages, parameters.page_io)
        if not len(tuples):
            continue
        order = np.argsort(tuples.keys, kind="stable")
        yield Cpu({Work.COMPARE: len(tuples) * (len(tuples) - 1).bit_length()})
        runs.append(File(f"{folder}/run-{len(runs):03d}", file.layout, expected_pages=pages))
        yield from write_out(runs[-1], tuples.chosen(order), allocation.workspace, page_io=parameters.page_io)
    number = 0
    while len(runs) > 1:
        number += 1
        groups = [runs[begin : begin + allocation.fan_in] for begin in range(0, len(runs), allocation.fan_in)]
        runs = []
        for group in groups:  # one run that is left over is written too
            name = f"{folder}/pass-{number}-run-{len(runs):03d}"
            runs.append((yield from merge_into(name, group, parameters.memory, page_io=parameters.page_io)))
    into += runs
