"""N-Hash: table 1's buffers, flushes as algorithm 1 of the paper says and as often as counted, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.files import temporary_files
from algorithms.hashing.buckets import bucket_numbers, partition
from algorithms.hashing.table import hash_keys
from algorithms.joins.base import BucketOptions, JoinParameters, plan
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters, bucket_layouts, check_buffers
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Algorithm, Answer, Psync, Write
from flashsim.storage.heap_file import HeapFile
from flashsim.testing.strict_driver import oracle, relation_file, run
from models.allocation.buffers import GraceAllocation, HybridAllocation
from models.allocation.divisions import grace_hash, sub_buffer_pages
from tests.tiers import examples

KIB = 1024
#: shin2016, table 1: memory in MB; B; O and I in KB.
TABLE_1 = [
    (5, 517, 8, 856),
    (10, 259, 32, 1696),
    (20, 130, 152, 208),
    (30, 87, 336, 720),
    (50, 53, 920, 1160),
    (100, 27, 3560, 3720),
    (200, 14, 13312, 13312),
]


def allocation(memory: int) -> GraceAllocation:
    """Grace hash's buffers for ORDERS at scale 10 in so many MB, of which the paper's rows leave 2.5 % out."""
    return grace_hash(268_000, 268_000, int(0.975 * 128 * memory))


@pytest.mark.parametrize(("memory", "buckets", "output", "input_"), TABLE_1)
def test_buffers_of_table_1(memory: int, buckets: int, output: int, input_: int) -> None:
    found = allocation(memory)
    assert (found.buckets, 8 * found.output, 8 * found.input) == (buckets, output, input_)


@dataclass
class Flushes:
    """Watches what a partition method writes: of each call the extents of each file, in bytes."""

    calls: list[list[tuple[int, ...]]] = field(default_factory=list)

    def watch(self, algorithm: Algorithm) -> Algorithm:
        """The same requests."""
        answer: Answer = None
        while True:
            try:
                request = algorithm.send(answer)
            except StopIteration:
                return
            writes = request.requests if isinstance(request, Psync) else [request]
            call = [tuple((each.counts * each.file.page_size).tolist()) for each in writes if isinstance(each, Write)]
            self.calls += [call] if call else []
            answer = yield request


def flushes(file: HeapFile, memory: int, method: str) -> tuple[Flushes, int, int]:
    """Partition a file with the buffers of table 1: what was written, and the writes and reads counted."""
    found, told, made = allocation(memory), PartitionParameters(method), Flushes()
    buffers = PartitionBuffers(found.input, found.output, found.buckets)
    files = temporary_files("made", "bucket", found.buckets, bucket_layouts([file], buffers, told)[0], 0)
    total = trace_only(made.watch(partition(file, files, 0, buffers, told)), [file]).total()
    assert sum(bucket.tuples for bucket in files) == len(file.relation)
    return made, total.writes, total.reads


def orders(rows: int) -> HeapFile:
    """Rows as ORDERS has, 56 on a page and 28 on half a page, by keys of customers: a million of them have orders."""
    return relation_file("orders", np.random.default_rng(1).integers(0, 1_000_000, rows), record=138, page_size=8 * KIB)


#: As a trial model counted at published size, all but the last call of what is left: memory in MB, calls, requests a call, their mean size
#: in KiB, per cent of rings that wrap, full sub-buffers a ring, per cent of the space that a call empties; the traditional method's writes
#: and reads.
COUNTED: list[tuple[int, int, int, float, int, float, tuple[int, int], int, int]] = [
    (5, 1587, 340, 4.0, 0, 1, (33, 33), 268_800, 2510),
    (10, 402, 361, 14.8, 39, 2.6, (65, 65), 67_260, 1267),
    (20, 122, 238, 74, 83, 17, (89, 89), 14_190, 10_328),
    (30, 78, 166, 165, 90, 39, (94, 99), 6440, 2984),
    (50, 45, 103, 457, 95, 111, (94, 99), 2370, 1852),
    (100, 22, 53, 1810, 95, 438, (94, 99), 620, 578),
    (200, 11, 27, 7000, 90, 1650, (94, 99), 168, 162),
]


def near(found: float, counted: float) -> bool:
    """Within 2 % of a count, which was rounded to the digits that it shows."""
    shown = f"{counted:g}".rstrip("0") if counted >= 1000 else f"{counted:g}"
    digit = 10.0 ** (len(f"{counted:g}") - len(shown)) if "." not in shown else 0.1
    return abs(found - counted) <= 0.02 * counted + digit / 2


def check_pattern(calls: list[list[tuple[int, ...]]], memory: int) -> None:
    """Calls of N-Hash against what was counted."""
    (_, _, at_once, kib, wrap, full, taken, *_) = next(row for row in COUNTED if row[0] == memory)
    rings, found = [ring for call in calls for ring in call], allocation(memory)
    requests = np.array([length for ring in rings for length in ring]) / KIB
    assert near(len(requests) / len(calls), at_once)
    assert near(requests.mean(), kib)
    assert near(requests.sum() / len(rings) / (4 if memory == 5 else 8), full)
    chance = 200 * math.sqrt(wrap / 100 * (1 - wrap / 100) / len(rings))  # two standard deviations: at 200 MB there are 154 rings
    assert abs(100 * np.mean([len(ring) > 1 for ring in rings]) - wrap) <= max(2, chance)
    assert taken[0] - 2.5 <= 100 * requests.sum() / len(calls) / (found.buckets * found.output * 8) <= taken[1] + 2.5


def test_flushes_of_a_tenth_of_the_published_relation() -> None:
    """Without the first call, which finds rings of which none is partly filled; it weighs more in so few."""
    made, *_ = flushes(orders(1_500_000), 10, "n-hash")
    check_pattern(made.calls[1:-1], 10)


@pytest.fixture(scope="module")
def published() -> HeapFile:
    """15 million tuples on 268,000 pages."""
    return orders(15_000_000)


SIZES = [pytest.param(row[0], marks=[pytest.mark.deep] if row[0] < 100 else []) for row in COUNTED]


@pytest.mark.parametrize("memory", SIZES)
def test_flushes_at_published_size(memory: int, published: HeapFile) -> None:
    """Calls are as many and as large as counted."""
    calls = next(row[1] for row in COUNTED if row[0] == memory)
    made, *_ = flushes(published, memory, "n-hash")
    assert near(len(made.calls) - 1, calls)
    check_pattern(made.calls[:-1], memory)


@pytest.mark.parametrize("memory", SIZES)
def test_traditional_writes_and_reads_at_published_size(memory: int, published: HeapFile) -> None:
    """They are as many as counted."""
    *_, writes, reads = next(row for row in COUNTED if row[0] == memory)
    _, *found = flushes(published, memory, "traditional")
    assert near(found[0], writes) and near(found[1], reads)


class Ring:
    """A circular buffer by the paper's words: sub-buffers in a row, of which some are in use from `begin` on; pages are lists of sizes."""

    def __init__(self, count: int, pages: int, room: int) -> None:
        self.count, self.pages, self.room = count, pages, room
        self.begin = 0
        self.used: list[list[list[int]]] = [[]]

    def takes(self, size: int) -> bool:
        """Whether there is room, in a new sub-buffer or page if need be."""
        last = self.used[-1]
        if last and sum(last[-1]) + size <= self.room:
            last[-1].append(size)
        elif len(last) < self.pages:
            last.append([size])
        elif len(self.used) < self.count:
            self.used.append([[size]])
        else:
            return False
        return True

    def flushed(self, full: int) -> list[int]:
        """Pages of each batch, when so many sub-buffers are written: one, or two where they go on from the last place to the first."""
        batches: list[int] = []
        for number in range(full):
            place, pages = (self.begin + number) % self.count, len(self.used[number])
            if batches and place:
                batches[-1] += pages
            else:
                batches.append(pages)
        self.used = self.used[full:] or [[]]
        self.begin = (self.begin + full) % self.count
        return batches


def by_the_paper(sizes: Sequence[int], numbers: Sequence[int], rings: list[Ring]) -> list[dict[int, list[int]]]:
    """Algorithm 1: of each call the batches of each ring, in pages."""
    calls = []
    for size, number in zip(sizes, numbers, strict=True):
        if not rings[number].takes(size):
            full = [len(ring.used) if ring is rings[number] else len(ring.used) - 1 for ring in rings]
            calls.append({place: batches for place, ring in enumerate(rings) if (batches := ring.flushed(full[place]))})
            assert rings[number].takes(size)
    calls.append({place: batches for place, ring in enumerate(rings) if ring.used[0] and (batches := ring.flushed(len(ring.used)))})
    return [call for call in calls if call]


@settings(max_examples=examples(60))
@given(st.integers(0, 300), st.integers(1, 5), st.integers(1, 6), st.sampled_from([512, 1024, 1536]), st.integers(0, 99))
def test_calls_are_those_of_algorithm_1(rows: int, buckets: int, pages: int, sub_buffer: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    file = relation_file("r", random.integers(0, 50, rows), record=random.integers(4, 250, rows))
    told, buffers = PartitionParameters("n-hash", sub_buffer=sub_buffer), PartitionBuffers(2, pages, buckets)
    files = temporary_files("made", "bucket", buckets, file.layout, 0)
    made = Flushes()
    trace_only(made.watch(partition(file, files, 0, buffers, told)), [file])
    tuples = file.run(0, file.pages)
    share = sub_buffer_pages(pages, 512, sub_buffer)
    rings = [Ring(pages // share, share, file.layout.room) for _ in range(buckets)]
    numbers = bucket_numbers(hash_keys(tuples.keys, 0), buckets)
    wanted = by_the_paper(file.layout.cell_sizes(tuples).tolist(), numbers.tolist(), rings)
    assert made.calls == [[tuple(512 * pages for pages in batches) for batches in call.values()] for call in wanted]
    assert [bucket.tuples for bucket in files] == np.bincount(numbers, minlength=buckets).tolist()


def test_the_paper_s_sub_buffers() -> None:
    """8 KB, but smaller where an output buffer has no two of them; whole pages that divide it."""
    assert [sub_buffer_pages(ring, 8192) for ring in (1, 2, 4, 19, 1664)] == [1] * 5
    assert [sub_buffer_pages(ring, 1024) for ring in (1, 2, 3, 8, 16, 24, 30)] == [1, 1, 1, 4, 8, 8, 6]
    assert [sub_buffer_pages(12, 1024, size) for size in (1024, 4096, 12288, 1 << 20)] == [1, 4, 12, 12]


def layout_of(file: HeapFile, output: int, sub_buffer: int = 0) -> int:
    """Bytes of a page of its buckets."""
    return bucket_layouts([file], PartitionBuffers(1, output, 3), PartitionParameters("n-hash", sub_buffer=sub_buffer))[0].page_size


def test_pages_are_smaller_where_sub_buffers_are() -> None:
    file = relation_file("r", np.arange(50), page_size=8192)
    assert [layout_of(file, 1), layout_of(file, 2), layout_of(file, 1, 2048), layout_of(file, 4, 4096), layout_of(file, 4, 16384)] == [
        4096,
        8192,
        2048,
        4096,
        8192,
    ]
    wide = relation_file("w", np.arange(50), record=5000, page_size=8192)
    assert layout_of(wide, 1) == 8192, "a row does not fit on half a page"
    assert layout_of(relation_file("s", np.arange(50)), 1) == 512, "there are no smaller ones"


@pytest.mark.parametrize(
    ("sub_buffer", "output", "words"),
    [
        (16384, 1, "sub-buffer: 16 KiB, but an output buffer has 8 KiB"),
        (3072, 1, "sub-buffer: 3 KiB, but an output buffer of 8 KiB is not a multiple of it"),
        (12288, 3, "sub-buffer: 12 KiB, but it must be whole pages of 8 KiB, or a page whole sub-buffers"),
        (256, 2, "sub-buffer: 256 B, but buckets would have such pages: page size: 256 B"),
    ],
)
def test_sub_buffers_that_do_not_do_are_refused(sub_buffer: int, output: int, words: str) -> None:
    file = relation_file("r", np.arange(50), page_size=8192)
    with pytest.raises(InvalidParameterError) as refused:
        check_buffers([file], PartitionBuffers(1, output, 3), PartitionParameters("n-hash", sub_buffer=sub_buffer))
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize("sub_buffer", [0, 512])
def test_an_overfull_bucket_is_partitioned_again(sub_buffer: int) -> None:
    """By rings of another length, which the sub-buffers asked for need not divide."""
    random = np.random.default_rng(1)
    r_codes, s_codes = random.permutation(2000), random.integers(0, 2000, 8000)
    r, s = relation_file("r", r_codes, page_size=1024), relation_file("s", s_codes, page_size=1024)
    told = JoinParameters(16, options=BucketOptions("n-hash", sub_buffer))
    outcome = run(plan("grace-hash", r, s, told, GraceAllocation(1, 5, 5, 5, 10)), 16)
    assert any(name.count("/bucket-") == 2 for name in outcome.lengths) and len(outcome.psyncs) > 2
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(r_codes, s_codes))


@pytest.mark.parametrize(("workspace", "buckets", "memory"), [(0, 6, 90), (600, 0, 700), (30, 6, 120)])
def test_hybrid_hash_with_nothing_something_and_everything_in_memory(workspace: int, buckets: int, memory: int) -> None:
    random = np.random.default_rng(2)
    r_codes, s_codes = random.permutation(1000), random.integers(0, 1200, 3000)
    r, s = relation_file("r", r_codes), relation_file("s", s_codes)
    given = HybridAllocation(buckets, 10 if buckets else 0, 10, workspace, 10, 50 if buckets else 0)
    outcome = run(plan("hybrid-hash", r, s, JoinParameters(memory, options=BucketOptions("n-hash")), given), memory)
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(r_codes, s_codes))
    written = sum(count for name, count in outcome.tuples.items() if name.count("/bucket-") == 1)
    assert written == 4000 if workspace == 0 else written == 0 if not buckets else 0 < written < 4000


def test_page_io_writes_every_page_of_a_call_by_itself() -> None:
    random = np.random.default_rng(3)
    file = relation_file("r", random.integers(0, 900, 3000))
    found = {}
    for page_io in (False, True):
        told, made = PartitionParameters("n-hash", page_io=page_io), Flushes()
        files = temporary_files("made", "bucket", 5, file.layout, 0)
        trace_only(made.watch(partition(file, files, 0, PartitionBuffers(3, 8, 5), told)), [file])
        found[page_io] = made.calls
    assert [[sum(ring) for ring in call] for call in found[False]] == [[sum(ring) for ring in call] for call in found[True]]
    assert {length for call in found[True] for ring in call for length in ring} == {512}
