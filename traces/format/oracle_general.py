"""libCacheSim's oracleGeneral: packed records of 24 bytes, little-endian; it is only read.

::

    0   time             uint32   seconds
    4   object           uint64
    12  size             uint32   bytes
    16  next access      int64    the number of the record that asks for the object next; -1 (or the largest number): none

All requests are reads.  The object is taken for the number of a 512-byte sector; objects that are hashes are no places on a device
and are refused.  It cannot be written in one pass, for a record needs to know the future.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flashsim.core.errors import DamagedFileError
from flashsim.core.request import READ, SECTOR
from flashsim.core.units import NEVER, SECONDS
from traces.format import _text
from traces.schema import Batches, make_batch

TITLE = "libCacheSim oracleGeneral (binary)"

_RECORD = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
_RECORDS = 1 << 18


def recognise(path: Path) -> bool:
    """Nothing in it says so: the first records must be plausible, with times that rise and accesses that lie ahead."""
    try:
        with _text.open_bytes(path) as file:
            begin = file.read(64 * _RECORD.itemsize)
    except EOFError:
        return False
    if len(begin) < _RECORD.itemsize or b"\0" not in begin:
        return False
    records = np.frombuffer(begin[: len(begin) // _RECORD.itemsize * _RECORD.itemsize], _RECORD)
    ahead = (records["next"] == -1) | (records["next"] > np.arange(len(records)))
    return bool(ahead.all() and (np.diff(records["time"].astype(np.int64)) >= 0).all() and (records["size"] > 0).all())


def read(path: Path) -> Batches:
    """Time, object and size; the next access is checked and dropped."""
    first = 0
    with _text.open_bytes(path) as file:
        while data := file.read(_RECORDS * _RECORD.itemsize):
            if len(data) % _RECORD.itemsize:
                raise DamagedFileError(f"trace: {path} is cut short in record {first + len(data) // _RECORD.itemsize}")
            records = np.frombuffer(data, _RECORD)
            _refuse(path, first, records["object"] >= NEVER // SECTOR, "its object is a hash, no sector")
            numbers = np.arange(first, first + len(records))
            _refuse(path, first, (records["next"] != -1) & (records["next"] <= numbers), "its next access is not ahead")
            _refuse(path, first, records["size"] == 0, "its size is 0")
            columns = {"offset": records["object"].astype(np.int64) * SECTOR, "length": records["size"].astype(np.int64)}
            columns |= {"operation": np.full(len(records), READ), "arrival": records["time"].astype(np.int64) * SECONDS}
            yield make_batch(columns, first)
            first += len(records)


def _refuse(path: Path, first: int, bad: _text.Bools, why: str) -> None:
    if bad.any():
        raise DamagedFileError(f"trace: {path}, record {first + int(np.argmax(bad))}: {why}")
