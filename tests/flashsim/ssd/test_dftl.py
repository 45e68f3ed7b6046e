"""Demand-based page mapping: what memory and translation pages know is the map, and what that costs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import READ, TRIM, WRITE, Integers, make_requests
from flashsim.core.rng import generator
from flashsim.core.spans import HOST, MAP
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl import _stored_map as cache
from flashsim.ssd.ftl import dftl
from flashsim.ssd.ftl._stored_map import STORE_ROWS
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import FETCH_PAGE, MOVE_PAGE, PROGRAM_PAGE, READ_PAGE, STORE_PAGE, lookup
from flashsim.testing.flash_drives import PAGE, TIES, check_invariants, drive, drive_for, random_drive, serve_all
from tests.cases import with_each


@pytest.fixture
def short_translation_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A translation page covers eight pages only, so that tiny drives have many."""
    monkeypatch.setattr(dftl, "STORED_BYTES", PAGE // 8)
    return


def cached(own: Integers) -> dict[int, bool]:
    """The pages whose entries are in memory, the one used longest ago first, and whether they are dirty."""
    found, entry = {}, int(cache.oldest(own))
    while entry:
        found[int(own[cache.entry_field(entry, cache.PAGE)])] = bool(own[cache.entry_field(entry, cache.NEXT_DIRTY)])
        entry = int(own[cache.entry_field(entry, cache.NEWER)])
    return found


@pytest.mark.usefixtures("short_translation_pages")
@pytest.mark.parametrize("seed", range(20))
def test_memory_and_translation_pages_know_the_map(seed: int) -> None:
    """A controller that has nothing but its cache and what it stored finds every page, at every moment; plans keep to their bounds."""
    parameters = drive_for("dftl", replace(random_drive(seed), endurance=0))
    state, random, host_pages = DriveState(parameters), generator(seed, "map"), parameters.logical_pages
    true = np.full(host_pages, -1)
    stored: dict[int, Integers] = {}
    for _ in range(800):
        page, operation = int(random.integers(host_pages)), int(random.choice([READ, WRITE, WRITE, WRITE, TRIM]))
        known, partial = page in cached(state.own), operation == WRITE and bool(random.random() < 0.3)
        number = page // 8
        plan = state.plan_page(operation, page, partial)
        assert len(plan) <= (state.control.plan_rows if operation == WRITE else 2 + STORE_ROWS)
        fetched = [at for at, row in enumerate(plan) if row.kind == FETCH_PAGE and row.logical == host_pages + number and row.cause == MAP]
        assert known or fetched or number not in stored
        if operation == TRIM:
            true[page] = -1
        for row in plan:
            if row.kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE) and row.logical < host_pages:
                true[row.logical] = row.place
            elif row.kind == STORE_PAGE:
                stored[row.logical - host_pages] = true[8 * (row.logical - host_pages) :][:8].copy()
            elif (row.kind == READ_PAGE or (row.kind == FETCH_PAGE and row.cause == HOST)) and not known and number in stored:
                assert row.needs in fetched
        state.apply_plan(len(plan))
        memory = cached(state.own)
        for other in range(host_pages):
            assert lookup(state.mapping, other) == true[other]
            if not memory.get(other, False):
                assert other // 8 not in stored or stored[other // 8][other % 8] == true[other]
                assert other // 8 in stored or other in memory or true[other] < 0


@with_each("seed", range(5))
def test_the_entry_used_longest_ago_leaves(seed: int) -> None:
    """Against an ordered dictionary; runs bring in what follows."""
    random, capacity, covered, pages = generator(seed, "order"), int(generator(seed, "size").integers(1, 40)), 16, 200
    own, naive = cache.empty_cache(capacity, covered, -(-pages // covered), 0, 0), OrderedDict[int, None]()
    last, run = -1, 0
    for _ in range(400):
        page = last + 1 if random.random() < 0.6 and last + 1 < pages else int(random.integers(pages))
        run = run + 1 if page == last + 1 else run if page == last else 0
        last = page
        cache.note_run(own, page)
        assert bool(cache.find(own, page)) == (page in naive)
        if page in naive:
            naive.move_to_end(page)
            cache.leave_order(own, cache.find(own, page))
            cache.make_newest(own, cache.find(own, page))
        else:
            end = min((page // covered + 1) * covered, pages, page + 1 + min(run, capacity // 2))
            for brought in range(page, end):
                if brought not in naive:
                    if len(naive) == capacity:
                        naive.popitem(last=False)
                    naive[brought] = None
            cache.bring_in_run(own, page, pages)
        assert list(cached(own)) == list(naive)


def with_whole_map(parameters: SsdParameters) -> SsdParameters:
    """The drive with as many more blocks as its translation pages have, and its whole map in memory."""
    blocks = parameters.blocks_per_plane + dftl.map_blocks(parameters)
    return replace(parameters, ftl="dftl", map_cache=8 * parameters.logical_pages, blocks_per_plane=blocks)


@with_each("changes", [{}, {"gc_streams": 2, "gc_reserve": 3}, {"gc_slicing": True, "gc_reserve": 3}, {"gc_pool": "shared"}])
def test_with_the_whole_map_in_memory_it_is_page_mapping(changes: dict[str, Any]) -> None:
    parameters = drive(**({"capacity": 60 * PAGE, "blocks_per_plane": 14, "gc": "fifo"} | changes))
    random = generator(1, "whole")
    operations, pages = random.choice([READ, WRITE], 3000), random.integers(0, parameters.logical_pages, 3000)
    results, counters, missed = [], [], 0
    for each in (parameters, with_whole_map(parameters)):
        engine = SsdEngine(each)
        engine.load(0, each.capacity)
        missed = engine.statistics().get("map_cache_misses", 0)
        results.append(serve_all(engine, make_requests(operations, pages * PAGE, PAGE)))
        counters.append(engine.statistics())
        check_invariants(engine)
    assert np.array_equal(results[0], results[1])
    assert counters[1]["map_cache_misses"] == missed > 0  # while it was loaded
    for name in ("reads_map", "programs_map", "erases_map"):
        assert counters[1][name] == 0
    for name in counters[0].keys() - {"block_erases"}:
        assert counters[0][name] == counters[1][name], name
    assert counters[0]["programs_gc"] > 0


def one_die(pages: int, entries: int, **changes: Any) -> SsdParameters:
    """A drive of one die with so many pages, about 7 % over-provisioned, and so many entries in memory."""
    of_map = -(-pages // (PAGE // 4))
    blocks = -(-pages * 107 // 100 // 32) + 3 + 1 + -(-2 * of_map // 32)
    return drive(
        **({"capacity": pages * PAGE, "channels": 1, "pages_per_block": 32, "blocks_per_plane": blocks, "ftl": "dftl"} | changes),
        map_cache=8 * entries,
    )  # fmt: skip


def misses(engine: SsdEngine, operation: int, pages: Integers) -> tuple[int, dict[str, int]]:
    """Misses of one-page requests, and what else they changed in the statistics."""
    before = engine.statistics()
    serve_all(engine, make_requests(operation, pages * PAGE, PAGE), engine.now)
    after = engine.statistics()
    change = {name: after[name] - before[name] for name in after if isinstance(after[name], int)}
    return change["map_cache_misses"], change


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_uniform_reads_miss_what_is_not_cached(share: float) -> None:
    """Which entries are in memory says nothing of the next read, so it misses with probability 1 - share; here within 4 standard errors."""
    pages, reads = 4096, 20000
    engine = SsdEngine(one_die(pages, round(share * pages)))
    engine.load(0, engine.capacity)
    at = generator(2, "reads").integers(0, pages, 2 * reads)
    misses(engine, READ, at[:reads])
    missed, change = misses(engine, READ, at[reads:])
    assert change["map_cache_hits"] + missed == reads
    assert missed == change["reads_map"]  # nothing is dirty after that many reads: a miss takes one fetch
    assert abs(missed / reads - (1 - share)) < 4 * np.sqrt(share * (1 - share) / reads)


@pytest.mark.parametrize("operation", [READ, WRITE])
def test_pages_in_order_miss_once_a_translation_page(operation: int) -> None:
    """And once more for each that is written back meanwhile; at the start as many entries come in as pages came in order, which doubles."""
    pages, entries = 4096, 1200
    engine = SsdEngine(one_die(pages, entries))
    engine.load(0, engine.capacity)
    missed, change = misses(engine, operation, np.arange(pages))
    of_map = pages // (PAGE // 4)
    assert missed <= of_map + change["programs_map"] + np.log2(PAGE // 4) + 1
    assert change["programs_map"] <= of_map


def test_entries_of_one_translation_page_are_written_back_together() -> None:
    """Writes in order: each store cleans a cache full of entries, two translation pages' at most; the paper's batch update."""
    pages, entries = 4096, 256
    engine = SsdEngine(one_die(pages, entries))
    engine.load(0, engine.capacity)
    _, change = misses(engine, WRITE, np.arange(pages))
    assert change["programs_gc"] == 0
    assert pages / entries - 1 <= change["programs_map"] <= 2 * pages / entries + 1


def test_random_writes_share_stores() -> None:
    """An entry that is not used again leaves after W = -N ln(1 - C/N) writes (Che's approximation, for C entries of N pages).

    A translation page is stored when the first entry that was dirtied after its last store leaves, and that came some T / (1 - C/N) writes
    later, for T translation pages.  So T / (W + T / (1 - C/N)) stores a write; without sharing it would be one a miss, 1 - C/N.
    """
    pages, entries, writes = 4096, 512, 40000
    engine = SsdEngine(one_die(pages, entries, blocks_per_plane=1500))  # so large that nothing is collected
    engine.load(0, engine.capacity)
    at = generator(3, "writes").integers(0, pages, writes)
    missed, change = misses(engine, WRITE, at)
    assert change["programs_gc"] == 0
    of_map, left = pages // (PAGE // 4), 1 - entries / pages
    assert missed / writes == pytest.approx(left, abs=4 * np.sqrt(left * (1 - left) / writes))
    assert change["map_stores"] / writes == pytest.approx(of_map / (of_map / left - pages * np.log(left)), rel=0.05)


@pytest.mark.parametrize("operation", [READ, WRITE])
def test_a_missed_entry_takes_a_read_and_a_transfer(operation: int) -> None:
    """On an idle drive the host's read, or its partial write, waits for the cells and the channel once more."""
    pages = 1024
    length = PAGE if operation == READ else 512
    times = []
    for entries in (8, pages):
        engine = SsdEngine(one_die(pages, entries, blocks_per_plane=80))
        engine.load(0, engine.capacity)
        engine.advance(10**6)
        done = serve_all(engine, make_requests(READ, np.array([900 * PAGE]), PAGE), engine.now)  # what was dirty may be written back here
        start = engine.now + 10**6
        done = serve_all(engine, make_requests(operation, np.array([5 * PAGE]), length), start)
        times.append(int(done["completed"][0]) - start)
        stores = engine.statistics()["programs_map"]
        assert (stores > 0) == (entries == 8)
    transfer = TIES["page_size"] * 10**9 // TIES["channel_rate"]
    assert times[0] - times[1] == TIES["read"] + transfer


@with_each(
    ("changes", "message"),
    [
        ({"map_cache": 7}, "map_cache: 7, but 'dftl' holds entries of 8 B"),
        ({"capacity": 40 * PAGE, "map_cache": 64}, "capacity: 81920, but beside the blocks for translation pages the drive holds 61440"),
        ({"capacity": 30 * PAGE, "map_cache": 64, "allocation": "static"}, "capacity: .* with static allocation a plane takes 16 pages"),
        ({"capacity": 20 * PAGE, "map_cache": 64, "gc_stop": 6}, "gc_stop: 6, but beside the blocks for translation pages a plane has 6"),
    ],
)
def test_impossible_drives(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        SsdEngine(drive(ftl="dftl", **changes))


@pytest.mark.usefixtures("short_translation_pages")
@with_each("changes", [{}, {"gc": "random"}, {"gc_pool": "shared"}, {"gc_streams": 2, "gc_reserve": 3}])
def test_the_largest_drive_never_runs_out_of_room(changes: dict[str, Any]) -> None:
    """Filled to the last page that `check` lets pass, with one entry in memory, and overwritten at random."""
    shape = {"blocks_per_plane": 20, "ftl": "dftl", "map_cache": 8} | changes
    pages = 1
    while True:
        try:
            parameters = drive(**shape, capacity=(pages + 1) * PAGE)
            dftl.check(parameters)
        except InvalidParameterError:
            break
        pages += 1
    parameters = drive(**shape, capacity=pages * PAGE)
    engine = SsdEngine(parameters)
    engine.load(0, engine.capacity)
    serve_all(engine, make_requests(WRITE, generator(4, "overwrites").integers(0, pages, 2000) * PAGE, PAGE))
    check_invariants(engine)
    statistics = engine.statistics()
    assert statistics["host_writes"] == 2000
    assert statistics["programs_gc"] > 0
    assert statistics["erases_map"] > 0
