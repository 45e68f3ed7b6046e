"""Scans of a file by several strands of control, which overlap CPU work with input; an algorithm of one's own may begin with them."""

from __future__ import annotations

from collections.abc import Callable

from algorithms.blocks import read_block, spans
from flashsim.execution.requests import Algorithm, Spawn, Strand, Wait
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples

#: What is done with the tuples of a block.
Handler = Callable[[Tuples], Algorithm]


def parallel_scan(file: File, handle: Handler, block: int, strands: int) -> Algorithm:
    """Read a file in as many parts as there are strands, each block by block.

    Parameters
    ----------
    block
        Pages read at a time.
    """
    begun = []
    for number in range(strands):
        first, end = (file.pages * part // strands for part in (number, number + 1))
        strand = yield Spawn(_scan(file, handle, block, first, end), f"scan {number}")
        assert isinstance(strand, Strand)
        begun.append(strand)
    yield Wait(begun)


def _scan(file: File, handle: Handler, block: int, first: int, end: int) -> Algorithm:
    for start, pages in spans(end - first, block):
        tuples = yield from read_block(file, first + start, pages, page_io=False)
        yield from handle(tuples)


def prefetching_scan(file: File, handle: Handler, block: int) -> Algorithm:
    """Read a file block by block, each while the one before it is handled.

    Parameters
    ----------
    block
        Pages read at a time; two blocks are in memory.
    """
    fetched: list[Tuples] = []

    def fetch(first: int, pages: int) -> Algorithm:
        fetched.append((yield from read_block(file, first, pages, page_io=False)))

    reader: Strand | None = None
    for first, pages in spans(file.pages, block):
        if reader is not None:
            yield Wait([reader])
        before = [fetched.pop()] if fetched else []
        begun = yield Spawn(fetch(first, pages), f"read page {first}")
        assert isinstance(begun, Strand)
        reader = begun
        for tuples in before:
            yield from handle(tuples)
    if reader is not None:
        yield Wait([reader])
        yield from handle(fetched.pop())
