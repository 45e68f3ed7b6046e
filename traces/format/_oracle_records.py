"""Packed records of libCacheSim's oracleGeneral, 24 bytes each, little-endian, as traces of requests and of pages have them.

::

    0   time             uint32   seconds
    4   object           uint64
    12  size             uint32   bytes
    16  next access      int64    the number of the record that asks for the object next; -1 (or the largest number): none
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import DamagedFileError
from traces.format import _packed, _text

RECORD = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
#: Records that are read at once.
RECORDS = 1 << 18


def recognise(path: Path) -> bool:
    """Nothing in it says so: the first records must be plausible, with times that rise and accesses that lie ahead."""
    with _packed.open_bytes(path) as file:
        begin = file.read(64 * RECORD.itemsize)
    if not begin or len(begin) % RECORD.itemsize or b"\0" not in begin:
        return False
    records = np.frombuffer(begin, RECORD)
    ahead = (records["next"] == -1) | (records["next"] > np.arange(len(records)))
    return bool(ahead.all() and (np.diff(records["time"].astype(np.int64)) >= 0).all() and (records["size"] > 0).all())


def read(path: Path) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Records, some at a time, and the number of the first; sizes and next accesses are checked."""
    first = 0
    with _packed.open_bytes(path) as file:
        while data := file.read(RECORDS * RECORD.itemsize):
            if len(data) % RECORD.itemsize:
                raise DamagedFileError(f"trace: {path} is cut short in record {first + len(data) // RECORD.itemsize}")
            records = np.frombuffer(data, RECORD)
            numbers = np.arange(first, first + len(records))
            refuse(path, first, (records["next"] != -1) & (records["next"] <= numbers), "its next access is not ahead")
            refuse(path, first, records["size"] == 0, "its size is 0")
            yield first, records
            first += len(records)


def refuse(path: Path, first: int, bad: _text.Bools, why: str) -> None:
    """Raise a `DamagedFileError` that names the first bad record, if there is any."""
    if bad.any():
        raise DamagedFileError(f"trace: {path}, record {first + int(np.argmax(bad))}: {why}")
