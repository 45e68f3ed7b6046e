"""Copies that share memory: they are alike, and what is changed in one is seen in no other."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from flashsim.core import large_arrays
from flashsim.core.records import empty_table, record_dtype


class Holder:
    """Holds arrays, one of them twice."""

    def __init__(self) -> None:
        self.table = empty_table(100_000, record_dtype(int64="count", int8="kind"))
        self.table.count[500:600] = 7
        self.numbers, self.small = np.arange(600_000).reshape(2, -1), np.arange(3)
        self.alias = self.numbers


@pytest.mark.parametrize("in_memory", [True, False])
def test_copies_are_alike_and_change_apart(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    thing = Holder()
    original = large_arrays.Original(thing, [thing.table, thing.numbers, thing.small])
    one, other = original.copy(), original.copy()
    for each in (one, other):
        for name, array in vars(thing).items():
            copied: Any = getattr(each, name)
            assert type(copied) is type(array) and copied.dtype == array.dtype and copied.flags == array.flags
            assert np.array_equal(copied, array)
        assert each.alias is each.numbers and not np.shares_memory(each.numbers, thing.numbers)
    one.numbers[1, 5], one.table[3].kind = -1, 1
    assert other.numbers[1, 5] == thing.numbers[1, 5] != -1 and other.table[3].kind == 0
