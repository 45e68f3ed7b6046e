"""W-TinyLFU: a small window of new pages, and a main part that a page enters only if it was referenced more often than the one that leaves.

Source: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy", ACM Transactions on Storage 13(4), 2017: a
window of least recently used pages, a main part of two segments (pages on probation, and protected ones that were referenced there), and a
count-min sketch of references (4 counters of 4 bits a page, halved after 10 references a frame).

What the paper leaves open is done as its authors' simulator, Caffeine, does: at a draw the page that wants to enter leaves; the sketch's
sample shrinks with its counters, less a quarter of those that were odd.  Left out is the door-keeper, an option of the paper's.  The four
counters of a page lie in one line of a processor's cache, 30 to choose from each, and not all over the sketch.
"""

from collections import OrderedDict, defaultdict

from algorithms.replacement import _rings
from flashsim.core import replacement
from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, lean_kernel

TITLE = "W-TinyLFU, a window before a main part that asks for frequency (Einziger, Friedman and Manes, ACM TOS 13(4), 2017)"
PARAMETERS = {
    "window": replacement.Parameter(1, 1, 99, "share of the frames for new pages, in percent"),
    "protected": replacement.Parameter(80, 0, 99, "share of the other frames for pages that were referenced there, in percent"),
    "sample": replacement.Parameter(10, 1, 1000, "references a frame after which all counters are halved"),
}
COLUMNS = 1
WORDS = 1
forget = _rings.forget
_WINDOW_SHARE, _PROTECTED_SHARE, _SAMPLE = range(replacement.FIRST_PARAMETER, replacement.FIRST_PARAMETER + 3)
_WINDOW, _PROBATION, _PROTECTED = range(1, 4)
#: References in the sketch, and the last reference that it counted.
_REFERENCES, _COUNTED = _rings.OWN_NUMBER, _rings.OWN_NUMBER + 1
#: A block of the sketch is 8 words of 15 counters, and a page's n-th counter is one of 30 in its words 2 n and 2 n + 1.
_SKETCH, _BLOCK, _COUNTERS, _ROWS, _ROW, _FULL = 64, 8, 15, 4, 30, 15
_ODD, _HALVES, _32 = 0x0111_1111_1111_1111, 0x0777_7777_7777_7777, (1 << 32) - 1


@inlined_kernel
def _counter(page: int, frames: int, row: int) -> int:
    mixed = (int(page) * 0x9E3779B1) & _32
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & _32
    mixed = ((mixed ^ (mixed >> 12)) * 0x297A2D39) & _32
    mixed ^= mixed >> 15
    block = (mixed * ((frames + _BLOCK - 1) // _BLOCK)) >> 32
    again = (mixed * 0x2F6C1A35) & _32
    again ^= again >> 16
    return (block * _ROWS + row) * _ROW + ((((again >> (8 * row)) & 255) * _ROW) >> 8)


class Plain(replacement.PlainPolicy):
    """Three orders of last references, and how often pages were referenced."""

    def __init__(self, pool: replacement.PolicyPool, window: int, protected: int, sample: int) -> None:
        super().__init__(pool)
        main = pool.size * (100 - window) // 100
        self.most_window, self.most_protected, self.sample = pool.size - main, main * protected // 100, sample * pool.size
        self.window, self.probation, self.protected = (OrderedDict[int, None]() for _ in range(3))
        self.counters: defaultdict[int, int] = defaultdict(int)
        self.references = self.counted = 0

    def hit(self, page: int) -> None:
        """Protect a page on probation; the protected page that was referenced longest ago may go back to probation."""
        self._count(page)
        if page in self.probation:
            del self.probation[page]
            self.protected[page] = None
            if len(self.protected) > self.most_protected:
                self.probation[self.protected.popitem(last=False)[0]] = None
        else:
            (self.window if page in self.window else self.protected).move_to_end(page)

    def enter(self, page: int) -> None:
        """The page enters the window; if that is too full while the main part is not, the oldest there goes on."""
        self._count(page)
        self.window[page] = None
        if len(self.window) > self.most_window:
            self.probation[self.window.popitem(last=False)[0]] = None

    def victim(self, page: int) -> int:
        self._count(page)
        rival, candidate = self.first(self.probation, self.protected), self.first(self.window)
        if candidate == replacement.NONE or (rival != replacement.NONE and len(self.window) < self.most_window):
            return self.give_up(rival)
        if rival != replacement.NONE and self._frequency(candidate) > self._frequency(rival):
            del self.window[candidate]
            self.probation[candidate] = None
            return self.give_up(rival)
        return self.give_up(candidate)

    def forget(self, page: int) -> None:
        del next(part for part in (self.window, self.probation, self.protected) if page in part)[page]

    def _frequency(self, page: int) -> int:
        return min(self.counters[_counter(page, self.pool.size, row)] for row in range(_ROWS))

    def _count(self, page: int) -> None:
        if self.counted == self.pool.now:
            return
        self.counted = self.pool.now
        counters = [_counter(page, self.pool.size, row) for row in range(_ROWS)]
        self.references += any(self.counters[each] < _FULL for each in counters)
        for each in counters:
            self.counters[each] = min(self.counters[each] + 1, _FULL)
        if self.references == self.sample:
            odd = sum(count % 2 for count in self.counters.values())
            self.counters = defaultdict(int, {each: count // 2 for each, count in self.counters.items()})
            self.references = (self.references - odd // 4) // 2


@inlined_kernel
def _main(pool: replacement.PoolState) -> int:
    return pool.numbers[replacement.SIZE] * (100 - pool.numbers[_WINDOW_SHARE]) // 100


@lean_kernel
def _frequency(pool: replacement.PoolState, page: int) -> int:
    least = _FULL
    for row in range(_ROWS):
        counter = _counter(page, pool.numbers[replacement.SIZE], row)
        least = min(least, pool.words[_SKETCH + counter // _COUNTERS] >> (4 * (counter % _COUNTERS)) & _FULL)
    return least


@lean_kernel
def _count(pool: replacement.PoolState, page: int) -> None:
    words, numbers = pool.words, pool.numbers
    if numbers[_COUNTED] == numbers[replacement.NOW]:
        return
    numbers[_COUNTED] = numbers[replacement.NOW]
    grown = 0
    for row in range(_ROWS):
        counter = _counter(page, numbers[replacement.SIZE], row)
        word, shift = _SKETCH + counter // _COUNTERS, 4 * (counter % _COUNTERS)
        if words[word] >> shift & _FULL < _FULL:
            words[word] += 1 << shift
            grown = 1
    numbers[_REFERENCES] += grown
    if numbers[_REFERENCES] == numbers[_SAMPLE] * numbers[replacement.SIZE]:
        _halve(pool)


@lean_kernel
def _halve(pool: replacement.PoolState) -> None:
    words, odd = pool.words, 0
    for word in range(_SKETCH, words.shape[0]):
        ones = words[word] & _ODD
        while ones:
            ones &= ones - 1
            odd += 1
        words[word] = words[word] >> 1 & _HALVES
    pool.numbers[_REFERENCES] = (pool.numbers[_REFERENCES] - odd // 4) // 2


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    _count(pool, page)
    ring = _rings.ring_of(pool, page)
    if ring != _PROBATION:
        replacement.renew(pool, ring, page)
        return
    _rings.move(pool, page, _PROTECTED)
    if pool.numbers[_rings.LENGTHS + _PROTECTED] > _main(pool) * pool.numbers[_PROTECTED_SHARE] // 100:
        _rings.move(pool, pool.pages[_PROTECTED, replacement.NEWER], _PROBATION)


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    _count(pool, page)
    _rings.join(pool, page, _WINDOW)
    if pool.numbers[_rings.LENGTHS + _WINDOW] > pool.numbers[replacement.SIZE] - _main(pool):
        _rings.move(pool, pool.pages[_WINDOW, replacement.NEWER], _PROBATION)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    _count(pool, page)
    numbers = pool.numbers
    candidate, leaving = replacement.oldest(pool, _WINDOW), _rings.oldest_of(pool, _PROBATION, _PROTECTED)
    full = numbers[_rings.LENGTHS + _WINDOW] >= numbers[replacement.SIZE] - _main(pool)
    if candidate != replacement.NONE and (leaving == replacement.NONE or full):
        if leaving != replacement.NONE and _frequency(pool, candidate) > _frequency(pool, leaving):
            _rings.move(pool, candidate, _PROBATION)
        else:
            leaving = candidate
    _rings.leave(pool, leaving)
    for ring in (_WINDOW, _PROBATION):  # whose pages' counters are compared next
        prefetch(pool.words, _SKETCH + _counter(pool.pages[ring, replacement.NEWER], numbers[replacement.SIZE], 0) // _COUNTERS)
    return leaving
