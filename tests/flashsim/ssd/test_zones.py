"""Zones: the standard's state machine, what it refuses, and drives whose zones are erase blocks."""

from __future__ import annotations

from copy import deepcopy
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
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, serve_all
from tests.cases import with_each
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
    """Writes at write pointers, reads, and resets; arrivals in multiples of 10 ns, in order."""
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
        ours, theirs = (serve_all(model, requests, at + model.now) for model in (engine, specification))
        assert np.array_equal(ours, theirs)
        for model in (engine, specification):
            resets = make_requests(TRIM, np.arange(10) * ZONE, ZONE)
            serve_all(model, resets, model.now)
        assert_same_state(engine, specification)
        check_invariants(engine)
    numbers = engine.statistics()
    assert numbers["programs_merge"] == 0 and numbers["write_amplification"] == 1 and numbers["erases_merge"] > 0
    assert engine.zones is not None and set(engine.zones.states) == {EMPTY}


def check_zones(model: Any) -> None:
    """No page has moved, and just those below write pointers are there."""
    numbers = model.statistics()  # pages that are reset while they are in the buffer are not programmed
    assert numbers["programs_merge"] == 0 and numbers["write_amplification"] <= 1
    assert model.parameters.write_buffer or numbers["write_amplification"] == 1
    for zone, pointer in enumerate(model.zones.pointers):
        held = [model.version(page) > 0 for page in range(16 * zone, 16 * zone + 16)]
        assert held == [place < pointer // PAGE - 16 * zone for place in range(16)]


@pytest.mark.parametrize("seed", range(24))
def test_what_is_accepted_reaches_zones_in_order(seed: int) -> None:
    """Of several queues, arrivals in any order, and requests that wait for others, with earlier ones under way."""
    random = generator(seed, "zones and queues")
    model = SsdEngine(drive(**ZONED, queues=3, queue_depth=int(random.integers(1, 4)), write_buffer=int(random.choice([0, 4])) * PAGE))
    taken = refused = 0
    for _ in range(60):
        count, zones, rows = int(random.integers(1, 7)), deepcopy(model.zones), []
        assert zones is not None
        for _ in range(count):
            zone, kind = int(random.integers(4)), int(random.choice([READ, WRITE, TRIM], p=[0.2, 0.65, 0.15]))
            status, offset = zones.append(zone, PAGE) if kind == WRITE else (ZoneStatus.SUCCESS, zone * ZONE)
            kind = kind if status == ZoneStatus.SUCCESS else TRIM
            if kind == TRIM:
                zones.reset(zone)
            rows.append((kind, offset if kind == WRITE else zone * ZONE, ZONE if kind == TRIM else PAGE))
        requests = make_requests(*np.array(rows).T)
        requests["stream"] = random.integers(3, size=count) if random.random() < 0.7 else 0
        waits = random.random(count) < random.choice([0, 0.5, 1])
        requests["dependency"] = np.where(waits, np.arange(count) - random.integers(1, 3, count), -1).clip(-1)
        requests["think"] = 10 * random.integers(0, 3, count)
        at = model.now + 10 * random.integers(0, 60, count)
        if random.random() < 0.7:  # rows in any order: the first to arrive is the first to be checked
            requests, at = (requests, np.sort(at)) if waits.any() else (requests[np.argsort(at)[np.argsort(at)]], at)
        try:
            model.submit(requests, one_command_each(requests), at)
            taken += 1
        except ZoneError:
            refused += 1
        model.advance(model.now + int(random.integers(200)), every=True)
    model.advance(every=True)
    assert taken > 10 and refused > 10
    model.settle()
    check_zones(model)
    check_invariants(model)


def test_commands_that_may_overtake_others() -> None:
    """A write behind a reset in another queue waits for it, or is refused; rows that arrive in descending order are out of order."""
    parameters = drive(**ZONED, queues=2, queue_depth=1)
    rows = make_requests([WRITE, *[READ] * 9, TRIM, WRITE], 0, [8 * PAGE, *[8 * PAGE] * 9, ZONE, 4 * PAGE])
    rows["stream"][-1] = 1
    model = SsdEngine(parameters)
    with pytest.raises(ZoneError, match="write of 8192 B at 0, which may overtake one that has not ended .*Zone Invalid Write"):
        model.submit(rows, one_command_each(rows), 0)
    rows["dependency"][-1] = len(rows) - 2
    serve_all(model, rows)
    check_zones(model)
    writes, model = make_requests(WRITE, np.arange(16) * PAGE, PAGE), SsdEngine(parameters)
    with pytest.raises(ZoneError, match=r"write of 2048 B at 30720: .*Zone Invalid Write"):
        model.submit(writes, one_command_each(writes), 1000 * np.arange(16)[::-1])
    writes = writes[::-1].copy()
    serve_all(model, writes, 1000 * np.arange(16)[::-1])
    check_zones(model)


def test_a_refused_command_leaves_nothing_behind() -> None:
    model = SsdEngine(drive(**ZONED))
    requests = make_requests(WRITE, [0, 4 * PAGE, ZONE], [4 * PAGE, 4 * PAGE, 17 * PAGE])
    with pytest.raises(ZoneError, match=r"^write of 34816 B at 32768: zone 1, but the drive answers Zone Boundary Error \(B8h\)$"):
        model.submit(requests, one_command_each(requests), 0)
    assert model.zones is not None and model.outstanding == 0 and model.zones.pointers[0] == 0
    serve_all(model, requests[:2])
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
    with pytest.raises(ZoneError, match="write of 512 B at 16384, not in units of 2048 B: zone 0"):
        serve_all(model, make_requests(WRITE, 8 * PAGE, 512), model.now)
    model.zones.require(model.zones.finish, 0)
    with pytest.raises(ZoneError, match=r"Zone Is Full \(B9h\)"):
        serve_all(model, make_requests(WRITE, 8 * PAGE, PAGE), model.now)
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
    serve_all(model, make_requests(WRITE, [2 * ZONE, 3 * ZONE], 4 * PAGE), model.now)
    model.zones.finish(2)
    requests = make_requests(WRITE, 3 * ZONE + np.arange(4, 16) * PAGE, PAGE)
    model.submit(requests, one_command_each(requests), model.now)
    model.power_cut(model.now + 200)
    assert model.zones.states[:5] == [FULL, CLOSED, FULL, CLOSED, EMPTY]
    pointer = model.zones.pointers[3]
    assert 3 * ZONE + 4 * PAGE < pointer < 4 * ZONE
    assert all(model.version(page) > 0 for page in range(48, 52))
    serve_all(model, make_requests(WRITE, [pointer, ZONE + 4 * PAGE], PAGE), model.now)
    check_invariants(model)


@with_each(
    ("changes", "message"),
    [
        ({"zone_size": 3 * ZONE}, "zone_size: .* zones must divide the capacity"),
        ({"zone_size": ZONE // 2}, "zone_size: .* with ftl 'block' it must be whole blocks of all planes"),
        ({"zone_open_limit": 6}, "zone_open_limit: 6, but an open zone is active, of which there may be 5"),
        ({"zone_active_limit": 11}, "zone_active_limit: 11, but the drive has 10 zones"),
        ({"zone_size": 0}, "zone_open_limit: 3, but there are no zones"),
    ],
)
def test_zones_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        drive(**{**ZONED, **changes})


def test_a_compiled_host_loop_is_refused() -> None:
    with pytest.raises(FlashsimError, match="zone_size: a compiled host loop"):
        SsdEngine(drive(**ZONED)).room_for(PAGE)
