"""What all tests share: time limits for Hypothesis, and the folder of third-party data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The first call of a kernel may compile it, so no deadline; examples are the same in every run.
settings.register_profile("flashsim", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("flashsim")


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of third-party data; the test is skipped where none is set."""
    folder = os.environ.get("FLASHSIM_TEST_DATA")
    if not folder:
        pytest.skip("FLASHSIM_TEST_DATA is unset")
    return Path(folder)
