"""One reference to a page of a pool: a hit, or a page that enters and perhaps another that leaves.

The policy's choice is checked: a pool never drops a page that is pinned, or that it does not hold.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flashsim.core import replacement
from flashsim.core.errors import FlashsimError, InvalidParameterError, in_one_line
from flashsim.core.kernel import inlined_kernel
from flashsim.core.policies import Policies
from flashsim.core.replacement import PoolState

#: Outcomes of a reference besides the number of the page that left: the page was resident, or it took a free frame.
WAS_RESIDENT, TOOK_FREE = 0, 1
#: Is added to the number of a page that left and must be written back.
WRITE_BACK = 1 << 32
#: Breaches of a policy's contract, by their negative numbers.
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
    pool.numbers[replacement.NEXT_USE], pool.numbers[replacement.WRITTEN_AGAIN] = next_use & replacement.NEVER_AGAIN, next_use < 0


@inlined_kernel
def refer(pool: PoolState, policy: Policies, page: int, write: int) -> int:
    """Let a page be referenced, and written if `write` is 1; returns what came of it.

    `DIRTY` is set before the policy is told.
    """
    pages, numbers = pool.pages, pool.numbers
    numbers[replacement.NOW] += 1
    flags = pages[page, replacement.FLAGS]
    if flags & replacement.RESIDENT:
        if write:
            pages[page, replacement.FLAGS] = flags | replacement.DIRTY
        replacement.of_page(policy[replacement.HIT])(pool, page)
        return WAS_RESIDENT
    outcome = TOOK_FREE
    if numbers[replacement.USED] == numbers[replacement.SIZE]:
        leaving = int(replacement.choice(policy[replacement.VICTIM])(pool, page))
        if leaving < replacement.FIRST_PAGE or leaving >= pages.shape[0]:
            return _NO_PAGE
        leaving_flags = pages[leaving, replacement.FLAGS]
        if not leaving_flags & replacement.RESIDENT:
            return _ENTERING if leaving == page else _ABSENT
        if leaving_flags & replacement.PINNED:
            return _HELD
        pages[leaving, replacement.FLAGS] = leaving_flags & ~(replacement.RESIDENT | replacement.DIRTY)
        outcome = leaving + WRITE_BACK if leaving_flags & replacement.DIRTY else leaving
    else:
        numbers[replacement.USED] += 1
    pages[page, replacement.FLAGS] = flags | replacement.RESIDENT | replacement.KNOWN | (replacement.DIRTY if write else 0)
    replacement.of_page(policy[replacement.ENTER])(pool, page)
    return outcome


def with_rows(pool: PoolState, rows: int) -> PoolState:
    """The pool with at least so many rows for pages."""
    pages = pool.pages
    if rows <= len(pages):
        return pool
    larger = replacement.rows_of(max(rows, len(pages) * 3 // 2), pages.shape[1])
    larger[: len(pages)] = pages
    return pool._replace(pages=larger)


def breach(policy: str, outcome: int, reference: int) -> FlashsimError:
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
        raise failure(policy, "a kernel", int(pool.numbers[replacement.NOW]), problem) from problem


class PlainPool:
    """Frames in ordinary Python whose pages a policy in its plain form replaces: to be read, stepped through and compared with."""

    def __init__(self, policy: replacement.ReplacementPolicy, frames: int, seed: int = 0) -> None:
        self.name, self.size, self.seed = policy.name, frames, seed
        self.now = self.next_use = 0
        self.written_again = False
        #: Pages in frames, and whether each was written since it was read.
        self.resident: dict[int, bool] = {}
        #: Pages that are held in their frames.
        self.pins: set[int] = set()
        #: Pages that were ever referenced.
        self.history: set[int] = set()
        if policy.plain is None:
            raise FlashsimError(f"replacement policy '{policy.name}' has no plain form")
        try:
            self.policy: Any = policy.plain(self, **policy.parameters)
        except (Exception, SystemExit) as problem:
            raise failure(self.name, "Plain", 0, problem) from problem

    def pinned(self, page: int) -> bool:
        return page in self.pins

    def dirty(self, page: int) -> bool:
        """True if the page was written since it was read or written back."""
        return self.resident.get(page, False)

    def refer(self, page: int, write: bool = False, next_use: int = 0) -> int:
        if len(self.pins) == self.size and page not in self.resident:
            raise InvalidParameterError("fix", f"page {page}", f"0 of {self.size} frames are not fixed")
        self.now, self.next_use, self.written_again = self.now + 1, next_use & replacement.NEVER_AGAIN, next_use < 0
        self.history.add(page)
        if page in self.resident:
            self.resident[page] |= write
            self._ask("hit", page)
            return WAS_RESIDENT
        outcome = TOOK_FREE
        if len(self.resident) == self.size:
            leaving = self._ask("victim", page)
            if not isinstance(leaving, int):
                raise breach(self.name, -1, self.now)
            if leaving not in self.resident:
                raise breach(self.name, -4 if leaving == page else -2, self.now)
            if leaving in self.pins:
                raise breach(self.name, -3, self.now)
            outcome = leaving + WRITE_BACK if self.resident.pop(leaving) else leaving
        self.resident[page] = write
        self._ask("enter", page)
        return outcome

    def drop(self, page: int) -> None:
        del self.resident[page]
        self._ask("forget", page)

    def _ask(self, method: str, page: int) -> Any:
        try:
            return getattr(self.policy, method)(page)
        except FlashsimError:
            raise
        except (Exception, SystemExit) as problem:
            raise failure(self.name, method, self.now, problem) from problem
