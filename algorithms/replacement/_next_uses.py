"""Heaps of resident pages by when they are asked for next, for policies that know it: the page that is asked for last is on top.

A page that is referenced gets another item; the former one is past then, as are items of pages that left.  Items that are past stay below
those to come until there are too many, or until one of them is on top.
"""

from collections.abc import Iterable

from algorithms.replacement import _word_heap
from flashsim.core import replacement
from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import NEVER_AGAIN, PoolState

HEAP_WORDS = 2  #: Words a frame that a heap takes.
_ITEMS = replacement.OWN_NUMBER  #: First column of the heaps' numbers of items.


class PlainNextUses(replacement.PlainPolicy):
    """Next use of each resident page."""

    def __init__(self, pool: replacement.PolicyPool) -> None:
        super().__init__(pool)
        self.next_use: dict[int, int] = {}

    def hit(self, page: int) -> None:
        self.next_use[page] = self.pool.next_use

    def enter(self, page: int) -> None:
        self.hit(page)

    def forget(self, page: int) -> None:
        del self.next_use[page]

    def free(self) -> set[int]:
        """Pages that are not pinned."""
        return {page for page in self.next_use if not self.pool.pinned(page)}

    def last(self, pages: Iterable[int]) -> int:
        """The page that is asked for last; of pages that are never asked for again, the one first seen."""
        return max(pages, key=lambda page: (self.next_use[page], -page))


@inlined_kernel
def next_use_of(item: int) -> int:
    return NEVER_AGAIN - _word_heap.number_of(item)


@inlined_kernel
def _begin(pool: PoolState, heap: int) -> int:
    return _word_heap.behind(_word_heap.BEGIN, HEAP_WORDS * pool.numbers[replacement.SIZE]) if heap else _word_heap.BEGIN


@inlined_kernel
def present_item(pool: PoolState, page: int) -> int:
    return _word_heap.item_of(NEVER_AGAIN - pool.numbers[replacement.NEXT_USE], page)


@lean_kernel
def add(pool: PoolState, heap: int, item: int) -> None:
    """Put an item into a heap, in the place of the first if that is past."""
    size, begin = pool.numbers[_ITEMS + heap], _begin(pool, heap)
    if size and not _to_come(pool, pool.words[begin]):
        _word_heap.sink(pool.words, begin, size, 0, item)
        return
    if size == HEAP_WORDS * pool.numbers[replacement.SIZE]:
        size = _without_past(pool, begin, size)
    _word_heap.put(pool.words, begin, size, item)
    pool.numbers[_ITEMS + heap] = size + 1


@inlined_kernel
def _to_come(pool: PoolState, item: int) -> bool:
    return (
        next_use_of(item) > pool.numbers[replacement.NOW]
        and pool.pages[_word_heap.page_of(item), replacement.FLAGS] & replacement.RESIDENT != 0
    )


@lean_kernel
def _without_past(pool: PoolState, begin: int, size: int) -> int:
    words, write = pool.words, 0
    for place in range(begin, begin + size):
        if _to_come(pool, words[place]):
            words[begin + write] = words[place]
            write += 1
    _word_heap.arrange(words, begin, write, size)
    return write


@lean_kernel
def last(pool: PoolState, heap: int, flags: int) -> int:
    """The item of a heap whose page is asked for last and is not pinned; `NO_ITEM` if there is none.

    Items whose pages do not have the flags of a heap any more go to heap 0.
    """
    pages, words, size, begin = pool.pages, pool.words, pool.numbers[_ITEMS + heap], _begin(pool, heap)
    end, aside, latest = _word_heap.behind(begin, HEAP_WORDS * pool.numbers[replacement.SIZE]) - 1, 0, _word_heap.NO_ITEM
    for place in range(begin + 1, begin + min(size, 9)):
        prefetch(pages, _word_heap.page_of(words[place]))
    while size > 0:
        item = words[begin]
        page_flags = pages[_word_heap.page_of(item), replacement.FLAGS]
        if not _to_come(pool, item):
            _word_heap.take(words, begin, size)
        elif page_flags & flags != flags:
            _word_heap.take(words, begin, size)
            add(pool, 0, item)
        elif page_flags & replacement.PINNED:
            _word_heap.take_aside(words, begin, size, end - aside)
            aside += 1
        else:
            latest = item
            break
        size -= 1
    _word_heap.put_back(words, begin, size, end, aside)
    pool.numbers[_ITEMS + heap] = size + aside
    return latest
