"""Misses of a pool by its size, all sizes from one pass over the references: exact, or of a sample of pages and with its error.

Where a policy ranks all pages alike whatever the pool's size, and the page of the highest rank leaves, a larger pool holds all that a
smaller one holds, and one stack tells what pools of all sizes hold: its first c pages are those of a pool of c frames (Mattson, Gecsei,
Slutz, Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal 9 (2), 1970).  A page that is asked for comes to the top;
the page that was there moves down, and at each place the better of the two that meet stays, down to where the page came from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from traces.summary.reuse import FIRST, SampledDistances

Reals = npt.NDArray[np.float64]

#: Parts of a sample whose curves tell how much it is off.
PARTS = 8
#: A sample is not made thinner than its rate says, or than this many pages (it has half as many at least).
LEAST_PAGES = 1 << 12
#: Two-sided confidence of an error.
CONFIDENCE = 0.95
# Columns of a stack: the page at a place, its rank, and at which place the page of a number is.
_PAGE, _RANK, _DEPTH = range(3)
#: References that are taken at once, so that an interrupt is not waited for.
_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Steps:
    """Hits by size, ascending, shape (n,) each; between two sizes those of the smaller."""

    sizes: Integers
    hits: Reals

    def at(self, frames: Integers) -> Reals:
        place = np.searchsorted(self.sizes, frames, side="right")
        return np.where(place > 0, self.hits[place - 1], 0.0) if len(self.sizes) else np.zeros(len(frames))


@dataclass(frozen=True)
class MissCurve:
    """Misses by size of the pool."""

    #: Number of references.
    references: int
    #: Number of distinct pages; an estimate if there is a sample.
    pages: int
    #: The share of pages that were looked at: 1 where all is exact.
    rate: float
    #: Steps of all pages that were looked at, and of disjoint parts of them.
    whole: Steps = field(repr=False)
    parts: Sequence[Steps] = field(default=(), repr=False)

    @property
    def sizes(self) -> Integers:
        """Sizes at which there are fewer misses than with one frame less, ascending, shape (n,)."""
        return self.whole.sizes

    def quantile(self, share: float) -> int:
        """The smallest pool that serves so large a share of the references that any pool serves; 0 if none does.

        For LRU, one more than that percentile of reuse distances.
        """
        sizes, hits = self.whole.sizes, self.whole.hits
        return int(sizes[np.searchsorted(hits, share * hits[-1])]) if len(sizes) else 0

    def misses(self, frames: npt.ArrayLike) -> Reals:
        return self._misses(self.whole, np.asarray(frames, np.int64))

    def ratio(self, frames: npt.ArrayLike) -> Reals:
        return self.misses(frames) / max(1, self.references)

    def error(self, frames: npt.ArrayLike) -> Reals:
        """Half the width of the ratio's 95 % confidence interval, shape (n,); 0 where all pages were looked at.

        The parts of a sample are samples themselves, and no page is in two of them: the mean of their ratios is off by Student's t times
        their standard deviation over the square root of their number.
        """
        frames = np.asarray(frames, np.int64)
        if self.rate == 1 or len(self.parts) < 2:
            return np.zeros(len(frames))
        ratios = np.array([self._misses(part, frames) for part in self.parts]) / max(1, self.references)
        count = len(ratios)
        return float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * ratios.std(axis=0, ddof=1) / np.sqrt(count)

    def _misses(self, steps: Steps, frames: Integers) -> Reals:
        return np.clip(self.references - steps.at(frames), 0, self.references)


class _Counts:
    """Counts of each distance, by scale."""

    def __init__(self) -> None:
        self.weight = 0.0
        self.by_scale: dict[float, Integers] = {}

    def add(self, distances: Integers, scale: float) -> None:
        counts = self.by_scale.get(scale, np.zeros(0, np.int64))
        most = int(distances.max(initial=-1)) + 1
        if most > len(counts):
            counts = np.concatenate([counts, np.zeros(max(most - len(counts), len(counts) // 8), np.int64)])
        self.weight += scale * len(distances)
        _count(distances, counts)
        self.by_scale[scale] = counts

    @property
    def memory(self) -> int:
        return sum(counts.nbytes for counts in self.by_scale.values())


def _steps(references: int, *parts: _Counts) -> Steps:
    """Hits by size; a sample that has fewer references than its rate promises lacks hot pages, which any size serves: SHARDS-adj.

    A distance of a sample stands for the middle of those that are as likely.
    """
    rows = [(scale, np.flatnonzero(counts), counts) for each in parts for scale, counts in each.by_scale.items()]
    frames = (places * scale + (scale - 1) / 2 + 1 for scale, places, _ in rows)
    sizes = np.concatenate([np.zeros(0, np.int64), *(each.astype(np.int64) for each in frames)])
    hits = np.concatenate([np.zeros(0), *(counts[places] * scale for scale, places, counts in rows)])
    missing = references - sum(each.weight for each in parts)
    if abs(missing) > 0.5:
        sizes, hits = np.append(sizes, 1), np.append(hits, missing)
    order = np.argsort(sizes, kind="stable")
    sizes, totals = sizes[order], np.cumsum(hits[order])
    last = np.append(sizes[1:] != sizes[:-1], True)[: len(sizes)]
    return Steps(sizes[last], totals[last])


class LruCurve:
    """The curve of a pool that replaces the least recently used page; takes references in batches.

    Parameters
    ----------
    rate
        The share of pages to look at; 1: all, and the curve is exact; 0: as few as `least_pages` allows, in constant memory.
    least_pages
        The sample is halved down to the rate while it has more pages; 0: it has its rate from the begin.

    Examples
    --------
    >>> curve = LruCurve()
    >>> curve.add(np.array([7, 8, 9, 7, 7, 8]))
    >>> curve.curve().misses([1, 2, 3]).tolist()
    [5.0, 5.0, 3.0]
    """

    def __init__(self, rate: float = 1.0, least_pages: int = LEAST_PAGES) -> None:
        self.references = 0
        parts = PARTS if rate < 1 else 0
        begin = 1.0 if least_pages else rate
        self._distances = SampledDistances(begin, rate, least_pages, parts)
        # what was counted while all pages were looked at, and what the sample and each of its parts tell from then on
        self._exact, self._counts = _Counts(), [_Counts() for _ in range(1 + parts)]

    def add(self, pages: Integers) -> None:
        """Take references to pages, any numbers from 0, shape (n,)."""
        self.references += len(pages)
        for part in self._distances.add(pages):
            (self._exact if part.scale == 1 else self._counts[part.part]).add(part.distances, part.scale)

    @property
    def memory(self) -> int:
        return self._distances.memory + sum(counts.memory for counts in [self._exact, *self._counts])

    def curve(self) -> MissCurve:
        rate = self._distances.rate
        whole, *parts = (_steps(self.references, self._exact, counts) for counts in self._counts)
        return MissCurve(self.references, round(self._distances.distinct / rate), rate, whole, parts)


def steps_of(distances: Integers, scale: float, references: int) -> Steps:
    """Hits by size of a policy that has stack distances.

    Parameters
    ----------
    distances
        Distances by `stack_distances`, of all references or of those to a sample of pages, shape (n,).
    scale
        Pages that a page of the sample stands for.
    references
        References to all pages.
    """
    counts = _Counts()
    counts.add(distances, scale)
    return _steps(references, counts)


@lean_kernel
def _count(distances: Integers, counts: Integers) -> None:
    for row in range(distances.shape[0]):
        if distances[row] != FIRST:
            counts[distances[row]] += 1


def next_uses(numbers: Integers) -> Integers:
    """The next reference to the same page, counted from 0; behind all of them where there is none, shape (n,).

    `numbers` are references to pages that are numbered from 0, shape (n,).
    """
    numbers = np.ascontiguousarray(numbers, np.int64)
    into = np.empty(len(numbers), np.int64)
    _look_back(numbers, np.full(int(numbers.max(initial=-1)) + 1, len(numbers), np.int64), into)
    return into


def stack_distances(numbers: Integers, ranks: Integers) -> Integers:
    """Pages above each page in the stack when it was referenced; `FIRST` where it was not known, shape (n,).

    A reference takes time in proportion to its distance: some 0.3 ns a page of it.

    Parameters
    ----------
    numbers
        References to pages that are numbered from 0, shape (n,).
    ranks
        Ranks of pages from each reference to the next one of the same page; the page of the largest rank leaves first: for OPT,
        `next_uses`; for MRU, the number of the reference itself; shape (n,).
    """
    numbers = np.ascontiguousarray(numbers, np.int64)
    into = np.empty(len(numbers), np.int64)
    stack = np.zeros((int(numbers.max(initial=-1)) + 1, 3), np.int64)
    stack[:, _DEPTH] = FIRST
    ranks, count = np.ascontiguousarray(ranks, np.int64), 0
    for begin in range(0, len(numbers), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        count = _refer(numbers[part], ranks[part], stack, into[part], count)
    return into


@lean_kernel
def _look_back(numbers: Integers, latest: Integers, into: Integers) -> None:
    for row in range(numbers.shape[0] - 1, -1, -1):
        into[row] = latest[numbers[row]]
        latest[numbers[row]] = row


@lean_kernel
def _refer(numbers: Integers, ranks: Integers, stack: Integers, into: Integers, count: int) -> int:
    for row in range(numbers.shape[0]):
        page = numbers[row]
        depth = stack[page, _DEPTH]
        into[row] = depth
        if depth < 0:
            depth = count
            count += 1
        mover, rank = page, ranks[row]
        for place in range(depth):
            if place == 0 or stack[place, _RANK] > rank:
                stack[place, _PAGE], mover = mover, stack[place, _PAGE]
                stack[place, _RANK], rank = rank, stack[place, _RANK]
                stack[stack[place, _PAGE], _DEPTH] = place
        stack[depth, _PAGE], stack[depth, _RANK], stack[mover, _DEPTH] = mover, rank, depth
    return count
