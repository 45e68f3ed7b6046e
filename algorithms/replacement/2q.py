# ruff: noqa: N999
"""2Q in its full version: a page stays for good only if it is asked for again after it has left a queue of newcomers.

Newcomers wait in a queue, A1in.  Those that leave it are remembered in a second one, A1out, and only who is asked for while it stands
there enters the pages that are kept by recency, Am: references soon after the first are taken for one.
"""

from collections import OrderedDict

from algorithms.replacement import _rings
from flashsim.core import replacement
from flashsim.core.kernel import inlined_kernel, lean_kernel

TITLE = "2Q, full version (Johnson and Shasha, VLDB 1994)"
PARAMETERS = {
    "kin": replacement.Parameter(25, 0, 100, "newcomers that are left alone, in percent of the pool"),
    "kout": replacement.Parameter(50, 0, 10_000, "newcomers that left and are remembered, in percent of the pool"),
}
COLUMNS = 1
forget = _rings.forget


class Plain(replacement.PlainPolicy):
    """Procedures 2Q and reclaimfor of the paper's section 3.

    Both shares are rounded down, so that a pool of fewer than four pages has no newcomers to leave alone.  The paper does not say whether
    the page that is asked for still counts in A1out while another one is put there; here it does not, as in libCacheSim, whose misses
    are the same from four pages on.
    """

    def __init__(self, pool: replacement.PolicyPool, kin: int, kout: int) -> None:
        super().__init__(pool)
        self.kin, self.kout = kin * pool.size // 100, kout * pool.size // 100
        # each from the oldest to the newest
        self.a1in, self.a1out, self.am = (OrderedDict[int, None]() for _ in range(3))
        self.recalled = replacement.NONE

    def hit(self, page: int) -> None:
        if page in self.am:
            self.am.move_to_end(page)

    def victim(self, page: int) -> int:
        """The oldest newcomer if there are too many of them, else the least recently used of the others."""
        self._recall(page)
        queues = (self.a1in, self.am) if len(self.a1in) > self.kin else (self.am, self.a1in)
        leaving = self.first(*queues)
        if leaving in self.a1in:
            self.a1out[leaving] = None
            if len(self.a1out) > self.kout:
                self.a1out.popitem(last=False)
        return self.give_up(leaving)

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


_IN, _OUT, _AM = range(1, 4)
#: Column value of a page that was in A1out and has not entered yet: the page stands in no ring.
_RECALLED = _rings.RINGS
_KIN, _KOUT = _rings.OWN_NUMBER, _rings.OWN_NUMBER + 1


@lean_kernel
def setup(pool: replacement.PoolState) -> None:
    numbers = pool.numbers
    numbers[_KIN] = numbers[replacement.FIRST_PARAMETER] * numbers[replacement.SIZE] // 100
    numbers[_KOUT] = numbers[replacement.FIRST_PARAMETER + 1] * numbers[replacement.SIZE] // 100


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    if pool.pages[page, _rings.RING] == _AM:
        replacement.renew(pool, _AM, page)


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    numbers = pool.numbers
    _recall(pool, page)
    leaving = _rings.oldest_of(pool, _IN, _AM) if numbers[_rings.LENGTHS + _IN] > numbers[_KIN] else _rings.oldest_of(pool, _AM, _IN)
    newcomer = pool.pages[leaving, _rings.RING] == _IN
    _rings.leave(pool, leaving)
    if newcomer:
        _rings.join(pool, leaving, _OUT)
        if numbers[_rings.LENGTHS + _OUT] > numbers[_KOUT]:
            _rings.leave(pool, pool.pages[_OUT, replacement.NEWER])
    return leaving


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    _recall(pool, page)
    _rings.join(pool, page, _AM if pool.pages[page, _rings.RING] == _RECALLED else _IN)


@inlined_kernel
def _recall(pool: replacement.PoolState, page: int) -> None:
    if pool.pages[page, _rings.RING] == _OUT:
        _rings.leave(pool, page)
        pool.pages[page, _rings.RING] = _RECALLED
