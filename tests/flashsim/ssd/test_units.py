"""Flash pages of several mapping units: times that can be worked out by hand, on both models, and what is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, TRIM, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import ERASE_BLOCK, MOVE_PAGE
from flashsim.testing.flash_drives import PAGE, Model, check_invariants, drive, serve_all

UNIT = PAGE // 4
MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])


def units(**changes: Any) -> SsdParameters:
    """Four units a flash page; each takes 10 ns over a channel, and 10 over the link.  A command costs the controller 10."""
    rates = dict.fromkeys(("channel_rate", "link_read_rate", "link_write_rate"), UNIT * 10**8)
    values = {"mapping_unit": UNIT, "write_buffer": 2 * PAGE, "read_latency": 40, "write_latency": 60, "queue_depth": 1}
    return drive(**{**values, **rates, "capacity": 30 * PAGE, **changes})


def duration(device: Model, operation: int, offset: int, length: int, flags: int = 0) -> int:
    requests = make_requests(operation, offset, length)
    requests["flags"] = flags
    completion = serve_all(device, requests, device.now)[0]
    return int(completion["completed"] - completion["submitted"])


@MODELS
def test_units_of_a_flash_page_are_read_at_once(model: type[Model]) -> None:
    """A read of one costs the controller, the cells, the channel and the link; each of the others a channel's time more."""
    device = model(units())
    device.load(0, 8 * PAGE)
    assert duration(device, READ, 0, UNIT) == 10 + 20 + 10 + 10
    assert duration(device, READ, 4 * PAGE, PAGE) == 10 + 20 + 4 * 10 + 10
    assert (device.statistics()["flash_reads"], device.statistics()["shared_reads"]) == (5, 3)


@MODELS
def test_a_forced_write_of_a_flash_page_is_one_program(model: type[Model]) -> None:
    """Four units over link and channel, one behind the other: no program begins before the last has come."""
    device = model(units())
    assert duration(device, WRITE, 0, PAGE, FORCE_UNIT_ACCESS) == 10 + 4 * 10 + 4 * 10 + 40
    assert duration(device, WRITE, 0, UNIT, FORCE_UNIT_ACCESS) == 10 + 10 + 10 + 40
    numbers = device.statistics()
    assert (numbers["flash_programs"], numbers["padded_programs"], numbers["write_amplification"]) == (8, 3, 8 / 5)


@MODELS
def test_a_forced_write_takes_waiting_units_along(model: type[Model]) -> None:
    device = model(units(queue_depth=8))
    requests = make_requests(WRITE, [0, PAGE, 2 * PAGE], UNIT)
    requests["flags"][2] = FORCE_UNIT_ACCESS
    serve_all(device, requests)
    assert (device.statistics()["flash_programs"], device.statistics()["padded_programs"]) == (4, 1)
    serve_all(device, make_requests(FLUSH, 0, 0), device.now)
    assert device.statistics()["flash_programs"] == 4


@MODELS
def test_a_part_of_a_unit_is_a_read_modify_write(model: type[Model]) -> None:
    device = model(units(mapping_unit=PAGE // 2, read_latency=60, write_latency=80))
    device.load(0, 8 * PAGE)
    serve_all(device, make_requests(WRITE, [0, PAGE], [512, PAGE // 2]), 0)
    serve_all(device, make_requests(FLUSH, 0, 0), device.now)
    numbers = device.statistics()
    assert (numbers["read_modify_write_reads"], numbers["flash_programs"], numbers["padded_programs"]) == (1, 2, 0)


@MODELS
def test_only_whole_units_are_trimmed(model: type[Model]) -> None:
    device = model(units(mapping_unit=PAGE // 2, read_latency=60, write_latency=80))
    device.load(0, 2 * PAGE)
    serve_all(device, make_requests(TRIM, 512, PAGE // 2), 0)
    assert [device.version(unit) for unit in range(4)] == [1, 2, 3, 4]
    serve_all(device, make_requests(TRIM, PAGE // 2, PAGE), device.now)
    assert [device.version(unit) for unit in range(4)] == [1, 0, 0, 4]


@pytest.mark.parametrize("streams", [1, 2])
def test_collection_gathers_units(streams: int) -> None:
    """Nearly as many units move as would alone; each victim leaves at most one flash page half empty, and each change of stream."""
    parameters = units(
        pages_per_block=16, blocks_per_plane=16, capacity=350 * PAGE, gc_streams=streams, gc_reserve=1 + streams, queue_depth=32
    )
    engine = SsdEngine(parameters)
    engine.load(0, parameters.capacity)
    offsets = generator(1, "units").integers(0, parameters.logical_pages, 4000) * UNIT
    serve_all(engine, make_requests(WRITE, offsets, UNIT))
    numbers = engine.statistics()
    assert numbers["programs_gc"] > 4000
    assert 0 < numbers["padded_programs"] <= 3 * (numbers["flash_erases"] + 1)
    assert numbers["shared_reads"] > 0
    check_invariants(engine)


def test_a_loaded_drive_reads_whole_pages() -> None:
    """A load places the units of a flash page side by side, and a drive that is read in order senses each flash page once."""
    device = SsdEngine(units())
    device.load(0, 24 * PAGE)
    serve_all(device, make_requests(READ, np.arange(6) * 4 * PAGE, 4 * PAGE))
    assert device.statistics()["shared_reads"] == 3 * 24


@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize("batch", [0, 4 * PAGE])
def test_slices_are_whole_groups_of_one_victim(streams: int, batch: int) -> None:
    """Between two groups of the host a plane moves whole groups, all from its victim, which is erased when it is empty."""
    state = DriveState(
        units(channels=1, blocks_per_plane=16, pages_per_block=16, capacity=100 * PAGE, gc_slicing=True, gc_reserve=2 + streams,
              gc_streams=streams, write_buffer=8 * PAGE, write_buffer_batch=batch)
    )  # fmt: skip
    group, per_block, slices = state.parameters.group, state.parameters.slots_per_block, 0
    pages = generator(streams, "pages").integers(0, state.parameters.logical_pages, (3000, group))
    for together in pages:
        victim = int(state.pools.victim[0])
        left = int(state.blocks.valid[victim]) if victim >= 0 else -1
        for at, page in enumerate(np.unique(together)):
            state.group[at].page, state.group[at].part, state.group[at].write_id = page, 0, 0
        plan = state.plan_group(len(np.unique(together)))
        state.apply_plan(len(plan))
        sources = [row.source // per_block for row in plan if row.kind == MOVE_PAGE]
        erased = [row.place for row in plan if row.kind == ERASE_BLOCK]
        assert len({victim, *sources, *erased} - {-1, int(state.pools.victim[0])}) <= 1
        slices += 0 < len(sources) < per_block // 4
        assert len(sources) % group == 0 or len(sources) == left or erased
    assert slices > 500
    assert (state.pools.free_pages >= state.control.least_pages).all()


@MODELS
def test_a_batch_leaves_at_once(model: type[Model]) -> None:
    """Nothing is programmed until so many wait; then they all are, by both dies at the same time."""
    device = model(units(write_buffer=8 * PAGE, write_buffer_batch=4 * PAGE, write_buffer_threshold=0, queue_depth=32))
    requests = make_requests(WRITE, np.arange(15) * UNIT, UNIT)
    serve_all(device, requests)
    device.advance(device.now + 10**6)
    assert device.statistics()["flash_programs"] == 0
    serve_all(device, make_requests(WRITE, 15 * UNIT, UNIT), device.now)
    device.advance(device.now + 10**6)
    assert device.statistics()["flash_programs"] == 16
    assert device.statistics()["die_busy_ns"] == [2 * (4 * 10 + 40)] * 2
