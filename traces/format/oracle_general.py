"""libCacheSim's oracleGeneral: packed records of 24 bytes, little-endian.

::

    0   time             uint32   seconds
    4   object           uint64
    12  size             uint32   bytes
    16  next access      int64    the number of the record that asks for the object next; -1 (or the largest number): none

It does not tell reads from writes: all requests are read as reads, and marked as of unknown operation.  The object is taken for the
number of a 512-byte sector; objects that are hashes are no places on a device and are refused.

A record needs to know the future.  It is written without at first; then the file is walked from its end to its begin, with a table of
objects and where each was asked for last.  As many walks are made as keep that table small, each for its share of the objects.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import READ, SECTOR, WRITE, Integers
from flashsim.core.units import NEVER, SECONDS
from traces.format import _packed, _text
from traces.format.base import Example
from traces.schema import Batches, make_batch

TITLE = "libCacheSim oracleGeneral (binary)"
CARRIES = frozenset({"offset", "length", "arrival"})
LEAVES_OUT = "when an object is asked for next (it is found anew when the trace is written)"
RESOLUTION = SECONDS

_RECORD = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
_RECORDS = 1 << 18
#: Objects of one walk; their table has room for twice as many.
_OBJECTS = 1 << 22
EXAMPLE = Example(
    np.array([(5, 100, 4096, 2), (6, 300, 512, -1), (9, 100, 4096, -1)], _RECORD).tobytes(),
    [(READ, 51200, 4096, 5 * SECONDS), (READ, 153600, 512, 6 * SECONDS), (READ, 51200, 4096, 9 * SECONDS)],
)


def recognise(path: Path) -> bool:
    """Nothing in it says so: the first records must be plausible, with times that rise and accesses that lie ahead."""
    with _packed.open_bytes(path) as file:
        begin = file.read(64 * _RECORD.itemsize)
    if not begin or len(begin) % _RECORD.itemsize or b"\0" not in begin:
        return False
    records = np.frombuffer(begin, _RECORD)
    ahead = (records["next"] == -1) | (records["next"] > np.arange(len(records)))
    return bool(ahead.all() and (np.diff(records["time"].astype(np.int64)) >= 0).all() and (records["size"] > 0).all())


def read(path: Path) -> Batches:
    """Time, object and size; the next access is checked and dropped."""
    first = 0
    with _packed.open_bytes(path) as file:
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
            yield make_batch(columns, first, unknown=("operation",))
            first += len(records)


def _refuse(path: Path, first: int, bad: _text.Bools, why: str) -> None:
    if bad.any():
        raise DamagedFileError(f"trace: {path}, record {first + int(np.argmax(bad))}: {why}")


def write(batches: Batches, path: Path) -> None:
    """Reads and writes, not told apart, that begin at whole sectors, with times in order."""
    last = count = 0
    with path.open("w+b") as file:
        for batch in batches:
            time, length = _text.arrivals(batch, "oracle-general") // RESOLUTION, _text.column(batch, "length")
            _text.operations(batch, {READ: 0, WRITE: 0}, "oracle-general")
            _hold("arrival", time, 1 << 32, "s")
            _hold("length", length - 1, (1 << 32) - 1, "B less than 1")
            records = np.zeros(batch.num_rows, _RECORD)
            records["object"] = _text.whole(batch, "offset", SECTOR, "oracle-general")
            records["time"], records["size"], records["next"] = time, length, -1
            if len(time) and (np.diff(time, prepend=last) < 0).any():
                raise InvalidParameterError("arrival", "not in order", "oracle-general holds times that do not go back")
            last, count = int(time[-1]) if len(time) else last, count + len(time)
            file.write(records.tobytes())
        walk, walks = 0, max(1, -(-count // _OBJECTS))
        while walk < walks:
            linked = _link(file, count, walk, walks)
            walk, walks = (walk + 1, walks) if linked else (0, 2 * walks)


def _hold(what: str, values: Integers, bound: int, unit: str) -> None:
    wrong = (values < 0) | (values >= bound)
    if wrong.any():
        raise InvalidParameterError(what, f"{values[np.argmax(wrong)]} {unit}", f"oracle-general holds 0 to {bound - 1}")


def _link(file: BinaryIO, count: int, walk: int, walks: int) -> bool:
    """Fill in the next accesses of every `walks`-th object, from the last record to the first; False if their table is full."""
    table = np.full((1 << max(4, (2 * min(count, _OBJECTS) - 1).bit_length()), 2), -1)
    known = 0
    for begin in range((count - 1) // _RECORDS * _RECORDS, -1, -_RECORDS):
        file.seek(begin * _RECORD.itemsize)
        records = np.frombuffer(file.read(min(_RECORDS, count - begin) * _RECORD.itemsize), _RECORD).copy()
        objects, following = records["object"].astype(np.int64), records["next"].copy()
        known = _follow(objects, begin, walk, walks, table, known, following)
        if known > 3 * len(table) // 4:
            return False
        records["next"] = following
        file.seek(begin * _RECORD.itemsize)
        file.write(records.tobytes())
    return True


@lean_kernel
def _follow(objects: Integers, begin: int, walk: int, walks: int, table: Integers, known: int, following: Integers) -> int:
    """Note backwards where each object is asked for next; return how many the table knows (it ends when that is full)."""
    for row in range(objects.shape[0] - 1, -1, -1):
        mixed = (objects[row] & 0xFFFFFFFF) * 0x2545F491 ^ (objects[row] >> 32) * 0x27D4EB2F
        mixed ^= mixed >> 31
        if mixed % walks != walk:
            continue
        place = (mixed // walks) & (table.shape[0] - 1)
        while table[place, 0] >= 0 and table[place, 0] != objects[row]:
            place = (place + 1) & (table.shape[0] - 1)
        if table[place, 0] >= 0:
            following[row] = table[place, 1]
        else:
            known += 1
            if known > 3 * table.shape[0] // 4:
                return known
        table[place, 0], table[place, 1] = objects[row], begin + row
    return known
