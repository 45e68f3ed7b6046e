"""CFLRU, clean-first LRU: of the pages used longest ago a clean one leaves before those that would have to be written back.

Park, Jung, Kang, Kim and Lee (*CFLRU: A Replacement Algorithm for Flash Memory*, CASES 2006).  Pages are ordered by their last references,
and the oldest of them are the window (the clean-first region): its oldest clean page leaves; if it has none, its oldest page.  The paper
adapts the window's size or sets it beforehand; here it is a share of the frames, and 100 % takes clean pages first wherever they are.

The paper looks through the window for a clean page.  Here its clean and its dirty pages are two lists, to which a page goes as it enters
the window, so that no victim takes longer in a larger pool.  A page that is written back meanwhile stays among the dirty ones, and one that
is changed without a reference among the clean ones.
"""

from collections import OrderedDict

from algorithms.replacement import _rings
from flashsim.core import replacement
from flashsim.core.kernel import lean_kernel

TITLE = "CFLRU, clean-first LRU (Park et al., CASES 2006)"
PARAMETERS = {"window": replacement.Parameter(25, 0, 100, "share of the frames, those used longest ago, of which clean pages leave first")}
COLUMNS = 1
forget = _rings.forget
_WORKING, _CLEAN, _DIRTY = range(1, 4)  #: The working region and the two lists of the window.


class Plain(replacement.PlainPolicy):
    """The window's clean and dirty pages and the working region, each in the order of their last references."""

    def __init__(self, pool: replacement.PolicyPool, window: int) -> None:
        super().__init__(pool)
        self.room = pool.size - pool.size * window // 100
        self.orders = self.clean, self.dirty, self.working = OrderedDict[int, None](), OrderedDict[int, None](), OrderedDict[int, None]()

    def hit(self, page: int) -> None:
        self.forget(page)
        self.enter(page)

    def enter(self, page: int) -> None:
        self.working[page] = None
        if len(self.working) > self.room:
            each, _ = self.working.popitem(last=False)
            window = self.dirty if self.pool.dirty(each) else self.clean
            window[each] = None

    def victim(self, page: int) -> int:
        return self.give_up(self.first(*self.orders))

    def forget(self, page: int) -> None:
        for order in self.orders:
            order.pop(page, None)


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    if pool.pages[page, _rings.RING] == _WORKING:
        replacement.renew(pool, _WORKING, page)
    else:
        _rings.leave(pool, page)
        enter(pool, page)


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    numbers, size = pool.numbers, pool.numbers[replacement.SIZE]
    _rings.join(pool, page, _WORKING)
    if numbers[_rings.LENGTHS + _WORKING] > size - size * numbers[replacement.FIRST_PARAMETER] // 100:
        each = pool.pages[_WORKING, replacement.NEWER]
        _rings.move(pool, each, _DIRTY if pool.pages[each, replacement.FLAGS] & replacement.DIRTY else _CLEAN)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    leaving = _rings.oldest_of(pool, _CLEAN, _DIRTY)
    if leaving == replacement.NONE:
        leaving = replacement.oldest(pool, _WORKING)
    _rings.leave(pool, leaving)
    return leaving
