"""Random: any page leaves, each as likely.

Belady (*A study of replacement algorithms for a virtual-storage computer*, IBM Systems Journal 5(2), 1966) measures others against it.
Which pages it draws is a function of the pool's seed and of how many draws there were.
"""

from algorithms.replacement import _circle
from flashsim.core.draws import mix_bits
from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import FLAGS, PINNED, SEED, SIZE, PolicyPool, PoolState, stay

TITLE = "random (Belady, IBM Systems Journal 5(2), 1966)"
WORDS = _circle.FRAME_WORDS
_DRAWS = _circle.HAND
hit, forget = stay, _circle.forget


class Plain(_circle.PlainFrames):
    """Pages by frame, and how many draws there were."""

    def __init__(self, pool: PolicyPool) -> None:
        super().__init__(pool)
        self.draws = mix_bits(pool.seed)

    def victim(self, page: int) -> int:
        while True:
            self.draws += 1
            each = self.pages[(mix_bits(self.draws) * self.pool.size) >> 32]
            if not self.pool.pinned(each):
                return self.give_up(each)


@lean_kernel
def setup(pool: PoolState) -> None:
    _circle.setup(pool)
    pool.numbers[_DRAWS] = mix_bits(int(pool.numbers[SEED]))


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    _circle.take_frame(pool, page, 0)


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    while True:
        pool.numbers[_DRAWS] += 1
        each = pool.words[(mix_bits(int(pool.numbers[_DRAWS])) * pool.numbers[SIZE]) >> 32]
        if not pool.pages[each, FLAGS] & PINNED:
            break
    _circle.forget(pool, each)
    return each
