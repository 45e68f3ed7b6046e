"""Parts of the formulas of joins that fetch rows late: scans of keys, files that chance fills, and fetches by a join index.

RARE-join and FlashJoin are counted by bytes of minipages: a scan of keys, what their join writes and reads again, the join index where it
does not fit in memory, and each page that is needed once; how many those are is the expected number that random rows lie on (Yao).
"""

import math
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import numpy as np
from scipy.stats import binom

from flashsim.core.errors import InvalidParameterError
from models.allocation.buffers import HybridAllocation, LateAllocation, SimpleHashAllocation, exact
from models.join_costs.base import FORMULAS, Late, LateSide, Parts, PhaseCounts, Sizes, Traffic, ceil_div
from models.page_fetching import yao

#: Beyond so many standard deviations a file has no tuples, or all of them.
_DEVIATIONS = 8


def late_of(sizes: Sizes) -> Late:
    """Parameters of late fetching, which a formula must have."""
    if sizes.late is None:
        raise InvalidParameterError("sizes", "no rows", "this formula needs rows, digests and results of the join beside pages")
    return sizes.late


def pages_with_matches(pages: int, side: LateSide) -> float:
    """Expected pages of a relation that have a row which joins, if these lie anywhere."""
    return yao(side.rows, side.rows / pages, side.matches) if pages and side.rows else 0.0


def pages_by_chance(tuples: int, a_page: int, share: float = 1.0) -> Iterator[tuple[int, float]]:
    """Possible numbers of pages of a file that each of some tuples goes to with one probability, and their probabilities.

    Examples
    --------
    >>> [(pages, round(chance, 3)) for pages, chance in pages_by_chance(20, 10, 0.5)]
    [(0, 0.0), (1, 0.588), (2, 0.412)]
    """
    apart = _DEVIATIONS * math.sqrt(tuples * share * (1 - share))
    least, most = (math.ceil(bound / a_page) for bound in (max(0.0, tuples * share - apart), min(tuples, tuples * share + apart)))
    at_most = binom.cdf(a_page * np.arange(least, most + 1), tuples, share)
    yield from zip(range(least, most + 1), np.diff(at_most, prepend=0.0).tolist(), strict=True)


def file_pages(tuples: int, a_page: int, share: float = 1.0) -> float:
    """The expected number of them; the last page need not be full.

    Examples
    --------
    >>> file_pages(100, 10), file_pages(101, 10), round(file_pages(100, 10, 0.5), 2)
    (10.0, 11.0, 5.45)
    """
    return sum(pages * chance for pages, chance in pages_by_chance(tuples, a_page, share))


def parts_read(pages: int, parts: Parts, seeks: int) -> Traffic:
    return Traffic(seeks, pages * parts.requests, pages, pages * (1 - parts.share), further=pages * (parts.requests - 1))


def join_of_keys(kernel: str, sizes: Sizes, late: Late, memory: int) -> tuple[list[PhaseCounts], float]:
    """A join of keys with row ids by its own formula, for which minipages of both relations are scanned in the place of base files.

    Returns its phases, and the share of the results that the first of several finds.
    """
    keys = Sizes(late.r.key_pages, late.s.key_pages, late.r.digests, late.s.digests, memory, sizes.fudge, late=late)
    formula = FORMULAS.load(kernel)
    buffers = formula.allocate(keys, late.latency_ratio, late.access_ratio)
    first, *rest = formula.counts(keys, buffers)
    scans = 1 if rest or first.writes.pages else (first.reads.pages - keys.r) // max(1, keys.s)
    more = first.reads.pages - keys.r - scans * keys.s
    again = Traffic(0, math.ceil(first.reads.requests * more / max(1, first.reads.pages)), more)
    scanned = parts_read(sizes.r, late.r.keys, 1) + parts_read(scans * sizes.s, late.s.keys, scans)
    resident = buffers.workspace / exact(sizes.fudge) if isinstance(buffers, HybridAllocation | SimpleHashAllocation) else 0
    return [PhaseCounts(first.name, scanned + again, first.writes), *rest], float(resident) / max(1, keys.r)


def with_fetches(
    phases: list[PhaseCounts], found_first: float, sizes: Sizes, a: LateAllocation, *, sort_again: bool
) -> tuple[PhaseCounts, ...]:
    """Phases of a join of keys, the join index that it writes if memory does not hold it, and the fetches.

    `found_first` is the share of the results that the first of several phases finds; the last one finds the others.  To sort again is to
    sort entries with what was fetched, as far as they do not fit, rather than write them by ranges of pages.
    """
    late, memory = late_of(sizes), sizes.memory
    sides = {"R": (sizes.r, late.r), "S": (sizes.s, late.s)}
    labels = [label for label, (_, side) in sides.items() if side.columns.share]
    if not labels:
        return tuple(phases)
    at = next((label for label in labels if sides[label][0] * sides[label][1].columns.share > memory / 2), labels[-1])
    other = next((label for label in labels if label != at), None)
    pages = {label: math.ceil(pages_with_matches(*sides[label])) for label in labels}
    fetches = {label: parts_read(pages[label], sides[label][1].columns, pages[label]) for label in labels}
    fan_in = (memory - 1) // 2
    index = _SortedRuns(late.index, a.index)
    phases = _with_index(phases, found_first, index)
    settled = index.settle(memory, fan_in)
    free = memory - 1 - (len(index.runs) or late.index)
    if other is None or pages[other] * sides[other][1].columns.share <= free:
        rest = [PhaseCounts(f"fetch {other}", _neighbours(fetches[other], pages[other], *sides[other]))] if other else []
        here = PhaseCounts(f"fetch {at}", fetches[at] + settled.reads + index.read(1), settled.writes)
        return (*phases, *rest, here)
    here = PhaseCounts(f"fetch {at}", fetches[at] + settled.reads + index.read(fan_in), settled.writes)
    room, carried = memory - 1 - fan_in, sides[at][1].carried_a_page
    if sort_again:
        again = _SortedRuns(ceil_div(late.results, carried), room)
        here = PhaseCounts(here.name, here.reads, here.writes + again.written_early)
        settled = again.settle(memory, fan_in)
        return (*phases, here, PhaseCounts(f"fetch {other}", fetches[other] + settled.reads + again.read(1), settled.writes))
    ranges = ceil_div(pages[other], max(1, math.floor((memory - 1) / sides[other][1].columns.share + 1e-9)))
    writes, reads, aside = _distribution(late.results, carried, ranges, room, memory - 1, ranges)
    here = PhaseCounts(here.name, here.reads, here.writes + _by_page(writes))
    there = _neighbours(fetches[other], pages[other], *sides[other], ranges)
    return (*phases, here, PhaseCounts(f"fetch {other}", there + _by_page(reads), _by_page(aside)))


class _SortedRuns:
    """Entries in the order of row ids: in memory if they fit there, or else in runs, of which the last is written after the last entry.

    They take so many pages; `memory` is pages of a run.
    """

    def __init__(self, pages: int, memory: int) -> None:
        whole, rest = divmod(pages - 1, memory)
        self.runs = [*[memory] * whole, rest + 1] if pages > memory else []

    @property
    def written_early(self) -> Traffic:
        """All runs but the last."""
        early = self.runs[:-1]
        return Traffic(len(early), len(early), sum(early))

    def settle(self, memory: int, fan_in: int) -> PhaseCounts:
        """Write the last run, and merge the shortest ones until they can be merged at a time."""
        reads, writes = Traffic(), Traffic(1, 1, self.runs[-1]) if self.runs else Traffic()
        heapify(self.runs)
        while len(self.runs) > fan_in:
            merged = [heappop(self.runs) for _ in range(min(len(self.runs) - fan_in + 1, memory - 1))]
            share, pages = memory // (len(merged) + 1), sum(merged)
            requests = sum(ceil_div(run, share) for run in merged)
            reads += Traffic(requests, requests, pages)
            writes += Traffic(ceil_div(pages, share), ceil_div(pages, share), pages)
            heappush(self.runs, pages)
        return PhaseCounts("settle", reads, writes)

    def read(self, memory: int) -> Traffic:
        """Merge all runs at a time, which share so many pages and have at least one each."""
        share = max(1, memory // max(1, len(self.runs)))
        requests = sum(ceil_div(run, share) for run in self.runs)
        return Traffic(requests, requests, sum(self.runs))


def _with_index(phases: list[PhaseCounts], found_first: float, index: _SortedRuns) -> list[PhaseCounts]:
    """Phases that find results write runs of the join index."""
    early = index.written_early
    share = found_first if len(phases) > 1 else 0.0
    head = int(share * sum(index.runs) / index.runs[0]) if index.runs else 0
    first = Traffic(head, head, head * max(index.runs, default=0))
    last = Traffic(early.seeks - head, early.requests - head, early.pages - first.pages)
    added = {0: first} if len(phases) > 1 else {}
    added[len(phases) - 1] = last
    return [PhaseCounts(phase.name, phase.reads, phase.writes + added.get(number, Traffic())) for number, phase in enumerate(phases)]


def _neighbours(fetches: Traffic, fetch_pages: int, pages: int, side: LateSide, ranges: int = 1) -> Traffic:
    """Pages that are fetched in order, range by range; a request reads those that follow one another, if they are read whole."""
    if not side.columns.whole or not fetch_pages:
        return fetches
    requests = round(fetch_pages - max(0, fetch_pages - ranges) * fetch_pages / pages)
    return Traffic(requests, requests, fetches.pages, fetches.spared)


def _distribution(entries: int, a_page: int, ranges: int, most: int, later: int, all_ranges: int) -> tuple[float, float, float]:
    """Pages of entries that are put into files by ranges of pages, then read from these, and, of files of several ranges, written again.

    There are so many entries in `all_ranges`, of which `ranges` are divided into `most` files, and into `later` whenever one is again.
    """
    files = min(ranges, most)
    writes = reads = rewrites = 0.0
    whole, rest = divmod(ranges, max(1, files))
    for size, count in ((whole, files - rest), (whole + 1, rest)):
        if count:
            pages = file_pages(entries, a_page, size / all_ranges)
            writes, reads = writes + count * pages, reads + count * pages
            if size > 1:
                below = _distribution(entries, a_page, size, later, later, all_ranges)
                reads, rewrites = reads + count * below[1], rewrites + count * (below[0] + below[2])
    return writes, reads, rewrites


def _by_page(pages: float) -> Traffic:
    """Pages that are moved one at a time."""
    return Traffic(round(pages), round(pages), round(pages))
