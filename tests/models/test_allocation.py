"""Every division of buffers fits its memory and leaves no part empty, or is refused with the bound that it breaks."""

from __future__ import annotations

import math
from dataclasses import asdict

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from models.allocation.buffers import (
    Allocation,
    GraceAllocation,
    HybridAllocation,
    NestedLoopsAllocation,
    SimpleHashAllocation,
    SortMergeAllocation,
    check,
    exact,
)
from models.allocation.divisions import grace_hash, hybrid_hash, nested_loops, simple_hash, sort_merge
from models.join_costs.base import allocate
from tests.models.test_haas import TR

relations = st.integers(0, 200_000)
memories = st.one_of(st.integers(0, 60), st.integers(0, 300_000))
ratios = st.one_of(st.sampled_from([0.0, math.inf]), st.floats(1e-3, 1e4))
fudges = st.sampled_from([1.0, 1.1, 1.2, 1.4, 2.0])


def least_memory(algorithm: str, r: int, s: int, fudge: float) -> int:
    """The smallest memory that is not refused, by bisection."""
    low, high = 0, 2 * max(r, s) + 100
    while high - low > 1:
        middle = (low + high) // 2
        try:
            allocate(algorithm, r, s, middle, 1, 2, fudge)
            high = middle
        except InvalidParameterError:
            low = middle
    return high


@pytest.mark.parametrize("algorithm", TR)
@given(r=relations, s=relations, memory=memories, y=ratios, x=ratios, fudge=fudges)
def test_feasible_or_refused(algorithm: str, r: int, s: int, memory: int, y: float, x: float, fudge: float) -> None:
    # A device decides how memory is divided, never whether it is enough.
    if memory >= least_memory(algorithm, r, s, fudge):
        check(allocate(algorithm, r, s, memory, y, 1 + x, fudge), memory)
    else:
        with pytest.raises(InvalidParameterError, match=f"^memory: {memory} pages, but {algorithm} needs "):
            allocate(algorithm, r, s, memory, y, 1 + x, fudge)


@given(r=relations, s=relations, memory=memories, y=ratios, fudge=fudges, refine=st.booleans())
@example(r=1000, s=1000, memory=1201, y=1.0, fudge=1.2, refine=True)
@example(r=1, s=1, memory=3, y=0.0, fudge=1.2, refine=True)
def test_nested_loops_uses_all_memory_and_cuts_all_of_r(r: int, s: int, memory: int, y: float, fudge: float, refine: bool) -> None:
    assume(memory > math.ceil(fudge))
    a = nested_loops(r, s, memory, y, fudge, refine)
    assert a.outer + a.inner == memory and min(a.outer, a.inner) >= 1
    chunks, pages = a.chunks(r, fudge), a.chunk_pages(r, fudge)
    assert chunks * pages >= r
    assert pages * exact(fudge) < a.outer + exact(fudge)


@given(r=st.integers(1, 200_000), s=st.integers(1, 200_000), memory=memories, y=ratios)
def test_refining_nested_loops_adds_no_chunk_and_gives_s_no_less(r: int, s: int, memory: int, y: float) -> None:
    assume(3 <= memory <= r * 1.2)
    plain, refined = nested_loops(r, s, memory, y, refine=False), nested_loops(r, s, memory, y)
    assert refined.chunks(r) <= plain.chunks(r)
    assert refined.inner >= plain.inner


def test_nested_loops_in_ample_memory_takes_one_chunk_or_two() -> None:
    assert nested_loops(1000, 100_000, 10_000, 3.0) == NestedLoopsAllocation(1200, 8800)
    # One chunk would leave a single page for S, and every page of S would wait: two chunks are cheaper where waiting is dear.
    assert nested_loops(1000, 1000, 1201, 100.0) == NestedLoopsAllocation(600, 601)


@given(r=st.integers(1, 200_000), s=st.integers(1, 200_000), memory=memories, x=ratios, fudge=fudges)
@example(r=93_440, s=93_440, memory=337, x=2.16, fudge=1.2)
def test_sort_merge_can_merge_its_runs_in_one_pass(r: int, s: int, memory: int, x: float, fudge: float) -> None:
    assume(memory >= least_memory("sort-merge", r, s, fudge))
    a = sort_merge(r, s, memory, 1 + x, fudge)
    assert a.input == a.output and sum(a.phases()) == memory
    assert a.runs(r, fudge) + a.runs(s, fudge) <= memory


@given(r=st.integers(1, 200_000), s=st.integers(1, 200_000), fudge=fudges)
def test_two_passes_need_about_the_root(r: int, s: int, fudge: float) -> None:
    # The runs of both relations are merged, and buffers take a few pages from the tree.
    root = math.isqrt(math.ceil(exact(fudge) * max(r, s)) - 1) + 1
    assert root < least_memory("sort-merge", r, s, fudge) <= root + 5


@given(r=st.integers(0, 200_000), s=st.integers(0, 200_000), fudge=fudges)
@pytest.mark.parametrize("algorithm", ["grace-hash", "hybrid-hash"])
def test_hash_joins_need_more_than_the_root(algorithm: str, r: int, s: int, fudge: float) -> None:
    table = exact(fudge) * max(1, r)
    root = least_memory(algorithm, r, s, fudge) - 1
    assert root**2 >= table > (root - 1) ** 2


@given(r=st.integers(1, 200_000), memory=memories, fudge=fudges)
def test_grace_tables_fit_and_input_is_no_smaller_than_output(r: int, memory: int, fudge: float) -> None:
    assume(memory >= least_memory("grace-hash", r, r, fudge))
    a = grace_hash(r, r, memory, fudge)
    assert a.buckets * a.output + a.input == memory == a.phase2_input + a.phase2_workspace
    assert a.output <= a.input
    assert a.buckets * a.phase2_workspace >= exact(fudge) * r
    assert grace_hash(r, r, memory + 1, fudge).buckets <= a.buckets


@given(
    r=st.integers(1, 200_000),
    memory=memories,
    y=ratios,
    fudge=fudges,
    rule=st.sampled_from(["haas", "sqrt-y"]),
    second=st.sampled_from(["haas", "do2009"]),
)
@example(r=1250, memory=125, y=3.2, fudge=1.2, rule="haas", second="do2009")
@example(r=1000, memory=1234, y=3.2, fudge=1.2, rule="haas", second="haas")
@example(r=1000, memory=1235, y=3.2, fudge=1.2, rule="haas", second="haas")
def test_hybrid_holds_all_of_r(r: int, memory: int, y: float, fudge: float, rule: str, second: str) -> None:
    assume(memory >= least_memory("hybrid-hash", r, r, fudge))
    a = hybrid_hash(r, r, memory, y, fudge, rule, second)  # type: ignore[arg-type]
    check(a, memory)
    assert a.workspace + a.buckets * a.phase2_workspace >= exact(fudge) * r
    if a.buckets:
        assert a.buckets * a.output + a.input + a.workspace == memory == a.phase2_input + a.phase2_workspace
        if a.workspace:
            # K is the smallest number of buckets.
            assert (a.buckets - 1) * (memory - a.input - a.output) < exact(fudge) * r - (memory - a.input)
            assert a.phase2_input >= a.input
    else:
        assert a.workspace + a.input == memory and a.output == a.phase2_input == a.phase2_workspace == 0


@pytest.mark.parametrize("rule", ["haas", "sqrt-y"])
def test_hybrid_of_a_relation_that_fits_writes_nothing(rule: str) -> None:
    assert hybrid_hash(1000, 9000, 5000, 3.2, rule=rule) == HybridAllocation(0, 0, 3800, 1200, 0, 0)  # type: ignore[arg-type]


@given(memory=st.integers(4, 10**6), y=st.floats(1e-3, 1e4))
def test_simple_hash_uses_all_memory(memory: int, y: float) -> None:
    a = simple_hash(1000, 1000, memory, y)
    assert sum(a.phases()) == memory and a.input == a.output and a.workspace >= memory / 2 - 2


@pytest.mark.parametrize(
    "algorithm, message",
    [
        ("bnl", "memory: 2 pages, but bnl needs at least 3"),
        ("simple-hash", "memory: 2 pages, but simple-hash needs at least 4"),
        ("sort-merge", "memory: 12 pages, but sort-merge needs more than sqrt(F |S|) = 887"),
        ("grace-hash", "memory: 12 pages, but grace-hash needs more than sqrt(F |R|) = 335"),
        ("hybrid-hash", "memory: 12 pages, but hybrid-hash needs more than sqrt(F |R|) = 335"),
    ],
)
def test_messages_state_the_bound(algorithm: str, message: str) -> None:
    memory = int(message.split()[1])
    with pytest.raises(InvalidParameterError) as caught:
        allocate(algorithm, 93_440, 655_360, memory, 24.2, 3.16)
    assert str(caught.value) == message


def test_sort_merge_states_the_memory_that_would_do() -> None:
    """With two large relations the runs of both ask for a little more than the root."""
    with pytest.raises(InvalidParameterError, match=r"26 pages, but sort-merge needs more than sqrt\(F \|S\|\) = 26"):
        allocate("sort-merge", 556, 556, 26, 24.2, 3.16)
    with pytest.raises(InvalidParameterError, match="27 pages, but sort-merge needs at least 28 to merge all runs in one pass"):
        allocate("sort-merge", 556, 556, 27, 24.2, 3.16)
    allocate("sort-merge", 556, 556, 28, 24.2, 3.16)
    # A smaller R leaves room for the runs of S.
    allocate("sort-merge", 100, 556, 27, 24.2, 3.16)


@pytest.mark.parametrize(
    "change",
    [
        {"r_pages": -1},
        {"s_pages": -1},
        {"memory": -1},
        {"latency_ratio": -1},
        {"latency_ratio": math.nan},
        {"fudge": 0.9},
        {"fudge": math.nan},
    ],
    ids=str,
)
def test_bad_values_are_named(change: dict[str, float]) -> None:
    values = {"r_pages": 100, "s_pages": 100, "memory": 50, "latency_ratio": 1.0, "access_ratio": 2.0, "fudge": 1.2} | change
    with pytest.raises(InvalidParameterError) as caught:
        allocate("hybrid-hash", **values)  # type: ignore[arg-type]
    assert caught.value.parameter == next(iter(change))


def test_a_random_access_costs_a_latency_at_least() -> None:
    with pytest.raises(InvalidParameterError, match="access_ratio"):
        sort_merge(100, 100, 50, 0.5)


def test_unknown_names_are_refused_with_suggestions() -> None:
    with pytest.raises(UnknownNameError, match="grace-hash"):
        allocate("grace", 10, 10, 100, 1, 2)
    with pytest.raises(UnknownNameError, match="rule"):
        hybrid_hash(10, 10, 100, 1, rule="best")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="second phase"):
        hybrid_hash(10, 10, 100, 1, second="best")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "allocation",
    [
        NestedLoopsAllocation(60, 40),
        SortMergeAllocation(60, 20, 20),
        SimpleHashAllocation(60, 20, 20),
        GraceAllocation(8, 10, 20, 50, 50),
        HybridAllocation(4, 10, 20, 40, 50, 50),
    ],
    ids=lambda a: type(a).__name__,
)
def test_check_refuses_every_empty_part_and_too_little_memory(allocation: Allocation) -> None:
    check(allocation, 100)
    with pytest.raises(InvalidParameterError, match="100 pages in phase 1, but memory is 99 pages"):
        check(allocation, 99)
    for name in asdict(allocation):
        if isinstance(allocation, HybridAllocation) and name in ("buckets", "workspace"):
            continue  # 0 means that R stays in memory, or that none of it does
        with pytest.raises(InvalidParameterError, match=f"{name}: 0, but it must be at least 1"):
            check(type(allocation)(**(asdict(allocation) | {name: 0})), 100)


def test_check_knows_the_two_ends_of_hybrid_hash() -> None:
    check(HybridAllocation(0, 0, 50, 50, 0, 0), 100)
    check(HybridAllocation(8, 10, 20, 0, 50, 50), 100)
    with pytest.raises(InvalidParameterError, match="workspace"):
        check(HybridAllocation(0, 0, 50, 0, 0, 0), 100)
    with pytest.raises(InvalidParameterError, match="phase 2"):
        check(HybridAllocation(4, 10, 20, 40, 51, 50), 100)
