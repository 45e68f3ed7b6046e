"""First in, first out: the page that has been in the pool longest leaves, however often it was referenced since.

Belady, Nelson and Shedler (*An Anomaly in Space-Time Characteristics of Certain Programs Running in a Paging Machine*, CACM 12(6), 1969)
show that a larger pool may miss more under it.
"""

from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import PlainPolicy, PlainPool, PoolState, oldest, push, take_out

TITLE = "FIFO, first in first out (Belady, Nelson and Shedler, CACM 12(6), 1969)"
_RING = 0


class Plain(PlainPolicy):
    """Pages in the order in which they entered."""

    def __init__(self, pool: PlainPool) -> None:
        super().__init__(pool)
        self.order: dict[int, None] = {}

    def hit(self, page: int) -> None:
        """The page keeps its place."""

    def enter(self, page: int) -> None:
        self.order[page] = None

    def victim(self, page: int) -> int:
        leaving = next(each for each in self.order if not self.pool.pinned(each))
        self.forget(leaving)
        return leaving

    def forget(self, page: int) -> None:
        del self.order[page]


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    """The page keeps its place."""


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    push(pool, _RING, page)


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    leaving = oldest(pool, _RING)
    take_out(pool, leaving)
    return leaving
