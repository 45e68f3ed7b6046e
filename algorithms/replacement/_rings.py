"""Rings that count their pages: a page's own column says in which it stands, and what else is known of it.

Rings are numbered from 1 to 7; a page at 0 stands in none.  What is known of a page is `RINGS` times any number, above its ring.
"""

from flashsim.core import replacement
from flashsim.core.kernel import inlined_kernel, lean_kernel

#: The column, and by how much it grows for what is known of a page.
RING, RINGS = replacement.OWN, replacement.FIRST_PAGE
#: Numbers of a pool: the pages of each ring, and the first number that is the policy's own.
LENGTHS, OWN_NUMBER = replacement.OWN_NUMBER, replacement.OWN_NUMBER + RINGS


@inlined_kernel
def ring_of(pool: replacement.PoolState, page: int) -> int:
    return int(pool.pages[page, RING]) & (RINGS - 1)


@inlined_kernel
def join(pool: replacement.PoolState, page: int, ring: int) -> None:
    """Let a page that stands in no ring be the newest of one; nothing else is known of it then."""
    replacement.push(pool, ring, page)
    pool.pages[page, RING] = ring
    pool.numbers[LENGTHS + ring] += 1


@inlined_kernel
def leave(pool: replacement.PoolState, page: int) -> None:
    """Let a page stand in no ring any more; nothing is known of it then."""
    replacement.take_out(pool, page)
    pool.numbers[LENGTHS + ring_of(pool, page)] -= 1
    pool.pages[page, RING] = 0


@inlined_kernel
def move(pool: replacement.PoolState, page: int, ring: int) -> None:
    """Let a page be the newest of a ring, whether it stood in one or not; nothing else is known of it then."""
    before = ring_of(pool, page)
    if before:
        replacement.take_out(pool, page)
        pool.numbers[LENGTHS + before] -= 1
    join(pool, page, ring)


@inlined_kernel
def oldest_of(pool: replacement.PoolState, ring: int, other: int) -> int:
    """The oldest page of a ring that is not pinned, or else of another one, or `NONE`."""
    page = replacement.oldest(pool, ring)
    return page if page != replacement.NONE else replacement.oldest(pool, other)


@lean_kernel
def forget(pool: replacement.PoolState, page: int) -> None:
    leave(pool, page)
