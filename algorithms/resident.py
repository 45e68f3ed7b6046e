"""The part of R that hybrid hash keeps in memory: all tuples whose hash lies below a threshold, which falls when they become too many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from algorithms.hashing import Hashes
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples, keyed

#: The upper half of a hash is below this.
_RANGE = 1 << 32

#: How far below the expected need memory is emptied: enough for chance, so that skew alone makes it overflow again.
_SLACK = 0.98


class Resident:
    """Tuples in memory, bounded in bytes.

    A threshold divides by key, so S can be divided by it after R: what is below the last one is joined in memory, all else on disk.

    Parameters
    ----------
    capacity
        Bytes of tuples, as they would take on pages.
    share
        The part of R that is expected to fill it.
    """

    def __init__(self, layout: Layout, capacity: int, share: float) -> None:
        self._layout = layout
        self._capacity = capacity
        self._threshold = np.uint64(min(_RANGE, int(share * _RANGE)))
        self._tuples: list[Tuples] = []
        self._hashes: list[Hashes] = []
        self._bytes = 0

    def __len__(self) -> int:
        return sum(len(part) for part in self._tuples)

    def holds(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which keys belong in memory, given their hashes."""
        return hashes >> np.uint64(32) < self._threshold

    def admit(self, tuples: Tuples, hashes: Hashes) -> None:
        """Keep tuples that belong in memory."""
        self._tuples.append(tuples)
        self._hashes.append(hashes)
        self._bytes += int(self._layout.cell_sizes(tuples).sum())

    def overfull(self) -> bool:
        """Whether there are more tuples than memory holds."""
        return self._bytes > self._capacity

    def demote(self, done: float) -> tuple[Tuples, Hashes]:
        """Lower the threshold so that what is kept will fit at the end of R; returns the tuples that must go, and their hashes.

        Parameters
        ----------
        done
            The part of R that has been seen.
        """
        tuples, hashes = self.tuples()
        choices = hashes >> np.uint64(32)
        order = np.argsort(choices, kind="stable")
        sizes = np.cumsum(self._layout.cell_sizes(tuples)[order])
        kept = int(np.searchsorted(sizes, self._capacity * done * _SLACK, side="right"))
        self._threshold = choices[order[kept]]
        stays = self.holds(hashes)
        self._tuples, self._hashes, self._bytes = [], [], 0
        self.admit(tuples.chosen(stays), hashes[stays])
        return tuples.chosen(~stays), hashes[~stays]

    def tuples(self) -> tuple[Tuples, Hashes]:
        """What is in memory, and the hashes of its keys."""
        if not self._tuples:
            return keyed(np.zeros(0, np.int64), np.zeros(0, np.int64)), np.zeros(0, np.uint64)
        keys, rows = (np.concatenate([getattr(part, name) for part in self._tuples]) for name in ("keys", "rows"))
        return keyed(keys, rows), np.concatenate(self._hashes)
