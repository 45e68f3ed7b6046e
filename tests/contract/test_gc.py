"""Every garbage collection policy: what it may choose, and that a drive works with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError, MissingFileError, UnknownNameError
from flashsim.core.host_queue import one_command_each
from flashsim.core.kernel import is_compiled
from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.gc.base import FAMILY, VICTIM
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.pools import close_block, join_ring, leave_ring
from flashsim.testing.contracts.drives import GcContract
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, random_workload, serve_all
from tests.contract.members import each_of

MINE = '''
from flashsim.core.kernel import kernel
from flashsim.ssd.state.flash_array import CLOSED_BLOCK


@kernel
def victim(flash, collector):
    """The closed block of the highest number that has an invalid page."""
    pools = flash.control.pools if flash.control.shared else collector + 1
    block = pools * flash.control.blocks_per_pool - 1
    while flash.blocks[block].state != CLOSED_BLOCK or flash.blocks[block].valid == flash.control.pages_per_block:
        block -= 1
    return block
'''


@each_of(FAMILY)
class TestGc(GcContract):
    """Every member."""


def chosen_on(name: str, valid: list[int], changed: list[int], **changes: int) -> list[int]:
    """Twenty victims of a die whose blocks 1, 2, ... were closed in this order, with so many valid pages, and last changed then."""
    state = SsdEngine(drive(gc=name, channels=1, capacity=8 * PAGE, **changes)).state
    for block in np.argsort(changed, kind="stable") + 1:
        state.blocks.valid[block] = valid[block - 1]
        close_block(state.flash, int(block), changed[block - 1])
    for block in range(1, len(valid) + 1):  # in order of closing
        state.pools[0].oldest = leave_ring(state.blocks, state.pools[0].oldest, block)
        state.pools[0].oldest = join_ring(state.blocks, state.pools[0].oldest, block)
    state.control.sequence = 99
    return [int(VICTIM.function(name)(state.flash, 0)) for _ in range(20)]


@pytest.mark.parametrize(
    ("name", "valid", "changed", "expected"),
    [
        ("greedy", [3, 1, 2, 1], [9, 8, 7, 6], 4),  # among equals the one that has been so longest
        ("fifo", [4, 3, 0, 1], [6, 7, 8, 9], 1),  # the oldest, whatever it holds
        ("cost-benefit", [3, 1, 2, 4], [0, 80, 10, 0], 3),  # 1/6 of 100, 3/2 of 20, 1/2 of 90
        ("cost-benefit", [3, 0, 2, 4], [0, 99, 10, 0], 2),  # an empty block costs nothing
        ("cost-benefit", [2, 2, 3, 4], [40, 30, 0, 0], 2),  # the longest unchanged of one count
    ],
)
def test_the_victim_is_the_one_that_the_policy_names(name: str, valid: list[int], changed: list[int], expected: int) -> None:
    assert set(chosen_on(name, valid, changed)) == {expected}


def test_blind_policies_choose_among_all_closed_blocks() -> None:
    assert set(chosen_on("random", [3, 1, 4, 2], [1, 2, 3, 4])) == {1, 2, 3, 4}
    assert set(chosen_on("d-choices", [3, 1, 4, 2], [1, 2, 3, 4], gc_choices=1)) == {1, 2, 3, 4}
    assert set(chosen_on("d-choices", [3, 1, 4, 2], [1, 2, 3, 4], gc_choices=50)) == {2}
    two = chosen_on("d-choices", [3, 1, 4, 2], [1, 2, 3, 4])
    assert set(two) <= {1, 2, 3, 4} and two.count(2) > two.count(1)


@pytest.mark.parametrize("count", [70, pytest.param(150, marks=pytest.mark.deep)])
def test_a_policy_from_a_file(count: int, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    parameters = drive(gc=str(path))
    requests, at = random_workload(7, parameters, count)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    ours = serve_all(engine, requests, at)
    assert np.array_equal(ours, serve_all(specification, requests, at))
    assert not np.array_equal(ours, serve_all(SsdEngine(drive()), requests, at))
    check_invariants(engine)


@pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
def test_a_policy_that_breaks_the_contract(model: type[SsdEngine] | type[SsdSpecification], tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(MINE[: MINE.index("    pools =")] + "    return -1\n")
    parameters = drive(gc=str(path))
    requests = make_requests(WRITE, np.arange(400) % parameters.logical_pages * PAGE, PAGE)
    device = model(parameters)
    device.submit(requests, one_command_each(requests), 0)
    with pytest.raises(FlashsimError, match=r"wrong\.py' chose a block that is not closed"):
        device.advance(every=True)


@pytest.mark.skipif(not is_compiled(), reason="nothing is compiled")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        (MINE.replace("@kernel", ""), "victim of '.*' must be decorated with"),
        (MINE.replace("block -= 1", "block -= nothing"), "mine.py' does not compile .*; run with NUMBA_DISABLE_JIT=1"),
        ("victims = 1", "does not define victim"),
        ("1 +", "cannot be imported"),
        (MINE + "\nROUNDS = 0\n", "ROUNDS of '.*mine.py' is 0, but it must be a whole number from 1 to 64"),
    ],
)
def test_policies_that_cannot_be_used(source: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(FlashsimError, match=message) as refusal:
        SsdEngine(drive(gc=str(path)))
    assert "\n" not in str(refusal.value)


def steps_a_write(name: str, blocks: int, seeds: int) -> float:
    """Steps to victims a page written, on one die without room to spare, while a third of it is overwritten after a fill."""
    steps = writes = 0
    for seed in range(seeds):
        parameters = drive(gc=name, channels=1, pages_per_block=16, blocks_per_plane=blocks + 2, capacity=int(blocks * 16 / 1.07) * PAGE)
        engine = SsdEngine(parameters)
        engine.load(0, parameters.capacity)
        pages = generator(seed, "overwrites").integers(0, parameters.logical_pages, parameters.logical_pages // 3)
        serve_all(engine, make_requests(WRITE, pages * PAGE, PAGE))
        numbers = engine.statistics()
        assert numbers["flash_erases"] > 0
        steps += numbers["victim_steps"]
        writes += len(pages)
    return steps / writes


@pytest.mark.parametrize("name", FAMILY.names())
def test_steps_to_a_victim_do_not_grow_with_the_drive(name: str) -> None:
    """256 and 16,384 blocks a die: 1 and 64 GiB with blocks of 4 MiB."""
    assert steps_a_write(name, 16_384, 1) <= 1.05 * steps_a_write(name, 256, 16)


@pytest.mark.parametrize("count", [70, pytest.param(150, marks=pytest.mark.deep)])
def test_a_policy_that_only_finds_wholly_valid_blocks(count: int, tmp_path: Path) -> None:
    """With ROUNDS it is asked again, and at last the emptiest block is taken; the drive works on."""
    path = tmp_path / "blind.py"
    path.write_text(
        MINE.replace("@kernel", "ROUNDS = 3\n\n\n@kernel")
        .replace("blocks[block].valid == flash.control.pages_per_block:", "blocks[block].valid != flash.control.pages_per_block:")
        .replace(
            "        block -= 1",
            "        block -= 1\n        if block < collector * flash.control.blocks_per_pool:"
            "\n            return flash.pools[collector].oldest",
        )
    )
    parameters = drive(gc=str(path))
    requests, at = random_workload(7, parameters, count)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    assert np.array_equal(serve_all(engine, requests, at), serve_all(specification, requests, at))
    moves, erases = (engine.statistics()[name] for name in ("programs_gc", "flash_erases"))
    greedy = SsdEngine(drive())
    serve_all(greedy, requests, at)
    assert moves > greedy.statistics()["programs_gc"] and erases > greedy.statistics()["flash_erases"]
    check_invariants(engine)


def test_unknown_policies() -> None:
    with pytest.raises(UnknownNameError, match="did you mean greedy"):
        SsdEngine(drive(gc="gready"))
    with pytest.raises(MissingFileError):
        SsdEngine(drive(gc="nowhere/mine.py"))
