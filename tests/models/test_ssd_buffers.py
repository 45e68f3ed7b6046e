"""Best buffers fit their memory; the search finds what trying every division finds, and the closed form costs hardly more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from models.allocation.buffers import Allocation, GraceAllocation, HybridAllocation, NestedLoopsAllocation, SortMergeAllocation, check
from models.allocation.divisions import hybrid_division, nested_loops_inner, sort_merge_input
from models.join_costs.base import Sizes
from models.ssd_buffers import closed_form
from models.ssd_drive import DriveModel, Rounds, Timing
from models.ssd_joins import JOINS, Layout, Problem
from tests.models.ssd_search import numeric
from tests.tiers import examples

R, S = 93_440, 655_360
PAGE = 8192 / 1000

#: Drives of each kind, for pages of 8 KiB; the last is as in the model of Haas et al.
DRIVES = {
    "one command": DriveModel(8192, Timing(0, 0.35, PAGE / 120), Timing(0, 0.35, PAGE / 80)),
    "many commands": DriveModel(8192, Timing(0.05, 0, PAGE / 3500), Timing(0.15, 0, PAGE / 2600)),
    "some commands": DriveModel(8192, Timing(0.1, 0.02, PAGE / 500), Timing(0.2, 0.05, PAGE / 300)),
    "turns": DriveModel(8192, Timing(0.1, 0, PAGE / 517), Timing(0.015, 0, PAGE / 420), turn_ms=0.24),
    "disk": DriveModel(8192, Timing(0, 0.02, PAGE / 34), Timing(0, 0.02, PAGE / 34), move_ms=9.0),
    "behind": DriveModel(8192, Timing(0, 0.02, PAGE / 47), Timing(0, 0.02, PAGE / 44), move_ms=5.3, behind_ms=0.1),
    "rounds": DriveModel(8192, Timing(0, 2.2, 3.73), Timing(0, 2.2, 4.54), move_ms=16.8, rounds=Rounds(15, 2.2, 0.819)),
    "several": DriveModel(8192, Timing(0.05, 0, PAGE / 3500, 0.0115), Timing(0.0018, 0, PAGE / 1770)),
    "every request": DriveModel(8192, Timing(5.56, 0, PAGE / 35.65), Timing(5.56, 0, PAGE / 35.65), command=2**62, move_ms=12.0),
}
drives = st.sampled_from(list(DRIVES.values()))
layouts = st.sampled_from(["separate", "packed", "spread"])


def problem(join: str, r: int, s: int, memory: int, drive: DriveModel, layout: Layout = "packed") -> Problem:
    return Problem(join, Sizes(r, s, r, s, memory), drive, layout)


@pytest.mark.parametrize("join", JOINS)
@settings(max_examples=examples(60))
@given(r=st.integers(1, 20_000), s=st.integers(1, 90_000), memory=st.integers(3, 30_000), drive=drives, layout=layouts)
def test_buffers_fit_their_memory(join: str, r: int, s: int, memory: int, drive: DriveModel, layout: Layout) -> None:
    try:
        given = problem(join, r, s, memory, drive, layout)
    except InvalidParameterError:
        assume(False)
    best = closed_form(given)
    check(best.allocation, memory)
    table = math.ceil(1.2 * r - 1e-9)
    if isinstance(best.allocation, (GraceAllocation, HybridAllocation)):
        kept = getattr(best.allocation, "workspace", 0)
        assert kept + best.allocation.buckets * best.allocation.phase2_workspace >= table
    if isinstance(best.allocation, SortMergeAllocation):
        assert best.allocation.runs(r) + best.allocation.runs(s) <= memory
    assert best.seconds == given.cost(best.allocation).seconds


def every_division(given: Problem) -> Iterator[Allocation]:
    """Of two buffers each length to 20 pages and every eighth then; three sizes of what the second phase has left."""
    r, s, memory = given.sizes.r, given.sizes.s, given.sizes.memory
    lengths = [*range(1, 20), *range(20, memory, 8)]
    for first, second in product(lengths, lengths):
        if given.algorithm == "sort-merge" and first + second < memory:
            made = SortMergeAllocation(memory - first - second, first, second)
            if made.runs(r) + made.runs(s) <= memory:
                yield made
        elif given.algorithm == "grace-hash" and first * second < memory:
            workspace = math.ceil(12 * r / (10 * first))
            if workspace <= memory - given.reserve:
                yield GraceAllocation(first, second, memory - first * second, memory - workspace, workspace)
        elif given.algorithm == "hybrid-hash":
            for reserve in (given.reserve, 2 * given.reserve, 4 * given.reserve):
                division = hybrid_division(r, memory, first, output=second, phase2_input=reserve)
                if division is not None:
                    yield division
    if given.algorithm == "bnl":
        yield from (NestedLoopsAllocation(memory - inner, inner) for inner in range(1, memory - 1))


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("drive", [pytest.param(drive, id=name) for name, drive in DRIVES.items()])
def test_the_search_finds_the_best_of_all(join: str, drive: DriveModel) -> None:
    """To 1 % in a memory of 200 commands; at the published sizes it is 800 and more."""
    given = problem(join, 900, 4500, 400, replace(drive, command=min(drive.command, 2 * 8192)))
    least = min(given.cost(each).seconds for each in every_division(given))
    assert numeric(given).seconds <= 1.01 * least


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)
@pytest.mark.parametrize(
    "layout", ["packed", pytest.param("separate", marks=pytest.mark.deep), pytest.param("spread", marks=pytest.mark.deep)]
)
def test_the_closed_form_is_within_one_percent_of_the_search(join: str, drive: DriveModel, layout: Layout) -> None:
    for memory in (12_800, 38_400, 76_800) if layout != "packed" else (25_600,):
        given = problem(join, R, S, memory, drive, layout)
        assert closed_form(given).seconds <= 1.01 * numeric(given).seconds


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("join", JOINS)
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(r=st.integers(10_000, 200_000), times=st.floats(1, 20), share=st.floats(0.1, 1.2), drive=drives)
def test_the_closed_form_is_within_one_percent_at_other_sizes(join: str, r: int, times: float, share: float, drive: DriveModel) -> None:
    given = problem(join, r, int(r * times), int(share * r), drive)
    assert closed_form(given).seconds <= 1.01 * numeric(given).seconds


def test_a_quicker_command_leaves_memory_that_is_divided_by_price() -> None:
    """A tree for whole commands in the merge alone cost 1.7 % more here: it left the input buffer half of memory."""
    given = problem("sort-merge", 10_000, 60_000, 1_093, DRIVES["rounds"])
    assert closed_form(given).seconds <= 1.005 * numeric(given).seconds


@pytest.mark.parametrize("memory", [12_800, 25_600, 38_400, 51_200, 64_000, 76_800])
def test_where_every_request_waits_the_closed_forms_are_those_of_haas(memory: int) -> None:
    """Block nested loops and sort-merge on two devices: the same continuous minima, here found with another formula.

    Sort-merge's runs are whole besides, of which the continuous minimum knows nothing: that is worth less than a thousandth.
    """
    drive = DRIVES["every request"]
    y, x = drive.read.start_ms / drive.read.page_ms, (drive.read.start_ms + drive.move_ms) / drive.read.start_ms
    given = problem("sort-merge", R, S, memory, drive, "separate")
    sort, buffer = closed_form(given), round(sort_merge_input(R, S, memory, x))
    haas = given.cost(SortMergeAllocation(memory - 2 * buffer, buffer, buffer))
    assert sort.allocation.input == pytest.approx(buffer, abs=1)
    assert 0.999 * haas.seconds <= sort.seconds <= haas.seconds
    nested = closed_form(problem("bnl", R, S, memory, drive, "separate")).allocation
    assert isinstance(nested, NestedLoopsAllocation)
    chunks = 1.2 * R / (memory - nested_loops_inner(S, memory, y))
    assert nested.chunks(R) in (math.floor(chunks), math.ceil(chunks), math.ceil(chunks) + 1)


@pytest.mark.parametrize("memory", [12_800, 38_400, 76_800])
def test_where_each_command_waits_no_buffer_of_a_hybrid_hash_is_longer_than_a_command(memory: int) -> None:
    best = closed_form(problem("hybrid-hash", R, S, memory, DRIVES["one command"])).allocation
    assert isinstance(best, HybridAllocation)
    assert best.input == best.output == DRIVES["one command"].command_pages


def test_refusals() -> None:
    with pytest.raises(InvalidParameterError, match="sqrt"):
        problem("grace-hash", R, S, 300, DRIVES["disk"])
    with pytest.raises(UnknownNameError, match="simple-hash"):
        problem("simple-hash", R, S, 3000, DRIVES["disk"])
