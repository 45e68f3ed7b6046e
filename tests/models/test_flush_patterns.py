"""Flush patterns of N-Hash: the published sizes, chains small enough to be solved exactly, and balls thrown into bins."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator
from models.flush_patterns import n_hash, traditional

#: A trial's counts at the sizes of Shin et al., table 1 (15 million tuples): MB, B, sub-buffers of a circular buffer, tuples of one, calls,
#: requests a call, their mean KB, KB of a sub-buffer, and writes of the traditional method.  At 5 MB its sub-buffers held 27.8 tuples.
PUBLISHED = (
    (5, 517, 2, 28, 1587, 340, 4.0, 4, 268_800),
    (10, 259, 4, 56, 402, 361, 14.8, 8, 67_260),
    (20, 130, 19, 56, 122, 238, 74, 8, 14_190),
    (30, 87, 42, 56, 78, 166, 165, 8, 6440),
    (50, 53, 115, 56, 45, 103, 457, 8, 2370),
    (100, 27, 445, 56, 22, 53, 1810, 8, 620),
    (200, 14, 1664, 56, 11, 27, 7000, 8, 168),
)


@pytest.mark.parametrize(("memory", "buckets", "slots", "room", "calls", "at_once", "mean", "sub_buffer", "writes"), PUBLISHED)
def test_published_sizes(
    memory: int, buckets: int, slots: int, room: float, calls: int, at_once: int, mean: float, sub_buffer: int, writes: int
) -> None:
    made = n_hash(buckets, slots, room, 15_000_000)
    assert made.calls == pytest.approx(calls, rel=0.02)
    assert made.at_once == pytest.approx(at_once, rel=0.02)
    assert made.length / room * sub_buffer == pytest.approx(mean, rel=0.02)
    one_by_one = traditional(buckets, slots * room, 15_000_000)
    assert one_by_one.requests + one_by_one.last == pytest.approx(writes, rel=0.01)


def thrown(buckets: int, slots: int, room: int, calls: int) -> tuple[float, float]:
    """Full sub-buffers of a call over all, and requests of a call, by throwing tuples one by one; the first third is left out."""
    random = generator(0, "balls into bins")
    levels, starts = [0] * buckets, np.zeros(buckets, np.int64)
    counted = []
    while len(counted) < calls:
        for bucket in random.integers(0, buckets, 10_000).tolist():
            if levels[bucket] == slots * room:
                held = np.array(levels)
                full = np.maximum(held - 1, 0) // room
                full[bucket] = slots
                counted.append((full.sum() / (buckets * slots), (full > 0).sum() + (starts + full > slots).sum()))
                levels, starts = (held - full * room).tolist(), (starts + full) % slots
            levels[bucket] += 1
    fill, requests = np.mean(counted[calls // 3 :], axis=0)
    return float(fill), float(requests)


@pytest.mark.parametrize(("buckets", "slots", "room"), [(517, 2, 28), (100, 3, 14), (60, 1, 28), (30, 19, 20), (8, 2, 56), (259, 8, 7)])
def test_thrown_tuples(buckets: int, slots: int, room: int) -> None:
    """What is left in a sub-buffer is taken as anything from nothing to all of it; with few buffers of two halves that costs 4 %."""
    fill, requests = thrown(buckets, slots, room, max(60, 6000 // buckets))
    made = n_hash(buckets, slots, room, 10_000_000)
    assert made.fill == pytest.approx(fill, rel=0.04)
    assert made.at_once == pytest.approx(requests, rel=0.04)


def solved(buckets: int, slots: int, room: int) -> float:
    """Mean tuples between two calls, from the chain of what sub-buffers hold after each call, solved exactly."""
    capacity, states = slots * room, list(product(range(room + 1), repeat=buckets))
    place = {state: number for number, state in enumerate(states)}
    moves, lengths = np.zeros((len(states), len(states))), np.zeros(len(states))
    for number, state in enumerate(states):
        chances = {state: 1.0}
        while chances:
            lengths[number] += sum(chances.values())  # one more tuple comes
            following: dict[tuple[int, ...], float] = {}
            for levels, chance in chances.items():
                for bucket in range(buckets):
                    share = chance / buckets
                    if levels[bucket] < capacity:
                        put = (*levels[:bucket], levels[bucket] + 1, *levels[bucket + 1 :])
                        following[put] = following.get(put, 0.0) + share
                    else:  # it finds no room, and is put after the call: it belongs to the next
                        left = [level and (level - 1) % room + 1 for level in levels]
                        left[bucket] = 1
                        moves[number, place[tuple(left)]] += share
                        lengths[number] += share * (left[bucket] == room and 0)
            chances = following
    stationary = np.linalg.matrix_power(moves, 256)[0]
    return float(stationary @ lengths)


@pytest.mark.parametrize(("buckets", "slots", "room"), [(2, 2, 3), (2, 4, 3), (3, 2, 4), (3, 3, 3), (2, 5, 6)])
def test_exact_chains(buckets: int, slots: int, room: int) -> None:
    made = n_hash(buckets, slots, room, 1_000_000)
    assert 1_000_000 / made.calls == pytest.approx(solved(buckets, slots, room), rel=0.04)


@given(st.integers(1, 600), st.integers(1, 2000), st.integers(1, 400), st.integers(1, 10_000_000))
def test_what_any_pattern_has(buckets: int, slots: int, room: int, tuples: int) -> None:
    """A call writes one sub-buffer at least and no more than all; tuples are neither lost nor made; one bucket's buffer is always full."""
    made = n_hash(buckets, slots, room, tuples)
    assert 0 < made.fill <= 1.02
    assert 0 <= made.tuples <= tuples
    assert made.at_once <= 2 * buckets
    assert made.tuples <= made.calls * buckets * slots * room * 1.02
    if buckets == 1 and made.calls > 2 and room > 20:
        assert made.fill == pytest.approx(1, abs=1 / slots)


def test_longer_buffers_make_fewer_calls() -> None:
    for buckets, room in product((3, 50, 500), (7, 56)):
        calls = [n_hash(buckets, slots, room, 10_000_000).calls for slots in range(1, 40)]
        assert calls == sorted(calls, reverse=True)


def test_shorter_sub_buffers_empty_more() -> None:
    """Of the same buffer, more is written in a call the finer it is divided."""
    for buckets in (10, 100, 1000):
        fills = [n_hash(buckets, slots, 960 / slots, 10_000_000).fill for slots in (2, 3, 4, 8, 16, 32)]
        assert fills == sorted(fills)


def test_buffers_that_are_not_divided_are_traditional() -> None:
    assert n_hash(60, 1, 28, 1_000_000) == traditional(60, 28, 1_000_000)
    assert thrown(60, 1, 28, 100) == (pytest.approx(1 / 60), 1)


def test_refused() -> None:
    for wrong in ((0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.5)):
        with pytest.raises(InvalidParameterError, match="it must be at least 1"):
            n_hash(*wrong, 100)
