"""Columns as arrays and back, by Arrow's exchange of buffers: as Arrow's own conversion has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from flashsim.storage.columns import array_of, column_of
from tests.cases import with_each

KINDS = [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_column_becomes_the_array_that_arrow_makes_of_it(kind: pa.DataType) -> None:
    whole = pa.array([True, False, None, True, True]).cast(kind)
    for column in (whole.drop_null(), whole.drop_null()[1:3], whole[:0]):
        expected = column.to_numpy(zero_copy_only=False)
        assert array_of(column).dtype == expected.dtype and np.array_equal(array_of(column), expected)
    null = True if kind == pa.bool_() else 1
    assert array_of(whole, null).tolist() == [1, 0, null, 1, 1]


@with_each("dtype", [np.int8, np.uint32, np.int64, np.float64])
def test_an_array_becomes_the_column_that_arrow_makes_of_it(dtype: type) -> None:
    values = np.arange(10).astype(dtype)
    for each in (values, values[::2], values[:0]):
        assert column_of(each).equals(pa.array(each))
