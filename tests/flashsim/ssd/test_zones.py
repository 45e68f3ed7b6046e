"""Zones: the standard's state machine, what it refuses, and drives whose zones are erase blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, TRIM, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.zones import ZoneError, Zones, ZoneState, ZoneStatus
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, served
from tests.property.test_ssd_equality import assert_same_state

#: Two dies of two planes; a zone is a block of each, 16 pages.
ZONE = 16 * PAGE
ZONED: dict[str, Any] = {
    "ftl": "block", "gc": "none", "allocation": "static", "planes_per_die": 2, "capacity": 10 * ZONE, "blocks_per_plane": 14,
    "zone_size": ZONE, "zone_open_limit": 3, "zone_active_limit": 5,
}  # fmt: skip

#: The standard's state machine, as a table: what an action makes of each state; None where it must fail.
EMPTY, IMPLICIT, EXPLICIT, CLOSED, FULL = ZoneState
TRANSITIONS: dict[str, dict[ZoneState, ZoneState | None]] = {
    "write": {EMPTY: IMPLICIT, IMPLICIT: IMPLICIT, EXPLICIT: EXPLICIT, CLOSED: IMPLICIT, FULL: None},
    "open": {EMPTY: EXPLICIT, IMPLICIT: EXPLICIT, EXPLICIT: EXPLICIT, CLOSED: EXPLICIT, FULL: None},
    "close": {EMPTY: None, IMPLICIT: CLOSED, EXPLICIT: CLOSED, CLOSED: CLOSED, FULL: None},
    "finish": {EMPTY: FULL, IMPLICIT: FULL, EXPLICIT: FULL, CLOSED: FULL, FULL: FULL},
    "reset": {EMPTY: EMPTY, IMPLICIT: EMPTY, EXPLICIT: EMPTY, CLOSED: EMPTY, FULL: EMPTY},
}
FAILS = {
    "write": ZoneStatus.ZONE_IS_FULL,
    "open": ZoneStatus.INVALID_ZONE_STATE_TRANSITION,
    "close": ZoneStatus.INVALID_ZONE_STATE_TRANSITION,
}


class Standard:
    """What the standard says of zones of a few pages, written for reading: no offsets, one page after the other."""

    def __init__(self, zones: int, pages: int, opened: int, active: int) -> None:
        self.pages, self.limits = pages, (opened, active)
        self.state = dict.fromkeys(range(zones), EMPTY)
        self.written = dict.fromkeys(range(zones), 0)
        self.order: list[int] = []  # of implicit openings

    def having(self, *states: ZoneState) -> list[int]:
        return [zone for zone, state in self.state.items() if state in states]

    def act(self, action: str, zone: int, pages: int = 0, at: int = 0) -> ZoneStatus:
        before, after = self.state[zone], TRANSITIONS[action][self.state[zone]]
        if after is None:
            return FAILS[action]
        if action == "write" and at + pages > self.pages:
            return ZoneStatus.ZONE_BOUNDARY_ERROR
        if action == "write" and at != self.written[zone]:
            return ZoneStatus.ZONE_INVALID_WRITE
        opened, active = self.limits
        if after in (IMPLICIT, EXPLICIT) and before in (EMPTY, CLOSED):
            if before == EMPTY and len(self.having(IMPLICIT, EXPLICIT, CLOSED)) == active:
                return ZoneStatus.TOO_MANY_ACTIVE_ZONES
            if len(self.having(IMPLICIT, EXPLICIT)) == opened:
                if not self.having(IMPLICIT):
                    return ZoneStatus.TOO_MANY_OPEN_ZONES
                self.state[self.order.pop(0)] = CLOSED
        if zone in self.order and after != IMPLICIT:
            self.order.remove(zone)
        if after == IMPLICIT and before != IMPLICIT:
            self.order.append(zone)
        self.state[zone] = after
        self.written[zone] = 0 if action == "reset" else self.written[zone] + pages
        if action == "write" and self.written[zone] == self.pages:
            self.state[zone] = FULL
            self.order = [other for other in self.order if other != zone]
        return ZoneStatus.SUCCESS


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_sequences_follow_the_standard(block: int) -> None:
    """A hundred each: every status, state and write pointer."""
    seen = set()
    for seed in range(100 * block, 100 * block + 100):
        random = generator(seed, "zones")
        opened, active, pages = (int(random.integers(1, 4)), int(random.integers(3, 6)), int(random.integers(2, 7)))
        zones, standard = Zones(8 * pages * PAGE, pages * PAGE, PAGE, opened, active), Standard(8, pages, opened, active)
        for _ in range(60):
            action = str(random.choice(["write", "append", "open", "close", "finish", "reset"], p=[0.35, 0.2, 0.15, 0.15, 0.05, 0.1]))
            zone, count = int(random.integers(8)), int(random.integers(1, 4))
            at = min(standard.written[zone], pages - 1) if random.random() < 0.8 else int(random.integers(pages))
            if action == "write":
                status = zones.write((zone * pages + at) * PAGE, count * PAGE)
                expected = standard.act("write", zone, count, at)
            elif action == "append":
                status, offset = zones.append(zone, count * PAGE)
                at = standard.written[zone]
                expected = standard.act("write", zone, count, at)
                assert offset == (zone * pages + at) * PAGE or expected == ZoneStatus.ZONE_IS_FULL
            else:
                status, expected = getattr(zones, action)(zone), standard.act(action, zone)
            seen.add(status)
            assert status == expected
            assert zones.states == list(standard.state.values())
            written = [zones.pointers[other] // PAGE - other * pages for other in range(8)]
            assert written == list(standard.written.values())
    assert seen == set(ZoneStatus) - {ZoneStatus.INVALID_FIELD}


def in_zones(seed: int, parameters: SsdParameters, count: int) -> Any:
    """Writes at write pointers, reads, and resets; some wait for others; arrivals in multiples of 10 ns, in order."""
    random, zones = generator(seed, "zoned workload"), Zones(parameters.capacity, ZONE, PAGE, 3, 5)
    rows: list[tuple[int, int, int]] = []
    while len(rows) < count:
        zone, pages = int(random.integers(len(zones))), int(random.integers(1, 6))
        kind = int(random.choice([READ, WRITE, TRIM], p=[0.3, 0.65, 0.05]))
        status, offset = zones.append(zone, pages * PAGE) if kind == WRITE else (ZoneStatus.SUCCESS, zone * ZONE)
        if kind == TRIM:
            zones.reset(zone)
        if status == ZoneStatus.SUCCESS:
            rows.append((kind, offset, {READ: pages * PAGE, WRITE: pages * PAGE, TRIM: ZONE}[kind]))
    requests = make_requests(*np.array(rows).T)
    return requests, np.sort(10 * random.integers(0, 20 * count, count))


@pytest.mark.parametrize("seed", range(8))
def test_zones_of_erase_blocks_move_nothing(seed: int) -> None:
    """Engine and specification agree, no page moves, and only what was reset is erased."""
    parameters = drive(**ZONED, queue_depth=8) if seed % 2 else drive(**{**ZONED, "queue_depth": 2, "multi_plane": True})
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    for _ in range(3):
        requests, at = in_zones(seed, parameters, 60)
        ours, theirs = (served(model, requests, at + model.now) for model in (engine, specification))
        assert np.array_equal(ours, theirs)
        for model in (engine, specification):
            resets = make_requests(TRIM, np.arange(10) * ZONE, ZONE)
            served(model, resets, model.now)
        assert_same_state(engine, specification)
        check_invariants(engine)
    numbers = engine.statistics()
    assert numbers["programs_merge"] == 0 and numbers["write_amplification"] == 1 and numbers["erases_merge"] > 0
    assert engine.zones is not None and set(engine.zones.states) == {EMPTY}


def test_a_refused_command_leaves_nothing_behind() -> None:
    model = SsdEngine(drive(**ZONED))
    requests = make_requests(WRITE, [0, 4 * PAGE, ZONE], [4 * PAGE, 4 * PAGE, 17 * PAGE])
    with pytest.raises(ZoneError, match=r"^write of 34816 B at 32768: zone 1, but the drive answers Zone Boundary Error \(B8h\)$"):
        model.submit(requests, one_command_each(requests), 0)
    assert model.zones is not None and model.outstanding == 0 and model.zones.pointers[0] == 0
    served(model, requests[:2])
    with pytest.raises(FlashsimError, match="the device.s clock is already at"):
        model.submit(make_requests(WRITE, 8 * PAGE, PAGE), one_command_each(make_requests(WRITE, 8 * PAGE, PAGE)), model.now - 1)
    assert model.zones.pointers[0] == 8 * PAGE
    for refused, status in (
        (make_requests(WRITE, 4 * PAGE, PAGE), ZoneStatus.ZONE_INVALID_WRITE),
        (make_requests(WRITE, 8 * PAGE, 512), ZoneStatus.INVALID_FIELD),
        (make_requests(TRIM, 0, 4 * PAGE), ZoneStatus.INVALID_FIELD),
    ):
        with pytest.raises(ZoneError) as problem:
            model.submit(refused, one_command_each(refused), model.now)
        assert problem.value.status == status and problem.value.zone == 0
    model.zones.require(model.zones.finish, 0)
    with pytest.raises(ZoneError, match=r"Zone Is Full \(B9h\)"):
        served(model, make_requests(WRITE, 8 * PAGE, PAGE), model.now)
    with pytest.raises(ZoneError, match=r"close: zone 0, but the drive answers Invalid Zone State Transition \(BFh\)"):
        model.zones.require(model.zones.close, 0)
    with pytest.raises(ZoneError, match="open: zone 10, but the drive answers Invalid Field"):
        model.zones.require(model.zones.open, 10)


@pytest.mark.parametrize("kind", [SsdEngine, SsdSpecification])
def test_write_pointers_after_loads_and_power_cuts(kind: Any) -> None:
    """They stand behind what is there, nothing is open, and what is finished stays full; then zones are written on."""
    model = kind(drive(**ZONED))
    model.load(0, ZONE + 4 * PAGE)
    assert model.zones.states[:3] == [FULL, CLOSED, EMPTY] and model.zones.pointers[1] == ZONE + 4 * PAGE
    served(model, make_requests(WRITE, [2 * ZONE, 3 * ZONE], 4 * PAGE), model.now)
    model.zones.finish(2)
    requests = make_requests(WRITE, 3 * ZONE + np.arange(4, 16) * PAGE, PAGE)
    model.submit(requests, one_command_each(requests), model.now)
    model.power_cut(model.now + 200)
    assert model.zones.states[:5] == [FULL, CLOSED, FULL, CLOSED, EMPTY]
    pointer = model.zones.pointers[3]
    assert 3 * ZONE + 4 * PAGE < pointer < 4 * ZONE
    assert all(model.version(page) > 0 for page in range(48, 52))
    served(model, make_requests(WRITE, [pointer, ZONE + 4 * PAGE], PAGE), model.now)
    check_invariants(model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"zone_size": 3 * ZONE}, "zone_size: .* zones must divide the capacity"),
        ({"zone_size": ZONE // 2}, "zone_size: .* with ftl 'block' it must be whole blocks of all planes"),
        ({"zone_open_limit": 6}, "zone_open_limit: 6, but an open zone is active, of which there may be 5"),
        ({"zone_size": 0}, "zone_open_limit: 3, but there are no zones"),
    ],
)
def test_zones_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        drive(**{**ZONED, **changes})


def test_a_compiled_host_loop_is_refused() -> None:
    with pytest.raises(FlashsimError, match="zone_size: a compiled host loop"):
        SsdEngine(drive(**ZONED)).room_for(PAGE)
