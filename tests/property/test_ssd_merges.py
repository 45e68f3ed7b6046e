"""Layers that merge blocks: a power cut at every moment of a merge, and blocks that wear out in the midst of one."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.errors import ReadOnlyDeviceError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import WRITE, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl.base import FAMILY
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.flash_array import LOG_BLOCK
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, drive_for, random_drive, serve_all
from tests.property.test_ssd_equality import assert_same_state
from tests.property.test_ssd_power_cut import allowed_versions, durable_changes

MERGING = [name for name in FAMILY.names() if not FAMILY.load(name).COLLECTS]


def rewrites(seed: int, parameters: SsdParameters, count: int) -> Requests:
    """Writes of one to six pages, and single sectors of some."""
    random = generator(seed, "rewrites")
    pages = random.integers(1, 7, count)
    first = random.integers(0, parameters.logical_pages - pages + 1)
    length = np.where(random.random(count) < 0.2, 512, pages * PAGE)
    return make_requests(WRITE, first * PAGE, length)


@pytest.mark.parametrize("name", MERGING)
@pytest.mark.parametrize(("seed", "planes"), [(1, 1), (2, 2)])
def test_a_cut_at_every_moment(name: str, seed: int, planes: int) -> None:
    """No operation takes less than 20 ns in the cells; afterwards the whole drive is rewritten, page by page."""
    parameters = drive_for(name, drive(channels=1, planes_per_die=planes, capacity=24 * PAGE, blocks_per_plane=20, queue_depth=4))
    requests = rewrites(seed, parameters, 18)
    engine = SsdEngine(parameters)
    engine.load(0, parameters.capacity)
    end = int(serve_all(engine, requests)["completed"].max()) + 500
    assert engine.statistics()["erases_merge"] > 2
    for cut in range(5, end, 20):
        engine = SsdEngine(parameters)
        engine.load(0, parameters.capacity)
        before = np.arange(1, parameters.logical_pages + 1)
        ids = engine.submit(requests, one_command_each(requests), 0)
        done = engine.advance(cut, every=True)["id"] - ids[0]
        engine.power_cut(cut)
        check_invariants(engine)
        allowed = allowed_versions(parameters, requests, before, set(done.tolist()), parameters.logical_pages + 1)
        assert all(engine.version(page) in versions for page, versions in enumerate(allowed)), f"cut at {cut}"
        assert not (engine.state.blocks.state == LOG_BLOCK).any()
        assert (engine.state.pools.free >= parameters.gc_reserve + max(1, parameters.log_blocks)).all()
        if cut % 100 == 5:
            pages = generator(cut, "pages").permutation(parameters.logical_pages)
            serve_all(engine, make_requests(WRITE, pages * PAGE, PAGE), engine.now)
            check_invariants(engine)


@pytest.mark.parametrize("name", MERGING)
@pytest.mark.parametrize("seed", range(10))
def test_a_drive_that_wears_out_keeps_what_it_holds(name: str, seed: int) -> None:
    """The write that uses up the last block is still completed; those after it are refused, also after a power cut."""
    wear, spares = ["none", "dynamic"][seed % 2], seed % 3
    parameters = drive_for(name, drive(capacity=24 * PAGE, blocks_per_plane=20, queue_depth=4, wear=wear, spare_blocks=spares))
    parameters = replace(parameters, endurance=6, endurance_spread=0.3, seed=seed, write_buffer=0, power_protected=False)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    newest, last_id, batch = np.zeros(parameters.logical_pages, np.int64), 0, 0
    while not engine.state.control.read_only:
        batch += 1
        pages = generator(seed, "pages", batch).integers(0, parameters.logical_pages, 12)
        requests = make_requests(WRITE, pages * PAGE, PAGE)
        assert np.array_equal(serve_all(engine, requests, engine.now), serve_all(specification, requests, specification.now))
        taken = engine.statistics()["host_writes"] - last_id
        for page in pages[:taken]:
            last_id += 1
            newest[page] = last_id
    check_invariants(engine)
    assert_same_state(engine, specification)
    assert [engine.version(page) for page in range(parameters.logical_pages)] == newest.tolist()
    assert engine.statistics()["retired_blocks"] > spares
    engine.power_cut(engine.now)
    assert [engine.version(page) for page in range(parameters.logical_pages)] == newest.tolist()
    assert engine.statistics()["read_only"]


@pytest.mark.parametrize("name", MERGING)
@pytest.mark.parametrize("first", range(0, 12, 4))
def test_cuts_while_blocks_wear_out(first: int, name: str) -> None:
    """Blocks are known to be retired before they are empty, and their spares are in use before that."""
    retired = 0
    for seed in range(first, first + 4):
        parameters = drive_for(name, random_drive(seed))
        good, spares = parameters.good_blocks, 3 + seed % 5
        parameters = replace(
            parameters, write_buffer=0, power_protected=False, endurance=5, endurance_spread=0.3, factory_bad_blocks=0,
            spare_blocks=spares, blocks_per_plane=good + spares,
        )  # fmt: skip
        requests = rewrites(seed, parameters, 60) if parameters.logical_pages > 6 else make_requests(WRITE, [0] * 60, PAGE)
        engine = SsdEngine(parameters)
        for cut in range(8):
            before = np.array([engine.version(page) for page in range(parameters.logical_pages)])
            first_id = int(engine.state.control.sequence) + 1
            end = engine.now + int(generator(seed, "cut", cut).integers(0, 10_000))
            ids = engine.submit(requests, one_command_each(requests), engine.now)
            with contextlib.suppress(ReadOnlyDeviceError):
                done = engine.advance(end, every=True)["id"] - ids[0]
            if engine.state.control.read_only:
                break
            engine.power_cut(end)
            check_invariants(engine)
            durable = durable_changes(parameters, requests, set(done.tolist()))
            allowed = allowed_versions(parameters, requests, before, durable, first_id)
            assert all(engine.version(page) in versions for page, versions in enumerate(allowed)), f"seed {seed}, cut {cut}"
            assert not engine.state.control.read_only
        retired += engine.statistics()["retired_blocks"]
    assert retired > 10
