"""What pages hold, in the elided form: row ids a page; keys follow from the relation, padding from the row id."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Integers
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.relation import Tuples


class _Pages:
    """The pages of one temporary file: row ids in order and the first tuple of each page, in arrays that double."""

    def __init__(self, rows_fit_32_bits: bool) -> None:
        self.rows: npt.NDArray[Any] = np.empty(1024, np.int32 if rows_fit_32_bits else np.int64)
        self.first = np.zeros(64, np.int64)
        self.pages = 0

    def append(self, tuples: Tuples) -> None:
        have, more = int(self.first[self.pages]), len(tuples)
        while have + more > len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        count = len(tuples.pages) - 1
        while self.pages + count + 1 > len(self.first):
            self.first = np.concatenate([self.first, np.empty_like(self.first)])
        self.rows[have : have + more] = tuples.rows
        self.first[self.pages + 1 : self.pages + count + 1] = have + tuples.pages[1:]
        self.pages += count


class ColumnContent:
    """The content of all files of a run; one page costs a few bytes a tuple, whatever the tuples' width."""

    def __init__(self) -> None:
        self._temporary: dict[File, _Pages] = {}

    def read(self, file: File, starts: Integers, counts: Integers) -> Tuples:
        """The tuples of some extents, in order.

        Raises
        ------
        InvalidParameterError
            An extent that ends behind the file.
        """
        if isinstance(file, HeapFile):
            first, rows, pages = file.first_rows, None, file.pages
        else:
            held = self._temporary[file]
            first, rows, pages = held.first, held.rows, held.pages
        ends = starts + counts
        if len(starts) and (starts.min() < 0 or ends.max() > pages):
            raise InvalidParameterError("read", f"pages up to {int(ends.max())} of {file.name}", f"it has {pages}")
        if len(starts) == 0:
            return Tuples(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64))
        if np.array_equal(starts[1:], ends[:-1]):  # one run of pages
            begin, end = int(first[starts[0]]), int(first[ends[-1]])
            boundaries = first[starts[0] : ends[-1] + 1] - begin
            chosen = np.arange(begin, end) if rows is None else rows[begin:end].astype(np.int64)
            keys = file.relation.keys(slice(begin, end)) if rows is None else file.relation.keys(chosen)
            return Tuples(keys, chosen, boundaries)
        numbers = _ranges(starts, counts)
        sizes = first[numbers + 1] - first[numbers]
        positions = _ranges(first[numbers], sizes)
        chosen = positions if rows is None else rows[positions].astype(np.int64)
        return Tuples(file.relation.keys(chosen), chosen, np.concatenate([[0], np.cumsum(sizes)]))

    def append(self, file: File, tuples: Tuples) -> None:
        """Put the tuples of new pages at the end of a temporary file."""
        if file not in self._temporary:
            self._temporary[file] = _Pages(len(file.relation) <= np.iinfo(np.int32).max)
        self._temporary[file].append(tuples)

    def drop(self, file: File) -> None:
        """Forget a temporary file."""
        self._temporary.pop(file, None)


def _ranges(starts: Integers, counts: Integers) -> Integers:
    """``starts[i] .. starts[i] + counts[i] - 1`` for every i, one after the other."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
