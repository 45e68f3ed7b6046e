"""Distinct bytes: exact while they are, close to the truth beyond, and sketches that merge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.summary.distinct import PAGE, Touched, estimate, sketch, standard_error

_RANGES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 70), st.integers(0, 40), st.integers(0, 2)), max_size=12)


@given(st.lists(_RANGES, max_size=4))
def test_distinct_sectors_are_counted_exactly(batches: list[list[tuple[int, int, int, int]]]) -> None:
    touched, seen = Touched(most_areas=64), set()
    for batch in batches:
        device, sector, sectors, area = (np.array([row[part] for row in batch], np.int64) for part in range(4))
        offset = sector * 512 + area * ((1 << 24) - 20 * 512)  # some reach from one area into the next
        touched.add(device, offset, sectors * 512)
        seen |= {(row[0], at) for row, begin in zip(batch, offset, strict=True) for at in range(begin // 512, begin // 512 + row[2])}
    assert (touched.size, touched.exact, touched.error) == (512 * len(seen), True, 0)


def test_bytes_count_in_whole_sectors() -> None:
    touched = Touched()
    touched.add(np.array([0, 0]), np.array([511, 5000]), np.array([2, 1]))
    assert touched.size == 3 * 512


@pytest.mark.parametrize("count", [0, 1, 10, 1000, 3000, 10_000, 30_000, 200_000])
def test_sketches_are_within_four_standard_errors(count: int) -> None:
    pages = np.random.default_rng(count).integers(0, 1 << 50, count)
    registers = np.zeros((1, 1 << 12), np.uint8)
    for _ in range(2):  # what was seen before changes nothing
        sketch(np.zeros(count, np.int64), np.zeros(count, np.int64), pages * PAGE, np.full(count, PAGE), registers)
    truth = len(np.unique(pages))
    assert abs(estimate(registers[0]) - truth) <= 4 * standard_error(1 << 12) * truth


@pytest.mark.parametrize("stride", [1, 2, 256, 1 << 20])
def test_regular_pages_are_counted_as_well_as_random_ones(stride: int) -> None:
    count, registers = 20_000, np.zeros((1, 1 << 12), np.uint8)
    sketch(np.zeros(count, np.int64), np.arange(count) % 2, np.arange(count) // 2 * stride * PAGE, np.full(count, 512), registers)
    assert abs(estimate(registers[0]) - count) <= 4 * standard_error(1 << 12) * count


def test_merged_sketches_are_the_sketch_of_both() -> None:
    offset = np.random.default_rng(1).integers(0, 1 << 40, 4000)
    half, whole, zero = np.zeros((2, 1 << 10), np.uint8), np.zeros((1, 1 << 10), np.uint8), np.zeros(4000, np.int64)
    sketch(np.arange(4000) % 2, zero, offset, np.full(4000, 9000), half)
    sketch(zero, zero, offset, np.full(4000, 9000), whole)
    assert np.array_equal(np.maximum(half[0], half[1]), whole[0])


def test_beyond_the_bitmap_an_estimate_says_how_good_it_is() -> None:
    touched = Touched(most_areas=32)
    offset = np.random.default_rng(3).permutation(20_000) * (1 << 21)
    for part in np.array_split(offset, 7):
        touched.add(np.zeros(len(part), np.int64), part, np.full(len(part), 8192))
    assert not touched.exact and touched.error == standard_error(1 << 16)
    assert abs(touched.size / (20_000 * 8192) - 1) <= 4 * touched.error
