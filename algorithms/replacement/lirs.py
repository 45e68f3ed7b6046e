"""LIRS: pages that are asked for again after few others keep nearly all frames; the rest pass through a short queue.

The stack S holds, by recency, all pages with a low inter-reference recency (LIR) and those others (HIR) that were referenced since the
oldest LIR page was; HIR pages that have no frame any more stay in it.  The queue Q holds the HIR pages that have one.
"""

from collections import OrderedDict

from flashsim.core import replacement
from flashsim.core.kernel import inlined_kernel, lean_kernel

TITLE = "LIRS, low inter-reference recency set (Jiang and Zhang, SIGMETRICS 2002)"
PARAMETERS = {"hir": replacement.Parameter(1, 0, 99, "frames for HIR pages, in percent of the pool, and two at least")}
COLUMNS = 1


class Plain(replacement.PlainPolicy):
    """Section 3 of the paper, in what it leaves open as the authors' own program (2002), whose misses are the same.

    - The share of HIR pages is rounded down, and is two pages at least.
    - The pages that fill an empty pool are LIR but for the last ones, for which the share of HIR pages is left.
    - A page that is asked for twice in a row was asked for once.
    - The stack has no bound but its pruning.  The authors' program also takes out the lowest HIR page when the stack is longer than 2,500
      times the pool.

    Pools of one or two frames, which the authors' program refuses, have one frame for HIR pages.  When all HIR pages are pinned the
    oldest LIR page that is not leaves, and is forgotten.
    """

    def __init__(self, pool: replacement.PolicyPool, hir: int) -> None:
        super().__init__(pool)
        self.most_lirs = pool.size - max(min(max(hir * pool.size // 100, 2), pool.size - 1), 1)
        self.lirs: set[int] = set()
        # both from the oldest to the newest
        self.stack: OrderedDict[int, None] = OrderedDict()
        self.queue: OrderedDict[int, None] = OrderedDict()
        self.last = replacement.NONE

    def hit(self, page: int) -> None:
        """An HIR page that is still in the stack was asked for again sooner than the oldest LIR page, and changes places with it."""
        if page == self.last:
            return
        self.last = page
        if page in self.lirs:
            self.stack.move_to_end(page)
        elif page in self.stack:
            del self.queue[page]
            self._let_be_lir(page)
        else:
            self.queue.move_to_end(page)
            self.stack[page] = None
        self._prune()

    def victim(self, page: int) -> int:
        leaving = self.first(self.queue)
        if leaving != replacement.NONE:
            del self.queue[leaving]
            return leaving
        return self.give_up(self.first(each for each in self.stack if each in self.lirs))

    def enter(self, page: int) -> None:
        self.last = page
        if page in self.stack or len(self.lirs) < self.most_lirs:
            self._let_be_lir(page)
        else:
            self.stack[page] = self.queue[page] = None
        self._prune()

    def forget(self, page: int) -> None:
        self.lirs.discard(page)
        self.queue.pop(page, None)
        self.stack.pop(page, None)
        self._prune()

    def _let_be_lir(self, page: int) -> None:
        self.lirs.add(page)
        self.stack[page] = None
        self.stack.move_to_end(page)
        if len(self.lirs) > self.most_lirs:
            lowest = next(iter(self.stack))
            del self.stack[lowest]
            self.lirs.remove(lowest)
            self.queue[lowest] = None

    def _prune(self) -> None:
        while self.stack and (lowest := next(iter(self.stack))) not in self.lirs:
            del self.stack[lowest]


# LIR pages stand in one ring and the resident HIR pages in another, both in the order of their last references.  There is no stack: a page
# is in it if it was referenced later than the LIR page that was referenced longest ago, so that nothing has to be pruned.
_QUEUE, _LIR_RING = 0, 1
#: The number of a page's last reference, below zero if it is LIR, and 0 if the page is in the books no more; it counts from `_EPOCH` on.
_LAST_USE = replacement.OWN
_MOST_LIRS, _LIRS, _EPOCH, _LAST = range(replacement.OWN_NUMBER, replacement.OWN_NUMBER + 4)
_LATEST, _SHIFT = (1 << 31) - 1, 1 << 30


@lean_kernel
def setup(pool: replacement.PoolState) -> None:
    numbers = pool.numbers
    size = numbers[replacement.SIZE]
    numbers[_MOST_LIRS] = size - max(min(max(numbers[replacement.FIRST_PARAMETER] * size // 100, 2), size - 1), 1)


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    pages, numbers = pool.pages, pool.numbers
    if page == numbers[_LAST]:
        return
    last_use = pages[page, _LAST_USE]
    replacement.take_out(pool, page)
    if last_use < 0:
        replacement.push(pool, _LIR_RING, page)
        pages[page, _LAST_USE] = -_now(pool, page)
    elif _is_in_stack(pool, last_use):
        _let_be_lir(pool, page)
    else:
        replacement.push(pool, _QUEUE, page)
        pages[page, _LAST_USE] = _now(pool, page)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    leaving = replacement.take_oldest(pool, _QUEUE)
    if leaving == replacement.NONE:
        leaving = replacement.oldest(pool, _LIR_RING)
        forget(pool, leaving)
    return leaving


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    if _is_in_stack(pool, pool.pages[page, _LAST_USE]) or pool.numbers[_LIRS] < pool.numbers[_MOST_LIRS]:
        _let_be_lir(pool, page)
    else:
        replacement.push(pool, _QUEUE, page)
        pool.pages[page, _LAST_USE] = _now(pool, page)


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    replacement.take_out(pool, page)
    pool.numbers[_LIRS] -= pool.pages[page, _LAST_USE] < 0
    pool.pages[page, _LAST_USE] = 0


@inlined_kernel
def _is_in_stack(pool: replacement.PoolState, last_use: int) -> bool:
    lowest = pool.pages[_LIR_RING, replacement.NEWER]
    return lowest >= replacement.FIRST_PAGE and last_use > -pool.pages[lowest, _LAST_USE]


@inlined_kernel
def _let_be_lir(pool: replacement.PoolState, page: int) -> None:
    """Let a page that stands in no ring be LIR, and the lowest one HIR if there are too many."""
    pages, numbers = pool.pages, pool.numbers
    replacement.push(pool, _LIR_RING, page)
    pages[page, _LAST_USE] = -_now(pool, page)
    numbers[_LIRS] += 1
    if numbers[_LIRS] > numbers[_MOST_LIRS]:
        lowest = pages[_LIR_RING, replacement.NEWER]
        replacement.take_out(pool, lowest)
        replacement.push(pool, _QUEUE, lowest)
        pages[lowest, _LAST_USE] = -pages[lowest, _LAST_USE]
        numbers[_LIRS] -= 1


@inlined_kernel
def _now(pool: replacement.PoolState, page: int) -> int:
    pool.numbers[_LAST] = page
    if pool.numbers[replacement.NOW] - pool.numbers[_EPOCH] > _LATEST:
        _count_from_later_on(pool)
    return pool.numbers[replacement.NOW] - pool.numbers[_EPOCH]


@lean_kernel
def _count_from_later_on(pool: replacement.PoolState) -> None:
    """Once in 10^9 references; what was asked for longer ago was then asked for at the same time."""
    pages = pool.pages
    pool.numbers[_EPOCH] += _SHIFT
    for page in range(replacement.FIRST_PAGE, pages.shape[0]):
        last_use = pages[page, _LAST_USE]
        pages[page, _LAST_USE] = max(last_use - _SHIFT, 0) if last_use >= 0 else min(last_use + _SHIFT, -1)
