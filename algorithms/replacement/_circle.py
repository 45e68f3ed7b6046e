"""Frames in a circle: which page stands in each, which one is the next to be filled, and a hand that looks for a page without a count.

A page that leaves gives its frame to the page that enters next.
"""

from flashsim.core import replacement
from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, lean_kernel

#: Words of ``pool.words`` a frame: the number of its page; in a free one, the free frame after it, from -1 downwards.
FRAME_WORDS = 1
#: Numbers of a pool: the first free frame, and one that is the policy's own.
_FREE, HAND = replacement.OWN_NUMBER, replacement.OWN_NUMBER + 1
#: No page stands in a ring here, so that their columns hold a page's frame and its count.
_FRAME, _COUNT = replacement.OLDER, replacement.NEWER
_AHEAD = 4  #: Frames ahead of the hand whose pages the processor is told of.


class PlainFrames(replacement.PlainPolicy):
    """Pages by frame."""

    def __init__(self, pool: replacement.PolicyPool) -> None:
        super().__init__(pool)
        self.pages = [replacement.NONE] * pool.size
        self.free = list(reversed(range(pool.size)))

    def hit(self, page: int) -> None:
        """Nothing changes."""

    def enter(self, page: int) -> None:
        self.pages[self.free.pop()] = page

    def forget(self, page: int) -> None:
        self.free.append(self.pages.index(page))
        self.pages[self.free[-1]] = replacement.NONE


class PlainClock(PlainFrames):
    """Frames in a circle, a hand, and a count for each page, which is `entering` when the page enters and rises to `limit` at most."""

    def __init__(self, pool: replacement.PolicyPool, limit: int, entering: int) -> None:
        super().__init__(pool)
        self.limit, self.entering, self.hand = limit, entering, 0
        self.count: dict[int, int] = {}

    def hit(self, page: int) -> None:
        self.count[page] = min(self.count[page] + 1, self.limit)

    def enter(self, page: int) -> None:
        super().enter(page)
        self.count[page] = min(self.entering, self.limit)

    def victim(self, page: int) -> int:
        """The first page on the way of the hand whose count is 0; pages that are pinned keep theirs."""
        while True:
            each = self.pages[self.hand]
            self.hand = (self.hand + 1) % self.pool.size
            if not self.pool.pinned(each):
                if self.count[each] == 0:
                    return self.give_up(each)
                self.count[each] -= 1


@lean_kernel
def setup(pool: replacement.PoolState) -> None:
    """All frames are free, and the hand stands at the first."""
    for frame in range(pool.numbers[replacement.SIZE]):
        pool.words[frame] = ~(frame + 1)


@inlined_kernel
def take_frame(pool: replacement.PoolState, page: int, count: int) -> None:
    """Put a page into the frame that was left last, behind the hand."""
    frame = pool.numbers[_FREE]
    pool.numbers[_FREE] = ~pool.words[frame]
    pool.words[frame] = page
    pool.pages[page, _FRAME], pool.pages[page, _COUNT] = frame, count


@inlined_kernel
def count_more(pool: replacement.PoolState, page: int, limit: int) -> None:
    if pool.pages[page, _COUNT] < limit:
        pool.pages[page, _COUNT] += 1


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    size, pages, words = pool.numbers[replacement.SIZE], pool.pages, pool.words
    hand = pool.numbers[HAND]
    while True:
        if hand + _AHEAD < size:
            prefetch(pages, words[hand + _AHEAD])
        each = words[hand]
        hand = hand + 1 if hand + 1 < size else 0
        if not pages[each, replacement.FLAGS] & replacement.PINNED:
            if pages[each, _COUNT] == 0:
                break
            pages[each, _COUNT] -= 1
    pool.numbers[HAND] = hand
    forget(pool, each)
    return each


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    frame = pool.pages[page, _FRAME]
    pool.words[frame] = ~pool.numbers[_FREE]
    pool.numbers[_FREE] = frame
