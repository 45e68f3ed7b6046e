"""The SLC cache: three levels of sustained writes and where they change, folding while idle, wear apart, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import FLUSH, WRITE, make_requests
from flashsim.core.units import SECONDS
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.lab.drive import LabDrive
from flashsim.ssd.precondition import Precondition, precondition
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.flash_array import OWN_SLC_BLOCK
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, serve_all
from tests.cases import with_each

SLC, TLC, ERASE, READ, CHANNEL = 200, 1000, 1500, 50, 10
#: Two dies whose cells take far longer than anything else, 24 pages a block, so 8 with one bit a cell.
CACHED: dict[str, Any] = {
    "cell": "tlc", "pages_per_block": 24, "blocks_per_plane": 40, "capacity": 1200 * PAGE, "gc_reserve": 3, "program": TLC, "read": READ,
    "erase": ERASE, "read_latency": 100, "write_latency": 1050, "slc_program": SLC, "queue_depth": 32,
}  # fmt: skip


def times_a_page(model: SsdEngine, first: int, pages: int) -> np.ndarray[Any, Any]:
    """Write pages in order; when each was acknowledged, ns since the first."""
    requests = make_requests(WRITE, (first + np.arange(pages)) * PAGE, PAGE)
    model.submit(requests, one_command_each(requests), model.now)
    completed = np.sort(model.advance(every=True)["completed"])
    return np.asarray(completed - completed[0])


def slope(times: np.ndarray[Any, Any], first: int, end: int) -> float:
    """Time between two acknowledgements."""
    return float(times[end] - times[first]) / (end - first)


def test_static_cache_falls_to_direct_writes_and_then_to_collection() -> None:
    """Its bytes long, a program with one bit a cell on two dies; then one with all bits; and on a full drive collection besides."""
    model = SsdEngine(drive(**CACHED, slc_cache=128 * PAGE))
    assert model.parameters.slc_blocks == 8
    times = times_a_page(model, 0, 600)
    assert slope(times, 10, 120) == pytest.approx((SLC + CHANNEL) / 2, rel=0.02)
    assert slope(times, 140, 590) == pytest.approx((TLC + CHANNEL) / 2, rel=0.02)
    numbers = model.statistics()
    assert numbers["slc_programs"] == 128 and numbers["programs_host"] == 600 and numbers["erases_fold"] == 0
    full = SsdEngine(model.parameters)
    precondition(full.state, Precondition("random"))
    random = np.random.default_rng(1).integers(0, 1200, 2000)
    requests = make_requests(WRITE, random * PAGE, PAGE)
    full.submit(requests, one_command_each(requests), 0)
    times = np.sort(full.advance(every=True)["completed"])
    assert slope(times, 10, 120) < slope(times, 140, 200) < 0.8 * slope(times, 1500, 1990)
    check_invariants(full)


@pytest.mark.parametrize("when_full", ["direct", "fold"])
def test_dynamic_cache_ends_where_free_blocks_do(when_full: str) -> None:
    """All blocks but the reserve and one are filled with one bit a cell; then each that is emptied pays for what follows."""
    model = SsdEngine(drive(**CACHED, slc_cache=576 * PAGE, slc_mode="dynamic", slc_full=when_full))
    cliff = 2 * 8 * (40 - 3 - 1)
    times = times_a_page(model, 0, 1190)
    assert slope(times, 10, cliff - 20) == pytest.approx((SLC + CHANNEL) / 2, rel=0.02)
    folding = READ + TLC + 2 * CHANNEL + ERASE / 8  # of a page that moves
    # a block folded makes room for two thirds of a block of direct writes; one of the cache takes the room that one and a half give
    expected = {"direct": (TLC + CHANNEL + folding / 2) / 2, "fold": (SLC + CHANNEL + 1.5 * folding) / 2}[when_full]
    assert slope(times, cliff + 40, cliff + 240) == pytest.approx(expected, rel=0.1)
    numbers = model.statistics()
    assert numbers["programs_fold"] > 0 and numbers["erases_fold"] > 0 and numbers["slc_programs"] >= cliff
    check_invariants(model)


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_an_idle_drive_folds_its_cache(mode: str) -> None:
    """Not before `slc_idle` has passed, and not if the clock stops with the last write; then the cache is as fast as before."""
    model = SsdEngine(drive(**CACHED, slc_cache=128 * PAGE, slc_mode=mode, slc_idle=5000))
    first = times_a_page(model, 0, 128)
    ended = model.now
    assert model.next_event == ended + 5000 and len(model.advance()) == 0 and model.now == ended
    model.advance(ended + 4999)
    assert model.statistics()["programs_fold"] == 0
    model.advance(ended + 1_000_000)
    numbers = model.statistics()
    assert numbers["programs_fold"] == 128 and numbers["erases_fold"] == 16 and not model.state.pools.slc_blocks.any()
    assert np.array_equal(times_a_page(model, 200, 128), first)
    check_invariants(model)


def test_a_command_puts_folding_off() -> None:
    model = SsdEngine(drive(**CACHED, slc_cache=128 * PAGE, slc_idle=5000))
    times_a_page(model, 0, 128)
    for _ in range(20):
        model.advance(model.now + 3000)
        times_a_page(model, 5, 1)
    assert model.statistics()["programs_fold"] == 0


@pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
def test_a_flush_leaves_a_page_of_the_cache_empty_and_no_word_line(model: type[SsdEngine | SsdSpecification]) -> None:
    """One unit of four is written to each of two flash pages, each in the time of one; then three pages at once, in three times that."""
    grouped = {"one_shot": True, "mapping_unit": PAGE // 4, "write_buffer": 16 * PAGE, "write_buffer_threshold": 1.0, "channels": 1}
    device = model(drive(**CACHED | grouped | {"capacity": 250 * PAGE, "slc_cache": 128 * PAGE}))
    for units, programs, padded, cells in ((1, 4, 3, SLC), (1, 8, 6, 2 * SLC), (12, 20, 6, 5 * SLC)):
        serve_all(device, make_requests([WRITE, FLUSH], [0, 0], [units * PAGE // 4, 0], serial=True), device.now)
        numbers = device.statistics()
        assert (numbers["slc_programs"], numbers["padded_programs"]) == (programs, padded)
        transfers = (programs - padded) * (CHANNEL // 4 + 1)
        assert cells < numbers["die_busy_ns"][0] <= cells + transfers
    check_invariants(device)


def test_blocks_that_are_kept_wear_apart() -> None:
    model = SsdEngine(drive(**CACHED, slc_cache=128 * PAGE, slc_idle=100))
    for turn in range(20):
        times_a_page(model, 100 * turn % 1000, 128)
        model.advance(model.now + SECONDS)
    numbers, own = model.statistics(), model.state.blocks.state == OWN_SLC_BLOCK
    assert own.sum() == 16 and numbers["slc_block_erases"] == {"min": 20, "max": 20, "mean": 20.0}
    assert numbers["block_erases"]["max"] < 20 and numbers["erases_fold"] == 320
    check_invariants(model)


def test_a_preconditioned_drive_has_worn_blocks_in_its_cache_too() -> None:
    model = SsdEngine(drive(**CACHED, slc_cache=128 * PAGE))
    precondition(model.state, Precondition("sequential", erases=100.0))
    numbers = model.statistics()
    assert numbers["slc_block_erases"]["min"] == numbers["block_erases"]["min"] == 100


@with_each(
    ("changes", "message"),
    [
        ({"cell": "none"}, "slc_cache: cell 'none' has no several bits"),
        ({"slc_cache": 2000 * PAGE}, "slc_cache: .* it takes 125 of a plane, which has 36 outside its reserve"),
        ({"slc_cache": 2000 * PAGE, "slc_mode": "dynamic"}, "slc_cache: .* it takes 125 of a plane"),
        ({"slc_cache": 500 * PAGE}, "capacity: "),
        ({"gc_pool": "shared"}, "slc_cache: not supported with gc_pool 'shared'"),
        ({"gc_slicing": True, "gc_reserve": 4}, "slc_cache: not supported with gc_slicing"),
        ({"gc_reserve": 2}, "gc_reserve: 2, .* and an slc_cache it must be at least 3"),
        ({"ftl": "dftl", "map_cache": 1024}, "slc_cache: ftl 'dftl' has none"),
        ({"slc_cache": 0, "slc_program": 0, "slc_idle": 100}, "slc_idle: 100, but there is no slc_cache"),
        ({"slc_cache": 0}, "slc_program: .* there is no slc_cache"),
        ({"slc_cache": "-1GB"}, "slc_cache: '-1GB', but it must not be negative"),
        ({"read_retry_time": 50}, "read_retry_time: 50, but no page is read once more"),
        ({"slc_mode": "hybrid"}, "slc_mode: .* static"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FlashsimError, match=message) as refusal:
        SsdEngine(drive(**{**CACHED, "slc_cache": 128 * PAGE, **changes}))
    assert "\n" not in str(refusal.value)


def test_a_drive_to_take_apart_shows_its_blocks() -> None:
    lab = LabDrive(200, cell="tlc", pages_per_block=24, gc_reserve=3, slc_cache="64KiB")
    plans = [lab.write(page) for page in range(30)]
    assert all(len(plan) == 1 for plan in plans) and str(lab).count("o") > 2
    numbers = lab.statistics()
    assert numbers["programs_host"] == 30 and (lab.state.blocks.slc > 0).sum() == 2
