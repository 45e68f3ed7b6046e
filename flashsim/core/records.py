"""Numba's types of arrays; and tables with named fields: structured arrays that kernels and plain Python read alike.

A field is ``table[row].field`` or ``table.field``.

Kernels compute in int64: what is read from a narrower field and multiplied or shifted is made an ``int`` first, as NumPy would stay narrow
where Numba widens.  A record of scalars is compiled faster than a vector with a constant for each place.
"""

from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import from_dtype, typeof, types

from flashsim.core.request import COMMAND, COMPLETION, REQUEST, Integers

VECTOR = types.Array(types.int64, 1, "C")
MATRIX = types.Array(types.int64, 2, "C")
REQUESTS, COMMANDS, COMPLETIONS = (typeof(np.empty(0, dtype)) for dtype in (REQUEST, COMMAND, COMPLETION))

RecordArray = Any  #: A table, or one of its rows.
LINE = 64  #: Bytes of a line of the processor's caches.


def record_dtype(*before: np.dtype[np.void], **names: str) -> np.dtype[np.void]:
    """The type of a row: the fields of others, then for each NumPy type the names of its own, the widest types first.

    >>> record_dtype(int64="begin end", int8="kind").names
    ('begin', 'end', 'kind')
    """
    others = [(name, other[name]) for other in before for name in other.names or ()]
    return np.dtype([*others, *((name, kind) for kind, fields in names.items() for name in fields.split())], align=True)


def whole_lines(dtype: np.dtype[np.void]) -> np.dtype[np.void]:
    """The type of a row whose length is filled up to whole lines of the processor's caches."""
    fields: Any = dtype.fields
    row: Any = {"names": dtype.names, "formats": [fields[name][0] for name in dtype.names or ()]}
    row["offsets"], row["itemsize"] = [fields[name][1] for name in dtype.names or ()], -(-dtype.itemsize // LINE) * LINE
    return np.dtype(row)


def aligned_zeros(size: int) -> npt.NDArray[np.uint8]:
    """Zeros, the first of which begins a line of the processor's caches."""
    memory = np.zeros(size + LINE, np.uint8)
    begin = -memory.ctypes.data % LINE
    return memory[begin : begin + size]


def empty_table(rows: int | tuple[int, ...], dtype: np.dtype[np.void]) -> RecordArray:
    """A table of zeros, which begins with a line of the processor's caches."""
    return as_table(aligned_zeros(int(np.prod(rows)) * dtype.itemsize).view(dtype).reshape(rows))


def as_table(rows: np.ndarray[Any, np.dtype[np.void]]) -> RecordArray:
    """The table of a structured array, which shares its memory."""
    table, row = _classes(rows.dtype)
    return rows.view(np.dtype((row, rows.dtype)), table)


@cache
def _classes(dtype: np.dtype[np.void]) -> tuple[type, type]:
    """The classes of a table and of its rows: a property a field, which plain Python reads six times as fast as that of `np.recarray`."""
    names = dtype.names or ()
    columns = {name: property(_column_of(name), _setter_of(name)) for name in names}
    fields = {name: property(itemgetter(name), _setter_of(name)) for name in names}
    assert not any(hasattr(np.recarray, name) for name in names), "a field would hide what NumPy calls by that name"
    return type("Table", (np.ndarray,), columns), type("Row", (np.void,), fields)


def _column_of(name: str) -> Callable[[RecordArray], np.ndarray[Any, Any]]:
    return lambda table: np.ndarray.__getitem__(table, name).view(np.ndarray)


def _setter_of(name: str) -> Callable[[RecordArray, Any], None]:
    return lambda record, value: record.__setitem__(name, value)


def empty_record(dtype: np.dtype[np.void]) -> RecordArray:
    """A record of zeros, for a group's scalars."""
    return empty_table(1, dtype)[0]


def field_views(record: RecordArray, *names: str) -> tuple[Integers, ...]:
    """Fields of a record, each as an array of one entry that shares its memory: Python reads it seven times as fast.

    A copy of an object that holds a record and views must make the views anew.
    """
    return tuple(np.asarray(record)[name].reshape(1) for name in names)


def table_type(dtype: np.dtype[np.void]) -> types.Array:
    return types.Array(from_dtype(dtype), 1, "C")


def record_of_type(dtype: np.dtype[np.void]) -> types.Record:
    return from_dtype(dtype)
