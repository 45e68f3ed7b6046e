"""Floating-point numbers in SQL's order: NaN equals itself and follows all other numbers, and -0 equals 0."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.storage.columns import array_of, column_of

_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_EXACT_DIGITS = 15  #: Digits of whole numbers that a floating-point number holds.


def has_nan(values: Any) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py())


def order_keys(values: Any) -> Any:
    """Integers in the order of floating-point numbers, an array or a single value; NULL stays NULL."""
    array = values if isinstance(values, pa.Array) else pa.array([values.as_py()], values.type)
    numbers = np.array(array_of(array.cast(pa.float64()), 0.0)) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.int64)
    keys = column_of(bits ^ ((bits >> 63) & _MAGNITUDE))
    keys = pc.if_else(array.is_valid(), keys, pa.scalar(None, pa.int64())) if array.null_count else keys
    return keys if isinstance(values, pa.Array) else keys[0]


def from_order_keys(keys: pa.Array, kind: pa.DataType) -> pa.Array:
    """The numbers of order keys, in a floating-point type."""
    bits = array_of(keys, 0)
    numbers = column_of((bits ^ ((bits >> 63) & _MAGNITUDE)).view(np.float64)).cast(kind)
    return pc.if_else(keys.is_valid(), numbers, pa.scalar(None, kind)) if keys.null_count else numbers


def canonical(values: pa.Array) -> pa.Array:
    """Equal numbers with equal bits, as keys of groups and joins need them; values of other types as they are."""
    return from_order_keys(order_keys(values), values.type) if pa.types.is_floating(values.type) else values


def nearest(values: Any) -> Any:
    """Decimals, an array or a single value, as the nearest floating-point numbers: Arrow's own conversion may be off by the last bit."""
    if isinstance(values, pa.Scalar):
        return pa.scalar(None if values.as_py() is None else float(values.as_py()), pa.float64())
    if values.type.precision > _EXACT_DIGITS or not len(values):
        return values.cast(pa.float64())
    words = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset : 2 * (values.offset + len(values)) : 2]
    numbers = column_of(words / 10.0**values.type.scale)
    return pc.if_else(values.is_valid(), numbers, pa.scalar(None, pa.float64())) if values.null_count else numbers
