"""A trace's references, numbered once and kept in a compact file, so that any number of policies and sizes go through them.

How many pages a share of them comes to is known only at the end of a trace, and many traces are streams.  So references are read once,
into a file without a name that the system removes: 4 bytes each, the number of the page (`flashsim.core.page_numbers`) with the sign of a
write.  For policies that know the future another 4 bytes say which reference asks for the page next; they are found by one walk from the
end.  Memory grows with the distinct pages alone.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import IO

import numpy as np

from flashsim.core.errors import CapacityError, InvalidParameterError, option
from flashsim.core.kernel import lean_kernel
from flashsim.core.page_numbers import PageNumbers
from flashsim.core.protocols import Progress
from flashsim.core.replacement import FIRST_PAGE, NEVER_AGAIN, WRITES, Numbers
from flashsim.core.request import Integers
from flashsim.core.transactions import BATCH, References
from flashsim.core.units import format_size
from flashsim.storage.pool.simulation import Writes

_BYTES = 4


class NumberedTrace(AbstractContextManager["NumberedTrace"]):
    """The references of a trace, to be gone through as often as it takes.

    `title` is the trace in words; `keep` chooses the rows of a batch whose references are kept, such as those to a sample of pages.
    """

    def __init__(
        self, title: str, batches: Iterator[References], limit: int | None = None,
        keep: Callable[[Integers], np.ndarray] | None = None, progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self.title = title
        #: References that were read, references that are kept, and writes among these.
        self.read = self.references = self.writes = 0
        self._file = _temporary()
        self._future: IO[bytes] | None = None
        numbers = PageNumbers()
        try:
            for pages, writes in first_references(batches, limit):
                self.read += len(pages)
                if keep is not None:
                    rows = keep(pages)
                    pages, writes = pages[rows], None if writes is None else writes[rows]
                self._add(numbers.number(pages), writes)
                if progress is not None:
                    progress(self.read, limit or 0, "" if limit else f"{self.read:,} references")
            if not self.references:
                raise InvalidParameterError("trace", self.title, "it references no page" + (" of the sample" if self.read else ""))
        except BaseException:
            self.close()
            raise
        #: Distinct pages, and the id of each, in the order in which they were first seen.
        self.pages, self.ids = len(numbers), numbers.ids().copy()

    def _add(self, numbers: Numbers, writes: np.ndarray | None) -> None:
        if self.references + len(numbers) >= NEVER_AGAIN:
            raise CapacityError(f"trace: {self.title} has {NEVER_AGAIN:,} references or more; take a part of it with " + option("limit"))
        if writes is not None:
            numbers[np.asarray(writes, np.bool_)] |= np.int32(WRITES)
            self.writes += int(np.count_nonzero(writes))
        _write(self._file, numbers)
        self.references += len(numbers)

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        for file in (self._file, self._future):
            if file is not None:
                file.close()

    def part(self, begin: int, end: int) -> tuple[Numbers, Writes | None]:
        """The numbers of the pages that some references ask for, and 1 for those that write, shape (n,) each."""
        numbers = _read(self._file, begin, end)
        if not self.writes:
            return numbers, None
        return numbers & np.int32(~WRITES), (numbers < 0).view(np.uint8)

    def next_uses(self, begin: int, end: int) -> Numbers:
        """The next references to the same pages (`Simulation.refer`), shape (n,); see `look_ahead`."""
        assert self._future is not None
        return _read(self._future, begin, end)

    def look_ahead(self, progress: Progress | None = None) -> None:
        """Find out for each reference which one asks for its page next, once."""
        if self._future is not None:
            return
        size, free = _BYTES * self.references, shutil.disk_usage(tempfile.gettempdir()).free
        if size > free:
            where = f"{tempfile.gettempdir()}, where {format_size(free)} are free"
            raise CapacityError(f"trace: policies that know the future need {format_size(size)} for it in {where}")
        future, coming = _temporary(), np.full(FIRST_PAGE + self.pages, NEVER_AGAIN, np.int32)
        try:
            for end in range(self.references, 0, -BATCH):
                begin = max(0, end - BATCH)
                numbers = _read(self._file, begin, end)
                _look_back(numbers, begin, coming)
                _write(future, numbers, begin)
                if progress is not None:
                    progress(self.references - begin, self.references)
        except BaseException:
            future.close()
            raise
        self._future = future


def first_references(batches: Iterator[References], limit: int | None) -> Iterator[References]:
    count = 0
    for batch in batches:
        rest = len(batch.pages) if limit is None else limit - count
        yield References(batch.pages[:rest], None if batch.writes is None else batch.writes[:rest])
        count += len(batch.pages)
        if limit is not None and count >= limit:
            return


@lean_kernel
def _look_back(numbers: Numbers, first: int, coming: Numbers) -> None:
    """Replace the number of each page by that of the reference that asks for it next, from the last on; both with the sign of a write."""
    for row in range(numbers.shape[0] - 1, -1, -1):
        page = numbers[row] & ~WRITES
        writes = min(numbers[row], coming[page]) < 0
        numbers[row] = coming[page]
        coming[page] = first + row + 1 + (WRITES if writes else 0)


def _temporary() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="flashsim-", buffering=0)


def _write(file: IO[bytes], numbers: Numbers, begin: int | None = None) -> None:
    rest = numbers.data.cast("B")
    try:
        if begin is not None:
            file.seek(begin * _BYTES)
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as problem:
        raise CapacityError(f"trace: numbered references take 4 bytes each in {tempfile.gettempdir()}: {problem.strerror}") from problem


def _read(file: IO[bytes], begin: int, end: int) -> Numbers:
    return np.frombuffer(bytearray(os.pread(file.fileno(), _BYTES * (end - begin), _BYTES * begin)), np.int32)
