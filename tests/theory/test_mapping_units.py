"""Write amplification in mapping units below the flash page, against greedy's formula: what padding takes explains the rest."""

from __future__ import annotations

import pytest

from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.testing.flash_drives import PAGE, drive, serve_all
from models.write_amplification import greedy

BLOCKS, PAGES_PER_BLOCK, ALPHA = 400, 16, 1.15


@pytest.mark.parametrize("units", [2, 4])
def test_uniform_writes_of_units(units: int) -> None:
    """A block in which p of N slots stay empty is one of N - p slots, on a drive that has as much less over-provisioning.

    Blocks are equal in bytes, and each host write is one unit.  Without padding the formula alone would do: here it is 8 % too low with
    two units a flash page and 28 % with four, as a victim's last flash page is a large part of so small a block.
    """
    unit = PAGE // units
    parameters = drive(
        capacity=round(BLOCKS * PAGES_PER_BLOCK / ALPHA) * PAGE, channels=1, blocks_per_plane=BLOCKS + 2, pages_per_block=PAGES_PER_BLOCK,
        gc_reserve=2, mapping_unit=unit, write_buffer=8 * PAGE,
    )  # fmt: skip
    engine, counts = SsdEngine(parameters), []
    engine.load(0, parameters.capacity)
    for batch in range(2):  # the first until the drive is steady
        pages = generator(1, "units", batch).integers(0, parameters.logical_pages, (3 + batch) * parameters.logical_pages)
        serve_all(engine, make_requests(WRITE, pages * unit, unit), engine.now)
        numbers = engine.statistics()
        host = numbers["host_writes"] - numbers["buffer_overwrites"]
        counts.append((host, numbers["flash_programs"], numbers["padded_programs"], numbers["flash_erases"]))
    host, programs, padded, erases = (after - before for before, after in zip(*counts, strict=True))
    slots, empty = parameters.slots_per_block, padded / erases
    alpha = (1 + parameters.effective_overprovisioning) * (1 - empty / slots)
    assert 0 < empty < units
    assert (programs - padded) / host == pytest.approx(greedy(alpha, round(slots - empty)), rel=0.015)
    assert greedy(1 + parameters.effective_overprovisioning, slots) < 0.95 * (programs - padded) / host
