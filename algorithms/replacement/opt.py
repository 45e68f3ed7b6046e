"""The optimum, which knows the future: the page leaves that is asked for again last.

Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966 (MIN); Mattson, Gecsei,
Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970 (OPT).

No policy misses less.  Of pages that are never asked for again the one first seen leaves, which the papers leave open.  Where pages are
pinned it is the rule among the others, and perhaps not the optimum.
"""

from algorithms.replacement import _next_uses
from algorithms.replacement._word_heap import page_of
from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import PoolState, stay

TITLE = "OPT, the optimum for a known future (Belady, IBM Systems Journal 5(2), 1966)"
INCLUSION = True
FUTURE = True
WORDS = _next_uses.HEAP_WORDS
forget = stay  # the page's item is found out to stand for no resident page


class Plain(_next_uses.PlainNextUses):
    """Next use of each resident page."""

    def victim(self, page: int) -> int:
        return self.give_up(self.last(self.free()))


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    _next_uses.add(pool, 0, _next_uses.present_item(pool, page))


enter = hit


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    return page_of(_next_uses.last(pool, 0, 0))
