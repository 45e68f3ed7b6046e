"""Content of pages in the elided form: the columns of tuples from which the others follow, such as row ids, without padding.

Pages of a run keep it by file (`ColumnContent`), those of a buffer pool by frame (`FrameContent`).  Pages of a file of tokens hold which
page each is, and the log sequence number of its last change.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core.request import Integers
from flashsim.storage.heap_file import File, HeapFile, TupleFile, ranges
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Columns, FixedRows, RowFormat, Tuples

#: Tuples of a file that wait at most until they are put on its pages.
_WAITING = 2048
#: Pages of several files that wait.
_TOGETHER = 1 << 15


class _Pages:
    """The pages of one file: the columns of tuples in memory, in the order written, and the place of each page's, in arrays that double.

    A page that is written again has its tuples behind all others; what it held before is dropped once that makes up half.
    """

    def __init__(self, row_format: RowFormat) -> None:
        self._row_format = row_format
        self._values: dict[str, npt.NDArray[Any]] = {name: np.empty(1024, kind) for name, kind in row_format.base_columns.items()}
        self._first = np.zeros(64, np.int64)  # and behind the last page, where the next one's go
        self._sizes = np.zeros(64, np.int64)
        self._in_order = True  # pages lie one after the other
        self._used, self._bound = 0, 1024
        self.pages = 0
        self._waiting: list[tuple[Any, Any, Integers, list[npt.NDArray[Any]]]] = []
        self._tuples_waiting = 0

    def write(self, starts: Integers, counts: Integers, tuples: Tuples) -> None:
        """Put tuples on the pages of some extents, new ones at the end; copies wait until they are worth a call for each column."""
        if not self._waiting and len(tuples) >= _WAITING:
            self._put(ranges(starts, counts), tuples)
            return
        columns = [tuples.columns[name].astype(values.dtype) for name, values in self._values.items()]
        extent = (starts.item(), counts.item()) if len(starts) == 1 else (starts.copy(), counts.copy())
        self._waiting.append((*extent, tuples.pages.copy(), columns))
        self._tuples_waiting += len(tuples)
        if self._tuples_waiting >= _WAITING:
            self.settle()

    def settle(self) -> None:
        """Put all copies that wait on their pages."""
        if not self._waiting:
            return
        starts, counts, boundaries, columns = zip(*self._waiting, strict=True)
        self._waiting, self._tuples_waiting = [], 0
        begins = np.cumsum([0, *(pages[-1] for pages in boundaries)])
        pages = np.concatenate([*(pages[:-1] + begin for pages, begin in zip(boundaries, begins, strict=False)), begins[-1:]])
        named = {name: np.concatenate(parts) for name, parts in zip(self._values, zip(*columns, strict=True), strict=True)}
        self._put(ranges(np.hstack(starts), np.hstack(counts)), Tuples(named, pages))

    def _put(self, numbers: Integers, tuples: Tuples) -> None:
        used, more = self._used + len(tuples), int(numbers.max(initial=-1)) + 1 - self.pages
        for name, values in self._values.items():
            self._values[name] = values = _grow(values, used)
            values[self._used : used] = tuples.columns[name]
        if more < len(numbers):
            self._in_order = False
        if more > 0:
            self.pages += more
            self._first, self._sizes = _grow(self._first, self.pages + 1), _grow(self._sizes, self.pages)
        self._first[numbers] = self._used + tuples.pages[:-1]
        self._sizes[numbers] = np.diff(tuples.pages)
        self._first[self.pages] = self._used = used
        if not self._in_order and used > self._bound:
            live = self.read(np.arange(self.pages))
            for name, values in self._values.items():
                values[: len(live)] = live.columns[name]
            self._first[: self.pages + 1] = live.pages
            self._in_order, self._used, self._bound = True, len(live), 2 * len(live)

    def run(self, begin: int, end: int) -> Tuples:
        """The tuples of pages `begin` to `end`, without the last."""
        if not self._in_order:
            return self.read(np.arange(begin, end))
        first, last = int(self._first[begin]), int(self._first[end])
        return Tuples(self._columns(slice(first, last)), self._first[begin : end + 1] - first)

    def read(self, numbers: Integers) -> Tuples:
        sizes = self._sizes[numbers]
        return Tuples(self._columns(ranges(self._first[numbers], sizes)), np.concatenate([[0], np.cumsum(sizes)]))

    def _columns(self, which: Integers | slice) -> Columns:
        return self._row_format.restore_columns({name: values[which] for name, values in self._values.items()})


class _NewFilePages(NamedTuple):
    """New pages of several files: the first page of each, their number, and of all tuples their base columns and the tuples a page."""

    files: Sequence[File]
    firsts: Integers
    pages: Integers
    counts: Integers
    columns: dict[str, npt.NDArray[Any]]
    sizes: Integers


class ColumnContent:
    """The content of all files of a run; one page costs a few bytes a tuple, whatever the tuples' width."""

    def __init__(self) -> None:
        self._written: dict[File, _Pages] = {}
        self._together: list[_NewFilePages] = []
        self._pages_together = 0

    def read(self, file: File, starts: Integers, counts: Integers) -> Tuples:
        """The tuples of some extents, in order, as they were last written, or loaded."""
        content = self._content(file)
        ends = starts + counts
        if len(starts) == 1 or (len(starts) and np.array_equal(starts[1:], ends[:-1])):  # one run of pages
            return content.run(int(starts[0]), int(ends[-1]))
        return content.read(ranges(starts, counts))

    def write(self, file: File, starts: Integers, counts: Integers, tuples: Tuples) -> None:
        """Put tuples on pages, new ones at the end of a temporary file or ones that there are."""
        self._spread()
        self._put(file, starts, counts, tuples)

    def write_each(self, files: Sequence[File], firsts: Integers, pages: Integers, counts: Integers, tuples: Tuples) -> None:
        """Put tuples on new pages of several files of one layout, shape (files,) each; copies wait until they are many."""
        kinds = files[0].layout.row_format.base_columns
        columns = {name: tuples.columns[name].astype(kind) for name, kind in kinds.items()}
        new = _NewFilePages(files, firsts.copy(), pages.copy(), counts.copy(), columns, np.diff(tuples.pages))
        if self._together and self._together[-1].files[0].layout != files[0].layout:
            self._spread()
        self._together.append(new)
        self._pages_together += len(new.sizes)
        if self._pages_together >= _TOGETHER:
            self._spread()

    def _spread(self) -> None:
        if not self._together:
            return
        waiting, self._together, self._pages_together = self._together, [], 0
        numbers: dict[File, int] = {}
        of = np.array([numbers.setdefault(file, len(numbers)) for each in waiting for file in each.files])
        firsts, pages, counts, sizes = (
            np.concatenate([getattr(each, name) for each in waiting]) for name in ("firsts", "pages", "counts", "sizes")
        )
        order = np.argsort(of, kind="stable")
        which = ranges((np.cumsum(counts) - counts)[order], counts[order])
        columns = {name: np.concatenate([each.columns[name] for each in waiting])[which] for name in waiting[0].columns}
        sizes = sizes[ranges((np.cumsum(pages) - pages)[order], pages[order])]
        firsts, pages, ends = firsts[order], pages[order], np.concatenate([[0], np.cumsum(sizes)])
        page_ends, bounds = np.concatenate([[0], np.cumsum(pages)]), np.searchsorted(of[order], np.arange(len(numbers) + 1)).tolist()
        for file, begin, end in zip(numbers, bounds, bounds[1:], strict=False):
            boundaries = ends[page_ends[begin] : page_ends[end] + 1]
            own = {name: column[boundaries[0] : boundaries[-1]] for name, column in columns.items()}
            self._put(file, firsts[begin:end], pages[begin:end], Tuples(own, boundaries - boundaries[0]))

    def _put(self, file: File, starts: Integers, counts: Integers, tuples: Tuples) -> None:
        content = self._written.get(file)
        if content is None:
            before, content = self._content(file), _Pages(file.layout.row_format)
            content.write(np.zeros(1, np.int64), np.array([before.pages]), before.run(0, before.pages))
            self._written[file] = content
        content.write(starts, counts, tuples)

    def drop(self, file: File) -> None:
        self._spread()
        self._written.pop(file, None)

    def _content(self, file: File) -> _Pages | HeapFile:
        if file.temporary:
            self._spread()
        if written := self._written.get(file):
            written.settle()
            return written
        return file if isinstance(file, HeapFile) else _Pages(file.layout.row_format)


def _grow(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """An array of at least that size, twice as long as before where it must grow."""
    room = len(values)
    while room < size:
        room *= 2
    if room == len(values):
        return values
    grown = np.empty(room, values.dtype)
    grown[: len(values)] = values
    return grown


class FrameContent:
    """Tuples by frame, whatever file a page is of: number after number, tuple after tuple, in a row a frame."""

    def __init__(self, frames: int) -> None:
        self._numbers = np.empty((frames, 0), np.int64)
        self._counts = np.zeros(frames, np.int64)

    def put(self, frames: Integers, tuples: Tuples, columns: tuple[str, ...]) -> None:
        """Let pages lie in frames, each in another, shape (n,)."""
        counts = np.diff(tuples.pages)
        wider = int(counts.max(initial=0)) * len(columns) - self._numbers.shape[1]
        if wider > 0:
            self._numbers = np.pad(self._numbers, ((0, 0), (0, wider)))
        self._counts[frames] = counts
        at, places = np.repeat(frames, counts), ranges(np.zeros_like(counts), counts) * len(columns)
        for place, name in enumerate(columns):
            self._numbers[at, places + place] = tuples.columns[name]

    def get(self, frames: Integers, columns: tuple[str, ...]) -> Tuples:
        """The tuples of the pages in some frames, shape (n,)."""
        counts = self._counts[frames]
        at, places = np.repeat(frames, counts), ranges(np.zeros_like(counts), counts) * len(columns)
        numbers = {name: self._numbers[at, places + place] for place, name in enumerate(columns)}
        return Tuples(numbers, np.concatenate([[0], np.cumsum(counts)]))


_TOKEN = FixedRows("token", {"page": 8, "lsn": 8})


def token_file(name: str, pages: int, page_size: int) -> TupleFile:
    """A base file of `pages` pages, none of which was ever changed; pages of a size that there is not are refused."""
    tokens = Tuples({"page": np.arange(pages), "lsn": np.zeros(pages, np.int64)})
    return TupleFile(name, Layout(_TOKEN, page_size), temporary=False, pages=pages, first_rows=np.arange(pages + 1), loaded=tokens)


def holds_tokens(file: File) -> bool:
    return file.layout.row_format is _TOKEN


def tokens(pages: Integers, lsns: Integers) -> Tuples:
    return Tuples({"page": pages, "lsn": lsns}, np.arange(len(pages) + 1))
