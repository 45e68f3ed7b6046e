"""The optimum, which knows the future: the page leaves that is asked for again last.

Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966 (MIN); Mattson et al.,
"Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970 (OPT).

No policy misses less.  Of pages that are never asked for again the one with the least number leaves, which the papers leave open.  Among
pages that may leave, where some are pinned, it is the rule and no longer the optimum.
"""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import (
    FLAGS,
    NEVER_AGAIN,
    NEXT_USE,
    NONE,
    NOW,
    OWN_NUMBER,
    PINNED,
    RESIDENT,
    SIZE,
    PlainPolicy,
    PlainPool,
    PoolState,
)
from flashsim.core.word_heap import BEGIN, arrange, behind, clear, item_of, number_of, page_of, put, put_back, take, take_aside

TITLE = "OPT, the optimum for a known future (Belady, IBM Systems Journal 5(2), 1966)"
INCLUSION = True
FUTURE = True
WORDS = 2
#: Items of the heap: pages by how long before `NEVER_AGAIN` they are asked for, among them some whose pages were asked for since.
_ITEMS = OWN_NUMBER


class Plain(PlainPolicy):
    """When each resident page is asked for next."""

    def __init__(self, pool: PlainPool) -> None:
        super().__init__(pool)
        self.next_use: dict[int, int] = {}

    def hit(self, page: int) -> None:
        """It is asked for later now."""
        self.next_use[page] = self.pool.next_use

    enter = hit

    def victim(self, page: int) -> int:
        """The one that is asked for last."""
        free = (each for each in self.next_use if not self.pool.pinned(each))
        leaving = max(free, key=lambda each: (self.next_use[each], -each))
        del self.next_use[leaving]
        return leaving

    def forget(self, page: int) -> None:
        """It has no next use here."""
        del self.next_use[page]


@lean_kernel
def setup(pool: PoolState) -> None:
    """No items."""
    clear(pool.words, BEGIN, 2 * pool.numbers[SIZE])


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    """It is asked for later now; the item for its present use stays, below all that matter, until there are too many."""
    numbers = pool.numbers
    size = numbers[_ITEMS]
    if size == 2 * numbers[SIZE]:
        size = _without_past(pool, size)
    put(pool.words, BEGIN, size, item_of(NEVER_AGAIN - numbers[NEXT_USE], page))
    numbers[_ITEMS] = size + 1


enter = hit


@lean_kernel
def _without_past(pool: PoolState, size: int) -> int:
    """Keep items of resident pages' uses to come; returns how many there are."""
    words, kept = pool.words, 0
    for place in range(BEGIN, BEGIN + size):
        item = words[place]
        if number_of(item) < NEVER_AGAIN - pool.numbers[NOW] and pool.pages[page_of(item), FLAGS] & RESIDENT:
            words[BEGIN + kept] = item
            kept += 1
    arrange(words, BEGIN, kept, size)
    return kept


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    """The one that is asked for last."""
    words, size, aside, leaving = pool.words, pool.numbers[_ITEMS], 0, NONE
    end = behind(BEGIN, 2 * pool.numbers[SIZE]) - 1
    while size > 0 and leaving == NONE:
        first = page_of(words[BEGIN])
        flags = pool.pages[first, FLAGS]
        if flags & RESIDENT and flags & PINNED:
            take_aside(words, BEGIN, size, end - aside)
            aside += 1
        else:
            take(words, BEGIN, size)
            if flags & RESIDENT:
                leaving = first
        size -= 1
    put_back(words, BEGIN, size, end, aside)
    pool.numbers[_ITEMS] = size + aside
    return leaving


@lean_kernel
def forget(pool: PoolState, page: int) -> None:
    """Its item is found out to stand for no resident page."""
