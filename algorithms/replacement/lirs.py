"""LIRS: pages that are asked for again after few others keep nearly all frames; the rest pass through a short queue.

The stack S holds, by recency, all pages with a low inter-reference recency (LIR) and those others (HIR) that were referenced since the
oldest LIR page was; HIR pages that have no frame any more stay in it.  The queue Q holds the HIR pages that have one.
"""

from __future__ import annotations

from collections import OrderedDict

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import (
    FIRST_PAGE,
    FIRST_PARAMETER,
    FLAGS,
    NONE,
    OWN,
    OWN_NUMBER,
    PINNED,
    SIZE,
    Parameter,
    PlainPolicy,
    PlainPool,
    PoolState,
    oldest,
    push,
    take_out,
)  # fmt: skip

TITLE = "LIRS, low inter-reference recency set (Jiang and Zhang, SIGMETRICS 2002)"
PARAMETERS = {"hir": Parameter(1, 0, 99, "frames for HIR pages, in percent of the pool, and two at least")}
COLUMNS = 3


class Plain(PlainPolicy):
    """Section 3 of the paper, in what it leaves open as the authors' own program (2002), whose misses are the same.

    - The share of HIR pages is rounded down, and is two pages at least.
    - The pages that fill an empty pool are LIR but for the last ones, for which the share of HIR pages is left.
    - A page that is asked for twice in a row was asked for once.
    - The stack has no bound but its pruning.  The authors' program also takes out the lowest HIR page when the stack is longer than 2,500
      times the pool.

    Pools of one or two frames, which the authors' program refuses, have one frame for HIR pages.  When all HIR pages are pinned the
    oldest LIR page that is not leaves, and is forgotten.
    """

    def __init__(self, pool: PlainPool, hir: int) -> None:
        super().__init__(pool)
        self.most_lirs = pool.size - max(min(max(hir * pool.size // 100, 2), pool.size - 1), 1)
        self.lirs: set[int] = set()
        # both from the oldest to the newest
        self.stack: OrderedDict[int, None] = OrderedDict()
        self.queue: OrderedDict[int, None] = OrderedDict()

    def hit(self, page: int) -> None:
        """An HIR page that is still in the stack was asked for again sooner than the oldest LIR page, and changes places with it."""
        if page == next(reversed(self.stack), None):
            return
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
        """The oldest HIR page; in the stack it stays."""
        for leaving in self.queue:
            if not self.pool.pinned(leaving):
                del self.queue[leaving]
                return leaving
        leaving = next(each for each in self.stack if each in self.lirs and not self.pool.pinned(each))
        self.forget(leaving)
        return leaving

    def enter(self, page: int) -> None:
        """It is LIR if it is in the stack, or if there are too few."""
        if page in self.stack or len(self.lirs) < self.most_lirs:
            self._let_be_lir(page)
        else:
            self.stack[page] = self.queue[page] = None
        self._prune()

    def forget(self, page: int) -> None:
        """It leaves the stack too."""
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
        """Let the lowest page of the stack be LIR."""
        while self.stack and (lowest := next(iter(self.stack))) not in self.lirs:
            del self.stack[lowest]


# The queue is a ring of the pool's; the stack is one of the same shape in columns of its own.
_QUEUE, _STACK = 0, 1
_STATE, _BELOW, _ABOVE = range(OWN, OWN + 3)
#: Bits of a page's state.
_IS_LIR, _STACKED = 1, 2
_MOST_LIRS, _LIRS = OWN_NUMBER, OWN_NUMBER + 1


@lean_kernel
def setup(pool: PoolState) -> None:
    """How many pages may be LIR; the stack is empty."""
    numbers = pool.numbers
    size = numbers[SIZE]
    numbers[_MOST_LIRS] = size - max(min(max(numbers[FIRST_PARAMETER] * size // 100, 2), size - 1), 1)
    pool.pages[_STACK, _BELOW] = pool.pages[_STACK, _ABOVE] = _STACK


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    """An HIR page that is still in the stack was asked for again sooner than the oldest LIR page, and changes places with it."""
    pages = pool.pages
    if pages[_STACK, _BELOW] == page:
        return
    state = pages[page, _STATE]
    if state & _IS_LIR:
        _unstack(pool, page)
        _stack(pool, page, _IS_LIR)
    else:
        take_out(pool, page)
        if state & _STACKED:
            _unstack(pool, page)
            _let_be_lir(pool, page)
        else:
            push(pool, _QUEUE, page)
            _stack(pool, page, 0)
    _prune(pool)


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    """The oldest HIR page; in the stack it stays."""
    leaving = oldest(pool, _QUEUE)
    if leaving != NONE:
        take_out(pool, leaving)
        return leaving
    leaving = pool.pages[_STACK, _ABOVE]
    while not pool.pages[leaving, _STATE] & _IS_LIR or pool.pages[leaving, FLAGS] & PINNED:
        leaving = pool.pages[leaving, _ABOVE]
    _drop_lir(pool, leaving)
    return leaving


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    """It is LIR if it is in the stack, or if there are too few."""
    stacked = pool.pages[page, _STATE] & _STACKED
    if stacked:
        _unstack(pool, page)
    if stacked or pool.numbers[_LIRS] < pool.numbers[_MOST_LIRS]:
        _let_be_lir(pool, page)
    else:
        _stack(pool, page, 0)
        push(pool, _QUEUE, page)
    _prune(pool)


@lean_kernel
def forget(pool: PoolState, page: int) -> None:
    """It leaves the stack too."""
    state = pool.pages[page, _STATE]
    if state & _IS_LIR:
        _drop_lir(pool, page)
        return
    take_out(pool, page)
    if state & _STACKED:
        _unstack(pool, page)


@inlined_kernel
def _stack(pool: PoolState, page: int, state: int) -> None:
    """Lay a page that is not in the stack on its top."""
    pages = pool.pages
    top = pages[_STACK, _BELOW]
    pages[page, _STATE], pages[page, _BELOW], pages[page, _ABOVE] = state | _STACKED, top, _STACK
    pages[top, _ABOVE] = pages[_STACK, _BELOW] = page


@inlined_kernel
def _unstack(pool: PoolState, page: int) -> None:
    """Take a page out of the stack: it is not LIR then."""
    pages = pool.pages
    below, above = pages[page, _BELOW], pages[page, _ABOVE]
    pages[below, _ABOVE], pages[above, _BELOW], pages[page, _STATE] = above, below, 0


@inlined_kernel
def _let_be_lir(pool: PoolState, page: int) -> None:
    """Let a page that is not in the stack be LIR, and the lowest one HIR if there are too many."""
    _stack(pool, page, _IS_LIR)
    pool.numbers[_LIRS] += 1
    if pool.numbers[_LIRS] > pool.numbers[_MOST_LIRS]:
        lowest = pool.pages[_STACK, _ABOVE]
        _unstack(pool, lowest)
        pool.numbers[_LIRS] -= 1
        push(pool, _QUEUE, lowest)


@inlined_kernel
def _drop_lir(pool: PoolState, page: int) -> None:
    _unstack(pool, page)
    pool.numbers[_LIRS] -= 1
    _prune(pool)


@inlined_kernel
def _prune(pool: PoolState) -> None:
    """Let the lowest page of the stack be LIR."""
    lowest = pool.pages[_STACK, _ABOVE]
    while lowest >= FIRST_PAGE and not pool.pages[lowest, _STATE] & _IS_LIR:
        _unstack(pool, lowest)
        lowest = pool.pages[_STACK, _ABOVE]
