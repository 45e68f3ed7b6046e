"""The contract of garbage collection policies: a victim is a closed block that gains a page, and a drive works with it."""

from __future__ import annotations

import numpy as np

from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.gc.base import FAMILY, VICTIM
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.flash_array import CLOSED_BLOCK
from flashsim.testing.contract import Contract
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, random_workload, served


class GcContract(Contract):
    """Properties of a garbage collection policy (`flashsim.ssd.gc.base`)."""

    FAMILY = FAMILY

    def test_the_victim_is_closed_and_gains_a_page(self) -> None:
        """After many overwrites, on every die that has something to gain; and the blocks are as before."""
        engine = SsdEngine(drive(gc=self.name))
        parameters, state = engine.parameters, engine.state
        blind = FAMILY.load(self.name).ROUNDS > 1
        random = generator(1, "overwrites")
        for _ in range(20):
            served(engine, make_requests(WRITE, random.integers(0, parameters.logical_pages, 100) * PAGE, PAGE), engine.now)
            before = state.blocks.copy()
            for pool in range(parameters.pools):
                own = slice(pool * parameters.blocks_per_plane, (pool + 1) * parameters.blocks_per_plane)
                if not np.any((before.state[own] == CLOSED_BLOCK) & (before.valid[own] < parameters.pages_per_block)):
                    continue
                block = VICTIM.function(self.name)(state.flash, pool)
                assert own.start <= block < own.stop, f"block {block} is none of pool {pool}, which begins at {own.start}"
                assert before.state[block] == CLOSED_BLOCK, f"block {block} is not closed"
                assert blind or before.valid[block] < parameters.pages_per_block, f"block {block} has no invalid page"
                assert np.array_equal(state.blocks, before), "the policy changes blocks"
        check_invariants(engine)

    def test_a_drive_works_with_it(self) -> None:
        """Engine and specification agree on every time, and the map stays whole."""
        parameters = drive(gc=self.name)
        requests, at = random_workload(7, parameters, 150)
        engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
        assert np.array_equal(served(engine, requests, at), served(specification, requests, at)), "engine and specification differ"
        assert engine.statistics()["programs_gc"] > 0, "nothing was collected"
        check_invariants(engine)
