"""A pass that keeps a part of R in memory and joins S with it: what hybrid hash does once, and simple hash until nothing is left.

Kept are all tuples whose hash lies below a threshold, which falls when they become too many.  The rest goes to temporary files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from algorithms.blocks import read_block, spans
from algorithms.buckets import bucket_numbers
from algorithms.hashing import Hashes, HashTable, hash_keys, probe
from algorithms.temporaries import Output
from flashsim.execution.requests import Algorithm, Cpu, Work
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
        """Keep tuples that belong in memory."""
        self._tuples.append(tuples)
        self._hashes.append(hashes)
        self._bytes += int(self._layout.cell_sizes(tuples).sum())

    @property
    def filled(self) -> float:
        """The part of the memory that is in use."""
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
        """What is in memory, and the hashes of its keys."""
        if not self._tuples:
            return keyed(np.zeros(0, np.int64), np.zeros(0, np.int64)), np.zeros(0, np.uint64)
        keys, rows = (np.concatenate([getattr(part, name) for part in self._tuples]) for name in ("keys", "rows"))
        return keyed(keys, rows), np.concatenate(self._hashes)


@dataclass(frozen=True)
class Scan:
    """How a pass reads and writes: pages of its input buffer and of each output buffer, and the level of its hash function."""

    input: int
    output: int
    level: int
    page_io: bool


class _Spill:
    """The buckets that go to disk; there may be none, and then what would go there is left out."""

    def __init__(self, files: Sequence[File], scan: Scan) -> None:
        self._count = len(files)
        self._output = Output(files, scan.output, page_io=scan.page_io) if files else None

    def append(self, tuples: Tuples, hashes: Hashes) -> Algorithm:
        if self._output is not None and len(tuples):
            yield from self._output.append(tuples, bucket_numbers(hashes, self._count))

    def finish(self) -> Algorithm:
        if self._output is not None:
            yield from self._output.finish()


def keep(r: File, files: Sequence[File], resident: Resident, scan: Scan) -> Algorithm:
    """Read R: its part below the threshold stays, and the rest goes to the files."""
    spill = _Spill(files, scan)
    for first, pages in spans(r.pages, scan.input):
        tuples = yield from read_block(r, first, pages, scan.page_io)
        yield Cpu({Work.HASH: len(tuples)})
        hashes = hash_keys(tuples.keys, scan.level)
        stays = resident.holds(hashes)
        resident.admit(tuples.chosen(stays), hashes[stays])
        yield from spill.append(tuples.chosen(~stays), hashes[~stays])
        if resident.overfull():
            yield from spill.append(*resident.demote((first + pages) / r.pages))
    yield from spill.finish()


def meet(s: File, files: Sequence[File], resident: Resident, scan: Scan) -> Algorithm:
    """Read S: its part below the threshold is joined with what stayed of R, and the rest goes to the files, or nowhere without any."""
    table = HashTable(*resident.tuples())
    yield Cpu({Work.BUILD: len(resident)})
    spill = _Spill(files, scan)
    for first, pages in spans(s.pages, scan.input):
        tuples = yield from read_block(s, first, pages, scan.page_io)
        yield Cpu({Work.HASH: len(tuples)})
        hashes = hash_keys(tuples.keys, scan.level)
        meets = resident.holds(hashes)
        yield from probe(table, tuples.chosen(meets), hashes[meets])
        yield from spill.append(tuples.chosen(~meets), hashes[~meets])
    yield from spill.finish()
