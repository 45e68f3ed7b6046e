"""Write ids that are renumbered while a drive is at work: nothing changes but the ids."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.flash_array import LAST_WRITE_ID
from flashsim.testing.flash_drives import Model, check_invariants, random_drive, random_workload


def versions_in_order(model: Model) -> list[int]:
    """Each page's rank among the write ids; 0 for pages without one."""
    found = np.array([model.version(page) for page in range(model.parameters.logical_pages)])
    return np.searchsorted(np.unique(found[found > 0]), found).tolist() if found.any() else found.tolist()


@pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
@pytest.mark.parametrize("seed", range(12))
def test_renumbering_in_flight(model: type[Model], seed: int) -> None:
    parameters = random_drive(seed)
    if parameters.endurance:
        pytest.skip("the drive wears out")
    requests, at = random_workload(seed, parameters, 60)
    requests["dependency"] = -1
    at = np.sort(at)
    outcome = []
    for bound in (0, LAST_WRITE_ID - 60):
        device = model(parameters)
        device.state.control.sequence += bound
        parts = [device.submit(requests[:20], one_command_each(requests[:20]), at[:20])]
        parts.append(device.advance(int(at[20]), every=True)["completed"])
        device.submit(requests[20:], one_command_each(requests[20:]), np.maximum(at[20:], device.now))
        parts.append(device.advance(every=True)["completed"])
        device.settle()
        assert (device.state.control.id_base > LAST_WRITE_ID // 2) == (bound > 0)
        check_invariants(device)
        outcome.append(([part.tolist() for part in parts], versions_in_order(device)))
        device.power_cut(device.now)
        outcome[-1] += (versions_in_order(device),)
    assert outcome[0] == outcome[1]
