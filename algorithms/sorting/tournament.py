"""A tournament tree, and the two things it is used for: replacement selection, which makes sorted runs, and merging them.

It is a tree of winners: the root is node 1, and node n holds what comes first of all below nodes 2n and 2n + 1.  A tree of losers replays
only from the winner's leaf; here tuples vary in size, so one that leaves may make room for several, whose leaves lie anywhere.  Both take
as many comparisons a replay.  A node holds its key itself, and a replay takes two levels in a step, of which it looks at the lower one
only: four nodes beside one another, 64 bytes.  So every other level, counted from the leaves, is never written.

All leaves are at one depth.  Where their number is no power of two, some would lie one level higher; such a leaf lies at its own first
child instead, beside an empty one, so that as many tuples are compared.
"""

import numpy as np

from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import Integers
from flashsim.storage.keys import NULL_KEY

#: Columns of a node, compared in this order: the run that its tuple goes to and the key's upper half, then the key's lower half and the
#: leaf.  Both are of 62 bits, so that differences tell their order.
UPPER, LOWER = range(2)
_HALF, _LEAF = 32, 30
_HALF_MASK, _LEAF_MASK = (1 << _HALF) - 1, (1 << _LEAF) - 1
#: Turns the order of a signed half into that of its bits.
_SIGN = 1 << (_HALF - 1)
#: The upper column of a leaf that holds nothing.
EMPTY = 1 << 62

#: Nodes from this one on, which may not be in a processor's own cache, are asked for before they are needed; below the other, on either of
#: two levels, are those that will win soon.
_FAR, _SOON = 1 << 14, 64
_CACHE_LINE = 64

#: Results of `select`.
NEEDS_INPUT, NEEDS_LEAVES, OUTPUT_FULL, RUN_ENDS, ENDS = range(5)
#: Results of `merge` besides the number of a run that needs input.
MERGED_FULL, MERGED_ALL = -1, -2

#: State of a selection.
RUN, LAST, FREE, COUNT, HOT, IDLE, NEXT, MADE, COMPARED = range(9)
SELECTION_STATE = 9


def empty_tree(leaves: int) -> Integers:
    """The nodes of a tree of empty leaves; shape (at least 2 `leaves`, 2), each four that are compared in one cache line."""
    nodes = 2 * (1 << (leaves - 1).bit_length())
    words = np.empty(2 * nodes + _CACHE_LINE // 8, np.int64)
    begin = -words.ctypes.data % _CACHE_LINE // 8
    tree = words[begin : begin + 2 * nodes].reshape(nodes, 2)
    tree[:, UPPER], tree[:, LOWER] = EMPTY, 0
    return tree


@lean_kernel
def _node(nodes: Integers, leaf: int, leaves: int) -> int:
    node = leaves + leaf
    return node << (node < nodes.shape[0] // 2)


@lean_kernel
def _put(nodes: Integers, node: int, run: int, key: int, leaf: int) -> None:
    nodes[node, UPPER] = (run << _HALF) + (key >> _HALF) + _SIGN
    nodes[node, LOWER] = (key & _HALF_MASK) << _LEAF | leaf


@lean_kernel
def winner(nodes: Integers) -> tuple[int, int]:
    """Key and leaf of what comes first of all, in a tree that is not empty."""
    upper, lower = nodes[1, UPPER], nodes[1, LOWER]
    return ((upper & _HALF_MASK) - _SIGN) << _HALF | lower >> _LEAF, lower & _LEAF_MASK


@lean_kernel
def _first(upper: int, lower: int, other_upper: int, other_lower: int) -> tuple[int, int]:
    """The first of two entries, by run, key and leaf."""
    # Which one is a coin toss, and a branch would be mispredicted at every other node: the sign of the difference of both columns as
    # one number, spread over all bits, is a mask to choose by.  A compiler would turn comparisons into branches again.
    loses = (other_upper - upper + ((other_lower - lower) >> 63)) >> 63
    return upper ^ ((upper ^ other_upper) & loses), lower ^ ((lower ^ other_lower) & loses)


@lean_kernel
def _replay(nodes: Integers, node: int) -> int:
    """Let what a leaf's node holds play its way up; returns how many times two tuples were compared."""
    upper, lower = nodes[node, UPPER], nodes[node, LOWER]
    compared = 0
    while node > 3:
        sister, cousin, other = node ^ 1, node ^ 2, node ^ 3
        rival, rival_lower = _first(nodes[cousin, UPPER], nodes[cousin, LOWER], nodes[other, UPPER], nodes[other, LOWER])
        compared += _both(upper, nodes[sister, UPPER])
        upper, lower = _first(upper, lower, nodes[sister, UPPER], nodes[sister, LOWER])
        compared += _both(upper, rival)
        upper, lower = _first(upper, lower, rival, rival_lower)
        node >>= 2
        nodes[node, UPPER], nodes[node, LOWER] = upper, lower
    if node > 1:
        compared += _both(upper, nodes[node ^ 1, UPPER])
        nodes[1, UPPER], nodes[1, LOWER] = _first(upper, lower, nodes[node ^ 1, UPPER], nodes[node ^ 1, LOWER])
    return compared


@lean_kernel
def _both(upper: int, other: int) -> int:
    return (upper | other) >> 62 ^ 1


@lean_kernel
def _look_ahead(nodes: Integers, tuples: Integers, node: int) -> None:
    while node >= _SOON:
        node >>= 2
    leaf = nodes[node, LOWER] & _LEAF_MASK
    prefetch(tuples, leaf)
    node = _node(nodes, leaf, tuples.shape[0])
    while node >= _FAR:
        prefetch(nodes, node)
        node >>= 2


@lean_kernel
def regrow(old: Integers, had: int, nodes: Integers, leaves: int) -> None:
    """Let an empty tree of more leaves hold what those of an old one do."""
    for leaf in range(had):
        node, before = _node(nodes, leaf, leaves), _node(old, leaf, had)
        nodes[node, UPPER], nodes[node, LOWER] = old[before, UPPER], old[before, LOWER]
        _replay(nodes, node)


@inlined_kernel
def _take_in(nodes: Integers, tuples: Integers, state: Integers, key: int, leaf: int) -> None:
    state[HOT] = -1
    node = _node(nodes, leaf, tuples.shape[0])
    # Before a run's first tuple is given out, the last one is NULL_KEY, the smallest code.
    _put(nodes, node, state[RUN] + (key < state[LAST]), key, leaf)
    state[COMPARED] += _replay(nodes, node) + 1
    if nodes.shape[0] > _FAR:
        _look_ahead(nodes, tuples, node)
    state[FREE] -= tuples[leaf, 1]
    state[COUNT] += 1
    state[NEXT] += 1


@inlined_kernel
def _give_out(nodes: Integers, tuples: Integers, state: Integers, output: Integers) -> None:
    """The winner goes to the output; its leaf is still in the tree, for the next tuple to take its place."""
    key, leaf = winner(nodes)
    column = state[MADE]
    output[0, column], output[1, column], output[2, column] = key, tuples[leaf, 0], tuples[leaf, 1]
    state[MADE] += 1
    state[LAST] = key
    state[FREE] += tuples[leaf, 1]
    state[COUNT] -= 1
    state[HOT] = leaf


@inlined_kernel
def _leave_empty(nodes: Integers, tuples: Integers, idle: Integers, state: Integers) -> None:
    leaf = state[HOT]
    node = _node(nodes, leaf, tuples.shape[0])
    nodes[node, UPPER] = EMPTY
    state[COMPARED] += _replay(nodes, node)
    if nodes.shape[0] > _FAR:
        _look_ahead(nodes, tuples, node)
    idle[state[IDLE]] = leaf
    state[IDLE] += 1
    state[HOT] = -1


@lean_kernel
def select(
    keys: Integers,
    rows: Integers,
    sizes: Integers,
    last_input: bool,
    nodes: Integers,
    tuples: Integers,
    idle: Integers,
    state: Integers,
    output: Integers,
) -> int:
    """Replacement selection: take tuples in as long as they fit, give the smallest of the current run out when they do not.

    A tuple smaller than the last one given out has missed its place and goes to the next run, so runs of random input are about twice
    as long as memory (Knuth, The Art of Computer Programming 3, section 5.4.1).

    Parameters
    ----------
    keys, rows, sizes
        Input, from ``state[NEXT]`` on; no more follows if `last_input`.
    nodes, tuples, idle
        The tree; row id and bytes of each leaf's tuple, shape (leaves, 2); the stack of empty leaves, shape (leaves,).
    output
        Output: key, row id and bytes, shape (3, capacity); filled from ``state[MADE]`` on.

    Returns
    -------
    int
        Why it stopped: one of the constants above; ``state`` says where.
    """
    while True:
        index = state[NEXT]
        if index < keys.shape[0]:
            if sizes[index] <= state[FREE] or state[COUNT] == 0:
                leaf = state[HOT]
                if leaf < 0:
                    if state[IDLE] == 0:
                        return NEEDS_LEAVES
                    state[IDLE] -= 1
                    leaf = idle[state[IDLE]]
                tuples[leaf, 0], tuples[leaf, 1] = rows[index], sizes[index]
                _take_in(nodes, tuples, state, keys[index], leaf)
                continue
        elif not last_input:
            return NEEDS_INPUT
        if state[HOT] >= 0:
            _leave_empty(nodes, tuples, idle, state)
        if nodes[1, UPPER] >= EMPTY:
            return ENDS
        if nodes[1, UPPER] >> _HALF > state[RUN]:
            state[RUN] += 1
            state[LAST] = NULL_KEY
            return RUN_ENDS
        if state[MADE] == output.shape[1]:
            return OUTPUT_FULL
        _give_out(nodes, tuples, state, output)


@lean_kernel
def enter(nodes: Integers, runs: int, run: int, key: int, at_end: bool) -> int:
    """Put a run's next key (or that it has ended) into a tree that merges so many; returns the comparisons made."""
    node = _node(nodes, run, runs)
    _put(nodes, node, 0, key, run)
    if at_end:
        nodes[node, UPPER] = EMPTY
    return _replay(nodes, node)


@lean_kernel
def merge(keys: Integers, rows: Integers, heads: Integers, nodes: Integers, merged: Integers, counts: Integers) -> int:
    """Merge sorted runs; equal keys come out in the order of the runs' numbers.

    Parameters
    ----------
    keys, rows
        What is loaded of each run, shape (runs, capacity).
    heads
        The next tuple of each run, and how many are loaded, shape (runs, 2).
    merged
        Output: key, row id and run, shape (3, capacity).
    counts
        How many tuples were put out and comparisons made, shape (2,); both are added to.

    Returns
    -------
    int
        The run whose loaded tuples are used up, or that the output is full, or that all runs have ended.
    """
    while True:
        if nodes[1, UPPER] >= EMPTY:
            return MERGED_ALL
        if counts[0] == merged.shape[1]:
            return MERGED_FULL
        key, run = winner(nodes)
        head, column = heads[run, 0], counts[0]
        merged[0, column], merged[1, column], merged[2, column] = key, rows[run, head], run
        counts[0] += 1
        heads[run, 0] = head + 1
        if head + 1 == heads[run, 1]:
            return int(run)
        node = _node(nodes, run, heads.shape[0])
        _put(nodes, node, 0, keys[run, head + 1], run)
        counts[1] += _replay(nodes, node)
