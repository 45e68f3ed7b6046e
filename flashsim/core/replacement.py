"""The contract between a pool of frames and a replacement policy, and the rings of pages that compiled policies are made of.

Pages are numbered densely, in the order in which they are first seen, from `FIRST_PAGE` on.  A policy exists in two forms that choose the
same victims: one to read, a class of ordinary Python (`PlainPolicy`), and one that is used, kernels over arrays (`PoolState`).

The kernels of a policy, of which ``setup`` and ``forget`` may be left out::

    setup(pool)                    the pool is empty, and the policy's parameters stand in pool.numbers
    hit(pool, page)                a page that is resident is referenced
    enter(pool, page)              a page has been brought in
    victim(pool, page) -> victim   all frames are in use and a page is about to enter: a resident page that is not pinned (the pool
                                   sees to it that there is one), which the policy takes out of its books, or keeps as a ghost
    forget(pool, page)             a resident page is dropped by somebody else, such as with its file

They change what is theirs: `OLDER`, `NEWER` and the columns from `OWN` on of ``pool.pages``, ``pool.numbers`` from `OWN_NUMBER` on, and
``pool.words``.  Without ``forget`` a page that is dropped leaves its ring.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numba import types

from flashsim.core.errors import InvalidParameterError
from flashsim.core.groups import group_type
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.policies import Policies, function_at
from flashsim.core.records import VECTOR, aligned_zeros
from flashsim.core.request import Integers

Numbers = npt.NDArray[np.int32]  #: Numbers of pages, and what stands in their columns.

FIRST_PAGE = 8  #: Rows of pages below this one are no pages but the ends of rings 0, 1, ...
NONE = -1  #: No page.

# Columns of a page: its flags, which the pool alone changes, the pages beside it in the ring in which it stands, and the policy's own.
FLAGS, OLDER, NEWER = range(3)
OWN = 3
#: Bits of a page's flags: it holds a frame, it was written since it was read or written back, somebody holds it in its frame, it was
#: referenced before.  Above stands its type, a number that means what its pool's user wants it to mean.
RESIDENT, DIRTY, PINNED, KNOWN = 1, 2, 4, 8
TYPE_SHIFT = 8

#: Numbers of a pool: its frames, those in use, the number of the present reference (the first is 1), the number of the reference that asks
#: for the present page next (`NEVER_AGAIN` if none does; for policies that know the future), a seed for what is drawn, and whether that
#: reference or one behind it writes the page (1; for policies that know the future).
SIZE, USED, NOW, NEXT_USE, SEED, WRITTEN_AGAIN = range(6)
#: The policy's parameters, in the order in which it declares them, and what it counts.
FIRST_PARAMETER, OWN_NUMBER, POOL_NUMBERS = 8, 16, 64
NEVER_AGAIN = (1 << 31) - 1
WRITES = -(1 << 31)  #: Addend in arrays of next uses to one from which on the page is written again.


class PoolState(NamedTuple):
    """Tables of a pool that compiled policies work on."""

    #: A row a page that was ever seen, shape (rows, columns).
    pages: Numbers
    numbers: Integers
    words: Integers  #: Words of the policy's own, all 0 at the start: a heap, a sketch, ...


POOL = group_type((types.Array(types.int32, 2, "C"), VECTOR, VECTOR), PoolState)
#: Signatures of a policy's functions, and where each stands among their addresses.
SETUP, HIT, ENTER, VICTIM, FORGET = range(5)
_OF_POOL, _OF_PAGE = types.FunctionType(types.void(POOL)), types.FunctionType(types.void(POOL, types.int64))
_CHOICE = types.FunctionType(types.int64(POOL, types.int64))
KERNELS = {"setup": _OF_POOL, "hit": _OF_PAGE, "enter": _OF_PAGE, "victim": _CHOICE, "forget": _OF_PAGE}
#: ``of_page(policies[HIT])(pool, page)`` in a kernel, and so on.
of_pool, of_page, choice = function_at(_OF_POOL), function_at(_OF_PAGE), function_at(_CHOICE)


class Parameter(NamedTuple):
    """A whole number that a policy takes; shares are in percent."""

    default: int
    least: int
    most: int
    meaning: str


class PolicyPool(Protocol):
    """The face of a pool to a policy of ordinary Python."""

    size: int  # frames
    now: int  # the number of the present reference
    next_use: int  # the number of the reference that asks for the present page next
    written_again: bool  # whether that reference or one behind it writes the page
    seed: int

    def pinned(self, page: int) -> bool:
        """True if somebody holds the page in its frame."""

    def dirty(self, page: int) -> bool:
        """True if the page was written since it was read or written back."""


class PlainPolicy(ABC):
    """A policy to read: its methods mean what the kernels of the same names do."""

    def __init__(self, pool: PolicyPool) -> None:
        self.pool = pool

    @abstractmethod
    def hit(self, page: int) -> None:
        """A resident page is referenced."""

    @abstractmethod
    def enter(self, page: int) -> None:
        """A page has been brought in."""

    @abstractmethod
    def victim(self, page: int) -> int:
        """The page that leaves so that another may enter."""

    @abstractmethod
    def forget(self, page: int) -> None:
        """A resident page is dropped by somebody else."""

    def first(self, *orders: Iterable[int]) -> int:
        """The first page of some orders, one after the other, that is not pinned; `NONE` if all are."""
        return next((page for order in orders for page in order if not self.pool.pinned(page)), NONE)

    def give_up(self, page: int) -> int:
        self.forget(page)
        return page


class PlainQueue(PlainPolicy):
    """Pages in the order in which they entered, of which the oldest leaves."""

    def __init__(self, pool: PolicyPool) -> None:
        super().__init__(pool)
        self.order: OrderedDict[int, bool] = OrderedDict()

    def hit(self, page: int) -> None:
        """The page keeps its place."""

    def enter(self, page: int) -> None:
        self.order[page] = False

    def victim(self, page: int) -> int:
        return self.give_up(self.first(self.order))

    def forget(self, page: int) -> None:
        del self.order[page]


@dataclass(frozen=True)
class ReplacementPolicy:
    """A policy with its parameters, ready for a pool."""

    name: str  #: As it was asked for.
    parameters: Mapping[str, int]  #: Their values, by name, in the order in which the policy declares them.
    plain: Callable[..., Any] | None  #: Makes the plain form of a pool and the parameters; None if it has kernels alone.
    #: Addresses of the compiled functions (`SETUP` and so on), or the functions themselves where nothing is compiled; None if it has the
    #: plain form alone.
    kernels: Policies | None
    columns: int = 0  #: Of each page, for its own use.
    words: int = 0  #: For each frame, besides 128.
    future: bool = False  #: Whether it must know the future: which reference asks for a page next.

    def future_of(self, next_uses: Numbers | None) -> Numbers:
        """Next uses for the policy: none, shape (0,), unless the policy must know the future."""
        if not self.future:
            return np.empty(0, np.int32)
        if next_uses is None:
            raise InvalidParameterError("replacement policy", f"'{self.name}'", "it must know the future, which is not known here")
        return next_uses

    @property
    def row(self) -> int:
        """Columns of a page that it needs, with those that all pools have."""
        return OWN + self.columns

    def state(self, frames: int, pages: int, seed: int = 0, table: Numbers | None = None) -> PoolState:
        """An empty pool for so many pages, perhaps in a table of zeros in which others have columns too."""
        if table is None:
            table = rows_of(FIRST_PAGE + pages, 1 << (self.row - 1).bit_length())
        table[:FIRST_PAGE, OLDER] = table[:FIRST_PAGE, NEWER] = np.arange(FIRST_PAGE)
        numbers = np.zeros(POOL_NUMBERS, np.int64)
        numbers[SIZE], numbers[SEED] = frames, seed
        numbers[FIRST_PARAMETER : FIRST_PARAMETER + len(self.parameters)] = list(self.parameters.values())
        state = PoolState(table, numbers, aligned_zeros((128 + self.words * frames) * 8).view(np.int64))
        if self.kernels is not None:
            _set_up(state, self.kernels)
        return state


def rows_of(rows: int, columns: int) -> Numbers:
    """Empty rows of pages, of which none begins in one line of a processor's cache and ends in the next if it fits in one."""
    return aligned_zeros(rows * columns * 4).view(np.int32).reshape(rows, columns)


@lean_kernel
def _set_up(pool: PoolState, kernels: Policies) -> None:
    of_pool(kernels[SETUP])(pool)


@lean_kernel
def nothing(pool: PoolState) -> None:
    """Set-up of a policy that needs no more than empty rings."""


@lean_kernel
def stay(pool: PoolState, page: int) -> None:
    """Do nothing at a reference to a page, or at its leaving, for a policy that keeps no books of it."""


@inlined_kernel
def push(pool: PoolState, ring: int, page: int) -> None:
    """Let a page that stands in no ring be the newest of one."""
    pages = pool.pages
    newest = pages[ring, OLDER]
    pages[page, OLDER], pages[page, NEWER] = newest, ring
    pages[newest, NEWER] = pages[ring, OLDER] = page


@inlined_kernel
def take_out(pool: PoolState, page: int) -> None:
    pages = pool.pages
    older, newer = pages[page, OLDER], pages[page, NEWER]
    pages[older, NEWER], pages[newer, OLDER] = newer, older


@inlined_kernel
def renew(pool: PoolState, ring: int, page: int) -> None:
    """Let a page be the newest of the ring in which it stands, or of another one."""
    take_out(pool, page)
    push(pool, ring, page)


@inlined_kernel
def _first_unpinned(pool: PoolState, ring: int, column: int) -> int:
    page = pool.pages[ring, column]
    while page >= FIRST_PAGE and pool.pages[page, FLAGS] & PINNED:
        page = pool.pages[page, column]
    return page if page >= FIRST_PAGE else NONE


@inlined_kernel
def oldest(pool: PoolState, ring: int) -> int:
    """The oldest page of a ring that is not pinned, or `NONE`."""
    return _first_unpinned(pool, ring, NEWER)


@inlined_kernel
def newest(pool: PoolState, ring: int) -> int:
    """The newest page of a ring that is not pinned, or `NONE`."""
    return _first_unpinned(pool, ring, OLDER)


@inlined_kernel
def take_oldest(pool: PoolState, ring: int) -> int:
    """Take the oldest page of a ring that is not pinned out of it, if there is one."""
    page = oldest(pool, ring)
    if page != NONE:
        take_out(pool, page)
    return page


@lean_kernel
def enter_ring(pool: PoolState, page: int) -> None:
    """Let a page enter a policy of one ring: as the newest of ring 0."""
    push(pool, 0, page)


@lean_kernel
def leave_ring(pool: PoolState, page: int) -> None:
    """Forget a page of which a policy keeps no more than its place in a ring."""
    take_out(pool, page)
