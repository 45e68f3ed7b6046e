"""The page cache of a fetch: a number of frames that hold pages of both relations, and the only place that holds any.

Pages are numbered over both relations: page p of R is p, and page q of S is ``r.pages + q``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.page_access.plan import NONE, check_frames
from algorithms.results import BATCH
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Answer, Cpu, Emit, Read, Request, Work
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.rows import Tuples

Numbers = npt.NDArray[np.integer[Any]]

#: Most pages of one file that are asked for at once, each by a request that follows the one before it.
_MOST = 64
#: What may be wrong with a schedule.
_FULL, _THERE, _ABSENT, _APART = range(-4, 0)
_WRONG = {
    _FULL: "the frames are full and nothing is replaced",
    _THERE: "the page is there already",
    _ABSENT: "the page that it replaces is not there",
    _APART: "an entry is due whose pages are not both there",
}


@dataclass(frozen=True, eq=False)
class Schedule:
    """Which pages are fetched in which order, what each replaces, and which entries of the join index are then joined.

    Parameters
    ----------
    pages
        Shape (fetches,).
    victims
        The page that each of them replaces, or -1 for a free frame; shape (fetches,).
    r_rows, s_rows
        The entries, in the order in which they are joined; shape (n,) each.
    after
        After how many fetches of this schedule each entry is joined, ascending; shape (n,).
    """

    pages: Numbers
    victims: Numbers
    r_rows: Integers
    s_rows: Integers
    after: Numbers


class _Frames(NamedTuple):
    """The frame of each page, or -1; frames that are free, as a stack; how many these are; the row ids of each frame's tuples."""

    of_page: npt.NDArray[np.int32]
    free: npt.NDArray[np.int32]
    unused: Integers
    rows: Integers


class _Due(NamedTuple):
    """Of each entry the page and slot in R and in S, shape (4, n); after how many fetches it is due; the row ids found, shape (2, n)."""

    places: Integers
    after: Integers
    pairs: Integers


class PageCache:
    """Frames for pages of two relations.

    Parameters
    ----------
    r, s
        The relations' files.
    frames
        At least 2.
    most_frames
        That it may ever have; `frames` without it.
    r_parts, s_parts
        Which bytes of every page are fetched (`flashsim.execution.requests.Read`); whole pages without them.

    Raises
    ------
    InvalidParameterError
        Fewer than 2 frames.
    """

    def __init__(
        self,
        r: HeapFile,
        s: HeapFile,
        frames: int,
        most_frames: int | None = None,
        *,
        r_parts: tuple[tuple[int, int], ...] | None = None,
        s_parts: tuple[tuple[int, int], ...] | None = None,
    ) -> None:
        check_frames(frames)
        self.r, self.s, self.frames = r, s, frames
        self.parts = (r_parts, s_parts)
        total = r.pages + s.pages
        most = min(max(frames, most_frames or frames), max(2, total))
        slots = max((int(np.diff(file.first_rows).max(initial=0)) for file in (r, s)), default=0)
        self._state = _Frames(
            np.full(total, NONE, np.int32),
            np.arange(most, dtype=np.int32)[::-1].copy(),
            np.array([most]),
            np.empty((most, slots), np.int64),
        )
        self.fetches = 0

    @property
    def pages(self) -> int:
        """Pages of both relations."""
        return len(self._state.of_page)

    @property
    def held(self) -> int:
        """Pages that are in the cache."""
        return len(self._state.free) - int(self._state.unused[0])

    def resident(self) -> npt.NDArray[np.bool_]:
        """Which pages are in the cache, shape (pages,)."""
        return self._state.of_page >= 0

    def pages_of(self, r_rows: Integers, s_rows: Integers) -> tuple[Integers, Integers]:
        """The pages that rows of R and of S lie on.

        Raises
        ------
        InvalidParameterError
            A row that its relation does not have.
        """
        found = []
        for file, rows, first in ((self.r, r_rows, 0), (self.s, s_rows, self.r.pages)):
            if len(rows) and not 0 <= rows.min() <= rows.max() < file.first_rows[-1]:
                extreme = rows.min() if rows.min() < 0 else rows.max()
                raise InvalidParameterError("join index", f"row {extreme}", f"{file.name} has {file.first_rows[-1]} rows, from 0")
            found.append(np.searchsorted(file.first_rows, rows, side="right") - 1 + first)
        return found[0], found[1]

    def resize(self, frames: int, leaving: Integers | None = None) -> None:
        """Give the cache another number of frames; `leaving` are pages that are dropped for it.

        Raises
        ------
        InvalidParameterError
            Fewer than 2 frames.
        FlashsimError
            A page to drop is not there, or more pages are held than there would be frames.
        """
        check_frames(frames)
        for page in () if leaving is None else leaving:
            frame = self._state.of_page[page]
            if frame < 0:
                raise FlashsimError(f"page cache: page {page} cannot be dropped, since it is not there")
            self._state.of_page[page] = NONE
            self._state.free[self._state.unused[0]] = frame
            self._state.unused[0] += 1
        if self.held > frames:
            raise FlashsimError(f"page cache: {self.held} pages are held, but it is to have {frames} frames")
        self.frames = frames

    def follow(self, schedule: Schedule) -> Algorithm:
        """Fetch the pages of a schedule, each by a request of its own, and emit its entries.

        The row ids emitted are those found on the pages.

        Raises
        ------
        FlashsimError
            More pages than frames, a page that is there already, a victim that is not, or an entry whose pages are not both there.
        """
        r_pages, s_pages = self.pages_of(schedule.r_rows, schedule.s_rows)
        places = np.stack(
            [r_pages, schedule.r_rows - self.r.first_rows[r_pages], s_pages, schedule.s_rows - self.s.first_rows[s_pages - self.r.pages]]
        )
        yield from self._serve(schedule, places, np.empty((2, len(schedule.after)), np.int64), emits=True)

    def collect(self, rows: Integers, *, of_s: bool) -> Generator[Request, Answer, Integers]:
        """Fetch the pages that some rows of one relation lie on, one after another through a frame, but for the page that is there.

        Parameters
        ----------
        rows
            Ascending.
        of_s
            Of which relation.

        Returns
        -------
        Integers
            The row ids found on the pages, shape (n,).

        Raises
        ------
        InvalidParameterError
            A row that the relation does not have.
        FlashsimError
            As `follow`.
        """
        none, file = rows[:0], self.s if of_s else self.r
        numbers = self.pages_of(none, rows)[1] if of_s else self.pages_of(rows, none)[0]
        begins = np.flatnonzero(np.diff(numbers, prepend=NONE))
        pages, here = numbers[begins], np.flatnonzero(self.resident())
        there = len(pages) > 0 and len(here) > 0 and pages[0] == here[0]
        pages = pages[1:] if there else pages
        after = np.cumsum(np.diff(numbers, prepend=NONE) > 0) - there
        slots = rows - file.first_rows[numbers - self.r.pages * of_s]
        found = np.empty((2, len(rows)), np.int64)
        chain = Schedule(pages, np.concatenate([here[:1] if len(here) else [NONE], pages])[: len(pages)], none, none, after)
        yield from self._serve(chain, np.stack([numbers, slots, numbers, slots]), found, emits=False)
        return found[0]

    def _serve(self, schedule: Schedule, places: Integers, pairs: Integers, *, emits: bool) -> Algorithm:
        """Fetch the pages of a schedule, and look up what is found at pairs of places, pages and slots, when it is due."""
        pages, victims, after = (np.ascontiguousarray(each, np.int64) for each in (schedule.pages, schedule.victims, schedule.after))
        due, emitted, read = _Due(places, after, pairs), 0, 0
        done = self._apply(pages[:0], victims[:0], np.zeros(1, np.int64), pages[:0], due, 0, 0)
        for begin, end, of_s in _runs(pages >= self.r.pages, min(_MOST, self.frames)):
            file = self.s if of_s else self.r
            numbers = pages[begin:end] - self.r.pages * of_s
            tuples = yield Read(file, numbers, np.ones(len(numbers), np.int64), parts=self.parts[of_s], columns=("row",))
            assert isinstance(tuples, Tuples)
            read += len(tuples)
            self.fetches += end - begin
            done = self._apply(pages[begin:end], victims[begin:end], tuples.pages, tuples.rows, due, begin, done)
            if emits and (done - emitted >= BATCH or read >= BATCH):
                yield from _emit(pairs, emitted, done, read)
                emitted, read = done, 0
        if done < len(after):
            raise FlashsimError(f"schedule: {len(after) - done} entries are left at its end")
        yield from _emit(pairs, emitted if emits else done, done, read)

    def _apply(self, pages: Integers, victims: Integers, firsts: Integers, rows: Integers, due: _Due, begin: int, done: int) -> int:
        """As `_exchange`, but what is wrong is raised."""
        done, wrong = _exchange(self._state, self.frames, pages, victims, firsts, rows, due, begin, done)
        if wrong < 0:
            among = f"entry {done} of {len(due.after)}, among fetches {begin} to {begin + len(pages)}"
            raise FlashsimError(f"schedule: {_WRONG[wrong]} ({among})")
        return done


def _runs(of_s: npt.NDArray[np.bool_], most: int) -> list[tuple[int, int, bool]]:
    """Runs of pages of one relation, none longer than `most`."""
    turns = np.flatnonzero(np.diff(of_s)) + 1
    runs = []
    for begin, end in zip([0, *turns.tolist()], [*turns.tolist(), len(of_s)], strict=True):
        runs += [(first, min(first + most, end), bool(of_s[begin])) for first in range(begin, end, most)]
    return runs


def _emit(pairs: Integers, begin: int, end: int, read: int) -> Algorithm:
    for first in range(begin, end, BATCH):
        yield Emit(*pairs[:, first : min(end, first + BATCH)])
    if read or end > begin:
        yield Cpu({Work.READ_TUPLE: read, Work.EMIT: end - begin})


@kernel
def _exchange(
    state: _Frames,
    frames: int,
    pages: Integers,
    victims: Integers,
    firsts: Integers,
    rows: Integers,
    due: _Due,
    begin: int,
    done: int,
) -> tuple[int, int]:
    """Put fetched pages into frames, and look up the entries that are due; returns how many were looked up so far, and what is wrong."""
    for index in range(-1, pages.shape[0]):
        if index >= 0:
            page, victim = pages[index], victims[index]
            if state.of_page[page] >= 0:
                return done, _THERE
            if victim >= 0:
                if state.of_page[victim] < 0:
                    return done, _ABSENT
                state.free[state.unused[0]] = state.of_page[victim]
                state.unused[0] += 1
                state.of_page[victim] = -1
            if state.unused[0] == 0 or state.free.shape[0] - state.unused[0] >= frames:
                return done, _FULL
            state.unused[0] -= 1
            frame = state.free[state.unused[0]]
            state.of_page[page] = frame
            for slot in range(firsts[index], firsts[index + 1]):
                state.rows[frame, slot - firsts[index]] = rows[slot]
        while done < due.after.shape[0] and due.after[done] <= begin + index + 1:
            one, other = state.of_page[due.places[0, done]], state.of_page[due.places[2, done]]
            if one < 0 or other < 0:
                return done, _APART
            due.pairs[0, done], due.pairs[1, done] = state.rows[one, due.places[1, done]], state.rows[other, due.places[3, done]]
            done += 1
    return done, 0
