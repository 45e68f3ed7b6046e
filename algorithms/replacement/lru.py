"""Least recently used: the page that was referenced longest ago leaves."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import PlainQueue, PoolState, enter_ring, renew, take_oldest

TITLE = "LRU, least recently used (Mattson et al., IBM Systems Journal 9(2), 1970)"
INCLUSION = True


class Plain(PlainQueue):
    """Pages in the order of their last references."""

    def hit(self, page: int) -> None:
        self.order.move_to_end(page)


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    renew(pool, 0, page)


enter = enter_ring


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    return take_oldest(pool, 0)
