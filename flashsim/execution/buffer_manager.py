"""The buffer manager: what a buffer pool brings in and puts out, asked for as reads and writes, in any driver.

Algorithms fix pages, look at them, change them and give them up.  Several strands may share a pool.  They fix and flush one after the
other, under the pool's latch, since a page whose read or write-back is on its way belongs to nobody; they look at pages, change them and
give them up at any time.  Of two that hold a page, the one that has seen its last change may change it; the other is refused, so that no
change is lost.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock

import numpy as np

from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, RefusedError, check_least
from flashsim.core.replacement import Numbers
from flashsim.core.request import Integers
from flashsim.execution.requests import Acquire, Algorithm, Answer, Flush, Latch, Mode, Psync, Read, Release, Request, Write
from flashsim.storage.content import FrameContent, holds_tokens, tokens
from flashsim.storage.heap_file import File
from flashsim.storage.pool.buffer_pool import BufferPool, Exchanges
from flashsim.storage.pool.simulation import Writes
from flashsim.storage.rows import Tuples

_MOST = 1024  #: Most pages that are read, or written by a flush, in one go.


@dataclass(eq=False)
class Fixed:
    """Pages of a file that somebody holds, shape (n,); when looked at, their last changes had these log sequence numbers."""

    file: File
    numbers: Integers = field(repr=False)  # the pool's
    lsns: Integers = field(repr=False)
    given_up: bool = False


class BufferManager:
    """A buffer pool whose pages are read and written.

    `pool`: empty; its files hold tuples of any row format, or tokens (`flashsim.storage.content`).  `depth`: so many pages at most are
    exchanged at once: those that leave are written in one psync call, those that enter are read in another; with 1, each page is written or
    read after the one before, in the order of the references.  `shared`: whether several strands use the pool, in a driver that runs
    several.

    Raises InvalidParameterError: a depth below 1.
    """

    def __init__(self, pool: BufferPool, *, depth: int = 1, shared: bool = False) -> None:
        check_least(1, depth=depth)
        self.pool, self._depth = pool, depth
        self._mode = Mode.BATCH if depth > 1 else Mode.SERIAL
        self._latch = Latch("buffer pool") if shared else None
        self._busy = False
        self._lock = Lock()  # of strands that are threads
        self._content = FrameContent(pool.most_held)
        self._files_to_flush: dict[File, None] = {}  # since the last flush

    def fix(self, file: File, pages: Integers) -> Generator[Request, Answer, Fixed]:
        """``fixed = yield from manager.fix(file, pages)``: bring pages in, and hold them until they are given up.

        Pages have shape (n,); one may come more than once.
        """
        numbers = self.pool.numbers_of(file, pages)
        yield from self._exchange(lambda: self.pool.fix(numbers))
        return Fixed(file, numbers, self.pool.lsns_of(numbers))

    def unfix(self, fixed: Fixed) -> None:
        self._check_held("unfix", fixed)
        with self._lock:
            self.pool.unfix(fixed.numbers)
            fixed.given_up = True

    def look(self, fixed: Fixed) -> Tuples:
        """The tuples of pages that are held, as they are now."""
        self._check_held("look", fixed)
        with self._lock:
            fixed.lsns = self.pool.lsns_of(fixed.numbers)
            pages = self.pool.places_of(fixed.numbers)[1]
            return self._tuples(fixed.file, pages, self.pool.frames_of(fixed.numbers), fixed.lsns)

    def change(self, fixed: Fixed, tuples: Tuples | None = None, lsns: Integers | None = None) -> None:
        """Let pages that are held, each once, hold other tuples, and mark them dirty.

        `tuples` has a page of them for each, None for tokens; `lsns` the log sequence numbers of the changes, shape (n,), the next ones
        without it.
        """
        self._check_held("change", fixed)
        file = fixed.file
        if len(np.unique(fixed.numbers)) < len(fixed.numbers):
            raise InvalidParameterError("change", f"{len(fixed.numbers)} pages of {file.name}", "each must be there once")
        columns = () if holds_tokens(file) else file.layout.row_format.columns
        names, pages = ((), 0) if tuples is None else (tuple(tuples.columns), len(tuples.pages) - 1)
        if set(names) != set(columns) or (tuples is not None and pages != len(fixed.numbers)):
            bound = f"{len(fixed.numbers)} pages of {', '.join(columns) or 'tokens'} are held of {file.name}"
            raise InvalidParameterError("change", f"{pages} pages of {', '.join(names) or 'tokens'}", bound)
        with self._lock:
            other = self.pool.lsns_of(fixed.numbers) != fixed.lsns
            if other.any():
                bound = "somebody else has changed it since it was looked at"
                raise InvalidParameterError("change", self.pool.name_of(int(fixed.numbers[other.argmax()])), bound)
            fixed.lsns = self.pool.change(fixed.numbers, lsns)
            if tuples is not None:
                self._content.put(self.pool.frames_of(fixed.numbers), tuples, columns)

    def refer(self, numbers: Integers, writes: Writes | None = None, next_uses: Numbers | None = None) -> Algorithm:
        """Let pages that hold tokens be fixed, changed by those references that write, and given up, each before the next.

        `numbers`: as the pool numbers them, shape (n,); `writes`: 1 for a reference that writes its page, shape (n,); `next_uses`: the
        number of the reference that asks for each page next, for policies that know the future, shape (n,).
        """
        assert all(map(holds_tokens, self.pool.files))
        yield from self._exchange(lambda: self.pool.refer(numbers, writes, next_uses))

    def flush(self, file: File | None = None, pages: Integers | None = None) -> Algorithm:
        """Write changed pages, in the order in which they lie, and make all that was written durable.

        They are some pages of a file, or all of one; without either all pages.
        """
        numbers = None if file is None else self.pool.numbers_of(file, np.arange(file.pages) if pages is None else pages)
        yield from self._enter()
        changed = self.pool.dirty_pages()
        changed = changed if numbers is None else changed[np.isin(changed, numbers)]
        for begin in range(0, len(changed), _MOST):
            part = changed[begin : begin + _MOST]
            with self._lock:
                frames, lsns = self.pool.frames_of(part), self.pool.lsns_of(part)
                writes = self._writes(part, frames, lsns, runs=True)
            yield from self._all(writes)
            with self._lock:
                self.pool.mark_clean(part, lsns)
        for each in list(self._files_to_flush):
            yield Flush(each)
        self._files_to_flush.clear()
        yield from self._leave()

    def forget(self, file: File, pages: Integers) -> None:
        """Drop pages that nobody holds and that are as they are stored, each at most once."""
        with self._lock:
            self.pool.forget(self.pool.numbers_of(file, pages))

    def _check_held(self, what: str, fixed: Fixed) -> None:
        if fixed.given_up:
            raise InvalidParameterError(what, f"{len(fixed.numbers)} pages of {fixed.file.name}", "they were given up")

    def _enter(self) -> Algorithm:
        if self._latch is not None:
            yield Acquire(self._latch)
        elif self._busy:
            raise RefusedError("buffer pool: another strand's pages are on their way; a pool that strands share must be made so")
        self._busy = True

    def _leave(self) -> Algorithm:
        self._busy = False
        if self._latch is not None:
            yield Release(self._latch)

    def _exchange(self, decide: Callable[[], Exchanges]) -> Algorithm:
        """Let the pool decide which pages enter and leave, under its latch, and read and write these."""
        yield from self._enter()
        try:
            with self._lock:
                exchanges = decide()
        except FlashsimError:
            yield from self._leave()
            raise
        for begin, end in self._groups(exchanges):
            group = exchanges.part(begin, end)
            leaves = group.written >= 0
            if leaves.any():
                yield from self._all(self._writes(group.victims[leaves], group.frames[leaves], group.written[leaves]))
            yield from self._read(group)
        yield from self._leave()

    def _groups(self, exchanges: Exchanges) -> Iterator[tuple[int, int]]:
        """Runs of exchanges of which all write-backs may come before all reads, and which have no more than are done at once."""
        count, frames = len(exchanges.pages), exchanges.frames
        if self._depth == 1:
            bounds = np.unique(np.concatenate([np.arange(0, count, _MOST), np.flatnonzero(exchanges.written >= 0), [count]]))
            yield from zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
            return
        order = np.argsort(frames, kind="stable")
        same, before = np.flatnonzero(np.diff(frames[order]) == 0), np.full(count, -1)
        before[order[same + 1]] = order[same]  # the exchange that brought in what leaves
        begin = 0
        while begin < count:
            entered = before[begin : begin + self._depth] >= begin
            end = begin + (int(entered.argmax()) if entered.any() else len(entered))
            yield begin, end
            begin = end

    def _by_file(self, numbers: Integers, *, in_turn: bool) -> Iterator[tuple[File, Integers | slice, Integers]]:
        """Files, which of some pages are theirs, and these pages as the file counts them; or, in turn, runs of pages of one file."""
        if len(self.pool.files) == 1:
            yield self.pool.files[0], slice(None), numbers
            return
        index, pages = self.pool.places_of(numbers)
        if in_turn:
            turns = [0, *(np.flatnonzero(np.diff(index)) + 1).tolist(), len(index)]
            groups: list[Integers | slice] = [slice(begin, end) for begin, end in pairwise(turns)]
        else:
            groups = [np.flatnonzero(index == each) for each in np.unique(index)]
        for which in groups:
            yield self.pool.files[index[which][0]], which, pages[which]

    def _writes(self, numbers: Integers, frames: Integers, lsns: Integers, *, runs: bool = False) -> list[Write]:
        """Writes of pages, a request each, or a request for each run of those that lie next to each other."""
        writes = []
        for file, which, pages in self._by_file(numbers, in_turn=False):
            self._files_to_flush[file] = None
            starts, counts = pages, np.ones(len(pages), np.int64)
            if runs:
                first = np.flatnonzero(np.diff(pages, prepend=-2) != 1)
                starts, counts = pages[first], np.diff(first, append=len(pages))
            writes.append(Write(file, starts, counts, self._tuples(file, pages, frames[which], lsns[which]), self._mode))
        return writes

    def _read(self, group: Exchanges) -> Algorithm:
        parts = list(self._by_file(group.pages, in_turn=self._depth == 1))
        reads = [Read(file, pages, np.ones(len(pages), np.int64), self._mode) for file, _, pages in parts]
        if self._depth > 1 and len(reads) > 1:
            answers = yield Psync(reads)
            assert isinstance(answers, tuple)
        else:
            answers = ()
            for read in reads:
                answer = yield read
                assert isinstance(answer, Tuples)
                answers += (answer,)
        for read, (_, which, _), tuples in zip(reads, parts, answers, strict=True):
            assert tuples is not None
            if holds_tokens(read.file):
                self._check_tokens(read, tuples, group.lsns[which])
            else:
                with self._lock:
                    self._content.put(group.frames[which], tuples, read.file.layout.row_format.columns)

    def _check_tokens(self, read: Read, tuples: Tuples, lsns: Integers) -> None:
        pages, changes = tuples.columns["page"], tuples.columns["lsn"]
        wrong = (pages != read.starts) | (changes != lsns)
        if wrong.any():
            at = int(wrong.argmax())
            page = f"page {read.starts[at]} of {read.file.name} was written after change {lsns[at]}"
            raise DamagedFileError(f"buffer pool: {page}, but holds page {pages[at]} as after change {changes[at]}")

    def _tuples(self, file: File, pages: Integers, frames: Integers, lsns: Integers) -> Tuples:
        if holds_tokens(file):
            return tokens(pages, lsns)
        return self._content.get(frames, file.layout.row_format.columns)

    def _all(self, writes: list[Write]) -> Algorithm:
        if self._depth > 1 and len(writes) > 1:
            yield Psync(writes)
        else:
            yield from writes
