"""The contract of wear levelling policies: free blocks are opened, closed ones levelled, and a drive works with them."""

import numpy as np

from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.flash_array import CLOSED_BLOCK
from flashsim.ssd.wear.base import FAMILY, LEVELS, OPENS
from flashsim.testing.contract import Contract
from flashsim.testing.flash_drives import PAGE, check_invariants, drive, random_workload, ring, served


class WearContract(Contract):
    """Properties of a wear levelling policy (`flashsim.ssd.wear.base`)."""

    FAMILY, STEPWISE = FAMILY, True

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
                    block = OPENS.function(self.name)(state.flash, pool)
                    assert block in ring(pools.first_free[pool], blocks.after, blocks.before), f"block {block} of pool {pool} is not free"
                for collector in range(1 if shared else parameters.pools):
                    per_pool = len(blocks) if shared else parameters.blocks_per_plane
                    block = int(LEVELS.function(self.name)(state.flash, collector))
                    assert block == -1 or blocks.state[block] == CLOSED_BLOCK, f"block {block} is not closed"
                    assert block == -1 or block // per_pool == collector, f"block {block} is none of pool {collector}"
                pools.wear_hand = state.pools.wear_hand
                assert np.array_equal(state.pools, pools) and np.array_equal(state.blocks, blocks), "the policy changes pools or blocks"
                served(engine, make_requests(WRITE, random.integers(0, parameters.logical_pages // 2, 25) * PAGE, PAGE), engine.now)
            check_invariants(engine)

    def test_a_drive_works_with_it(self) -> None:
        """Engine and specification agree on every time, and the map stays whole."""
        parameters = drive(wear=self.name, wear_gap=1)
        requests, at = random_workload(7, parameters, 150)
        engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
        assert np.array_equal(served(engine, requests, at), served(specification, requests, at)), "engine and specification differ"
        check_invariants(engine)
