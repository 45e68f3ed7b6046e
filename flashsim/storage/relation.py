"""A relation as an algorithm sees it: a key code a row, and how many bytes each row's record takes.

Key codes are int64 and order-preserving; both relations of a join share one coding, so that equal codes mean equal keys.  What the
rows hold besides is elided: it stays with `Records` and is fetched by row id when results are written or pages become bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import CapacityError, DamagedFileError, SchemaError
from flashsim.core.request import Integers
from flashsim.storage.attributes import Attribute
from flashsim.storage.columns import array_of, column_of, one_array
from flashsim.storage.keys import StoredKeys
from flashsim.storage.record import Bytes, locate_values, stored_values
from flashsim.storage.rows import Columns, Tuples
from flashsim.storage.texts import stored_column


class Records(Protocol):
    """The stored rows of a table; row ids run from 0."""

    @property
    def names(self) -> list[str]:
        """Column names, in order."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    def key(self, column: str) -> pa.Array | pa.ChunkedArray:
        """The values of one column, shape (rows,)."""

    def record_sizes(self) -> int | npt.NDArray[Any]:
        """Bytes of every row as a SQLite record (header and values): one number, or shape (rows,)."""

    def encode(self, rows: Integers) -> tuple[npt.NDArray[np.uint8], Integers]:
        """The SQLite records of some rows: their bytes one after the other, and where each begins, shape (n + 1,)."""

    def attributes(self) -> tuple[Attribute, ...]:
        """Storage of every column where it is stored as such."""

    def take(self, rows: Integers) -> pa.Table:
        """Some rows, in the given order, with all columns."""


@dataclass
class Relation:
    """One side of a join; as a row format, its tuples are a key code and a row id, and lie on pages as whole rows."""

    #: What files and reports call it.
    name: str
    #: The column that is joined on.
    key: str
    #: Shape (rows,), int64, or int32 where no key is NULL and all fit.
    codes: npt.NDArray[Any]
    #: The stored rows.
    records: Records
    columns: ClassVar[tuple[str, ...]] = ("key", "row")
    _sizes: int | npt.NDArray[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._sizes = self.records.record_sizes()

    def __len__(self) -> int:
        return len(self.codes)

    def keys(self, rows: Integers | slice) -> Integers:
        return self.codes[rows].astype(np.int64, copy=False)

    @property
    def title(self) -> str:
        return f"relation {self.name}"

    @property
    def base_columns(self) -> Mapping[str, npt.DTypeLike]:
        """The row id: the key follows from it."""
        return {"row": np.int32 if len(self) <= np.iinfo(np.int32).max else np.int64}

    def restore_columns(self, columns: Mapping[str, npt.NDArray[Any]]) -> Columns:
        rows = columns["row"].astype(np.int64)
        return {"key": self.keys(rows), "row": rows}

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """Row ids, of 4 bytes where these hold all, and the columns."""
        return Attribute(None, pa.int64(), np.dtype(self.base_columns["row"]).itemsize), *self.records.attributes()

    def place(self, column: str) -> int:
        return 0 if column == "row" else 1 + self.records.names.index(self.key)

    def attribute_values(self, tuples: Tuples) -> list[pa.Array]:
        return [column_of(tuples.rows), *(one_array(column) for column in self.records.take(tuples.rows).columns)]

    def numbers_of(self, column: str, stored: pa.Array) -> Integers:
        if column == "key":
            try:
                column_of_keys = stored_column(stored)
            except SchemaError as problem:  # what a relation cannot hold, no page of it does
                raise DamagedFileError(f"{self.title}: a page holds a key that no row has: {problem}") from None
            return self.stored_keys.codes(column_of_keys)
        return self._known_rows(array_of(stored))

    def check(self, tuples: Tuples) -> None:
        for extreme in (int(tuples.rows.min(initial=0)), int(tuples.rows.max(initial=0))):
            if len(tuples) and not 0 <= extreme < len(self):
                raise CapacityError(f"{self.title}: row {extreme}, but it has {len(self)}, from 0")

    def largest_record(self) -> int:
        return self._sizes if isinstance(self._sizes, int) else int(self._sizes.max(initial=0))

    def record_sizes(self, tuples: Tuples) -> int | Integers:
        return self._sizes if isinstance(self._sizes, int) else self._sizes[tuples.rows].astype(np.int64)

    def numbers(self, tuples: Tuples) -> Integers:
        """The row ids, so that a row's cell is the same on every page, base or temporary."""
        return tuples.rows

    def encode(self, tuples: Tuples) -> tuple[Bytes, Integers]:
        return self.records.encode(tuples.rows)

    def decode(self, data: Bytes, numbers: Integers, starts: Integers, ends: Integers) -> Columns:
        keys = self.decode_values((self.key,), data, numbers, starts, ends).column(0)
        return {"key": self.stored_keys.codes(one_array(keys)), "row": numbers}

    def decode_values(self, attributes: tuple[str, ...], data: Bytes, numbers: Integers, starts: Integers, ends: Integers) -> pa.Table:
        """Decode columns, in the types that records have (see `decode`)."""
        self._known_rows(numbers)
        names = self.records.names
        types, at = (np.zeros((len(numbers), len(names)), np.int64) for _ in range(2))
        damaged = locate_values(data, starts, ends, types, at)
        if damaged >= 0:
            raise DamagedFileError(f"{self.title}: row {numbers[damaged]} is not a record")
        columns = [names.index(name) for name in attributes]
        arrays = [stored_values(data, types[:, column].copy(), at[:, column].copy()) for column in columns]
        return pa.table(dict(zip(attributes, arrays, strict=True)))

    def _known_rows(self, rows: Integers) -> Integers:
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise DamagedFileError(f"{self.title}: a page that was read holds a cell of no row")
        return rows

    @cached_property
    def stored_keys(self) -> StoredKeys:
        """Finds the code of a key that was read from a page."""
        return StoredKeys(self.name, self.records.key(self.key), self.codes)
