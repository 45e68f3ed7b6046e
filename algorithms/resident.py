"""A pass that keeps a part of R in memory and joins S with it: what hybrid hash does once, and simple hash until nothing is left.

Kept are all tuples whose hash lies below a threshold, which falls when they become too many.  The rest goes to temporary files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from algorithms.buckets import bucket_numbers
from algorithms.hashing import Hashes, HashTable, hash_keys, probe
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters, Put, distribute
from algorithms.scanning import regions, together
from flashsim.execution.requests import Acquire, Algorithm, Cpu, Latch, Release, Work
from flashsim.storage.heap_file import File
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
    slack
        To what part of the need expected so far memory is emptied when it overflows.
    """

    def __init__(self, layout: Layout, capacity: int, share: float, slack: float = _SLACK) -> None:
        self._layout = layout
        self._capacity = capacity
        self._slack = slack
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
        self._tuples.append(tuples)
        self._hashes.append(hashes)
        self._bytes += int(self._layout.cell_sizes(tuples).sum())

    @property
    def filled(self) -> float:
        return self._bytes / self._capacity

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
        kept = int(np.searchsorted(sizes, self._capacity * done * self._slack, side="right"))
        self._threshold = choices[order[kept]]
        stays = self.holds(hashes)
        self._tuples, self._hashes, self._bytes = [], [], 0
        self.admit(tuples.chosen(stays), hashes[stays])
        return tuples.chosen(~stays), hashes[~stays]

    def tuples(self) -> tuple[Tuples, Hashes]:
        if not self._tuples:
            return keyed(np.zeros(0, np.int64), np.zeros(0, np.int64)), np.zeros(0, np.uint64)
        keys, rows = (np.concatenate([getattr(part, name) for part in self._tuples]) for name in ("keys", "rows"))
        return keyed(keys, rows), np.concatenate(self._hashes)


@dataclass(frozen=True)
class Pass:
    """How a pass reads and writes: its buffers, the level of its hash function, and how what does not stay is partitioned."""

    buffers: PartitionBuffers
    level: int
    partitioning: PartitionParameters


def keep(r: File, files: Sequence[File], resident: Resident, how: Pass) -> Algorithm:
    """Read R: its part below the threshold stays, and the rest goes to the files, or nowhere without any."""
    seen = 0
    latch = Latch("what stays in memory") if how.partitioning.strands > 1 else None  # a driver of one strand knows none

    def route(tuples: Tuples, pages: int, put: Put) -> Algorithm:
        nonlocal seen
        yield Cpu({Work.HASH: len(tuples)})
        hashes = hash_keys(tuples.keys, how.level)
        if latch is not None:
            yield Acquire(latch)
        seen += pages
        stays = resident.holds(hashes)
        resident.admit(tuples.chosen(stays), hashes[stays])
        gone = resident.demote(seen / r.pages) if resident.overfull() else None
        if latch is not None:
            yield Release(latch)
        yield from put(tuples.chosen(~stays), bucket_numbers(hashes[~stays], len(files)))
        if gone is not None:
            yield from put(gone[0], bucket_numbers(gone[1], len(files)))

    yield from distribute(r, files, how.buffers, route, how.partitioning)


def _built(count: int) -> Algorithm:
    """The work of putting so many tuples, whose hashes are known, into the table; strands that have partitioned share it."""
    yield Cpu({Work.BUILD: count})


def meet(s: File, files: Sequence[File], resident: Resident, how: Pass) -> Algorithm:
    """Read S: its part below the threshold is joined with what stayed of R, and the rest goes to the files, or nowhere without any."""
    table = HashTable(*resident.tuples())
    shares = regions(0, len(resident), how.partitioning.strands) or [(0, 0)]
    yield from together([_built(end - first) for first, end in shares])

    def route(tuples: Tuples, _: int, put: Put) -> Algorithm:
        yield Cpu({Work.HASH: len(tuples)})
        hashes = hash_keys(tuples.keys, how.level)
        meets = resident.holds(hashes)
        yield from probe(table, tuples.chosen(meets), hashes[meets])
        yield from put(tuples.chosen(~meets), bucket_numbers(hashes[~meets], len(files)))

    yield from distribute(s, files, how.buffers, route, how.partitioning)
