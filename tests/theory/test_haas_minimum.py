"""The closed forms stand where their continuous costs are least, and tend to the limits that theory gives."""

from __future__ import annotations

import math
from functools import partial

import pytest

from models.allocation.divisions import hybrid_input, nested_loops_inner, sort_merge_input
from models.optimum import continuous, nested_loops_cost, sort_merge_cost
from tests.theory.continuous_costs import hybrid_cost, hybrid_quadratic, simple_hash_cost

R, S = 93_440, 655_360
Y, X = 24.19712, (5.56 + 12) / 5.56
MEMORIES = [12_800 * step for step in range(1, 7)]


@pytest.mark.parametrize("memory", MEMORIES)
def test_nested_loops_closed_form_is_the_continuous_minimum(memory: int) -> None:
    least = continuous(lambda inner: nested_loops_cost(inner, R, S, memory, Y), memory)
    assert nested_loops_inner(S, memory, Y) == pytest.approx(least, abs=1e-2)


@pytest.mark.parametrize("memory", MEMORIES)
def test_sort_merge_closed_form_is_the_continuous_minimum(memory: int) -> None:
    least = continuous(lambda buffer: sort_merge_cost(buffer, R, S, memory, X), memory / 2)
    assert sort_merge_input(R, S, memory, X) == pytest.approx(least, abs=1e-2)


@pytest.mark.parametrize("memory", MEMORIES)
def test_simple_hash_closed_form_is_the_continuous_minimum(memory: int) -> None:
    least = continuous(lambda buffer: simple_hash_cost(buffer, R, S, memory, Y), memory / 2)
    assert math.sqrt(Y * Y + Y * memory / 2) - Y == pytest.approx(least, abs=1e-2)


@pytest.mark.parametrize(
    "memory, misread", [(12_800, 1255), (25_600, 3672), (38_400, 6987), (51_200, 11159), (64_000, 16206), (76_800, 22179)]
)
def test_sort_merge_with_the_constant_under_the_root_is_not_the_minimum(memory: int, misread: int) -> None:
    """Reading the printed root as covering the constant too moves the buffer by 23 to 82 %."""
    z = X * 1.2 * (R + S) / memory
    value = math.sqrt(2 * z - 4) * memory / (z - 8)
    assert value == pytest.approx(misread, abs=1)
    at = partial(sort_merge_cost, r_pages=R, s_pages=S, memory=memory, access_ratio=X)
    assert at(value) > at(sort_merge_input(R, S, memory, X))


def test_sort_merge_form_is_the_printed_one_and_continuous_where_that_is_not() -> None:
    r, s, x = 1000, 9000, 2.0
    at_eight = x * 1.2 * (r + s) / 8  # the memory at which z = 8
    assert sort_merge_input(r, s, at_eight, x) == pytest.approx(at_eight / 4)  # type: ignore[arg-type]
    for memory in (at_eight * 0.999, at_eight * 1.001):
        assert sort_merge_input(r, s, memory, x) == pytest.approx(at_eight / 4, rel=2e-3)  # type: ignore[arg-type]
    for memory in (100, 1000, 2900, 3100, 10_000):
        z = x * 1.2 * (r + s) / memory
        assert sort_merge_input(r, s, memory, x) == pytest.approx((math.sqrt(2 * z) - 4) * memory / (z - 8), rel=1e-9)


def test_nested_loops_limits() -> None:
    """Half of memory for a slow start and a large S (Hagmann), nothing for a start that costs nothing."""
    assert nested_loops_inner(10**12, 1000, 1e9) == pytest.approx(500, rel=1e-6)
    assert nested_loops_inner(10**12, 1000, math.inf) == pytest.approx(500, rel=1e-6)
    assert nested_loops_inner(500, 1000, math.inf) == pytest.approx(nested_loops_inner(500, 1000, 1e12), rel=1e-6)
    assert nested_loops_inner(1000, 1000, 0) == 0


@pytest.mark.parametrize("y", [3.2, 24.2, 200.0])
def test_hybrid_input_grows_with_the_root_of_the_latency_ratio(y: float) -> None:
    """For a large R and M far above y, TR's quadratic and the continuous minimum tend to (sqrt(5) / 2) sqrt(M y)."""
    memory = 10**7 * y
    relation = 10**5 * memory
    rule = hybrid_input(memory, y, "sqrt-y")  # type: ignore[arg-type]
    assert hybrid_quadratic(relation, memory, y) / rule == pytest.approx(1, abs=2e-3)
    least = continuous(lambda root: hybrid_cost(root * root, relation, relation, memory, y), math.sqrt(memory) / 2)
    assert least * least / rule == pytest.approx(1, abs=0.02)


def test_hybrid_quadratic_nears_its_limit_as_memory_grows() -> None:
    errors = []
    for exponent in (4, 5, 6, 7, 8):
        memory = 10**exponent
        errors.append(abs(hybrid_quadratic(10**6 * memory, memory, 24.2) / hybrid_input(memory, 24.2, "sqrt-y") - 1))
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.01
