"""OPT with write-backs priced: a page leaves that is asked for late, and that costs little to write back and read again.

To keep the cost of reads and write-backs least is NP-hard (Beckmann, Gibbons, Haeupler and McGuffey, "Writeback-aware caching", APOCS
2020), so this is a rule, and not the optimum.  A page that leaves costs a read when it is asked for again, and a write-back if it is dirty;
but a write-back is only spent if the page is written again later, since a dirty page must be written back once in any case.  Of the pages
that cost only a read, and of those that cost both, the one that is asked for last is considered; of the two that one leaves which costs
less for each reference for which its frame is free.  A page that is never asked for again costs nothing.

Where no write-back has a price this is OPT.  Where it has one the rule can still be dearer than OPT on some streams: whether it pays to
keep a page depends on all that comes before it is asked for, which a rule that looks at one reference of each page does not see.
"""

from algorithms.replacement import _next_uses
from algorithms.replacement._word_heap import NO_ITEM, page_of
from flashsim.core import replacement
from flashsim.core.kernel import inlined_kernel, lean_kernel

TITLE = "OPT with write-backs priced (a rule; the problem is NP-hard: Beckmann et al., APOCS 2020)"
PARAMETERS = {"price": replacement.Parameter(100, 0, 100_000, "what a write-back costs, in percent of a read")}
FUTURE = True
WORDS = 2 * _next_uses.HEAP_WORDS
_PRICE = replacement.FIRST_PARAMETER
#: Heaps: pages that cost a read when they leave, and pages that cost a write-back besides.
_CHEAP, _DEAR = 0, 1
forget = replacement.stay  # the page's item is found out to stand for no resident page


class Plain(_next_uses.PlainNextUses):
    """Next use of each resident page, and whether the page is written again."""

    def __init__(self, pool: replacement.PolicyPool, price: int) -> None:
        super().__init__(pool)
        self.price = price
        self.written_again: dict[int, bool] = {}

    def hit(self, page: int) -> None:
        super().hit(page)
        self.written_again[page] = self.pool.written_again

    def victim(self, page: int) -> int:
        """The one that costs less for the time that its frame is free, of the last cheap one and the last dear one."""
        free = self.free()
        dear = {each for each in free if self.pool.dirty(each) and self.written_again[each]}
        last = [self.last(pages) for pages in (free - dear, dear) if pages]
        return self.give_up(min(last, key=lambda page: self._cost(page, page in dear)))

    def _cost(self, page: int, dear: bool) -> float:
        if self.next_use[page] == replacement.NEVER_AGAIN:
            return 0
        return (100 + self.price * dear) / (self.next_use[page] - self.pool.now)


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    dear = pool.numbers[replacement.WRITTEN_AGAIN] and pool.pages[page, replacement.FLAGS] & replacement.DIRTY
    _next_uses.add(pool, _DEAR if dear else _CHEAP, _next_uses.present_item(pool, page))


enter = hit


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    dear, cheap = _next_uses.last(pool, _DEAR, replacement.DIRTY), _next_uses.last(pool, _CHEAP, 0)
    return page_of(dear if cheap == NO_ITEM or (dear != NO_ITEM and _pays_sooner(pool, dear, cheap)) else cheap)


@inlined_kernel
def _pays_sooner(pool: replacement.PoolState, dear: int, cheap: int) -> bool:
    now, until_dear, until_cheap = pool.numbers[replacement.NOW], _next_uses.next_use_of(dear), _next_uses.next_use_of(cheap)
    if until_cheap == replacement.NEVER_AGAIN:
        return False
    return (100 + pool.numbers[_PRICE]) * (until_cheap - now) < 100 * (until_dear - now)
