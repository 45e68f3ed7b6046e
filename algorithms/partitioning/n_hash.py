"""N-Hash: output buffers are rings of sub-buffers; when one is full, the full sub-buffers of all are written at once (shin2016, section 3).

A sub-buffer is whole pages.  Where a ring is one page, or sub-buffers are to be smaller than a page, the buckets' pages are smaller than
those of the relations instead: a page of tuples is written once, and whole.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from algorithms.files import DONE, GROW, LEFT, PAGES, TUPLES, Output, place
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters, Route, scan
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.core.units import format_size
from flashsim.execution.requests import Algorithm, Blocks, Cpu, NewPages, Psync, Work
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples
from models.allocation.divisions import sub_buffer_pages

OPTIONS = ("sub_buffer",)


def check(layouts: Sequence[Layout], buffers: PartitionBuffers, parameters: PartitionParameters) -> None:
    """Refuse sub-buffers that are no whole part of an output buffer, or neither whole pages nor pages themselves."""
    size, page = parameters.sub_buffer, layouts[0].page_size
    ring = buffers.output * page
    if not size or not ring:
        return
    text = format_size(size)
    if size > ring:
        raise InvalidParameterError("sub-buffer", text, f"an output buffer has {format_size(ring)}")
    if ring % size:
        raise InvalidParameterError("sub-buffer", text, f"an output buffer of {format_size(ring)} is not a multiple of it")
    if size % page and page % size:
        raise InvalidParameterError("sub-buffer", text, f"it must be whole pages of {format_size(page)}, or a page whole sub-buffers")
    try:
        _smaller(layouts, min(size, page))
    except FlashsimError as problem:
        raise InvalidParameterError("sub-buffer", text, f"buckets would have such pages: {problem}") from None


def page_size(layouts: Sequence[Layout], buffers: PartitionBuffers, parameters: PartitionParameters) -> int:
    """The relations' pages, or as small as sub-buffers that are to be smaller: half a page by default where a ring is one page."""
    whole = layouts[0].page_size
    size = parameters.sub_buffer or (whole // 2 if buffers.output == 1 else whole)
    if size >= whole or whole % size:
        return whole
    try:
        _smaller(layouts, size)
    except FlashsimError:
        return whole
    return size


def _smaller(layouts: Sequence[Layout], size: int) -> None:
    """Refuse pages of a size that a page format does not have, or that do not hold every row."""
    for layout in layouts:
        Layout(layout.row_format, size, layout.page_format)


def distribute(file: File, files: Sequence[File], buffers: PartitionBuffers, route: Route, parameters: PartitionParameters) -> Algorithm:
    """Read block after block, and write all full sub-buffers when the next tuple does not fit in its ring (shin2016, algorithm 1)."""
    output = None
    if files:
        pages = buffers.output * (file.page_size // files[0].page_size)
        output = Rings(files, pages, sub_buffer_pages(pages, files[0].page_size, parameters.sub_buffer), page_io=parameters.page_io)
    yield from scan(file, buffers.input, route, output, page_io=parameters.page_io, in_series=parameters.in_series)


class Rings(Output):
    """Output buffers that are rings; neighbouring full sub-buffers are one request, and two where a ring goes round.

    That a sub-buffer is full shows when a tuple does not fit in it any more, as tuples differ in length.

    A sub-buffer is so many pages, which divide `pages`; the others are as of `Output`.
    """

    def __init__(self, files: Sequence[File], pages: int, sub_buffer: int, *, page_io: bool) -> None:
        super().__init__(files, pages, page_io=page_io)
        self._pages, self._sub_buffer = pages, sub_buffer
        self._begin = np.zeros(len(files), np.int64)  # of each ring, the page where its first sub-buffer begins

    def append_blocks(self, blocks: Blocks, tuples: Tuples, buffers: Integers, ends: Integers) -> Algorithm:
        """Read blocks up to the one whose tuple does not fit, write what is full, and go on; see `OutputBuffers`."""
        columns, sizes = self._parts(tuples)
        position, last_tuples, put = np.zeros(1, np.int64), ends.tolist(), np.diff(ends, prepend=0).tolist()
        begin, room = 0, self._layout.room  # the first block that is not read
        while (full := place(columns, sizes, buffers, position, room, self._buffers, self._first, self._state)) != DONE:
            if full == GROW:
                self._grow()
                continue
            if (block := bisect_right(last_tuples, position.item())) >= begin:
                yield from _up_to(block + 1, begin, blocks, put)
                begin = block + 1
            yield self._when_full(full)
        if begin < len(put):
            yield from _up_to(len(put), begin, blocks, put)
        yield Cpu({Work.WRITE_TUPLE: put[-1]})

    def finish(self) -> Algorithm:
        pages = self._state[:, PAGES].copy()
        if pages.any():
            yield self._flush(pages)

    def _when_full(self, buffer: int) -> Psync:
        """All full sub-buffers: those behind which another page of their ring is in use, and all of the ring that is full."""
        full = np.maximum(self._state[:, PAGES] - 1, 0) // self._sub_buffer * self._sub_buffer
        full[buffer] = self._pages
        return self._flush(full)

    def _flush(self, pages: Integers) -> Psync:
        """Write the first pages of each ring, shape (rings,)."""
        tuples = np.where(pages == self._state[:, PAGES], self._state[:, TUPLES], self._first[np.arange(len(pages)), pages])
        columns = np.empty((len(self._names), int(tuples.sum())), np.int64)
        boundaries = np.empty(int(pages.sum()) + len(pages), np.int64)
        _take(self._buffers, self._first, self._state, pages, tuples, columns, boundaries)
        written = np.flatnonzero(pages)
        files = [self.files[ring] for ring in written.tolist()]
        for file, count in zip(files, tuples[written].tolist(), strict=True):
            file.tuples += count
        begins = np.delete(boundaries, np.cumsum(pages + 1) - 1) + np.repeat(np.cumsum(tuples) - tuples, pages)
        moved = Tuples(dict(zip(self._names, columns, strict=True)), np.append(begins, columns.shape[1]))
        before_end = (self._pages - self._begin)[written]
        self._begin = (self._begin + pages) % self._pages
        return NewPages(files, pages[written], tuples[written], before_end, moved, page_io=self._page_io)


def _up_to(end: int, begin: int, blocks: Blocks, put: Sequence[int]) -> Algorithm:
    """Read blocks, after the work of the one before; that of the last stays to be done."""
    if begin:
        yield Cpu({Work.WRITE_TUPLE: put[begin - 1]})
    yield blocks.part(begin, end)


@kernel
def _take(
    buffers: Integers, first: Integers, state: Integers, pages: Integers, tuples: Integers, columns: Integers, boundaries: Integers
) -> None:
    """Move the first pages of each buffer out of it, one buffer after another; what stays moves to its beginning."""
    to, boundary = 0, 0
    for buffer in range(pages.shape[0]):
        count, more, held_tuples = tuples[buffer], pages[buffer], state[buffer, TUPLES]
        for page in range(more):
            boundaries[boundary + page] = first[buffer, page]
        boundaries[boundary + more] = count
        boundary += more + 1
        for column in range(columns.shape[0]):
            for index in range(count):
                columns[column, to + index] = buffers[column, buffer, index]
            for index in range(count, held_tuples):
                buffers[column, buffer, index - count] = buffers[column, buffer, index]
        to += count
        for page in range(more, state[buffer, PAGES]):
            first[buffer, page - more] = first[buffer, page] - count
        state[buffer, TUPLES] -= count
        state[buffer, PAGES] -= more
        if state[buffer, PAGES] == 0:
            state[buffer, LEFT] = 0
