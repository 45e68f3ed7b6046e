"""Contract of partition methods: reading a file, and buffering and writing its tuples, on their way to hash buckets.

Which tuples go to which bucket is the join's business (`Route`): Grace hash sends all of them there, hybrid hash keeps some in memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from algorithms.files import read_block, spans
from flashsim.core.errors import InvalidParameterError
from flashsim.core.members import Family, optional
from flashsim.core.request import Integers
from flashsim.core.units import format_size
from flashsim.execution.requests import Algorithm, Blocks, Cpu, Preview, Work
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples

#: Copies tuples to the output buffers of the given numbers, shape (n,), and writes what becomes full.
Put = Callable[[Tuples, Integers], Algorithm]
#: Takes tuples as they are read, and from how many pages, and puts those that go to disk.
Route = Callable[[Tuples, int, Put], Algorithm]


@dataclass(frozen=True)
class PartitionParameters:
    """Parameters of a method besides its files and buffers.

    Raises
    ------
    InvalidParameterError
        A negative sub-buffer, or less than one strand.
    """

    #: A member's name, or the path of a Python file that is one.
    method: str = "traditional"
    #: Every request is one page long.
    page_io: bool = False
    #: Bytes of a sub-buffer, for methods that divide output buffers; 0 for the method's own rule.
    sub_buffer: int = 0
    #: Strands of control that partition together, for methods that have several.
    strands: int = 1
    #: Blocks of a base relation that is partitioned by hash are read, and buffers written, in `Blocks` of many.
    in_series: bool = False

    def __post_init__(self) -> None:
        if self.sub_buffer < 0:
            raise InvalidParameterError("sub-buffer", f"{self.sub_buffer} B", "it must be at least 0")
        if self.strands < 1:
            raise InvalidParameterError("strands", self.strands, "it must be at least 1")


@dataclass(frozen=True)
class PartitionBuffers:
    """Memory of a partition phase, in pages: one input buffer, and an output buffer of `output` pages for each of `buckets` buckets."""

    input: int
    output: int
    buckets: int

    @property
    def pages(self) -> int:
        """All of it."""
        return self.input + self.buckets * self.output


class PartitionMethod(Protocol):
    """A member of the family."""

    #: Fields of `PartitionParameters` that the method takes and not all methods do.
    OPTIONS: tuple[str, ...] = ()

    @optional
    def check(self, layouts: Sequence[Layout], buffers: PartitionBuffers, parameters: PartitionParameters) -> None:
        """Refuse buffers for files of these layouts that it is not to work with; it must do with any, if a bucket is divided again."""

    @optional
    def page_size(self, layouts: Sequence[Layout], buffers: PartitionBuffers, parameters: PartitionParameters) -> int:
        """Bytes of a page of the buckets, which may be a part of one of the files'."""
        return layouts[0].page_size

    def distribute(
        self, file: File, files: Sequence[File], buffers: PartitionBuffers, route: Route, parameters: PartitionParameters
    ) -> Algorithm:
        """Read a file, and write what `route` puts to the files of its buckets, of which there may be none.

        `buffers` are counted in pages of `file`; in memory there are never more tuples of its own than they have room for.
        """


#: All methods; ``PARTITIONING.load("traditional").distribute`` is one.
PARTITIONING = Family("algorithms.partitioning", "partition method", PartitionMethod)


def check_options(parameters: PartitionParameters) -> None:
    """Refuse what the method does not take.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such method.
    InvalidParameterError
        It is told what it does not take.
    """
    takes, usual = PARTITIONING.load(parameters.method).OPTIONS, PartitionParameters()
    for option in ("sub_buffer", "strands"):
        value = getattr(parameters, option)
        if option not in takes and value != getattr(usual, option):
            text = format_size(value) if option == "sub_buffer" else value
            raise InvalidParameterError(option.replace("_", "-"), text, f"partition method {parameters.method} does not take it")


def check_buffers(files: Sequence[File], buffers: PartitionBuffers, parameters: PartitionParameters) -> None:
    """Refuse what the method does not take, and buffers that it is not to work with, before anything is read.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such method.
    InvalidParameterError
        It refuses them.
    """
    check_options(parameters)
    PARTITIONING.load(parameters.method).check([file.layout for file in files], buffers, parameters)


def bucket_layouts(files: Sequence[File], buffers: PartitionBuffers, parameters: PartitionParameters) -> list[Layout]:
    """Layout of tuples on the pages of each file's buckets, which are all of one size.

    Raises
    ------
    InvalidParameterError
        The method wants pages that are no part of the files', or that the page format does not have.
    CapacityError
        A row does not fit on them.
    """
    layouts = [file.layout for file in files]
    size, whole = PARTITIONING.load(parameters.method).page_size(layouts, buffers, parameters), files[0].page_size
    if size < 1 or whole % size:
        raise InvalidParameterError("page size", f"{size} B by partition method {parameters.method}", f"it must divide {whole} B")
    return [layout if size == layout.page_size else Layout(layout.row_format, size, layout.page_format) for layout in layouts]


def distribute(file: File, files: Sequence[File], buffers: PartitionBuffers, route: Route, parameters: PartitionParameters) -> Algorithm:
    """Distribute a file's tuples by the method that the parameters name."""
    yield from PARTITIONING.load(parameters.method).distribute(file, files, buffers, route, parameters)


#: Pages that are previewed at a time.
_AHEAD = 1024


class OutputBuffers(Protocol):
    """An output buffer for each of some files."""

    def append(self, tuples: Tuples, buffers: Integers) -> Algorithm:
        """Copy tuples to the buffers of the given numbers, shape (n,); write what becomes full."""

    def append_blocks(self, blocks: Blocks, tuples: Tuples, buffers: Integers, ends: Integers) -> Algorithm:
        """Read blocks, whose tuples end at the numbers of `ends`, and append these block by block."""

    def finish(self) -> Algorithm:
        """Write what is left."""


class ByHash:
    """The route of all tuples to the buckets that a function numbers, which needs their hashes."""

    def __init__(self, numbers: Callable[[Tuples], Integers]) -> None:
        self.numbers = numbers

    def __call__(self, tuples: Tuples, pages: int, put: Put) -> Algorithm:
        yield Cpu({Work.HASH: len(tuples)})
        yield from put(tuples, self.numbers(tuples))


def scan(
    file: File,
    input_pages: int,
    route: Route,
    output: OutputBuffers | None,
    *,
    page_io: bool,
    region: tuple[int, int] | None = None,
    in_series: bool = False,
) -> Algorithm:
    """Read a file, or a region (first page and end) of it, in blocks, and put what is routed to the output buffers, if there are any.

    With `in_series` blocks of a base relation are read, where hashes alone say what is put, in `Blocks` of many.
    """
    if in_series and output is not None and isinstance(route, ByHash) and not file.temporary:
        yield from _scan_in_series(file, input_pages, route.numbers, output, page_io)
        return
    begin, end = region or (0, file.pages)

    def put(tuples: Tuples, buffers: Integers) -> Algorithm:
        if output is not None and len(tuples):
            yield from output.append(tuples, buffers)

    for first, pages in spans(end - begin, input_pages):
        tuples = yield from read_block(file, begin + first, pages, page_io)
        yield from route(tuples, pages, put)
    if output is not None:
        yield from output.finish()


def _scan_in_series(file: File, input_pages: int, numbers: Callable[[Tuples], Integers], output: OutputBuffers, page_io: bool) -> Algorithm:
    for first, pages in spans(file.pages, max(1, _AHEAD // input_pages) * input_pages):
        starts = np.arange(first, first + pages, input_pages)
        counts = np.minimum(input_pages, first + pages - starts)
        tuples = yield Preview(file, starts, counts)
        assert isinstance(tuples, Tuples)
        joinable, last_pages = tuples.joinable(), np.cumsum(counts)
        read, put = (np.diff(each.pages[last_pages], prepend=0) for each in (tuples, joinable))
        blocks = Blocks(file, starts, counts, {Work.READ_TUPLE: read, Work.HASH: put}, {Work.WRITE_TUPLE: put}, page_io=page_io)
        yield from output.append_blocks(blocks, joinable, numbers(joinable), joinable.pages[last_pages])
    yield from output.finish()
