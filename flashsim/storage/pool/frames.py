"""Frames of a buffer pool and the pages in them, and what references bring in and put out: kernels, and policies in their plain form."""

from typing import NamedTuple

import numpy as np

from flashsim.core import replacement
from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.replacement import Numbers, PoolState
from flashsim.core.request import Integers
from flashsim.storage.pool.reference import TOOK_FREE, WAS_RESIDENT, WRITE_BACK, PlainPool, know_future, refer
from flashsim.storage.pool.simulation import Writes

# Columns of `Books.pages`: how often a page is fixed, and its frame.
PINS, FRAME = range(2)
# Counters: pages that are fixed, free frames, and the last log sequence number.
FIXED, FREE, LSN = range(3)
#: The row of `exchange`'s entries that says how many pages had entered.
AFTER = 5
#: References that the processor is told of ahead.
_AHEAD = 12


class Books(NamedTuple):
    """State of pages besides their flags; a row a page, as in `PoolState`."""

    pages: Numbers
    #: The log sequence number of each page's last change.
    lsns: Integers
    #: Free frames, as a stack.
    free: Numbers
    counters: Integers


def books(frames: int) -> Books:
    free = np.arange(frames, dtype=np.int32)[::-1].copy()
    return Books(np.zeros((0, 2), np.int32), np.zeros(0, np.int64), free, np.array([0, frames, 0]))


def with_pages(old: Books, rows: int) -> Books:
    """The books with so many rows."""
    more = rows - len(old.lsns)
    return old._replace(pages=np.pad(old.pages, ((0, more), (0, 0))), lsns=np.pad(old.lsns, (0, more))) if more else old


@inlined_kernel
def _hold(pool: PoolState, books: Books, row: int) -> None:
    if books.pages[row, PINS] == 0:
        books.counters[FIXED] += 1
        if pool.pages[row, replacement.FLAGS] & replacement.RESIDENT:
            pool.pages[row, replacement.FLAGS] |= replacement.PINNED
    books.pages[row, PINS] += 1


@inlined_kernel
def _let_go(pool: PoolState, books: Books, row: int) -> None:
    books.pages[row, PINS] -= 1
    if books.pages[row, PINS] == 0:
        books.counters[FIXED] -= 1
        pool.pages[row, replacement.FLAGS] &= ~replacement.PINNED


@lean_kernel
def hold(pool: PoolState, books: Books, rows: Numbers) -> bool:
    """Hold pages, those that are there from now on; returns whether there are frames for all, and if not, nothing has changed."""
    for index in range(rows.shape[0]):
        _hold(pool, books, rows[index])
    fit = books.counters[FIXED] <= pool.numbers[replacement.SIZE]
    if not fit:
        for index in range(rows.shape[0]):
            _let_go(pool, books, rows[index])
    return fit


@lean_kernel
def give_up(pool: PoolState, books: Books, rows: Numbers) -> int:
    """Give up pages; returns `NONE`, or which of them is not held, and then nothing has changed."""
    for index in range(rows.shape[0]):
        if books.pages[rows[index], PINS] == 0:
            for before in range(index):
                _hold(pool, books, rows[before])
            return index
        _let_go(pool, books, rows[index])
    return replacement.NONE


@inlined_kernel
def settle(books: Books, page: int, write: int, outcome: int) -> None:
    """Give a page that entered the free frame that was given back last, or that of its victim, and a change its number."""
    if outcome == TOOK_FREE:
        books.counters[FREE] -= 1
        books.pages[page, FRAME] = books.free[books.counters[FREE]]
    elif outcome > TOOK_FREE:
        books.pages[page, FRAME] = books.pages[outcome & (WRITE_BACK - 1), FRAME]
    if write:
        books.counters[LSN] += 1
        books.lsns[page] = books.counters[LSN]


@inlined_kernel
def note(books: Books, page: int, outcome: int, stored: int, entries: Integers, entered: int) -> int:
    """Write down a page that entered (`flashsim.storage.pool.buffer_pool.Exchanges`) behind so many; returns how many there are."""
    if outcome == WAS_RESIDENT:
        return entered
    victim = outcome & (WRITE_BACK - 1) if outcome > TOOK_FREE else 0
    entries[0, entered], entries[1, entered], entries[2, entered], entries[3, entered] = page, victim, books.pages[page, FRAME], stored
    entries[4, entered] = books.lsns[victim] if outcome >= WRITE_BACK else replacement.NONE
    return entered + 1


@lean_kernel
def exchange(
    policy: Policies, pool: PoolState, books: Books, rows: Numbers, writes: Writes, next_uses: Numbers, pin: bool, entries: Integers
) -> int:
    """Go through references; returns how many pages entered, which stand in `entries`, or which rule the policy broke.

    Rows of `entries`, shape (6, references), are the fields of `flashsim.storage.pool.buffer_pool.Exchanges`.
    """
    count, entered, pages = rows.shape[0], 0, pool.pages
    for index in range(count):
        if index + _AHEAD < count:
            prefetch(pages, rows[index + _AHEAD])
        row = int(rows[index])
        write = int(writes[index]) if writes.shape[0] else 0
        if next_uses.shape[0]:
            know_future(pool, next_uses[index])
        stored = books.lsns[row]
        outcome = refer(pool, policy, row, write)
        if outcome < 0:
            return outcome
        settle(books, row, write, outcome)
        entered = note(books, row, outcome, stored, entries, entered)
        if pin:
            pages[row, replacement.FLAGS] |= replacement.PINNED
        entries[AFTER, index] = entered
    return entered


@inlined_kernel
def leave(pool: PoolState, books: Books, page: int) -> None:
    """Let a page that is there leave its frame, unwritten."""
    pool.pages[page, replacement.FLAGS] &= ~replacement.RESIDENT
    pool.numbers[replacement.USED] -= 1
    books.free[books.counters[FREE]] = books.pages[page, FRAME]
    books.counters[FREE] += 1


@lean_kernel
def drop(pool: PoolState, policy: Policies, books: Books, rows: Numbers) -> None:
    for index in range(rows.shape[0]):
        row = int(rows[index])
        leave(pool, books, row)
        replacement.of_page(policy[replacement.FORGET])(pool, row)


def exchange_plainly(
    plain: PlainPool, pool: PoolState, books: Books, rows: Numbers, writes: Writes, next_uses: Numbers, pin: bool, entries: Integers
) -> int:
    flags, entered = pool.pages[:, replacement.FLAGS], 0
    plain.pins = set(np.flatnonzero(flags & replacement.PINNED).tolist())
    plain.resident = {row: bool(flags[row] & replacement.DIRTY) for row in plain.resident}
    for index, row in enumerate(rows.tolist()):
        write, stored = bool(len(writes) and writes[index]), int(books.lsns[row])
        outcome = plain.refer(row, write, int(next_uses[index]) if len(next_uses) else 0)
        if outcome == TOOK_FREE:
            pool.numbers[replacement.USED] += 1
        elif outcome > TOOK_FREE:
            flags[outcome & (WRITE_BACK - 1)] &= ~(replacement.RESIDENT | replacement.DIRTY)
        flags[row] |= replacement.RESIDENT | replacement.KNOWN | (replacement.DIRTY if write else 0)
        settle(books, row, write, outcome)
        entered = note(books, row, outcome, stored, entries, entered)
        if pin:
            flags[row] |= replacement.PINNED
            plain.pins.add(row)
        entries[AFTER, index] = entered
    pool.numbers[replacement.NOW] = plain.now
    return entered


def drop_plainly(plain: PlainPool, pool: PoolState, books: Books, rows: Numbers) -> None:
    for row in rows.tolist():
        leave(pool, books, row)
        plain.drop(row)
