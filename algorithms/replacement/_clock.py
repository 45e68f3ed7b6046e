"""A clock of frames: a hand goes around, takes one from the count of every page that it passes, and stops at a page without."""

from algorithms.replacement._frames import HAND, MARK, PlainFrames, empty_frames, leave_frame, take_frame
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.prefetch import prefetch
from flashsim.core.replacement import FLAGS, PINNED, SIZE, PlainPool, PoolState

#: Frames ahead of the hand whose pages the processor is told of.
_AHEAD = 4


class PlainClock(PlainFrames):
    """Frames in a circle, a count for each page, and a hand.

    Parameters
    ----------
    limit
        What a count rises to at most.
    entering
        The count of a page that enters.
    """

    def __init__(self, pool: PlainPool, limit: int, entering: int) -> None:
        super().__init__(pool)
        self.limit, self.entering, self.hand = limit, entering, 0

    def hit(self, page: int) -> None:
        self.mark[page] = min(self.mark[page] + 1, self.limit)

    def enter(self, page: int) -> None:
        super().enter(page)
        self.mark[page] = min(self.entering, self.limit)

    def victim(self, page: int) -> int:
        """The first page on the way of the hand whose count is 0; pages that are pinned keep theirs."""
        while True:
            each = self.pages[self.hand]
            self.hand = (self.hand + 1) % self.pool.size
            if not self.pool.pinned(each):
                if self.mark[each] == 0:
                    self.forget(each)
                    return each
                self.mark[each] -= 1


@lean_kernel
def setup(pool: PoolState) -> None:
    """All frames are free, and the hand stands at the first."""
    empty_frames(pool)


@inlined_kernel
def count_more(pool: PoolState, page: int, limit: int) -> None:
    if pool.pages[page, MARK] < limit:
        pool.pages[page, MARK] += 1


@inlined_kernel
def enter_with(pool: PoolState, page: int, count: int) -> None:
    """Put a page into the frame that was left, behind the hand."""
    take_frame(pool, page)
    pool.pages[page, MARK] = count


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    size, pages, words = pool.numbers[SIZE], pool.pages, pool.words
    hand = pool.numbers[HAND]
    while True:
        if hand + _AHEAD < size:
            prefetch(pages, words[hand + _AHEAD])
        each = words[hand]
        hand = hand + 1 if hand + 1 < size else 0
        if not pages[each, FLAGS] & PINNED:
            if pages[each, MARK] == 0:
                break
            pages[each, MARK] -= 1
    pool.numbers[HAND] = hand
    leave_frame(pool, each)
    return each


@lean_kernel
def forget(pool: PoolState, page: int) -> None:
    leave_frame(pool, page)
