"""Lists of pages by a small number, such as how many partners they miss: a page leaves one and joins another in constant time."""

from algorithms.page_access.graph import Pages
from flashsim.core.kernel import inlined_kernel

#: The last columns of a table of pages, which say what list a page is in, and its neighbours there.  The five before them are the table's
#: own; a page takes half a cache line.
LIST, NEXT, BEFORE = range(5, 8)
COLUMNS = 8
NONE = -1


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
