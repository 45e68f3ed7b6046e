"""Distances in a stack of pages by priority: the smallest pool that serves a reference, for policies that look at more than the last use.

Where a policy ranks all pages alike whatever the pool's size, and the page of the highest rank leaves, a larger pool holds all that a
smaller one holds, and one stack tells what pools of all sizes hold: its first c pages are those of a pool of c frames (Mattson, Gecsei,
Slutz, Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal 9 (2), 1970).  A page that is asked for comes to the top;
the page that was there moves down, and at each place the better of the two that meet stays, down to where the page came from.
"""

import numpy as np

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.core.reuse import FIRST


def next_uses(numbers: Integers) -> Integers:
    """Which reference asks for the same page next, counted from 0; behind all of them where none does, shape (n,).

    Parameters
    ----------
    numbers
        References to pages that are numbered from 0, shape (n,).
    """
    numbers = np.ascontiguousarray(numbers, np.int64)
    into = np.empty(len(numbers), np.int64)
    _look_back(numbers, np.full(int(numbers.max(initial=-1)) + 1, len(numbers), np.int64), into)
    return into


def stack_distances(numbers: Integers, ranks: Integers) -> Integers:
    """How many pages stood above each page when it was asked for; `FIRST` where it was not known, shape (n,).

    A reference takes time in proportion to its distance: some 0.3 ns a page of it.

    Parameters
    ----------
    numbers
        References to pages that are numbered from 0, shape (n,).
    ranks
        From when a page is asked for until it is asked for again, the page of the largest rank is the first to leave: for OPT,
        `next_uses`; for MRU, the number of the reference itself; shape (n,).
    """
    numbers = np.ascontiguousarray(numbers, np.int64)
    into = np.empty(len(numbers), np.int64)
    stack = np.zeros((int(numbers.max(initial=-1)) + 1, 3), np.int64)
    stack[:, _DEPTH] = FIRST
    ranks, known = np.ascontiguousarray(ranks, np.int64), 0
    for begin in range(0, len(numbers), _AT_ONCE):  # so that an interrupt is not waited for
        part = slice(begin, begin + _AT_ONCE)
        known = _refer(numbers[part], ranks[part], stack, into[part], known)
    return into


# Columns: the page at a place, its rank, and at which place the page of a number is.
_PAGE, _RANK, _DEPTH = range(3)
_AT_ONCE = 1 << 14


@lean_kernel
def _look_back(numbers: Integers, seen: Integers, into: Integers) -> None:
    for row in range(numbers.shape[0] - 1, -1, -1):
        into[row] = seen[numbers[row]]
        seen[numbers[row]] = row


@lean_kernel
def _refer(numbers: Integers, ranks: Integers, stack: Integers, into: Integers, known: int) -> int:
    for row in range(numbers.shape[0]):
        page = numbers[row]
        depth = stack[page, _DEPTH]
        into[row] = depth
        if depth < 0:
            depth = known
            known += 1
        moved, rank = page, ranks[row]
        for place in range(depth):
            if place == 0 or stack[place, _RANK] > rank:
                stack[place, _PAGE], moved = moved, stack[place, _PAGE]
                stack[place, _RANK], rank = rank, stack[place, _RANK]
                stack[stack[place, _PAGE], _DEPTH] = place
        stack[depth, _PAGE], stack[depth, _RANK], stack[moved, _DEPTH] = moved, rank, depth
    return known
