"""LRU-WSR, write sequence reordering: LRU that gives a dirty page a second chance, unless it has had one since its last reference.

Jung, Shim, Park, Kang and Cha (*LRU-WSR: Integration of LRU and Writes Sequence Reordering for Flash Memory*, IEEE Transactions on
Consumer Electronics 54(3), 2008).  A page that is clean leaves in its turn; one that is dirty goes to the newest end once, marked as cold,
and leaves when its turn comes again.  A reference takes the mark away.
"""

from flashsim.core import replacement
from flashsim.core.kernel import lean_kernel

TITLE = "LRU-WSR, LRU with write sequence reordering (Jung et al., IEEE Transactions on Consumer Electronics 54(3), 2008)"
COLUMNS = 1
_RING, _COLD = 0, replacement.OWN


class Plain(replacement.PlainQueue):
    """Pages in the order of their last references and second chances, each with its coldness."""

    def hit(self, page: int) -> None:
        self.forget(page)
        self.enter(page)

    def victim(self, page: int) -> int:
        while self.pool.dirty(each := self.first(self.order)) and not self.order[each]:
            self.order.move_to_end(each)
            self.order[each] = True
        return self.give_up(each)


@lean_kernel
def hit(pool: replacement.PoolState, page: int) -> None:
    replacement.renew(pool, _RING, page)
    pool.pages[page, _COLD] = 0


@lean_kernel
def enter(pool: replacement.PoolState, page: int) -> None:
    replacement.push(pool, _RING, page)
    pool.pages[page, _COLD] = 0


@lean_kernel
def victim(pool: replacement.PoolState, page: int) -> int:
    pages = pool.pages
    each = replacement.oldest(pool, _RING)
    while pages[each, replacement.FLAGS] & replacement.DIRTY and not pages[each, _COLD]:
        replacement.renew(pool, _RING, each)
        pages[each, _COLD] = 1
        each = replacement.oldest(pool, _RING)
    replacement.take_out(pool, each)
    return each
