"""Output buffers: tuples are packed into pages in memory, and a buffer is appended to its temporary file when it is full."""

from collections.abc import Sequence

import numpy as np

from algorithms.blocks import extents
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Cpu, Drop, Request, Work, Write
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples

#: What `_place` returns besides the number of a full buffer.
_DONE, _GROW = -1, -2

#: Columns of a buffer's state.
TUPLES, PAGES, LEFT = range(3)


def temporary_files(folder: str, kind: str, count: int, layout: Layout, expected_pages: int) -> list[File]:
    """Numbered temporary files, not yet written.

    Examples
    --------
    >>> [file.name for file in temporary_files("grace-hash/orders", "bucket", 11, None, 9)][9:]
    ['grace-hash/orders/bucket-09', 'grace-hash/orders/bucket-10']
    """
    width = max(2, len(str(count - 1)))
    return [File(f"{folder}/{kind}-{number:0{width}}", layout, expected_pages=expected_pages) for number in range(count)]


def drop(file: File) -> Algorithm:
    """Drop a temporary file, if it was ever written."""
    if file.pages:
        yield Drop(file)


class Output:
    """One output buffer for each of some temporary files of one layout.

    A page takes tuples until the next one does not fit; a buffer is written when the next tuple would need a page more than it has.

    Parameters
    ----------
    files
        Where each buffer goes.
    pages
        How long each buffer is.
    """

    def __init__(self, files: Sequence[File], pages: int, *, page_io: bool) -> None:
        self.files = files
        self._page_io = page_io
        self._layout = files[0].layout
        self._names = self._layout.row_format.columns
        self._held = np.empty((len(self._names), len(files), 256), np.int64)  # the columns of each buffer's tuples
        self._first = np.zeros((len(files), pages + 1), np.int64)  # first tuple of each page
        self._state = np.zeros((len(files), 3), np.int64)

    def append(self, tuples: Tuples, buffers: Integers) -> Algorithm:
        """Copy tuples to the buffers of the given numbers, shape (n,); write those that become full."""
        sizes, room = self._layout.cell_sizes(tuples), self._layout.room
        columns = tuple(np.require(tuples.columns[name], np.int64, ("C", "W")) for name in self._names)  # of one type, to be compiled once
        position = np.zeros(1, np.int64)
        while True:
            full = _place(columns, sizes, buffers, position, room, self._held, self._first, self._state)
            if full == _DONE:
                break
            if full == _GROW:
                self._held = np.concatenate([self._held, np.empty_like(self._held)], axis=2)
            else:
                yield self._when_full(full)
        yield Cpu({Work.WRITE_TUPLE: len(tuples)})

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
        columns = dict(zip(self._names, self._held[:, buffer, :count].copy(), strict=True))
        return Write(self.files[buffer], *extents(0, pages, self._page_io), Tuples(columns, boundaries), append=True)


@kernel
def _place(
    columns: tuple[Integers, ...],
    sizes: Integers,
    buffers: Integers,
    position: Integers,
    room: int,
    held: Integers,
    first: Integers,
    state: Integers,
) -> int:
    """Copy tuples to buffers from `position` on, until one is full, or room for its tuples must grow, or all are copied."""
    most_tuples, most_pages = held.shape[2], first.shape[1] - 1
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
            return _GROW
        for column in range(len(columns)):
            held[column, buffer, count] = columns[column][index]
        state[buffer, TUPLES] = count + 1
        state[buffer, LEFT] -= sizes[index]
    position[0] = sizes.shape[0]
    return _DONE
