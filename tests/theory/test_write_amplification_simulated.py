"""Greedy garbage collection under uniform random overwrites against Desnoyers' closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import lambertw

from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine import SsdEngine
from tests.flashsim.ssd.drives import PAGE, drive, served


def desnoyers_greedy(alpha: float, pages_per_block: int) -> float:
    """Write amplification of greedy cleaning (Desnoyers, SYSTOR 2012, equations 4 and 12); alpha = usable over logical pages."""
    k = 1 + 1 / (2 * pages_per_block)
    spread = k * alpha
    return spread / (spread + lambertw(-spread * math.exp(-spread)).real) / k


@pytest.mark.parametrize(("overprovisioning", "pages_per_block"), [(0.15, 32), (0.28, 64), (0.28, 32)])
def test_greedy_is_as_desnoyers_says(overprovisioning: float, pages_per_block: int) -> None:
    """The reserve (free blocks and the block being filled) does not count as over-provisioning."""
    blocks = 2002
    usable = (blocks - 2) * pages_per_block
    parameters = drive(
        capacity=int(usable / (1 + overprovisioning)) * PAGE,
        channels=1,
        blocks_per_plane=blocks,
        pages_per_block=pages_per_block,
        queue_depth=1,
    )
    engine = SsdEngine(parameters)
    engine.load(0, parameters.capacity)
    random = generator(1, "overwrites", overprovisioning, pages_per_block)
    counters = []
    for full_writes in (6, 4):
        count = full_writes * parameters.logical_pages
        served(engine, make_requests(WRITE, random.integers(0, parameters.logical_pages, count) * PAGE, PAGE), engine.now)
        counters.append(engine.statistics())
    programs, writes = (counters[1][name] - counters[0][name] for name in ("flash_programs", "host_writes"))
    alpha = 1 + parameters.effective_overprovisioning
    assert programs / writes == pytest.approx(desnoyers_greedy(alpha, pages_per_block), rel=0.01)


def test_write_amplification_counts_moves() -> None:
    parameters = drive()
    engine = SsdEngine(parameters)
    offsets = generator(2, "overwrites").integers(0, parameters.logical_pages, 2000) * PAGE
    served(engine, make_requests(WRITE, offsets, PAGE))
    numbers = engine.statistics()
    assert numbers["gc_moves"] > 0
    assert numbers["flash_programs"] == 2000 + numbers["gc_moves"]
    assert numbers["write_amplification"] == pytest.approx(1 + numbers["gc_moves"] / 2000)
    assert np.isclose(numbers["block_erases"]["mean"] * parameters.blocks_per_die * parameters.dies, numbers["flash_erases"])
