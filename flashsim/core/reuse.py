"""Exact reuse distances of page references: how many other pages were asked for since a page was asked for last.

A cache of c pages that replaces the least recently used serves just those references whose distance is less than c (Mattson, Gecsei, Slutz,
Traiger: Evaluation techniques for storage hierarchies, 1970), so that one pass tells the misses of caches of all sizes.

Each page holds a place on a line, that of its last reference, and a bit stands there; the distance is the number of bits behind it (Bennett
and Kruskal: LRU stack processing, 1975), which a Fenwick tree over words of 32 bits tells.  Where the line ends, the places in use move
together, so that memory grows with the distinct pages alone: 19 to 24 bytes a page for its number (`flashsim.core.page_numbers`), and
6 to 9 for its place and the line.
"""

import numpy as np
import numpy.typing as npt

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.page_numbers import PageNumbers
from flashsim.core.prefetch import prefetch
from flashsim.core.replacement import FIRST_PAGE, Numbers
from flashsim.core.request import Integers

Places = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]

#: The distance of a page that is asked for the first time.
FIRST = -1

_FEWEST = 1 << 10
#: Places of the line for each page that there is room for.
_LONGER = 8
#: References that the processor is told of ahead.
_AHEAD = 16
# What `state` counts: pages on the line, and its next free place.
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
        self._state, self._numbers = np.zeros(2, np.int64), PageNumbers()
        self._places = np.full(_FEWEST, -1, np.int32)
        self._new_line()

    def _new_line(self) -> None:
        words = _LONGER * len(self._places) // 32
        self._bits, self._tree = np.zeros(words, np.uint32), np.zeros(words + 1, np.int32)
        _fill(self._bits, self._tree, self._state)

    @property
    def distinct(self) -> int:
        return len(self._numbers)

    @property
    def memory(self) -> int:
        return self._numbers.memory + sum(array.nbytes for array in (self._places, self._bits, self._tree))

    def add(self, pages: Integers) -> Integers:
        """Take references to pages, numbers of 64 bits, shape (n,); return their distances, `FIRST` of pages not known, shape (n,)."""
        numbers, distances = self._numbers.number(pages), np.empty(len(pages), np.int64)
        if FIRST_PAGE + self.distinct > len(self._places):
            _move_together(self._places, self._bits, self._tree)
            room = max(FIRST_PAGE + self.distinct, len(self._places) * 4 // 3)
            self._places = np.concatenate([self._places, np.full(room - len(self._places), -1, np.int32)])
            self._new_line()
        row = 0
        while True:
            row = _refer(numbers, row, distances, self._places, self._bits, self._tree, self._state)
            if row == len(numbers):
                return distances
            _move_together(self._places, self._bits, self._tree)
            self._new_line()

    def pages(self) -> Integers:
        """All pages, from the least to the most recently used, shape (distinct,)."""
        return self._numbers.ids()[np.argsort(self._places[FIRST_PAGE : FIRST_PAGE + self.distinct])]


@inlined_kernel
def _ones(word: int) -> int:
    """How many of 32 bits are 1."""
    word -= word >> 1 & 0x55555555
    word = (word & 0x33333333) + (word >> 2 & 0x33333333)
    word = word + (word >> 4) & 0x0F0F0F0F
    return word * 0x01010101 >> 24 & 0xFF


@inlined_kernel
def _until(place: int, bits: Words, tree: Places) -> int:
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
def _refer(numbers: Numbers, first: int, distances: Integers, places: Places, bits: Words, tree: Places, state: Integers) -> int:
    """Take references from `first` on; return where it ended, since the line was full."""
    known, following = state[_PAGES], state[_NEXT]
    row = first
    while row < numbers.shape[0] and following < 32 * bits.shape[0]:
        if row + _AHEAD < numbers.shape[0]:
            prefetch(places, numbers[row + _AHEAD])
        page = numbers[row]
        word = following >> 5
        place = int(places[page])
        before = -1
        if place >= 0:
            distances[row] = known - _until(place, bits, tree)
            before = place >> 5
            bits[before] = int(bits[before]) & ~(1 << (place & 31))
        else:
            distances[row] = FIRST
            known += 1
        bits[word] = int(bits[word]) | 1 << (following & 31)
        if before != word:
            _change(word, 1, tree)
            if before >= 0:
                _change(before, -1, tree)
        places[page] = following
        following += 1
        row += 1
    state[_PAGES], state[_NEXT] = known, following
    return row


@lean_kernel
def _move_together(places: Places, bits: Words, tree: Places) -> None:
    """Give the pages the first places of the line, in the same order."""
    for page in range(places.shape[0]):
        if places[page] >= 0:
            places[page] = _until(int(places[page]), bits, tree) - 1


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
