"""Programs inside a drive read and write beside the host: engine and specification agree to the nanosecond."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.request import IN_MEMORY, INTERNAL, WRITE, Integers, Requests
from flashsim.core.rng import generator
from flashsim.ssd.ftl.base import FAMILY
from flashsim.ssd.parameters import SsdParameters
from flashsim.testing.flash_drives import PAGE, drive_for, random_drive, random_workload
from tests.property.test_ssd_equality import assert_alike
from tests.tiers import seeds
from tests.yardstick import seconds


def inside_drive(seed: int) -> SsdParameters:
    """A random drive whose memory has a bus, slower or faster than a channel."""
    layers = FAMILY.names()
    rate = PAGE * 10**8 // int(generator(seed, "bus").choice([1, 1, 2, 5]))
    parameters = replace(random_drive(seed), read_submission=0, write_submission=0, bus_rate=rate)
    return drive_for(layers[seed % len(layers)], parameters)


def mixed_workload(seed: int, parameters: SsdParameters, count: int) -> tuple[Requests, Integers]:
    """Requests of the host, of programs inside, and for the drive's memory."""
    requests, at = random_workload(seed, parameters, count)
    random = generator(seed, "inside")
    flags = random.choice([0, INTERNAL, IN_MEMORY], count, p=[0.4, 0.4, 0.2])
    requests["flags"] |= np.where(requests["operation"] <= WRITE, flags, 0).astype(np.int16)
    return requests, at


def assert_agree_inside(seed: int, count: int) -> None:
    parameters = inside_drive(seed)
    requests, at = mixed_workload(seed, parameters, count)
    assert_alike(seed, parameters, requests, at)


@pytest.mark.parametrize("block", seeds(0, 3, deep=11))
def test_models_agree_inside(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        assert_agree_inside(seed, 30)


def test_models_agree_inside_as_plain_python() -> None:
    program = "from tests.property.test_ssd_inside import assert_agree_inside\nfor seed in range(2000, 2020): assert_agree_inside(seed, 30)"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=True, timeout=seconds(200))
