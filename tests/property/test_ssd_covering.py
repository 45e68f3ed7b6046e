"""Every pair of options of the SSD is run, with the same outcome in engine and specification, or refused by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, permutations
from typing import Any

import numpy as np
import pytest
import simpy

from flashsim.core.errors import FlashsimError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import Integers, Requests
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl.base import FAMILY as FTL_FAMILY
from flashsim.ssd.ftl.base import compatible_layer
from flashsim.ssd.gc.base import FAMILY as GC_FAMILY
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.dies import Die
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.specification.parts import Command, Operation
from flashsim.ssd.state.flash_array import BUFFER_PAGE, ERASE_BLOCK
from flashsim.ssd.wear.base import FAMILY as WEAR_FAMILY
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, random_workload, serve_all
from tests.property.covering_array import Pair, Row, all_pairs, covering_array, pairs_of
from tests.property.test_ssd_equality import assert_same_state

SWITCH = {"off": False, "on": True}
RESERVE = 4
#: Two of everything, so that each order of allocation is a different one, and so few blocks that every write may have to make room.
SMALL: dict[str, Any] = {
    "channels": 2, "packages_per_channel": 2, "dies_per_package": 2, "planes_per_die": 2, "capacity": 224 * PAGE, "pages_per_block": 4,
    "gc_reserve": RESERVE, "erase": 300, "queue_depth": 16, "wear_gap": 1,
}  # fmt: skip
#: What layers differ in and no option says: blocks of a plane, of these log blocks, and memory for a part of the map.
ROOM = ({"blocks_per_plane": 10}, {"blocks_per_plane": 13, "log_blocks": 3}, {"blocks_per_plane": 12, "map_cache": 8 * 60})


def levels_of(parameter: str, levels: dict[str, Any] | list[str]) -> dict[str, dict[str, Any]]:
    """The levels of an option that is one parameter."""
    return {level: {parameter: levels[level] if isinstance(levels, dict) else level} for level in levels}


#: What drives need besides that program several pages at once.
GATHERED = {"allocation": "round-robin", "write_buffer": 12 * PAGE}
BUFFER = {"write_buffer": 12 * PAGE, "write_buffer_threshold": 0.5}
INTERRUPTING = {"suspend": "both", "suspend_overhead": 10, "program_step": 10, "erase_step": 50}
#: What is combined: the parameters that each level of an option sets.
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "ftl": levels_of("ftl", FTL_FAMILY.names()),
    "gc": levels_of("gc", [*GC_FAMILY.names(), "none"]),
    "wear": levels_of("wear", WEAR_FAMILY.names()),
    "allocation": levels_of("allocation", ["round-robin", "static", "dynamic"]),
    "allocation_order": levels_of("allocation_order", ["".join(order) for order in permutations("CWDP")]),
    "read_priority": levels_of("read_priority", SWITCH),
    "suspend": {
        "none": {"suspend": "none"},
        "program": {"suspend": "program", "suspend_overhead": 10, "program_step": 10},
        "erase": {"suspend": "erase", "suspend_overhead": 10, "erase_step": 50},
        "both": INTERRUPTING,
        "long": {**INTERRUPTING, "program_long_step": 20, "program_long_share": 0.4, "suspend_stop": 5, "suspend_progress": 15},
    },
    "multi_plane": levels_of("multi_plane", SWITCH),
    "gc_slicing": levels_of("gc_slicing", SWITCH),
    "write_buffer": {
        "none": {"write_buffer": 0},
        "write-back": BUFFER,
        "batches": {**BUFFER, "write_buffer_batch": 8 * PAGE},
        "paced": {**BUFFER, "collection_rate": PAGE * 50_000_000, "collection_debt": 6 * PAGE, "collection_share": 0.6},
        "protected": {**BUFFER, "power_protected": True},
        "write-through": {**BUFFER, "write_buffer_mode": "write-through"},
        "coalescing": {**BUFFER, "write_buffer_mode": "coalescing"},
    },
    "gc_pool": levels_of("gc_pool", ["die", "shared"]),
    "gc_streams": levels_of("gc_streams", {"1": 1, "2": 2}),
    "gc_copyback": levels_of("gc_copyback", SWITCH),
    "gc_stop": levels_of("gc_stop", {"as gc_reserve": 0, "more": RESERVE + 1}),
    "cache_read": levels_of("cache_read", SWITCH),
    "cache_program": levels_of("cache_program", SWITCH),
    "queues": levels_of("queues", {"1": 1, "2": 2}),
    "slots": {
        "none": {},
        "turns": {"command_slots": 6, "command_slot": PAGE},
        "arrival": {"command_slots": 3, "slot_order": "arrival"},
    },
    "submission": {"none": {}, "some": {"read_submission": 20, "write_submission": 30}},
    "link_command": {"none": {}, "some": {"link_read_command": 10, "link_write_command": 30}},
    "bus": {"none": {}, "some": {"bus_rate": PAGE * 10**8 // 2}},
    "cell": {
        "none": {},
        "tlc": {"cell": "tlc", "read_pages": [20, 30, 40], "program_pages": [30, 40, 80]},
        "mlc": {"cell": "mlc", "one_shot": True},
    },
    "wearing": {"off": {}, "on": {"erase_growth": 20_000, "read_retry": 0.2, "read_retry_growth": 10.0, "code_word": 512}},
    "units": levels_of("mapping_unit", {"1": 0, "2": PAGE // 2}),
    "slc_cache": {
        "none": {},
        "static": {"slc_cache": 16 * PAGE, "slc_idle": 50, "slc_program": 10, "blocks_per_plane": 13, "gc_reserve": RESERVE},
        "dynamic": {"slc_cache": 32 * PAGE, "slc_mode": "dynamic", "slc_full": "fold", "slc_read": 10, "blocks_per_plane": 14},
    },
    "continuation": {
        "off": {"continuation_latency": 0, "continuation_limit": 0},
        "on": {"continuation_latency": 20, "continuation_limit": 2 * PAGE},
    },
}
FACTORS = {option: list(levels) for option, levels in OPTIONS.items()}
PARTS = 8
#: What each row is served at least, and at most until all that its options promise has happened.
LEAST_BATCHES, MOST_BATCHES = 2, 60
REQUESTS = 25


@cache
def benign(ftl: str) -> dict[str, Any]:
    """Values with which a translation layer works and which other options go with, as far as they go with the layer."""
    collects = FTL_FAMILY.load(ftl).COLLECTS
    plain = {**SMALL, "ftl": ftl, "gc": "greedy" if collects else "none", "allocation": "static", "read_priority": True}
    return next({**plain, **room} for room in ROOM if is_accepted({**plain, **room}))


def is_accepted(values: dict[str, Any]) -> bool:
    """Whether there is a drive of these values."""
    try:
        compatible_layer(drive(**values))
    except FlashsimError:
        return False
    return True


def drives_with(row: Row) -> Iterator[dict[str, Any]]:
    """The values of drives with some levels, all other options benign, for each translation layer that this leaves."""
    chosen = dict(chain.from_iterable(OPTIONS[option][level].items() for option, level in row.items()))
    for ftl in [row["ftl"]] if "ftl" in row else FACTORS["ftl"]:
        gathered = GATHERED if row.get("units") == "2" or row.get("cell") == "mlc" else {}
        yield {**benign(ftl), **gathered, **chosen}


@cache
def rows() -> list[Row]:
    """The covering array."""
    known: dict[Pair, bool] = {}

    def is_supported(row: Row) -> bool:
        key = frozenset(row.items())
        if key not in known:
            known[key] = any(is_accepted(values) for values in drives_with(row))
        return known[key]

    return covering_array(FACTORS, is_supported)


class WatchedDie(Die):
    """A die that counts what gave way to reads."""

    def _give_way(self) -> simpy.Event:
        assert isinstance(self.drive, WatchedSpecification)
        self.drive.seen["erase" if self.at_work[0].kind == ERASE_BLOCK else "program"] += 1
        return super()._give_way()


class WatchedSpecification(SsdSpecification):
    """A specification that counts what worked together, what a read interrupted, and what went through the buffer."""

    def __init__(self, parameters: SsdParameters) -> None:
        self.seen: Counter[str] = Counter()
        super().__init__(parameters)

    def _power_up(self, now: int) -> None:
        super()._power_up(now)
        self.dies = [WatchedDie(self, number) for number in range(self.parameters.dies)]

    def transfer_of(self, command: Command, kind: int, page: int, sectors: int, part: bool) -> Operation:
        """An operation of a command that needs no die."""
        self.seen["buffered"] += kind == BUFFER_PAGE
        return super().transfer_of(command, kind, page, sectors, part)

    def finish_changes(self, group: list[Operation], leave: Callable[[], None]) -> None:
        """Pages are programmed, or blocks erased."""
        self.seen["groups"] += len(group) > 1
        super().finish_changes(group, leave)


def is_at_work(row: Row, specification: WatchedSpecification) -> dict[str, bool]:
    """Whether what the options of a row promise has happened."""
    numbers, seen, parameters = specification.statistics(), specification.seen, specification.parameters
    interrupted = {"none": (), "program": ("program",), "erase": ("erase",)}.get(row["suspend"], ("program", "erase"))
    sets_apart = row["slc_cache"] == "dynamic"  # so many blocks that hardly two dies fill the same page, or a victim holds any
    return {
        "room is made": numbers["erases_merge" if row["gc"] == "none" else "erases_gc"] > 0,
        "pages move": sets_apart or numbers["programs_merge" if row["gc"] == "none" else "programs_gc"] > 0,
        "cold data move": row["wear"] != "static" or numbers["programs_wear"] > 0,
        "the map is fetched and stored": not parameters.map_cache or min(numbers["reads_map"], numbers["programs_map"]) > 0,
        "planes work together": row["multi_plane"] == "off" or seen["groups"] > 0 or sets_apart,
        "reads interrupt": all(seen[what] > 0 for what in interrupted),
        "reads are tried again": row["wearing"] == "off" or numbers["read_retries"] > 0,
        "pages are buffered": not parameters.write_buffer or seen["buffered"] > 0,
        "the buffer is hit": row["write_buffer"] in ("none", "write-through", "coalescing")
        or min(numbers["buffer_read_hits"], numbers["buffer_overwrites"]) > 0,
        "reads and writes go on": row["continuation"] == "off" or min(numbers["continued_reads"], numbers["continued_writes"]) > 0,
    }


def assert_models_agree(row: Row, seed: int) -> None:
    """Batches that find the drive full, the second cut off by a power cut, until all that the options promise has happened."""
    parameters = drive(**next(values for values in drives_with(row) if is_accepted(values)))
    engine, specification = SsdEngine(parameters), WatchedSpecification(parameters)
    for model in (engine, specification):
        for _ in range(3):
            model.load(0, parameters.capacity)
    batch = 0
    while batch < LEAST_BATCHES or not all(is_at_work(row, specification).values()):
        assert batch < MOST_BATCHES, [what for what, happened in is_at_work(row, specification).items() if not happened]
        requests, at = random_workload(MOST_BATCHES * seed + batch, parameters, REQUESTS)
        at += engine.now
        if batch == 1:
            assert_same_after_a_power_cut(engine, specification, requests, at)
            at += engine.now - at.min()
        assert np.array_equal(serve_all(engine, requests, at), serve_all(specification, requests, at))
        assert_same_state(engine, specification)
        check_invariants(engine)
        batch += 1


def assert_same_after_a_power_cut(engine: SsdEngine, specification: SsdSpecification, requests: Requests, at: Integers) -> None:
    """Power is cut shortly after a third of the requests: completions until then, what is lost, and what is left agree."""
    for model in (engine, specification):
        model.submit(requests, one_command_each(requests), at)
    done = [engine.advance()]
    while sum(map(len, done)) < REQUESTS // 3:
        done.append(engine.advance())
    cut = engine.now + 15
    done.append(engine.advance(cut, every=True))
    assert np.array_equal(np.concatenate(done), specification.advance(cut, every=True))
    lost = engine.power_cut(cut).lost
    assert np.array_equal(lost, specification.power_cut(cut).lost)
    assert len(lost) > 0
    assert_same_state(engine, specification)
    check_invariants(engine)


@pytest.mark.parametrize("part", range(PARTS))
def test_models_agree_on_every_row(part: int) -> None:
    for number, row in enumerate(rows()):
        if number % PARTS == part:
            try:
                assert_models_agree(row, number)
            except AssertionError as error:
                raise AssertionError(f"row {number}: {row}") from error


def test_every_pair_of_options_is_run_or_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    run = set(chain.from_iterable(pairs_of(row) for row in rows()))
    refused = [pair for pair in all_pairs(FACTORS) if pair not in run]
    for pair in refused:
        names = "|".join(parameter for option, level in pair for parameter in OPTIONS[option][level])
        for values in drives_with(dict(pair)):
            for model in (SsdEngine, SsdSpecification):
                with pytest.raises(FlashsimError, match=rf"\b({names})\b"):
                    model(drive(**values))
    with capsys.disabled():
        print(f"\npairs of SSD options: {len(run)} run in {len(rows())} rows, {len(refused)} refused by name")


@pytest.mark.parametrize("ftl", FACTORS["ftl"])
@pytest.mark.parametrize("option", [option for option in FACTORS if option != "ftl"])
def test_no_level_is_silently_another(option: str, ftl: str) -> None:
    """The same work on drives that differ in one option never comes out the same."""
    outcomes: dict[tuple[bytes, str], str] = {}
    for level in FACTORS[option]:
        values = next(drives_with({"ftl": ftl, option: level}))
        if is_accepted(values):
            engine, completions = SsdEngine(drive(**values)), b""
            for _ in range(3):
                engine.load(0, engine.capacity)
            for batch in range(MOST_BATCHES):
                requests, at = random_workload(batch, engine.parameters, REQUESTS)
                completions += serve_all(engine, requests, at + engine.now).tobytes()
            other = outcomes.setdefault((completions, str(engine.statistics())), level)
            assert other == level, f"{option}: {level} comes out as {other}"
    assert outcomes
