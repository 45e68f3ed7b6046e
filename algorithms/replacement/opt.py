"""The optimum, which knows the future: the page leaves that is asked for again last.

Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966 (MIN); Mattson, Gecsei,
Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970 (OPT).

No policy misses less.  Of pages that are never asked for again the one first seen leaves, which the papers leave open.  Where pages are
pinned it is the rule among the others, and perhaps not the optimum.
"""

from algorithms.replacement._next_uses import HEAP_WORDS, add, last, present_item
from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import PlainPolicy, PlainPool, PoolState
from flashsim.core.word_heap import page_of

TITLE = "OPT, the optimum for a known future (Belady, IBM Systems Journal 5(2), 1966)"
INCLUSION = True
FUTURE = True
WORDS = HEAP_WORDS


class Plain(PlainPolicy):
    """When each resident page is asked for next."""

    def __init__(self, pool: PlainPool) -> None:
        super().__init__(pool)
        self.next_use: dict[int, int] = {}

    def hit(self, page: int) -> None:
        self.next_use[page] = self.pool.next_use

    enter = hit

    def victim(self, page: int) -> int:
        free = (each for each in self.next_use if not self.pool.pinned(each))
        leaving = max(free, key=lambda each: (self.next_use[each], -each))
        del self.next_use[leaving]
        return leaving

    def forget(self, page: int) -> None:
        del self.next_use[page]


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    add(pool, 0, present_item(pool, page))


enter = hit


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    return page_of(last(pool, 0, 0))


@lean_kernel
def forget(pool: PoolState, page: int) -> None:
    """Its item is found out to stand for no resident page."""
