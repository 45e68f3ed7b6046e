"""Write amplification of every policy, simulated from a plain fill, against the formulas; one die, and the reserve does not count.

The deep tests are the whole grid and print its table::

    pytest -m deep -s tests/theory/test_write_amplification_simulated.py
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import chisquare

from flashsim.core.draws import mix_bits
from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.testing.flash_drives import PAGE, drive, serve_all
from tests.theory.amplification import BATCH, Amplification, Trial, simulated

PAGES_PER_BLOCK = (32, 64, 128)
ALPHAS = (1.07, 1.15, 1.28)
#: Finite drives differ from the limit by a share of about one over the blocks, times a few.
BLOCKS = {32: 4000, 64: 2000, 128: 1500}
HOT = ((0.8, 0.2), (0.9, 0.1), (0.9, 0.5))
POLICIES = (("fifo", 1), ("greedy", 1), ("random", 1), ("d-choices", 2), ("d-choices", 10), ("d-choices", 100))

Table = dict[Trial, Amplification]


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    """Results by cell, printed at the end: simulated / formula (error), a column for every number of pages a block."""
    results: Table = {}
    yield results
    rows: dict[tuple[str, float], dict[int, str]] = {}
    for cell, found in results.items():
        text = f"{found.mean:.3f} ± {found.half_width:.3f} / {found.predicted:.3f} ({found.error:+.2%})"
        rows.setdefault((cell.label, cell.alpha), {})[cell.pages_per_block] = text
    print("\n| policy | alpha | " + " | ".join(f"{pages} pages" for pages in PAGES_PER_BLOCK) + " |")
    print("|---|---|" + "---|" * len(PAGES_PER_BLOCK))
    for (label, alpha), columns in rows.items():
        print(f"| {label} | {alpha} | " + " | ".join(columns.get(pages, "") for pages in PAGES_PER_BLOCK) + " |")


def check(cell: Trial, found: Amplification) -> None:
    """In steady state, known well enough to judge by, and within the tolerance."""
    assert abs(found.drift) < 1
    assert found.half_width < 2 / 3 * cell.tolerance * found.predicted
    assert abs(found.error) < cell.tolerance


@pytest.mark.parametrize(
    "cell",
    [
        Trial("greedy", 1.15, 32),
        Trial("greedy", 1.28, 64),
        Trial("fifo", 1.15, 32),
        Trial("random", 1.28, 32),
        Trial("d-choices", 1.28, 32, 2),
        Trial("d-choices", 1.15, 32, 10),
        Trial("d-choices", 1.28, 32, 100),
    ],
    ids=str,
)
def test_uniform_writes(cell: Trial) -> None:
    """Small drives vary more than those of the grid, so that six batches are the least."""
    check(cell, simulated(cell, blocks=1500, measured=max(6 * BATCH, cell.run_length(1500))))


@pytest.mark.parametrize("gc", ["fifo", "greedy"])
def test_skewed_writes(gc: str) -> None:
    cell = Trial(gc, 1.28, 32, hot_writes=0.8, hot_data=0.2)
    check(cell, simulated(cell, blocks=1000, warm_up=10, measured=12))


@pytest.mark.deep
@pytest.mark.parametrize("pages_per_block", PAGES_PER_BLOCK)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("gc", "choices"), POLICIES)
def test_uniform_writes_over_the_grid(gc: str, choices: int, alpha: float, pages_per_block: int, table: Table) -> None:
    cell = Trial(gc, alpha, pages_per_block, choices)
    table[cell] = simulated(cell, BLOCKS[pages_per_block])
    check(cell, table[cell])


@pytest.mark.deep
@pytest.mark.parametrize("alpha", ALPHAS)
def test_one_choice(alpha: float, table: Table) -> None:
    """It does what random does, see below, but half the tolerance takes four times the writes: at 64 pages only."""
    cell = Trial("d-choices", alpha, 64)
    table[cell] = simulated(cell, BLOCKS[64])
    check(cell, table[cell])


@pytest.mark.deep
@pytest.mark.parametrize("hot", HOT)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("gc", ["fifo", "greedy"])
def test_hot_and_cold_writes(gc: str, alpha: float, hot: tuple[float, float], table: Table) -> None:
    """Cold pages settle slowly, so that the warm-up is longer."""
    cell = Trial(gc, alpha, 64, 1, *hot)
    table[cell] = simulated(cell, blocks=1000, warm_up=20, measured=12)
    check(cell, table[cell])


def test_cost_benefit_lies_between_greedy_and_fifo() -> None:
    """It weighs the gain, which is all that greedy goes by, and the age, which is all of FIFO; no policy beats greedy here."""
    cells = [Trial(gc, 1.28, 32) for gc in ("greedy", "cost-benefit", "fifo")]
    greedy, cost_benefit, fifo = (simulated(cell, blocks=500).mean for cell in cells)
    assert greedy < cost_benefit < fifo


def test_one_choice_is_random() -> None:
    parameters = [drive(gc="random"), drive(gc="d-choices", gc_choices=1)]
    offsets = generator(3, "overwrites").integers(0, parameters[0].logical_pages, 2000) * PAGE
    engines = [SsdEngine(values) for values in parameters]
    one, other = (serve_all(engine, make_requests(WRITE, offsets, PAGE)) for engine in engines)
    assert np.array_equal(one, other)
    assert engines[0].statistics()["programs_gc"] == engines[1].statistics()["programs_gc"] > 0


@pytest.mark.parametrize("apart", [1, 2, 3, 10])
def test_draws_do_not_depend_on_each_other(apart: int) -> None:
    """Pairs of draws fall alike often into all squares of a chessboard: the d blocks of one victim are such draws."""
    squares = np.array([mix_bits(number) * 8 >> 32 for number in range(1, 200_001)])
    counts = np.bincount(squares[:-apart] * 8 + squares[apart:], minlength=64)
    assert 1e-4 < chisquare(counts).pvalue < 1 - 1e-4


def test_write_amplification_counts_moves() -> None:
    parameters = drive()
    engine = SsdEngine(parameters)
    offsets = generator(2, "overwrites").integers(0, parameters.logical_pages, 2000) * PAGE
    serve_all(engine, make_requests(WRITE, offsets, PAGE))
    numbers = engine.statistics()
    assert numbers["programs_gc"] > 0
    assert numbers["flash_programs"] == 2000 + numbers["programs_gc"]
    assert numbers["write_amplification"] == pytest.approx(1 + numbers["programs_gc"] / 2000)
    assert np.isclose(numbers["block_erases"]["mean"] * parameters.blocks_per_plane * parameters.pools, numbers["flash_erases"])
