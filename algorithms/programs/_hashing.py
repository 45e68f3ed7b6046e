"""Hashes of values of any type."""

from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from algorithms.expressions.floats import order_keys
from algorithms.hashing.table import hash_keys
from flashsim.storage.columns import array_of

Hashes = npt.NDArray[np.uint64]


def hashes(values: pa.Array) -> Hashes:
    """A hash of each value, shape (rows,); of NULL any."""
    kind = values.type
    if pa.types.is_floating(kind):
        return hash_keys(array_of(order_keys(values), 0), 0)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return hash_keys(array_of(values.cast(pa.int64(), safe=False), 0), 0)
    encoded = values.dictionary_encode()
    distinct = [int.from_bytes(blake2b(str(value).encode(), digest_size=8).digest(), "little") for value in encoded.dictionary.to_pylist()]
    return np.array([*distinct, 0], np.uint64)[array_of(encoded.indices.cast(pa.int64()), -1)]
