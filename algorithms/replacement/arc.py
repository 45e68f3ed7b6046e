"""ARC: two lists by recency, of pages seen once and of pages seen more often, whose shares follow the hits on what they lost.

A page is in T1 if it was seen once lately and in T2 if more often; those that left are remembered in B1 and B2.
"""

from algorithms.replacement._directory import B2, T1, T2, PlainDirectory, adapt, make_room, target
from algorithms.replacement._rings import LENGTHS, RING, RINGS, forget, join, leave, move, oldest_of, ring_of
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import NONE, SIZE, PolicyPool, PoolState, oldest, renew

TITLE = "ARC, adaptive replacement cache (Megiddo and Modha, FAST 2003)"
COLUMNS = 1
__all__ = ["COLUMNS", "TITLE", "Plain", "enter", "forget", "hit", "victim"]


class Plain(PlainDirectory):
    """Figure 4 of the paper, with the misses of libCacheSim.

    Of the directory, a page is forgotten when another enters, which comes to the same as before the replacement.
    """

    def __init__(self, pool: PolicyPool) -> None:
        super().__init__(pool)
        self.recalled = NONE

    def hit(self, page: int) -> None:
        self.forget(page)
        self.t2[page] = False

    def victim(self, page: int) -> int:
        """Cases II and III replace after they have moved the target; of case IV the part that chooses."""
        in_b2 = page in self.b2
        if self.recall(page):
            self.recalled = page
        once, often = self.first(self.t1), self.first(self.t2)
        if page != self.recalled and len(self.t1) >= self.pool.size:
            return self.give_up(once)  # and is not remembered
        from_t1 = len(self.t1) > self.p or (in_b2 and len(self.t1) == self.p)
        if once != NONE and (from_t1 or often == NONE):
            self.b1[once] = False
            return self.give_up(once)
        self.b2[often] = False
        return self.give_up(often)

    def enter(self, page: int) -> None:
        if self.recall(page) or page == self.recalled:
            self.t2[page] = False
            self.recalled = NONE
        else:
            self.make_room()
            self.t1[page] = False


_RECALLED = RINGS  #: Column value of a page that was in B1 or B2 and has not entered yet: the page stands in no ring.


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    if pool.pages[page, RING] == T2:
        renew(pool, T2, page)
    else:
        move(pool, page, T2)


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    in_b2 = ring_of(pool, page) == B2
    _recall(pool, page)
    once = pool.numbers[LENGTHS + T1]
    if pool.pages[page, RING] != _RECALLED and once >= pool.numbers[SIZE]:
        leaving = oldest(pool, T1)
        leave(pool, leaving)
        return leaving
    from_t1 = once > 0 and (once > target(pool) or (in_b2 and once == target(pool)))
    leaving = oldest_of(pool, T1, T2) if from_t1 else oldest_of(pool, T2, T1)
    move(pool, leaving, ring_of(pool, leaving) + 2)  # from T1 to B1, or from T2 to B2
    return leaving


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    _recall(pool, page)
    if pool.pages[page, RING] == _RECALLED:
        join(pool, page, T2)
    else:
        make_room(pool)
        join(pool, page, T1)


@inlined_kernel
def _recall(pool: PoolState, page: int) -> None:
    """Move the target if the page is remembered, and take it out of the directory."""
    if ring_of(pool, page):
        adapt(pool, page)
        leave(pool, page)
        pool.pages[page, RING] = _RECALLED
