"""Most recently used: the page that was referenced last leaves, which suits loops over more pages than there are frames.

Chou and DeWitt (*An Evaluation of Buffer Management Strategies for Relational Database Systems*, VLDB 1985) replace the pages of looping
references so.  Which page it prefers to keep does not depend on the pool's size: it is a stack algorithm (Mattson, Gecsei, Slutz and
Traiger, *Evaluation techniques for storage hierarchies*, IBM Systems Journal 9(2), 1970).
"""

from collections import OrderedDict

from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import PlainPolicy, PlainPool, PoolState, newest, push, take_out

TITLE = "MRU, most recently used (Chou and DeWitt, VLDB 1985)"
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
        leaving = next(each for each in reversed(self.order) if not self.pool.pinned(each))
        self.forget(leaving)
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
    leaving = newest(pool, _RING)
    take_out(pool, leaving)
    return leaving
