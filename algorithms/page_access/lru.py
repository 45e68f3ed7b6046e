"""Least recently used: pairs of pages meet in the order in which they come, and the page that was needed longest ago is replaced."""

from __future__ import annotations

import numpy as np

from algorithms.page_access.graph import Pages
from algorithms.page_access.plan import NONE, check_frames
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers

#: Columns of the ring of pages in memory, in which the page behind the last one stands for both of its ends: the page that was needed
#: before this one, and the page that was needed after it.
_OLDER, _NEWER = range(2)


class LeastRecentlyUsed:
    """Which of so many pages are in so many frames.

    Raises
    ------
    InvalidParameterError
        Fewer than 2 frames.
    """

    def __init__(self, pages: int, frames: int) -> None:
        check_frames(frames)
        self._ring = np.full((pages + 1, 2), NONE, np.int32)
        self._ring[pages] = pages
        self._free = np.array([frames])

    def meet(self, first: Integers, second: Integers) -> tuple[Pages, Pages, Pages]:
        """Let pairs of pages meet, shape (n,) each.

        Returns
        -------
        tuple
            The pages fetched, the page that each of them replaces, or -1, and after how many fetches each pair meets, shape (n,).

        Examples
        --------
        >>> [each.tolist() for each in LeastRecentlyUsed(6, 3).meet(np.array([0, 1, 0]), np.array([3, 3, 4]))]
        [[0, 3, 1, 4], [-1, -1, -1, 1], [2, 3, 4]]
        """
        fetched, victims = np.empty((2, 2 * len(first)), np.int32)
        after = np.empty(len(first), np.int32)
        fetches = _meet(self._ring, self._free, first, second, fetched, victims, after)
        return fetched[:fetches], victims[:fetches], after


@lean_kernel
def _meet(ring: Pages, free: Integers, first: Integers, second: Integers, fetched: Pages, victims: Pages, after: Pages) -> int:
    """Go through pairs; returns the number of fetches."""
    ends, fetches = ring.shape[0] - 1, 0
    for pair in range(first.shape[0]):
        for side in range(2):
            page = first[pair] if side == 0 else second[pair]
            if ring[page, _OLDER] >= 0:
                _leave(ring, page)
            else:
                victim = NONE
                if free[0] > 0:
                    free[0] -= 1
                else:
                    victim = ring[ends, _NEWER]
                    _leave(ring, victim)
                fetched[fetches], victims[fetches] = page, victim
                fetches += 1
            newest = ring[ends, _OLDER]
            ring[page, _OLDER], ring[page, _NEWER] = newest, ends
            ring[newest, _NEWER] = ring[ends, _OLDER] = page
        after[pair] = fetches
    return fetches


@lean_kernel
def _leave(ring: Pages, page: int) -> None:
    older, newer = ring[page, _OLDER], ring[page, _NEWER]
    ring[older, _NEWER], ring[newer, _OLDER] = newer, older
    ring[page, _OLDER] = ring[page, _NEWER] = NONE
