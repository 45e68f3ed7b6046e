"""The join index: which row of R joins which row of S, as a stream in the order in which a join finds them, or sorted by one of the rows.

Source: Valduriez, "Join indices", ACM TODS 12(2), 1987; Li et al., "DigestJoin" (MDM 2009), section II: the digest join results.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from algorithms.files import BATCH, cell_size, drop, gather, width_of, write_out
from algorithms.sorting.runs import Consumer, merge, merge_some
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Answer, Cpu, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, Tuples


@dataclass(frozen=True)
class Entries:
    """Some entries of a join index: row ids of R and of S that join, shape (n,) each."""

    r_rows: Integers
    s_rows: Integers

    def __len__(self) -> int:
        return len(self.r_rows)


#: Generator that returns the next entries, or None at the end, and yields the requests for them.
EntryStream = Generator[Request, Answer, Entries | None]


class JoinIndex(Protocol):
    """A join index as a stream; it may be larger than memory."""

    def next(self) -> EntryStream:
        """``entries = yield from index.next()``: the next entries, or None at the end.

        What that takes is asked for meanwhile: pages of a stored index, or the join that makes the entries.
        """


class GivenIndex:
    """A join index that is in memory, as row ids, shape (n,) each, of which `batch` entries are given at a time."""

    def __init__(self, r_rows: Integers, s_rows: Integers, batch: int = BATCH) -> None:
        self._entries, self._batch, self._begin = Entries(r_rows, s_rows), batch, 0

    def next(self) -> EntryStream:
        """The next entries, or None at the end; nothing is asked for."""
        yield from ()
        begin, self._begin = self._begin, self._begin + self._batch
        if begin >= len(self._entries):
            return None
        return Entries(self._entries.r_rows[begin : self._begin], self._entries.s_rows[begin : self._begin])


def join_index_rows(r_tuples: int, s_tuples: int) -> FixedRows:
    """The row format of a stored join index of two relations of so many tuples.

    Examples
    --------
    >>> join_index_rows(150_000, 1_500_000).widths
    {'r': 4, 's': 4}
    """
    return FixedRows("join index", {"r": width_of(r_tuples), "s": width_of(s_tuples)})


class IndexSort:
    """Takes entries in any order and gives them back in the order of their keys, which are row ids of one relation.

    Its runs, in a folder, have tuples of a key and a row; `pages` is memory for entries.
    """

    def __init__(self, folder: str, layout: Layout, pages: int, *, page_io: bool) -> None:
        self._folder, self._layout, self._pages, self._page_io = folder, layout, pages, page_io
        self._capacity = pages * (layout.room // cell_size(layout))
        self._buffer, self._count = list[Tuples](), 0
        self.runs: list[File] = []

    def append(self, entries: Tuples) -> Algorithm:
        """Take some entries; what memory does not hold is written as sorted runs."""
        self._buffer.append(entries)
        self._count += len(entries)
        if self._count > self._capacity:
            tuples = self._take_all()
            full = len(tuples) // self._capacity * self._capacity
            for begin in range(0, full, self._capacity):
                yield from self._write(tuples.select(slice(begin, begin + self._capacity)))
            self._buffer, self._count = [tuples.select(slice(full, None))], len(tuples) - full

    def settle(self, memory: int, fan_in: int, most: int | None = None) -> Algorithm:
        """After the last entry: write entries in memory if there are runs, and merge runs, in so many pages, until there are few enough.

        What takes more than `most` pages is written, too.
        """
        if self._count and (self.runs or (most is not None and self.memory_pages > most)):
            yield from self._write(self._take_all())
        while len(self.runs) > fan_in:
            yield from merge_some(self.runs, len(self.runs) - fan_in, self._folder, memory, page_io=self._page_io)

    def merge(self, memory: int, consume: Consumer) -> Algorithm:
        """Give all entries in order, after `settle`; its runs share so many pages."""
        if not self.runs:
            tuples = yield from _sort(self._take_all())
            for begin in range(0, len(tuples), BATCH):
                part = tuples.select(slice(begin, begin + BATCH))
                yield from consume(part, np.zeros(len(part), np.int64))
            return
        yield from merge(self.runs, max(1, memory // len(self.runs)), consume, page_io=self._page_io)
        for run in self.runs:
            yield from drop(run)

    @property
    def memory_pages(self) -> int:
        """Pages of memory that entries take after `settle`: none once they are in runs."""
        return 0 if self.runs else math.ceil(self._count * self._pages / self._capacity)

    def _take_all(self) -> Tuples:
        tuples, self._buffer, self._count = self._buffer, [], 0
        return gather(tuples)

    def _write(self, tuples: Tuples) -> Algorithm:
        self.runs.append(File(f"{self._folder}/run-{len(self.runs):03d}", self._layout, expected_pages=self._pages))
        yield from write_out(self.runs[-1], (yield from _sort(tuples)), self._pages, page_io=self._page_io)


def _sort(tuples: Tuples) -> Generator[Request, Answer, Tuples]:
    """Sort entries, which takes n log2 n comparisons."""
    yield Cpu({Work.COMPARE: round(len(tuples) * math.log2(max(1, len(tuples))))})
    return tuples.select(np.argsort(tuples.keys, kind="stable"))
