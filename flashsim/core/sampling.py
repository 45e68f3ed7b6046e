"""Reuse distances in a sample of the pages, which becomes thinner as more pages come.

Whether a page belongs to the sample is told by its hash, so that all its references belong to it or none, and of the pages between two
references as large a share as of all: a distance in the sample stands for so many times more pages (Waldspurger, Park, Garthwaite, Ahmad:
Efficient MRC construction with SHARDS, FAST 2015, with a threshold that is halved where theirs sinks page by page).

A sample that is even besides has of 128 pages in a row just as many as its rate says, and of 128 such rows: of pages that are numbered
without gaps a hash alone takes 1 % more or less where it takes 10,000, and a curve is off by as much.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import Integers
from flashsim.core.reuse import ReuseDistances

_HASH_BITS = 24
_ALL = 1 << _HASH_BITS


class Part(NamedTuple):
    """What was found of references to pages of a sample."""

    #: 0: the whole sample; from 1 on: a part of its pages.
    part: int
    #: As `ReuseDistances.add` has them, of the references to pages of this part.
    distances: Integers
    #: How many pages, and how many references, each stands for.
    scale: float


class SampledDistances:
    """Takes references in batches.

    Parameters
    ----------
    rate
        The share of pages in the sample at the begin.
    least
        The share at which it is not made thinner any more.
    most_pages
        The sample is halved while it has more pages.
    parts
        Into so many parts the pages of the sample are divided, of which each gives distances of its own once not all pages are in it.
    even
        Whether it has as many of each 128 pages in a row; else their hash alone decides.

    Examples
    --------
    >>> sampled = SampledDistances(most_pages=2)
    >>> [found.distances.tolist() for found in sampled.add(np.array([7, 8, 7]))]
    [[-1, -1], [1]]
    """

    def __init__(self, rate: float = 1.0, least: float = 0.0, most_pages: int = 1 << 22, parts: int = 0, even: bool = True) -> None:
        self._limit, self._least = _limit(rate), _limit(least)
        self._most, self._parts, self._even = most_pages, parts, even
        self._stacks = [ReuseDistances() for _ in range(1 + parts)]

    @property
    def rate(self) -> float:
        return self._limit / _ALL

    @property
    def distinct(self) -> int:
        return self._stacks[0].distinct

    @property
    def memory(self) -> int:
        return sum(stack.memory for stack in self._stacks)

    def add(self, pages: Integers) -> Iterator[Part]:
        """Take references to pages, shape (n,); nothing is taken before what is found is asked for."""
        row = 0
        while row < len(pages):
            # so few at once that the sample grows to no more than about twice its size before it is halved
            stop = row + max(1, int(self._most / self.rate)) if self._limit > self._least else len(pages)
            yield from self._refer(pages[row:stop])
            row = stop

    def _refer(self, pages: Integers) -> Iterator[Part]:
        scale, whole = 1 / self.rate, self._stacks[0]
        sample = self._chosen(pages)
        yield Part(0, whole.add(sample), scale)
        if self._limit < _ALL:
            for number, own in self._divided(sample):
                yield Part(number, self._stacks[number].add(own), scale * self._parts)
        while self.distinct > self._most and self._limit > self._least:
            self._limit = max(self._limit // 2, self._least)
            kept = self._chosen(self._stacks[0].pages())
            self._stacks = [ReuseDistances() for _ in self._stacks]
            for number, own in [(0, kept), *self._divided(kept)]:
                self._stacks[number].add(own)

    def _divided(self, sample: Integers) -> Iterator[tuple[int, Integers]]:
        part = parts_of(sample, self._parts) if self._parts else sample
        for number in range(self._parts):
            yield number + 1, sample[part == number]

    def _chosen(self, pages: Integers) -> Integers:
        return pages if self._limit == _ALL else pages[_rows(pages, self._limit, self._even)]


def sampled_rows(pages: Integers, rate: float) -> Integers:
    """Which references go to pages of an even sample of a rate, in their order, shape (n,)."""
    return _rows(pages, _limit(rate), True)


def parts_of(pages: Integers, parts: int) -> npt.NDArray[np.uint8]:
    """Which of so many parts of a sample each page belongs to, shape (n,)."""
    into = np.empty(len(pages), np.uint8)
    with np.errstate(over="ignore"):
        _divide(np.ascontiguousarray(pages, np.int64), parts, into)
    return into


def _limit(rate: float) -> int:
    return max(1, round(rate * _ALL))


def _rows(pages: Integers, limit: int, even: bool) -> Integers:
    into = np.empty(len(pages), np.int64)
    with np.errstate(over="ignore"):
        count = _select(np.ascontiguousarray(pages, np.int64), limit, even, into)
    return into[:count]


@inlined_kernel
def _mixed(page: np.uint64) -> np.uint64:
    mixed = page * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)


@inlined_kernel
def _within(page: np.uint64) -> np.uint64:
    """The place of a page among the 128 of its row, each with another one."""
    # 79 is odd and 128 times the golden section: neighbours are far apart
    return page * np.uint64(79) + (_mixed(page >> np.uint64(7)) >> np.uint64(40)) & np.uint64(127)


@inlined_kernel
def _below(page: np.uint64, limit: np.uint64, even: bool) -> bool:
    """Whether a page is in a sample: whether a number that it has, of `_HASH_BITS`, is below a limit."""
    if not even:
        return bool(_mixed(page) >> np.uint64(64 - _HASH_BITS) < limit)
    within, first = _within(page), limit >> np.uint64(_HASH_BITS - 7)
    if within != first:
        return bool(within < first)
    row = page >> np.uint64(7)
    last = _within(row) << np.uint64(10) | _mixed(row) >> np.uint64(20) & np.uint64(1023)
    return bool(last < limit & np.uint64((1 << _HASH_BITS - 7) - 1))


@lean_kernel
def _select(pages: Integers, limit: int, even: bool, into: Integers) -> int:
    """Tell the rows of pages of a sample; returns how many they are."""
    count = 0
    for place in range(pages.shape[0]):
        into[count] = place
        count += int(_below(np.uint64(pages[place]), np.uint64(limit), even))
    return count


@lean_kernel
def _divide(pages: Integers, parts: int, into: npt.NDArray[np.uint8]) -> None:
    """Tell parts evenly: of 128 pages in a row an even sample has about one."""
    for place in range(pages.shape[0]):
        row = np.uint64(pages[place]) >> np.uint64(7)
        shift = _mixed(row // np.uint64(parts)) >> np.uint64(40)
        into[place] = (row + shift) % np.uint64(parts)
