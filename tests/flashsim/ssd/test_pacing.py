"""The pace of writes while a drive collects: the rule by hand, laws of both models, and drives that cannot have one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError
from flashsim.core.records import empty_record
from flashsim.core.request import COMMAND, FORCE_UNIT_ACCESS, READ, TRIM, WRITE, Completions, Integers, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import SECONDS
from flashsim.device import presets
from flashsim.device.scaling import miniature
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.specification.shared import acknowledge
from flashsim.ssd.state.flash import BUFFER
from flashsim.ssd.state.pacing import WHOLE
from flashsim.testing.flash_drives import PAGE, Model, drive, drive_for, random_drive, random_workload, serve_all
from tests.cases import with_each

MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
#: The same for long runs.
ENGINE = pytest.mark.parametrize("model", [SsdEngine, pytest.param(SsdSpecification, marks=pytest.mark.deep)])
PAGES = 1800
#: A drive of 140 blocks that collects all the time, whose dies take 1 page in some 60 ns with the moves.
COLLECTING: dict[str, Any] = {
    "capacity": PAGES * PAGE, "pages_per_block": 16, "blocks_per_plane": 70, "channels": 2, "write_buffer": 16 * PAGE, "queue_depth": 4096,
    "allocation": "dynamic", "gc_reserve": 3, "gc_streams": 2, "erase": 100,
}  # fmt: skip


def paced(unit_time: int, debt: int, share: float = 1.0, floor: int = 0, **changes: Any) -> Any:
    """The drive with a pace: nanoseconds of a page, pages of moves that may be owed, share and pages a second besides."""
    pace = {"collection_rate": PAGE * SECONDS // unit_time, "collection_debt": debt * PAGE, "collection_share": share}
    return drive(**{**COLLECTING, **pace, "collection_floor": floor * PAGE, **changes})


def random_pages(count: int, seed: int) -> Integers:
    """Pages at random, but none anew while it waits in the buffer: each by turns of one of 32 parts of the drive."""
    return np.arange(count) % 32 + generator(seed, "pages").integers(0, PAGES // 32, count) * 32


def random_writes(count: int, seed: int = 1) -> Any:
    return make_requests(WRITE, random_pages(count, seed) * PAGE, np.full(count, PAGE))


def collecting(model: Model) -> Model:
    """The drive full, and overwritten so often that victims have the mean that lasts."""
    model.load(0, model.capacity)
    model.state.write_pages(random_pages(10 * PAGES, 0).astype(np.int32))
    return model


def replay(times: list[int], **constants: int) -> list[tuple[int, int, int]]:
    """Debt, pace and the next time after each acknowledgement of a unit, of which a moved one comes to each of the host's."""
    buffer, shown = empty_record(BUFFER), []
    for name, value in constants.items():
        buffer[name] = value
    for now in times:
        acknowledge(buffer, WHOLE // 2, 1, now)
        shown.append((int(buffer.debt), int(buffer.pace), int(buffer.opens)))
    return shown


def test_a_phase_by_hand() -> None:
    """A unit of 10 ns owes 10 more; 20 of them begin a phase, in which each takes 60 ns, half of the host's rate, 40 of which are left."""
    constants = {"unit_time": 10, "debt_limit": 200, "share": 500}
    free = [30 * each for each in range(1, 20)]
    shown = replay([*free, 600, 660, 720, 780, 840, 880, 890], **constants)
    assert shown[:19] == [(10 * number, 0, now) for number, now in enumerate(free, start=1)]
    assert shown[19:] == [(200, 60, 660), (160, 60, 720), (120, 60, 780), (80, 60, 840), (40, 60, 880), (10, 0, 880), (20, 0, 890)]


def test_a_host_that_wants_more_is_held_at_what_the_firmware_keeps_up_with() -> None:
    """Half of a page in 2 ns would be 4 ns, and a page and its move take 20: then nothing changes any more."""
    shown = replay([*range(2, 42, 2), *range(60, 1000, 20)], unit_time=10, debt_limit=200, share=500)
    assert shown[19:] == [(200, 4, now + 20) for now in range(40, 1000, 20)]


def test_a_floor_adds_to_the_share() -> None:
    """A page in 60 ns and one in 30 are one in 20."""
    assert replay([30 * each for each in range(1, 21)], unit_time=2, debt_limit=40, share=500, floor_time=30)[-1] == (40, 20, 620)


def test_in_a_pause_what_is_owed_is_done() -> None:
    """As long as the limit is not long enough, one nanosecond more is."""
    first = [30 * each for each in range(1, 20)]
    assert [replay([*first, 570 + pause], unit_time=10, debt_limit=200, share=500)[-1] for pause in (200, 201)] == [
        (200, 76, 846), (10, 0, 771),
    ]  # fmt: skip


@ENGINE
def test_a_saturated_host_writes_at_a_constant_pace(model: type[Model]) -> None:
    """The rate over all that is programmed for a page of the host, by the counters; gaps are as even as victims are."""
    device = collecting(model(paced(200, 100, 0.75)))
    before = device.statistics()
    done = serve_all(device, random_writes(3000), device.now)
    amplification = (device.statistics()["flash_programs"] - before["flash_programs"]) / 3000
    gaps = np.diff(done["completed"][1000:])
    assert np.mean(gaps) == pytest.approx(200 * amplification, rel=0.02)
    assert np.percentile(gaps, 90) < 1.1 * np.percentile(gaps, 10)


@ENGINE
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_no_more_is_owed_for_data_that_was_trimmed(model: type[Model], kept: float) -> None:
    """Without data a drive that collected writes as fast as one without a pace; with half of them it owes no more than these."""
    trimmed = make_requests([TRIM], [int(kept * PAGES) * PAGE], [PAGES * PAGE - int(kept * PAGES) * PAGE])
    rates = []
    for unit_time in (200, 0):
        device = collecting(model(paced(unit_time, 100) if unit_time else drive(**COLLECTING)))
        serve_all(device, trimmed, device.now)
        done = serve_all(device, random_writes(1500), device.now)
        rates.append(500 / (done["completed"][600] - done["completed"][100]) * SECONDS)
        assert device.state.control.moved_share <= (kept + 1 / 16) * WHOLE
    assert rates[0] == pytest.approx(rates[1], rel=0.01) if kept == 0 else rates[0] > 0.5 * SECONDS / 200


@ENGINE
def test_below_saturation_phases_come_and_go(model: type[Model]) -> None:
    """In a phase writes come at the share of what the host offers, a page in 2,000 ns; it catches up between them."""
    device = collecting(model(paced(600, 100, 0.5)))
    at = device.now + 2000 * np.arange(1, 2001)
    done = serve_all(device, random_writes(2000), at)
    waits = done["completed"] - done["submitted"]
    gaps = np.diff(done["completed"])
    assert 0.1 < np.mean(waits > 1000) < 0.9
    assert np.count_nonzero(np.abs(gaps - 4000) < 1000) > 100
    assert waits[-500:].max() < 100 * 2000  # what is owed bounds a phase, and so the waits


@pytest.mark.parametrize("seed", range(3))
def test_only_acknowledgements_are_paced(seed: int) -> None:
    """Flash does the same at the same times; writes are acknowledged in the order without a pace, and no earlier; reads are not paced."""
    plain, requests = drive(**COLLECTING), random_writes(1500, seed)
    requests["operation"][::7] = READ
    slow = paced(200, 20, 0.3)
    outcomes: list[Completions] = []
    states = []
    for parameters in (plain, slow):
        device = collecting(SsdEngine(parameters))
        outcomes.append(serve_all(device, requests, device.now + 300 * np.arange(len(requests))))
        numbers = device.statistics()
        states.append((numbers, device.state.mapping.copy(), device.state.spare.copy()))
    np.testing.assert_equal(states[0], states[1])
    (first, reads), (second, paced_reads) = (split(outcome, requests["operation"]) for outcome in outcomes)
    assert np.array_equal(reads, paced_reads)
    assert np.array_equal(first["id"], second["id"])
    assert (second["completed"] >= first["completed"]).all()
    assert (second["completed"] > first["completed"] + 1000).mean() > 0.2


def split(done: Completions, operations: Integers) -> tuple[Completions, Completions]:
    """Completions of writes, in their order, and of reads."""
    reads = operations[done["id"]] == READ
    return done[~reads], done[reads]


@MODELS
def test_what_waits_for_the_medium_is_not_paced(model: type[Model]) -> None:
    """A forced write completes when it is programmed, while others wait in a phase; on a protected drive it is a write like any."""
    waits = []
    for protected in (False, True):
        device = collecting(model(paced(2000, 20, 0.3, power_protected=protected)))
        requests = random_writes(300)
        requests["flags"][-1] = FORCE_UNIT_ACCESS
        done = serve_all(device, requests, device.now)
        waits.append(int(np.flatnonzero(done["id"] == 299)[0]))
    assert waits[0] < 150
    assert waits[1] == 299


@MODELS
def test_a_power_cut_ends_a_phase(model: type[Model]) -> None:
    """Writes that wait to be acknowledged are unfinished; afterwards nothing is owed, and writes are at once acknowledged."""
    device = collecting(model(paced(2000, 20, 0.3, power_protected=True)))
    requests = random_writes(300)
    device.submit(requests, np.array([(at, each["offset"], PAGE) for at, each in enumerate(requests)], COMMAND), device.now)
    lost = device.power_cut(device.now + 60_000)
    assert len(lost.lost) > 100
    done = serve_all(device, random_writes(4), device.now)
    assert (done["completed"] - done["submitted"] < 1000).all()


def test_drawn_drives_wait_for_their_pace() -> None:
    """The drives on which engine and specification are compared have phases in which writes wait."""
    unpaced: dict[str, Any] = {"collection_rate": 0, "collection_debt": 0, "collection_floor": 0, "collection_share": 1.0}
    waiting = 0
    for seed in range(80):
        parameters = drive_for("page", random_drive(seed))
        if parameters.collection_rate:
            requests, at = random_workload(seed, parameters, 50)
            slow, plain = (serve_all(SsdEngine(each), requests, at) for each in (parameters, replace(parameters, **unpaced)))
            waiting += not np.array_equal(slow, plain)
    assert waiting >= 5


def test_in_miniature_less_may_be_owed() -> None:
    large = presets.load("micron-7450-pro-960gb")
    small = miniature(large, 0.25).flash
    assert large.flash and small
    assert 4 * small.collection_debt == large.flash.collection_debt and small.collection_rate == large.flash.collection_rate


@with_each(
    ("changes", "message"),
    [
        ({"write_buffer": 0}, "collection_rate: there is no write-back write_buffer"),
        ({"write_buffer_mode": "write-through"}, "collection_rate: there is no write-back write_buffer"),
        ({"collection_rate": 999 * PAGE}, "collection_rate.*a thousand units a second"),
        ({"collection_floor": 999 * PAGE}, "collection_floor.*a thousand units a second"),
        ({"collection_debt": PAGE - 1}, "collection_debt.*from a unit up to"),
        ({"collection_debt": 50_000 << 40}, "collection_debt.*from a unit up to 2,147,483,646 units"),
        ({"collection_share": 0.0}, "collection_share"),
        ({"collection_share": 1.1}, "collection_share"),
        ({"collection_rate": 0}, "collection_debt.*there is no collection_rate"),
        ({"collection_rate": 0, "collection_debt": 0, "collection_share": 0.5}, "collection_share.*there is no collection_rate"),
    ],
)
def test_paces_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FlashsimError, match=message):
        paced(200, 20, **changes)


def test_a_drive_without_victims_has_no_pace() -> None:
    with pytest.raises(FlashsimError, match="collection_rate: nothing is collected"):
        replace(paced(200, 20), gc="none")
