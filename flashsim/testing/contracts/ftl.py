"""The contract of flash translation layers: plans follow the rules of flash and lose nothing, and a drive works with them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import RefusedError
from flashsim.core.request import READ, TRIM, WRITE
from flashsim.core.rng import generator
from flashsim.core.spans import HOST
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl.base import FAMILY, SPECIAL
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, MOVE_PAGE, PROGRAM_PAGE, READ_PAGE, STORE_PAGE, ZERO_PAGE, lookup
from flashsim.testing.contract import Contract
from flashsim.testing.flash_drives import check_invariants, drive, drive_for, random_drive, random_workload, served


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


class FtlContract(Contract):
    """Properties of a flash translation layer (`flashsim.ssd.ftl.base`)."""

    FAMILY, STEPWISE = FAMILY, True

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
        """Engine and specification agree on every time, and the map stays whole."""
        parameters = drive_for(self.name, drive(queue_depth=32))
        requests, at = random_workload(11, parameters, 150)
        engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
        assert np.array_equal(served(engine, requests, at), served(specification, requests, at)), "engine and specification differ"
        check_invariants(engine)

    def test_what_it_has_no_use_for_is_refused(self) -> None:
        """Room for log blocks and for a cached map, of a layer whose USES does not name them."""
        parameters = drive_for(self.name, drive())
        for special in SPECIAL:
            uses = special in FAMILY.load(self.name).USES
            assert uses == (getattr(parameters, special) > 0)
            if not uses:
                room: dict[str, Any] = {special: 512}
                with pytest.raises(RefusedError, match=f"{special}: 512, but ftl .* has no use for it"):
                    SsdEngine(replace(parameters, **room))
