"""A join index in the order of one of its row ids: in memory as far as that goes, otherwise in sorted runs that are merged."""

import math

import numpy as np

from algorithms.results import BATCH
from algorithms.sorting import Consumer, merge, merge_some
from algorithms.temporaries import Output, drop
from flashsim.execution.requests import Algorithm, Cpu, Work
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples, keyed


class IndexSort:
    """Takes entries in any order and gives them back in the order of their keys, which are row ids of one relation.

    Parameters
    ----------
    folder
        What the names of its runs begin with.
    layout
        Of the runs: their tuples have a key and a row.
    pages
        Memory for entries.
    """

    def __init__(self, folder: str, layout: Layout, pages: int, *, page_io: bool) -> None:
        self._folder, self._layout, self._pages, self._page_io = folder, layout, pages, page_io
        cell = int(layout.cell_sizes(keyed(np.zeros(1, np.int64), np.zeros(1, np.int64)))[0])
        self._capacity = pages * (layout.room // cell)
        self._held: list[Tuples] = []
        self._count = 0
        self.runs: list[File] = []

    def append(self, entries: Tuples) -> Algorithm:
        """Take some entries; what memory does not hold is written as sorted runs."""
        self._held.append(entries)
        self._count += len(entries)
        if self._count > self._capacity:
            held = self._taken()
            full = len(held) // self._capacity * self._capacity
            for begin in range(0, full, self._capacity):
                yield from self._write(held.chosen(slice(begin, begin + self._capacity)))
            self._held, self._count = [held.chosen(slice(full, None))], len(held) - full

    def settle(self, memory: int, fan_in: int, held: int | None = None) -> Algorithm:
        """After the last entry: write what is held if there are runs, and merge these, in so many pages, until there are few enough.

        Parameters
        ----------
        held
            Write what takes more pages than this, too.
        """
        if self._count and (self.runs or (held is not None and self.pages_held > held)):
            yield from self._write(self._taken())
        while len(self.runs) > fan_in:
            yield from merge_some(self.runs, len(self.runs) - fan_in, self._folder, memory, page_io=self._page_io)

    def merged(self, memory: int, consume: Consumer) -> Algorithm:
        """Give all entries in order, after `settle`; its runs share so many pages."""
        if not self.runs:
            yield Cpu({Work.COMPARE: _comparisons(self._count)})
            held = _sorted(self._taken())
            for begin in range(0, len(held), BATCH):
                part = held.chosen(slice(begin, begin + BATCH))
                yield from consume(part, np.zeros(len(part), np.int64))
            return
        yield from merge(self.runs, max(1, memory // len(self.runs)), consume, page_io=self._page_io)
        for run in self.runs:
            yield from drop(run)

    @property
    def pages_held(self) -> int:
        """Pages of memory that entries take after `settle`: none once they are in runs."""
        return 0 if self.runs else math.ceil(self._count * self._pages / self._capacity)

    def _taken(self) -> Tuples:
        held, self._held, self._count = self._held, [], 0
        return keyed(*(np.concatenate([np.zeros(0, np.int64), *(part.columns[name] for part in held)]) for name in ("key", "row")))

    def _write(self, tuples: Tuples) -> Algorithm:
        yield Cpu({Work.COMPARE: _comparisons(len(tuples))})
        self.runs.append(File(f"{self._folder}/run-{len(self.runs):03d}", self._layout, expected_pages=self._pages))
        output = Output(self.runs[-1:], self._pages, page_io=self._page_io)
        yield from output.append(_sorted(tuples), np.zeros(len(tuples), np.int64))
        yield from output.finish()


def _sorted(tuples: Tuples) -> Tuples:
    return tuples.chosen(np.argsort(tuples.keys, kind="stable"))


def _comparisons(count: int) -> int:
    """What sorting n entries takes: n log2 n."""
    return round(count * math.log2(max(1, count)))
