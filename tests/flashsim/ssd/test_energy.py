"""Energy of runs: the sum of what was done, and presets whose parts add up to the power that is cited for the whole drive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_queue import one_command_each
from flashsim.core.parameters import build, describe
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.units import SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.ssd.energy import EnergyFigures, energy_of, in_joules
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.testing.flash_drives import PAGE, drive
from tests.cases import with_each

FIGURES = build(
    EnergyFigures,
    {
        "page_read": "3pJ",
        "page_program": "50pJ",
        "block_erase": "700pJ",
        "channel_byte": "11pJ/B",
        "controller": 13,
        "idle": 17,
        "loaded": 0,
    },
)
GOOD = {name: value for name, value, _ in describe(FIGURES)}
WITH_ENERGY = [name for name in presets.names() if presets.load(name).energy]


def test_what_is_shown_can_be_read_back() -> None:
    assert build(EnergyFigures, GOOD) == FIGURES


@with_each(
    ("name", "value", "bound"),
    [
        ("page_read", "3", "a number with a unit"), ("page_read", -1, "at least 0"), ("channel_byte", "120pJ", "an energy a byte"),
        ("idle", "60", "a number with a unit"), ("idle", "60mJ", "a number with a unit"), ("controller", True, "a number"),
    ],
)  # fmt: skip
def test_a_figure_out_of_bounds_is_named(name: str, value: object, bound: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{name}: .*but .*{bound}"):
        build(EnergyFigures, GOOD | {name: value})


def test_every_operation_is_paid_for() -> None:
    """Ten pages written, four read, one after the other on a fresh drive: each crosses a channel once."""
    parameters = drive()
    engine = SsdEngine(parameters)
    requests = make_requests(np.repeat([WRITE, READ], [10, 4]), np.concatenate([np.arange(10), np.arange(4)]) * PAGE, PAGE, serial=True)
    engine.submit(requests, one_command_each(requests), 0)
    last = int(engine.advance(every=True)["completed"].max())
    spent = energy_of(FIGURES, parameters, engine.statistics(), elapsed=last + 5, active=last)
    assert (spent.programs, spent.reads, spent.erases) == (10 * 50, 4 * 3, 0)
    assert spent.channels == 14 * PAGE * 11
    assert (spent.controller, spent.idle) == (13 * last, 17 * (last + 5))
    total = 10 * 50 + 4 * 3 + 14 * PAGE * 11 + 13 * last + 17 * (last + 5)
    assert in_joules(spent._asdict())["total"] * 1e12 == pytest.approx(total, rel=1e-12)


def test_moves_and_erases_of_garbage_collection_are_paid_for() -> None:
    parameters = drive()
    engine = SsdEngine(parameters)
    pages = np.random.default_rng(1).integers(0, parameters.logical_pages, 600)
    requests = make_requests(WRITE, pages * PAGE, PAGE, serial=True)
    engine.submit(requests, one_command_each(requests), 0)
    engine.advance(every=True)
    told = engine.statistics()
    spent = energy_of(FIGURES, parameters, told, elapsed=0, active=0)
    assert told["programs_gc"] > 0 and told["flash_erases"] > 0
    assert spent.programs == (600 + told["programs_gc"]) * 50
    assert spent.reads == told["programs_gc"] * 3
    assert spent.erases == told["flash_erases"] * 700


TRIPLE: dict[str, Any] = {
    "cell": "tlc", "pages_per_block": 24, "blocks_per_plane": 40, "gc_reserve": 3, "program": 1000, "write_latency": 1050,
    "capacity": 1000 * PAGE,
}  # fmt: skip
LINES: dict[str, Any] = {
    "one_shot": True, "write_buffer": 6 * PAGE, "write_buffer_threshold": 0.0, "read_latency": 2000, "write_latency": 3000,
}  # fmt: skip


@with_each(
    ("changes", "programs", "reads"),
    [
        ({}, 96 * 50, 96 * 3),
        ({"slc_cache": 128 * PAGE, "slc_program": 200}, 96 * 50 // 5, 96 * 3),
        ({"slc_cache": 128 * PAGE}, 96 * 50, 96 * 3),
        ({**LINES}, 96 * 50 // 3, 96 * 3),
        ({**LINES, "slc_cache": 128 * PAGE, "slc_program": 200}, 96 * 50 // 5, 96 * 3),
        ({"read_retry": 1.0}, 96 * 50, 96 * 3 * 2),
        ({"read_retry": 1.0, "read": 20, "read_retry_time": 10}, 96 * 50, 96 * 3 * 3 // 2),
    ],
)
def test_cells_are_paid_for_as_long_as_they_work(changes: dict[str, Any], programs: int, reads: int) -> None:
    """96 pages written and read once: with one bit a cell, a word line at once, and every page read once more."""
    device = Device(Preset("triple", "ssd", "a drive of a test", drive(**TRIPLE | changes), {}))
    for operation in (WRITE, READ):
        device.serve(make_requests(operation, np.arange(96) * PAGE, PAGE, serial=True))
    assert device.preset.flash is not None
    spent = energy_of(FIGURES, device.preset.flash, device.statistics(), elapsed=0, active=0)
    assert (spent.programs, spent.reads) == (programs, reads)


@with_each("name", WITH_ENERGY)
def test_parts_add_up_to_the_power_under_load_that_is_cited(name: str) -> None:
    """Reading or writing in order at the cited rate; the cited power does not always say which of both is meant."""
    preset = presets.load(name)
    figures, page = preset.energy, preset.parameters.page_size
    assert figures is not None
    powers = []
    for rate, each in ((preset.cited.sequential_read, figures.page_read), (preset.cited.sequential_write, figures.page_program)):
        assert rate
        statistics = {"channel_busy_ns": [rate * SECONDS // preset.parameters.channel_rate], "flash_reads": 0, "flash_erases": 0}
        one_second = EnergyFigures(**(vars(figures) | {"page_program": each}))
        spent = energy_of(one_second, preset.parameters, statistics | {"flash_programs": rate // page}, SECONDS, SECONDS)
        powers.append(in_joules(spent._asdict())["total"] * 1000)
    assert min(abs(power / figures.loaded - 1) for power in powers) < 0.01


def test_some_presets_have_energies() -> None:
    assert len(WITH_ENERGY) >= 6
