"""Heaps of whole numbers among the words of an array, the least on top, with eight below each: they fill a line of a processor's cache.

An item stands for a page and a number by which it is ordered (`item_of`).  Where there are fewer than eight below an item, `NO_ITEM`
stands for the others.  Items that must not be taken out are put aside behind all, and back.
"""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import Integers

#: Begin of a first heap, so that the eight below an item lie in one line, and the words of a heap besides those of its items.
BEGIN, SPARE = 71, 24
#: Greater than all items.
NO_ITEM = (1 << 63) - 1
_BITS = 32


@inlined_kernel
def item_of(number: int, page: int) -> int:
    """A page by a number below 2^31."""
    return (int(number) << _BITS) | int(page)


@inlined_kernel
def number_of(item: int) -> int:
    return item >> _BITS


@inlined_kernel
def page_of(item: int) -> int:
    return item & ((1 << _BITS) - 1)


@inlined_kernel
def behind(begin: int, most: int) -> int:
    """Begin of the next heap behind one of at most so many items."""
    return begin + (most + SPARE - 8) // 8 * 8


@lean_kernel
def put(words: Integers, begin: int, size: int, item: int) -> None:
    if size & 7 == 1:
        words[begin + size : begin + size + 8] = NO_ITEM
    place = size
    while place > 0:
        above = (place - 1) >> 3
        if words[begin + above] <= item:
            break
        words[begin + place] = words[begin + above]
        place = above
    words[begin + place] = item


@lean_kernel
def take(words: Integers, begin: int, size: int) -> None:
    last = words[begin + size - 1]
    words[begin + size - 1] = NO_ITEM
    if size > 1:
        sink(words, begin, size - 1, 0, last)


@lean_kernel
def sink(words: Integers, begin: int, size: int, place: int, item: int) -> None:
    """Let an item replace that at a place in a heap of so many, which is not greater."""
    while 8 * place + 1 < size:
        first = begin + 8 * place + 1
        least, below = words[first], first
        for other in range(first + 1, first + 8):
            if words[other] < least:
                least, below = words[other], other
        if item <= least:
            break
        words[begin + place] = least
        place = below - begin
    words[begin + place] = item


@lean_kernel
def arrange(words: Integers, begin: int, size: int, former: int) -> None:
    """Make a heap of the first so many items, of which there were more."""
    words[begin + size : begin + former] = NO_ITEM
    for place in range((size - 2) >> 3, -1, -1):
        sink(words, begin, size, place, words[begin + place])


@lean_kernel
def take_aside(words: Integers, begin: int, size: int, end: int) -> None:
    """Take the least item out of a heap of so many, and put it at the end of its room."""
    item = words[begin]
    take(words, begin, size)
    words[end] = item


@lean_kernel
def put_back(words: Integers, begin: int, size: int, end: int, aside: int) -> None:
    """Put back what was put aside at the end of a heap's room."""
    for place in range(end, end - aside, -1):
        item = words[place]
        words[place] = NO_ITEM
        put(words, begin, size, item)
        size += 1
