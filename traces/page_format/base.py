"""The contract of formats of page traces: references in batches, in constant memory.

Formats of requests to devices are another family (`traces.format`); `traces.file.page_trace` reads both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import InvalidParameterError
from flashsim.core.members import Family, optional
from flashsim.core.request import Integers
from flashsim.core.transactions import ReferenceBatches
from traces.format import _text

#: Types that ids are read as, one after the other, until one fits all of a chunk.
_KINDS = (pa.int64(), pa.uint64(), pa.string())
_NUMBER = r"^(-?[0-9]+|0[xX][0-9a-fA-F]+)$"


class PageExample(NamedTuple):
    """A small file of a format, the ids in it, and which of its references write; None where it does not say."""

    content: bytes
    pages: Sequence[int]
    writes: Sequence[bool] | None = None


class PageTraceFormat(Protocol):
    """A member's module."""

    TITLE: str  # a line that says what it is
    EXAMPLE: PageExample | None = None  # for the tests of the family; a format that can be written does without
    GENERIC: bool = False  # it is only recognised where no other format fits

    def recognise(self, path: Path) -> bool:
        """True if the file has this format, judged by its first bytes."""

    @optional
    def doubt(self, path: Path) -> str:
        """Why a file that it recognises may as well be a table of other columns; nothing of a file that is beyond doubt."""
        return ""

    def references(self, path: Path) -> ReferenceBatches:
        """The file's references, in its order.

        Raises
        ------
        DamagedFileError
            Names the file, and the line or record.
        """

    @optional
    def with_options(self, options: str) -> PageTraceFormat:
        """A format that knows what its files do not say of themselves.

        Raises
        ------
        InvalidParameterError
            It takes no such options.
        """
        raise InvalidParameterError("page trace format", repr(options), "only csv takes options")

    @optional
    def write(self, batches: ReferenceBatches, path: Path) -> None:
        """Write references into a file.

        Raises
        ------
        InvalidParameterError
            It can only be read.
        """
        raise InvalidParameterError("page trace format", self.TITLE, "it can only be read; lines and parquet can be written")


PAGE_FORMATS = Family("traces.page_format", "page trace format", PageTraceFormat, renamed={"configured": "with_options"})


def load_page_format(name: str) -> PageTraceFormat:
    """A member, by name or as the path of a Python file, or as ``name:options`` (`PageFormat.with_options`)."""
    member, colon, options = name.partition(":")
    return PAGE_FORMATS.load(member).with_options(options) if colon else PAGE_FORMATS.load(name)


class Parser:
    """Reads lines with ids of pages; the kind of ids that fitted one chunk is tried first for the next.

    Whole numbers of 64 bits are themselves, and all other words are hashed to 64 bits.  A number may be negative, or unsigned up to
    2**64 - 1 (then it is taken for the number that has the same bits), or hexadecimal with 0x.  Of n distinct words two have one hash with
    a probability of about n**2 / 2**65: one in thirty million for a million.

    `column` holds the ids; of the other columns those of `numbers` hold whole numbers, and all others words.
    """

    def __init__(
        self, path: Path, column: str, columns: list[str], delimiter: str = ",", quotes: bool = False, numbers: Sequence[str] = ()
    ) -> None:
        self._path, self._column, self._delimiter, self._quotes = path, column, delimiter, quotes
        self._types = dict.fromkeys(columns, pa.string()) | {name: pa.int64() for name in numbers if name in columns}
        self._kind = 0

    def lines(self, first: int, data: bytes) -> _text.Lines:
        """The lines of a chunk, whose first has that number."""
        for kind in (self._kind, *range(len(_KINDS))):
            types = self._types | {self._column: _KINDS[kind]}
            try:
                table = _text.table(data, types, self._delimiter, [""], self._quotes)
            except pa.ArrowInvalid:
                continue
            self._kind = kind
            if pa.types.is_string(_KINDS[kind]):  # whatever is asked of words is asked but once of each
                place = table.column_names.index(self._column)
                table = table.set_column(place, self._column, table.column(place).combine_chunks().dictionary_encode())
            return _text.Lines(self._path, first, table)
        return _text.parse(self._path, first, data, types, self._delimiter, [""], self._quotes)

    def blank(self, lines: _text.Lines) -> _text.Bools:
        column = lines.table.column(self._column).combine_chunks()
        return ~_matching(column, r"\S") if pa.types.is_dictionary(column.type) else column.is_null().to_numpy(zero_copy_only=False)

    def broken_lines(self, lines: _text.Lines) -> _text.Bools:
        column = lines.table.column(self._column).combine_chunks()
        return _matching(column, r"\S\s+\S") if pa.types.is_dictionary(column.type) else np.zeros(len(column), np.bool_)

    def ids(self, lines: _text.Lines) -> Integers:
        """The ids of lines, 0 of those that are blank."""
        column = lines.table.column(self._column).combine_chunks()
        return as_ids(column.fill_null(0) if column.null_count else column)


def are_words(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def as_ids(column: pa.Array) -> Integers:
    """Ids of 64 bits, from whole numbers or words, shape (n,)."""
    if pa.types.is_dictionary(column.type):
        words = column.dictionary
        return (_hash(words) if are_words(words.type) else as_ids(words))[column.indices.to_numpy()]
    if pa.types.is_integer(column.type):
        kind = np.uint64 if pa.types.is_uint64(column.type) else np.int64
        return column.to_numpy(zero_copy_only=False).astype(kind, copy=False).view(np.int64)
    return as_ids(column.dictionary_encode())


def _hash(column: pa.Array) -> Integers:
    words = pc.utf8_trim_whitespace(column)
    texts = words.to_numpy(zero_copy_only=False)
    ids = pd.util.hash_array(texts, categorize=False).view(np.int64)
    for place in np.flatnonzero(pc.match_substring_regex(words, _NUMBER).to_numpy(zero_copy_only=False)):
        number = int(texts[place], 16 if texts[place][:2] in ("0x", "0X") else 10)
        if -(1 << 63) <= number < 1 << 64:
            ids[place] = number if number < 1 << 63 else number - (1 << 64)
    return ids


def _matching(words: pa.DictionaryArray, pattern: str) -> _text.Bools:
    return pc.match_substring_regex(words.dictionary, pattern).to_numpy(zero_copy_only=False)[words.indices.to_numpy()]
