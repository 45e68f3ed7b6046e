"""Copies of large arrays and of what holds them, which share memory until one changes: the system copies a page when it is written to."""

import mmap
import os
import tempfile
import weakref
from copy import deepcopy
from typing import Any, Generic, TypeVar

import numpy as np

#: Bytes of an array from which on sharing is worth it, and that are looked at together for whether they hold anything.
_LARGE, _CHUNK = 1 << 20, 1 << 16

Thing = TypeVar("Thing")


class Original(Generic[Thing]):
    """A thing as it is now, of which copies are made.

    The thing can be copied deeply, and is not changed any more.  Of the arrays that it holds the large ones are shared, which own all of
    their memory in order.
    """

    def __init__(self, thing: Thing, arrays: list[Any]) -> None:
        self._thing = thing
        self._shared = [(array, _file_of(array)) for array in arrays if array.nbytes >= _LARGE]
        for _, file in self._shared:
            weakref.finalize(self, file.close)

    def copy(self) -> Thing:
        """A copy, which may be changed."""
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
