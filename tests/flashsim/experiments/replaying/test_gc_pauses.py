"""Pauses of dies by garbage collection, against a naive walk, whatever the pieces in which spans come."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.spans import ERASE, GC, HOST, MAP, MOVE, READ, SPAN, Spans
from flashsim.experiments.replaying.observation import GcPauses
from tests.flashsim.operations.spans import DIES, made_up


def _naive(spans: Spans) -> list[int]:
    """Walk along every die."""
    pauses = []
    for die in range(DIES):
        length, last = 0, -1
        for _, _, cause, _, _, begin, end, *_ in sorted(spans[spans["server"] == die].tolist(), key=lambda span: span[5]):
            if length and (cause != GC or begin > last):
                pauses.append(length)
                length = 0
            if cause == GC:
                length, last = length + end - begin, end
        pauses += [length] if length else []
    return pauses


@given(st.integers(0, 1000), st.lists(st.integers(0, 700), max_size=5))
def test_pauses_equal_a_walk_along_each_die(seed: int, cuts: list[int]) -> None:
    _, _, spans = made_up(200, seed)
    pauses, expected = GcPauses(DIES), _naive(spans)
    for piece in np.split(spans, sorted(min(cut, len(spans)) for cut in cuts)):
        pauses.add(piece)
        pauses.as_dict()  # to look changes nothing
    told = pauses.as_dict()
    assert told is not None
    assert (told["pauses"], told["total"], told["max"]) == (len(expected), sum(expected), max(expected))


def test_a_host_operation_and_a_gap_end_a_pause() -> None:
    rows = [
        (0, MOVE, GC, -1, 1, 0, 10), (0, ERASE, GC, -1, -1, 10, 40),  # one of 40
        (0, READ, HOST, 3, 1, 40, 45), (0, MOVE, GC, -1, 1, 45, 50),  # one of 5
        (0, MOVE, GC, -1, 1, 51, 57), (0, READ, MAP, 4, 1, 57, 60), (0, MOVE, GC, -1, 1, 60, 63),  # of 6 and 3
        (1, MOVE, GC, -1, 1, 0, 7), (4, MOVE, GC, -1, 1, 0, 99),  # another die: 7; a channel is no die
    ]  # fmt: skip
    pauses = GcPauses(4)
    pauses.add(np.array([(*row, -1, 1, -1) for row in rows], SPAN))
    told = pauses.as_dict()
    assert told is not None and (told["pauses"], told["total"], told["max"], told["p50"]) == (5, 61, 40, 6)


def test_without_garbage_collection_there_is_nothing() -> None:
    pauses = GcPauses(2)
    assert pauses.as_dict() is None
    pauses.add(np.array([(0, READ, HOST, 3, 1, 40, 45, -1, 1, 0)], SPAN))
    assert pauses.as_dict() is None
