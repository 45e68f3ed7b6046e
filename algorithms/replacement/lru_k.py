"""LRU-K: the page leaves whose K-th last uncorrelated reference lies longest ago.

Source: O'Neil, O'Neil and Weikum, "The LRU-K page replacement algorithm for database disk buffering", SIGMOD 1993, figure 2.1.  References
to a page within its correlated period count as one; the history of a page that left is kept for the retained period.  Time is counted in
references.

What the paper leaves open, and what is done here: of pages without K uncorrelated references the one referenced longest ago leaves (its
"subsidiary policy" LRU); of pages with the same K-th last time, which needs K of 3 and more and a correlated period, the one first seen;
where every page is within its correlated period, the one referenced longest ago.  A time that is not known stays unknown where the paper's
program adds a correlated period to the 0 that stands for it.
"""

from collections import OrderedDict
from collections.abc import Mapping

from algorithms.replacement._word_heap import BEGIN, arrange, behind, item_of, number_of, page_of, put, sink, take, take_aside
from flashsim.core import replacement
from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, lean_kernel

_FOREVER = (1 << 31) - 1
TITLE = "LRU-K, least recently used by the K-th last reference (O'Neil, O'Neil and Weikum, SIGMOD 1993)"
PARAMETERS = {
    "k": replacement.Parameter(2, 1, 8, "references that are remembered of a page"),
    "correlated": replacement.Parameter(0, 0, _FOREVER, "references after one to a page within which another to it counts as the same"),
    "retained": replacement.Parameter(
        _FOREVER, 0, _FOREVER, "references after its last one for which the history of a page that left is kept"
    ),
}
WORDS = 2
_K, _CORRELATED, _RETAINED = range(replacement.FIRST_PARAMETER, replacement.FIRST_PARAMETER + 3)
#: Columns: when a page was last referenced, under which number it stands in the heap (0: it does not), and from `_HISTORY` on when its last
#: uncorrelated references were, the newest first (0: not known).
_LAST, _BOUND, _HISTORY = range(replacement.OWN, replacement.OWN + 3)
#: Items of the heap: pages by a lower bound of their K-th last times; the reference before the first by which times are counted; and how
#: many items stand aside at the end of the heap's room, since somebody held their pages when a victim was looked for.
_ITEMS, _EPOCH, _ASIDE = range(replacement.OWN_NUMBER, replacement.OWN_NUMBER + 3)
_LATEST, _SHIFT = (1 << 31) - 1, 1 << 30  #: The latest time, and how much later times are counted from once it is over.
#: Rings, by the last reference: pages without K references, and pages within their correlated periods.
_FEW, _CORRELATING = 0, 1


def COLUMNS(parameters: Mapping[str, int]) -> int:  # noqa: N802
    return parameters["k"] + 2


class Plain(replacement.PlainPolicy):
    """The paper's history control blocks."""

    def __init__(self, pool: replacement.PolicyPool, k: int, correlated: int, retained: int) -> None:
        super().__init__(pool)
        self.k, self.correlated, self.retained = k, correlated, retained
        #: HIST of the paper: times of a page's last uncorrelated references, the newest first, 0 for what is not known.
        self.history: dict[int, list[int]] = {}
        #: LAST of the paper, of resident pages in the order of their last references, and of those that left.
        self.last: OrderedDict[int, int] = OrderedDict()
        self.absent: dict[int, int] = {}

    def hit(self, page: int) -> None:
        """A reference after the correlated period is a new one; the time that the former took is closed up."""
        now, last, history = self.pool.now, self.last[page], self.history[page]
        if now - last > self.correlated:
            took = last - history[0]
            self.history[page] = [now, *(time + took if time else 0 for time in history[:-1])]
        self.last[page] = now
        self.last.move_to_end(page)

    def enter(self, page: int) -> None:
        now, last = self.pool.now, self.absent.pop(page, 0)
        retained = last and now - last <= self.retained
        self.history[page] = [now, *self.history[page][:-1]] if retained else [now] + [0] * (self.k - 1)
        self.last[page] = now

    def victim(self, page: int) -> int:
        free = [each for each in self.last if not self.pool.pinned(each)]
        eligible = [each for each in free if self.pool.now - self.last[each] > self.correlated]
        leaving = min(eligible, key=self._order, default=free[0])
        return self.give_up(leaving)

    def _order(self, page: int) -> tuple[int, int]:
        time = self.history[page][-1]
        return time, page if time else self.last[page]

    def forget(self, page: int) -> None:
        self.absent[page] = self.last.pop(page)


@inlined_kernel
def _now(pool: replacement.PoolState) -> int:
    if pool.numbers[replacement.NOW] - pool.numbers[_EPOCH] > _LATEST:
        _count_from_later_on(pool)
    return pool.numbers[replacement.NOW] - pool.numbers[_EPOCH]


@lean_kernel
def _count_from_later_on(pool: replacement.PoolState) -> None:
    """Once in 10^9 references; what is as long ago was at the same time then."""
    pages, words, numbers = pool.pages, pool.words, pool.numbers
    numbers[_EPOCH] += _SHIFT
    for page in range(replacement.FIRST_PAGE, pages.shape[0]):
        for column in range(_LAST, _HISTORY + numbers[_K]):
            if pages[page, column]:
                pages[page, column] = max(pages[page, column] - _SHIFT, 1)
    _release(pool, 0)
    for place in range(BEGIN, BEGIN + numbers[_ITEMS]):
        words[place] = item_of(max(number_of(words[place]) - _SHIFT, 1), page_of(words[place]))
    arrange(words, BEGIN, numbers[_ITEMS], numbers[_ITEMS])


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    """A reference after the correlated period is a new one; the time that the former took is closed up.

    Times only grow: a page in the heap stays where it is until a victim is looked for, unless it must not leave for a while.
    """
    pages, numbers = pool.pages, pool.numbers
    now, last, correlated = _now(pool), pages[page, _LAST], numbers[_CORRELATED]
    oldest_column = _HISTORY + numbers[_K] - 1
    if now - last > correlated:
        took = last - pages[page, _HISTORY]
        for column in range(oldest_column, _HISTORY, -1):
            time = pages[page, column - 1]
            pages[page, column] = time + took if time else 0
        pages[page, _HISTORY] = now
    pages[page, _LAST] = now
    if pages[page, _BOUND] == 0:
        replacement.take_out(pool, page)
    elif correlated == 0:
        return
    _place(pool, page)


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    pages, numbers = pool.pages, pool.numbers
    now, last = _now(pool), pages[page, _LAST]
    retained = last and now - last <= numbers[_RETAINED]
    for column in range(_HISTORY + numbers[_K] - 1, _HISTORY, -1):
        pages[page, column] = pages[page, column - 1] if retained else 0
    pages[page, _HISTORY] = pages[page, _LAST] = now
    _place(pool, page)


@inlined_kernel
def _place(pool: replacement.PoolState, page: int) -> None:
    """Put a page that was just referenced where it belongs: it waits for the end of its correlated period, if there is one."""
    if pool.numbers[_CORRELATED]:
        pool.pages[page, _BOUND] = 0
        replacement.push(pool, _CORRELATING, page)
    else:
        _settle(pool, page)


@lean_kernel
def _settle(pool: replacement.PoolState, page: int) -> None:
    numbers = pool.numbers
    time = pool.pages[page, _HISTORY + numbers[_K] - 1]
    pool.pages[page, _BOUND] = time
    if time == 0:
        replacement.push(pool, _FEW, page)
        return
    size = numbers[_ITEMS]
    if size and not _stands(pool, pool.words[BEGIN]):
        sink(pool.words, BEGIN, size, 0, item_of(time, page))
        return
    if size + numbers[_ASIDE] == 2 * numbers[replacement.SIZE]:
        size = _without_past(pool)
    put(pool.words, BEGIN, size, item_of(time, page))
    numbers[_ITEMS] = size + 1


@inlined_kernel
def _stands(pool: replacement.PoolState, item: int) -> bool:
    page = page_of(item)
    return pool.pages[page, _BOUND] == number_of(item) and pool.pages[page, replacement.FLAGS] & replacement.RESIDENT != 0


@inlined_kernel
def _end(pool: replacement.PoolState) -> int:
    """Place of the first item that stands aside; others stand before it."""
    return behind(BEGIN, 2 * pool.numbers[replacement.SIZE]) - 1


@lean_kernel
def _release(pool: replacement.PoolState, keep_pinned: int) -> None:
    """Put items back that stand aside, but for those of pinned pages with `keep_pinned`.

    A page that is on its way has the oldest times of all: without this, each would be found first for each victim until it has come.
    """
    words, numbers, end = pool.words, pool.numbers, _end(pool)
    for place in range(end - numbers[_ASIDE] + 1, end + 1):
        item = words[place]
        if keep_pinned and pool.pages[page_of(item), replacement.FLAGS] & replacement.PINNED:
            continue
        words[place] = words[end - numbers[_ASIDE] + 1]  # one that stays, or itself
        numbers[_ASIDE] -= 1
        put(words, BEGIN, numbers[_ITEMS], item)
        numbers[_ITEMS] += 1


@lean_kernel
def _without_past(pool: replacement.PoolState) -> int:
    _release(pool, 0)
    words, size, write = pool.words, pool.numbers[_ITEMS], 0
    for place in range(BEGIN, BEGIN + size):
        if _stands(pool, words[place]):
            words[BEGIN + write] = words[place]
            write += 1
    arrange(words, BEGIN, write, size)
    return write


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    correlated, before = pool.numbers[_CORRELATED], _now(pool) - pool.numbers[_CORRELATED]
    if correlated:
        over = pool.pages[_CORRELATING, replacement.NEWER]
        while over >= replacement.FIRST_PAGE and pool.pages[over, _LAST] < before:
            replacement.take_out(pool, over)
            _settle(pool, over)
            over = pool.pages[_CORRELATING, replacement.NEWER]
    leaving = replacement.oldest(pool, _FEW)
    if leaving == replacement.NONE:
        leaving = _from_heap(pool)
        if leaving != replacement.NONE:
            return leaving
        leaving = replacement.oldest(pool, _CORRELATING)
    replacement.take_out(pool, leaving)
    return leaving


@lean_kernel
def _from_heap(pool: replacement.PoolState) -> int:
    """The page that leaves of those with K references, or `NONE`: bounds of those that come first are made exact.

    Its item stays, and stands for no resident page then.
    """
    _release(pool, replacement.PINNED)
    pages, words, size, leaving = pool.pages, pool.words, pool.numbers[_ITEMS], replacement.NONE
    column = _HISTORY + pool.numbers[_K] - 1
    for place in range(BEGIN + 1, BEGIN + min(size, 9)):
        prefetch(pages, page_of(words[place]))
    while size > 0:
        item = words[BEGIN]
        first = page_of(item)
        if not _stands(pool, item):
            take(words, BEGIN, size)
        elif pages[first, column] > pages[first, _BOUND]:
            pages[first, _BOUND] = pages[first, column]
            sink(words, BEGIN, size, 0, item_of(pages[first, column], first))
            continue
        elif pages[first, replacement.FLAGS] & replacement.PINNED:
            take_aside(words, BEGIN, size, _end(pool) - pool.numbers[_ASIDE])
            pool.numbers[_ASIDE] += 1
        else:
            leaving = first
            break
        size -= 1
    pool.numbers[_ITEMS] = size
    return leaving


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    """The page leaves its ring; an item in the heap is found out to stand for no resident page."""
    if pool.pages[page, _BOUND] == 0:
        replacement.take_out(pool, page)
