"""Columns in the types that other formats take."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.errors import SchemaError
from flashsim.storage.columns import declared_type, is_flat, mixed_array
from flashsim.storage.texts import stored_column, without_unions
from tests.cases import with_each


def test_unions_become_texts() -> None:
    columns = (
        pa.array([7, 0, 0, 0, None]),
        pa.array([0.5] * 5),
        pa.array(["a'b"] * 5, pa.large_string()),
        pa.array([b"\x0a\xff"] * 5, pa.large_binary()),
    )
    mixed = mixed_array(np.array([0, 1, 2, 3, 0], np.int8), *columns)
    table = pa.table({"k": range(5), "mixed": mixed})
    flat = without_unions(table)
    assert flat.column("mixed").to_pylist() == ["7", "0.5", "a'b", "X'0AFF'", None]
    assert flat.column("k").equals(table.column("k")) and without_unions(flat) is flat


@with_each(
    ("kind", "declared"),
    [
        (pa.uint32(), "INTEGER"),
        (pa.uint64(), ""),
        (pa.bool_(), "INTEGER"),
        (pa.float32(), "REAL"),
        (pa.large_binary(), "BLOB"),
        (pa.date32(), "TEXT"),
    ],
)
def test_declared_types_keep_values_as_they_are_stored(kind: pa.DataType, declared: str) -> None:
    assert declared_type(kind) == declared and is_flat(kind)


def test_what_cannot_be_stored_is_refused() -> None:
    assert not is_flat(pa.list_(pa.int64())) and not is_flat(pa.month_day_nano_interval())
    with pytest.raises(SchemaError, match="column type: list"):
        stored_column(pa.array([[1]]))
