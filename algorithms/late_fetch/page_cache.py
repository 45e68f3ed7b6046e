"""The page cache of a fetch: a number of frames that hold pages of both relations, and the only place that holds any.

Pages are numbered over both relations: page p of R is p, and page q of S is ``r.pages + q``.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.files import BATCH
from algorithms.page_access.plan import NONE, check_frames
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Answer, Cpu, Emit, PageReads, Read, Request, Series, Work
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.rows import Tuples

Numbers = npt.NDArray[np.integer[Any]]

#: Most pages of one file that are asked for at once, each by a request that follows the one before it; and most pages of a series.
_MOST, _MOST_IN_SERIES = 64, 1024
#: Errors of a schedule.
_FULL, _THERE, _ABSENT, _APART = range(-4, 0)
_WRONG = {
    _FULL: "the frames are full and nothing is replaced",
    _THERE: "the page is there already",
    _ABSENT: "the page that it replaces is not there",
    _APART: "an entry is due whose pages are not both there",
}


@dataclass(frozen=True, eq=False)
class Schedule:
    """Order of page fetches, the page that each replaces, and the entries of the join index that are then joined."""

    #: Shape (fetches,).
    pages: Numbers
    #: The page that each of them replaces, or -1 for a free frame; shape (fetches,).
    victims: Numbers
    #: The entries, in the order in which they are joined; shape (n,) each.
    r_rows: Integers
    s_rows: Integers
    #: After how many fetches of this schedule each entry is joined, ascending; shape (n,).  Or, shape (n, 2), after how many its row of R
    #: is taken from its page, and then that of S, where they need not be in memory together.
    after: Numbers

    @property
    def joined(self) -> Numbers:
        """After how many fetches each entry is joined, shape (n,)."""
        return self.after if self.after.ndim == 1 else self.after[:, 1]


class _Frames(NamedTuple):
    """The frame of each page, or -1; frames that are free, as a stack; how many these are; the row ids of each frame's tuples."""

    of_page: npt.NDArray[np.int32]
    free: npt.NDArray[np.int32]
    unused: Integers
    rows: Integers


class _Rows(NamedTuple):
    """The page and slot of each row, shape (2, n); the number of fetches after which it is due; the row ids, shape (n,)."""

    places: Integers
    after: Integers
    row_ids: Integers


class PageCache:
    """Frames for pages of two relations, at least 2 at first, and never more than then.

    With `in_series`, pages that are fetched one after another are one `Series`, whatever file they are of.

    Raises
    ------
    InvalidParameterError
        Fewer than 2 frames.
    """

    def __init__(self, r: HeapFile, s: HeapFile, frames: int, *, in_series: bool = False) -> None:
        check_frames(frames)
        self.in_series = in_series
        self.r, self.s, self.frames, self.fetches = r, s, frames, 0
        total = r.pages + s.pages
        most = min(frames, max(2, total))
        slots = max((int(np.diff(file.first_rows).max(initial=0)) for file in (r, s)), default=0)
        free = np.arange(most, dtype=np.int32)[::-1].copy()
        self._state = _Frames(np.full(total, NONE, np.int32), free, np.array([most]), np.empty((most, slots), np.int64))

    @property
    def pages(self) -> int:
        return len(self._state.of_page)

    @property
    def used_frames(self) -> int:
        return len(self._state.free) - int(self._state.unused[0])

    def resident(self) -> npt.NDArray[np.bool_]:
        return self._state.of_page >= 0

    def pages_of(self, r_rows: Integers, s_rows: Integers) -> tuple[Integers, Integers]:
        """The pages that rows of R and of S lie on."""
        numbers = []
        for file, rows, first in ((self.r, r_rows, 0), (self.s, s_rows, self.r.pages)):
            if len(rows) and not 0 <= rows.min() <= rows.max() < file.first_rows[-1]:
                extreme = rows.min() if rows.min() < 0 else rows.max()
                raise InvalidParameterError("join index", f"row {extreme}", f"{file.name} has {file.first_rows[-1]} rows, from 0")
            numbers.append(np.searchsorted(file.first_rows, rows, side="right") - 1 + first)
        return numbers[0], numbers[1]

    def resize(self, frames: int, leaving: Integers | None = None) -> None:
        """Give the cache another number of frames, 1 at least; `leaving` are pages that are dropped for it."""
        check_frames(frames, least=1)
        for page in () if leaving is None else leaving:
            frame = self._state.of_page[page]
            if frame < 0:
                raise FlashsimError(f"page cache: page {page} cannot be dropped, since it is not there")
            self._state.of_page[page] = NONE
            self._state.free[self._state.unused[0]] = frame
            self._state.unused[0] += 1
        if self.used_frames > frames:
            raise FlashsimError(f"page cache: {self.used_frames} pages are held, but it is to have {frames} frames")
        self.frames = frames

    def follow(self, schedule: Schedule) -> Algorithm:
        """Fetch the pages of a schedule, each by a request of its own, and emit its entries.

        The row ids emitted are those found on the pages.
        """
        places, sides = np.empty((2, 2 * len(schedule.r_rows)), np.int64), (schedule.r_rows, schedule.s_rows)
        for side, (pages, rows, file) in enumerate(zip(self.pages_of(*sides), sides, (self.r, self.s), strict=True)):
            places[:, side::2] = pages, rows - file.first_rows[pages - self.r.pages * side]
        after = np.repeat(schedule.after, 2) if schedule.after.ndim == 1 else schedule.after.reshape(-1)
        yield from self._serve(schedule, _Rows(places, np.ascontiguousarray(after, np.int64), np.empty(len(after), np.int64)), emits=True)

    def collect(self, rows: Integers, *, of_s: bool) -> Generator[Request, Answer, Integers]:
        """Fetch the pages that some rows of one relation lie on, one after another through a frame, but for the page that is there.

        Rows ascend; they are S's or R's.

        Returns
        -------
        Integers
            The row ids found on the pages, shape (n,).
        """
        none, file = rows[:0], self.s if of_s else self.r
        numbers = self.pages_of(none, rows)[1] if of_s else self.pages_of(rows, none)[0]
        begins = np.flatnonzero(np.diff(numbers, prepend=NONE))
        pages, here = numbers[begins], np.flatnonzero(self.resident())
        there = len(pages) > 0 and len(here) > 0 and pages[0] == here[0]
        pages = pages[1:] if there else pages
        after = np.cumsum(np.diff(numbers, prepend=NONE) > 0) - there
        slots = rows - file.first_rows[numbers - self.r.pages * of_s]
        row_ids = np.empty(len(rows), np.int64)
        chain = Schedule(pages, np.concatenate([here[:1] if len(here) else [NONE], pages])[: len(pages)], none, none, after)
        yield from self._serve(chain, _Rows(np.stack([numbers, slots]), after, row_ids), emits=False)
        return row_ids

    def _serve(self, schedule: Schedule, rows: _Rows, *, emits: bool) -> Algorithm:
        """Fetch the pages of a schedule, and look up the rows that are wanted when they are due; of entries, those of R and S in turn."""
        pages, victims = (np.ascontiguousarray(each, np.int64) for each in (schedule.pages, schedule.victims))
        emitted, read = 0, 0
        count = self._apply(pages[:0], victims[:0], np.zeros(1, np.int64), pages[:0], rows, 0, 0)
        for begin, end, read_pages in self._reads(pages):
            tuples = yield read_pages
            assert isinstance(tuples, Tuples)
            read += len(tuples)
            self.fetches += end - begin
            count = self._apply(pages[begin:end], victims[begin:end], tuples.pages, tuples.rows, rows, begin, count)
            if emits and (count // 2 - emitted >= BATCH or read >= BATCH):
                yield from _emit(rows.row_ids, emitted, count // 2, read)
                emitted, read = count // 2, 0
        if count < len(rows.after):
            raise FlashsimError(f"schedule: {-(-(len(rows.after) - count) // 2)} entries are left at its end")
        yield from _emit(rows.row_ids, emitted if emits else count // 2, count // 2, read)

    def _reads(self, pages: Integers) -> Iterator[tuple[int, int, Request]]:
        """Requests for pages, in order, with the begin and end of the pages of each: in series, or runs of pages of one relation."""
        of_s = pages >= self.r.pages
        if self.in_series:
            of, numbers = of_s.astype(np.int64), pages - self.r.pages * of_s
            for begin in range(0, len(pages), _MOST_IN_SERIES):
                end = min(begin + _MOST_IN_SERIES, len(pages))
                yield begin, end, Series(PageReads((self.r, self.s), of[begin:end], numbers[begin:end], ("row",)))
            return
        turns, most = (np.flatnonzero(np.diff(of_s)) + 1).tolist(), min(_MOST, self.frames)
        for begin, end in zip([0, *turns], [*turns, len(of_s)], strict=True):
            file, before = (self.s, self.r.pages) if of_s[begin:end].any() else (self.r, 0)
            for first in range(begin, end, most):
                last = min(first + most, end)
                yield first, last, Read(file, pages[first:last] - before, np.ones(last - first, np.int64), columns=("row",))

    def _apply(self, pages: Integers, victims: Integers, firsts: Integers, rows: Integers, due: _Rows, begin: int, at: int) -> int:
        """Exchange pages (see `_exchange`), and raise what is wrong."""
        at, wrong = _exchange(self._state, self.frames, pages, victims, firsts, rows, due, begin, at)
        if wrong < 0:
            among = f"entry {at // 2} of {len(due.after) // 2}, among fetches {begin} to {begin + len(pages)}"
            raise FlashsimError(f"schedule: {_WRONG[wrong]} ({among})")
        return at


def _emit(row_ids: Integers, begin: int, end: int, read: int) -> Algorithm:
    r_rows, s_rows = np.ascontiguousarray(row_ids[2 * begin : 2 * end].reshape(-1, 2).T)
    for first in range(0, end - begin, BATCH):
        yield Emit(r_rows[first : first + BATCH], s_rows[first : first + BATCH])
    if read or end > begin:
        yield Cpu({Work.READ_TUPLE: read, Work.EMIT: end - begin})


@kernel
def _exchange(
    state: _Frames, frames: int, pages: Integers, victims: Integers, firsts: Integers, rows: Integers, due: _Rows, begin: int, at: int
) -> tuple[int, int]:
    """Put fetched pages into frames, and look up the rows that are due; returns how many were looked up so far, and what is wrong."""
    for index in range(-1, pages.shape[0]):
        if index >= 0:
            page, victim = pages[index], victims[index]
            if state.of_page[page] >= 0:
                return at, _THERE
            if victim >= 0:
                if state.of_page[victim] < 0:
                    return at, _ABSENT
                state.free[state.unused[0]] = state.of_page[victim]
                state.unused[0] += 1
                state.of_page[victim] = -1
            if state.unused[0] == 0 or state.free.shape[0] - state.unused[0] >= frames:
                return at, _FULL
            state.unused[0] -= 1
            frame = state.free[state.unused[0]]
            state.of_page[page] = frame
            for slot in range(firsts[index], firsts[index + 1]):
                state.rows[frame, slot - firsts[index]] = rows[slot]
        while at < due.after.shape[0] and due.after[at] <= begin + index + 1:
            frame = state.of_page[due.places[0, at]]
            if frame < 0:
                return at, _APART
            due.row_ids[at] = state.rows[frame, due.places[1, at]]
            at += 1
    return at, 0
