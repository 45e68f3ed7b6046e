"""ARC: two lists by recency, of pages seen once and of pages seen more often, whose shares follow the hits on what they lost.

A page is in T1 if it was seen once lately and in T2 if more often; those that left are remembered in B1 and B2.
"""

from collections import OrderedDict

import numpy as np

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import NEWER, NONE, OWN, OWN_NUMBER, SIZE, PlainPolicy, PlainPool, PoolState, oldest, push, take_out

TITLE = "ARC, adaptive replacement cache (Megiddo and Modha, FAST 2003)"
COLUMNS = 1


class Plain(PlainPolicy):
    """Figure 4 of the paper.

    The paper leaves open whether the target p of T1 is a whole number; here it is not, as in libCacheSim, whose misses are the same.
    Of the directory, a page is forgotten when another enters, which comes to the same as before the replacement.
    """

    def __init__(self, pool: PlainPool) -> None:
        super().__init__(pool)
        # each from the least to the most recently used
        self.t1: OrderedDict[int, None] = OrderedDict()
        self.t2: OrderedDict[int, None] = OrderedDict()
        self.b1: OrderedDict[int, None] = OrderedDict()
        self.b2: OrderedDict[int, None] = OrderedDict()
        self.p = 0.0
        self.recalled = NONE

    def hit(self, page: int) -> None:
        self.forget(page)
        self.t2[page] = None

    def victim(self, page: int) -> int:
        """Cases II and III replace after they have moved the target; of case IV the part that chooses."""
        in_b2 = page in self.b2
        self._recall(page)
        once = next((each for each in self.t1 if not self.pool.pinned(each)), None)
        often = next((each for each in self.t2 if not self.pool.pinned(each)), None)
        if page != self.recalled and len(self.t1) >= self.pool.size:
            assert once is not None
            del self.t1[once]  # and is not remembered
            return once
        from_t1 = len(self.t1) > self.p or (in_b2 and len(self.t1) == self.p)
        if once is not None and (from_t1 or often is None):
            del self.t1[once]
            self.b1[once] = None
            return once
        assert often is not None
        del self.t2[often]
        self.b2[often] = None
        return often

    def enter(self, page: int) -> None:
        self._recall(page)
        if page == self.recalled:
            self.t2[page] = None
            self.recalled = NONE
            return
        if len(self.t1) + len(self.b1) >= self.pool.size:
            self.b1.popitem(last=False)
        elif len(self.t1) + len(self.t2) + len(self.b1) + len(self.b2) >= 2 * self.pool.size:
            self.b2.popitem(last=False)
        self.t1[page] = None

    def forget(self, page: int) -> None:
        self.t1.pop(page, None)
        self.t2.pop(page, None)

    def _recall(self, page: int) -> None:
        if page in self.b1:
            self.p = min(self.p + max(len(self.b2) / len(self.b1), 1.0), float(self.pool.size))
            del self.b1[page]
            self.recalled = page
        elif page in self.b2:
            self.p = max(self.p - max(len(self.b1) / len(self.b2), 1.0), 0.0)
            del self.b2[page]
            self.recalled = page


# The rings, which are also what stands in a page's own column; a page that was found in B1 or B2 and has not entered yet stands in none.
_UNKNOWN, _T1, _T2, _B1, _B2, _RECALLED = range(6)
_WHERE = OWN
#: How many pages each ring holds stands in a pool's number of its own, from here on.
_COUNTS = OWN_NUMBER


@inlined_kernel
def _move(pool: PoolState, page: int, ring: int) -> None:
    """Let a page stand in a ring (or, at `_UNKNOWN` and `_RECALLED`, in none), wherever it stood before."""
    before = int(pool.pages[page, _WHERE])
    if _T1 <= before <= _B2:
        take_out(pool, page)
        pool.numbers[_COUNTS + before] -= 1
    if _T1 <= ring <= _B2:
        push(pool, ring, page)
        pool.numbers[_COUNTS + ring] += 1
    pool.pages[page, _WHERE] = ring


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    _move(pool, page, _T2)


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    numbers = pool.numbers
    in_b2 = pool.pages[page, _WHERE] == _B2
    target = _recall(pool, page)
    once = numbers[_COUNTS + _T1]
    if pool.pages[page, _WHERE] != _RECALLED and once >= numbers[SIZE]:
        leaving = oldest(pool, _T1)
        _move(pool, leaving, _UNKNOWN)
        return leaving
    from_t1 = once > 0 and (once > target or (in_b2 and once == target))
    leaving = oldest(pool, _T1) if from_t1 else oldest(pool, _T2)
    if leaving == NONE:  # all are pinned, or there is none
        from_t1 = not from_t1
        leaving = oldest(pool, _T1) if from_t1 else oldest(pool, _T2)
    _move(pool, leaving, _B1 if from_t1 else _B2)
    return leaving


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    pages, numbers = pool.pages, pool.numbers
    _recall(pool, page)
    if pages[page, _WHERE] == _RECALLED:
        _move(pool, page, _T2)
        return
    once = numbers[_COUNTS + _T1] + numbers[_COUNTS + _B1]
    if once >= numbers[SIZE]:
        _move(pool, pages[_B1, NEWER], _UNKNOWN)
    elif once + numbers[_COUNTS + _T2] + numbers[_COUNTS + _B2] >= 2 * numbers[SIZE]:
        _move(pool, pages[_B2, NEWER], _UNKNOWN)
    _move(pool, page, _T1)


@lean_kernel
def forget(pool: PoolState, page: int) -> None:
    _move(pool, page, _UNKNOWN)


@inlined_kernel
def _recall(pool: PoolState, page: int) -> float:
    """Move the target if the page is remembered, and take it out of the directory; returns the target."""
    numbers, targets = pool.numbers, pool.words.view(np.float64)
    where = pool.pages[page, _WHERE]
    if where == _B1:
        targets[0] = min(targets[0] + max(numbers[_COUNTS + _B2] / numbers[_COUNTS + _B1], 1.0), float(numbers[SIZE]))
        _move(pool, page, _RECALLED)
    elif where == _B2:
        targets[0] = max(targets[0] - max(numbers[_COUNTS + _B1] / numbers[_COUNTS + _B2], 1.0), 0.0)
        _move(pool, page, _RECALLED)
    return float(targets[0])
