"""What a partition method is: how a file is read, and its tuples are buffered and written, on their way to hash buckets.

Which tuples go to which bucket is the join's business (`Route`): Grace hash sends all of them there, hybrid hash keeps some in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from flashsim.core.errors import InvalidParameterError
from flashsim.core.members import Family, optional
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples

#: Copies tuples to the output buffers of the given numbers, shape (n,), and writes what becomes full.
Put = Callable[[Tuples, Integers], Algorithm]
#: Takes tuples as they are read, and from how many pages, and puts those that go to disk.
Route = Callable[[Tuples, int, Put], Algorithm]


@dataclass(frozen=True)
class PartitionParameters:
    """What a method is told besides its files and buffers.

    Parameters
    ----------
    method
        A member's name, or the path of a Python file that is one.
    page_io
        Every request is one page long.
    sub_buffer
        Bytes of a sub-buffer, for methods that divide output buffers; 0 for the method's own rule.
    strands
        Strands of control that partition together, for methods that have several.

    Raises
    ------
    InvalidParameterError
        A negative sub-buffer, or less than one strand.
    """

    method: str = "traditional"
    page_io: bool = False
    sub_buffer: int = 0
    strands: int = 1

    def __post_init__(self) -> None:
        if self.sub_buffer < 0:
            raise InvalidParameterError("sub-buffer", f"{self.sub_buffer} B", "it must be at least 0")
        if self.strands < 1:
            raise InvalidParameterError("strands", self.strands, "it must be at least 1")


@dataclass(frozen=True)
class PartitionBuffers:
    """Memory of a partition phase, in pages: one input buffer, and an output buffer of `output` pages for each bucket."""

    input: int
    output: int


class PartitionMethod(Protocol):
    """A member of the family."""

    #: Which of `PartitionParameters` it takes that not all methods do.
    OPTIONS: tuple[str, ...] = ()

    @optional
    def check(self, buffers: PartitionBuffers, page_size: int, parameters: PartitionParameters) -> None:
        """Refuse buffers that it cannot work with."""

    def distribute(
        self, file: File, files: Sequence[File], buffers: PartitionBuffers, route: Route, parameters: PartitionParameters
    ) -> Algorithm:
        """Read a file, and write what `route` puts to the files of its buckets, of which there may be none.

        In memory there are never more tuples of its own than `buffers` have room for.
        """


#: All methods; ``PARTITIONING.load("traditional").distribute`` is one.
PARTITIONING = Family("algorithms.partitioning", "partition method", PartitionMethod)


def distribute(file: File, files: Sequence[File], buffers: PartitionBuffers, route: Route, parameters: PartitionParameters) -> Algorithm:
    """Distribute a file's tuples by the method that the parameters name.

    Raises
    ------
    InvalidParameterError
        Buffers that the method cannot work with.
    """
    method = PARTITIONING.load(parameters.method)
    method.check(buffers, file.page_size, parameters)
    yield from method.distribute(file, files, buffers, route, parameters)
