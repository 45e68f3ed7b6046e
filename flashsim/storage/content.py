"""Content of pages in the elided form: the columns of tuples from which the others follow, such as row ids, without padding.

Pages of a run keep it by file (`ColumnContent`), those of a buffer pool by frame (`FrameContent`).  Pages of a file of tokens hold which
page each is, and the log sequence number of its last change.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from flashsim.core.request import Integers
from flashsim.storage.heap_file import File, HeapFile, TupleFile, ranges
from flashsim.storage.layout import PAGE_FORMAT, Layout
from flashsim.storage.rows import Columns, FixedRows, RowFormat, Tuples


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

    def write(self, numbers: Integers, tuples: Tuples) -> None:
        """Put tuples on pages; those from `pages` on are new."""
        used, more = self._used + len(tuples), int(numbers.max(initial=-1)) + 1 - self.pages
        for name, values in self._values.items():
            self._values[name] = values = _grown(values, used)
            values[self._used : used] = tuples.columns[name]
        if more < len(numbers):
            self._in_order = False
        if more > 0:
            self.pages += more
            self._first, self._sizes = _grown(self._first, self.pages + 1), _grown(self._sizes, self.pages)
        self._first[numbers] = self._used + tuples.pages[:-1]
        self._sizes[numbers] = np.diff(tuples.pages)
        self._first[self.pages] = self._used = used
        if not self._in_order and used > self._bound:
            self._compact()

    def _compact(self) -> None:
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
        return self._row_format.restored({name: values[which] for name, values in self._values.items()})


class ColumnContent:
    """The content of all files of a run; one page costs a few bytes a tuple, whatever the tuples' width."""

    def __init__(self) -> None:
        self._written: dict[File, _Pages] = {}

    def read(self, file: File, starts: Integers, counts: Integers) -> Tuples:
        """The tuples of some extents, in order, as they were last written, or loaded."""
        content = self._content(file)
        ends = starts + counts
        if len(starts) == 1 or (len(starts) and np.array_equal(starts[1:], ends[:-1])):  # one run of pages
            return content.run(int(starts[0]), int(ends[-1]))
        return content.read(ranges(starts, counts))

    def write(self, file: File, starts: Integers, counts: Integers, tuples: Tuples) -> None:
        """Put tuples on pages, new ones at the end of a temporary file or ones that there are."""
        content = self._written.get(file)
        if content is None:
            before, content = self._content(file), _Pages(file.layout.row_format)
            content.write(np.arange(before.pages), before.run(0, before.pages))
            self._written[file] = content
        content.write(ranges(starts, counts), tuples)

    def drop(self, file: File) -> None:
        self._written.pop(file, None)

    def _content(self, file: File) -> _Pages | HeapFile:
        return self._written.get(file) or (file if isinstance(file, HeapFile) else _Pages(file.layout.row_format))


def _grown(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
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
    """Tuples by frame, whatever file a page is of: number after number, tuple after tuple, in a row a frame.

    Parameters
    ----------
    frames
        How many there are.
    """

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


def token_file(name: str, pages: int, page_size: int, page_format: str = PAGE_FORMAT) -> TupleFile:
    """A base file of so many pages, none of which was ever changed.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such page format.
    InvalidParameterError
        It has no pages of that size.
    """
    tokens = Tuples({"page": np.arange(pages), "lsn": np.zeros(pages, np.int64)})
    layout = Layout(_TOKEN, page_size, page_format)
    return TupleFile(name, layout, temporary=False, pages=pages, first_rows=np.arange(pages + 1), loaded=tokens)


def holds_tokens(file: File) -> bool:
    return file.layout.row_format is _TOKEN


def tokens(pages: Integers, lsns: Integers) -> Tuples:
    return Tuples({"page": pages, "lsn": lsns}, np.arange(len(pages) + 1))
