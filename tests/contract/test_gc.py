"""Every garbage collection policy: what it may choose, and that a drive works with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError, MissingFileError, UnknownNameError
from flashsim.core.host import one_command_each
from flashsim.core.kernel import compiled
from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine import SsdEngine
from flashsim.ssd.flash_array import CLOSED_BLOCK, STATE, VALID
from flashsim.ssd.gc.base import FAMILY
from flashsim.ssd.specification import SsdSpecification
from tests.flashsim.ssd.drives import PAGE, check_invariants, drive, random_workload, served

MINE = '''
from flashsim.core.kernel import kernel
from flashsim.ssd.flash_array import CLOSED_BLOCK, STATE, VALID
from flashsim.ssd.geometry import BLOCKS_PER_DIE, PAGES_PER_BLOCK


@kernel
def victim(control, dies, blocks, die):
    """The closed block of the highest number that has an invalid page."""
    block = (die + 1) * control[BLOCKS_PER_DIE] - 1
    while blocks[STATE, block] != CLOSED_BLOCK or blocks[VALID, block] == control[PAGES_PER_BLOCK]:
        block -= 1
    return block
'''


@pytest.mark.parametrize("name", FAMILY.names())
def test_the_victim_is_closed_and_gains_a_page(name: str) -> None:
    """After many overwrites, on every die that has something to gain."""
    parameters = drive(gc=name)
    engine = SsdEngine(parameters)
    random = generator(1, "overwrites")
    for _ in range(20):
        served(engine, make_requests(WRITE, random.integers(0, parameters.logical_pages, 100) * PAGE, PAGE), engine.now)
        state = engine.state
        before = state.blocks.copy()
        for die in range(parameters.dies):
            own = slice(die * parameters.blocks_per_die, (die + 1) * parameters.blocks_per_die)
            if not np.any((before[STATE, own] == CLOSED_BLOCK) & (before[VALID, own] < parameters.pages_per_block)):
                continue
            block = state.victim(state.control, state.dies, state.blocks, die)
            assert own.start <= block < own.stop
            assert state.blocks[STATE, block] == CLOSED_BLOCK
            assert state.blocks[VALID, block] < parameters.pages_per_block
        assert np.array_equal(state.blocks, before)
    check_invariants(engine)


@pytest.mark.parametrize("name", FAMILY.names())
def test_a_drive_works_with_it(name: str) -> None:
    parameters = drive(gc=name)
    requests, at = random_workload(7, parameters, 150)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    assert np.array_equal(served(engine, requests, at), served(specification, requests, at))
    assert engine.statistics()["gc_moves"] > 0
    check_invariants(engine)


def test_a_policy_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    parameters = drive(gc=str(path))
    requests, at = random_workload(7, parameters, 150)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    ours = served(engine, requests, at)
    assert np.array_equal(ours, served(specification, requests, at))
    assert not np.array_equal(ours, served(SsdEngine(drive()), requests, at))
    check_invariants(engine)


@pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
def test_a_policy_that_breaks_the_contract(model: type[SsdEngine] | type[SsdSpecification], tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(MINE[: MINE.index("    block =")] + "    return -1\n")
    parameters = drive(gc=str(path))
    requests = make_requests(WRITE, np.arange(400) % parameters.logical_pages * PAGE, PAGE)
    device = model(parameters)
    device.submit(requests, one_command_each(requests), 0)
    with pytest.raises(FlashsimError, match=r"wrong\.py' chose a block that is not closed"):
        device.advance(every=True)


@pytest.mark.skipif(not compiled(), reason="nothing is compiled")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        (MINE.replace("@kernel", ""), "victim of '.*' must be decorated with"),
        (MINE.replace("block -= 1", "block -= nothing"), "mine.py' does not compile .*; run with NUMBA_DISABLE_JIT=1"),
        ("victims = 1", "does not define victim"),
        ("1 +", "cannot be imported"),
    ],
)
def test_policies_that_cannot_be_used(source: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(FlashsimError, match=message) as refusal:
        SsdEngine(drive(gc=str(path)))
    assert "\n" not in str(refusal.value)


def test_unknown_policies() -> None:
    with pytest.raises(UnknownNameError, match="did you mean greedy"):
        SsdEngine(drive(gc="gready"))
    with pytest.raises(MissingFileError):
        SsdEngine(drive(gc="nowhere/mine.py"))
