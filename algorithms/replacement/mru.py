"""Most recently used: the page that was referenced last leaves, which suits loops over more pages than there are frames.

Chou and DeWitt (*An Evaluation of Buffer Management Strategies for Relational Database Systems*, VLDB 1985) replace the pages of looping
references so.  Which page it prefers to keep does not depend on the pool's size: it is a stack algorithm (Mattson, Gecsei, Slutz and
Traiger, *Evaluation techniques for storage hierarchies*, IBM Systems Journal 9(2), 1970).
"""

from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import PlainQueue, PoolState, enter_ring, newest, renew, take_out

TITLE = "MRU, most recently used (Chou and DeWitt, VLDB 1985)"
INCLUSION = True


class Plain(PlainQueue):
    """Pages in the order of their last references."""

    def hit(self, page: int) -> None:
        self.order.move_to_end(page)

    def victim(self, page: int) -> int:
        return self.give_up(self.first(reversed(self.order)))


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    renew(pool, 0, page)


enter = enter_ring


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    leaving = newest(pool, 0)
    take_out(pool, leaving)
    return leaving
