"""Sort-merge join: both relations become sorted runs by replacement selection, and all runs are merged and joined at once.

Source: do2009, section 3.2; Haas et al., section 4.
"""

import math

from algorithms.files import drop, folders
from algorithms.joins.base import JoinParameters, settle
from algorithms.sorting.runs import Matching, make_runs, merge, merge_some
from flashsim.execution.requests import Algorithm, Phase
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation, SortMergeAllocation, exact
from models.allocation.divisions import sort_merge

#: In `models.join_costs`.
FORMULA = "sort-merge"


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> SortMergeAllocation:
    """Workspace, input and output buffer of the first pass by Haas et al."""
    return sort_merge(r_pages, s_pages, parameters.memory, parameters.access_ratio, parameters.fudge)


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller.

    There are two passes, as long as all runs can be merged at once; if not, because of a small workspace given by the user or of input in
    falling order, the shortest are merged first.  Both relations are read to their ends.
    """
    return _join(r, s, parameters, settle(r, s, parameters, allocation, SortMergeAllocation, allocate))


def _join(r: File, s: File, parameters: JoinParameters, allocation: SortMergeAllocation) -> Algorithm:
    memory, page_io = parameters.memory, parameters.page_io
    yield Phase("sort")
    if not r.pages or not s.pages:
        return
    capacity = math.floor(allocation.workspace * r.layout.room / exact(parameters.fudge))
    sides: list[tuple[str, list[File]]] = []
    for file, folder in zip((r, s), folders("sort-merge", r, s), strict=True):
        runs: list[File] = []
        yield from make_runs(file, folder, capacity, allocation.input, allocation.output, runs, page_io=page_io)
        sides.append((folder, runs))
    yield Phase("merge")
    (r_folder, r_runs), (_, s_runs) = sides
    while (count := len(r_runs) + len(s_runs)) > memory:
        folder, runs = max(sides, key=lambda side: len(side[1]))
        yield from merge_some(runs, min(count - memory, len(runs) - 1), folder, memory, page_io=page_io)
    if r_runs and s_runs:
        block = memory // count
        matching = Matching(r.layout, len(r_runs), max(1, memory - count * block), r_folder, page_io=page_io)
        yield from merge(r_runs + s_runs, block, matching.consume, page_io=page_io)
        yield from matching.finish()
    for run in r_runs + s_runs:
        yield from drop(run)
