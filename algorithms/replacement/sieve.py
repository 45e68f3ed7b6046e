"""SIEVE: a queue in the order of entry, and a hand that goes from the oldest page to the newest and takes the first not referenced since.

Zhang, Yang, Yue, Vigfusson and Rashmi (*SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction Algorithm for Web Caches*, NSDI 2024,
algorithm 1).  Unlike CLOCK's, pages that the hand passes keep their places, so that new pages are looked at soon after they entered.
"""

from flashsim.core import replacement
from flashsim.core.hints import prefetch
from flashsim.core.kernel import lean_kernel

TITLE = "SIEVE (Zhang et al., NSDI 2024)"
COLUMNS = 1
_RING, _HAND, _VISITED = 0, replacement.OWN_NUMBER, replacement.OWN


class Plain(replacement.PlainPolicy):
    """Pages in the order in which they entered, whether each was referenced since, and the place at which the hand stands."""

    def __init__(self, pool: replacement.PolicyPool) -> None:
        super().__init__(pool)
        self.order: list[int] = []
        self.visited: dict[int, bool] = {}
        self.hand = 0

    def hit(self, page: int) -> None:
        self.visited[page] = True

    def enter(self, page: int) -> None:
        self.visited[page] = False
        self.order.append(page)

    def victim(self, page: int) -> int:
        """The first page on the hand's way without a mark; pages that are passed lose theirs, unless they are pinned."""
        while self.pool.pinned(each := self.order[self.hand]) or self.visited[each]:
            self.visited[each] &= self.pool.pinned(each)
            self.hand = (self.hand + 1) % len(self.order)
        return self.give_up(each)

    def forget(self, page: int) -> None:
        place = self.order.index(page)
        del self.order[place]
        self.hand = (self.hand - (place < self.hand)) % max(1, len(self.order))


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    pool.pages[page, _VISITED] = 1


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    pool.pages[page, _VISITED] = 0
    replacement.push(pool, _RING, page)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    pages = pool.pages
    each = pool.numbers[_HAND]
    while True:
        if each >= replacement.FIRST_PAGE and not pages[each, replacement.FLAGS] & replacement.PINNED:
            if not pages[each, _VISITED]:
                break
            pages[each, _VISITED] = 0
        each = pages[each, replacement.NEWER]
    hand = pages[each, replacement.NEWER]
    prefetch(pages, hand)  # for the next time
    pool.numbers[_HAND] = hand
    replacement.take_out(pool, each)
    return each


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    if pool.numbers[_HAND] == page:
        pool.numbers[_HAND] = pool.pages[page, replacement.NEWER]
    replacement.take_out(pool, page)
