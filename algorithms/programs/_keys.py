"""Keys of joins and partitions: values in a common type, and hashes of values of any type."""

from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from algorithms.expressions.expression import align, remedy
from algorithms.expressions.floats import canonical, order_keys
from algorithms.hashing.table import hash_keys
from flashsim.core.errors import SchemaError
from flashsim.storage.columns import array_of

Hashes = npt.NDArray[np.uint64]


def hashes(values: pa.Array) -> Hashes:
    """A hash of each value, shape (rows,); of NULL any."""
    kind = values.type
    if pa.types.is_floating(kind):
        return hash_keys(array_of(order_keys(values), 0), 0)
    if pa.types.is_temporal(kind):
        kind = pa.int32() if kind.bit_width == 32 else pa.int64()
        values = values.cast(kind)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return hash_keys(array_of(values.cast(pa.int64(), safe=False), 0), 0)
    encoded = values.dictionary_encode()
    distinct = [int.from_bytes(blake2b(str(value).encode(), digest_size=8).digest(), "little") for value in encoded.dictionary.to_pylist()]
    return np.array([*distinct, 0], np.uint64)[array_of(encoded.indices.cast(pa.int64()), -1)]


def comparable(values: pa.Array, other: pa.DataType) -> pa.Array:
    """Values in the type in which they are compared with those of another, equal ones with equal bits.

    Raises SchemaError: the types have no values in common.
    """
    try:
        return canonical(align(values, pa.array([], other))[0])
    except (pa.ArrowException, SchemaError):
        why = f"query: a join of {values.type} with {other}, which equal nothing of each other"
        raise SchemaError(why + remedy(values.type, other)) from None
