"""Blocks that are bad from the factory or wear out, spares that stand in, and a drive that has none left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import ReadOnlyDeviceError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, TRIM, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import RETIRED_BLOCK, SPARE_BLOCK, count_wear
from flashsim.testing.flash_drives import PAGE, Model, check_invariants, check_wear, drive, serve_all

MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
WORN = "^drive: read-only, as a plane has no spare block left; refused so far: {} write commands; reads go on$"


def short_lived(**changes: Any) -> SsdParameters:
    return drive(
        **{"endurance": 12, "endurance_spread": 0.2, "spare_blocks": 2, "factory_bad_blocks": 1, "blocks_per_plane": 10, **changes}
    )


def versions(model: Model) -> list[int]:
    return [model.version(page) for page in range(model.parameters.logical_pages)]


def worn_out(model: Model) -> list[int]:
    """Write pages in no time until the drive refuses; the version of each page."""
    written = [0] * model.parameters.logical_pages
    with pytest.raises(ReadOnlyDeviceError, match=WORN.format(0)):
        for page in generator(1, "pages").integers(0, model.parameters.logical_pages, 100_000).tolist():
            model.load(page * PAGE, PAGE)
            written[page] = max(written) + 1
    return written


def advanced(model: Model) -> tuple[list[Any], list[str]]:
    """Let everything happen: completions, and what was refused."""
    parts, refusals = [], []
    while True:
        try:
            parts.append(model.advance(every=True))
            return np.concatenate(parts).tolist(), refusals
        except ReadOnlyDeviceError as refusal:
            refusals.append(str(refusal))


def test_bad_blocks_and_limits_are_those_of_the_seed() -> None:
    states = [DriveState(short_lived(seed=seed)) for seed in (1, 1, 2)]
    assert np.array_equal(states[0].blocks, states[1].blocks)
    assert not np.array_equal(states[0].blocks, states[2].blocks)
    for state in states:
        planes = state.blocks.state.reshape(2, 10)
        assert ((planes == RETIRED_BLOCK).sum(axis=1) == 1).all() and ((planes == SPARE_BLOCK).sum(axis=1) == 1).all()
        assert state.statistics()["retired_blocks"] == state.statistics()["spare_blocks"] == 2


def test_limits_have_the_mean_and_spread_that_was_asked_for() -> None:
    limits = DriveState(drive(endurance=1000, endurance_spread=0.1, blocks_per_plane=5000)).blocks.limit
    assert abs(limits.mean() - 1000) < 4 * 100 / np.sqrt(len(limits))
    assert abs(limits.std() - 100) < 4 * 100 / np.sqrt(2 * len(limits))
    assert set(DriveState(drive(endurance=7)).blocks.limit) == {7} and set(DriveState(drive()).blocks.limit) == {0}


@MODELS
def test_a_worn_drive_keeps_what_it_holds(model: type[Model]) -> None:
    device = model(short_lived())
    written = worn_out(device)
    assert versions(device) == written
    numbers, state = device.statistics(), device.state
    assert numbers["read_only"] and numbers["remaining_life"] == 0 and state.pools.spares.min() == 0
    retired = state.blocks.state == RETIRED_BLOCK
    assert np.array_equal(retired & (state.blocks.cycles > 0), (state.blocks.cycles >= state.blocks.limit))
    assert numbers["retired_blocks"] == retired.sum() > 2 * 2
    check_invariants(device)
    serve_all(device, make_requests(READ, np.arange(40) * PAGE, PAGE))
    serve_all(device, make_requests(TRIM, np.arange(5) * PAGE, PAGE), device.now)
    for _ in range(3):  # the power may fail as often as it likes
        assert versions(device) == [0] * 5 + written[5:]
        device.power_cut(device.now + 5)
        check_invariants(device)
    with pytest.raises(ReadOnlyDeviceError, match=WORN.format(0)):
        device.load(0, PAGE)
    assert versions(device) == [0] * 5 + written[5:]


@MODELS
def test_refused_commands_are_counted_one_by_one(model: type[Model]) -> None:
    """They complete, and the next step of the clock says so; reads among them are served."""
    device = model(short_lived())
    written = worn_out(device)
    requests = make_requests([WRITE, READ, WRITE, WRITE, READ], np.array([0, 1, 2, 3, 4]) * PAGE, [PAGE, PAGE, 3 * PAGE, 512, PAGE])
    device.submit(requests, one_command_each(requests), 0)
    completions, refusals = advanced(device)
    assert len(completions) == 5 and device.outstanding == 0
    assert len(refusals) == 1
    assert refusals[0] == WORN.strip("^$").format(3)
    numbers = device.statistics()
    assert (numbers["refused_writes"], numbers["host_writes"], numbers["host_reads"], numbers["flash_programs"]) == (3, 0, 2, 0)
    assert versions(device) == written


@MODELS
def test_a_drive_that_wears_out_in_the_middle_of_a_large_write(model: type[Model]) -> None:
    """The pages before the end are written, the others keep what they held; the command counts as refused, once."""
    parameters = short_lived(spare_blocks=1)
    device = model(parameters)
    requests = make_requests(WRITE, np.zeros(400, np.int64), parameters.capacity, serial=True)
    device.submit(requests, one_command_each(requests), 0)
    completions, refusals = advanced(device)
    assert len(completions) == 400 and device.outstanding == 0
    found = versions(device)
    whole = device.statistics()["host_writes"] - 1
    assert refusals[-1] == WORN.strip("^$").format(400 - whole)
    assert device.statistics()["refused_writes"] == 400 - whole
    newest = max(found)
    cut = newest - whole * 40
    assert 0 < cut < 40
    assert found == [whole * 40 + 1 + page if page < cut else (whole - 1) * 40 + 1 + page for page in range(40)]
    check_invariants(device)


def test_power_cuts_wear_nothing_out() -> None:
    """What recovery erases is counted, but retires no block: a drive that loses power again and again still takes writes."""
    device = SsdEngine(short_lived(endurance=10_000, endurance_spread=0.0))
    device.state.blocks.limit = 3
    for seed in range(60):
        requests = make_requests(WRITE, generator(seed, "pages").integers(0, 40, 4) * PAGE, PAGE)
        device.submit(requests, one_command_each(requests), device.now)
        retired = device.statistics()["retired_blocks"]
        before = device.now
        try:
            device.advance(before + 100, every=True)
        except ReadOnlyDeviceError:
            break
        worn = device.statistics()["retired_blocks"]
        device.power_cut(before + 100)
        assert device.statistics()["retired_blocks"] == worn >= retired
        check_invariants(device)
    assert (device.state.blocks.limit == 3).all()


def test_state_a_flash_page_takes_at_most_24_bytes() -> None:
    """A drive of page mapping with 64 pages a block; the address space is as large as it can be."""
    parameters = drive(pages_per_block=64, blocks_per_plane=2000, capacity=(1998 * 64 * 2 - 1) * PAGE)
    state = DriveState(parameters)
    arrays = [value for value in vars(state).values() if isinstance(value, np.ndarray)]
    assert len(arrays) >= 9
    assert sum(array.nbytes for array in arrays) <= 24 * 2 * 2000 * 64


def test_a_sample_of_wear_does_not_look_at_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks are counted again only when none has as few erases any more, however many samples are taken."""
    counts = []

    def counted(*arrays: Any) -> None:
        counts.append(0)
        count_wear(*arrays)

    engine, random = SsdEngine(drive()), generator(1, "samples")
    monkeypatch.setattr(flash_array, "count_wear", counted)
    for _ in range(200):
        serve_all(engine, make_requests(WRITE, random.integers(0, engine.parameters.logical_pages, 5) * PAGE, PAGE), engine.now)
        check_wear(engine)
    told = engine.statistics()["block_erases"]
    assert told["max"] > 10 and len(counts) <= told["min"] < 50
