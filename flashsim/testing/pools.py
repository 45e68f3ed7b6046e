"""A replacement policy in both of its forms, in pools that are told of pins, changes that are written back, and pages that are dropped."""

from collections.abc import Sequence

import numpy as np
from numba import types

from flashsim.core.kernel import kernel_of
from flashsim.core.policies import Policies
from flashsim.core.records import VECTOR
from flashsim.core.replacement import (
    DIRTY,
    FIRST_PAGE,
    FLAGS,
    FORGET,
    NEVER_AGAIN,
    NEXT_USE,
    NOW,
    PINNED,
    POOL,
    RESIDENT,
    USED,
    WRITES,
    WRITTEN_AGAIN,
    PoolState,
    ReplacementPolicy,
    of_page,
)
from flashsim.storage.pool.reference import PlainPool, breach, refer


@kernel_of(types.int64(POOL, VECTOR, types.int64, types.int64))
def _refer(pool: PoolState, policy: Policies, page: int, write: int) -> int:
    """One reference."""
    return refer(pool, policy, page, write)


@kernel_of(types.void(POOL, VECTOR, types.int64))
def _forget(pool: PoolState, policy: Policies, page: int) -> None:
    """One page that is dropped."""
    of_page(policy[FORGET])(pool, page)


class Kernels:
    """The compiled form, over arrays."""

    def __init__(self, policy: ReplacementPolicy, frames: int, pages: int = 64, seed: int = 0) -> None:
        assert policy.kernels is not None
        self.policy, self.state = policy, policy.state(frames, pages, seed)

    def refer(self, page: int, write: bool = False, next_use: int = 0) -> int:
        self.state.numbers[NEXT_USE], self.state.numbers[WRITTEN_AGAIN] = next_use & NEVER_AGAIN, next_use < 0
        outcome = int(_refer(self.state, self.policy.kernels, page, write))
        if outcome < 0:
            raise breach(self.policy.name, outcome, int(self.state.numbers[NOW]))
        return outcome

    def pin(self, page: int, held: bool) -> None:
        self.state.pages[page, FLAGS] &= ~PINNED
        self.state.pages[page, FLAGS] |= PINNED * held

    def clean(self, page: int) -> None:
        self.state.pages[page, FLAGS] &= ~DIRTY

    def drop(self, page: int) -> None:
        self.state.pages[page, FLAGS] &= ~(RESIDENT | DIRTY)
        self.state.numbers[USED] -= 1
        _forget(self.state, self.policy.kernels, page)

    def held_pages(self) -> set[int]:
        return set(np.flatnonzero(self.state.pages[:, FLAGS] & RESIDENT).tolist())


class Plain:
    """The plain form, over a dictionary."""

    def __init__(self, policy: ReplacementPolicy, frames: int, seed: int = 0) -> None:
        self.pool = PlainPool(policy, frames, seed)

    def refer(self, page: int, write: bool = False, next_use: int = 0) -> int:
        return self.pool.refer(page, write, next_use)

    def pin(self, page: int, held: bool) -> None:
        (self.pool.pins.add if held else self.pool.pins.discard)(page)

    def clean(self, page: int) -> None:
        self.pool.resident[page] = False

    def drop(self, page: int) -> None:
        self.pool.drop(page)

    def held_pages(self) -> set[int]:
        return set(self.pool.resident)


def forms(policy: ReplacementPolicy, frames: int) -> list[Kernels | Plain]:
    pools: list[Kernels | Plain] = [] if policy.kernels is None else [Kernels(policy, frames)]
    return pools if policy.plain is None else [*pools, Plain(policy, frames)]


def next_uses(pages: Sequence[int], writes: Sequence[bool]) -> list[int]:
    """The number of the reference that asks for each page next, plus `WRITES` where that or a later one writes it; the first is 1."""
    last: dict[int, int] = {}
    uses = []
    for now in range(len(pages), 0, -1):
        page, write = pages[now - 1], writes[now - 1]
        uses.append(later := last.get(page, NEVER_AGAIN))
        last[page] = now + WRITES if write or later < 0 else now
    return uses[::-1]


def numbered(text: str) -> list[int]:
    """Pages that are written as letters, in capitals or not."""
    return [FIRST_PAGE + ord(letter) - ord("a") for letter in text.lower()]
