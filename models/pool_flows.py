"""Requests of a memory pool and of an SSD that extends it to their devices, from the references alone.

At any instant a pool holds those of its pages whose key is above a bound: the last reference (LRU), or the last but one (LRU-2; a page
that has one only ranks below all that have two).  Keys age alike, and so the bound stays as far behind the present as it is at one
instant, where the pool's size tells it: the window of the working set (Denning, Schwartz, "Properties of the working-set model", CACM
15(3), 1972), or a cache's characteristic time (Che, Tung, Wang, "Hierarchical web caching systems", IEEE JSAC 20(7), 2002).  No pool
is run.  What passes memory's bound is missed; the misses, and what the pages' stays in memory made of them, are what the SSD sees.

The designs' rules are those of Do, "Database management systems on flash", 2012, 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import check_known
from flashsim.core.request import Integers

Bits = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]

DESIGNS = ("none", "cw", "dw", "lc", "tac")  #: Designs that there are flows of.
#: Is added to keys of pages that were referenced twice; the key of a page that never was.
_TWICE, _NEVER = 1 << 40, -(1 << 60)


class ReferenceStream(NamedTuple):
    """References one after the other, shape (n,) each."""

    pages: Integers
    #: Whether the reference writes the page (or creates it), and whether it creates the page without a read.
    writes: Bits
    creates: Bits

    def until(self, count: int) -> ReferenceStream:
        return ReferenceStream(self.pages[:count], self.writes[:count], self.creates[:count])


class Window(NamedTuple):
    """The references over which flows are counted, and the one at which it is looked what pools hold."""

    begin: int
    cut: int
    end: int

    def has(self, times: Reals | Integers) -> Bits:
        return np.asarray((times >= self.begin) & (times < self.end))


class Stays(NamedTuple):
    """Stays of pages in memory, by page and then by time, shape (n,) each."""

    pages: Integers
    #: The reference that brought the page; when it left, infinite if that is not known.
    begins: Integers
    leaves: Reals
    #: Whether the page was written, whether it was created without a read, and whether the reference that brought it wrote.
    dirty: Bits
    created: Bits
    for_update: Bits

    @property
    def again(self) -> Bits:
        return np.append(False, self.pages[1:] == self.pages[:-1])


class Flows(NamedTuple):
    """Pages that move, for each reference."""

    #: Read since memory missed them, those of these that the SSD has, and those of which the disk has no such version.
    missed: float
    served: float = 0.0
    served_newer: float = 0.0
    #: Pages that leave memory; written to the SSD, and those of these that are not written to the disk as well.
    left: float = 0.0
    admitted: float = 0.0
    only_admitted: float = 0.0
    #: Written to the disk as they leave memory, and by the cleaner, so many at once.
    written: float = 0.0
    cleaned: float = 0.0
    group: float = 1.0


def _bound(keys: Integers, frames: int, cut: int) -> float:
    if frames >= len(keys):
        return -np.inf
    return float(np.partition(keys, -frames)[-frames] - cut) if frames else np.inf


def _at(cut: int, pages: Integers, times: Integers) -> Integers:
    """Rows of what each page did last before an instant; rows are by page and then by time."""
    last = np.append((pages[1:] != pages[:-1]) | (times[1:] >= cut), True)
    return np.flatnonzero(last & (times < cut))


def stays(references: ReferenceStream, frames: int, window: Window, uses: int = 2) -> Stays:
    """Stays in a memory pool.

    `references`: from a cold start on; `frames`: of memory; `window`: of it, only the instant is used; `uses`: 1 for LRU, 2 for LRU-2.
    """
    order = np.argsort(references.pages, kind="stable")
    pages, times = references.pages[order], order
    again = np.append(False, pages[1:] == pages[:-1])
    keys = times.copy()
    if uses == 2:
        keys[again] = times[np.flatnonzero(again) - 1] + _TWICE
    bound = _bound(keys[_at(window.cut, pages, times)], frames, window.cut)
    previous = np.where(again, np.append(_NEVER, keys[:-1]), _NEVER)
    begins = np.flatnonzero((previous - times < bound) | ~again)
    ends = np.append(begins[1:], len(pages)) - 1
    writes = references.writes[order]
    return Stays(
        pages[begins],
        times[begins],
        np.maximum(times[ends], keys[ends] - bound),
        np.logical_or.reduceat(writes, begins),
        references.creates[order][begins],
        writes[begins],
    )


def flows(residence: Stays, design: str, frames: int, window: Window, dirty_limit: float = 0.5, extent: int = 32, group: int = 32) -> Flows:
    """Requests to disk and SSD a reference.

    Parameters
    ----------
    residence
        Stays in memory.
    design
        One of `DESIGNS`.
    frames
        Of the SSD.
    window
        Over which it is counted.
    dirty_limit
        Share of the SSD that may be newer than the disk (lambda), of LC.
    extent
        Pages of which TAC holds the temperature together.
    group
        Pages that the cleaner writes at once, at most (alpha).
    """
    check_known("design with a formula", design, DESIGNS)
    references = window.end - window.begin
    came, went = window.has(residence.begins) & ~residence.created, window.has(residence.leaves)
    dirty_out = float((went & residence.dirty).sum()) / references
    plain = Flows(float(came.sum()) / references, left=float(went.sum()) / references, written=dirty_out)
    if design == "none" or frames == 0:
        return plain
    if design == "tac":
        return _temperatures(residence, frames, window, extent, plain)
    return _copies(residence, design, frames, window, int(dirty_limit * frames), group, plain)


def _copies(residence: Stays, design: str, frames: int, window: Window, limit: int, group: int, plain: Flows) -> Flows:
    """CW, DW and LC: what leaves memory is copied, ranked by its misses (LRU-2); a copy is given up when its page is written."""
    references, cut, again = window.end - window.begin, window.cut, residence.again
    offered = ~residence.dirty if design == "cw" else np.ones_like(residence.dirty)
    keys = _keys_of_misses(residence)
    now = _at(cut, residence.pages, residence.begins)
    before = np.append(False, offered[:-1]) & again
    copies = now[np.where(residence.leaves[now] < cut, offered[now], ~residence.dirty[now] & before[now])]
    newer, cleaned = _newer(residence, keys, copies, limit, window) if design == "lc" else (np.full(len(again), -np.inf), 0.0)
    still = newer[copies] > cut
    bound = _bound(keys[copies[~still]], frames - int(still.sum()), cut)
    was_newer = np.append(False, newer[:-1] > residence.begins[1:]) & again
    served = before & (was_newer | (np.append(_NEVER, keys[:-1]) - residence.begins >= bound))
    came, went = window.has(residence.begins) & ~residence.created, window.has(residence.leaves)
    admitted = offered & went & (residence.dirty | ~served)
    rates = plain._replace(served=float((served & came).sum()) / references, admitted=float(admitted.sum()) / references)
    if design != "lc":
        return rates
    return rates._replace(
        served_newer=float((served & was_newer & came).sum()) / references,
        only_admitted=plain.written,
        written=0.0,
        cleaned=cleaned / references,
        group=_run(residence, newer, window, group),
    )


def _keys_of_misses(residence: Stays) -> Integers:
    """The key of a page's copy after each stay: its last miss but one, else its last; a page that was made has not been missed."""
    misses = np.flatnonzero(~residence.created)
    pages, times = residence.pages[misses], residence.begins[misses]
    again = np.flatnonzero(np.append(False, pages[1:] == pages[:-1]))
    key_times = times.copy()
    key_times[again] = times[again - 1] + _TWICE
    keys = np.zeros(len(residence.pages), np.int64)
    keys[misses] = key_times
    return keys


def _newer(residence: Stays, keys: Integers, copies: Integers, limit: int, window: Window) -> tuple[Reals, float]:
    """Until when each stay's copy is newer than the disk if it is not written again, and how many pages are cleaned in the window.

    The pages of the least keys are cleaned when more than the limit are newer.  A page that was cleaned may have been missed again, so
    that its key is no reason: the bound is lowered until as many are newer as may be.
    """
    opens = residence.dirty | ~residence.again
    begins, number = np.flatnonzero(opens), np.cumsum(opens) - 1
    dirty = residence.dirty[begins]
    following = np.append(np.where(residence.again[1:], residence.begins[1:], np.inf), np.inf)
    dirty_copies = copies[dirty[number[copies]]]

    def until(frames: int) -> Reals:
        cleaned = np.maximum(residence.leaves, keys - _bound(keys[dirty_copies], frames, window.cut))
        first: Reals = np.minimum.reduceat(np.where(cleaned < following, cleaned, np.inf), begins)
        return first

    least, most = min(limit, len(dirty_copies)), len(dirty_copies)
    while most - least > limit // 100:
        middle = (least + most) // 2
        too_few = (until(middle)[number[dirty_copies]] > window.cut).sum() < limit
        least, most = (middle + 1, most) if too_few else (least, middle)
    first = until(least)
    first[~dirty] = -np.inf
    return first[number], float(window.has(first).sum())


def _run(residence: Stays, newer: Reals, window: Window, most: int) -> float:
    """Mean number of neighbours in a row that are newer than the disk when one of them is cleaned."""
    rows = np.flatnonzero(residence.dirty & np.isfinite(residence.leaves))
    # a copy is newer from when its page left until it is cleaned, or its page comes back to be written
    again = np.append(np.where(residence.again[1:] & residence.dirty[1:], residence.begins[1:], np.inf), np.inf)[rows]
    pages, ends = residence.pages[rows].astype(np.int64), np.minimum(newer[rows], again)
    since = pages * _TWICE + residence.leaves[rows].astype(np.int64)
    cleaned = window.has(newer[rows])
    count = total = int(cleaned.sum())
    for step in (1, -1):
        reached, times = pages[cleaned], newer[rows][cleaned]
        for _ in range(most - 1):
            reached = reached + step
            place = np.searchsorted(since, reached * _TWICE + times.astype(np.int64), side="right") - 1
            goes_on = (place >= 0) & (pages[place] == reached) & (ends[place] > times)
            reached, times = reached[goes_on], times[goes_on]
            total += len(reached)
    return min(float(most), total / count) if count else 1.0


def _temperatures(residence: Stays, frames: int, window: Window, extent: int, plain: Flows) -> Flows:
    """TAC: what is read to be read only is copied at once, if its extent is among the warmest; what leaves dirty renews its copy."""
    references, misses = window.end - window.begin, ~residence.created
    extents = residence.pages // extent
    warm = np.bincount(extents[misses & (residence.begins < window.cut)], minlength=int(extents.max(initial=0)) + 1)
    to_ssd = misses & ~residence.for_update
    before: Integers = np.cumsum(to_ssd) - to_ssd
    had = before > np.maximum.accumulate(np.where(residence.again, 0, before))
    candidates = np.sort(warm[np.unique(residence.pages[to_ssd & (residence.begins < window.cut)]) // extent])
    share = np.ones(len(warm))
    if frames < len(candidates):
        coldest = candidates[-frames]
        tied = candidates == coldest
        share = (warm > coldest) + (warm == coldest) * ((frames - (candidates > coldest).sum()) / tied.sum())
    weight = share[extents]
    came, went = window.has(residence.begins), window.has(residence.leaves)
    renewed = weight[went & residence.dirty & (had | to_ssd)].sum()
    return plain._replace(
        served=float(weight[came & misses & had].sum()) / references,
        admitted=float(weight[came & to_ssd & ~had].sum() + renewed) / references,
    )
