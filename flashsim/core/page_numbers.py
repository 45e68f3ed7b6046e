"""Dense numbers of pages, in the order in which they are first seen: policies then keep a row a page, and no tables of their own.

An open table has 32 hashed bits and the number of each page in a word, so that a search reads the page's id but once, to compare it.  It
is three fifths to three quarters full: with the ids 19 to 24 bytes a page, 34 while it grows.  Then words move in the order in which they
stand, so that nothing is looked up.
"""

import numpy as np
from numba import types

from flashsim.core.errors import CapacityError
from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, kernel_of, lean_kernel
from flashsim.core.records import VECTOR
from flashsim.core.replacement import FIRST_PAGE, Numbers
from flashsim.core.request import Integers

_FEWEST = 1 << 10
#: References that are looked up together, so that what they miss in the processor's caches comes at once.
_TOGETHER = 64
_EMPTY = -1
_LOW = 0xFFFFFFFF
_NUMBER_BITS = 31
_NUMBERS = types.Array(types.int32, 1, "C")
_MOST = (1 << _NUMBER_BITS) - 1


class PageNumbers:
    """Numbers pages from `flashsim.core.replacement.FIRST_PAGE` on; any id of 64 bits will do.

    >>> pages = PageNumbers()
    >>> pages.number(np.array([70, -1, 70, 3])).tolist()
    [8, 9, 8, 10]
    >>> pages.ids().tolist()
    [70, -1, 3]
    """

    def __init__(self) -> None:
        self._count = 0
        self._words = np.full(_FEWEST, _EMPTY, np.int64)
        self._ids = np.empty(_room(_FEWEST), np.int64)
        self._hashes = np.empty(_TOGETHER, np.int64)

    def __len__(self) -> int:
        return self._count

    @property
    def memory(self) -> int:
        return self._words.nbytes + self._ids.nbytes

    def number(self, ids: Integers) -> Numbers:
        """The numbers of pages, shape (n,) each; a page that was not seen before gets the next one.

        Other threads run meanwhile.
        """
        ids = np.ascontiguousarray(ids, np.int64)
        numbers = np.empty(len(ids), np.int32)
        row = 0
        while True:
            row, self._count = _number(ids, row, numbers, self._words, self._ids, self._count, self._hashes)
            if row == len(ids):
                return numbers
            self._grow()

    def ids(self) -> Integers:
        """The id of each page, in the order of their numbers, shape (len(self),)."""
        return self._ids[: self._count]

    def _grow(self) -> None:
        entries = len(self._words) * 5 // 4
        if _room(entries) + FIRST_PAGE > _MOST:
            raise CapacityError(f"pages: {self._count:,} were seen, but at most {_MOST:,} can be numbered")
        words, self._words = self._words, np.full(entries, _EMPTY, np.int64)
        _move(words, self._words)
        del words
        ids, self._ids = self.ids(), np.empty(_room(entries), np.int64)
        self._ids[: self._count] = ids


def _room(entries: int) -> int:
    return entries * 3 // 4


@inlined_kernel
def _hash_page(page: int) -> int:
    """32 bits of which each depends on many of the page's 64."""
    mixed = (page & _LOW) * 0x2545F491 ^ (page >> 32) * 0x27D4EB2F
    return (mixed ^ mixed >> 31) & _LOW


@inlined_kernel
def _home(hashed: int, entries: int) -> int:
    mixed = hashed * 0x7FEB352D
    return ((mixed ^ mixed >> 31) & _LOW) * entries >> 32


@kernel_of(types.UniTuple(types.int64, 2)(VECTOR, types.int64, _NUMBERS, VECTOR, VECTOR, types.int64, VECTOR), unlocked=True)
def _number(ids: Integers, first: int, numbers: Numbers, words: Integers, pages: Integers, count: int, hashes: Integers) -> tuple[int, int]:
    """Number pages from `first` on; return where it ended, since the table might become too full, and how many pages were seen."""
    entries = words.shape[0]
    row = first
    while row < ids.shape[0]:
        together = min(_TOGETHER, ids.shape[0] - row)
        if count + together > pages.shape[0]:
            break
        for each in range(together):
            hashed = _hash_page(ids[row + each])
            hashes[each] = hashed
            prefetch(words, _home(hashed, entries))
        for each in range(together):
            hashed = hashes[each]
            place = _home(hashed, entries)
            while words[place] >= 0 and words[place] >> _NUMBER_BITS != hashed:
                place = place + 1 if place + 1 < entries else 0
            hashes[each] = place
            prefetch(pages, words[place] & _MOST)
        for each in range(together):
            page, place = ids[row + each], hashes[each]
            hashed = _hash_page(page)
            while words[place] >= 0 and (words[place] >> _NUMBER_BITS != hashed or pages[words[place] & _MOST] != page):
                place = place + 1 if place + 1 < entries else 0
            if words[place] < 0:
                words[place] = hashed << _NUMBER_BITS | count
                pages[count] = page
                count += 1
            numbers[row + each] = FIRST_PAGE + (words[place] & _MOST)
        row += together
    return row, count


@lean_kernel
def _move(words: Integers, into: Integers) -> None:
    entries = into.shape[0]
    for entry in range(words.shape[0]):
        if words[entry] >= 0:
            place = _home(words[entry] >> _NUMBER_BITS, entries)
            while into[place] >= 0:
                place = place + 1 if place + 1 < entries else 0
            into[place] = words[entry]
