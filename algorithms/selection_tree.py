"""A tournament tree, and the two things it is used for: replacement selection, which makes sorted runs, and merging them.

It is a tree of winners: node n holds the smaller of nodes 2n and 2n + 1, leaves are nodes P .. 2P - 1, and the root is node 1.  A tree of
losers replays only from the winner's leaf; here tuples vary in size, so one that leaves may make room for several, whose leaves lie
anywhere.  Both take as many comparisons a replay.  A node holds its key itself, so a replay touches one path of 16-byte nodes.
"""

from __future__ import annotations

import numpy as np

from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.relation import NULL_KEY

#: Columns of a node.  A tag orders before the key: its upper bits are the run that the tuple goes to, its lower bits the leaf.
TAG, KEY = range(2)
RUN_SHIFT = 32
#: The run of leaves that hold nothing.
EMPTY = 1 << 62

#: A tree of so many nodes fits a processor's own cache (16 bytes each).
CACHED = 1 << 16

#: What `select` returns.
NEEDS_INPUT, NEEDS_LEAVES, OUTPUT_FULL, RUN_ENDS, ENDS = range(5)
#: What `merge` returns besides the number of a run that needs input.
MERGED_FULL, MERGED_ALL = -1, -2

#: State of a selection.
RUN, LAST, FREE, COUNT, HOT, IDLE, NEXT, MADE, COMPARED = range(9)
SELECTION_STATE = 9


@kernel
def _before(tag: int, key: int, other_tag: int, other_key: int) -> bool:
    """Whether the first comes before the other: by run, key, leaf."""
    run, other_run = tag >> RUN_SHIFT, other_tag >> RUN_SHIFT
    return (run < other_run) | ((run == other_run) & ((key < other_key) | ((key == other_key) & (tag < other_tag))))


@kernel
def _fetch(nodes: Integers, node: int) -> int:
    """Bring what a replay will compare with into the processor's cache, all at once rather than one after the other; returns 0."""
    tags = np.int64(0)
    while node > 1:
        tags |= nodes[node ^ 1, TAG]
        node >>= 1
    return int(tags < 0)  # no tag is, but a compiler cannot know, and must load them


@kernel
def _replay(nodes: Integers, leaf: int) -> int:
    """Let the tuple at a leaf play its way up; returns how many times two tuples were compared."""
    node = nodes.shape[0] // 2 + leaf
    tag, key = nodes[node, TAG], nodes[node, KEY]
    compared = _fetch(nodes, node) if nodes.shape[0] > CACHED else 0
    while node > 1:
        other_tag, other_key = nodes[node ^ 1, TAG], nodes[node ^ 1, KEY]
        compared += (tag < EMPTY) & (other_tag < EMPTY)
        # Whoever wins is a coin toss, so it is chosen by a mask: a branch would be mispredicted at every other node.
        loses = -np.int64(_before(other_tag, other_key, tag, key))
        tag ^= (tag ^ other_tag) & loses
        key ^= (key ^ other_key) & loses
        node >>= 1
        nodes[node, TAG], nodes[node, KEY] = tag, key
    return compared


@kernel
def clear(nodes: Integers) -> None:
    """Make a tree of empty leaves; shape (2 P, 2)."""
    for node in range(nodes.shape[0]):
        nodes[node, TAG], nodes[node, KEY] = EMPTY, 0


@kernel
def regrow(old: Integers, nodes: Integers) -> None:
    """Make a larger tree with the leaves of an old one; the new leaves are empty."""
    clear(nodes)
    had, leaves = old.shape[0] // 2, nodes.shape[0] // 2
    for leaf in range(had):
        nodes[leaves + leaf] = old[had + leaf]
    for node in range(leaves - 1, 0, -1):
        left, right = 2 * node, 2 * node + 1
        right_wins = _before(nodes[right, TAG], nodes[right, KEY], nodes[left, TAG], nodes[left, KEY])
        nodes[node] = nodes[right] if right_wins else nodes[left]


@kernel
def select(
    keys: Integers,
    rows: Integers,
    sizes: Integers,
    last_input: bool,
    nodes: Integers,
    held: Integers,
    idle: Integers,
    state: Integers,
    made: Integers,
) -> int:
    """Replacement selection: take tuples in as long as they fit, give the smallest of the current run out when they do not.

    A tuple smaller than the last one given out has missed its place and goes to the next run, so runs of random input are about twice
    as long as memory (Knuth, The Art of Computer Programming 3, section 5.4.1).

    Parameters
    ----------
    keys, rows, sizes
        Input, from ``state[NEXT]`` on; no more follows if `last_input`.
    nodes, held, idle
        The tree, shape (2 P, 2); row id and bytes of each leaf's tuple, shape (P, 2); the stack of empty leaves, shape (P,).
    made
        Output: key, row id and bytes, shape (3, capacity); filled from ``state[MADE]`` on.

    Returns
    -------
    int
        Why it stopped: one of the constants above; ``state`` says where.
    """
    room = made.shape[1]
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
                state[HOT] = -1
                node = nodes.shape[0] // 2 + leaf
                # Before a run's first tuple is given out, the last one is NULL_KEY, the smallest code.
                nodes[node, TAG] = (state[RUN] + (keys[index] < state[LAST])) << RUN_SHIFT | leaf
                nodes[node, KEY] = keys[index]
                held[leaf, 0], held[leaf, 1] = rows[index], sizes[index]
                state[COMPARED] += _replay(nodes, leaf) + 1
                state[FREE] -= sizes[index]
                state[COUNT] += 1
                state[NEXT] += 1
                continue
        elif not last_input:
            return NEEDS_INPUT
        if state[HOT] >= 0:
            leaf = state[HOT]
            nodes[nodes.shape[0] // 2 + leaf, TAG] = EMPTY
            state[COMPARED] += _replay(nodes, leaf)
            idle[state[IDLE]] = leaf
            state[IDLE] += 1
            state[HOT] = -1
        tag = nodes[1, TAG]
        if tag >= EMPTY:
            return ENDS
        if tag >> RUN_SHIFT > state[RUN]:
            state[RUN] += 1
            state[LAST] = NULL_KEY
            return RUN_ENDS
        if state[MADE] == room:
            return OUTPUT_FULL
        leaf = tag & ((1 << RUN_SHIFT) - 1)
        column = state[MADE]
        made[0, column], made[1, column], made[2, column] = nodes[1, KEY], held[leaf, 0], held[leaf, 1]
        state[MADE] += 1
        state[LAST] = nodes[1, KEY]
        state[FREE] += held[leaf, 1]
        state[COUNT] -= 1
        state[HOT] = leaf


@kernel
def enter(nodes: Integers, run: int, key: int, ended: bool) -> int:
    """Put a run's next key (or that it has ended) into a tree that merges; returns the comparisons made."""
    node = nodes.shape[0] // 2 + run
    nodes[node, TAG] = EMPTY if ended else run
    nodes[node, KEY] = key
    return _replay(nodes, run)


@kernel
def merge(keys: Integers, rows: Integers, heads: Integers, nodes: Integers, merged: Integers, made: Integers) -> int:
    """Merge sorted runs; equal keys come out in the order of the runs' numbers.

    Parameters
    ----------
    keys, rows
        What is loaded of each run, shape (runs, capacity).
    heads
        The next tuple of each run, and how many are loaded, shape (runs, 2).
    merged
        Output: key, row id and run, shape (3, capacity).
    made
        How many tuples were put out and comparisons made, shape (2,); both are added to.

    Returns
    -------
    int
        The run whose loaded tuples are used up, or that the output is full, or that all runs have ended.
    """
    while True:
        if nodes[1, TAG] >= EMPTY:
            return MERGED_ALL
        if made[0] == merged.shape[1]:
            return MERGED_FULL
        run = nodes[1, TAG]
        head, column = heads[run, 0], made[0]
        merged[0, column], merged[1, column], merged[2, column] = nodes[1, KEY], rows[run, head], run
        made[0] += 1
        heads[run, 0] = head + 1
        if head + 1 == heads[run, 1]:
            return int(run)
        nodes[nodes.shape[0] // 2 + run, KEY] = keys[run, head + 1]
        made[1] += _replay(nodes, run)
