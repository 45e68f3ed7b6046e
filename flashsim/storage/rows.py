"""Tuples in memory, as columns of integers, and row formats: what the tuples of a file are made of, whatever pages they lie on.

A relation is a row format (`flashsim.storage.relation`): its tuples are a key code and a row id, and stand for whole rows.  `FixedRows`
is any record of whole numbers of fixed widths, such as a digest (a key and a row id) or an entry of a join index (two row ids).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import CapacityError, DamagedFileError, InvalidParameterError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.attributes import Attribute
from flashsim.storage.columns import array_of, column_of
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.record import Bytes, put_varint, varint_size

Columns = dict[str, Integers]

#: Boundaries of tuples that lie on no page.
_NO_PAGES = np.zeros(1, np.int64)
#: SQLite's serial type of a number, by the bytes that it takes.
_SERIAL_TYPES = {1: 1, 2: 2, 3: 3, 4: 4, 6: 5, 8: 6}
#: So that a record's header has a length of one byte.
_MOST_COLUMNS = 126


@dataclass
class Tuples:
    """Tuples as they lie on pages, or in memory."""

    #: int64, shape (n,) each, by the names that the row format gives them.
    columns: Columns
    #: The first tuple of each page, shape (pages + 1,); without it, they lie on none.
    pages: Integers = field(default_factory=lambda: _NO_PAGES)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def keys(self) -> Integers:
        return self.columns["key"]

    @property
    def rows(self) -> Integers:
        return self.columns["row"]

    def joinable(self) -> Tuples:
        """Without the tuples whose key is NULL; page boundaries follow."""
        keep = self.keys != NULL_KEY
        if keep.all():
            return self
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        return Tuples(self.select(keep).columns, kept_before[self.pages])

    def only(self, columns: tuple[str, ...]) -> Tuples:
        return Tuples({name: self.columns[name] for name in columns}, self.pages)

    def select(self, which: npt.NDArray[Any] | slice) -> Tuples:
        """Some of the tuples, by a mask, by their numbers or a run of them, as they stay in memory: without pages."""
        if isinstance(which, np.ndarray) and which.dtype == np.bool_:
            return Tuples({name: apply_mask(column, which) for name, column in self.columns.items()})
        return Tuples({name: column[which] for name, column in self.columns.items()})


def apply_mask(numbers: npt.NDArray[Any], mask: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Those of some numbers where the mask, of as many, is True; where it is a toss-up, NumPy takes seven times as long."""
    if mask.shape != numbers.shape:
        return numbers[mask]  # NumPy says what is wrong
    return _apply_mask(np.ascontiguousarray(numbers), np.ascontiguousarray(mask), int(np.count_nonzero(mask)))


@kernel
def _apply_mask(numbers: npt.NDArray[Any], mask: npt.NDArray[np.bool_], count: int) -> npt.NDArray[Any]:
    chosen = np.empty(count + 1, numbers.dtype)  # what is not chosen is written over
    place = 0
    for index in range(mask.shape[0]):
        chosen[place] = numbers[index]
        place += mask[index]
    return chosen[:count]


def key_tuples(keys: Integers, rows: Integers, pages: Integers = _NO_PAGES) -> Tuples:
    """Tuples of a key code and a row id, shape (n,) each."""
    return Tuples({"key": keys, "row": rows}, pages)


class RowFormat(Protocol):
    """Format of the tuples of a file."""

    @property
    def title(self) -> str:
        """Name of the format in errors."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that a tuple has in memory."""

    @property
    def base_columns(self) -> Mapping[str, npt.DTypeLike]:
        """Columns from which all follow, and the narrowest type for each: these are a page's content in memory."""

    def restore_columns(self, columns: Mapping[str, npt.NDArray[Any]]) -> Columns:
        """All columns, given the base columns."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Attributes that a page column by column stores of rows, in order; row ids stand before the columns, where they are none."""

    def place(self, column: str) -> int:
        """The number of the attribute that a column of tuples is stored as."""

    def attribute_values(self, tuples: Tuples) -> list[pa.Array]:
        """The attributes of some tuples, shape (n,) each."""

    def numbers_of(self, column: str, stored: pa.Array) -> Integers:
        """The reverse, for a column of tuples: its numbers, given the attribute that it is stored as."""

    def check(self, tuples: Tuples) -> None:
        """Refuse values that no record of this format holds."""

    def largest_record(self) -> int:
        """Bytes of the largest record."""

    def record_sizes(self, tuples: Tuples) -> int | Integers:
        """Bytes of each tuple's record: one number, or shape (n,)."""

    def numbers(self, tuples: Tuples) -> Integers:
        """Number of each tuple's cell on a page that numbers its cells, shape (n,), at least 0."""

    def encode(self, tuples: Tuples) -> tuple[Bytes, Integers]:
        """The records, one after the other, and where each begins, shape (n + 1,)."""

    def decode(self, data: Bytes, numbers: Integers, starts: Integers, ends: Integers) -> Columns:
        """The columns of records that lie at ``data[starts[i]:ends[i]]``, in cells of these numbers."""

    def decode_values(self, attributes: tuple[str, ...], data: Bytes, numbers: Integers, starts: Integers, ends: Integers) -> pa.Table:
        """Decode attributes instead of rows (see `decode`)."""


@dataclass(frozen=True, eq=False)
class FixedRows:
    """Records of whole numbers, each of a fixed width.

    Examples
    --------
    >>> digest = FixedRows("digest", {"key": 8, "row": 4})
    >>> digest.columns, digest.largest_record()
    (('key', 'row'), 15)
    """

    name: str
    #: Bytes of each column: 1, 2, 3, 4, 6 or 8; numbers are signed.
    widths: Mapping[str, int]
    #: Bytes of values that follow from the columns and are elided: they are zeros on pages.
    padding: int = 0

    def __post_init__(self) -> None:
        if not 0 < len(self.widths) <= _MOST_COLUMNS:
            raise InvalidParameterError(f"{self.title}: columns", len(self.widths), f"it must have 1 to {_MOST_COLUMNS}")
        for column, width in self.widths.items():
            if width not in _SERIAL_TYPES:
                bound = f"it must be one of {', '.join(map(str, _SERIAL_TYPES))}"
                raise InvalidParameterError(f"{self.title}: width of {column}", f"{width} B", bound)

    @property
    def title(self) -> str:
        return f"row format {self.name}"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.widths)

    @property
    def base_columns(self) -> Mapping[str, npt.DTypeLike]:
        return {column: np.int32 if width <= 4 else np.int64 for column, width in self.widths.items()}

    def restore_columns(self, columns: Mapping[str, npt.NDArray[Any]]) -> Columns:
        return {column: columns[column].astype(np.int64) for column in self.widths}

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        padding = [Attribute("padding", pa.large_binary(), self.padding)] if self.padding else []
        return (*(Attribute(column, pa.int64(), width) for column, width in self.widths.items()), *padding)

    def place(self, column: str) -> int:
        return self.columns.index(column)

    def attribute_values(self, tuples: Tuples) -> list[pa.Array]:
        padding = [pa.repeat(pa.scalar(bytes(self.padding), pa.large_binary()), len(tuples))] if self.padding else []
        return [*(column_of(tuples.columns[column]) for column in self.widths), *padding]

    def numbers_of(self, column: str, stored: pa.Array) -> Integers:
        return array_of(stored)

    def check(self, tuples: Tuples) -> None:
        for column, width in self.widths.items():
            values, bound = tuples.columns[column], 1 << (8 * width - 1)
            for extreme in (int(values.min(initial=0)), int(values.max(initial=0))):
                if not -bound <= extreme < bound:
                    raise CapacityError(f"{self.title}: {column} {extreme}, but {width} B hold {-bound} to {bound - 1}")

    def largest_record(self) -> int:
        """Bytes of a record: a header of a byte and one a column, and the numbers; padding has a header of its own."""
        return len(self._header()) + sum(self.widths.values()) + self.padding

    def record_sizes(self, tuples: Tuples) -> int:
        return self.largest_record()

    def numbers(self, tuples: Tuples) -> Integers:
        """Zeros: these records have no number, and cells of one size."""
        return np.zeros(len(tuples), np.int64)

    def encode(self, tuples: Tuples) -> tuple[Bytes, Integers]:
        self.check(tuples)
        header = self._header()
        out = np.zeros((len(tuples), self.largest_record()), np.uint8)
        out[:, : len(header)] = header
        at = len(header)
        for column, width in self.widths.items():
            out[:, at : at + width] = tuples.columns[column].astype(">i8").view(np.uint8).reshape(-1, 8)[:, 8 - width :]
            at += width
        return out.reshape(-1), np.arange(len(tuples) + 1) * self.largest_record()

    def decode(self, data: Bytes, numbers: Integers, starts: Integers, ends: Integers) -> Columns:
        header, size = self._header(), self.largest_record()
        at = len(header)
        sized = not numbers.any() and bool((ends - starts == size).all())
        records = data[starts[:, None] + np.arange(size)] if sized else np.zeros((1, size), np.uint8)
        if not (records[:, :at] == header).all():
            raise DamagedFileError(f"{self.title}: a page that was read holds a record of another format")
        columns: Columns = {}
        for column, width in self.widths.items():
            wide = np.zeros((len(records), 8), np.uint8)
            wide[:, :width] = records[:, at : at + width]
            columns[column] = wide.view(">i8").reshape(-1).astype(np.int64) >> (64 - 8 * width)
            at += width
        return columns

    def decode_values(self, attributes: tuple[str, ...], data: Bytes, numbers: Integers, starts: Integers, ends: Integers) -> pa.Table:
        columns = self.decode(data, numbers, starts, ends)
        return pa.table({name: column_of(columns[name]) for name in attributes})

    def _header(self) -> Bytes:
        """A record's header as SQLite has it: its length, the type of each number, and how many bytes of padding there are."""
        kinds = [_SERIAL_TYPES[width] for width in self.widths.values()]
        blob = 12 + 2 * self.padding if self.padding else 0
        header = np.zeros(1 + len(kinds) + (int(varint_size(blob)) if blob else 0), np.uint8)
        header[: 1 + len(kinds)] = len(header), *kinds
        if blob:
            put_varint(header, 1 + len(kinds), blob)
        return header
