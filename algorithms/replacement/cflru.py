"""CFLRU, clean-first LRU: of the pages used longest ago a clean one leaves before those that would have to be written back.

Park, Jung, Kang, Kim and Lee (*CFLRU: A Replacement Algorithm for Flash Memory*, CASES 2006).  Pages are ordered by their last references,
and the oldest of them are the window (the clean-first region): its oldest clean page leaves; if it has none, its oldest page.  The paper
adapts the window's size or sets it beforehand; here it is a share of the frames, and 100 % takes clean pages first wherever they are.

The paper looks through the window for a clean page.  Here its clean and its dirty pages are two lists, to which a page goes as it enters
the window, so that no victim takes longer in a larger pool.  A page that is written back meanwhile stays among the dirty ones, and one that
is changed without a reference among the clean ones.
"""

from collections import OrderedDict

from flashsim.core import replacement
from flashsim.core.kernel import inlined_kernel, lean_kernel

TITLE = "CFLRU, clean-first LRU (Park et al., CASES 2006)"
PARAMETERS = {"window": replacement.Parameter(25, 0, 100, "share of the frames, those used longest ago, of which clean pages leave first")}
COLUMNS = 1
#: The working region and the two lists of the window; a page's list; pages of the working region that there are, and that there may be.
_WORKING, _CLEAN, _DIRTY = range(3)
_LIST, _WORKS, _ROOM = replacement.OWN, replacement.OWN_NUMBER, replacement.OWN_NUMBER + 1


class Plain(replacement.PlainPolicy):
    """The working region and the window's clean and dirty pages, each in the order of their last references."""

    def __init__(self, pool: replacement.PlainPool, window: int) -> None:
        super().__init__(pool)
        self.room = pool.size - pool.size * window // 100
        self.working: OrderedDict[int, None] = OrderedDict()
        self.clean: OrderedDict[int, None] = OrderedDict()
        self.dirty: OrderedDict[int, None] = OrderedDict()

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
        pages = (each for order in (self.clean, self.dirty, self.working) for each in order)
        leaving = next(each for each in pages if not self.pool.pinned(each))
        self.forget(leaving)
        return leaving

    def forget(self, page: int) -> None:
        for order in (self.clean, self.dirty, self.working):
            order.pop(page, None)


@lean_kernel
def setup(pool: replacement.PoolState) -> None:
    """The frames that are not the window's are the working region's."""
    size = pool.numbers[replacement.SIZE]
    pool.numbers[_ROOM] = size - size * pool.numbers[replacement.FIRST_PARAMETER] // 100


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    _leave(pool, page)
    _begin(pool, page)


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    _begin(pool, page)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    leaving = replacement.oldest(pool, _CLEAN)
    if leaving == replacement.NONE:
        leaving = replacement.oldest(pool, _DIRTY)
    if leaving == replacement.NONE:
        leaving = replacement.oldest(pool, _WORKING)
    _leave(pool, leaving)
    return leaving


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    _leave(pool, page)


@inlined_kernel
def _leave(pool: replacement.PoolState, page: int) -> None:
    replacement.take_out(pool, page)
    if pool.pages[page, _LIST] == _WORKING:
        pool.numbers[_WORKS] -= 1


@inlined_kernel
def _begin(pool: replacement.PoolState, page: int) -> None:
    pages, numbers = pool.pages, pool.numbers
    replacement.push(pool, _WORKING, page)
    pages[page, _LIST] = _WORKING
    numbers[_WORKS] += 1
    if numbers[_WORKS] > numbers[_ROOM]:
        each = pages[_WORKING, replacement.NEWER]
        replacement.take_out(pool, each)
        window = _DIRTY if pages[each, replacement.FLAGS] & replacement.DIRTY else _CLEAN
        replacement.push(pool, window, each)
        pages[each, _LIST] = window
        numbers[_WORKS] -= 1
