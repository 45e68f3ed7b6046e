"""The search for the best division finds what trying every division finds."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from models.allocation.buffers import Allocation, GraceAllocation, NestedLoopsAllocation, SortMergeAllocation, ceil_sqrt, exact
from models.disk import Disk
from models.haas import cost
from models.optimum import discrete
from tests.theory.continuous_costs import hybrid_quadratic
from tests.tiers import examples

devices = st.sampled_from([Disk(12, 5.56, 0.23), Disk(0, 0.35, 0.065, 0.098), Disk(9.5, 8.3, 2.6), Disk(0, 0, 1), Disk(1, 100, 0.01)])


def every_division(algorithm: str, r: int, s: int, memory: int) -> Iterator[Allocation]:
    if algorithm == "bnl":
        yield from (NestedLoopsAllocation(memory - inner, inner) for inner in range(1, memory - 1))
    elif algorithm == "sort-merge":
        for buffer in range(1, (memory + 1) // 2):
            made = SortMergeAllocation(memory - 2 * buffer, buffer, buffer)
            if made.runs(r) + made.runs(s) <= memory:
                yield made
    else:
        for buckets in range(1, memory):
            table = math.ceil(12 * r / (10 * buckets))
            for output in range(1, (memory - 1) // buckets + 1):
                if table < memory:
                    yield GraceAllocation(buckets, output, memory - buckets * output, memory - table, table)


@pytest.mark.parametrize("algorithm", ["bnl", "sort-merge", "grace-hash"])
@settings(max_examples=examples(60))
@given(r=st.integers(1, 300), s=st.integers(1, 300), memory=st.integers(3, 70), disk=devices)
def test_best_of_all(algorithm: str, r: int, s: int, memory: int, disk: Disk) -> None:
    assume(algorithm == "bnl" or memory > ceil_sqrt(exact(1.2) * (max(r, s) if algorithm == "sort-merge" else r)))
    divisions = list(every_division(algorithm, r, s, memory))
    assume(divisions)
    seconds = min(cost(algorithm, r, s, memory, disk, division).seconds for division in divisions)
    assert discrete(algorithm, r, s, memory, disk).seconds == pytest.approx(seconds)


def test_hybrids_best_never_loses_to_grace() -> None:
    drive = Disk(9.5, 8.3, 2.6)
    for memory in (40, 60, 125, 300):
        assert discrete("hybrid-hash", 1250, 1250, memory, drive).seconds <= cost("grace-hash", 1250, 1250, memory, drive).seconds


def test_refusals() -> None:
    drive = Disk(9.5, 8.3, 2.6)
    with pytest.raises(InvalidParameterError, match="sqrt"):
        discrete("grace-hash", 1250, 1250, 30, drive)
    with pytest.raises(UnknownNameError, match="grace-hash"):
        discrete("grace", 1250, 1250, 300, drive)
    with pytest.raises(InvalidParameterError, match="below F"):
        hybrid_quadratic(1000, 1200, 3.2)
    with pytest.raises(InvalidParameterError, match="much more than y"):
        hybrid_quadratic(10**6, 20, 30.0)
