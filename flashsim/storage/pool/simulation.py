"""A policy alone, without any device: how often a pool of so many frames hits, misses and writes back."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from flashsim.core import replacement
from flashsim.core.errors import InvalidParameterError
from flashsim.core.hints import prefetch
from flashsim.core.kernel import kernel_of
from flashsim.core.policies import Policies
from flashsim.core.records import VECTOR
from flashsim.core.replacement import Numbers, PoolState, ReplacementPolicy
from flashsim.core.request import Integers
from flashsim.storage.pool.reference import (
    TOOK_FREE,
    WAS_RESIDENT,
    WRITE_BACK,
    PlainPool,
    breach,
    kernels_of,
    know_future,
    refer,
    with_rows,
)

Writes = npt.NDArray[np.uint8]
#: References ahead of which the processor is told of a page, and of the pages beside it in its ring.
_AHEAD, _BESIDE = 16, 8


class Counts(NamedTuple):
    """Counts of a run of references."""

    references: int
    writes: int
    hits: int
    #: Misses of pages that were never referenced before.
    first: int
    #: Misses by references that write.
    write_misses: int
    evictions: int
    write_backs: int

    @property
    def misses(self) -> int:
        return self.references - self.hits


class Simulation:
    """A policy's kernels over a pool of frames; the seed is that of what the policy draws.

    So many distinct pages are expected; with more it takes up to three times the memory for a moment.

    Raises
    ------
    InvalidParameterError
        No frame.
    """

    def __init__(self, policy: ReplacementPolicy, frames: int, seed: int = 0, pages: int = 1 << 10) -> None:
        if frames < 1:
            raise InvalidParameterError("size", f"{frames} pages", "a pool has at least one")
        self.policy, self.frames = policy, frames
        self.state = policy.state(frames, pages, seed)
        self._counts = np.zeros(len(Counts._fields), np.int64)

    @property
    def counts(self) -> Counts:
        return Counts(*self._counts.tolist())

    def refer(self, pages: Numbers, writes: Writes | None = None, next_uses: Numbers | None = None) -> None:
        """Let pages be referenced one after the other.

        Other threads run meanwhile.

        Parameters
        ----------
        pages
            Their numbers (`flashsim.core.page_numbers`), shape (n,).
        writes
            1 for a reference that writes its page, shape (n,); none does without it.
        next_uses
            The number of the reference that asks for each page next (`NEVER_AGAIN`: none), the first of all being 1, plus `WRITES` if that
            one or a later one writes the page, shape (n,).
        """
        future = self.policy.future_of(next_uses)
        self.state = with_rows(self.state, int(pages.max(initial=0)) + 1)
        writing = np.empty(0, np.uint8) if writes is None else writes
        with kernels_of(self.policy.name, self.state):
            outcome = _run(self.state, self.policy.kernels, pages, writing, future, self._counts)
        if outcome < 0:
            raise breach(self.policy.name, outcome, int(self.state.numbers[replacement.NOW]))


_NUMBERS, _FLAGS = types.Array(types.int32, 1, "C"), types.Array(types.uint8, 1, "C")


@kernel_of(types.int64(replacement.POOL, VECTOR, _NUMBERS, _FLAGS, _NUMBERS, VECTOR), unlocked=True)
def _run(pool: PoolState, policy: Policies, pages: Numbers, writes: Writes, next_uses: Numbers, counts: Integers) -> int:
    """Go through references; returns 0, or which rule the policy broke."""
    count, writing, future = pages.shape[0], writes.shape[0] > 0, next_uses.shape[0] > 0
    written = hits = first = write_misses = evictions = write_backs = 0
    outcome = row = 0
    while row < count:
        if row + _AHEAD < count:
            prefetch(pool.pages, pages[row + _AHEAD])
            coming = pages[row + _BESIDE]
            prefetch(pool.pages, pool.pages[coming, replacement.OLDER])
            prefetch(pool.pages, pool.pages[coming, replacement.NEWER])
        page = int(pages[row])
        write = int(writes[row]) if writing else 0
        if future:
            know_future(pool, next_uses[row])
        known = pool.pages[page, replacement.FLAGS] & replacement.KNOWN
        outcome = refer(pool, policy, page, write)
        row += 1
        written += write
        if outcome == WAS_RESIDENT:
            hits += 1
            continue
        if outcome < 0:
            break
        if not known:
            first += 1
        write_misses += write
        if outcome != TOOK_FREE:
            evictions += 1
            if outcome >= WRITE_BACK:
                write_backs += 1
    for place, count_of_run in enumerate((row, written, hits, first, write_misses, evictions, write_backs)):
        counts[place] += count_of_run
    return min(outcome, 0)


def simulation(policy: ReplacementPolicy, frames: int, seed: int = 0, pages: int = 1 << 10) -> Simulation:
    """A pool to refer to: by the policy's kernels, or by its plain form if it has no others."""
    return Simulation(policy, frames, seed, pages) if policy.kernels is not None else PlainSimulation(policy, frames, seed)


class PlainSimulation(Simulation):
    """The plain form of a policy over a pool that is a dictionary: slow, to be read and compared with; parameters as of `Simulation`."""

    def __init__(self, policy: ReplacementPolicy, frames: int, seed: int = 0) -> None:
        if frames < 1:
            raise InvalidParameterError("size", f"{frames} pages", "a pool has at least one")
        self.policy, self.pool = policy, PlainPool(policy, frames, seed)
        self._counts = np.zeros(len(Counts._fields), np.int64)

    def refer(self, pages: Numbers, writes: Writes | None = None, next_uses: Numbers | None = None) -> None:
        future = self.policy.future_of(next_uses)
        for row, page in enumerate(pages.tolist()):
            write = bool(writes[row]) if writes is not None else False
            known = page in self.pool.history
            outcome = self.pool.refer(page, write, int(future[row]) if len(future) else 0)
            missed = outcome != WAS_RESIDENT
            evicted = outcome >= replacement.FIRST_PAGE
            self._counts += Counts(1, write, not missed, missed and not known, missed and write, evicted, outcome >= WRITE_BACK)
