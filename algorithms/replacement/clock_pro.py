"""CLOCK-Pro: LIRS on one clock with three hands, so that a hit does no more than set a bit.

Hot pages are those whose last references were close together.  A cold page that entered is in its test: if it is referenced again before
its test ends it gets hot, and for as long it stays on the clock even if it leaves the pool.  The cold hand looks for a page to replace,
the hot hand for a hot page to make cold, and the test hand ends tests; all go from older pages to newer ones.
"""

from dataclasses import dataclass

from flashsim.core import replacement
from flashsim.core.kernel import inlined_kernel, lean_kernel

TITLE = "CLOCK-Pro (Jiang, Chen and Zhang, USENIX 2005)"
PARAMETERS = {
    "cold": replacement.Parameter(5, 0, 100, "frames for cold pages at least, in percent of the pool, and two"),
    "most": replacement.Parameter(99, 0, 100, "frames for cold pages at most, in percent of the pool"),
    "ghosts": replacement.Parameter(100, 0, 10_000, "pages that left and are still in their test, in percent of the pool"),
    "spare": replacement.Parameter(1, 0, 1, "whether a cold page that was referenced after its test gets another one instead of leaving"),
}
COLUMNS = 1
_HOT, _COLD, _TEST = range(3)


@dataclass(eq=False, slots=True)
class _ClockEntry:
    page: int
    hot: bool = False
    resident: bool = True
    in_test: bool = False
    referenced: bool = False


class Plain(replacement.PlainPolicy):
    """Section 3 of the paper.

    What it leaves open is as in the first author's own program (2005): with ``cold=5,most=5,spare=0``, what the program does unless it is
    changed, misses are the same.

    - A page that is asked for twice in a row was asked for once.
    - The pages that fill an empty pool are hot but for the last ones, for which the least share of cold pages is left.
    - Hot pages that the hot hand spares get the newest.  Where it meets the cold page for whose sake it runs before it has made a hot one
      cold, that page stays cold.
    - Where the program departs from the paper, and lets cold pages that were referenced after their tests leave, the paper is followed
      unless ``spare=0``.  The share of cold pages is adapted as the paper says, one page up for a reference in a test and one down for a
      test without one; the program has it constant.

    Pools smaller than the program accepts have as many cold pages as there are frames, but two at most.  When all cold pages are pinned a
    hot one leaves, and is forgotten.
    """

    def __init__(self, pool: replacement.PolicyPool, cold: int, most: int, ghosts: int, spare: int) -> None:
        super().__init__(pool)
        self.least = min(max(cold * pool.size // 100, 2), pool.size)
        self.most = max(most * pool.size // 100, self.least)
        self.target, self.most_ghosts, self.spare = self.least, ghosts * pool.size // 100, bool(spare)
        self.entries: dict[int, _ClockEntry] = {}
        #: The clock, from the oldest entry to the newest, and where its hands stand; nowhere while it is empty.
        self.clock: list[_ClockEntry] = []
        self.hands = [_ClockEntry(replacement.NONE)] * 3
        self.residents = self.hots = self.ghosts = 0
        self.last = replacement.NONE

    def hit(self, page: int) -> None:
        if page != self.last:
            self.entries[page].referenced = True
        self.last = page

    def victim(self, page: int) -> int:
        """The first cold page at which the cold hand finds no reference; those referenced in their tests get hot."""
        skipped = 0
        while self.residents > self.hots + skipped:
            entry = self._settle(_COLD, hot=False)
            if entry.referenced and (entry.in_test or self.spare):
                skipped, tested = 0, entry.in_test
                if tested and not self._promotes(entry):
                    entry.in_test, entry.referenced = False, self.spare
                else:
                    self._take_off(entry)
                    self._put_on(entry, hot=tested)
            elif self.pool.pinned(entry.page):
                self.hands[_COLD] = self._next(entry)
                skipped += 1
            else:
                entry.resident = False
                self.hands[_COLD] = self._next(entry)
                self.residents -= 1
                if entry.in_test:
                    self.ghosts += 1
                    while self.ghosts > self.most_ghosts:
                        self._run_test_hand()
                else:
                    self._take_off(entry)
                return entry.page
        entry = self._settle(_HOT, hot=True)
        while not entry.hot or self.pool.pinned(entry.page):
            entry = self._next(entry)
        self.forget(entry.page)
        return entry.page

    def enter(self, page: int) -> None:
        entry = self.entries.get(page)
        if entry is None:
            entry, hot = _ClockEntry(page), self.pool.size - self.residents > self.least
        else:
            hot = self._promotes(entry)
            if page in self.entries:
                self.ghosts -= 1
                self._take_off(entry)
        entry.resident = True
        self.residents += 1
        self._put_on(entry, hot)
        self.last = page

    def forget(self, page: int) -> None:
        entry = self.entries[page]
        self.residents -= 1
        self.hots -= entry.hot
        self._take_off(entry)

    def _promotes(self, entry: _ClockEntry) -> bool:
        """True if a page that was referenced in its test may get hot: as many hot ones get cold as are too many."""
        self.target = min(self.target + 1, self.most)
        while self.hots >= self.pool.size - self.target:
            if not entry.in_test or not self._run_hot_hand(entry):
                return False
        return True

    def _run_hot_hand(self, candidate: _ClockEntry) -> bool:
        """Make a hot page cold, and go on to the next hot one; whether that could be done before the candidate was met."""
        is_over = made_cold = False
        while self.hots and (not is_over or not self.hands[_HOT].hot):
            entry = self.hands[_HOT]
            if entry.hot:
                spared = entry.referenced
                self._take_off(entry)
                self.hots -= 1
                self._put_on(entry, hot=spared)
                if not spared:
                    entry.in_test, is_over, made_cold = False, True, True
            else:
                is_over |= entry is candidate
                self.hands[_HOT] = self._next(entry)
                if self.hands[_TEST] is entry:
                    self._run_test_hand()
        return made_cold

    def _run_test_hand(self) -> None:
        """End the test of the page at which the hand stands; it leaves the clock if it has no frame."""
        entry = self.hands[_TEST]
        self.hands[_TEST] = self._next(entry)
        if entry.in_test:
            self.target = min(self.target + 1, self.most) if entry.referenced else max(self.target - 1, self.least)
            entry.in_test = False
        if not entry.hot:
            entry.referenced &= self.spare
        if not entry.resident:
            self._take_off(entry)
            self.ghosts -= 1

    def _settle(self, hand: int, hot: bool) -> _ClockEntry:
        """The first resident hot or cold page from where a hand stands on; it goes there."""
        while self.hands[hand].hot != hot or not self.hands[hand].resident:
            self.hands[hand] = self._next(self.hands[hand])
        return self.hands[hand]

    def _next(self, entry: _ClockEntry) -> _ClockEntry:
        return self.clock[(self.clock.index(entry) + 1) % len(self.clock)]

    def _put_on(self, entry: _ClockEntry, hot: bool) -> None:
        if not self.clock:
            self.hands = [entry] * 3
        self.clock.append(entry)
        self.entries[entry.page] = entry
        entry.hot, entry.in_test = hot, not hot
        self.hots += hot

    def _take_off(self, entry: _ClockEntry) -> None:
        following = self._next(entry)
        self.hands = [following if hand is entry else hand for hand in self.hands]
        self.clock.remove(entry)
        del self.entries[entry.page]
        entry.in_test = entry.referenced = False


# The clock is a ring of the pool's.  A hand that stands at its end stands before the oldest page.
_CLOCK = 0
_STATE = replacement.OWN
#: Bits of a page's state; a page without any is not on the clock.
_IS_COLD, _IS_HOT, _IN_TEST, _REFERENCED, _GHOST = 1, 2, 4, 8, 16
_HANDS = replacement.OWN_NUMBER  # three
_LEAST, _MOST, _TARGET, _MOST_GHOSTS, _HOTS, _GHOSTS, _LAST = range(replacement.OWN_NUMBER + 3, replacement.OWN_NUMBER + 10)
_SPARE = replacement.FIRST_PARAMETER + 3


@lean_kernel
def setup(pool: replacement.PoolState) -> None:
    numbers = pool.numbers
    size = numbers[replacement.SIZE]
    numbers[_LEAST] = numbers[_TARGET] = min(max(numbers[replacement.FIRST_PARAMETER] * size // 100, 2), size)
    numbers[_MOST] = max(numbers[replacement.FIRST_PARAMETER + 1] * size // 100, numbers[_LEAST])
    numbers[_MOST_GHOSTS] = numbers[replacement.FIRST_PARAMETER + 2] * size // 100


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    if page != pool.numbers[_LAST]:
        pool.pages[page, _STATE] |= _REFERENCED
        pool.numbers[_LAST] = page


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    pages, numbers = pool.pages, pool.numbers
    skipped = 0
    while numbers[replacement.USED] > numbers[_HOTS] + skipped:
        leaving = _settle(pool, _COLD, _IS_COLD)
        state = pages[leaving, _STATE]
        tested = state & _IN_TEST
        if state & _REFERENCED and (tested or numbers[_SPARE]):
            skipped = 0
            if tested and not _promotes(pool, leaving):
                pages[leaving, _STATE] = _IS_COLD | _REFERENCED if numbers[_SPARE] else _IS_COLD
            else:
                _take_off(pool, leaving)
                _put_on(pool, leaving, _IS_HOT if tested else _IS_COLD | _IN_TEST)
        elif pages[leaving, replacement.FLAGS] & replacement.PINNED:
            numbers[_HANDS + _COLD] = _next(pool, leaving)
            skipped += 1
        elif tested:
            numbers[_HANDS + _COLD] = _next(pool, leaving)
            pages[leaving, _STATE] |= _GHOST
            numbers[_GHOSTS] += 1
            while numbers[_GHOSTS] > numbers[_MOST_GHOSTS]:
                _run_test_hand(pool)
            return leaving
        else:
            _take_off(pool, leaving)
            return leaving
    leaving = _settle(pool, _HOT, _IS_HOT)
    while not pages[leaving, _STATE] & _IS_HOT or pages[leaving, replacement.FLAGS] & replacement.PINNED:
        leaving = _next(pool, leaving)
    _take_off(pool, leaving)
    return leaving


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    numbers = pool.numbers
    hot = numbers[replacement.SIZE] - numbers[replacement.USED] >= numbers[_LEAST]
    if pool.pages[page, _STATE]:
        hot = _promotes(pool, page)
        if pool.pages[page, _STATE]:
            numbers[_GHOSTS] -= 1
            _take_off(pool, page)
    _put_on(pool, page, _IS_HOT if hot else _IS_COLD | _IN_TEST)
    numbers[_LAST] = page


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    _take_off(pool, page)


@lean_kernel
def _promotes(pool: replacement.PoolState, page: int) -> bool:
    numbers = pool.numbers
    numbers[_TARGET] = min(numbers[_TARGET] + 1, numbers[_MOST])
    while numbers[_HOTS] >= numbers[replacement.SIZE] - numbers[_TARGET]:
        if not pool.pages[page, _STATE] & _IN_TEST or not _run_hot_hand(pool, page):
            return False
    return True


@inlined_kernel
def _run_hot_hand(pool: replacement.PoolState, candidate: int) -> bool:
    pages, numbers = pool.pages, pool.numbers
    is_over = made_cold = False
    while numbers[_HOTS] and not (is_over and pages[numbers[_HANDS + _HOT], _STATE] & _IS_HOT):
        page = numbers[_HANDS + _HOT]
        state = pages[page, _STATE]
        if state & _IS_HOT:
            _take_off(pool, page)
            _put_on(pool, page, _IS_HOT if state & _REFERENCED else _IS_COLD)
            if not state & _REFERENCED:
                is_over = made_cold = True
        else:
            is_over |= page == candidate
            numbers[_HANDS + _HOT] = _next(pool, page)
            if numbers[_HANDS + _TEST] == page:
                _run_test_hand(pool)
    return made_cold


@lean_kernel
def _run_test_hand(pool: replacement.PoolState) -> None:
    pages, numbers = pool.pages, pool.numbers
    page = numbers[_HANDS + _TEST]
    numbers[_HANDS + _TEST] = _next(pool, page)
    state = pages[page, _STATE]
    if state & _IN_TEST:
        more = numbers[_TARGET] + (1 if state & _REFERENCED else -1)
        numbers[_TARGET] = max(min(more, numbers[_MOST]), numbers[_LEAST])
    if state & _GHOST:
        _take_off(pool, page)
        numbers[_GHOSTS] -= 1
    elif state & _IS_COLD:
        pages[page, _STATE] = state & ~_IN_TEST if numbers[_SPARE] else _IS_COLD


@inlined_kernel
def _settle(pool: replacement.PoolState, hand: int, kind: int) -> int:
    page = pool.numbers[_HANDS + hand]
    while pool.pages[page, _STATE] & (_IS_HOT | _IS_COLD | _GHOST) != kind:
        page = _next(pool, page)
    pool.numbers[_HANDS + hand] = page
    return page


@inlined_kernel
def _next(pool: replacement.PoolState, page: int) -> int:
    newer = pool.pages[page, replacement.NEWER]
    return newer if newer != _CLOCK else pool.pages[_CLOCK, replacement.NEWER]


@inlined_kernel
def _put_on(pool: replacement.PoolState, page: int, state: int) -> None:
    replacement.push(pool, _CLOCK, page)
    pool.pages[page, _STATE] = state
    pool.numbers[_HOTS] += state == _IS_HOT
    for hand in range(_HANDS, _HANDS + 3):
        if pool.numbers[hand] == _CLOCK:
            pool.numbers[hand] = page


@inlined_kernel
def _take_off(pool: replacement.PoolState, page: int) -> None:
    following = _next(pool, page)
    replacement.take_out(pool, page)
    for hand in range(_HANDS, _HANDS + 3):
        if pool.numbers[hand] == page:
            pool.numbers[hand] = following if following != page else _CLOCK
    pool.numbers[_HOTS] -= pool.pages[page, _STATE] & _IS_HOT != 0
    pool.pages[page, _STATE] = 0
