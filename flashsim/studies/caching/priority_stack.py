"""Stacks of pages by priority, which tell the misses of OPT and MRU in pools of all sizes in one pass.

Where a policy ranks all pages alike whatever the pool's size, and the page of the highest rank leaves, a larger pool holds all that a
smaller one holds, and one stack tells what pools of all sizes hold: its first c pages are those of a pool of c frames (Mattson, Gecsei,
Slutz, Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal 9 (2), 1970).  A page that is asked for comes to the top;
the page that was there moves down, and at each place the better of the two that meet stays, down to where the page came from.
"""

import numpy as np

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from traces.summary.reuse import FIRST

# Columns of a stack: the page at a place, its rank, and at which place the page of a number is.
_PAGE, _RANK, _DEPTH = range(3)
#: References that are taken at once, so that an interrupt is not waited for.
_AT_ONCE = 1 << 14


def next_uses(numbers: Integers) -> Integers:
    """The next reference to the same page, counted from 0; behind all of them where there is none, shape (n,).

    `numbers` are references to pages that are numbered from 0, shape (n,).
    """
    numbers = np.ascontiguousarray(numbers, np.int64)
    into = np.empty(len(numbers), np.int64)
    _look_back(numbers, np.full(int(numbers.max(initial=-1)) + 1, len(numbers), np.int64), into)
    return into


def stack_distances(numbers: Integers, ranks: Integers) -> Integers:
    """Pages above each page in the stack when it was referenced; `FIRST` where it was not known, shape (n,).

    A reference takes time in proportion to its distance: some 0.3 ns a page of it.

    Parameters
    ----------
    numbers
        References to pages that are numbered from 0, shape (n,).
    ranks
        Ranks of pages from each reference to the next one of the same page; the page of the largest rank leaves first: for OPT,
        `next_uses`; for MRU, the number of the reference itself; shape (n,).
    """
    numbers = np.ascontiguousarray(numbers, np.int64)
    into = np.empty(len(numbers), np.int64)
    stack = np.zeros((int(numbers.max(initial=-1)) + 1, 3), np.int64)
    stack[:, _DEPTH] = FIRST
    ranks, count = np.ascontiguousarray(ranks, np.int64), 0
    for begin in range(0, len(numbers), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        count = _refer(numbers[part], ranks[part], stack, into[part], count)
    return into


@lean_kernel
def _look_back(numbers: Integers, latest: Integers, into: Integers) -> None:
    for row in range(numbers.shape[0] - 1, -1, -1):
        into[row] = latest[numbers[row]]
        latest[numbers[row]] = row


@lean_kernel
def _refer(numbers: Integers, ranks: Integers, stack: Integers, into: Integers, count: int) -> int:
    for row in range(numbers.shape[0]):
        page = numbers[row]
        depth = stack[page, _DEPTH]
        into[row] = depth
        if depth < 0:
            depth = count
            count += 1
        mover, rank = page, ranks[row]
        for place in range(depth):
            if place == 0 or stack[place, _RANK] > rank:
                stack[place, _PAGE], mover = mover, stack[place, _PAGE]
                stack[place, _RANK], rank = rank, stack[place, _RANK]
                stack[stack[place, _PAGE], _DEPTH] = place
        stack[depth, _PAGE], stack[depth, _RANK], stack[mover, _DEPTH] = mover, rank, depth
    return count
