"""CAR: the two lists of ARC as clocks, so that a hit does no more than set a bit.

A page is in T1 until it is found referenced there, and in T2 from then on; those that left are remembered in B1 and B2.
"""

from algorithms.replacement._directory import T1, T2, PlainDirectory, adapt, make_room, target
from algorithms.replacement._rings import LENGTHS, RING, RINGS, forget, join, leave, move, oldest_of, ring_of
from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import NONE, PoolState

TITLE = "CAR, clock with adaptive replacement (Bansal and Modha, FAST 2004)"
COLUMNS = 1
__all__ = ["COLUMNS", "TITLE", "Plain", "enter", "forget", "hit", "victim"]


class Plain(PlainDirectory):
    """Figure 2 of the paper; T1 and T2 are clocks, each from its hand on.

    The hands pass over pages that are pinned; where all of one clock are, the other one's hand goes on.
    """

    def hit(self, page: int) -> None:
        (self.t1 if page in self.t1 else self.t2)[page] = True

    def victim(self, page: int) -> int:
        while True:
            once, often = self.first(self.t1), self.first(self.t2)
            if once != NONE and (len(self.t1) >= max(1.0, self.p) or often == NONE):
                each, clock, remembered = once, self.t1, self.b1
            else:
                each, clock, remembered = often, self.t2, self.b2
            if not clock.pop(each):
                remembered[each] = False
                return each
            self.t2[each] = False

    def enter(self, page: int) -> None:
        if self.recall(page):
            self.t2[page] = False
        else:
            self.make_room()
            self.t1[page] = False


_REFERENCED = RINGS  #: The reference bit of a page, in its column.


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    pool.pages[page, RING] |= _REFERENCED


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    most = max(1.0, target(pool))
    while True:
        leaving = oldest_of(pool, T1, T2) if pool.numbers[LENGTHS + T1] >= most else oldest_of(pool, T2, T1)
        if not pool.pages[leaving, RING] & _REFERENCED:
            move(pool, leaving, ring_of(pool, leaving) + 2)  # from T1 to B1, or from T2 to B2
            return leaving
        move(pool, leaving, T2)


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    if ring_of(pool, page):
        adapt(pool, page)
        leave(pool, page)
        join(pool, page, T2)
    else:
        make_room(pool)
        join(pool, page, T1)
