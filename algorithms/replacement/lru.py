"""Least recently used: the page that was referenced longest ago leaves."""

from collections import OrderedDict

from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import PlainPolicy, PlainPool, PoolState, oldest, push, take_out

TITLE = "LRU, least recently used (Mattson et al., IBM Systems Journal 9(2), 1970)"
INCLUSION = True
_RING = 0


class Plain(PlainPolicy):
    """Pages in the order of their last references."""

    def __init__(self, pool: PlainPool) -> None:
        super().__init__(pool)
        self.order: OrderedDict[int, None] = OrderedDict()

    def hit(self, page: int) -> None:
        self.order.move_to_end(page)

    def enter(self, page: int) -> None:
        self.order[page] = None

    def victim(self, page: int) -> int:
        leaving = next(each for each in self.order if not self.pool.pinned(each))
        del self.order[leaving]
        return leaving

    def forget(self, page: int) -> None:
        del self.order[page]


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    take_out(pool, page)
    push(pool, _RING, page)


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    push(pool, _RING, page)


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    leaving = oldest(pool, _RING)
    take_out(pool, leaving)
    return leaving
