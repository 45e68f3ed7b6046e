"""Files as joins use them: read in I/O blocks, by one strand of control or by several, and written through output buffers; emitted rows.

Several strands overlap CPU work with input; an algorithm of one's own may begin with such a scan.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace

import numpy as np

from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.execution.requests import (
    Algorithm,
    Blocks,
    Cpu,
    Drop,
    Emit,
    NewPages,
    Read,
    Request,
    Series,
    Spawn,
    Strand,
    Wait,
    Work,
    Write,
)
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples, key_tuples

#: Most result rows that are emitted at once, and most tuples that go from one kernel to the next.
BATCH = 1 << 16
DONE, GROW = -1, -2  #: Results of `place` besides the number of a full buffer.
#: Tuples from which on so many buffers become full that one request for them is less work.
_SERIES = 256
TUPLES, PAGES, LEFT = range(3)  #: Columns of an output buffer's state.
Handler = Callable[[Tuples], Algorithm]  #: Function that handles the tuples of a block.


def cell_size(layout: Layout) -> int:
    """Bytes of a page's room that a tuple takes where all take as many."""
    one = np.zeros(1, np.int64)
    return int(layout.cell_sizes(Tuples(dict.fromkeys(layout.row_format.columns, one)))[0])


def width_of(count: int) -> int:
    """Bytes of a number below a count: 4 or 8."""
    return 4 if count <= 1 << 31 else 8


def gather(parts: Sequence[Tuples]) -> Tuples:
    """Tuples of keys and row ids in memory, part after part."""
    none = np.zeros(0, np.int64)
    return (
        parts[0]
        if len(parts) == 1
        else key_tuples(*(np.concatenate([none, *(part.columns[name] for part in parts)]) for name in ("key", "row")))
    )


def extents(first: int, pages: int, page_io: bool) -> tuple[Integers, Integers]:
    """Starts and counts of the extents that cover some pages: all of them in one, or each by itself.

    >>> extents(4, 3, page_io=False)
    (array([4]), array([3]))
    >>> extents(4, 3, page_io=True)
    (array([4, 5, 6]), array([1, 1, 1]))
    """
    if page_io:
        return np.arange(first, first + pages), np.ones(pages, np.int64)
    return np.array([first]), np.array([pages])


def spans(pages: int, block: int) -> Iterator[tuple[int, int]]:
    """First page and number of pages of each I/O block of a file; the last may be shorter.

    >>> list(spans(5, 2))
    [(0, 2), (2, 2), (4, 1)]
    """
    for first in range(0, pages, block):
        yield first, min(block, pages - first)


def read_block(file: File, first: int, pages: int, page_io: bool) -> Generator[Request, Tuples | None, Tuples]:
    """Read pages; returns the tuples on them that can join.

    NULL keys are dropped right after a base relation is read, so temporary files hold none.
    """
    tuples = yield Read(file, *extents(first, pages, page_io))
    assert tuples is not None
    yield Cpu({Work.READ_TUPLE: len(tuples)})
    return tuples if file.temporary else tuples.joinable()


def pairs(r_rows: Integers, s_rows: Integers) -> Algorithm:
    """Emit rows that meet, shape (n,) each."""
    for begin in range(0, len(r_rows), BATCH):
        yield Emit(r_rows[begin : begin + BATCH], s_rows[begin : begin + BATCH])
    yield Cpu({Work.EMIT: len(r_rows)})


def cross(r_rows: Integers, s_rows: Integers) -> Algorithm:
    total = len(r_rows) * len(s_rows)
    for begin in range(0, total, BATCH):
        pairs = np.arange(begin, min(begin + BATCH, total))
        yield Emit(r_rows[pairs // len(s_rows)], s_rows[pairs % len(s_rows)])
    yield Cpu({Work.EMIT: total})


def temporary_files(folder: str, kind: str, count: int, layout: Layout, expected_pages: int) -> list[File]:
    """Numbered temporary files, not yet written.

    >>> [file.name for file in temporary_files("grace-hash/orders", "bucket", 11, None, 9)][9:]
    ['grace-hash/orders/bucket-09', 'grace-hash/orders/bucket-10']
    """
    width = max(2, len(str(count - 1)))
    return [File(f"{folder}/{kind}-{number:0{width}}", layout, expected_pages=expected_pages) for number in range(count)]


def folders(algorithm: str, r: File, s: File) -> tuple[str, str]:
    """Prefixes of the names of temporary files of R and of S; a relation may be joined with itself.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> folders("grace-hash", SimpleNamespace(name="staff"), SimpleNamespace(name="staff"))
    ('grace-hash/staff-r', 'grace-hash/staff-s')
    """
    sides = ("-r", "-s") if r.name == s.name else ("", "")
    return f"{algorithm}/{r.name}{sides[0]}", f"{algorithm}/{s.name}{sides[1]}"


def drop(file: File) -> Algorithm:
    """Drop a file if it is a temporary one that was ever written."""
    if file.temporary and file.pages:
        yield Drop(file)


class Output:
    """One output buffer for each of some temporary files of one layout.

    A page takes tuples until the next one does not fit; a buffer is written when the next tuple would need a page more than it has.

    `files`: where each buffer goes; `pages`: how long each buffer is; `in_series`: writes of the buffers that become full by one `append`
    are one `Series`.
    """

    def __init__(self, files: Sequence[File], pages: int, *, page_io: bool, in_series: bool = False) -> None:
        self.files, self._page_io, self._in_series, self._layout = files, page_io, in_series, files[0].layout
        self._names = self._layout.row_format.columns
        self._buffers = np.empty((len(self._names), len(files), 256), np.int64)  # the columns of each buffer's tuples
        self._first = np.zeros((len(files), pages + 1), np.int64)  # first tuple of each page
        self._state = np.zeros((len(files), 3), np.int64)

    @property
    def pages_in_use(self) -> list[int]:
        """Pages that hold tuples, by buffer."""
        pages: list[int] = self._state[:, PAGES].tolist()
        return pages

    def append(self, tuples: Tuples, buffers: Integers | None = None) -> Algorithm:
        """Copy tuples to the buffers of the given numbers, shape (n,), or to the first without them; write those that become full."""
        buffers = np.zeros(len(tuples), np.int64) if buffers is None else buffers
        (columns, sizes), room = self._parts(tuples), self._layout.room
        if self._in_series and len(tuples) >= _SERIES:
            pages, _ = self._put_and_move(columns, sizes, buffers)
            if pages is not None:
                yield Series(pages)
            yield Cpu({Work.WRITE_TUPLE: len(sizes)})
            return
        position = np.zeros(1, np.int64)
        while (full := place(columns, sizes, buffers, position, room, self._buffers, self._first, self._state)) != DONE:
            if full == GROW:
                self._grow()
            else:
                yield self._when_full(full)
        yield Cpu({Work.WRITE_TUPLE: len(tuples)})

    def append_blocks(self, blocks: Blocks, tuples: Tuples, buffers: Integers, ends: Integers) -> Algorithm:
        """Read blocks, whose tuples end at the numbers of `ends`, and do the same with these block by block."""
        pages, numbers = self._put_and_move(*self._parts(tuples), buffers)
        yield replace(blocks, pages=pages, of=np.searchsorted(ends, numbers, side="right"))

    def _parts(self, tuples: Tuples) -> tuple[tuple[Integers, ...], Integers]:
        """Columns of tuples, of one type, so that kernels are compiled once; and the bytes that each tuple takes."""
        columns = tuple(np.require(tuples.columns[name], np.int64, ("C", "W")) for name in self._names)
        return columns, self._layout.cell_sizes(tuples)

    def _grow(self) -> None:
        self._buffers = np.concatenate([self._buffers, np.empty_like(self._buffers)], axis=2)

    def _put_and_move(self, columns: tuple[Integers, ...], sizes: Integers, buffers: Integers) -> tuple[NewPages | None, Integers]:
        """Copy tuples to buffers; returns the writes of those that become full, and the tuple that each write makes room for."""
        tuples, pages = self._state[:, [TUPLES, PAGES]].sum(axis=0) + len(sizes)
        moved, begins = np.empty((len(self._names), tuples), np.int64), np.empty(pages + 1, np.int64)
        written, position = np.empty((3, pages), np.int64), np.zeros(4, np.int64)
        state = (self._buffers, self._first, self._state)
        while _place_and_move(columns, sizes, buffers, position, self._layout.room, *state, moved, begins, written) == GROW:
            self._grow()
            state = (self._buffers, self._first, self._state)
        _, tuples, pages, writes = position.tolist()
        of, counts, numbers = written[:, :writes]
        if not writes:
            return None, numbers
        files, full = [self.files[buffer] for buffer in of.tolist()], np.full(writes, self._first.shape[1] - 1)
        for file, count in zip(files, counts.tolist(), strict=True):
            file.tuples += count
        begins[pages] = tuples
        moved_tuples = Tuples(dict(zip(self._names, moved[:, :tuples], strict=True)), begins[: pages + 1])
        return NewPages(files, full, counts, full, moved_tuples, page_io=self._page_io), numbers

    def finish(self) -> Algorithm:
        for buffer in range(len(self.files)):
            if self._state[buffer, PAGES]:
                yield self._write(buffer)

    def _when_full(self, buffer: int) -> Request:
        return self._write(buffer)

    def _write(self, buffer: int) -> Write:
        count, pages = int(self._state[buffer, TUPLES]), int(self._state[buffer, PAGES])
        boundaries = self._first[buffer, : pages + 1].copy()
        boundaries[pages] = count
        self._state[buffer] = 0
        columns = dict(zip(self._names, self._buffers[:, buffer, :count].copy(), strict=True))
        return Write(self.files[buffer], *extents(0, pages, self._page_io), Tuples(columns, boundaries), append=True)


def write_out(file: File, tuples: Tuples, buffer_pages: int, *, page_io: bool) -> Algorithm:
    output = Output([file], buffer_pages, page_io=page_io)
    yield from output.append(tuples)
    yield from output.finish()


@kernel
def place(
    columns: tuple[Integers, ...],
    sizes: Integers,
    buffers: Integers,
    position: Integers,
    room: int,
    columns_of_buffers: Integers,
    first: Integers,
    state: Integers,
) -> int:
    """Copy tuples to buffers from `position` on, until one is full, or room for its tuples must grow, or all are copied."""
    most_tuples, most_pages = columns_of_buffers.shape[2], first.shape[1] - 1
    for index in range(position[0], sizes.shape[0]):
        buffer = buffers[index]
        count = state[buffer, TUPLES]
        if sizes[index] > state[buffer, LEFT]:
            if state[buffer, PAGES] == most_pages:
                position[0] = index
                return int(buffer)
            first[buffer, state[buffer, PAGES]] = count
            state[buffer, PAGES] += 1
            state[buffer, LEFT] = room
        if count == most_tuples:
            position[0] = index
            return GROW
        for column in range(len(columns)):
            columns_of_buffers[column, buffer, count] = columns[column][index]
        state[buffer, TUPLES] = count + 1
        state[buffer, LEFT] -= sizes[index]
    position[0] = sizes.shape[0]
    return DONE


@kernel
def _place_and_move(
    columns: tuple[Integers, ...],
    sizes: Integers,
    buffers: Integers,
    position: Integers,
    room: int,
    columns_of_buffers: Integers,
    first: Integers,
    state: Integers,
    moved: Integers,
    begins: Integers,
    written: Integers,
) -> int:
    """Do as `place`, but move what is in a full buffer out of it and go on.

    `position` counts the tuples placed, and the tuples, pages and buffers moved, of which `written` has the number, the tuples,
    and the tuple that had no room.
    """
    most_tuples, most_pages = columns_of_buffers.shape[2], first.shape[1] - 1
    for index in range(position[0], sizes.shape[0]):
        buffer = buffers[index]
        count = state[buffer, TUPLES]
        if sizes[index] > state[buffer, LEFT]:
            if state[buffer, PAGES] == most_pages:
                for page in range(most_pages):
                    begins[position[2] + page] = position[1] + first[buffer, page]
                for column in range(moved.shape[0]):
                    for tuple_ in range(count):
                        moved[column, position[1] + tuple_] = columns_of_buffers[column, buffer, tuple_]
                written[0, position[3]], written[1, position[3]], written[2, position[3]] = buffer, count, index
                position[1] += count
                position[2] += most_pages
                position[3] += 1
                state[buffer, PAGES] = count = 0
            first[buffer, state[buffer, PAGES]] = count
            state[buffer, PAGES] += 1
            state[buffer, LEFT] = room
        if count == most_tuples:
            position[0] = index
            return GROW
        for column in range(len(columns)):
            columns_of_buffers[column, buffer, count] = columns[column][index]
        state[buffer, TUPLES] = count + 1
        state[buffer, LEFT] -= sizes[index]
    position[0] = sizes.shape[0]
    return DONE


def together(algorithms: Sequence[Algorithm]) -> Algorithm:
    """Run algorithms beside each other, a strand each, until all have ended; one alone needs no strand of its own."""
    if len(algorithms) <= 1:
        for algorithm in algorithms:
            yield from algorithm
        return
    strands = []
    for number, algorithm in enumerate(algorithms, start=1):
        strand = yield Spawn(algorithm, f"strand {number}")
        assert isinstance(strand, Strand)
        strands.append(strand)
    yield Wait(strands)


def regions(first: int, end: int, strands: int) -> list[tuple[int, int]]:
    """First page and end of the contiguous regions of some pages, one a strand, as equal as whole pages allow; none is empty.

    >>> regions(0, 10, 3), regions(4, 6, 8)
    ([(0, 3), (3, 6), (6, 10)], [(4, 5), (5, 6)])
    """
    pages, count = end - first, min(strands, end - first)
    return [(first + pages * part // count, first + pages * (part + 1) // count) for part in range(count)]


def parallel_scan(file: File, handle: Handler, block: int, strands: int) -> Algorithm:
    """Read a file in as many regions as there are strands, each block by block (ParaScan: Lai et al., WAIM 2013).

    `block` is pages read at a time.
    """

    def scan(begin: int, end: int) -> Algorithm:
        for first, pages in spans(end - begin, block):
            yield from handle((yield from read_block(file, begin + first, pages, page_io=False)))

    yield from together([scan(*region) for region in regions(0, file.pages, strands)])


def prefetching_scan(file: File, handle: Handler, block: int) -> Algorithm:
    """Read a file block by block (in pages), each while the one before it is handled: two blocks are in memory."""
    blocks: list[Tuples] = []

    def fetch(first: int, pages: int) -> Algorithm:
        blocks.append((yield from read_block(file, first, pages, page_io=False)))

    reader: Strand | None = None
    for first, pages in spans(file.pages, block):
        if reader is not None:
            yield Wait([reader])
        before, blocks[:] = blocks[:], []
        strand = yield Spawn(fetch(first, pages), f"read page {first}")
        assert isinstance(strand, Strand)
        reader = strand
        for tuples in before:
            yield from handle(tuples)
    if reader is not None:
        yield Wait([reader])
        yield from handle(blocks.pop())
