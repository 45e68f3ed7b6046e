"""The contract of garbage collection policies: a victim is a closed block that gains a page, and a drive works with it."""

from typing import Any

import numpy as np

from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.gc.base import FAMILY, VICTIM
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import CLOSED_BLOCK
from flashsim.testing.contract import Contract
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, random_workload, served

#: Drives whose pools collect apart and together, with blocks of several lengths.
DRIVES: list[dict[str, Any]] = [
    {},
    {"gc_pool": "shared", "capacity": 36 * PAGE},
    {"pages_per_block": 8, "blocks_per_plane": 7, "channels": 3, "capacity": 80 * PAGE},
]


class GcContract(Contract):
    """Properties of a garbage collection policy (`flashsim.ssd.gc.base`)."""

    FAMILY = FAMILY

    def test_the_victim_is_closed_and_gains_a_page(self) -> None:
        """From the first overwrites on, in every pool that has something to gain; and the drive's state is as before."""
        blind = FAMILY.load(self.name).ROUNDS > 1
        for changes in DRIVES:
            engine, random = SsdEngine(drive(gc=self.name, **changes)), generator(1, "overwrites")
            parameters, flash = engine.parameters, engine.state.flash
            collectors = 1 if parameters.gc_pool == "shared" else parameters.pools
            own = parameters.pools // collectors * parameters.blocks_per_plane
            for _ in range(60):
                served(engine, make_requests(WRITE, random.integers(0, parameters.logical_pages, 5) * PAGE, PAGE), engine.now)
                for collector in range(collectors):
                    before = Flash._make(each.copy() for each in flash)
                    gains = (before.blocks.state == CLOSED_BLOCK) & (before.blocks.valid < parameters.pages_per_block)
                    if not gains[collector * own : (collector + 1) * own].any():
                        continue
                    block = VICTIM.function(self.name)(flash, collector)
                    assert block // own == collector, f"block {block} is none of pool {collector}, which begins at {collector * own}"
                    assert before.blocks.state[block] == CLOSED_BLOCK, f"block {block} is not closed"
                    assert blind or gains[block], f"block {block} has no invalid page"
                    before.pools.least_valid = flash.pools.least_valid
                    before.control.gc_draws, before.control.gc_steps = flash.control.gc_draws, flash.control.gc_steps
                    changed = [name for name in Flash._fields if not np.array_equal(getattr(flash, name), getattr(before, name))]
                    assert not changed, f"the policy changes {', '.join(changed)}"
            check_invariants(engine)

    def test_a_drive_works_with_it(self) -> None:
        """Engine and specification agree on every time, and the map stays whole."""
        for changes in DRIVES:
            parameters = drive(gc=self.name, **changes)
            requests, at = random_workload(7, parameters, 60)
            engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
            assert np.array_equal(served(engine, requests, at), served(specification, requests, at)), "engine and specification differ"
            assert engine.statistics()["programs_gc"] > 0, "nothing was collected"
            check_invariants(engine)
