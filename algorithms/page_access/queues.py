"""Pages by a number: a heap, the greatest on top, in which a page is found and changes its number in logarithmic time, and lists.

A list holds the pages of one small number, such as how many partners they miss: a page leaves one and joins another in constant time.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.page_access.graph import Pages
from algorithms.page_access.plan import NONE
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import Integers

#: The last columns of a table of pages, which say what list a page is in, and its neighbours there.  The five before them are the table's
#: own; a page takes half a cache line.
LIST, NEXT, BEFORE = range(5, 8)
COLUMNS = 8
PAGE, NUMBER = range(2)  #: Columns of a heap's items.


class Heap(NamedTuple):
    """The items, shape (most, 2), as many as `size` says; where in the heap each page is, or `NONE`."""

    items: Integers
    places: Pages
    size: Integers


def empty_heap(pages: int) -> Heap:
    return Heap(np.empty((pages, 2), np.int64), np.full(pages, NONE, np.int32), np.zeros(1, np.int64))


@lean_kernel
def put(heap: Heap, page: int, number: int) -> None:
    place = heap.places[page]
    if place < 0:
        place = heap.size[0]
        heap.size[0] += 1
    sift(heap.items, heap.places, heap.size[0], place, page, number)


@lean_kernel
def take(heap: Heap, page: int) -> None:
    place = heap.places[page]
    if place < 0:
        return
    heap.places[page] = NONE
    heap.size[0] -= 1
    last = heap.size[0]
    if place < last:
        sift(heap.items, heap.places, last, place, heap.items[last, PAGE], heap.items[last, NUMBER])


@lean_kernel
def sift(items: npt.NDArray[Any], places: Pages, size: int, place: int, page: int, number: int) -> None:
    """Put a page, whose number has changed, where it belongs."""
    while place > 0 and items[(place - 1) // 2, NUMBER] < number:
        above = (place - 1) // 2
        items[place, PAGE], items[place, NUMBER] = items[above, PAGE], items[above, NUMBER]
        places[items[place, PAGE]] = place
        place = above
    while True:
        below = 2 * place + 1
        if below + 1 < size and items[below + 1, NUMBER] > items[below, NUMBER]:
            below += 1
        if below >= size or items[below, NUMBER] <= number:
            break
        items[place, PAGE], items[place, NUMBER] = items[below, PAGE], items[below, NUMBER]
        places[items[place, PAGE]] = place
        place = below
    items[place, PAGE], items[place, NUMBER] = page, number
    places[page] = place


@lean_kernel
def top_but(items: npt.NDArray[Any], size: int, stays: int) -> int:
    """The place of the page with the greatest number, but for one that stays."""
    if items[0, PAGE] != stays:
        return 0
    return 2 if size > 2 and items[2, NUMBER] > items[1, NUMBER] else 1


@inlined_kernel
def leave(pages: Pages, page: int, heads: Pages) -> None:
    before, after = pages[page, BEFORE], pages[page, NEXT]
    if before >= 0:
        pages[before, NEXT] = after
    else:
        heads[pages[page, LIST]] = after
    if after >= 0:
        pages[after, BEFORE] = before
    pages[page, LIST] = NONE


@inlined_kernel
def join(pages: Pages, page: int, heads: Pages, number: int) -> None:
    """Put a page that is in no list at the beginning of one."""
    after = heads[number]
    pages[page, LIST], pages[page, NEXT], pages[page, BEFORE] = number, after, NONE
    if after >= 0:
        pages[after, BEFORE] = page
    heads[number] = page
