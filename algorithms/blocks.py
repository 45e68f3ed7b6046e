"""Reading files in I/O blocks: one extent a block, or one extent a page."""

from collections.abc import Generator, Iterator

import numpy as np

from flashsim.core.request import Integers
from flashsim.execution.requests import Cpu, Read, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples


def extents(first: int, pages: int, page_io: bool) -> tuple[Integers, Integers]:
    """Starts and counts of the extents that cover some pages: all of them in one, or each by itself.

    Examples
    --------
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

    Examples
    --------
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
