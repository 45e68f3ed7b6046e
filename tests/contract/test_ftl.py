"""Every flash translation layer: its plans follow the contract, and a drive works with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError, RefusedError
from flashsim.core.request import READ, TRIM, WRITE
from flashsim.core.rng import generator
from flashsim.core.spans import HOST
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl.base import FAMILY, SPECIAL
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, MOVE_PAGE, PROGRAM_PAGE, READ_PAGE, STORE_PAGE, ZERO_PAGE, lookup
from flashsim.testing.flash_drives import check_invariants, drive, drive_for, random_drive, random_workload, served


@pytest.mark.parametrize("name", FAMILY.names())
@pytest.mark.parametrize("seed", range(5))
def test_plans(name: str, seed: int) -> None:
    """A page model of the flash: programs go to erased pages in order, moves and fetches read what is there, erases lose nothing."""
    geometry = drive_for(name, replace(random_drive(seed), endurance=0))
    state = DriveState(geometry)
    per_block, random = geometry.pages_per_block, generator(seed, "plans")
    content: dict[int, tuple[int, int]] = {}  # by flash page: logical page, version
    version = dict.fromkeys(range(geometry.logical_pages), 0)
    for step in range(1, 1500):
        page, operation = int(random.integers(geometry.logical_pages)), int(random.choice([READ, WRITE, WRITE, WRITE, TRIM]))
        partial = operation == WRITE and bool(random.random() < 0.3)
        plan = state.plan_page(operation, page, partial)
        assert len(plan) <= state.control.plan_rows
        kinds = [row.kind for row in plan]
        fetches = [row for row in plan if row.kind == FETCH_PAGE and row.cause == HOST]
        for row in plan:
            place = row.place
            if row.kind == READ_PAGE or row in fetches:
                assert content[place] == (page, version[page])
            elif row.kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
                assert not any(behind in content for behind in range(place, (place // per_block + 1) * per_block))
                assert (
                    geometry.gc == "none" or place % per_block == 0 or place - 1 in content
                )  # where blocks merge, pages may be passed over
                content[place] = content[row.source] if row.source >= 0 else (row.logical, step)
                assert content[place][0] == row.logical
            elif row.kind == ERASE_BLOCK:
                for flash_page in range(place * per_block, (place + 1) * per_block):
                    content.pop(flash_page, None)
        if operation == WRITE:
            assert kinds.count(PROGRAM_PAGE) == 1
            assert len(fetches) == (partial and version[page] > 0)
            version[page] = step
        elif operation == TRIM:
            assert not {PROGRAM_PAGE, READ_PAGE, ZERO_PAGE} & set(kinds)
            version[page] = 0
        else:
            assert [kind for kind in kinds if kind in (READ_PAGE, ZERO_PAGE)] == [READ_PAGE if version[page] else ZERO_PAGE]
        state.apply_plan(len(plan))
    for page, newest in version.items():
        assert content.get(lookup(state.mapping, page)) == ((page, newest) if newest else None)


@pytest.mark.parametrize("name", FAMILY.names())
def test_a_drive_works_with_it(name: str) -> None:
    parameters = drive_for(name, drive(queue_depth=32))
    requests, at = random_workload(11, parameters, 150)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    assert np.array_equal(served(engine, requests, at), served(specification, requests, at))
    check_invariants(engine)


@pytest.mark.parametrize("name", FAMILY.names())
@pytest.mark.parametrize("special", SPECIAL)
def test_what_it_has_no_use_for_is_refused(name: str, special: str) -> None:
    parameters = drive_for(name, drive())
    uses = special in FAMILY.load(name).USES
    assert uses == (getattr(parameters, special) > 0)
    if not uses:
        with pytest.raises(RefusedError, match=f"{special}: 512, but ftl '{name}' has no use for it"):
            SsdEngine(replace(parameters, **{special: 512}))


@pytest.mark.parametrize("table", ["np.zeros(4)", "np.zeros((2, 2), np.int64)", "[0, 0]"])
def test_an_own_table_that_kernels_cannot_take_is_refused(table: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    returns = f"def own_table(parameters):\n    return {table}\n"
    path.write_text(f"import numpy as np\nfrom flashsim.ssd.ftl.page import translate\n\n\n{returns}")
    with pytest.raises(FlashsimError, match="own_table of '.*mine.py' must return an int64 vector$"):
        DriveState(drive(ftl=str(path)))
