"""Large arrays: copies share memory until one changes, as the system copies a page when it is written to; and tables of sparse memory."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from contextlib import suppress
from copy import deepcopy
from typing import Any, Generic, TypeVar

import numpy as np

from flashsim.core.records import aligned_zeros

#: Bytes of an array from which on sharing is worth it, and that are looked at together for whether they hold anything.
_LARGE, _CHUNK = 1 << 20, 1 << 16

Thing = TypeVar("Thing")


class Original(Generic[Thing]):
    """A thing as it is now, of which copies are made.

    The thing can be copied deeply, and is not changed any more unless it `goes_on`.  Of the arrays that it holds the large ones are shared,
    which own all of their memory in order.
    """

    def __init__(self, thing: Thing, arrays: list[Any], *, goes_on: bool = False) -> None:
        self._thing = thing
        self._shared = [(array, _file_of(array)) for array in arrays if array.nbytes >= _LARGE]
        for _, file in self._shared:
            weakref.finalize(self, file.close)
        if goes_on:
            copies = {id(array): _copy_of(array, file) for array, file in self._shared}
            self._shared = [(copies[id(array)], file) for array, file in self._shared]
            self._thing = deepcopy(thing, copies)

    def copy(self) -> Thing:
        return deepcopy(self._thing, {id(array): _copy_of(array, file) for array, file in self._shared})


def _file_of(array: Any) -> Any:
    """An unnamed file of an array's bytes, in memory where the system can; stretches of zeros take no room."""
    in_memory = hasattr(os, "memfd_create")
    file: Any = os.fdopen(os.memfd_create("flashsim"), "w+b") if in_memory else tempfile.TemporaryFile()  # noqa: SIM115 (as long as it is used)
    file.truncate(array.nbytes)
    content = np.frombuffer(memoryview(array.view(np.ndarray)).cast("B"), np.uint8)
    for begin in range(0, len(content), _CHUNK):
        if content[begin : begin + _CHUNK].any():
            file.seek(begin)
            file.write(content[begin : begin + _CHUNK].tobytes())
    file.flush()
    return file


def _copy_of(array: Any, file: Any) -> Any:
    shared = np.frombuffer(mmap.mmap(file.fileno(), array.nbytes, access=mmap.ACCESS_COPY), np.uint8)
    return shared.view(array.dtype).view(type(array)).reshape(array.shape)


_LARGE_PAGES_FROM = 1 << 22  #: Bytes from which on NumPy asks for large pages of memory.


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
        if size < _LARGE_PAGES_FROM or not hasattr(mmap, "MADV_HUGEPAGE"):
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
