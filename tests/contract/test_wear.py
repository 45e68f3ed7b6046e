"""Every wear levelling policy: what it may name, what it evens out, what that costs, and that a drive works with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError, UnknownNameError
from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.wear.base import FAMILY
from flashsim.testing.contracts.drives import WearContract
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, random_workload, serve_all
from tests.contract.members import each_of

MINE = '''
from flashsim.core.kernel import kernel


@kernel
def opens(flash, pool):
    """The block that was freed last."""
    return flash.blocks[flash.pools[pool].first_free].before


@kernel
def levels(flash, collector):
    """The block that was closed first."""
    return flash.pools[collector].oldest
'''

#: How far blocks may drift apart before static wear levelling moves data.
GAP = 8


@each_of(FAMILY)
class TestWear(WearContract):
    """Every member."""


def overwritten(name: str, *, shared: bool = False, blocks: int = 32, rounds: int = 60, **changes: Any) -> SsdEngine:
    """A full drive of which a tenth of the pages takes all writes, `rounds` times the drive's pages of them."""
    parameters = drive(
        wear=name, wear_gap=GAP, channels=2, pages_per_block=8, blocks_per_plane=blocks + 3, gc_pool="shared" if shared else "die",
        capacity=int(2 * blocks * 8 * 0.85) * PAGE, **changes,
    )  # fmt: skip
    engine = SsdEngine(parameters)
    engine.load(0, parameters.capacity)
    overwrite(engine, rounds)
    return engine


def overwrite(engine: SsdEngine, rounds: int) -> None:
    """Write a tenth of the pages at random, `rounds` times the drive's pages of them."""
    logical = engine.parameters.logical_pages
    engine.state.write_pages(generator(1, "hot").integers(0, logical // 10, rounds * logical, np.int32))


def spread(engine: SsdEngine) -> int:
    """The most and the least erases of a block of one pool are so far apart."""
    pools = 1 if engine.parameters.gc_pool == "shared" else engine.parameters.pools
    return int(np.ptp(engine.state.blocks.cycles.reshape(pools, -1), axis=1).max())


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("streams", [1, 2])
def test_hot_and_cold_data_wear_blocks_evenly_only_if_cold_data_move(streams: int, shared: bool) -> None:
    """With dynamic levelling the cold blocks are never erased; with static levelling the spread is of the size of the gap and stays so.

    Cold data that move into a stream of their own rest there.  With one stream hot data follow them into the same block.
    """
    changes = {"gc_streams": streams, "gc_reserve": streams + 1, "shared": shared}
    engines = {name: overwritten(name, **changes) for name in ("none", "dynamic", "static")}
    deviation = {name: engine.state.blocks.cycles.std() for name, engine in engines.items()}
    assert all(engines[name].state.blocks.cycles.min() == 0 for name in ("none", "dynamic"))
    assert deviation["none"] >= deviation["dynamic"] > 5 * deviation["static"]
    for engine in (engines["static"], overwritten("static", rounds=240, **changes)):
        assert spread(engine) <= (4 if streams == 1 else 2) * GAP


@pytest.mark.parametrize("name", FAMILY.names())
def test_what_levelling_moves_is_counted_by_its_cause(name: str) -> None:
    """Pages that move to level wear are programs of that cause, and count in the write amplification."""
    engine = SsdEngine(drive(wear=name, wear_gap=2, blocks_per_plane=16, capacity=80 * PAGE))
    random = generator(3, "hot")
    for _ in range(20):
        serve_all(engine, make_requests(WRITE, random.integers(0, 8, 100) * PAGE, PAGE), engine.now)
        serve_all(engine, make_requests(WRITE, random.integers(0, 80, 2) * PAGE, PAGE), engine.now)
    numbers = engine.statistics()
    assert (numbers["programs_wear"] > 0) == (name == "static") == (numbers["erases_wear"] > 0)
    assert numbers["reads_wear"] == numbers["programs_wear"]
    assert numbers["flash_programs"] == 20 * 102 + numbers["programs_gc"] + numbers["programs_wear"]
    assert numbers["write_amplification"] == numbers["flash_programs"] / (20 * 102)
    assert numbers["block_erases"]["mean"] * 32 == numbers["flash_erases"] == numbers["erases_gc"] + numbers["erases_wear"]


@pytest.mark.parametrize("name", FAMILY.names())
def test_steps_do_not_grow_with_the_drive(name: str) -> None:
    """Blocks and lists looked at a reclaimed block, on drives of 518 and of 4,102 blocks, once garbage collection is at work."""
    steps = []
    for blocks in (256, 2048):
        engine = overwritten(name, blocks=blocks, rounds=1)
        before, erased = engine.statistics()["victim_steps"], engine.state.blocks.cycles.sum()
        overwrite(engine, 3)
        steps.append((engine.statistics()["victim_steps"] - before) / (engine.state.blocks.cycles.sum() - erased))
    assert steps[1] <= 1.05 * steps[0]


def test_spare_and_bad_blocks_do_not_count_in_the_spread() -> None:
    parameters = drive(wear="dynamic", endurance=100, spare_blocks=6, factory_bad_blocks=2, blocks_per_plane=14)
    engine, random = SsdEngine(parameters), generator(5, "overwrites")
    for page in random.integers(0, parameters.logical_pages, 1500).tolist():
        engine.load(page * PAGE, PAGE)
    numbers = engine.statistics()
    assert (numbers["retired_blocks"], numbers["spare_blocks"]) == (2 * 2, 2 * 4)
    assert numbers["block_erases"]["min"] > 0
    assert 0 < numbers["remaining_life"] == 1 - numbers["block_erases"]["mean"] / 100 < 1


@pytest.mark.parametrize("count", [60, pytest.param(150, marks=pytest.mark.deep)])
def test_a_policy_from_a_file(count: int, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    parameters = drive(wear=str(path))
    requests, at = random_workload(7, parameters, count)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    ours = serve_all(engine, requests, at)
    assert np.array_equal(ours, serve_all(specification, requests, at))
    assert engine.statistics()["programs_wear"] > 0
    check_invariants(engine)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("flash.blocks[flash.pools[pool].first_free].before", "-1", r"'.*mine\.py' opened a block that is not free"),
        (
            "flash.blocks[flash.pools[pool].first_free].before",
            "flash.pools[1 - pool].first_free",
            r"'.*mine\.py' opened a block that is not free",
        ),
        ("pools[collector].oldest", "pools[collector].first_free", r"'.*mine\.py' levelled a block that is not closed"),
        ("pools[collector].oldest", "pools[1 - collector].oldest", r"'.*mine\.py' levelled a block that is not closed"),
    ],
)
def test_a_policy_that_breaks_the_contract(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(MINE.replace(old, new))
    parameters: SsdParameters = drive(wear=str(path))
    engine = SsdEngine(parameters)
    with pytest.raises(FlashsimError, match=f"^wear levelling policy: {message}"):
        for _ in range(20):
            engine.load(0, parameters.capacity)


def test_unknown_policies() -> None:
    with pytest.raises(UnknownNameError, match="wear levelling policy: 'statik' is unknown; did you mean static"):
        SsdEngine(drive(wear="statik"))
