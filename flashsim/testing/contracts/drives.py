"""The contracts of what decides in a drive: flash translation layers, garbage collection, wear levelling, and disk schedulers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import RefusedError
from flashsim.core.records import empty_table
from flashsim.core.request import READ, TRIM, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.spans import HOST
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.scheduler import base as scheduler
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl import base as ftl
from flashsim.ssd.gc import base as gc
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import (
    CLOSED_BLOCK,
    ERASE_BLOCK,
    FETCH_PAGE,
    MOVE_PAGE,
    PROGRAM_PAGE,
    READ_PAGE,
    STORE_PAGE,
    ZERO_PAGE,
    lookup,
)
from flashsim.ssd.wear import base as wear
from flashsim.testing import disks
from flashsim.testing.contract import Contract
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, drive_for, random_drive, random_workload, ring, serve_all

__all__ = ["FtlContract", "GcContract", "SchedulerContract", "WearContract"]


class FlashContent:
    """A page model of the flash: what each flash page holds, and the newest version of each logical page."""

    def __init__(self, geometry: SsdParameters) -> None:
        self.geometry = geometry
        self.content: dict[int, tuple[int, int]] = {}  # by flash page: logical page, version
        self.version = dict.fromkeys(range(geometry.logical_pages), 0)

    def carry_out(self, row: Any, page: int, step: int) -> None:
        """One operation of a plan for a page: programs go to erased pages in order, and what is read or moved is there."""
        content, per_block, place = self.content, self.geometry.pages_per_block, int(row.place)
        if row.kind == READ_PAGE or (row.kind == FETCH_PAGE and row.cause == HOST):
            assert content.get(place) == (page, self.version[page]), f"page {page} is read where it is not"
        elif row.kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
            behind = range(place, (place // per_block + 1) * per_block)
            assert not any(each in content for each in behind), f"flash page {place} is programmed twice, or out of order"
            if self.geometry.gc != "none":  # where blocks merge, pages may be passed over
                assert place % per_block == 0 or place - 1 in content, f"flash page {place} is programmed before the one in front of it"
            content[place] = content[row.source] if row.source >= 0 else (row.logical, step)
            assert content[place][0] == row.logical, f"what moves to flash page {place} is not page {row.logical}"
        elif row.kind == ERASE_BLOCK:
            for each in range(place * per_block, (place + 1) * per_block):
                content.pop(each, None)

    def check(self, plan: Any, operation: int, page: int, partial: bool) -> None:
        """Whether a plan has what its operation takes."""
        kinds, known = [row.kind for row in plan], self.version[page] > 0
        fetches = sum(row.kind == FETCH_PAGE and row.cause == HOST for row in plan)
        if operation == WRITE:
            assert kinds.count(PROGRAM_PAGE) == 1, f"a write programs {kinds.count(PROGRAM_PAGE)} pages"
            assert fetches == (partial and known), "a page is fetched for a partial write of a page that is there, and for no other"
        elif operation == TRIM:
            assert not {PROGRAM_PAGE, READ_PAGE, ZERO_PAGE} & set(kinds), "a trim reads or programs"
        else:
            assert [kind for kind in kinds if kind in (READ_PAGE, ZERO_PAGE)] == [READ_PAGE if known else ZERO_PAGE], (
                "a read reads one page"
            )


def check_drive(parameters: SsdParameters, seed: int, count: int) -> SsdEngine:
    """Engine and specification agree on every time of a workload, and the map stays whole."""
    requests, at = random_workload(seed, parameters, count)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    assert np.array_equal(serve_all(engine, requests, at), serve_all(specification, requests, at)), "engine and specification differ"
    check_invariants(engine)
    return engine


class FtlContract(Contract):
    """Properties of a flash translation layer (`flashsim.ssd.ftl.base`)."""

    FAMILY, STEPWISE = ftl.FAMILY, True

    def test_plans_follow_the_rules_of_flash_and_lose_nothing(self) -> None:
        """On five drives of random geometry: programs to erased pages in order, and every page's newest version where the map says."""
        for seed in range(5):
            geometry = drive_for(self.name, replace(random_drive(seed), endurance=0))
            state, flash, random, erases = DriveState(geometry), FlashContent(geometry), generator(seed, "plans"), 0
            for step in range(1, 1500):
                page, operation = int(random.integers(geometry.logical_pages)), int(random.choice([READ, WRITE, WRITE, WRITE, TRIM]))
                partial = operation == WRITE and bool(random.random() < 0.3)
                plan = state.plan_page(operation, page, partial)
                assert len(plan) <= state.control.plan_rows, "a plan is longer than it may be"
                flash.check(plan, operation, page, partial)
                for row in plan:
                    flash.carry_out(row, page, step)
                    erases += row.kind == ERASE_BLOCK
                if operation in (WRITE, TRIM):
                    flash.version[page] = step if operation == WRITE else 0
                state.apply_plan(len(plan))
            assert state.blocks.cycles.sum() == erases, (
                f"{state.blocks.cycles.sum()} cycles of blocks are counted, but {erases} erases planned"
            )
            for page, newest in flash.version.items():
                found = flash.content.get(lookup(state.mapping, page))
                assert found == ((page, newest) if newest else None), f"page {page} is not where the map says, or not the newest"

    def test_a_drive_works_with_it(self) -> None:
        check_drive(drive_for(self.name, drive(queue_depth=32)), 11, 150)

    def test_what_it_has_no_use_for_is_refused(self) -> None:
        """Room for log blocks and for a cached map, of a layer whose USES does not name them."""
        parameters = drive_for(self.name, drive())
        for special in ftl.SPECIAL:
            uses = special in self.FAMILY.load(self.name).USES
            assert uses == (getattr(parameters, special) > 0)
            if not uses:
                room: dict[str, Any] = {special: 512}
                with pytest.raises(RefusedError, match=f"{special}: 512, but ftl .* has no use for it"):
                    SsdEngine(replace(parameters, **room))


#: Drives whose pools collect apart and together, with blocks of several lengths.
DRIVES: list[dict[str, Any]] = [
    {},
    {"gc_pool": "shared", "capacity": 36 * PAGE},
    {"pages_per_block": 8, "blocks_per_plane": 7, "channels": 3, "capacity": 80 * PAGE},
]


class GcContract(Contract):
    """Properties of a garbage collection policy (`flashsim.ssd.gc.base`)."""

    FAMILY = gc.FAMILY

    def test_the_victim_is_closed_and_gains_a_page(self) -> None:
        """From the first overwrites on, in every pool that has something to gain; and the drive's state is as before."""
        blind = self.FAMILY.load(self.name).ROUNDS > 1
        for changes in DRIVES:
            engine, random = SsdEngine(drive(gc=self.name, **changes)), generator(1, "overwrites")
            parameters, flash = engine.parameters, engine.state.flash
            collectors = 1 if parameters.gc_pool == "shared" else parameters.pools
            own = parameters.pools // collectors * parameters.blocks_per_plane
            for _ in range(60):
                serve_all(engine, make_requests(WRITE, random.integers(0, parameters.logical_pages, 5) * PAGE, PAGE), engine.now)
                for collector in range(collectors):
                    before = Flash._make(each.copy() for each in flash)
                    gains = (before.blocks.state == CLOSED_BLOCK) & (before.blocks.valid < parameters.pages_per_block)
                    if not gains[collector * own : (collector + 1) * own].any():
                        continue
                    block = gc.VICTIM.function(self.name)(flash, collector)
                    assert block // own == collector, f"block {block} is none of pool {collector}, which begins at {collector * own}"
                    assert before.blocks.state[block] == CLOSED_BLOCK, f"block {block} is not closed"
                    assert blind or gains[block], f"block {block} has no invalid page"
                    before.pools.least_valid = flash.pools.least_valid
                    before.control.gc_draws, before.control.gc_steps = flash.control.gc_draws, flash.control.gc_steps
                    changed = [name for name in Flash._fields if not np.array_equal(getattr(flash, name), getattr(before, name))]
                    assert not changed, f"the policy changes {', '.join(changed)}"
            check_invariants(engine)

    def test_a_drive_works_with_it(self) -> None:
        for changes in DRIVES:
            engine = check_drive(drive(gc=self.name, **changes), 7, 60)
            assert engine.statistics()["programs_gc"] > 0, "nothing was collected"


class WearContract(Contract):
    """Properties of a wear levelling policy (`flashsim.ssd.wear.base`)."""

    FAMILY, STEPWISE = wear.FAMILY, True

    def test_a_free_block_is_opened_and_a_closed_one_levelled(self) -> None:
        """On a drive fresh and at work, on every plane, with pools apart and shared; only the hand and the count of steps may change."""
        for shared, blocks in ((False, 8), (True, 8), (False, 11)):
            parameters = drive(
                wear=self.name,
                wear_gap=1,
                gc_pool="shared" if shared else "die",
                blocks_per_plane=blocks,
                capacity=(8 * blocks - 28) * PAGE,
            )
            engine, random = SsdEngine(parameters), generator(1, "overwrites")
            for _ in range(30):
                state = engine.state
                pools, blocks = state.pools.copy(), state.blocks.copy()
                for pool in np.flatnonzero(state.pools.free[: parameters.pools]).tolist():
                    block = wear.OPENS.function(self.name)(state.flash, pool)
                    assert block in ring(pools.first_free[pool], blocks.after, blocks.before), f"block {block} of pool {pool} is not free"
                for collector in range(1 if shared else parameters.pools):
                    per_pool = len(blocks) if shared else parameters.blocks_per_plane
                    block = int(wear.LEVELS.function(self.name)(state.flash, collector))
                    assert block == -1 or blocks.state[block] == CLOSED_BLOCK, f"block {block} is not closed"
                    assert block == -1 or block // per_pool == collector, f"block {block} is none of pool {collector}"
                pools.wear_hand = state.pools.wear_hand
                assert np.array_equal(state.pools, pools) and np.array_equal(state.blocks, blocks), "the policy changes pools or blocks"
                serve_all(engine, make_requests(WRITE, random.integers(0, parameters.logical_pages // 2, 25) * PAGE, PAGE), engine.now)
            check_invariants(engine)

    def test_a_drive_works_with_it(self) -> None:
        check_drive(drive(wear=self.name, wear_gap=1), 7, 150)


def candidates(cylinders: list[int], delays: list[int] | None = None) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Commands at these cylinders, with rows to spare."""
    table = empty_table(len(cylinders) + 2, scheduler.CANDIDATE)
    table[: len(cylinders)].cylinder = cylinders
    table[: len(cylinders)].delay = delays or 0
    return table


class SchedulerContract(Contract):
    """Properties of a disk scheduler (`flashsim.hdd.scheduler.base`)."""

    FAMILY = scheduler.FAMILY

    def test_it_chooses_a_command_that_waits_and_changes_nothing(self) -> None:
        """Among up to 64 commands, on small disks and large ones, wherever the arm is."""
        draw, choose = generator(1, "candidates"), self.FAMILY.load(self.name).choose
        for _ in range(200):
            count, cylinders, longest = (int(draw.choice(each)) for each in ([2, 5, 19, 33, 64], [50, 500_000], [9000, 30_000_000]))
            table = candidates(draw.integers(0, cylinders, count).tolist(), draw.integers(0, longest, count).tolist())
            before = table.copy()
            choice: Any = choose(table, count, int(draw.integers(0, cylinders)), int(draw.choice([-1, 1])))
            assert isinstance(choice, int | np.integer) and 0 <= choice < count, f"row {choice} is chosen of {count}"
            assert np.array_equal(table, before), "the candidates are changed"

    def test_a_drive_works_with_it(self) -> None:
        """Engine and specification agree on every time, and everything is served."""
        drive = disks.small_drive(scheduler=self.name, queue_depth=6)
        requests, arrivals = disks.random_workload(7, drive.capacity, 150)
        engine, specification = (disks.serve(model(drive), requests, arrivals) for model in (HddEngine, HddSpecification))
        assert np.array_equal(engine, specification), "engine and specification differ"
        assert sorted(engine["id"].tolist()) == list(range(150)), "not every request is served once"
