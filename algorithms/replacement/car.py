"""CAR: the two lists of ARC as clocks, so that a hit does no more than set a bit.

A page is in T1 until it is found referenced there, and in T2 from then on; those that left are remembered in B1 and B2.
"""

from collections import OrderedDict

import numpy as np

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import NEWER, NONE, OWN, OWN_NUMBER, SIZE, PlainPolicy, PlainPool, PoolState, oldest, push, take_out

TITLE = "CAR, clock with adaptive replacement (Bansal and Modha, FAST 2004)"
COLUMNS = 1


class Plain(PlainPolicy):
    """Figure 2 of the paper.

    The paper leaves open whether the target p of T1 is a whole number; here it is not.  The hands pass over pages that are pinned; where
    all of one clock are, the other one's hand goes on.
    """

    def __init__(self, pool: PlainPool) -> None:
        super().__init__(pool)
        # the clocks, each from its hand on: pages, and their reference bits
        self.t1: OrderedDict[int, bool] = OrderedDict()
        self.t2: OrderedDict[int, bool] = OrderedDict()
        # from the least to the most recently left
        self.b1: OrderedDict[int, None] = OrderedDict()
        self.b2: OrderedDict[int, None] = OrderedDict()
        self.p = 0.0

    def hit(self, page: int) -> None:
        (self.t1 if page in self.t1 else self.t2)[page] = True

    def victim(self, page: int) -> int:
        while True:
            once = next((each for each in self.t1 if not self.pool.pinned(each)), None)
            often = next((each for each in self.t2 if not self.pool.pinned(each)), None)
            if once is not None and (len(self.t1) >= max(1.0, self.p) or often is None):
                if not self.t1.pop(once):
                    self.b1[once] = None
                    return once
                self.t2[once] = False
            else:
                assert often is not None
                if not self.t2.pop(often):
                    self.b2[often] = None
                    return often
                self.t2[often] = False

    def enter(self, page: int) -> None:
        if page in self.b1:
            self.p = min(self.p + max(1.0, len(self.b2) / len(self.b1)), float(self.pool.size))
            del self.b1[page]
            self.t2[page] = False
        elif page in self.b2:
            self.p = max(self.p - max(1.0, len(self.b1) / len(self.b2)), 0.0)
            del self.b2[page]
            self.t2[page] = False
        else:
            if len(self.t1) + len(self.b1) >= self.pool.size:
                self.b1.popitem(last=False)
            elif len(self.t1) + len(self.t2) + len(self.b1) + len(self.b2) >= 2 * self.pool.size:
                self.b2.popitem(last=False)
            self.t1[page] = False

    def forget(self, page: int) -> None:
        self.t1.pop(page, None)
        self.t2.pop(page, None)


# The rings, which are also what stands in a page's own column; there the bit above them is its reference bit.
_UNKNOWN, _T1, _T2, _B1, _B2 = range(5)
_REFERENCED = 8
_WHERE = OWN
#: How many pages each ring holds stands in a pool's number of its own, from here on.
_COUNTS = OWN_NUMBER


@inlined_kernel
def _move(pool: PoolState, page: int, ring: int) -> None:
    """Let a page stand in a ring (or, at `_UNKNOWN`, in none) with no bit set, wherever it stood before."""
    before = int(pool.pages[page, _WHERE]) & ~_REFERENCED
    if before != _UNKNOWN:
        take_out(pool, page)
        pool.numbers[_COUNTS + before] -= 1
    if ring != _UNKNOWN:
        push(pool, ring, page)
        pool.numbers[_COUNTS + ring] += 1
    pool.pages[page, _WHERE] = ring


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    pool.pages[page, _WHERE] |= _REFERENCED


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    target = max(1.0, pool.words.view(np.float64)[0])
    while True:
        in_t1 = pool.numbers[_COUNTS + _T1] >= target
        leaving = oldest(pool, _T1) if in_t1 else oldest(pool, _T2)
        if leaving == NONE:  # all are pinned, or there is none
            in_t1 = not in_t1
            leaving = oldest(pool, _T1) if in_t1 else oldest(pool, _T2)
        if not pool.pages[leaving, _WHERE] & _REFERENCED:
            _move(pool, leaving, _B1 if in_t1 else _B2)
            return leaving
        _move(pool, leaving, _T2)


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    numbers, targets = pool.numbers, pool.words.view(np.float64)
    where = pool.pages[page, _WHERE]
    once, often = numbers[_COUNTS + _B1], numbers[_COUNTS + _B2]
    if where == _B1:
        targets[0] = min(targets[0] + max(1.0, often / once), float(numbers[SIZE]))
    elif where == _B2:
        targets[0] = max(targets[0] - max(1.0, once / often), 0.0)
    elif once + numbers[_COUNTS + _T1] >= numbers[SIZE]:
        _move(pool, pool.pages[_B1, NEWER], _UNKNOWN)
    elif once + often + numbers[_COUNTS + _T1] + numbers[_COUNTS + _T2] >= 2 * numbers[SIZE]:
        _move(pool, pool.pages[_B2, NEWER], _UNKNOWN)
    _move(pool, page, _T1 if where == _UNKNOWN else _T2)


@lean_kernel
def forget(pool: PoolState, page: int) -> None:
    _move(pool, page, _UNKNOWN)
