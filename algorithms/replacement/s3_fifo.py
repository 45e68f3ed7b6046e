"""S3-FIFO: a small queue lets pages that are referenced once leave early, a main queue keeps the others, a third remembers who left.

Source: Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023, algorithm 1.

Where the pseudo-code leaves something open this does as its authors' simulator, libCacheSim: a page moves to the main queue without
another's leaving it at once, and the main queue gives a page up when the next one must leave and it has more than its share; a page that
moves forgets its references; a page that comes back is taken from the ghosts before another is put there.  That simulator's version of
2024 puts new pages into the main queue while the pool fills and the small queue is full (``fill=1``); the paper's puts them into the small
one.
"""

from collections import OrderedDict

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
#: Where a page is, which is also its ring; one that came back is in none.
_SMALL, _MAIN, _GHOST, _BACK = 1, 2, 3, 4
#: A column: where a page is, and above how often it was referenced there, at most `_MOST`.
_PLACE = replacement.OWN
_ONE, _MOST = 8, 3
#: Pages in each ring, and whether any has left.
_LENGTHS, _LEFT = replacement.OWN_NUMBER, replacement.OWN_NUMBER + 5


class Plain(replacement.PlainPolicy):
    """The paper's three queues, with how often each page was referenced."""

    def __init__(self, pool: replacement.PlainPool, small: int, ghosts: int, moves: int, fill: int) -> None:
        super().__init__(pool)
        self.most_small, self.most_ghosts, self.moves = max(1, pool.size * small // 100), pool.size * ghosts // 100, moves
        self.small: OrderedDict[int, int] = OrderedDict()
        self.main: OrderedDict[int, int] = OrderedDict()
        self.ghosts: OrderedDict[int, None] = OrderedDict()
        self.back, self.fill = 0, bool(fill)

    def hit(self, page: int) -> None:
        queue = self.small if page in self.small else self.main
        queue[page] = min(queue[page] + 1, _MOST)

    def enter(self, page: int) -> None:
        known = page == self.back or page in self.ghosts
        self.ghosts.pop(page, None)
        queue = self.main if known or (self.fill and len(self.small) >= self.most_small) else self.small
        queue[page] = self.back = 0

    def victim(self, page: int) -> int:
        self.fill = False
        if page in self.ghosts:
            del self.ghosts[page]
            self.back = page
        queue, other = self.small, self.main
        if len(self.main) > self.pool.size - self.most_small:
            queue, other = other, queue
        while True:
            first = self._first(queue)
            references = queue.pop(first, None)
            if references is None:
                queue, other = other, queue
            elif queue is self.main and references:
                self.main[first] = references - 1
            elif queue is self.small and references >= self.moves:
                self.main[first] = 0
            else:
                if queue is self.small:
                    self._remember(first)
                return first

    def _first(self, queue: OrderedDict[int, int]) -> int:
        return next((each for each in queue if not self.pool.pinned(each)), 0)

    def _remember(self, page: int) -> None:
        if self.most_ghosts:
            if len(self.ghosts) == self.most_ghosts:
                self.ghosts.popitem(last=False)
            self.ghosts[page] = None

    def forget(self, page: int) -> None:
        del (self.small if page in self.small else self.main)[page]


@inlined_kernel
def _share(pool: replacement.PoolState, parameter: int) -> int:
    return pool.numbers[replacement.SIZE] * pool.numbers[parameter] // 100


@inlined_kernel
def _append(pool: replacement.PoolState, page: int, ring: int, references: int) -> None:
    pool.pages[page, _PLACE] = ring + _ONE * references
    pool.numbers[_LENGTHS + ring] += 1
    replacement.push(pool, ring, page)


@inlined_kernel
def _remove(pool: replacement.PoolState, page: int) -> None:
    pool.numbers[_LENGTHS + pool.pages[page, _PLACE] % _ONE] -= 1
    pool.pages[page, _PLACE] = 0
    replacement.take_out(pool, page)


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    if pool.pages[page, _PLACE] < _ONE * _MOST:
        pool.pages[page, _PLACE] += _ONE


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    numbers, place = pool.numbers, pool.pages[page, _PLACE]
    if place == _GHOST:
        _remove(pool, page)
    filling = numbers[_FILL] and not numbers[_LEFT] and numbers[_LENGTHS + _SMALL] >= max(1, _share(pool, _SMALL_SHARE))
    _append(pool, page, _MAIN if place >= _GHOST or filling else _SMALL, 0)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    pages, numbers = pool.pages, pool.numbers
    numbers[_LEFT] = 1
    if pages[page, _PLACE] == _GHOST:
        _remove(pool, page)
        pages[page, _PLACE] = _BACK
    most = numbers[replacement.SIZE] - max(1, _share(pool, _SMALL_SHARE))
    ring = _MAIN if numbers[_LENGTHS + _MAIN] > most else _SMALL
    while True:
        first = replacement.oldest(pool, ring)
        if first == replacement.NONE:
            ring = _MAIN + _SMALL - ring
            continue
        references = pages[first, _PLACE] // _ONE
        _remove(pool, first)
        if ring == _MAIN and references:
            _append(pool, first, _MAIN, references - 1)
        elif ring == _SMALL and references >= numbers[_MOVES]:
            _append(pool, first, _MAIN, 0)
        else:
            if ring == _SMALL:
                _remember(pool, first)
            return first


@lean_kernel
def _remember(pool: replacement.PoolState, page: int) -> None:
    most = _share(pool, _GHOST_SHARE)
    if most:
        if pool.numbers[_LENGTHS + _GHOST] == most:
            _remove(pool, pool.pages[_GHOST, replacement.NEWER])
        _append(pool, page, _GHOST, 0)


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    _remove(pool, page)
