"""S3-FIFO: a small queue lets pages that are referenced once leave early, a main queue keeps the others, a third remembers who left.

Source: Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023, algorithm 1.

Where the pseudo-code leaves something open this does as its authors' simulator, libCacheSim: a page moves to the main queue without
another's leaving it at once, and the main queue gives a page up when the next one must leave and it has more than its share; a page that
moves forgets its references; a page that comes back is taken from the ghosts before another is put there.  That simulator's version of
2024 puts new pages into the main queue while the pool fills and the small queue is full (``fill=1``); the paper's puts them into the small
one.
"""

from collections import OrderedDict

from algorithms.replacement import _rings
from flashsim.core import replacement
from flashsim.core.kernel import inlined_kernel, lean_kernel

TITLE = "S3-FIFO, three first-in first-out queues (Yang et al., SOSP 2023)"
PARAMETERS = {
    "small": replacement.Parameter(10, 1, 99, "share of the frames for pages that are new, in percent"),
    "ghosts": replacement.Parameter(90, 0, 1000, "pages that are remembered after they left the small queue, in percent of the frames"),
    "moves": replacement.Parameter(
        2, 1, 3, "references to a page of the small queue for which it moves to the main one instead of leaving"
    ),
    "fill": replacement.Parameter(0, 0, 1, "whether new pages go to the main queue while the pool fills and the small queue is full"),
}
COLUMNS = 1
_SMALL_SHARE, _GHOST_SHARE, _MOVES, _FILL = range(replacement.FIRST_PARAMETER, replacement.FIRST_PARAMETER + 4)
_SMALL, _MAIN, _GHOST = range(1, 4)
#: In a page's column, above its ring: the number of references there, at most `_MOST`; in no ring, that the page came back.
_ONE, _MOST, _BACK = _rings.RINGS, 3, _rings.RINGS
#: Flag that a page has left.
_LEFT = _rings.OWN_NUMBER
forget = _rings.forget


class Plain(replacement.PlainPolicy):
    """The paper's three queues, with how often each page was referenced."""

    def __init__(self, pool: replacement.PolicyPool, small: int, ghosts: int, moves: int, fill: int) -> None:
        super().__init__(pool)
        self.most_small, self.most_ghosts, self.moves = max(1, pool.size * small // 100), pool.size * ghosts // 100, moves
        self.small, self.main, self.ghosts = (OrderedDict[int, int]() for _ in range(3))
        self.back, self.fill = replacement.NONE, bool(fill)

    def hit(self, page: int) -> None:
        queue = self.small if page in self.small else self.main
        queue[page] = min(queue[page] + 1, _MOST)

    def enter(self, page: int) -> None:
        known = page == self.back or self.ghosts.pop(page, None) is not None
        queue = self.main if known or (self.fill and len(self.small) >= self.most_small) else self.small
        queue[page], self.back = 0, replacement.NONE

    def victim(self, page: int) -> int:
        self.fill = False
        if self.ghosts.pop(page, None) is not None:
            self.back = page
        queue, other = self.small, self.main
        if len(self.main) > self.pool.size - self.most_small:
            queue, other = other, queue
        while True:
            first = self.first(queue)
            references = queue.pop(first, None)
            if references is None:
                queue, other = other, queue
            elif queue is self.main and references:
                self.main[first] = references - 1
            elif queue is self.small and references >= self.moves:
                self.main[first] = 0
            else:
                if queue is self.small and self.most_ghosts:
                    if len(self.ghosts) == self.most_ghosts:
                        self.ghosts.popitem(last=False)
                    self.ghosts[first] = 0
                return first

    def forget(self, page: int) -> None:
        del (self.small if page in self.small else self.main)[page]


@inlined_kernel
def _share(pool: replacement.PoolState, parameter: int) -> int:
    return pool.numbers[replacement.SIZE] * pool.numbers[parameter] // 100


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    if pool.pages[page, _rings.RING] < _ONE * _MOST:
        pool.pages[page, _rings.RING] += _ONE


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    numbers, place = pool.numbers, pool.pages[page, _rings.RING]
    if place == _GHOST:
        _rings.leave(pool, page)
    filling = numbers[_FILL] and not numbers[_LEFT] and numbers[_rings.LENGTHS + _SMALL] >= max(1, _share(pool, _SMALL_SHARE))
    _rings.join(pool, page, _MAIN if place or filling else _SMALL)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    pages, numbers = pool.pages, pool.numbers
    numbers[_LEFT] = 1
    if pages[page, _rings.RING] == _GHOST:
        _rings.leave(pool, page)
        pages[page, _rings.RING] = _BACK
    most = numbers[replacement.SIZE] - max(1, _share(pool, _SMALL_SHARE))
    ring = _MAIN if numbers[_rings.LENGTHS + _MAIN] > most else _SMALL
    while True:
        first = replacement.oldest(pool, ring)
        if first == replacement.NONE:
            ring = _MAIN + _SMALL - ring
            continue
        references = pages[first, _rings.RING] // _ONE
        _rings.leave(pool, first)
        if ring == _MAIN and references:
            _rings.join(pool, first, _MAIN)
            pages[first, _rings.RING] += _ONE * (references - 1)
        elif ring == _SMALL and references >= numbers[_MOVES]:
            _rings.join(pool, first, _MAIN)
        else:
            if ring == _SMALL:
                _remember(pool, first)
            return first


@lean_kernel
def _remember(pool: replacement.PoolState, page: int) -> None:
    most = _share(pool, _GHOST_SHARE)
    if most:
        if pool.numbers[_rings.LENGTHS + _GHOST] == most:
            _rings.leave(pool, pool.pages[_GHOST, replacement.NEWER])
        _rings.join(pool, page, _GHOST)
