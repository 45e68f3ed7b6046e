"""One reference to a page of a pool: a hit, or a page that enters and perhaps another that leaves.

The policy's choice is checked: a pool never drops a page that is pinned, or that it does not hold.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from flashsim.core.errors import FlashsimError, in_one_line
from flashsim.core.kernel import inlined_kernel
from flashsim.core.policies import Policies
from flashsim.core.replacement import (
    DIRTY,
    ENTER,
    FIRST_PAGE,
    FLAGS,
    HIT,
    KNOWN,
    NEVER_AGAIN,
    NEXT_USE,
    NOW,
    PINNED,
    RESIDENT,
    SIZE,
    USED,
    VICTIM,
    WRITTEN_AGAIN,
    PoolState,
    choice,
    of_page,
    rows_of,
)  # fmt: skip

#: What a reference comes to, unless the number of the page that left: the page was resident, or it took a free frame.
WAS_RESIDENT, TOOK_FREE = 0, 1
#: Is added to the number of a page that left and must be written back.
WRITE_BACK = 1 << 32
#: Which rule a policy broke, by the negative number that stands for it.
BREACHES = {
    -1: "the victim is not the number of a page",
    -2: "the victim is not resident",
    -3: "the victim is pinned",
    -4: "the victim is the page that is about to enter",
}
_NO_PAGE, _ABSENT, _HELD, _ENTERING = -1, -2, -3, -4


@inlined_kernel
def know_future(pool: PoolState, next_use: int) -> None:
    """Tell a policy when the present page is asked for next, plus `WRITES` if that reference or a later one writes it."""
    pool.numbers[NEXT_USE], pool.numbers[WRITTEN_AGAIN] = next_use & NEVER_AGAIN, next_use < 0


@inlined_kernel
def refer(pool: PoolState, policy: Policies, page: int, write: int) -> int:
    """Let a page be referenced, and written if `write` is 1; returns what came of it.

    `DIRTY` is set before the policy is told.
    """
    pages, numbers = pool.pages, pool.numbers
    numbers[NOW] += 1
    flags = pages[page, FLAGS]
    if flags & RESIDENT:
        if write:
            pages[page, FLAGS] = flags | DIRTY
        of_page(policy[HIT])(pool, page)
        return WAS_RESIDENT
    outcome = TOOK_FREE
    if numbers[USED] == numbers[SIZE]:
        leaving = int(choice(policy[VICTIM])(pool, page))
        if leaving < FIRST_PAGE or leaving >= pages.shape[0]:
            return _NO_PAGE
        left = pages[leaving, FLAGS]
        if not left & RESIDENT:
            return _ENTERING if leaving == page else _ABSENT
        if left & PINNED:
            return _HELD
        pages[leaving, FLAGS] = left & ~(RESIDENT | DIRTY)
        outcome = leaving + WRITE_BACK if left & DIRTY else leaving
    else:
        numbers[USED] += 1
    pages[page, FLAGS] = flags | RESIDENT | KNOWN | (DIRTY if write else 0)
    of_page(policy[ENTER])(pool, page)
    return outcome


def with_rows(pool: PoolState, rows: int) -> PoolState:
    """The same pool, with so many rows for pages at least."""
    pages = pool.pages
    if rows <= len(pages):
        return pool
    larger = rows_of(max(rows, len(pages) * 3 // 2), pages.shape[1])
    larger[: len(pages)] = pages
    return pool._replace(pages=larger)


def breach(policy: str, outcome: int, reference: int) -> FlashsimError:
    """What is told of a policy that broke its contract."""
    return FlashsimError(f"replacement policy '{policy}' broke its contract at reference {reference}: {BREACHES[outcome]}")


def failure(policy: str, function: str, reference: int, problem: BaseException) -> FlashsimError:
    return FlashsimError(
        f"replacement policy '{policy}' broke its contract at reference {reference}: {function} failed with {in_one_line(problem)}"
    )


@contextmanager
def kernels_of(policy: str, pool: PoolState) -> Iterator[None]:
    """Tell of an error that a kernel of a policy raises as of a plain form's."""
    try:
        yield
    except FlashsimError:
        raise
    except Exception as problem:
        raise failure(policy, "a kernel", int(pool.numbers[NOW]), problem) from problem
