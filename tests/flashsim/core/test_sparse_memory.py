"""Large tables take room where they are touched, and behave as tables of zeros do."""

from __future__ import annotations

import mmap
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.large_arrays import SparseMemory
from flashsim.core.records import LINE
from flashsim.core.units import KIB, MIB
from flashsim.device.device import Device


def resident() -> int:
    """Bytes of memory that this process has touched."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("count", [1, 1000, 1 << 22])
def test_tables_begin_as_zeros_on_a_line(count: int) -> None:
    memory = SparseMemory()
    table = memory.zeros(count, np.int32)
    assert table.shape == (count,) and table.dtype == np.int32 and table.ctypes.data % LINE == 0 and not table.any()
    table[:] = np.arange(count)
    memory.expect_all()
    assert np.array_equal(table, np.arange(count))


def test_a_touched_byte_takes_a_small_page() -> None:
    table, before = SparseMemory().zeros(64 * MIB, np.uint8), resident()
    table[:: 2 * MIB] = 1
    assert resident() - before <= 32 * 64 * KIB


def test_a_copied_drive_has_tables_of_its_own() -> None:
    drive = Device.open("intel-x25e-64gb")
    drive.load(0, MIB)
    copied = deepcopy(drive)
    drive.load(MIB, MIB)
    assert [len(np.flatnonzero(each.arrays[6])) for each in (drive, copied)] == [512, 256]


def test_a_small_load_of_a_large_drive_takes_little_memory() -> None:
    Device.open("csd-arm-4tb").load(0, MIB)  # compiles
    drive = Device.open("csd-arm-4tb")
    before = resident()
    drive.load(0, 16 * MIB)
    assert resident() - before <= 64 * MIB
