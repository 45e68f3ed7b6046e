"""The ids of pages in a text: whole numbers of 64 bits are themselves, and all other words are hashed to 64 bits.

A number may be negative, or unsigned up to 2**64 - 1 (then it is taken for the number that has the same bits), or hexadecimal with 0x.  Of
n distinct words two have one hash with a probability of about n**2 / 2**65: one in thirty million for a million.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.request import Integers
from traces.format import _text

#: What ids are read as, one after the other, until one fits all of a chunk.
_KINDS = (pa.int64(), pa.uint64(), pa.string())
_NUMBER = r"^(-?[0-9]+|0[xX][0-9a-fA-F]+)$"


class Parser:
    """Reads chunks of lines; the kind of ids that fitted one chunk is tried first for the next.

    Parameters
    ----------
    path
        The file, for what errors say.
    column
        Which column has the ids.
    columns
        All columns of a line, in order.
    delimiter
        What separates them.
    """

    def __init__(self, path: Path, column: str, columns: list[str], delimiter: str = ",") -> None:
        self._path, self._column, self._columns, self._delimiter = path, column, columns, delimiter
        self._kind = 0

    def lines(self, first: int, data: bytes) -> _text.Lines:
        """The lines of a chunk, whose first has that number; all columns but the ids' are words."""
        for kind in (self._kind, *range(len(_KINDS))):
            types = dict.fromkeys(self._columns, pa.string()) | {self._column: _KINDS[kind]}
            try:
                table = _text.table(data, types, self._delimiter, [""])
            except pa.ArrowInvalid:
                continue
            self._kind = kind
            if pa.types.is_string(_KINDS[kind]):  # whatever is asked of words is asked but once of each
                place = self._columns.index(self._column)
                table = table.set_column(place, self._column, table.column(place).combine_chunks().dictionary_encode())
            return _text.Lines(self._path, first, table)
        return _text.parse(self._path, first, data, types, self._delimiter, [""])

    def blank(self, lines: _text.Lines) -> _text.Bools:
        column = lines.table.column(self._column).combine_chunks()
        return ~_found(column, r"\S") if pa.types.is_dictionary(column.type) else column.is_null().to_numpy(zero_copy_only=False)

    def broken(self, lines: _text.Lines) -> _text.Bools:
        column = lines.table.column(self._column).combine_chunks()
        return _found(column, r"\S\s+\S") if pa.types.is_dictionary(column.type) else np.zeros(len(column), np.bool_)

    def ids(self, lines: _text.Lines) -> Integers:
        """The ids of lines, 0 of those that are blank."""
        column = lines.table.column(self._column).combine_chunks()
        return as_ids(column.fill_null(0) if column.null_count else column)


def as_ids(column: pa.Array) -> Integers:
    """Ids of 64 bits, from whole numbers or words, shape (n,)."""
    if pa.types.is_dictionary(column.type):
        words = column.dictionary
        return (_hashed(words) if pa.types.is_string(words.type) else as_ids(words))[column.indices.to_numpy()]
    if pa.types.is_integer(column.type):
        kind = np.uint64 if pa.types.is_uint64(column.type) else np.int64
        return column.to_numpy(zero_copy_only=False).astype(kind, copy=False).view(np.int64)
    return as_ids(column.dictionary_encode())


def _hashed(column: pa.Array) -> Integers:
    words = pc.utf8_trim_whitespace(column)
    texts = words.to_numpy(zero_copy_only=False)
    ids = pd.util.hash_array(texts, categorize=False).view(np.int64)
    for place in np.flatnonzero(pc.match_substring_regex(words, _NUMBER).to_numpy(zero_copy_only=False)):
        number = int(texts[place], 16 if texts[place][:2] in ("0x", "0X") else 10)
        if -(1 << 63) <= number < 1 << 64:
            ids[place] = number if number < 1 << 63 else number - (1 << 64)
    return ids


def _found(words: pa.DictionaryArray, pattern: str) -> _text.Bools:
    return pc.match_substring_regex(words.dictionary, pattern).to_numpy(zero_copy_only=False)[words.indices.to_numpy()]
