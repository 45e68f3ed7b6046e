"""A state that travels as a vector is the same state: what kernels write stands in the arrays, and other arrays can take their places."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numba import types

from flashsim.core.kernel import is_compiled, kernel_of, lean_kernel
from flashsim.core.records import MATRIX, VECTOR
from flashsim.core.request import Integers
from flashsim.core.state_table import State, StateTable, state_of


class Rows(NamedTuple):
    sums: Integers
    cells: Integers


class Whole(NamedTuple):
    rows: Rows
    bytes: npt.NDArray[np.uint8]
    columns: Integers


ROWS = types.NamedTuple((VECTOR, MATRIX), Rows)
WHOLE = types.NamedTuple((ROWS, types.Array(types.uint8, 2, "C"), types.Array(types.int64, 2, "F")), Whole)
whole_of = state_of(WHOLE)


@lean_kernel
def _add(rows: Rows, factor: int) -> None:
    for row in range(rows.cells.shape[0]):
        for column in range(rows.cells.shape[1]):
            rows.sums[row] += rows.cells[row, column] * factor


@kernel_of(types.int64(VECTOR, types.int64))
def _work(table: State, factor: int) -> int:
    whole = whole_of(table)
    _add(whole.rows, factor)
    whole.bytes[whole.bytes.shape[0] - 1, whole.bytes.shape[1] - 1] += factor
    whole.columns[0, 1] += factor
    return len(whole.rows.sums)


def make_whole() -> Whole:
    rows = Rows(np.zeros(3, np.int64), np.arange(12).reshape(3, 4))
    return Whole(rows, np.zeros((2, 5), np.uint8), np.zeros((3, 2), np.int64, order="F"))


def test_kernels_see_and_change_the_same_arrays() -> None:
    whole = make_whole()
    assert _work(StateTable(WHOLE).crossing(whole), 2) == 3
    assert whole.rows.sums.tolist() == (2 * whole.rows.cells.sum(axis=1)).tolist()
    assert whole.bytes.sum() == whole.bytes[1, 4] == 2
    assert whole.columns.tolist() == [[0, 2], [0, 0], [0, 0]]


def test_an_array_that_is_replaced_is_the_one_that_kernels_see_next() -> None:
    whole = make_whole()
    table = StateTable(WHOLE)
    table.crossing(whole)
    longer = whole._replace(rows=Rows(np.zeros(7, np.int64), np.ones((7, 1), np.int64)))
    assert _work(table.crossing(longer), 3) == 7
    assert longer.rows.sums.tolist() == [3] * 7 and not whole.rows.sums.any()


def test_a_copy_works_on_arrays_of_its_own() -> None:
    """As copied engines do, whose tables are copied together with what they stand for."""
    table, whole = StateTable(WHOLE), make_whole()
    table.crossing(whole)
    copied_table, copied_whole = copy.deepcopy((table, whole))
    _work(copied_table.crossing(copied_whole), 2)
    assert not whole.rows.sums.any() and copied_whole.rows.sums.any()


@pytest.mark.skipif(not is_compiled(), reason="uncompiled kernels take any array")
def test_an_array_of_another_kind_is_refused() -> None:
    whole = make_whole()
    for other in (np.zeros((3, 2), np.int64), np.zeros((3, 2), np.int32, order="F"), np.zeros(3, np.int64)):
        with pytest.raises(AssertionError):
            StateTable(WHOLE).crossing(whole._replace(columns=other))
