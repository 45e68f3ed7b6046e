"""The directory of ARC and CAR: two lists of resident pages, T1 and T2, and two of pages that left them, B1 and B2.

T1 should hold as many pages as a target says, p in the papers, which a page that is asked for again moves: up from B1, and down from B2.
The papers leave open whether it is a whole number; here it is not.
"""

from collections import OrderedDict

import numpy as np

from algorithms.replacement._rings import LENGTHS, leave, ring_of
from flashsim.core.kernel import inlined_kernel
from flashsim.core.replacement import NEWER, SIZE, PlainPolicy, PolicyPool, PoolState

T1, T2, B1, B2 = range(1, 5)


class PlainDirectory(PlainPolicy):
    """The four lists, each from the oldest page to the newest, with the reference bits of those that are resident, and the target."""

    def __init__(self, pool: PolicyPool) -> None:
        super().__init__(pool)
        self.t1, self.t2, self.b1, self.b2 = (OrderedDict[int, bool]() for _ in range(4))
        self.p = 0.0

    def recall(self, page: int) -> bool:
        """Move the target for a page that is remembered, and take it out of the directory; whether it was."""
        once, often = len(self.b1), len(self.b2)
        if page in self.b1:
            self.p = min(self.p + max(often / once, 1.0), float(self.pool.size))
        elif page in self.b2:
            self.p = max(self.p - max(once / often, 1.0), 0.0)
        return any(remembered.pop(page, None) is not None for remembered in (self.b1, self.b2))

    def make_room(self) -> None:
        """Let the directory remember a page less if there is no room for a new one."""
        if len(self.t1) + len(self.b1) >= self.pool.size:
            self.b1.popitem(last=False)
        elif len(self.t1) + len(self.t2) + len(self.b1) + len(self.b2) >= 2 * self.pool.size:
            self.b2.popitem(last=False)

    def forget(self, page: int) -> None:
        self.t1.pop(page, None)
        self.t2.pop(page, None)


@inlined_kernel
def target(pool: PoolState) -> float:
    return float(pool.words.view(np.float64)[0])


@inlined_kernel
def adapt(pool: PoolState, page: int) -> None:
    """Move the target for a page that is remembered."""
    ring, once, often = ring_of(pool, page), pool.numbers[LENGTHS + B1], pool.numbers[LENGTHS + B2]
    if ring == B1:
        pool.words.view(np.float64)[0] = min(target(pool) + max(often / once, 1.0), float(pool.numbers[SIZE]))
    elif ring == B2:
        pool.words.view(np.float64)[0] = max(target(pool) - max(once / often, 1.0), 0.0)


@inlined_kernel
def make_room(pool: PoolState) -> None:
    numbers = pool.numbers
    once = numbers[LENGTHS + T1] + numbers[LENGTHS + B1]
    if once >= numbers[SIZE]:
        leave(pool, pool.pages[B1, NEWER])
    elif once + numbers[LENGTHS + T2] + numbers[LENGTHS + B2] >= 2 * numbers[SIZE]:
        leave(pool, pool.pages[B2, NEWER])
