"""The device's own face: what serving a batch does to the clock."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.request import READ, WRITE, make_requests
from flashsim.device.device import Device


@pytest.mark.parametrize("model", ["engine", "specification"])
@pytest.mark.parametrize("name", ["intel-x25e-64gb", "ocz-core-60gb", "toshiba-5400-320gb"])
def test_the_clock_stops_at_the_last_completion_unless_the_drive_is_to_settle(name: str, model: str) -> None:
    requests = make_requests(WRITE, np.arange(20) * 8192, 8192, serial=True)
    settled, stopped = Device.open(name, model), Device.open(name, model)
    first, second = settled.serve(requests), stopped.serve(requests, settle=False)
    assert first.tolist() == second.tolist()
    assert stopped.now == second["completed"].max() <= settled.now
    at = stopped.now
    assert stopped.serve(make_requests(READ, 0, 8192), at)["completed"][0] > at
