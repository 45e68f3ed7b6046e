"""Exact reuse distances of page references: how many other pages were asked for since a page was asked for last.

A cache of c pages that replaces the least recently used serves just those references whose distance is less than c (Mattson, Gecsei, Slutz,
Traiger: Evaluation techniques for storage hierarchies, 1970), so that one pass tells the misses of caches of all sizes.

Each page holds a place on a line, that of its last reference, and a bit stands there; the distance is the number of bits behind it (Bennett
and Kruskal: LRU stack processing, 1975), which a Fenwick tree over words of 32 bits tells.  Where the line ends, the places in use move
together, so that memory grows with the distinct pages alone: a table of 12 bytes an entry, a quarter to five eighths empty, and a byte an
entry for the line.  That is 17 to 35 bytes a page, and at most 52 while the table grows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import Integers

Places = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]

#: The distance of a page that is asked for the first time.
FIRST = -1

_FEWEST = 1 << 10
#: Places of the line for each entry of the table.
_LONGER = 4
# What `state` counts: distinct pages, and the next free place of the line.
_PAGES, _NEXT = range(2)


class ReuseDistances:
    """Takes references in batches.

    Examples
    --------
    >>> distances = ReuseDistances()
    >>> distances.add(np.array([7, 8, 9, 7, 7, 8])).tolist()
    [-1, -1, -1, 2, 0, 2]
    >>> distances.pages().tolist()
    [9, 7, 8]
    """

    def __init__(self) -> None:
        self._state = np.zeros(2, np.int64)
        self._new_table(_FEWEST)
        self._new_line()

    def _new_table(self, entries: int) -> None:
        self._keys, self._places = np.zeros(entries, np.int64), np.full(entries, -1, np.int32)

    def _new_line(self) -> None:
        words = _LONGER * len(self._keys) // 32
        self._bits, self._tree = np.zeros(words, np.uint32), np.zeros(words + 1, np.int32)
        _fill(self._bits, self._tree, self._state)

    @property
    def distinct(self) -> int:
        """How many pages were asked for."""
        return int(self._state[_PAGES])

    @property
    def memory(self) -> int:
        """Bytes of all tables."""
        return sum(array.nbytes for array in (self._keys, self._places, self._bits, self._tree))

    def add(self, pages: Integers) -> Integers:
        """Take references to pages, numbers from 0, shape (n,); return their distances, `FIRST` where a page was not known, shape (n,)."""
        pages = np.ascontiguousarray(pages, np.int64)
        distances = np.empty(len(pages), np.int64)
        row = 0
        while True:
            row = _refer(pages, row, distances, self._keys, self._places, self._bits, self._tree, self._state)
            if row == len(pages):
                return distances
            _move_together(self._places, self._bits, self._tree)
            if 4 * self.distinct >= 3 * len(self._keys):
                keys, places = self._keys, self._places
                self._new_table(2 * len(keys))
                _enter(keys, places, self._keys, self._places)
            del self._bits, self._tree
            self._new_line()

    def pages(self) -> Integers:
        """All pages, from the least to the most recently used, shape (distinct,)."""
        used = np.flatnonzero(self._places >= 0)
        return self._keys[used[np.argsort(self._places[used])]]


@inlined_kernel
def _find(page: int, keys: Integers, places: Places) -> int:
    """Where the table has a page, or would have it."""
    mixed = (page & 0xFFFFFFFF) * 0x2545F491 ^ (page >> 32) * 0x27D4EB2F
    entry = (mixed ^ mixed >> 31) & (keys.shape[0] - 1)
    while places[entry] >= 0 and keys[entry] != page:
        entry = (entry + 1) & (keys.shape[0] - 1)
    return entry


@inlined_kernel
def _ones(word: int) -> int:
    """How many of 32 bits are 1."""
    word -= word >> 1 & 0x55555555
    word = (word & 0x33333333) + (word >> 2 & 0x33333333)
    word = word + (word >> 4) & 0x0F0F0F0F
    return word * 0x01010101 >> 24 & 0xFF


@inlined_kernel
def _until(place: int, bits: Words, tree: Places) -> int:
    """How many bits stand up to a place, that included."""
    word = place >> 5
    count = _ones(int(bits[word]) & (2 << (place & 31)) - 1)
    while word > 0:
        count += tree[word]
        word &= word - 1
    return count


@inlined_kernel
def _change(word: int, by: int, tree: Places) -> None:
    word += 1
    while word < tree.shape[0]:
        tree[word] += by
        word += word & -word


@lean_kernel
def _refer(
    pages: Integers, first: int, distances: Integers, keys: Integers, places: Places, bits: Words, tree: Places, state: Integers
) -> int:
    """Take references from `first` on; return where it ended, since the line was full or the table three quarters full."""
    known, following = state[_PAGES], state[_NEXT]
    row = first
    while row < pages.shape[0] and following < 32 * bits.shape[0] and 4 * known < 3 * keys.shape[0]:
        page = pages[row]
        entry = _find(page, keys, places)
        word = following >> 5
        before = -1
        if places[entry] >= 0:
            place = int(places[entry])
            distances[row] = known - _until(place, bits, tree)
            before = place >> 5
            bits[before] = int(bits[before]) & ~(1 << (place & 31))
        else:
            distances[row] = FIRST
            keys[entry] = page
            known += 1
        bits[word] = int(bits[word]) | 1 << (following & 31)
        if before != word:
            _change(word, 1, tree)
            if before >= 0:
                _change(before, -1, tree)
        places[entry] = following
        following += 1
        row += 1
    state[_PAGES], state[_NEXT] = known, following
    return row


@lean_kernel
def _move_together(places: Places, bits: Words, tree: Places) -> None:
    """Give the pages the first places of the line, in the same order."""
    for entry in range(places.shape[0]):
        if places[entry] >= 0:
            places[entry] = _until(int(places[entry]), bits, tree) - 1


@lean_kernel
def _enter(keys: Integers, places: Places, into_keys: Integers, into_places: Places) -> None:
    """Copy a table into a larger one that is empty."""
    for entry in range(keys.shape[0]):
        if places[entry] >= 0:
            new = _find(keys[entry], into_keys, into_places)
            into_keys[new], into_places[new] = keys[entry], places[entry]


@lean_kernel
def _fill(bits: Words, tree: Places, state: Integers) -> None:
    """Let bits stand on the first places of an empty line, one a page."""
    for word in range(bits.shape[0]):
        count = min(32, max(0, state[_PAGES] - 32 * word))
        bits[word] = (1 << count) - 1
        tree[word + 1] += count
        above = word + 1 + (word + 1 & -(word + 1))
        if above < tree.shape[0]:
            tree[above] += tree[word + 1]
    state[_NEXT] = state[_PAGES]
