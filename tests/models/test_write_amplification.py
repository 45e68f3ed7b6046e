"""Write amplification by formula: a table of published and computed values, limits, and equations solved in other ways."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator
from models import write_amplification as wa

ALPHAS = (1.07, 1.15, 1.28, 1 / 0.93, 1 / 0.85, 1 / 0.72)
#: By row the alphas, computed apart and agreeing with simulations within 0.7 %.  Columns: FIFO, greedy with 32, 64, 128 pages a block, and
#: with 64 pages a block 1, 2, 10 and 100 choices.
TABLE = (
    (7.817, 6.343, 7.001, 7.386, 15.286, 10.277, 7.323, 7.029),
    (4.016, 3.605, 3.799, 3.904, 7.667, 5.312, 3.930, 3.807),
    (2.481, 2.328, 2.402, 2.441, 4.571, 3.245, 2.471, 2.405),
    (7.318, 6.013, 6.600, 6.940, 14.286, 9.635, 6.894, 6.629),
    (3.519, 3.203, 3.353, 3.434, 6.667, 4.648, 3.464, 3.359),
    (1.992, 1.896, 1.943, 1.967, 3.571, 2.573, 1.993, 1.945),
)
#: Greedy with 256 pages a block; the first is 7.59548.
GREEDY_256 = (7.595, 3.959, 2.461, 7.124, 3.476, 1.979)


@pytest.mark.parametrize(("alpha", "row", "greedy_256"), list(zip(ALPHAS, TABLE, GREEDY_256, strict=True)))
def test_the_table(alpha: float, row: tuple[float, ...], greedy_256: float) -> None:
    found = [wa.fifo(alpha), *(wa.greedy(alpha, pages) for pages in (32, 64, 128))]
    found += [wa.d_choices(alpha, 64, d).write_amplification for d in (1, 2, 10, 100)]
    # Both sides are rounded: half a unit of the last digit, and a little for a number that lies there.
    assert found == pytest.approx(row, abs=0.00055)
    assert wa.greedy(alpha, 256) == pytest.approx(greedy_256, abs=0.00055)


def test_published_values() -> None:
    assert wa.fifo(1.3) == pytest.approx(2.36, abs=0.005)  # Xiang and Kurkoski
    assert wa.agarwal_marrow(1.25) == 2.5


@pytest.mark.parametrize("alpha", ALPHAS)
def test_fifo_solves_its_equation(alpha: float) -> None:
    """The victims' valid share is exp(-alpha (1 - v)), and Menon and Robinson's (v - 1) / ln v is the utilisation."""
    valid = 1 - 1 / wa.fifo(alpha)
    assert valid == pytest.approx(math.exp(-alpha * (1 - valid)), rel=1e-12)
    assert (valid - 1) / math.log(valid) == pytest.approx(wa.utilisation_of(alpha), rel=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_policies_in_order(alpha: float) -> None:
    """More choice is better, down to greedy; greedy with endless blocks is FIFO."""
    by_choices = [wa.d_choices(alpha, 64, d).write_amplification for d in (1, 2, 4, 10, 100, 1000)]
    assert by_choices == sorted(by_choices, reverse=True)
    assert by_choices[0] == pytest.approx(wa.random(alpha), rel=1e-10)
    assert by_choices[-1] == pytest.approx(wa.greedy(alpha, 64), rel=0.005)
    assert wa.greedy(alpha, 64) < wa.fifo(alpha) < wa.random(alpha)
    assert wa.greedy(alpha, 10**7) == pytest.approx(wa.fifo(alpha), rel=1e-6)


@pytest.mark.parametrize(("alpha", "pages", "d"), [(1.07, 32, 2), (1.28, 16, 1), (2.0, 64, 10), (1.15, 8, 1.5)])
def test_the_mean_field_is_steady(alpha: float, pages: int, d: float) -> None:
    """Van Houdt's drift, written out as printed, vanishes there; and following it from another start leads there."""
    rho, counts = 1 / alpha, np.arange(pages + 1)

    def drift(m: Any) -> Any:
        tails = np.append(np.cumsum(m[::-1])[::-1], 0)
        p = np.maximum(tails[:-1], 0) ** d - np.maximum(tails[1:], 0) ** d
        ahead = np.append((counts * m)[1:], 0)
        change = (p * (pages - counts)).sum() * (ahead - counts * m) / (pages * rho) - p
        change[-1] += 1
        return change

    found = wa.d_choices(alpha, pages, d)
    assert found.blocks.sum() == pytest.approx(1)
    assert found.victims.sum() == pytest.approx(1)
    assert (found.blocks * counts).sum() == pytest.approx(pages * rho)
    assert found.write_amplification == pytest.approx(pages / (pages - (found.victims * counts).sum()))
    assert np.abs(drift(found.blocks)).max() < 1e-10
    start = np.zeros(pages + 1)
    start[-1], start[0] = rho, 1 - rho
    settled = solve_ivp(lambda _, m: drift(m), (0, 400), start, method="LSODA", rtol=1e-9, atol=1e-12).y[:, -1]
    assert settled == pytest.approx(found.blocks, abs=1e-5)


def test_hot_and_cold() -> None:
    for alpha in (1.07, 1.28):
        assert wa.fifo_hot_cold(alpha, 0.3, 0.3) == pytest.approx(wa.fifo(alpha), rel=1e-10)
        assert wa.fifo_groups(alpha, [0.25] * 4, [0.25] * 4) == pytest.approx(wa.fifo(alpha), rel=1e-10)
        assert wa.greedy_hot_cold(alpha, 0.8, 0.2, 10**7) == pytest.approx(wa.fifo_hot_cold(alpha, 0.8, 0.2), rel=1e-6)
        assert wa.fifo_hot_cold(alpha, 0.8, 0.2) > wa.fifo(alpha)  # mixed, skew does harm
        assert wa.fifo_groups(alpha, (0.5, 0.3, 0.2), (0.05, 0.15, 0.8)) == pytest.approx(
            wa.fifo_groups(alpha, (0.2, 0.5, 0.3), (0.8, 0.05, 0.15)), rel=1e-12
        )
        r, f, a = 0.9, 0.1, wa.fifo_hot_cold(alpha, 0.9, 0.1)
        again = 1 + r / (math.exp(r / f * alpha / a) - 1) + (1 - r) / (math.exp((1 - r) / (1 - f) * alpha / a) - 1)
        assert a == pytest.approx(again, rel=1e-10)


def test_data_that_is_never_written_takes_room() -> None:
    """FIFO copies the half that is never written at every turn of the drive, which takes alpha U flash pages."""
    alpha = 1.5
    found = wa.fifo_groups(alpha, (1, 0), (0.5, 0.5))

    def balance(a: float) -> float:
        e = math.exp(-alpha / (0.5 * a))
        return 1 + e / (1 - e) + 0.5 * a / alpha - a

    assert found == pytest.approx(brentq(balance, 1, 100), rel=1e-9)


def test_separate_pools() -> None:
    best = wa.separate_pools(1.15, 0.8, 0.2)
    tried = [wa.separate_pools(1.15, 0.8, 0.2, p).write_amplification for p in np.linspace(0.01, 0.99, 99)]
    assert best.write_amplification <= min(tried)
    assert best.write_amplification == pytest.approx(min(tried), rel=1e-3)
    assert best.write_amplification < wa.fifo(1.15) < wa.fifo_hot_cold(1.15, 0.8, 0.2)
    assert 0.2 * best.hot_alpha + 0.8 * best.cold_alpha == pytest.approx(1.15)
    # Without skew nothing is gained by separation, and each pool gets its part.
    even = wa.separate_pools(1.15, 0.3, 0.3)
    assert even.share == pytest.approx(0.3, abs=1e-4)
    assert even.write_amplification == pytest.approx(wa.fifo(1.15), rel=1e-9)
    assert wa.separate_pools(1.15, 0.8, 0.2, cleaning=lambda alpha: wa.greedy(alpha, 32)).write_amplification < best.write_amplification


def test_conversions() -> None:
    for alpha in generator(1, "alpha").uniform(1.01, 3, 20):
        assert wa.alpha_of_overprovisioning(wa.overprovisioning_of(alpha)) == pytest.approx(alpha)
        assert wa.alpha_of_spare_factor(wa.spare_factor_of(alpha)) == pytest.approx(alpha)
        assert wa.alpha_of_utilisation(wa.utilisation_of(alpha)) == pytest.approx(alpha)
    assert wa.alpha_of_pages(107, 100) == pytest.approx(1.07)
    # "7 %" by two conventions
    assert wa.fifo(wa.alpha_of_overprovisioning(0.07)) == pytest.approx(7.82, abs=0.005)
    assert wa.fifo(wa.alpha_of_spare_factor(0.07)) == pytest.approx(7.32, abs=0.005)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wa.fifo(1.0), "alpha: 1.0, but it must be above 1"),
        (lambda: wa.fifo(math.nan), "alpha: nan"),
        (lambda: wa.greedy(1.07, 0), "pages_per_block: 0, but it must be at least 1"),
        (lambda: wa.random(math.inf), "alpha: inf"),
        (lambda: wa.agarwal_marrow(0.9), "alpha: 0.9"),
        (lambda: wa.d_choices(1.07, 64, 0.5), "d: 0.5, but it must be at least 1"),
        (lambda: wa.fifo_hot_cold(1.07, 1.0, 0.2), "hot_writes: 1.0, but it must be between 0 and 1"),
        (lambda: wa.greedy_hot_cold(1.07, 0.5, 0.0, 64), "hot_data: 0.0"),
        (lambda: wa.separate_pools(1.07, 0.5, 0.2, 1.0), "share: 1.0"),
        (lambda: wa.fifo_groups(1.07, (0.5, 0.4), (0.5, 0.5)), "writes: .* add up to 1"),
        (lambda: wa.fifo_groups(1.07, (0.5, 0.5), (1.0, 0.0)), "data: .* add up to 1"),
        (lambda: wa.fifo_groups(1.07, (1.0,), (0.5, 0.5)), "writes: .* one share a group"),
        (lambda: wa.alpha_of_pages(100, 100), "alpha: 1.0"),
        (lambda: wa.alpha_of_pages(100, 0), "logical: 0"),
        (lambda: wa.alpha_of_overprovisioning(0), "overprovisioning: 0"),
        (lambda: wa.alpha_of_spare_factor(1), "spare_factor: 1"),
        (lambda: wa.alpha_of_utilisation(0), "rho: 0"),
    ],
)
def test_impossible_values(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        call()
