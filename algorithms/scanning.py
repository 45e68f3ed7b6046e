"""Scans of a file by several strands of control, which overlap CPU work with input; an algorithm of one's own may begin with them."""

from collections.abc import Callable, Sequence

from algorithms.blocks import read_block, spans
from flashsim.execution.requests import Algorithm, Spawn, Strand, Wait
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples

#: What is done with the tuples of a block.
Handler = Callable[[Tuples], Algorithm]


def together(algorithms: Sequence[Algorithm]) -> Algorithm:
    """Run algorithms beside each other, a strand each, until all have ended; one alone needs no strand of its own."""
    if len(algorithms) <= 1:
        for algorithm in algorithms:
            yield from algorithm
        return
    begun = []
    for number, algorithm in enumerate(algorithms, start=1):
        strand = yield Spawn(algorithm, f"strand {number}")
        assert isinstance(strand, Strand)
        begun.append(strand)
    yield Wait(begun)


def regions(first: int, end: int, strands: int) -> list[tuple[int, int]]:
    """First page and end of the contiguous regions of some pages, one a strand, as equal as whole pages allow; none is empty.

    Examples
    --------
    >>> regions(0, 10, 3), regions(4, 6, 8)
    ([(0, 3), (3, 6), (6, 10)], [(4, 5), (5, 6)])
    """
    pages = end - first
    count = min(strands, pages)
    return [(first + pages * part // count, first + pages * (part + 1) // count) for part in range(count)]


def parallel_scan(file: File, handle: Handler, block: int, strands: int) -> Algorithm:
    """Read a file in as many regions as there are strands, each block by block (ParaScan: Lai et al., WAIM 2013).

    Parameters
    ----------
    block
        Pages read at a time.
    """
    yield from together([_scan(file, handle, block, first, end) for first, end in regions(0, file.pages, strands)])


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
