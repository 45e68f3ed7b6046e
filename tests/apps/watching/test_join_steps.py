"""A join's memory in steps: within the memory, as the buffers were divided, and with as many requests as the driver counts."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd
import pytest

from algorithms.joins.base import JOINS, JoinParameters, plan
from flashsim.apps.watching.join_steps import memory_by_request, memory_in_steps
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.experiments.runs.joining import lay_out, open_pair
from flashsim.operations.face._arguments import sources
from flashsim.storage.heap_file import HeapFile
from tests.cases import with_each


@pytest.fixture(scope="module")
def files() -> tuple[HeapFile, HeapFile]:
    frames = {"r": pd.DataFrame({"key": range(4000)}), "s": pd.DataFrame({"key": [number * 7 % 4000 for number in range(8000)]})}
    r, s = sources(frames).values()
    one, other = open_pair(r, s, "key")
    return lay_out(one, 1024), lay_out(other, 1024)


@with_each("swapped", [False, True])
@with_each("name", ["grace-hash", "hybrid-hash", "simple-hash", "bnl"])
def test_memory_is_what_the_join_holds(files: tuple[HeapFile, HeapFile], name: str, swapped: bool) -> None:
    one, other = reversed(files) if swapped else files
    parameters = JoinParameters(memory=16)
    allocation = JOINS.load(name).allocate(files[0].pages, files[1].pages, parameters)
    algorithm = partial(plan, name, one, other, parameters, allocation)
    moments, requests = memory_by_request(algorithm, (one, other), parameters.fudge)
    assert moments[-1].requests == requests >= len(moments) > 10
    # Equal chunks of R may exceed their buffer by less than F pages (`models.allocation.buffers.NestedLoopsAllocation`).
    assert max(each.used_buffers for each in moments) <= parameters.memory + (math.ceil(parameters.fudge) if name == "bnl" else 0)
    assert max(each.used_buffers for each in moments) > parameters.memory // 2
    if name == "grace-hash":
        partitioning = [each for each in moments if each.phase == "partition"]
        assert {len(each.outputs) for each in partitioning} == {allocation.buckets}
        assert max(each.input for each in partitioning) == allocation.input
        assert max(max(each.outputs) for each in partitioning) == allocation.output
        assert {each.table for each in partitioning} == {0}
        assert max(each.table for each in moments) <= allocation.phase2_workspace + 2  # buckets differ a little
    steps = memory_in_steps("t", algorithm, (one, other), parameters.memory, allocation, parameters.fudge)
    assert f"Request {requests} of {requests}; {moments[-1].used_buffers} of 16 pages in use" in steps.frames[-1].caption
    for frame, each in zip(steps.frames, moments, strict=False) if len(steps) == len(moments) else ():
        assert sum("pages in use" in shape.text and shape.kind != "free" for shape in frame.shapes) == each.used_buffers


def test_what_cannot_be_watched_is_refused(files: tuple[HeapFile, HeapFile]) -> None:
    parameters = JoinParameters(memory=16)
    allocation = JOINS.load("sort-merge").allocate(files[0].pages, files[1].pages, parameters)
    sort_merge = partial(plan, "sort-merge", *files, parameters, allocation)
    with pytest.raises(InvalidParameterError, match="memory: 513 pages, but at most 512 can be drawn"):
        memory_in_steps("t", sort_merge, files, 513, allocation, 1.2)
    with pytest.raises(RefusedError, match="cannot be watched"):
        memory_in_steps("t", sort_merge, files, 16, allocation, 1.2)
