"""Blocks of a file whose tuples a join has before it reads them, so that it plans many reads, and the work and writes behind each, at once.

A join asks the driver for the tuples (`Preview`), which takes no time, and then for all reads (`Blocks`), made one after another.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from flashsim.core.request import Integers
from flashsim.execution.requests import Answer, Blocks, Preview, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples

AHEAD = 1024  #: Most pages per `Preview`.


@dataclass(frozen=True)
class Ahead:
    """Blocks that are not read yet."""

    blocks: Blocks  #: The reads; behind each the work of reading its tuples.
    tuples: Tuples  #: The tuples of all blocks whose key is not NULL.
    ends: Integers  #: Where the tuples of each block end, shape (blocks,).

    def part(self, count: int) -> Self:
        """The first `count` blocks."""
        ends = self.ends[:count]
        return replace(self, blocks=self.blocks.part(0, count), tuples=self.tuples.select(slice(int(ends[-1]))), ends=ends)

    def having(self, *work: Mapping[str, Integers]) -> Blocks:
        """The reads, with more work behind each."""
        return replace(self.blocks, before=[*self.blocks.before, *work])


def look_ahead(file: File, first: int, end: int, block: int, *, page_io: bool, most: int = AHEAD) -> Generator[Request, Answer, Ahead]:
    """The tuples on the pages from `first` on, in blocks of `block` pages: on `most` pages, or on one block if that is longer."""
    starts = np.arange(first, min(end, first + max(1, most // block) * block), block)
    counts = np.minimum(block, end - starts)
    tuples = yield Preview(file, starts, counts)
    assert isinstance(tuples, Tuples)
    joinable, last_pages = tuples if file.temporary else tuples.joinable(), np.cumsum(counts)
    read = np.diff(tuples.pages[last_pages], prepend=0)
    return Ahead(Blocks(file, starts, counts, [{Work.READ_TUPLE: read}], page_io=page_io), joinable, joinable.pages[last_pages])
