"""Some columns of a relation alone: its digests, scans of its keys, which a join takes for a file of digests, and fetches in page order.

On pages of columns (PAX) these ask for minipages.  Row ids are not read: they follow from page and slot, since a base file is in row order.

Sources: Li, On, Xu, Choi and Hu, "DigestJoin" (MDM 2009), section II; Shah, Harizopoulos, Wiener and Graefe, "Fast Scans and Joins using
Flash Drives" (DaMoN 2008); Tsirogiannis, Harizopoulos, Shah, Wiener and Graefe, "Query Processing Techniques for Solid State Drives"
(SIGMOD 2009), sections 3 and 4.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from algorithms.files import Output, cell_size, gather, read_block, spans, width_of
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Answer, Emit, Phase, Read, Request, rewrite
from flashsim.storage.heap_file import File, HeapFile, TupleFile, ranges, tuple_file
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import Layout, fill_pages
from flashsim.storage.rows import FixedRows, Tuples, key_tuples


def digest_layout(file: File, padding: int = 0) -> Layout:
    """Layout of the digests of a file on pages of the same size and format: a key code of 8 bytes and a row id of 4 or 8.

    `padding` is bytes of other columns that stay with the key.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> layout = digest_layout(SimpleNamespace(tuples=150_000, page_size=4096, layout=SimpleNamespace(page_format="sqlite")))
    >>> layout.row_format.widths
    {'key': 8, 'row': 4}
    """
    rows = FixedRows("digest", {"key": 8, "row": width_of(file.tuples)}, padding)
    return Layout(rows, file.page_size, file.layout.page_format)


def digest_pages(file: HeapFile) -> int:
    """Pages that the digests of a relation take; those of NULL keys are left out, as a catalogue that counts them foresees."""
    layout = digest_layout(file)
    return -(-int(np.count_nonzero(file.relation.codes != NULL_KEY)) // (layout.room // cell_size(layout)))


def project(file: File, digests: File, input_pages: int, output_pages: int, *, page_io: bool) -> Algorithm:
    """Scan a file and write its digests, without those of NULL keys, through buffers of so many pages."""
    output = Output([digests], output_pages, page_io=page_io)
    for first, pages in spans(file.pages, input_pages):
        yield from output.append((yield from read_block(file, first, pages, page_io)))
    yield from output.finish()


def store_digests(file: HeapFile) -> TupleFile:
    """The digests of a relation as a base file that is there before a join begins."""
    file.digests = tuple_file(f"{file.name}-digests", digest_layout(file), file.run(0, file.pages).joinable())
    return file.digests


def with_digests(files: Sequence[HeapFile]) -> tuple[HeapFile, ...]:
    """Relations, and behind them the digests of each, as a driver takes them that is to find both on the device."""
    return (*files, *(file.digests or store_digests(file) for file in dict.fromkeys(files)))


def stored_digests(file: HeapFile) -> TupleFile:
    """The digests of a relation that are there."""
    if file.digests is None:
        raise InvalidParameterError("digests stored", file.name, "its digests were not put on the device")
    return file.digests


#: Requests of a read of columns, and the tuples that it returns.
Scan = Generator[Request, Answer, Tuples]


#: Byte ranges that are read of every page; whole pages without any.
Parts = tuple[tuple[int, int], ...]
#: Takes pairs of row ids.
Taker = Callable[[Integers, Integers], Algorithm]


@dataclass(frozen=True)
class Selection:
    """The rows of a relation that take part."""

    #: Those that it looks at.
    columns: tuple[str, ...]
    #: What it says of each row, shape (rows,).
    rows: npt.NDArray[np.bool_]
    #: Read these columns first, and others only of pages with a row that takes part: FlashScanOpt rather than FlashScan.
    first: bool = True


def part_bytes(parts: Parts) -> int:
    return sum(length for _, length in parts)


def extents_of(pages: Integers, *, page_io: bool) -> tuple[Integers, Integers]:
    """Starts and counts of the extents that cover some pages, ascending: runs of neighbours, or each by itself.

    Examples
    --------
    >>> extents_of(np.array([2, 3, 7]), page_io=False)
    (array([2, 7]), array([2, 1]))
    """
    if page_io:
        return pages, np.ones(len(pages), np.int64)
    begins = np.flatnonzero(np.diff(pages, prepend=-2) != 1)
    return pages[begins], np.diff(begins, append=len(pages))


class Scanned(File, ABC):
    """A file that is not stored as such: what a join reads of it is found otherwise."""

    @abstractmethod
    def scan(self, request: Read) -> Scan:
        """Requests in place of a read of this file, and the tuples that come of them."""


@dataclass(eq=False, kw_only=True)
class KeyColumn(Scanned):
    """The keys of a relation and the ids of its rows, as a file of digests that joins read; nothing of it is stored.

    A page of it stands for as many pages of the relation as take no more memory: their minipages while they are read, and then the digests
    made of them; for one at least.
    """

    #: The relation's file.
    base: HeapFile
    #: The first of the relation's pages that each page stands for, and the end.
    firsts: Integers
    #: What is read of the relation's pages besides the key, and the bytes of both.
    attributes: tuple[str, ...]
    parts: Parts
    #: Which rows there are; all without it.
    selection: Selection | None
    page_io: bool

    def scan(self, request: Read) -> Scan:
        firsts, selection, base = self.firsts[request.starts], self.selection, self.base
        pages = ranges(firsts, self.firsts[request.starts + request.counts] - firsts)
        if selection is not None and selection.first and len(pages):
            parts = base.layout.parts((), selection.columns)
            yield Read(base, *extents_of(pages, page_io=self.page_io), parts=parts, columns=(), attributes=selection.columns)
            before = np.concatenate([[0], np.cumsum(selection.rows)])[base.first_rows]
            pages = pages[before[pages + 1] > before[pages]]
        if not len(pages):
            return gather([])
        tuples = yield Read(base, *extents_of(pages, page_io=self.page_io), parts=self.parts, columns=("key",), attributes=self.attributes)
        assert isinstance(tuples, Tuples)
        rows = key_tuples(tuples.keys, ranges(base.first_rows[pages], np.diff(tuples.pages)))
        return rows if selection is None else rows.select(selection.rows[rows.rows])


def key_column(
    base: HeapFile, *, page_io: bool, selection: Selection | None = None, carried: tuple[str, ...] = (), width: int = 0
) -> KeyColumn:
    """A relation's keys, of the selected rows, as a file of digests.

    `carried` are columns that are read with the key and stay with it, of which a digest takes `width` bytes.
    """
    layout = digest_layout(base, width)
    also = selection.columns if selection is not None and not selection.first else ()
    attributes = tuple(dict.fromkeys((*carried, *also)))
    parts = base.layout.parts(("key",), attributes)
    shares = np.maximum(np.diff(base.first_rows) * cell_size(layout) * base.page_size, part_bytes(parts) * layout.room)
    bound = layout.room * base.page_size
    firsts = fill_pages(shares, bound, 0)[0]
    # Digests may be longer than rows: a page of rows that takes several pages of digests has empty ones before it.
    firsts = np.append(np.repeat(firsts, np.maximum(1, -(-shares[firsts] // bound))), base.pages)
    return KeyColumn(
        name=base.name,
        layout=layout,
        temporary=False,
        pages=len(firsts) - 1,
        tuples=base.tuples if selection is None else int(selection.rows.sum()),
        base=base,
        firsts=firsts,
        attributes=attributes,
        parts=parts,
        selection=selection,
        page_io=page_io,
    )


def scan_columns(join: Algorithm, take: Taker, title: str = "") -> Algorithm:
    """A join of key columns: it scans the relations' pages, and hands the pairs that it finds to `take` rather than emit them.

    The names of its phases begin with `title`.
    """

    def scan(request: Request) -> Request | Generator[Request, Answer, Answer]:
        if isinstance(request, Read) and isinstance(request.file, Scanned):
            return request.file.scan(request)
        if isinstance(request, Emit):
            return take(request.r_rows, request.s_rows)
        return Phase(title + request.name) if isinstance(request, Phase) else request

    return rewrite(join, scan)
