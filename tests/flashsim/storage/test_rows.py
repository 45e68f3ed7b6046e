"""Tuples in memory: those that a mask chooses, and the bytes of row ids on pages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.storage.record import varint_size
from flashsim.storage.rows import apply_mask, key_tuples


@given(st.lists(st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), st.booleans()), max_size=60))
def test_a_mask_chooses_as_in_numpy(pairs: list[tuple[int, bool]]) -> None:
    numbers, mask = np.array([number for number, _ in pairs], np.int64), np.array([chosen for _, chosen in pairs], np.bool_)
    for each in (numbers, numbers.view(np.uint64), np.repeat(numbers, 2)[::2]):
        chosen = apply_mask(each, mask)
        assert chosen.dtype == each.dtype and np.array_equal(chosen, each[mask])
    tuples = key_tuples(numbers, numbers[::-1]).select(mask)
    assert np.array_equal(tuples.keys, numbers[mask]) and np.array_equal(tuples.rows, numbers[::-1][mask])


def test_a_mask_of_another_length_is_refused() -> None:
    with pytest.raises(IndexError):
        apply_mask(np.arange(3), np.ones(4, np.bool_))


def test_varints_grow_by_a_byte_each_seven_bits() -> None:
    bounds = [1 << 7 * length for length in range(1, 9)]
    for length, bound in enumerate(bounds, start=1):
        assert varint_size([bound - 1, bound]).tolist() == [length, length + 1]
    assert varint_size(np.array([[0, 128]])).shape == (1, 2) and int(varint_size(5)) == 1
