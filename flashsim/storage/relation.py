"""A relation as an algorithm sees it: a key code a row, and how many bytes each row takes on a page.

Key codes are int64 and order-preserving; both relations of a join share one coding, so that equal codes mean equal keys.  What the
rows hold besides is elided: it stays with `Records` and is fetched by row id when results are written or pages become bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.request import Integers
from flashsim.storage.keys import NULL_KEY as NULL_KEY
from flashsim.storage.keys import StoredKeys
from flashsim.storage.record import varint_size as varint_size


class Records(Protocol):
    """The stored rows of a table; row ids run from 0."""

    @property
    def names(self) -> list[str]:
        """Column names, in order."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def key(self, column: str) -> pa.Array | pa.ChunkedArray:
        """The values of one column, shape (rows,)."""

    def record_sizes(self) -> int | npt.NDArray[Any]:
        """Bytes of every row as a SQLite record (header and values): one number, or shape (rows,)."""

    def encode(self, rows: Integers) -> tuple[npt.NDArray[np.uint8], Integers]:
        """The SQLite records of some rows: their bytes one after the other, and where each begins, shape (n + 1,)."""

    def take(self, rows: Integers) -> pa.Table:
        """Some rows, in the given order, with all columns."""


@dataclass
class Tuples:
    """Tuples as they lie on pages: key codes and row ids, shape (n,), and the first tuple of each page, shape (pages + 1,)."""

    keys: Integers
    rows: Integers
    pages: Integers

    def __len__(self) -> int:
        return len(self.keys)

    def joinable(self) -> Tuples:
        """Without the tuples whose key is NULL; page boundaries follow."""
        keep = self.keys != NULL_KEY
        if keep.all():
            return self
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        return Tuples(self.keys[keep], self.rows[keep], kept_before[self.pages])


@dataclass
class Relation:
    """One side of a join.

    Parameters
    ----------
    name
        What files and reports call it.
    key
        The column that is joined on.
    codes
        Shape (rows,), int64, or int32 where no key is NULL and all fit.
    records
        The stored rows.
    """

    name: str
    key: str
    codes: npt.NDArray[Any]
    records: Records
    _sizes: int | npt.NDArray[Any] = field(init=False, repr=False)
    _stored: StoredKeys | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self._sizes = self.records.record_sizes()

    def __len__(self) -> int:
        return len(self.codes)

    def keys(self, rows: Integers | slice) -> Integers:
        """Key codes of some rows."""
        return self.codes[rows].astype(np.int64, copy=False)

    def record_sizes(self, rows: Integers) -> Integers:
        """Bytes of some rows as SQLite records."""
        return np.broadcast_to(np.int64(self._sizes), rows.shape) if isinstance(self._sizes, int) else self._sizes[rows].astype(np.int64)

    def cell_sizes(self, rows: Integers) -> Integers:
        """Bytes that each row takes on a table-leaf page, its cell pointer included: payload size, row id, record, pointer.

        Cells of the same row are the same on every page, base or temporary: SQLite's row id is the row number plus 1.
        """
        record = self._sizes if isinstance(self._sizes, int) else self._sizes[rows].astype(np.int64)
        return varint_size(record) + varint_size(np.asarray(rows) + 1) + record + 2

    @property
    def stored_keys(self) -> StoredKeys:
        """Finds the code of a key that was read from a page."""
        if self._stored is None:
            self._stored = StoredKeys(self.name, self.records.key(self.key), self.codes)
        return self._stored
