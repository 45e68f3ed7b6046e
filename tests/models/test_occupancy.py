"""Valid pages of closed blocks in steady state: what follows from the policies, whatever the formulas."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError
from models.occupancy import AGES, fifo_by_age, greedy_mean_field, occupancy
from models.write_amplification import d_choices, fifo

ALPHAS = [1.02, 1.07, 1.15, 1.28, 2.0, 5.0]


@pytest.mark.parametrize("gc", ["greedy", "fifo", "random", "d-choices", "cost-benefit"])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("pages_per_block", [2, 32, 256])
def test_blocks_hold_the_logical_pages(gc: str, alpha: float, pages_per_block: int) -> None:
    shares = occupancy(gc, alpha, pages_per_block)
    assert shares.shape == ((AGES, pages_per_block + 1) if gc == "fifo" else (pages_per_block + 1,))
    assert (shares >= 0).all()
    assert shares.sum(axis=-1) == pytest.approx(1)
    assert (shares @ np.arange(pages_per_block + 1)).mean() == pytest.approx(pages_per_block / alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("pages_per_block", [2, 32, 256])
def test_greedy_balances_every_count(alpha: float, pages_per_block: int) -> None:
    """Blocks reach a count by losing a page, at the rate of their pages, and leave it by the next loss or as victims."""
    found = greedy_mean_field(alpha, pages_per_block)
    count = np.arange(pages_per_block + 1)
    assert found.victims.sum() == pytest.approx(1)
    assert (found.victims >= 0).all()
    gain = pages_per_block - float(found.victims @ count)  # pages that a victim makes room for, and the host overwrites
    assert found.write_amplification == pytest.approx(pages_per_block / gain)
    losses = gain * count * found.blocks / float(found.blocks @ count)
    arrivals = np.append(losses[1:], 1.0)  # a victim is replaced by a full block
    served = np.flatnonzero(found.victims)[-1]  # those at the lowest count are taken at once: none is there on average
    assert arrivals[served:] == pytest.approx((losses + found.victims)[served:], abs=1e-9)


@pytest.mark.parametrize("alpha", [1.07, 1.15, 1.28])
def test_greedy_is_the_limit_of_choices(alpha: float) -> None:
    few, many = (d_choices(alpha, 64, d) for d in (30, 300))
    limit = greedy_mean_field(alpha, 64)
    assert few.write_amplification > many.write_amplification > limit.write_amplification
    assert many.write_amplification == pytest.approx(limit.write_amplification, rel=0.002)
    assert np.abs(np.cumsum(many.blocks) - np.cumsum(limit.blocks)).max() < 0.01


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_oldest_of_fifo_are_its_victims(alpha: float) -> None:
    shares = fifo_by_age(alpha, 64, ages=10_000)
    victims = float(shares[0] @ np.arange(65)) / 64
    assert 1 / (1 - victims) == pytest.approx(fifo(alpha), rel=2e-3)
    assert (np.diff(shares @ np.arange(65)) > 0).all()


def test_bad_values() -> None:
    with pytest.raises(InvalidParameterError, match=r"alpha: 1\.0"):
        occupancy("greedy", 1.0, 64)
    with pytest.raises(InvalidParameterError, match="pages_per_block"):
        greedy_mean_field(1.1, 0)
    with pytest.raises(InvalidParameterError, match="ages"):
        fifo_by_age(1.1, 64, 0)
