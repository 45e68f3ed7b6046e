"""Memory for large tables of which most may never be touched."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np

from flashsim.core.records import aligned_zeros

#: Bytes from which on NumPy asks for large pages of memory.
_LARGE = 1 << 22


class SparseMemory:
    """Tables of zeros, in small pages of memory until all of it is expected to be used.

    The system clears 2 MiB where a byte of a large page is touched, and blocks of a drive that are written one after another lie that far
    apart.  Where all is used, large pages are looked up faster.
    """

    def __init__(self) -> None:
        self._maps: list[mmap.mmap] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseMemory:
        return SparseMemory()  # a copied table is in memory of NumPy's

    def zeros(self, count: int, dtype: Any) -> np.ndarray[Any, Any]:
        """A table of so many zeros, which begins with a line of the processor's caches."""
        size = count * np.dtype(dtype).itemsize
        if size < _LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
            return aligned_zeros(size).view(dtype)
        try:
            self._maps.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        except (OSError, OverflowError) as problem:
            raise MemoryError(f"no memory for {size} bytes") from problem
        return np.frombuffer(self._maps[-1], dtype)

    def expect_all(self) -> None:
        """Ask for large pages where nothing was touched yet."""
        for each in self._maps:
            with suppress(OSError):  # a system that was built without them
                each.madvise(mmap.MADV_HUGEPAGE)
        self._maps.clear()
