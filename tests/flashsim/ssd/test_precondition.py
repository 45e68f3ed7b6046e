"""Preconditioned drives: whole and consistent, as a power cut would leave them, and in the steady state that the formulas name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, ReadOnlyDeviceError, RefusedError, UnknownNameError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.device.device import Device
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl.base import FAMILY as FTL_FAMILY
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.precondition import Precondition, Preconditioned, hot_cold, lay_out, precondition
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.flash_array import CLOSED_BLOCK, RETIRED_BLOCK, SPARE_BLOCK
from flashsim.testing.flash_drives import (
    PAGE,
    TIES,
    Model,
    check_invariants,
    drive,
    drive_for,
    random_drive,
    random_workload,
    ring,
    serve_all,
)
from models.occupancy import occupancy
from models.write_amplification import d_choices, fifo, fifo_hot_cold, greedy, random
from tests.cases import with_each
from tests.flashsim.device.test_parts import few_dies
from tests.tiers import seeds

#: The state of a drive; steps to victims are a count of work, and grow.
ARRAYS = ("control", "pools", "blocks", "mapping", "pages", "spare", "trimmed")


def into(model: Model, how: Precondition) -> Preconditioned:
    """Precondition a drive."""
    return precondition(model.state, how, model.outstanding)


def steady(parameters: SsdParameters, **changes: Any) -> Precondition:
    """A steady state that starts from what the models say of the drive's policy."""
    alpha = 1 + parameters.effective_overprovisioning
    shares = occupancy(parameters.gc, alpha, parameters.slots_per_block, parameters.gc_choices)
    return Precondition("steady", occupancy=shares, **{"longest": 1, **changes})


def large(gc: str, alpha: float, **changes: Any) -> SsdParameters:
    """Two planes of 500 blocks outside the reserve, 64 pages a block."""
    logical = round(2 * 500 * 64 / alpha)
    return drive(capacity=logical * PAGE, pages_per_block=64, blocks_per_plane=502, gc=gc, **changes)


@pytest.mark.parametrize("seed", seeds(0, 8, deep=17))
def test_what_a_power_cut_leaves_is_what_was_there(seed: int) -> None:
    """Small drives of all kinds, used before: consistent in every state, which a power cut does not change, and which works on."""
    parameters = replace(random_drive(seed), endurance=0)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    for how in (
        Precondition("sequential", erases=5, erases_spread=2),
        steady(parameters, seed=seed),
        Precondition("random", 0.8, seed=seed),
        Precondition("empty"),
        steady(parameters, seed=seed + 1),
    ):
        done = [into(model, how) for model in (engine, specification)]
        assert repr(done[0]) == repr(done[1])  # NaN equals NaN
        check_invariants(engine)
        before = [engine.version(page) for page in range(parameters.logical_pages)]
        assert sum(map(bool, before)) == {"empty": 0, "random": round(0.8 * parameters.logical_pages)}.get(
            how.fill, parameters.logical_pages
        )
        for model in (engine, specification):
            model.power_cut(model.now + 10)
        check_invariants(engine)
        assert [engine.version(page) for page in range(parameters.logical_pages)] == before
        requests, at = random_workload(seed, parameters, 15)
        assert np.array_equal(serve_all(engine, requests, at + engine.now), serve_all(specification, requests, at + specification.now))
        for name in ARRAYS:
            assert np.array_equal(getattr(engine.state, name), getattr(specification.state, name)), name


@pytest.mark.parametrize("name", FTL_FAMILY.names())
@pytest.mark.parametrize("seed", range(3))
def test_every_translation_layer(name: str, seed: int) -> None:
    """All can be filled and be steady, which is laid out only where pages may lie anywhere; others are written until they are."""
    parameters = drive_for(name, replace(random_drive(seed), endurance=0))
    engine = SsdEngine(parameters)
    freely = engine.state.layer.PLACES_FREELY
    for how in (Precondition("random", 0.7), steady(parameters), Precondition("sequential", 0.9), Precondition("empty")):
        if how.fill == "steady" and not freely:
            with pytest.raises(RefusedError, match=f"ftl '{name}' does not place pages freely"):
                into(engine, how)
            how = replace(how, occupancy=None)
        done = into(engine, how)
        assert done.steady in (None, True)
        check_invariants(engine)
        before = [engine.version(page) for page in range(parameters.logical_pages)]
        engine.power_cut(engine.now)
        assert [engine.version(page) for page in range(parameters.logical_pages)] == before
        requests, at = random_workload(seed, parameters, 30)
        serve_all(engine, requests, at + engine.now)
        check_invariants(engine)


@with_each("seed", range(20))
def test_a_layout_is_what_a_power_cut_leaves(seed: int) -> None:
    """Before the writes that confirm it: every array, not only the versions."""
    parameters = replace(random_drive(seed), endurance=0)
    engine = SsdEngine(parameters)
    how = steady(parameters)
    assert how.occupancy is not None
    lay_out(engine.state, how.occupancy, generator(seed, "layout"))
    check_invariants(engine)
    before = {name: getattr(engine.state, name).copy() for name in ARRAYS}
    engine.power_cut(0)
    for name in ARRAYS:
        assert np.array_equal(getattr(engine.state, name), before[name]), name


@pytest.mark.parametrize("allocation", ["round-robin", "static", "dynamic"])
def test_pages_lie_where_allocation_puts_them(allocation: str) -> None:
    parameters = large("greedy", 1.2, allocation=allocation)
    state = SsdEngine(parameters).state
    shares = occupancy("greedy", 1 + parameters.effective_overprovisioning, 64)
    lay_out(state, shares, generator(0, "layout"))
    pool = (state.mapping.astype(np.int64) - 1) // (parameters.blocks_per_plane * parameters.pages_per_block)
    assert np.bincount(pool).max() - np.bincount(pool).min() <= 1
    in_place = (pool == np.arange(len(pool)) % 2).mean()
    assert in_place == 1 if allocation == "static" else abs(in_place - 0.5) < 0.02
    for own in state.blocks[: parameters.blocks_per_plane], state.blocks[parameters.blocks_per_plane :]:
        counts = np.bincount(own.valid[own.state == CLOSED_BLOCK], minlength=65)
        assert np.abs(np.cumsum(counts) - 500 * np.cumsum(shares)).max() < 2  # blocks


def test_the_oldest_blocks_of_fifo_are_the_emptiest() -> None:
    parameters = large("fifo", 1.2)
    state = SsdEngine(parameters).state
    lay_out(state, occupancy("fifo", 1 + parameters.effective_overprovisioning, 64), generator(0, "layout"))
    valid = state.blocks.valid[ring(state.pools[0].oldest, state.blocks.after, state.blocks.before)]
    tenths = valid.reshape(10, -1).mean(axis=1)
    assert (np.diff(tenths) > 0).all()
    assert np.diff(valid).min() < 0  # not sorted: the counts of one age vary


PREDICTED = {
    "greedy": lambda alpha: greedy(alpha, 64),
    "fifo": fifo,
    "random": random,
    "d-choices": lambda alpha: d_choices(alpha, 64, 2).write_amplification,
}


@pytest.mark.parametrize("alpha", [1.07, 1.15, 1.28])
@pytest.mark.parametrize("gc", PREDICTED)
def test_the_steady_state_is_that_of_the_formula(gc: str, alpha: float) -> None:
    parameters = large(gc, alpha)
    done = into(SsdEngine(parameters), steady(parameters, longest=16))
    assert done.steady
    assert done.write_amplification == pytest.approx(PREDICTED[gc](1 + parameters.effective_overprovisioning), rel=0.02)


def test_a_steady_state_is_steady_from_the_first_write() -> None:
    """The drive is not run into its steady state: one that was only filled amplifies less at first."""
    parameters = large("greedy", 1.15)
    expected = greedy(1 + parameters.effective_overprovisioning, 64)
    found = {}
    for how in (steady(parameters), Precondition("random")):
        engine = SsdEngine(parameters)
        if how.occupancy is not None:
            lay_out(engine.state, how.occupancy, generator(0, "layout"))
        else:
            into(engine, how)
        pages = generator(1, "overwrites").integers(0, parameters.logical_pages, parameters.logical_pages // 8, np.int32)
        found[how.fill] = engine.state.write_pages(pages) / len(pages)
    assert found["steady"] == pytest.approx(expected, rel=0.02)
    assert found["random"] < 0.7 * expected


def test_other_workloads_settle() -> None:
    parameters = large("fifo", 1.15)
    workload = hot_cold(parameters.logical_pages, 0.8, 0.2)
    done = into(SsdEngine(parameters), steady(parameters, workload=workload, longest=40))
    assert done.steady
    assert done.write_amplification == pytest.approx(fifo_hot_cold(1 + parameters.effective_overprovisioning, 0.8, 0.2), rel=0.02)


def test_the_same_seed_gives_the_same_state_whatever_was_before() -> None:
    parameters = large("d-choices", 1.2)
    fresh, used, other = SsdEngine(parameters), SsdEngine(parameters), SsdEngine(parameters)
    used.load(0, parameters.capacity // 2 // PAGE * PAGE)
    into(used, Precondition("random", seed=3))
    used.state.control.sequence += 1 << 40
    used.state.control.id_base += 1 << 40  # as if write ids had been renumbered
    for engine, seed in ((fresh, 1), (used, 1), (other, 2)):
        into(engine, steady(parameters, seed=seed, erases=0))
    for name in ("mapping", "spare", "blocks", "pools"):
        assert np.array_equal(getattr(fresh.state, name), getattr(used.state, name)), name
    assert not np.array_equal(fresh.state.mapping, other.state.mapping)


def test_aged_blocks() -> None:
    parameters = large("greedy", 1.2, endurance=1000, endurance_spread=0.01, spare_blocks=60)
    engine = SsdEngine(replace(parameters, blocks_per_plane=562))
    into(engine, Precondition("random", erases=950, erases_spread=20))
    blocks = engine.state.blocks
    retired = blocks.state == RETIRED_BLOCK
    assert 0 < retired.sum() < 120
    assert (blocks.erases[retired] == blocks.limit[retired]).all()
    assert (blocks.erases[~retired] < blocks.limit[~retired]).all()
    assert (blocks.state == SPARE_BLOCK).sum() == 120 - retired.sum()
    normal = blocks.erases[~retired & (blocks.erases > 500)]
    assert normal.mean() == pytest.approx(950, abs=3)
    check_invariants(engine)
    with pytest.raises(RefusedError, match="erases: with a mean of 1100"):
        into(engine, Precondition("empty", erases=1100))


@with_each(
    ("changes", "error", "message"),
    [
        ({"fill": "steddy"}, UnknownNameError, "did you mean steady"),
        ({"share": 1.01}, InvalidParameterError, r"share: 1\.01"),
        ({"share": -0.1}, InvalidParameterError, r"share: -0\.1"),
        ({"erases": -1}, InvalidParameterError, "erases: -1"),
        ({"erases": np.nan}, InvalidParameterError, "erases: nan"),
        ({"seed": -1}, InvalidParameterError, "seed: -1"),
        ({"longest": 0}, InvalidParameterError, "longest: 0"),
        ({"fill": "random", "occupancy": np.ones(1)}, InvalidParameterError, "occupancy: given"),
    ],
)
def test_bad_values(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Precondition(**changes)


@with_each(
    ("shares", "message"),
    [
        ([0.5, 0.5], r"shape \(2,\)"),
        ([0, 0, 0.5, 0.4, 0], r"sum to 0\.9"),
        ([0, 0, -0.5, 1.0, 0.5], "shares from -0.5"),
        ([0, 0, np.nan, 1.0, 0], "occupancy"),
        ([0, 1.0, 0, 0, 0], "another over-provisioning"),
        ([[[0, 0, 0, 1.0, 0]]], "shape"),
    ],
)
def test_bad_occupancies(shares: Any, message: str) -> None:
    engine = SsdEngine(drive())
    with pytest.raises(InvalidParameterError, match=message):
        into(engine, Precondition("steady", occupancy=np.array(shares)))


def test_busy_and_worn_drives_and_disks_are_refused() -> None:
    for model in (SsdEngine(drive()), SsdSpecification(drive())):
        requests = make_requests(WRITE, 0, PAGE)
        model.submit(requests, one_command_each(requests), 0)
        with pytest.raises(RefusedError, match="1 requests are outstanding"):
            into(model, Precondition())
        model.advance(every=True)
        assert isinstance(into(model, Precondition()), Preconditioned)
    worn = SsdEngine(drive(endurance=3))
    with pytest.raises(ReadOnlyDeviceError, match="read-only"):
        while True:
            worn.load(0, TIES["capacity"])
    with pytest.raises(ReadOnlyDeviceError, match="read-only"):
        into(worn, Precondition())
    with pytest.raises(RefusedError, match="toshiba-5400-320gb is not a flash drive"):
        Device.open("toshiba-5400-320gb").precondition(Precondition())


def test_dies_of_a_steady_state_do_not_collect_at_the_same_time() -> None:
    """Each is somewhere between two collections, and holds what it did: it has overwritten pages of its own."""
    flash = few_dies("micron-7450-pro-960gb", 8, 20, 66, write_buffer=1 << 20).flash
    assert flash
    engine = SsdEngine(flash)
    how = replace(steady(flash), longest=0)
    precondition(engine.state, how)
    check_invariants(engine)
    free, valid = (engine.state.pools[name][: flash.pools].astype(int) for name in ("free_pages", "pool_valid"))
    assert len(set(free.tolist())) > flash.pools // 2 and free.std() > 0.1 * (free.max() - free.min()) > 0
    assert valid.max() - valid.min() <= 1
