"""Records of fixed size in a file, which may be packed (`flashsim.storage.packed_files`).

Those of libCacheSim's oracleGeneral, which traces of requests and of pages have, take 24 bytes each, little-endian:

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
from flashsim.storage.packed_files import open_bytes

Records = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

ORACLE = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
#: Records that are read at once.
AT_ONCE = 1 << 18


def read_records(path: Path, kind: np.dtype[Any]) -> Iterator[tuple[int, Records]]:
    """Records of a file, some at a time, and the number of the first."""
    first = 0
    with open_bytes(path) as file:
        while data := file.read(AT_ONCE * kind.itemsize):
            records = np.frombuffer(data, kind, len(data) // kind.itemsize)
            if len(records):
                yield first, records
            first += len(records)
            if len(data) % kind.itemsize:
                raise DamagedFileError(f"trace: {path} is cut short in record {first} at byte {first * kind.itemsize}")


def refuse(path: Path, first: int, records: Records, bad: Bools, why: str) -> None:
    """Raise a `DamagedFileError` that names the first bad record, if there is any; `first` is the number of the first of all."""
    if bad.any():
        row = first + int(np.argmax(bad))
        raise DamagedFileError(f"trace: {path}, record {row} at byte {row * records.itemsize}: {why}")


def is_oracle(path: Path) -> bool:
    """Nothing in an oracleGeneral says so: the first records must be plausible, with times that rise and accesses that lie ahead."""
    with open_bytes(path) as file:
        begin = file.read(64 * ORACLE.itemsize)
    if not begin or len(begin) % ORACLE.itemsize or b"\0" not in begin:
        return False
    records = np.frombuffer(begin, ORACLE)
    ahead = (records["next"] == -1) | (records["next"] > np.arange(len(records)))
    return bool(ahead.all() and (np.diff(records["time"].astype(np.int64)) >= 0).all() and (records["size"] > 0).all())


def read_oracle(path: Path) -> Iterator[tuple[int, Records]]:
    """Records of an oracleGeneral, some at a time, and the number of the first; sizes and next accesses are checked."""
    for first, records in read_records(path, ORACLE):
        ahead = (records["next"] == -1) | (records["next"] > np.arange(first, first + len(records)))
        refuse(path, first, records, ~ahead, "its next access is not ahead")
        refuse(path, first, records, records["size"] == 0, "its size is 0")
        yield first, records
