"""Garbage collection that goes on past its start: it ends where nothing is left to gain."""

from __future__ import annotations

from flashsim.core.request import TRIM, WRITE
from flashsim.core.rng import generator
from flashsim.ssd.state.drive_state import DriveState
from flashsim.testing.flash_drives import drive
from tests.cases import with_each


@with_each("seed", range(10))
def test_a_drive_that_was_trimmed_while_it_collects(seed: int) -> None:
    """Two streams fill two blocks, none is closed any more, and yet fewer pages are free than collection would like."""
    state = DriveState(drive(channels=1, gc_streams=2, gc_reserve=3, gc_stop=7, capacity=15 * 2048))
    random = generator(seed, "pages")

    def do(operation: int, page: int) -> None:
        state.apply_plan(len(state.plan_page(operation, page, False)))

    while state.pools.collecting[0] == 0:
        do(WRITE, int(random.integers(0, 15)))
    none_closed = False
    for page in range(15):
        do(TRIM, page)
    for _ in range(40):
        do(WRITE, int(random.integers(0, 2)))
        none_closed |= bool(state.pools.oldest[0] < 0)
    assert none_closed
