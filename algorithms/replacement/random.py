"""Random: any page leaves, each as likely.

Belady (*A study of replacement algorithms for a virtual-storage computer*, IBM Systems Journal 5(2), 1966) measures others against it.
Which pages it draws is a function of the pool's seed and of how many draws there were.
"""

from algorithms.replacement._frames import FRAME_WORDS, HAND, PlainFrames, empty_frames, leave_frame, take_frame
from flashsim.core.draws import mixed
from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import FLAGS, PINNED, SEED, SIZE, PlainPool, PoolState

TITLE = "random (Belady, IBM Systems Journal 5(2), 1966)"
WORDS = FRAME_WORDS
_DRAWS = HAND


class Plain(PlainFrames):
    """Pages by frame, and how many draws there were."""

    def __init__(self, pool: PlainPool) -> None:
        super().__init__(pool)
        self.draws = mixed(pool.seed)

    def hit(self, page: int) -> None:
        """Nothing changes."""

    def victim(self, page: int) -> int:
        while True:
            self.draws += 1
            each = self.pages[(mixed(self.draws) * self.pool.size) >> 32]
            if not self.pool.pinned(each):
                self.forget(each)
                return each


@lean_kernel
def setup(pool: PoolState) -> None:
    empty_frames(pool)
    pool.numbers[_DRAWS] = mixed(int(pool.numbers[SEED]))


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    """Nothing changes."""


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    take_frame(pool, page)


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    while True:
        pool.numbers[_DRAWS] += 1
        each = pool.words[(mixed(int(pool.numbers[_DRAWS])) * pool.numbers[SIZE]) >> 32]
        if not pool.pages[each, FLAGS] & PINNED:
            break
    leave_frame(pool, each)
    return each


@lean_kernel
def forget(pool: PoolState, page: int) -> None:
    leave_frame(pool, page)
