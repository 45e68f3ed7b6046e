"""Contract of partition methods: reading a file, and buffering and writing its tuples, on their way to hash buckets.

Which tuples go to which bucket is the join's business (`Route`): Grace hash sends all of them there, hybrid hash keeps some in memory.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Protocol, runtime_checkable

import numpy as np

from algorithms.files import read_block
from algorithms.look_ahead import AHEAD, Ahead, look_ahead
from flashsim.core.errors import InvalidParameterError
from flashsim.core.members import Family, optional
from flashsim.core.options import Option, options_in
from flashsim.core.request import Integers, total
from flashsim.execution.requests import Algorithm, Answer, Blocks, Cpu, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples

#: Copies tuples to the output buffers of the given numbers, shape (n,), and writes what becomes full.
Put = Callable[[Tuples, Integers], Algorithm]
#: Takes tuples as they are read, and from how many pages, and puts those that go to disk.
Route = Callable[[Tuples, int, Put], Algorithm]
#: Has blocks read and copies tuples of theirs, which end at the numbers of the last, to the output buffers of the given numbers.
PutBlocks = Callable[[Blocks, Tuples, Integers, Integers], Algorithm]


@runtime_checkable
class RouteAhead(Protocol):
    """A `Route` that knows what it puts of many blocks before they are read."""

    def __call__(self, tuples: Tuples, pages: int, put: Put) -> Algorithm:
        """See `Route`."""

    def ahead(self, ahead: Ahead, put: PutBlocks) -> Generator[Request, Answer, int]:
        """Put what is to be put of the first blocks, as many as it can; returns their number, which is all or leaves one to be read."""


_METHODS = "Partitioning of grace-hash and hybrid-hash: {partition_methods}; or a Python file. Default: traditional."
_SUB_BUFFER = "With --partition n-hash: size of sub-buffers; 8KiB by default."
_STRANDS = "With --partition para-hash: number of strands; 1 by default."


@dataclass(frozen=True)
class PartitionOptions:
    """The method that makes a join's buckets, and options of the methods that take them."""

    partition: Annotated[str, Option(_METHODS, "METHOD", completes=("partition_methods",))] = "traditional"
    #: Bytes of a sub-buffer, for methods that divide output buffers; 0 for the method's own rule.
    sub_buffer: Annotated[int, Option(_SUB_BUFFER, kind="size")] = 0
    strands: Annotated[int, Option(_STRANDS, "K", kind="count")] = 1


@dataclass(frozen=True)
class PartitionParameters(PartitionOptions):
    """Parameters of a method besides its files and buffers.

    Raises
    ------
    InvalidParameterError
        A negative sub-buffer, or less than one strand.
    """

    #: Every request is one page long.
    page_io: bool = False
    #: Blocks are read, and buffers written, in `Blocks` of many.
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

    #: Fields of `PartitionOptions` that the method takes and not all methods do.
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
    takes, usual = PARTITIONING.load(parameters.partition).OPTIONS, PartitionOptions(parameters.partition)
    for name, option in options_in(PartitionOptions).items():
        value = getattr(parameters, name)
        if name not in takes and value != getattr(usual, name):
            bound = f"partition method {parameters.partition} does not take it"
            raise InvalidParameterError(name.replace("_", "-"), option.text(value), bound)


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
    PARTITIONING.load(parameters.partition).check([file.layout for file in files], buffers, parameters)


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
    size, whole = PARTITIONING.load(parameters.partition).page_size(layouts, buffers, parameters), files[0].page_size
    if size < 1 or whole % size:
        raise InvalidParameterError("page size", f"{size} B by partition method {parameters.partition}", f"it must divide {whole} B")
    return [layout if size == layout.page_size else Layout(layout.row_format, size, layout.page_format) for layout in layouts]


def distribute(file: File, files: Sequence[File], buffers: PartitionBuffers, route: Route, parameters: PartitionParameters) -> Algorithm:
    """Distribute a file's tuples by the method that the parameters name."""
    yield from PARTITIONING.load(parameters.partition).distribute(file, files, buffers, route, parameters)


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

    def ahead(self, ahead: Ahead, put: PutBlocks) -> Generator[Request, Answer, int]:
        count = np.diff(ahead.ends, prepend=0)
        yield from put(ahead.having({Work.HASH: count}), ahead.tuples, self.numbers(ahead.tuples), ahead.ends)
        return len(ahead.ends)


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

    With `in_series` blocks are read in `Blocks` of many, where the route knows many at a time.
    """
    first, end = region or (0, file.pages)

    def put(tuples: Tuples, buffers: Integers) -> Algorithm:
        if output is not None and len(tuples):
            yield from output.append(tuples, buffers)

    def put_blocks(blocks: Blocks, tuples: Tuples, buffers: Integers, ends: Integers) -> Algorithm:
        if output is None or not len(tuples):
            yield blocks
        else:
            yield from output.append_blocks(replace(blocks, after=[{Work.WRITE_TUPLE: np.diff(ends, prepend=0)}]), tuples, buffers, ends)

    most = AHEAD
    while first < end:
        if in_series and isinstance(route, RouteAhead):
            ahead = yield from look_ahead(file, first, end, input_pages, page_io=page_io, most=most)
            done = yield from route.ahead(ahead, put_blocks)
            pages = total(ahead.blocks.counts[:done])
            first += pages
            if done == len(ahead.ends):
                most = min(AHEAD, 2 * most)
                continue
            most = pages  # the next block that does not fit may be as near
        pages = min(input_pages, end - first)
        yield from route((yield from read_block(file, first, pages, page_io)), pages, put)
        first += pages
    if output is not None:
        yield from output.finish()
