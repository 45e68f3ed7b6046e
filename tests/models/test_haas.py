"""Counts of the joins: equal to TR 1148's sums, consistent between phases, and never below what must be moved."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from models.allocation.buffers import GraceAllocation, HybridAllocation, NestedLoopsAllocation, SimpleHashAllocation, SortMergeAllocation
from models.disk import Disk
from models.haas import JoinCost, cost
from models.join_costs.base import PhaseCounts, Traffic
from models.optimum import discrete

#: The joins of TR 1148, whose formulas need pages alone.
TR = ("bnl", "grace-hash", "hybrid-hash", "simple-hash", "sort-merge")
DRIVE = Disk(12, 5.56, 0.22978)
sizes = st.integers(1, 3000)


def total(algorithm: str, r: int, s: int, memory: int, allocation: object) -> tuple[int, int, int]:
    join = cost(algorithm, r, s, memory, DRIVE, allocation)  # type: ignore[arg-type]
    return join.seeks, join.requests, join.pages


def feasible(algorithm: str, r: int, s: int, memory: int) -> bool:
    try:
        cost(algorithm, r, s, memory, DRIVE)
    except InvalidParameterError:
        return False
    return True


def test_nested_loops_by_hand() -> None:
    """100 pages of R with F = 1.2 in 30 pages: 4 chunks; S in 5 requests of 10 pages and one of 5."""
    assert total("bnl", 100, 55, 40, NestedLoopsAllocation(30, 10)) == (8, 4 * (1 + 6), 100 + 4 * 55)


def test_sort_merge_by_hand() -> None:
    """Runs of 2 * 30 / 1.2 = 50 pages: 2 of R and 4 of S, merged with 50 / 6 pages a run."""
    seeks_of_merge = math.ceil(100 / (50 / 6)) + math.ceil(200 / (50 / 6))
    requests = 10 + 10 + 20 + 20 + seeks_of_merge
    assert total("sort-merge", 100, 200, 50, SortMergeAllocation(30, 10, 10)) == (4 + seeks_of_merge, requests, 900)


def test_grace_by_hand() -> None:
    """5 buckets of 8 pages' buffers; tables of 24 pages leave 26 for S."""
    join = cost("grace-hash", 100, 300, 50, DRIVE, GraceAllocation(5, 8, 10, 26, 24))
    assert join.phases == (
        PhaseCounts("partition", Traffic(2, 10 + 30, 400), Traffic(13 + 38, 13 + 38, 400)),
        PhaseCounts("join", Traffic(10, 5 + 12, 400)),
    )
    assert (join.seeks, join.requests, join.pages) == (2 + 51 + 10, 40 + 51 + 17, 1200)


def test_hybrid_by_hand() -> None:
    """25 of 100 pages of R stay in 30 pages of memory, and 100 of 400 pages of S meet them there."""
    join = cost("hybrid-hash", 100, 400, 60, DRIVE, HybridAllocation(2, 10, 10, 30, 10, 50))
    assert join.phases == (
        PhaseCounts("partition", Traffic(2, 10 + 40, 500), Traffic(8 + 30, 8 + 30, 375)),
        PhaseCounts("join", Traffic(4, 2 + 30, 375)),
    )


def test_every_run_and_bucket_takes_a_request() -> None:
    """Two runs of R and two of S could share 100 pages, but each is read for itself; so are 4 buckets of S and of R."""
    merge = cost("sort-merge", 20, 20, 100, DRIVE, SortMergeAllocation(6, 47, 47)).phases[1]
    assert merge.reads == Traffic(4, 4, 40)
    partition, join = cost("grace-hash", 20, 20, 100, DRIVE, GraceAllocation(4, 20, 20, 94, 6)).phases
    assert (partition.writes, join.reads) == (Traffic(8, 8, 40), Traffic(8, 8, 40))


def test_hybrid_that_keeps_r_reads_both_relations_once() -> None:
    join = cost("hybrid-hash", 100, 400, 200, DRIVE)
    assert join.phases == (PhaseCounts("partition", Traffic(2, 2 + 5, 500)),)


@given(r=sizes, s=sizes, memory=st.integers(4, 500))
def test_simple_hash_moves_what_tr_adds_up(r: int, s: int, memory: int) -> None:
    """NX = (2 NI - 1)(|R| + |S|) - NI (NI - 1)(K_R + K_S), NS = 4 NI - 2, NIO the same pages by I and by O, rounded up."""
    join = cost("simple-hash", r, s, memory, DRIVE)
    a = join.allocation
    assert isinstance(a, SimpleHashAllocation)
    n = math.ceil(r * 12 / (10 * a.workspace))
    kept = min(r, a.workspace * 10 // 12)
    passed = kept + s * kept // r
    assert join.pages == (2 * n - 1) * (r + s) - n * (n - 1) * passed
    assert join.seeks == 4 * n - 2
    reads = n * (r + s) - n * (n - 1) * passed // 2
    writes = (n - 1) * (r + s) - n * (n - 1) * passed // 2
    assert 0 <= join.requests - (reads / a.input + writes / a.output) < 4 * n


@pytest.mark.parametrize("algorithm", TR)
@given(r=sizes, s=sizes, memory=st.integers(2, 800), more_r=st.integers(-300, 300), more_s=st.integers(-300, 300), page_io=st.booleans())
def test_what_is_written_is_read_again(algorithm: str, r: int, s: int, memory: int, more_r: int, more_s: int, page_io: bool) -> None:
    assume(feasible(algorithm, r, s, memory))
    temporary = {"r_temporary": max(1, r + more_r), "s_temporary": max(1, s + more_s)}
    join = cost(algorithm, r, s, memory, DRIVE, page_io=page_io, **temporary)
    assert join.reads.pages >= r + s
    if algorithm == "bnl":
        assert join.writes == Traffic()
    else:
        assert join.reads.pages == r + s + join.writes.pages
    assert join.reads + join.writes == sum((phase.total for phase in join.phases), Traffic())
    for phase in join.phases:
        for traffic in (phase.reads, phase.writes):
            assert 0 <= traffic.requests <= max(traffic.pages, traffic.seeks)


@pytest.mark.parametrize("algorithm", TR)
@given(r=sizes, s=sizes, memory=st.integers(2, 800))
def test_page_sized_requests_move_the_same_pages_with_the_same_seeks(algorithm: str, r: int, s: int, memory: int) -> None:
    assume(feasible(algorithm, r, s, memory))
    blocked, single = (cost(algorithm, r, s, memory, DRIVE, page_io=page_io) for page_io in (False, True))
    assert (single.pages, single.seeks, single.allocation) == (blocked.pages, blocked.seeks, blocked.allocation)
    assert single.requests == single.pages
    difference = (single.requests - blocked.requests) * DRIVE.latency_ms / 1000
    assert single.seconds == pytest.approx(blocked.seconds + difference)


@pytest.mark.parametrize("algorithm", TR)
def test_temporaries_that_are_filled_fuller_are_moved_in_fewer_pages(algorithm: str) -> None:
    same, fuller = cost(algorithm, 1000, 7000, 200, DRIVE), cost(algorithm, 1000, 7000, 200, DRIVE, r_temporary=860, s_temporary=6020)
    assert fuller.allocation == same.allocation
    assert fuller.phases[0].reads == same.phases[0].reads
    if algorithm == "bnl":
        assert fuller.phases == same.phases
    else:
        assert fuller.writes.pages == pytest.approx(0.86 * same.writes.pages, rel=0.01)
        assert fuller.writes.requests <= same.writes.requests


@pytest.mark.parametrize("algorithm", TR)
@pytest.mark.parametrize("r, s", [(0, 0), (0, 50), (50, 0)])
def test_empty_relations(algorithm: str, r: int, s: int) -> None:
    join = cost(algorithm, r, s, 30, DRIVE)
    assert join.reads.pages == r + s + join.writes.pages or algorithm == "bnl"
    assert join.pages >= r


def test_seconds_price_seeks_requests_and_pages_in_each_direction() -> None:
    phase = PhaseCounts("sort", Traffic(2, 3, 1000), Traffic(4, 5, 500))
    assert phase.seconds(Disk(12, 5, 0.2)) == pytest.approx((6 * 12 + 8 * 5 + 1500 * 0.2) / 1000)
    assert phase.seconds(Disk(0, 0.35, 0.2, 0.3)) == pytest.approx((8 * 0.35 + 1000 * 0.2 + 500 * 0.3) / 1000)
    join = JoinCost("sort-merge", SortMergeAllocation(1, 1, 1), Disk(12, 5, 0.2), (phase, phase))
    assert join.seconds == pytest.approx(2 * phase.seconds(join.disk))


def test_an_ssd_has_a_ratio_for_each_direction() -> None:
    """0.35 ms a request, 120 and 80 MB/s of do2009 table 2, in MiB."""
    disk = Disk.from_rates(0, 0.35, 8192, 120 * 2**20, 80 * 2**20)
    assert disk.latency_ratio == pytest.approx(5.38, abs=5e-3)
    assert disk.page_write_ms is not None and disk.latency_ms / disk.page_write_ms == pytest.approx(3.58, abs=5e-3)
    assert disk.access_ratio == 1


@pytest.mark.parametrize("algorithm", TR)
@pytest.mark.parametrize("disk", [Disk(0, 0, 0.1), Disk(5, 0, 0.1), Disk(0, 5, 1e-9)], ids=["free", "seeks only", "latency only"])
def test_devices_at_the_ends(algorithm: str, disk: Disk) -> None:
    assert 0 < cost(algorithm, 1000, 3000, 100, disk).seconds < math.inf


@pytest.mark.parametrize(
    "values", [(-1, 1, 1), (1, -1, 1), (1, 1, 0), (1, 1, 1, 0), (math.nan, 1, 1), (1, math.inf, 1), (1, 1, math.nan)], ids=str
)
def test_devices_that_cannot_be(values: tuple[float, ...]) -> None:
    with pytest.raises(InvalidParameterError):
        Disk(*values)


@pytest.mark.parametrize("rates", [(0.0, None), (-1.0, None), (1.0, 0.0)])
def test_rates_that_cannot_be(rates: tuple[float, float | None]) -> None:
    with pytest.raises(InvalidParameterError, match="_rate"):
        Disk.from_rates(1, 1, 8192, *rates)


def test_refusals() -> None:
    with pytest.raises(UnknownNameError, match="sort-merge"):
        cost("sort_merge", 10, 10, 100, DRIVE)
    with pytest.raises(UnknownNameError, match="bnl"):
        cost("nbl", 10, 10, 100, DRIVE, NestedLoopsAllocation(1, 1))
    with pytest.raises(InvalidParameterError, match="bnl needs a NestedLoopsAllocation"):
        cost("bnl", 10, 10, 100, DRIVE, SortMergeAllocation(1, 1, 1))
    with pytest.raises(InvalidParameterError, match="memory is 100 pages"):
        cost("bnl", 10, 10, 100, DRIVE, NestedLoopsAllocation(60, 41))


@pytest.mark.parametrize("algorithm", ["bnl", "sort-merge", "grace-hash"])
@given(r=st.integers(1, 400), s=st.integers(1, 400), memory=st.integers(3, 150))
def test_memory_never_hurts_the_best_division(algorithm: str, r: int, s: int, memory: int) -> None:
    assume(feasible(algorithm, r, s, memory))
    if algorithm == "grace-hash":
        # The search is bounded in the number of buckets; the bound must not bind.
        assume(memory > 2 * math.sqrt(1.2 * r))
    assert discrete(algorithm, r, s, memory + 1, DRIVE).seconds <= discrete(algorithm, r, s, memory, DRIVE).seconds + 1e-9


@pytest.mark.parametrize("algorithm", TR)
@given(r=sizes, s=sizes, memory=st.integers(3, 500))
@example(r=1, s=1, memory=3)
@example(r=41, s=1, memory=51)
def test_no_closed_form_beats_the_best_division(algorithm: str, r: int, s: int, memory: int) -> None:
    assume(feasible(algorithm, r, s, memory))
    assert discrete(algorithm, r, s, memory, DRIVE).seconds <= cost(algorithm, r, s, memory, DRIVE).seconds + 1e-9
