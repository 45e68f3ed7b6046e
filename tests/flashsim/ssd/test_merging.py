"""Translation layers that merge blocks: what they refuse, and which merges they make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.request import TRIM, WRITE, make_requests
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl.base import FAMILY
from flashsim.ssd.state.flash_array import DATA_BLOCK, LOG_BLOCK
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, drive_for, serve_all
from tests.cases import with_each

PER_BLOCK = 4  # of the drives here
MERGING = [name for name in FAMILY.names() if not FAMILY.load(name).COLLECTS]


@with_each("name", MERGING)
@with_each(
    ("changes", "message"),
    [
        ({"allocation": "round-robin"}, "allocation: 'round-robin'"),
        ({"allocation": "dynamic"}, "allocation: 'dynamic'"),
        ({"wear": "static"}, "wear: 'static'"),
        ({"gc_pool": "shared"}, "gc_pool: 'shared'"),
        ({"gc_streams": 2, "gc_reserve": 3}, "gc_streams: 2"),
        ({"gc_slicing": True, "gc_reserve": 3}, "gc_slicing"),
        ({"gc_stop": 3}, "gc_stop: 3"),
        ({"gc": "greedy"}, f"gc: 'greedy' does not go with ftl '{'{name}'}', which merges blocks"),
    ],
)
def test_what_they_refuse(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        SsdEngine(replace(drive_for(name, drive()), blocks_per_plane=20, **changes))
    assert message.format(name=name) in str(refusal.value)
    assert f"ftl '{name}'" in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(("name", "least"), [("bast", 1), ("fast", 2)])
def test_too_few_log_blocks(name: str, least: int) -> None:
    with pytest.raises(InvalidParameterError, match=f"log_blocks: {least - 1}, but ftl '{name}' needs at least {least}"):
        SsdEngine(replace(drive_for(name, drive()), log_blocks=least - 1))


@pytest.mark.parametrize("name", MERGING)
def test_one_block_too_few(name: str) -> None:
    parameters = drive_for(name, drive(capacity=36 * PAGE))
    SsdEngine(parameters)
    with pytest.raises(InvalidParameterError, match="capacity: .* takes 5 data blocks of a plane, but .* there are 4"):
        SsdEngine(replace(parameters, blocks_per_plane=parameters.blocks_per_plane - 1))


def logged(name: str, log_blocks: int, written: int = 5) -> SsdEngine:
    """A drive of one plane with five data blocks of four pages, the first of which are written."""
    parameters = drive(
        ftl=name, gc="none", allocation="static", channels=1, capacity=5 * PER_BLOCK * PAGE, log_blocks=log_blocks, blocks_per_plane=10
    )  # fmt: skip
    engine = SsdEngine(parameters)
    engine.load(0, written * PER_BLOCK * PAGE)
    return engine


def costs(engine: SsdEngine, pages: list[int], operation: int = WRITE) -> tuple[int, int]:
    """Moves and erases that the writes of these pages, one after the other, take beside their own programs."""
    before = engine.statistics()
    serve_all(engine, make_requests(operation, np.array(pages) * PAGE, PAGE), engine.now)
    after = engine.statistics()
    check_invariants(engine)
    if operation == WRITE:
        assert after["programs_host"] - before["programs_host"] == len(pages)
    assert after["flash_programs"] == after["programs_host"] + after["programs_merge"]
    assert after["flash_erases"] == after["erases_merge"]
    return after["programs_merge"] - before["programs_merge"], after["flash_erases"] - before["flash_erases"]


def test_merges_of_bast() -> None:
    """Two log blocks; those of blocks 0 and 1 are written, and page 8 of block 2 needs one: that of block 0 has to go."""
    for first, cost in (
        ([0, 1, 2, 3], (0, 1)),  # a switch
        ([0, 1], (2, 1)),  # a partial merge takes in pages 2 and 3
        ([0], (3, 1)),
        ([1], (4, 2)),  # full merges
        ([0, 0], (4, 2)),
        ([0, 2], (4, 2)),
        ([1, 0, 3, 2], (4, 2)),
    ):
        engine = logged("bast", 2)
        assert costs(engine, [*first, 4]) == (0, 0)
        assert costs(engine, [8]) == cost, first
        assert costs(engine, [9, 5]) == (0, 0)  # both have their logs


def test_a_full_log_of_bast_is_merged_when_its_block_is_written() -> None:
    engine = logged("bast", 2)
    assert costs(engine, [3, 2, 1, 0]) == (0, 0)
    assert costs(engine, [2]) == (4, 2)
    assert costs(engine, [2, 2, 2]) == (0, 0)
    assert costs(engine, [2]) == (4, 2)


def test_the_log_of_bast_that_was_written_least_recently_goes() -> None:
    engine = logged("bast", 2)
    assert costs(engine, [0, 1, 4, 2]) == (0, 0)
    assert costs(engine, [8]) == (3, 1)  # block 1: page 4 stays, 5, 6 and 7 move behind it
    assert costs(engine, [3]) == (0, 0)  # block 0 still has its log


def test_merges_of_the_sequential_log_of_fast() -> None:
    for first, then, cost in (
        ([0, 1, 2, 3], 4, (0, 1)),  # a switch when another block starts from page 0
        ([0, 1, 2, 3], 2, (0, 1)),  # or when it is written again
        ([0, 1], 4, (2, 1)),  # partial merges
        ([0], 4, (3, 1)),
        ([0, 1], 3, (2, 1)),  # a page is passed over
        ([0, 1], 0, (2, 1)),
        ([0, 1], 2, (0, 0)),  # goes on
        ([0, 1], 5, (0, 0)),  # a random write to another block
    ):
        engine = logged("fast", 3)
        assert costs(engine, first) == (0, 0)
        assert costs(engine, [then]) == cost, (first, then)


def test_merges_of_the_random_logs_of_fast() -> None:
    """Two of them, eight pages; the ninth reclaims the first, with a full merge for each logical block that has a valid page there."""
    for first, second, cost in (
        ([1, 1, 1, 1], [2, 2, 2, 2], (4, 2)),  # of block 0, with pages from both logs; the old block and the log are erased
        ([1, 1, 1, 1], [1, 1, 1, 1], (0, 1)),  # nothing valid is left
        ([1, 2, 3, 5], [1, 2, 3, 6], (4, 2)),  # of block 1
        ([1, 5, 9, 13], [2, 6, 10, 14], (16, 5)),
    ):
        engine = logged("fast", 3)
        assert costs(engine, [*first, *second]) == (0, 0)
        assert costs(engine, [17]) == cost, (first, second)
    engine = logged("fast", 3)
    assert costs(engine, [1, 1, 1, 1, 2, 2, 2, 2, 17, 18, 19]) == (4, 2)
    assert costs(engine, [18]) == (0, 0)
    assert costs(engine, [18]) == (0, 1)  # the second log, which lost all its pages in the merge


def test_a_reclaimed_log_of_fast_may_hold_pages_of_the_sequential_one() -> None:
    """Page 3 lies in a random log when page 0 opens the sequential one, which takes it in: a partial merge in place of a full one."""
    engine = logged("fast", 3)
    assert costs(engine, [3, 17, 17, 17, 0, 18, 18, 18, 18]) == (0, 0)
    assert costs(engine, [18]) == (3 + 4, 1 + 1 + 1)  # blocks 0 and 4; the log


@pytest.mark.parametrize(("name", "log_blocks"), [("block", 0), ("bast", 2), ("fast", 3)])
def test_pages_that_were_never_written_need_no_log(name: str, log_blocks: int) -> None:
    """In offset order they go to the data block, also when some are passed over."""
    engine = logged(name, log_blocks, written=0)
    assert costs(engine, [0, 4, 2, 5, 3, 7]) == (0, 0)
    assert (engine.state.blocks.state == DATA_BLOCK).sum() == 2
    assert (engine.state.blocks.state == LOG_BLOCK).sum() == 0


@pytest.mark.parametrize(("name", "cost"), [("block", (0, 1)), ("bast", (0, 0)), ("fast", (0, 0))])
def test_a_trimmed_block_has_nothing_to_move(name: str, cost: tuple[int, int]) -> None:
    engine = logged(name, 0 if name == "block" else 2)
    assert costs(engine, [0, 1, 2, 3], TRIM) == (0, 0)
    assert costs(engine, [1]) == cost
    assert [engine.version(page) > 0 for page in range(4)] == [False, True, False, False]


def test_consecutive_pages_lie_on_all_planes() -> None:
    """Superblocks: the planes take pages in turn, in the order of allocation, and a plane's pages of one logical block share a block."""
    for name in MERGING:
        parameters = drive_for(name, drive(channels=2, planes_per_die=2, capacity=32 * PAGE, allocation_order="PCWD"))
        engine = SsdEngine(parameters)
        engine.load(0, parameters.capacity)
        places = engine.state.mapping.astype(int) - 1
        pools = places // (parameters.pages_per_block * parameters.blocks_per_plane)
        assert pools.tolist() == [0, 1, 2, 3] * 8
        assert (places % parameters.pages_per_block).tolist() == (np.arange(32) // 4 % PER_BLOCK).tolist()
        assert len(np.unique(places // parameters.pages_per_block)) == 8
