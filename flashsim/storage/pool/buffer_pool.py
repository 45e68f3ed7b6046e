"""A buffer pool's books: which pages of files are in its frames, who holds them, and which are newer than what is stored.

It does no input or output.  What a call brings in and puts out stands in its answer (`Exchanges`), and whoever has it done
(`flashsim.execution.buffer_manager`) does so before the next call.  Pages of all files of a pool are numbered together, file after file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core import replacement
from flashsim.core.errors import InvalidParameterError
from flashsim.core.replacement import Numbers, ReplacementPolicy
from flashsim.core.request import Integers
from flashsim.storage.heap_file import File
from flashsim.storage.pool.frames import (
    AFTER,
    FIXED,
    FRAME,
    LSN,
    PINS,
    books,
    drop,
    drop_plainly,
    exchange,
    exchange_plainly,
    give_up,
    hold,
    with_pages,
)
from flashsim.storage.pool.reference import PlainPool, breach, kernels_of, with_rows
from flashsim.storage.pool.simulation import Counts, Writes


class Exchanges(NamedTuple):
    """Outcome of some references: the pages that entered, in order, shape (n,) each."""

    pages: Integers
    #: The page that left for each, or `NONE`.
    victims: Integers
    #: The frame of each, which was its victim's.
    frames: Integers
    #: The log sequence number of each page's last change, as it is stored.
    lsns: Integers
    #: The same of a victim that must be written back; `NONE` of one that need not, or if none left.
    written: Integers
    #: Number of pages that had entered when each reference was answered, shape (references,).
    after: Integers

    def part(self, begin: int, end: int) -> Exchanges:
        return self._replace(**{name: getattr(self, name)[begin:end] for name in self._fields[:-1]})


class BufferPool:
    """Frames for pages of files, as long as they are now, which a replacement policy divides.

    The policy's kernels do so, or its plain form if it has no others; the seed is that of what it draws.

    Raises
    ------
    InvalidParameterError
        No frame, or too many pages.
    FlashsimError
        The policy's plain form cannot be made.
    """

    def __init__(self, policy: ReplacementPolicy, frames: int, files: Sequence[File], seed: int = 0) -> None:
        self.policy, self.files = policy, tuple(files)
        self.first = np.cumsum([0, *(file.pages for file in self.files)])
        if not 1 <= frames < 1 << 31:
            raise InvalidParameterError("size", f"{frames} pages", "a pool has at least one, and below 2^31")
        if self.pages >= (1 << 31) - replacement.FIRST_PAGE:
            raise InvalidParameterError("pages", self.pages, "a pool's files have fewer than 2^31")
        self._plain = PlainPool(policy, frames, seed) if policy.kernels is None else None
        self.state = policy.state(frames, 1 << 10, seed)
        self._books = books(self.most_held)
        self._numbers = np.zeros(self.pages, np.int32)  # of a page that was ever referenced
        self._pages = np.zeros(0, np.int32)  # the reverse, by row
        self._rows_in_use = replacement.FIRST_PAGE
        self._make_room()
        self._counts = np.zeros(6, np.int64)

    @property
    def counts(self) -> Counts:
        references, writes, hits, write_misses, evictions, write_backs = self._counts.tolist()
        first = int(np.count_nonzero(self.state.pages[:, replacement.FLAGS] & replacement.KNOWN))
        return Counts(references, writes, hits, first, write_misses, evictions, write_backs)

    @property
    def pages(self) -> int:
        return int(self.first[-1])

    @property
    def frames(self) -> int:
        return int(self.state.numbers[replacement.SIZE])

    @property
    def most_held(self) -> int:
        """Frames that are ever in use: there are no more than pages."""
        return min(self.frames, self.pages)

    @property
    def used_frames(self) -> int:
        return int(self.state.numbers[replacement.USED])

    def numbers_of(self, file: File, pages: Integers) -> Integers:
        """Pages of a file as the pool numbers them."""
        if file not in self.files:
            raise InvalidParameterError("file", file.name, "it does not belong to the buffer pool")
        index = self.files.index(file)
        first, end = self.first[index : index + 2].tolist()
        if len(pages) and not 0 <= pages.min() <= pages.max() < end - first:
            extreme = pages.min() if pages.min() < 0 else pages.max()
            raise InvalidParameterError("fix", f"page {extreme} of {file.name}", f"it has {end - first} pages, from 0")
        return pages + first

    def places_of(self, pages: Integers) -> tuple[Integers, Integers]:
        """The reverse: which of the files, and which page of it, shape (n,) each."""
        index = np.searchsorted(self.first, pages, side="right") - 1
        return index, pages - self.first[index]

    def fix(self, pages: Integers) -> Exchanges:
        """Hold pages in frames until they are given up as often, shape (n,); a page may come more than once."""
        rows = self._rows(pages)
        if not hold(self.state, self._books, rows):
            free = self.frames - int(self._books.counters[FIXED])
            text = f"{len(np.unique(rows))} pages"
            raise InvalidParameterError("fix", text, f"{free} of {self.frames} frames are not fixed")
        return self._refer(rows, None, None, pin=True)

    def unfix(self, pages: Integers) -> None:
        rows = self._numbers[pages]
        wrong = give_up(self.state, self._books, rows)
        if wrong >= 0:
            raise InvalidParameterError("unfix", self.name_of(int(pages[wrong])), "it is not fixed")

    def refer(self, pages: Integers, writes: Writes | None = None, next_uses: Numbers | None = None) -> Exchanges:
        """Let pages be fixed, changed by those references that write, and given up, each before the next, shape (n,) each.

        Each change takes the next log sequence number.
        """
        if self._books.counters[FIXED] == self.frames and not self.resident(pages).all():
            raise InvalidParameterError("fix", f"{len(pages)} pages", f"0 of {self.frames} frames are not fixed")
        return self._refer(self._rows(pages), writes, next_uses, pin=False)

    def change(self, pages: Integers, lsns: Integers | None = None) -> Integers:
        """Mark fixed pages dirty: they are newer than what is stored of them.

        Pages, shape (n,), stand at most once each; `lsns` are log sequence numbers of these changes, shape (n,), the next ones without it.

        Returns
        -------
        Integers
            The log sequence numbers.
        """
        rows, counters = self._numbers[pages], self._books.counters
        if lsns is None:
            lsns = np.arange(len(pages)) + counters[LSN] + 1
        for wrong, why in (
            (self._books.pages[rows, PINS] == 0, "it is not fixed"),
            (self._books.lsns[rows] >= lsns, "its last change has no lower log sequence number"),
        ):
            if wrong.any():
                raise InvalidParameterError("change", self.name_of(int(pages[wrong.argmax()])), why)
        self.state.pages[rows, replacement.FLAGS] |= replacement.DIRTY
        self._books.lsns[rows] = lsns
        counters[LSN] = max(counters[LSN], lsns.max(initial=0))
        return lsns

    def mark_clean(self, pages: Integers, lsns: Integers) -> None:
        """Note that pages were written as they were after the changes of these numbers; later changes remain to be written."""
        rows = self._numbers[pages]
        self.state.pages[rows[self._books.lsns[rows] == lsns], replacement.FLAGS] &= ~replacement.DIRTY

    def forget(self, pages: Integers) -> None:
        """Drop pages, those of them that are there; each at most once."""
        rows = self._numbers[pages]
        flags = self.state.pages[rows, replacement.FLAGS]
        for bit, why in ((replacement.PINNED, "it is fixed"), (replacement.DIRTY, "it has changes that are not written")):
            if (flags & bit).any():
                raise InvalidParameterError("forget", self.name_of(int(pages[(flags & bit > 0).argmax()])), why)
        leaving = rows[flags & replacement.RESIDENT > 0]
        if self._plain is None:
            drop(self.state, self.policy.kernels, self._books, leaving)
        else:
            drop_plainly(self._plain, self.state, self._books, leaving)

    def resident(self, pages: Integers) -> npt.NDArray[np.bool_]:
        return self.state.pages[self._numbers[pages], replacement.FLAGS] & replacement.RESIDENT > 0

    def frames_of(self, pages: Integers) -> Integers:
        return self._books.pages[self._numbers[pages], FRAME]

    def lsns_of(self, pages: Integers) -> Integers:
        """Log sequence numbers of their last changes, shape (n,)."""
        return self._books.lsns[self._numbers[pages]]

    def dirty_pages(self) -> Integers:
        """Pages that are newer than what is stored of them, ascending."""
        return np.sort(self._pages[np.flatnonzero(self.state.pages[:, replacement.FLAGS] & replacement.DIRTY)]).astype(np.int64)

    def name_of(self, page: int) -> str:
        index, number = self.places_of(np.array([page]))
        return f"page {number[0]} of {self.files[index[0]].name}"

    def _rows(self, pages: Integers) -> Numbers:
        """Rows of pages, which are new in the order in which they come first."""
        rows = self._numbers[pages]
        if not rows.all():
            new, at = np.unique(pages[rows == 0], return_index=True)
            new = new[np.argsort(at)]
            first, self._rows_in_use = self._rows_in_use, self._rows_in_use + len(new)
            self._make_room()
            self._numbers[new] = np.arange(first, self._rows_in_use)
            self._pages[first : self._rows_in_use] = new
            self.state.pages[first : self._rows_in_use, replacement.FLAGS] = self.places_of(new)[0] << replacement.TYPE_SHIFT
            rows = self._numbers[pages]
        return rows

    def _make_room(self) -> None:
        self.state = with_rows(self.state, self._rows_in_use)
        self._books = with_pages(self._books, len(self.state.pages))
        self._pages = np.pad(self._pages, (0, len(self.state.pages) - len(self._pages)))

    def _refer(self, rows: Numbers, writes: Writes | None, next_uses: Numbers | None, *, pin: bool) -> Exchanges:
        entries = np.empty((6, len(rows)), np.int64)
        writing = np.zeros(0, np.uint8) if writes is None else writes
        future = self.policy.future_of(next_uses)
        arguments = (self.state, self._books, rows, writing, future, pin, entries)
        with kernels_of(self.policy.name, self.state):
            outcome = exchange(self.policy.kernels, *arguments) if self._plain is None else exchange_plainly(self._plain, *arguments)
        if outcome < 0:
            raise breach(self.policy.name, outcome, int(self.state.numbers[replacement.NOW]))
        pages, victim_rows, frames, lsns, lsns_to_write = entries[:AFTER, :outcome]
        after = entries[AFTER]
        misses = np.diff(after, prepend=0) > 0
        write_misses, evictions, write_backs = writing[misses[: len(writing)]].sum(), (victim_rows > 0).sum(), (lsns_to_write >= 0).sum()
        more = (len(rows), writing.sum(), len(rows) - outcome, write_misses, evictions, write_backs)
        self._counts += np.array(more, np.int64)
        victims = np.where(victim_rows > 0, self._pages[victim_rows], replacement.NONE)
        return Exchanges(self._pages[pages].astype(np.int64), victims.astype(np.int64), frames, lsns, lsns_to_write, after)
