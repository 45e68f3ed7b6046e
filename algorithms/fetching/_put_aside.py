"""Temporary files of strategies: fetching instructions, and rows that were fetched before their partners are."""

import numpy as np

from algorithms.files import BATCH, Output, cell_size, drop, read_block, spans, temporary_files, width_of
from algorithms.late_fetch.page_cache import PageCache
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Cpu, Emit, Work
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, Tuples, key_tuples

#: Pages with which sorted runs can be merged beside two frames: two runs and the output.  With fewer, strategies fetch in order.
LEAST_MEMORY = 5


def instructions(file: HeapFile, keys: int, rows: int) -> Layout:
    """Layout of instructions on pages such as a file has: a key and a row id, below these bounds."""
    return Layout(
        FixedRows("fetching instruction", {"key": width_of(keys), "row": width_of(rows)}), file.page_size, file.layout.page_format
    )


def fetched_rows(file: HeapFile, keys: int | None = None) -> Layout:
    """Layout of fetched rows of a file: a key below this bound, if any, and the columns, which take the size of an average row."""
    rows = max(1, int(file.first_rows[-1]))
    width = min(file.layout.row_format.largest_record(), -(-file.page_size * file.pages // rows))
    widths = ({} if keys is None else {"key": width_of(keys)}) | {"row": width_of(rows)}
    return Layout(FixedRows(f"fetched rows of {file.name}", widths, width), file.page_size, file.layout.page_format)


def cells(layout: Layout) -> int:
    return layout.room // cell_size(layout)


class DividedRows:
    """Fetched rows of one relation, written with the rows that they join to ranges of the other one's pages, which are fetched later.

    The rows of S are fetched first with `of_s`.  `of_pages` has the entries of each page of the other relation, `room` is pages of memory
    while they are joined, and `most` is ranges, at least 1.
    """

    def __init__(self, cache: PageCache, folder: str, of_pages: Integers, room: int, most: int, *, of_s: bool, page_io: bool) -> None:
        self._cache, self._room, self._of_s, self._page_io = cache, room, of_s, page_io
        first, other = (cache.s, cache.r) if of_s else (cache.r, cache.s)
        row_layout = fetched_rows(first, other.tuples)
        self._other_rows = other.first_rows
        self._numbers, ranges = _ranges(of_pages, room * cells(row_layout), most)
        self._files = temporary_files(folder, "range", ranges, row_layout, 0)
        self._output = Output(self._files, 1, page_io=page_io)
        self.pages = -(-int(of_pages.sum()) // cells(row_layout))

    @property
    def rounds(self) -> int:
        """Most fetches of each page of the other relation."""
        return max(1, -(-self.pages // (self._room * len(self._files))))

    def take(self, entries: Tuples, _: Integers) -> Algorithm:
        """Fetch the rows that are the entries' keys, which ascend, and write them."""
        rows = yield from self._cache.collect(entries.keys, of_s=self._of_s)
        pages = np.searchsorted(self._other_rows, entries.rows, side="right") - 1
        yield from self._output.append(key_tuples(entries.rows, rows), self._numbers[pages])

    def join(self) -> Algorithm:
        """Sort each range, or in parts what does not fit, fetch its pages and join."""
        yield from self._output.finish()
        for file in self._files:
            for first, pages in spans(file.pages, self._room):
                tuples = yield from read_block(file, first, pages, self._page_io)
                rows = tuples.select(np.argsort(tuples.keys, kind="stable"))
                yield Cpu({Work.COMPARE: len(rows) * len(rows).bit_length()})
                for begin in range(0, len(rows), BATCH):
                    part = rows.select(slice(begin, begin + BATCH))
                    partners = yield from self._cache.collect(part.keys, of_s=not self._of_s)
                    yield Emit(*((partners, part.rows) if self._of_s else (part.rows, partners)))
                    yield Cpu({Work.EMIT: len(part)})
            yield from drop(file)


def _ranges(of_pages: Integers, capacity: int, most: int) -> tuple[Integers, int]:
    """The range that each page of S belongs to, and how many there are: none of more entries than fit, unless a page alone has more.

    If more than `most` were needed, all are of about as many entries.
    """
    sums = np.cumsum(of_pages)
    ends = [0]
    while ends[-1] < len(sums) and len(ends) <= most + 1:
        before = sums[ends[-1]] - of_pages[ends[-1]]
        ends.append(max(ends[-1] + 1, int(np.searchsorted(sums, before + capacity, side="right"))))
    if len(ends) > most + 1:
        return (sums - of_pages) * most // sums[-1], most
    return np.searchsorted(ends[1:], np.arange(len(sums)), side="right"), max(1, len(ends) - 1)
