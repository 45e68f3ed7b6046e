"""Misses of a pool by its size, all sizes from one pass over the references: exact, or of a sample of pages and with its error."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from traces.file.page_trace import references_of
from traces.file.schema import Batches
from traces.summary.reuse import FIRST, ReuseDistances, parts_of, sampled_rows, share_of_pages

Reals = npt.NDArray[np.float64]

#: Parts of a sample whose curves tell how much it is off.
PARTS = 8
#: A sample is not made thinner than its rate says, or than this many pages (it has half as many at least).
LEAST_PAGES = 1 << 12
#: What has to be exact for traces of ordinary size, and keep to memory that does not grow, is made thinner above so many pages.
MOST_PAGES = 1 << 22
#: Two-sided confidence of an error.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class HitSteps:
    """Hits by size, ascending, shape (n,) each; between two sizes those of the smaller."""

    sizes: Integers
    hits: Reals

    def at(self, frames: Integers) -> Reals:
        place = np.searchsorted(self.sizes, frames, side="right")
        return np.where(place > 0, self.hits[place - 1], 0.0) if len(self.sizes) else np.zeros(len(frames))


@dataclass(frozen=True)
class MissCurve:
    """Misses by size of the pool."""

    references: int
    #: Number of distinct pages; an estimate if there is a sample.
    pages: int
    #: The share of pages that were looked at: 1 where all is exact.
    rate: float
    #: Steps of all pages that were looked at, and of disjoint parts of a sample, from when not all pages were in it.
    whole: HitSteps = field(repr=False)
    parts: Sequence[HitSteps] = field(default=(), repr=False)

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

    def doubling(self) -> Integers:
        """One page, two, four and so on, up to the first pool that serves all that any pool serves, shape (n,)."""
        return 1 << np.arange(int(self.sizes.max(initial=1) - 1).bit_length() + 1)

    def misses(self, frames: npt.ArrayLike) -> Reals:
        return np.clip(self.references - self.whole.at(np.asarray(frames, np.int64)), 0, self.references)

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
        ratios = np.clip([part.at(frames) for part in self.parts], 0, self.references) / max(1, self.references)
        count = len(ratios)
        return float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * ratios.std(axis=0, ddof=1) / np.sqrt(count)


class _Hits:
    """Hits by distance among the pages of a sample, of the scale that came last: those of a finer one are moved to it."""

    def __init__(self) -> None:
        self.weight, self.scale = 0.0, 1.0
        self.by_distance: Reals = np.zeros(0)

    def add(self, distances: Integers, scale: float) -> None:
        if scale != self.scale:
            places = (np.arange(len(self.by_distance)) * (self.scale / scale)).astype(np.int64)
            self.scale, self.by_distance = scale, np.bincount(places, self.by_distance).astype(np.float64)
        more = int(distances.max(initial=-1)) + 1 - len(self.by_distance)
        if more > 0:
            self.by_distance = np.append(self.by_distance, np.zeros(max(more, len(self.by_distance) // 8)))
        self.weight += scale * len(distances)
        _count(distances, scale, self.by_distance)


def _steps(references: float, *parts: _Hits) -> HitSteps:
    """Hits by size; a sample that has fewer references than its rate promises lacks hot pages, which any size serves: SHARDS-adj.

    A distance of a sample stands for the middle of those that are as likely.
    """
    places = [np.flatnonzero(each.by_distance) for each in parts]
    frames = (place * each.scale + (each.scale - 1) / 2 + 1 for place, each in zip(places, parts, strict=True))
    sizes = np.concatenate([each.astype(np.int64) for each in frames])
    hits = np.concatenate([each.by_distance[place] for place, each in zip(places, parts, strict=True)])
    missing = references - sum(each.weight for each in parts)
    if abs(missing) > 0.5:
        sizes, hits = np.append(sizes, 1), np.append(hits, missing)
    order = np.argsort(sizes, kind="stable")
    sizes, totals = sizes[order], np.cumsum(hits[order])
    last = np.append(sizes[1:] != sizes[:-1], True)[: len(sizes)]
    return HitSteps(sizes[last], totals[last])


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
        parts = PARTS if rate < 1 else 0
        self.references, self._least, self._least_pages = 0, share_of_pages(rate), least_pages
        self._rate = 1.0 if least_pages else self._least
        # of the sample, and of each of its parts: distances, and hits from when not all pages are in it
        self._distances = [ReuseDistances() for _ in range(1 + parts)]
        self._exact, self._sampled = _Hits(), [_Hits() for _ in range(1 + parts)]

    def add(self, pages: Integers) -> None:
        """Take references to pages, any numbers from 0, shape (n,)."""
        self.references += len(pages)
        row = 0
        while row < len(pages):
            # so few at once that the sample grows to no more than about twice its size before it is halved
            stop = row + max(1, int(self._least_pages / self._rate)) if self._rate > self._least else len(pages)
            self._refer(pages[row:stop])
            row = stop
            while self._distances[0].distinct > self._least_pages and self._rate > self._least:
                self._rate = max(self._rate / 2, self._least)
                smaller = self._divide(self._distances[0].pages())
                self._distances = [ReuseDistances() for _ in self._distances]
                for distances, own in zip(self._distances, smaller, strict=True):
                    distances.add(own)

    def _refer(self, pages: Integers) -> None:
        if self._rate == 1:
            self._exact.add(self._distances[0].add(pages), 1)
            return
        for number, own in enumerate(self._divide(pages)):
            self._sampled[number].add(self._distances[number].add(own), (PARTS if number else 1) / self._rate)

    def _divide(self, pages: Integers) -> list[Integers]:
        """References to pages of the sample, and to those of each of its parts."""
        sample = pages[sampled_rows(pages, self._rate)]
        part = parts_of(sample, PARTS)
        return [sample, *(sample[part == number] for number in range(PARTS))]

    @property
    def memory(self) -> int:
        hits = sum(each.by_distance.nbytes for each in [self._exact, *self._sampled])
        return hits + sum(each.memory for each in self._distances)

    def curve(self) -> MissCurve:
        whole = _steps(self.references, self._exact, self._sampled[0])
        parts = [_steps(self.references - self._exact.weight, hits) for hits in self._sampled[1:]] if self._rate < 1 else []
        return MissCurve(self.references, round(self._distances[0].distinct / self._rate), self._rate, whole, parts)


def curve_of(requests: Batches) -> MissCurve:
    """The curve of what requests refer to on pages of 4 KiB: exact up to `MOST_PAGES`, in memory that does not grow with the trace."""
    curve = LruCurve(0.0, MOST_PAGES)
    for batch in requests:
        for references in references_of(batch):
            curve.add(references.pages)
    return curve.curve()


@lean_kernel
def _count(distances: Integers, scale: float, into: Reals) -> None:
    for row in range(distances.shape[0]):
        if distances[row] != FIRST:
            into[distances[row]] += scale
