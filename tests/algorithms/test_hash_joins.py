"""Grace, hybrid and simple hash: exact request counts from bucket sizes, the formula's within stated bounds, and overflow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.joins import grace_hash, hybrid_hash, simple_hash
from algorithms.joins.base import JoinParameters
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.requests import Work
from flashsim.testing.strict_driver import oracle, relation_file, run
from models.allocation.buffers import GraceAllocation, HybridAllocation, SimpleHashAllocation
from models.haas import counts
from models.join_costs.base import Sizes


def up(pages: float, block: int) -> int:
    return math.ceil(pages / block)


def bucket_pages(outcome, side: str, buckets: int) -> list[int]:
    digits = max(2, len(str(buckets - 1)))
    return [outcome.lengths.get(f"{side}/bucket-{number:0{digits}}", 0) for number in range(buckets)]


def second_phase(r_buckets, s_buckets, allocation, memory) -> int:
    """One block for a bucket of R, and S's bucket in blocks of what is left, at most the input buffer."""
    return sum(
        1 + up(s_bucket, min(allocation.phase2_input, memory - math.ceil(r_bucket * 12 / 10)))
        for r_bucket, s_bucket in zip(r_buckets, s_buckets, strict=True)
        if r_bucket and s_bucket
    )


@pytest.mark.parametrize("memory", [80, 120, 200, 500])
def test_grace_counts(memory):
    rng = np.random.default_rng(memory)
    r_codes = rng.permutation(2000)
    s_codes = rng.integers(0, 2000, 6000)
    r, s = relation_file("r", r_codes, record=95), relation_file("s", s_codes, record=95)
    allocation = grace_hash.allocate(r.pages, s.pages, JoinParameters(memory))
    outcome = run(grace_hash.join(r, s, JoinParameters(memory)), memory)
    r_buckets, s_buckets = (bucket_pages(outcome, f"grace-hash/{side}", allocation.buckets) for side in "rs")
    assert outcome.phases == ["partition", "join"]
    assert len(outcome.lengths) == 2 * allocation.buckets, "no bucket was split again"
    assert outcome.count("read", "partition") == up(r.pages, allocation.input) + up(s.pages, allocation.input)
    assert outcome.count("write", "partition") == sum(up(bucket, allocation.output) for bucket in r_buckets + s_buckets)
    assert outcome.count("read", "join") == second_phase(r_buckets, s_buckets, allocation, memory)
    assert outcome.count("write", "join") == 0
    # The formula divides evenly; each bucket of either side may end with a page, and with a block, that is not full.
    formula = (
        up(r.pages, allocation.input) + up(s.pages, allocation.input) + up(r.pages, allocation.output) + up(s.pages, allocation.output)
    ) + (allocation.buckets + up(s.pages, allocation.phase2_input))
    assert abs(outcome.count() - formula) <= 3 * allocation.buckets + 0.1 * formula
    moved = outcome.pages("read") + outcome.pages("write")
    assert 3 * (r.pages + s.pages) <= moved <= 3 * (r.pages + s.pages) + 4 * allocation.buckets


def test_grace_work():
    r, s = relation_file("r", np.arange(500)), relation_file("s", np.arange(1200) % 600)
    outcome = run(grace_hash.join(r, s, JoinParameters(60)), 60)
    assert outcome.work == {
        Work.READ_TUPLE: 2 * 1700,
        Work.WRITE_TUPLE: 1700,
        Work.HASH: 2 * 1700,
        Work.BUILD: 500,
        Work.PROBE: 1200,
        Work.COMPARE: 1000,
        Work.EMIT: 1000,
    }


def test_a_bucket_of_one_key_is_joined_by_block_nested_loops():
    """Splitting cannot help: the pages of the base relations and of the buckets are all that is written or read first."""
    r, s = relation_file("r", np.zeros(500)), relation_file("s", np.zeros(600))
    outcome = run(grace_hash.join(r, s, JoinParameters(20)), 20)
    assert outcome.count("write", "join") == 0
    chunks = [count for kind, name, _, count in outcome.extents if "/r/" in name and kind == "read"]
    assert len(chunks) > 1 and sum(chunks) == r.pages
    assert outcome.pages_by_file("read")["grace-hash/s/bucket-" + next(iter(outcome.lengths))[-2:]] == len(chunks) * s.pages
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(np.zeros(500), np.zeros(600)))


def test_an_overfull_bucket_of_many_keys_is_partitioned_again():
    """One bucket by a user's allocation: far from fitting, so it is cheaper to split than to scan S a dozen times."""
    rng = np.random.default_rng(1)
    r_codes, s_codes = rng.permutation(2000), rng.integers(0, 2000, 8000)
    r, s = relation_file("r", r_codes), relation_file("s", s_codes)
    outcome = run(grace_hash.join(r, s, JoinParameters(30), GraceAllocation(1, 10, 10, 10, 20)), 30)
    assert any(name.count("/bucket-") == 2 for name in outcome.lengths)
    assert outcome.pages("write") < 2.2 * (r.pages + s.pages)
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(r_codes, s_codes))


@pytest.mark.parametrize("memory", [100, 150, 200, 400, 590])
def test_hybrid_counts(memory):
    rng = np.random.default_rng(memory)
    r, s = relation_file("r", rng.permutation(2000), record=95), relation_file("s", rng.integers(0, 2000, 6000), record=95)
    parameters = JoinParameters(memory)
    allocation = hybrid_hash.allocate(r.pages, s.pages, parameters)
    outcome = run(hybrid_hash.join(r, s, parameters), memory)
    r_buckets, s_buckets = (bucket_pages(outcome, f"hybrid-hash/{side}", allocation.buckets) for side in "rs")
    assert allocation.workspace > 0
    assert outcome.count("read", "partition") == up(r.pages, allocation.input) + up(s.pages, allocation.input)
    assert outcome.count("write", "partition") == sum(up(bucket, allocation.output) for bucket in r_buckets + s_buckets)
    assert outcome.count("read", "join") == second_phase(r_buckets, s_buckets, allocation, memory)
    # The formula's |R'| and |S'|: what the workspace does not hold; chance moves a few per cent (6 standard deviations allowed).
    kept = min(1.0, math.floor(allocation.workspace / 1.2) / r.pages)
    for file, buckets, tuples in ((r, r_buckets, 2000), (s, s_buckets, 6000)):
        spread = 6 * math.sqrt(kept * (1 - kept) / 2000) + 0.03
        assert abs(sum(buckets) / file.pages - (1 - kept)) < spread + len(buckets) / file.pages, tuples
    if allocation.buckets == 0:
        assert outcome.pages("read") == r.pages + s.pages


def test_memory_for_everything_reads_each_page_once():
    r, s = relation_file("r", np.arange(400)), relation_file("s", np.arange(900) % 400)
    outcome = run(hybrid_hash.join(r, s, JoinParameters(5000)), 5000)
    assert outcome.extents == [("read", "r", 0, r.pages), ("read", "s", 0, s.pages)]
    assert outcome.work[Work.HASH] == 1300 and outcome.work[Work.WRITE_TUPLE] == 0


@pytest.mark.parametrize("heavy", range(8))
def test_skew_pushes_the_part_in_memory_to_disk(heavy):
    """Some of these keys belong in memory and overflow it, others overflow a bucket."""
    r_codes = np.concatenate([np.full(900, heavy), np.arange(300)])
    s_codes = np.arange(700) % 350
    r, s = relation_file("r", r_codes), relation_file("s", s_codes)
    outcome = run(hybrid_hash.join(r, s, JoinParameters(170)), 170)
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(r_codes, s_codes))
    on_disk = sum(count for name, count in outcome.tuples.items() if name.startswith("hybrid-hash/r/") and name.count("/bucket-") == 1)
    assert (len(r_codes) - on_disk) * (104 + 2) <= (170 / 1.2) * 504


def test_no_buckets_need_a_workspace_for_all_of_r():
    r, s = relation_file("r", np.arange(400)), relation_file("s", np.arange(900))
    with pytest.raises(InvalidParameterError, match=r"workspace: 50 pages, but without buckets on disk all of R must fit: F \|R\| = 120"):
        hybrid_hash.join(r, s, JoinParameters(100), HybridAllocation(0, 0, 10, 50, 0, 0))


@pytest.mark.parametrize("memory", [20, 45, 80, 150, 300, 590])
def test_simple_counts(memory):
    rng = np.random.default_rng(memory)
    r, s = relation_file("r", rng.permutation(2000), record=95), relation_file("s", rng.integers(0, 2000, 6000), record=95)
    parameters = JoinParameters(memory)
    allocation = simple_hash.allocate(r.pages, s.pages, parameters)
    outcome = run(simple_hash.join(r, s, parameters), memory)
    iterations = math.ceil(r.pages * 1.2 / allocation.workspace)
    passed = [[outcome.lengths.get(f"simple-hash/{side}/pass-{number:03}", 0) for number in range(2 * iterations)] for side in "rs"]
    assert len(outcome.lengths) == sum(pages > 0 for side in passed for pages in side), "nothing was joined otherwise"
    lengths = [(file.pages, *pages) for file, pages in zip((r, s), passed, strict=True)]
    assert outcome.count("read") == sum(up(pages, allocation.input) for side in lengths for pages in side)
    assert outcome.count("write") == sum(up(pages, allocation.output) for side in passed for pages in side)
    for side in passed:
        assert side == sorted(side, reverse=True), "less is passed over each time"
    # Chance keeps a little less than memory holds: of few tuples more, of 35 (the least here) a tenth.
    near = 0.03 + 0.5 / math.sqrt(5 * math.floor(allocation.workspace / 1.2))
    told = counts("simple-hash", Sizes(r.pages, s.pages, r.pages, s.pages, memory), allocation)
    assert outcome.phases == [phase.name for phase in told]
    for phase in told:
        for kind, traffic in (("read", phase.reads), ("write", phase.writes)):
            pages = sum(
                extent[3]
                for extent, where in zip(outcome.extents, outcome.in_phase, strict=True)
                if (extent[0], where) == (kind, phase.name)
            )
            assert pages == pytest.approx(traffic.pages, rel=near, abs=0.02 * (r.pages + s.pages))
            assert outcome.count(kind, phase.name) == pytest.approx(traffic.requests, rel=near, abs=4)


def test_simple_hash_in_memory_reads_each_page_once():
    r, s = relation_file("r", np.arange(400)), relation_file("s", np.arange(900) % 400)
    outcome = run(simple_hash.join(r, s, JoinParameters(5000), SimpleHashAllocation(200, 100, 100)), 5000)
    assert {kind for kind, *_ in outcome.extents} == {"read"} and outcome.pages("read") == r.pages + s.pages
    assert outcome.phases == ["first"]


def test_a_key_that_most_of_r_carries_is_joined_by_block_nested_loops():
    r_codes, s_codes = np.concatenate([np.full(900, 7), np.arange(300)]), np.arange(700) % 350
    r, s = relation_file("r", r_codes), relation_file("s", s_codes)
    outcome = run(simple_hash.join(r, s, JoinParameters(60)), 60)
    assert len(outcome.lengths) < 20
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(r_codes, s_codes))


def test_a_workspace_holds_a_page_of_r():
    r, s = relation_file("r", np.arange(400)), relation_file("s", np.arange(900))
    with pytest.raises(InvalidParameterError, match=r"workspace: 1 pages, but a page of R with its hash table takes 1\.2"):
        simple_hash.join(r, s, JoinParameters(100), SimpleHashAllocation(1, 10, 10))
