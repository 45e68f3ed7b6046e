"""A table of frames, for policies that go by a page's frame: which page holds each, and which frame is the next to be filled.

A page that leaves gives its frame to the page that enters next.
"""

from flashsim.core.kernel import inlined_kernel
from flashsim.core.replacement import NEWER, OLDER, OWN_NUMBER, SIZE, PlainPolicy, PlainPool, PoolState

#: Of ``pool.words``: a page's number in each frame; in a free one, the free frame after it, from -1 downwards.
FRAME_WORDS = 1
#: Of ``pool.numbers``: the first free frame, and two that are the policy's own.
_FREE, HAND = OWN_NUMBER, OWN_NUMBER + 1
#: No page stands in a ring here, so that their columns hold a page's frame and what it is marked with.
_FRAME, MARK = OLDER, NEWER


class PlainFrames(PlainPolicy):
    """Pages by frame."""

    def __init__(self, pool: PlainPool) -> None:
        super().__init__(pool)
        self.pages = [-1] * pool.size
        self.frame: dict[int, int] = {}
        self.free = list(reversed(range(pool.size)))
        self.mark: dict[int, int] = {}

    def enter(self, page: int) -> None:
        self.frame[page] = self.free.pop()
        self.pages[self.frame[page]] = page

    def forget(self, page: int) -> None:
        self.free.append(self.frame.pop(page))


@inlined_kernel
def empty_frames(pool: PoolState) -> None:
    for frame in range(pool.numbers[SIZE]):
        pool.words[frame] = ~(frame + 1)


@inlined_kernel
def take_frame(pool: PoolState, page: int) -> None:
    frame = pool.numbers[_FREE]
    pool.numbers[_FREE] = ~pool.words[frame]
    pool.words[frame] = page
    pool.pages[page, _FRAME] = frame


@inlined_kernel
def leave_frame(pool: PoolState, page: int) -> None:
    frame = pool.pages[page, _FRAME]
    pool.words[frame] = ~pool.numbers[_FREE]
    pool.numbers[_FREE] = frame
