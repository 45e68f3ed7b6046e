"""One pass over a file by one strand: block after block is read, routed and put to output buffers."""

from typing import Protocol

from algorithms.blocks import read_block, spans
from algorithms.partitioning.base import Route
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples


class OutputBuffers(Protocol):
    """An output buffer for each of some files."""

    def append(self, tuples: Tuples, buffers: Integers) -> Algorithm:
        """Copy tuples to the buffers of the given numbers, shape (n,); write what becomes full."""

    def finish(self) -> Algorithm:
        """Write what is left."""


def scan(
    file: File, input_pages: int, route: Route, output: OutputBuffers | None, *, page_io: bool, region: tuple[int, int] | None = None
) -> Algorithm:
    """Read a file, or a region (first page and end) of it, in blocks, and put what is routed to the output buffers, if there are any."""
    begin, end = region or (0, file.pages)

    def put(tuples: Tuples, buffers: Integers) -> Algorithm:
        if output is not None and len(tuples):
            yield from output.append(tuples, buffers)

    for first, pages in spans(end - begin, input_pages):
        tuples = yield from read_block(file, begin + first, pages, page_io)
        yield from route(tuples, pages, put)
    if output is not None:
        yield from output.finish()
