"""Reuse distances, exact or in a sample of the pages: how many other pages were asked for since a page was asked for last.

A cache of c pages that replaces the least recently used serves just those references whose distance is less than c (Mattson, Gecsei, Slutz,
Traiger: Evaluation techniques for storage hierarchies, 1970), so that one pass tells the misses of caches of all sizes.

Each page holds a place on a line, that of its last reference, and a bit stands there; the distance is the number of bits behind it (Bennett
and Kruskal: LRU stack processing, 1975), which a Fenwick tree over words of 32 bits tells.  Where the line ends, the places in use move
together, so that memory grows with the distinct pages alone: 19 to 24 bytes a page for its number (`flashsim.core.page_numbers`), and
6 to 9 for its place and the line.

In a sample, whether a page belongs to it is told by its hash, so that all its references belong to it or none, and of the pages between
two references as large a share as of all: a distance in the sample stands for so many times more pages (Waldspurger, Park, Garthwaite,
Ahmad: Efficient MRC construction with SHARDS, FAST 2015, with a threshold that is halved where theirs sinks page by page).  It
is even besides, and has of 128 pages in a row just as many as its rate says, and of 128 such rows: of pages that are numbered without
gaps a hash alone takes 1 % more or less where it takes 10,000, and a curve is off by as much.
"""

import numpy as np
import numpy.typing as npt

from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.page_numbers import PageNumbers
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
_HASH_BITS = 24
_ALL = 1 << _HASH_BITS


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


def share_of_pages(rate: float) -> float:
    """The share nearest to a rate that a sample can have."""
    return max(1, round(rate * _ALL)) / _ALL


def sampled_rows(pages: Integers, rate: float) -> Integers:
    """References to pages of a sample of a rate, in their order, shape (n,)."""
    into = np.empty(len(pages), np.int64)
    with np.errstate(over="ignore"):
        count = _select(np.ascontiguousarray(pages, np.int64), round(share_of_pages(rate) * _ALL), into)
    return into[:count]


def parts_of(pages: Integers, parts: int) -> npt.NDArray[np.uint8]:
    """The part of a sample that each page belongs to, shape (n,)."""
    into = np.empty(len(pages), np.uint8)
    with np.errstate(over="ignore"):
        _divide(np.ascontiguousarray(pages, np.int64), parts, into)
    return into


@inlined_kernel
def _mix(page: np.uint64) -> np.uint64:
    mixed = page * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)


@inlined_kernel
def _within(page: np.uint64) -> np.uint64:
    """The place of a page among the 128 of its row, each with another one."""
    # 79 is odd and 128 times the golden section: neighbours are far apart
    return page * np.uint64(79) + (_mix(page >> np.uint64(7)) >> np.uint64(40)) & np.uint64(127)


@inlined_kernel
def _below(page: np.uint64, limit: np.uint64) -> bool:
    """True if a page is in a sample: its number of `_HASH_BITS` is below a limit."""
    within, first = _within(page), limit >> np.uint64(_HASH_BITS - 7)
    if within != first:
        return bool(within < first)
    row = page >> np.uint64(7)
    last = _within(row) << np.uint64(10) | _mix(row) >> np.uint64(20) & np.uint64(1023)
    return bool(last < limit & np.uint64((1 << _HASH_BITS - 7) - 1))


@lean_kernel
def _select(pages: Integers, limit: int, into: Integers) -> int:
    """Tell the rows of pages of a sample; returns how many they are."""
    count = 0
    for place in range(pages.shape[0]):
        into[count] = place
        count += int(_below(np.uint64(pages[place]), np.uint64(limit)))
    return count


@lean_kernel
def _divide(pages: Integers, parts: int, into: npt.NDArray[np.uint8]) -> None:
    """Tell parts evenly: of 128 pages in a row an even sample has about one."""
    for place in range(pages.shape[0]):
        row = np.uint64(pages[place]) >> np.uint64(7)
        shift = _mix(row // np.uint64(parts)) >> np.uint64(40)
        into[place] = (row + shift) % np.uint64(parts)
