"""Memory for direct I/O: where it begins, and for how long it is kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from flashsim.core.units import MIB
from flashsim.device.batch import LastingMemory, aligned_buffer


def test_buffers_are_aligned_to_pages_and_large_ones_to_huge_pages() -> None:
    for size in (0, 1, 512, MIB, 2 * MIB, 5 * MIB + 1):
        buffer = aligned_buffer(size)
        assert len(buffer) == size and not buffer.any()
        assert buffer.ctypes.data % (4096 if size < 2 * MIB else 2 * MIB) == 0


def test_a_thread_keeps_its_memory_and_has_it_alone() -> None:
    memory = LastingMemory()
    kept = memory.take(MIB)
    kept[:] = 7
    assert np.shares_memory(memory.take(2 * MIB), kept)
    assert not np.shares_memory(memory.take(65 * MIB), kept)
    assert len(memory.take(0)) == 0
    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(memory.take, MIB).result()
    assert not np.shares_memory(others, kept) and (kept == 7).all()
