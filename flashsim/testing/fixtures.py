"""Fixtures for pytest: ``pytest_plugins = ["flashsim.testing.fixtures"]`` in a ``conftest.py`` makes them known."""

import pytest

from algorithms.replacement.base import replacement_policy
from flashsim.core.rng import generator
from flashsim.core.units import MIB
from flashsim.ssd.lab.drive import LabDrive
from flashsim.storage.content import token_file
from flashsim.storage.pool.buffer_pool import BufferPool
from flashsim.storage.volume import Volume

#: Pages of the file that the pool is of, and its frames.
PAGES, FRAMES = 100, 10
PAGE_SIZE = 4096


@pytest.fixture
def fresh_drive() -> LabDrive:
    """A small flash drive without a clock to which nothing was written."""
    return LabDrive()


@pytest.fixture
def steady_drive() -> LabDrive:
    """A small flash drive that was filled, and then overwritten four times over at random: its garbage collection is at work."""
    drive = LabDrive()
    drive.write_all(range(drive.pages))
    drive.write_all(generator(0, "steady drive").integers(0, drive.pages, 4 * drive.pages).tolist())
    drive.count_anew()
    return drive


@pytest.fixture
def pool() -> BufferPool:
    """Ten frames for a file of a hundred pages, least recently used first."""
    return BufferPool(replacement_policy("lru"), FRAMES, [token_file("pages", PAGES, PAGE_SIZE)])


@pytest.fixture
def temporary_volume() -> Volume:
    """A volume of 64 MiB on one device, without files."""
    return Volume([64 * MIB])
