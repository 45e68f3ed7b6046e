"""Heaps of resident pages by when they are asked for next, for policies that know it: the page that is asked for last is on top.

A page that is referenced gets another item; the former one is past then, as are items of pages that left.  Items that are past stay below
those to come until there are too many, or until one of them is on top.
"""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.prefetch import prefetch
from flashsim.core.replacement import FLAGS, NEVER_AGAIN, NEXT_USE, NOW, OWN_NUMBER, PINNED, RESIDENT, SIZE, PoolState
from flashsim.core.word_heap import BEGIN, NO_ITEM, arrange, behind, item_of, number_of, page_of, put, put_back, sink, take, take_aside

#: Words a frame that a heap takes.
HEAP_WORDS = 2
#: Where the heaps' numbers of items stand.
_ITEMS = OWN_NUMBER


@inlined_kernel
def next_use_of(item: int) -> int:
    return NEVER_AGAIN - number_of(item)


@inlined_kernel
def _begin(pool: PoolState, heap: int) -> int:
    return behind(BEGIN, HEAP_WORDS * pool.numbers[SIZE]) if heap else BEGIN


@inlined_kernel
def present_item(pool: PoolState, page: int) -> int:
    return item_of(NEVER_AGAIN - pool.numbers[NEXT_USE], page)


@lean_kernel
def add(pool: PoolState, heap: int, item: int) -> None:
    """Put an item into a heap, in the place of the first if that is past."""
    size, begin = pool.numbers[_ITEMS + heap], _begin(pool, heap)
    if size and not _to_come(pool, pool.words[begin]):
        sink(pool.words, begin, size, 0, item)
        return
    if size == HEAP_WORDS * pool.numbers[SIZE]:
        size = _without_past(pool, begin, size)
    put(pool.words, begin, size, item)
    pool.numbers[_ITEMS + heap] = size + 1


@inlined_kernel
def _to_come(pool: PoolState, item: int) -> bool:
    return next_use_of(item) > pool.numbers[NOW] and pool.pages[page_of(item), FLAGS] & RESIDENT != 0


@lean_kernel
def _without_past(pool: PoolState, begin: int, size: int) -> int:
    words, kept = pool.words, 0
    for place in range(begin, begin + size):
        if _to_come(pool, words[place]):
            words[begin + kept] = words[place]
            kept += 1
    arrange(words, begin, kept, size)
    return kept


@lean_kernel
def last(pool: PoolState, heap: int, flags: int) -> int:
    """The item of a heap whose page is asked for last and is not pinned; `NO_ITEM` if there is none.

    Items whose pages do not have the flags of a heap any more go to heap 0.
    """
    pages, words, size, begin = pool.pages, pool.words, pool.numbers[_ITEMS + heap], _begin(pool, heap)
    end, aside, found = behind(begin, HEAP_WORDS * pool.numbers[SIZE]) - 1, 0, NO_ITEM
    for place in range(begin + 1, begin + min(size, 9)):
        prefetch(pages, page_of(words[place]))
    while size > 0:
        item = words[begin]
        held = pages[page_of(item), FLAGS]
        if not _to_come(pool, item):
            take(words, begin, size)
        elif held & flags != flags:
            take(words, begin, size)
            add(pool, 0, item)
        elif held & PINNED:
            take_aside(words, begin, size, end - aside)
            aside += 1
        else:
            found = item
            break
        size -= 1
    put_back(words, begin, size, end, aside)
    pool.numbers[_ITEMS + heap] = size + aside
    return found
