"""Write ids that approach the end of their 32 bits are numbered anew: order stays, and nothing that a drive does changes."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.errors import CapacityError
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import LAST_WRITE_ID, ids_left, renumber
from flashsim.ssd.state.recovery import recover
from flashsim.testing.flash_drives import PAGE, check_invariants, drive


def ranks(state: DriveState) -> list[int]:
    """Which page was written before which."""
    versions = [state.version(page) for page in range(state.parameters.logical_pages)]
    return np.argsort(versions, kind="stable").tolist()


@pytest.mark.parametrize("gc", ["greedy", "cost-benefit"])
def test_a_drive_goes_on_past_the_end(gc: str) -> None:
    """Two drives of one workload, one of which starts a little before the last id."""
    parameters = drive(gc=gc)
    fresh, old = SsdEngine(parameters), SsdEngine(parameters)
    old.state.control.sequence = LAST_WRITE_ID - 500
    for page in generator(1, "pages").integers(0, parameters.logical_pages, 1500).tolist():
        for engine in (fresh, old):
            engine.load(page * PAGE, PAGE)
    assert old.state.control.id_base > 0
    assert old.state.control.sequence > LAST_WRITE_ID
    assert old.state.spare.max() < 2000
    assert ranks(fresh.state) == ranks(old.state)
    for engine in (fresh, old):
        recover(engine.state)
        check_invariants(engine)
    assert np.array_equal(fresh.state.mapping, old.state.mapping)
    assert ranks(fresh.state) == ranks(old.state)


def test_order_stays_and_ids_in_flight_keep_their_distances() -> None:
    random = generator(2, "ids")
    state = DriveState(drive())
    for array in (state.spare, state.trimmed):
        array[:] = random.choice([-1, 0, 5, 70, 1000, 2000, 2**30, 2**31 - 20], len(array))
    state.control.sequence = LAST_WRITE_ID - 3
    before = [state.spare.copy(), state.trimmed.copy()]
    shift = state.make_ids(100, [2**31 - 30])
    assert shift == 2**31 - 31 - 5
    assert ids_left(state.control) == 3 + shift
    for array, old in zip((state.spare, state.trimmed), before, strict=True):
        assert np.array_equal(array[old <= 0], old[old <= 0])
        assert np.array_equal(array[old > 2**31 - 30], old[old > 2**31 - 30] - shift)
        assert [array[old == value].tolist() for value in (5, 2**30)] == [[1] * (old == 5).sum(), [5] * (old == 2**30).sum()]
    assert state.make_ids(100) == 0


def test_more_ids_than_there_are_is_refused() -> None:
    state = DriveState(drive())
    state.spare[:8] = np.arange(1, 9)
    state.control.sequence = LAST_WRITE_ID
    with pytest.raises(CapacityError, match=f"write ids: 8 are in use, and {LAST_WRITE_ID} more do not fit"):
        renumber(state.control, state.spare, state.trimmed, LAST_WRITE_ID, None)
    assert state.control.id_base == 0
    assert renumber(state.control, state.spare, state.trimmed, LAST_WRITE_ID - 8, None) == LAST_WRITE_ID - 8
    assert state.spare[:8].tolist() == list(range(1, 9))
