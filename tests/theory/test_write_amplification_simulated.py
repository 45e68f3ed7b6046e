"""Write amplification of every policy, simulated from a plain fill, against the formulas; one die, and the reserve does not count."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.request import WRITE, Integers, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from models.write_amplification import d_choices, fifo, fifo_hot_cold, greedy, greedy_hot_cold, random
from tests.flashsim.ssd.drives import PAGE, drive, served

RESERVE = 2


def one_die(gc: str, alpha: float, pages_per_block: int, blocks: int, choices: int = 2) -> SsdParameters:
    """A drive with so many blocks outside the reserve."""
    logical = round(blocks * pages_per_block / alpha)
    return drive(
        capacity=logical * PAGE, channels=1, blocks_per_plane=blocks + RESERVE, pages_per_block=pages_per_block, gc_reserve=RESERVE,
        queue_depth=1, gc=gc, gc_choices=choices,
    )  # fmt: skip


def drawn(parameters: SsdParameters, count: int, seed: int, hot: tuple[float, float] | None) -> Integers:
    """Pages to write: uniform, or a share of the writes to a share of the pages, which lie spread over the drive."""
    random_numbers, logical = generator(seed, "overwrites", parameters.gc), parameters.logical_pages
    if hot is None:
        return random_numbers.integers(0, logical, count)
    writes, data = hot
    order, size = generator(seed, "hot").permutation(logical), round(data * logical)
    is_hot = random_numbers.random(count) < writes
    return order[np.where(is_hot, random_numbers.integers(0, size, count), random_numbers.integers(size, logical, count))]


def simulated(parameters: SsdParameters, warm_up: float, measured: float, hot: tuple[float, float] | None = None) -> float:
    """Write amplification after so many writes of the whole drive, over so many more."""
    engine = SsdEngine(parameters)
    engine.load(0, parameters.capacity)
    pages = drawn(parameters, int((warm_up + measured) * parameters.logical_pages), 1, hot)
    counters, first = [], int(warm_up * parameters.logical_pages)
    for part in (pages[:first], pages[first:]):
        for batch in np.array_split(part, -(-len(part) // 500_000)):
            served(engine, make_requests(WRITE, batch * PAGE, PAGE), engine.now)
        counters.append(engine.statistics())
    programs, writes = (counters[1][name] - counters[0][name] for name in ("flash_programs", "host_writes"))
    return float(programs / writes)


def predicted(gc: str, alpha: float, pages_per_block: int, choices: int) -> float:
    """What the formula of a policy says."""
    if gc == "fifo":
        return fifo(alpha)
    if gc == "greedy":
        return greedy(alpha, pages_per_block)
    return random(alpha) if gc == "random" else d_choices(alpha, pages_per_block, choices).write_amplification


#: What the formulas leave out: other than the d choices' mean field they are approximations for finite blocks.
TOLERANCE = {"fifo": 0.01, "greedy": 0.01, "d-choices": 0.005, "random": 0.01}


def check(gc: str, alpha: float, pages_per_block: int, choices: int, blocks: int, warm_up: float, measured: float) -> None:
    parameters = one_die(gc, alpha, pages_per_block, blocks, choices)
    effective = 1 + parameters.effective_overprovisioning
    assert effective == pytest.approx(alpha, rel=1e-4)
    expected = predicted(gc, effective, pages_per_block, choices)
    assert simulated(parameters, warm_up, measured) == pytest.approx(expected, rel=TOLERANCE[gc])


@pytest.mark.parametrize(
    ("gc", "alpha", "pages_per_block", "choices"),
    [
        ("greedy", 1.15, 32, 0),
        ("greedy", 1.28, 64, 0),
        ("fifo", 1.15, 32, 0),
        ("random", 1.28, 32, 0),
        ("d-choices", 1.28, 32, 2),
        ("d-choices", 1.15, 32, 10),
    ],
)
def test_uniform_writes(gc: str, alpha: float, pages_per_block: int, choices: int) -> None:
    check(gc, alpha, pages_per_block, max(choices, 1), blocks=1000, warm_up=6, measured=6)


@pytest.mark.slow
@pytest.mark.parametrize("pages_per_block", [32, 64, 128])
@pytest.mark.parametrize("alpha", [1.07, 1.15, 1.28])
@pytest.mark.parametrize(("gc", "choices"), [("fifo", 1), ("greedy", 1), ("random", 1), ("d-choices", 2), ("d-choices", 10)])
def test_uniform_writes_over_the_grid(gc: str, choices: int, alpha: float, pages_per_block: int) -> None:
    check(gc, alpha, pages_per_block, choices, blocks=4000, warm_up=8, measured=6 if gc in ("fifo", "greedy") else 16)


@pytest.mark.slow
@pytest.mark.parametrize("hot", [(0.8, 0.2), (0.9, 0.1), (0.9, 0.5)])
@pytest.mark.parametrize("alpha", [1.07, 1.15, 1.28])
@pytest.mark.parametrize("gc", ["fifo", "greedy"])
def test_hot_and_cold_writes(gc: str, alpha: float, hot: tuple[float, float]) -> None:
    """Cold pages settle slowly, so that the warm-up is longer."""
    parameters = one_die(gc, alpha, 64, 1000)
    effective = 1 + parameters.effective_overprovisioning
    expected = fifo_hot_cold(effective, *hot) if gc == "fifo" else greedy_hot_cold(effective, *hot, 64)
    assert simulated(parameters, 20, 10, hot) == pytest.approx(expected, rel=0.03)


def test_cost_benefit_lies_between_greedy_and_fifo() -> None:
    """It weighs the gain, which is all that greedy goes by, and the age, which is all of FIFO; no policy beats greedy here."""
    found = {gc: simulated(one_die(gc, 1.28, 32, 500), 6, 6) for gc in ("greedy", "cost-benefit", "fifo")}
    assert found["greedy"] < found["cost-benefit"] < found["fifo"]


def test_write_amplification_counts_moves() -> None:
    parameters = drive()
    engine = SsdEngine(parameters)
    offsets = generator(2, "overwrites").integers(0, parameters.logical_pages, 2000) * PAGE
    served(engine, make_requests(WRITE, offsets, PAGE))
    numbers = engine.statistics()
    assert numbers["programs_gc"] > 0
    assert numbers["flash_programs"] == 2000 + numbers["programs_gc"]
    assert numbers["write_amplification"] == pytest.approx(1 + numbers["programs_gc"] / 2000)
    assert np.isclose(numbers["block_erases"]["mean"] * parameters.blocks_per_die * parameters.dies, numbers["flash_erases"])
