# ruff: noqa: N999
"""2Q in its full version: a page stays for good only if it is asked for again after it has left a queue of newcomers.

Newcomers wait in a queue, A1in.  Those that leave it are remembered in a second one, A1out, and only who is asked for while it stands
there enters the pages that are kept by recency, Am: references soon after the first are taken for one.
"""

from collections import OrderedDict

from flashsim.core import replacement
from flashsim.core.kernel import inlined_kernel, lean_kernel

TITLE = "2Q, full version (Johnson and Shasha, VLDB 1994)"
PARAMETERS = {
    "kin": replacement.Parameter(25, 0, 100, "newcomers that are left alone, in percent of the pool"),
    "kout": replacement.Parameter(50, 0, 10_000, "newcomers that left and are remembered, in percent of the pool"),
}
COLUMNS = 1


class Plain(replacement.PlainPolicy):
    """Procedures 2Q and reclaimfor of the paper's section 3.

    Both shares are rounded down, so that a pool of fewer than four pages has no newcomers to leave alone.  The paper does not say whether
    the page that is asked for still counts in A1out while another one is put there; here it does not, as in libCacheSim, whose misses
    are the same from four pages on.
    """

    def __init__(self, pool: replacement.PlainPool, kin: int, kout: int) -> None:
        super().__init__(pool)
        self.kin, self.kout = kin * pool.size // 100, kout * pool.size // 100
        # each from the oldest to the newest
        self.a1in: OrderedDict[int, None] = OrderedDict()
        self.a1out: OrderedDict[int, None] = OrderedDict()
        self.am: OrderedDict[int, None] = OrderedDict()
        self.recalled = replacement.NONE

    def hit(self, page: int) -> None:
        if page in self.am:
            self.am.move_to_end(page)

    def victim(self, page: int) -> int:
        """The oldest newcomer if there are too many of them, else the least recently used of the others."""
        self._recall(page)
        newcomer = next((each for each in self.a1in if not self.pool.pinned(each)), None)
        kept = next((each for each in self.am if not self.pool.pinned(each)), None)
        if newcomer is not None and (len(self.a1in) > self.kin or kept is None):
            del self.a1in[newcomer]
            self.a1out[newcomer] = None
            if len(self.a1out) > self.kout:
                self.a1out.popitem(last=False)
            return newcomer
        assert kept is not None
        del self.am[kept]
        return kept

    def enter(self, page: int) -> None:
        self._recall(page)
        (self.am if page == self.recalled else self.a1in)[page] = None
        self.recalled = replacement.NONE

    def forget(self, page: int) -> None:
        self.a1in.pop(page, None)
        self.am.pop(page, None)

    def _recall(self, page: int) -> None:
        if page in self.a1out:
            del self.a1out[page]
            self.recalled = page


# The rings, which are also what stands in a page's own column; a page that was found in A1out and has not entered yet stands in none.
_UNKNOWN, _IN, _OUT, _AM, _RECALLED = range(5)
_WHERE = replacement.OWN
_KIN, _KOUT, _INS, _OUTS = range(replacement.OWN_NUMBER, replacement.OWN_NUMBER + 4)


@lean_kernel
def setup(pool: replacement.PoolState) -> None:
    numbers = pool.numbers
    numbers[_KIN] = numbers[replacement.FIRST_PARAMETER] * numbers[replacement.SIZE] // 100
    numbers[_KOUT] = numbers[replacement.FIRST_PARAMETER + 1] * numbers[replacement.SIZE] // 100


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    if pool.pages[page, _WHERE] == _AM:
        replacement.take_out(pool, page)
        replacement.push(pool, _AM, page)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    pages, numbers = pool.pages, pool.numbers
    _recall(pool, page)
    leaving = replacement.oldest(pool, _IN) if numbers[_INS] > numbers[_KIN] else replacement.oldest(pool, _AM)
    if leaving == replacement.NONE:  # all are pinned
        leaving = replacement.oldest(pool, _AM) if numbers[_INS] > numbers[_KIN] else replacement.oldest(pool, _IN)
    replacement.take_out(pool, leaving)
    if pages[leaving, _WHERE] == _AM:
        pages[leaving, _WHERE] = _UNKNOWN
        return leaving
    numbers[_INS] -= 1
    replacement.push(pool, _OUT, leaving)
    pages[leaving, _WHERE] = _OUT
    numbers[_OUTS] += 1
    if numbers[_OUTS] > numbers[_KOUT]:
        last = pages[_OUT, replacement.NEWER]
        replacement.take_out(pool, last)
        pages[last, _WHERE] = _UNKNOWN
        numbers[_OUTS] -= 1
    return leaving


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    _recall(pool, page)
    kept = pool.pages[page, _WHERE] == _RECALLED
    ring = _AM if kept else _IN
    replacement.push(pool, ring, page)
    pool.pages[page, _WHERE] = ring
    if not kept:
        pool.numbers[_INS] += 1


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    replacement.take_out(pool, page)
    if pool.pages[page, _WHERE] == _IN:
        pool.numbers[_INS] -= 1
    pool.pages[page, _WHERE] = _UNKNOWN


@inlined_kernel
def _recall(pool: replacement.PoolState, page: int) -> None:
    if pool.pages[page, _WHERE] == _OUT:
        replacement.take_out(pool, page)
        pool.pages[page, _WHERE] = _RECALLED
        pool.numbers[_OUTS] -= 1
