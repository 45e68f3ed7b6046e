"""libCacheSim's oracleGeneral (`traces.format._records`), as requests to a device.

It does not tell reads from writes: all requests are read as reads, and marked as of unknown operation.  The object is taken for the
number of a 512-byte sector; objects that are hashes are no places on a device and are refused.

A record needs to know the future.  It is written without at first; then the file is walked from its end to its begin, with a table of
objects and where each was asked for last.  As many walks are made as keep that table small, each for its share of the objects.
"""

from pathlib import Path
from typing import BinaryIO

import numpy as np

from flashsim.core import errors, units
from flashsim.core.kernel import lean_kernel
from flashsim.core.page_numbers import PageNumbers
from flashsim.core.replacement import FIRST_PAGE, Numbers
from flashsim.core.request import READ, SECTOR, WRITE, Integers
from traces.file.schema import Batches, column, make_batch
from traces.format import _records, _text
from traces.format._records import AT_ONCE, ORACLE
from traces.format.base import Example

TITLE = "libCacheSim oracleGeneral (binary)"
BASIS = "plausible first records; times in seconds, objects taken for sectors of 512 B"
CARRIES = frozenset({"offset", "length", "arrival"})
LEAVES_OUT = "when an object is asked for next (it is found anew when the trace is written)"
RESOLUTION = units.SECONDS

#: Objects of one walk, about.
_OBJECTS = 1 << 22
EXAMPLE = Example(
    np.array([(5, 100, 4096, 2), (6, 300, 512, -1), (9, 100, 4096, -1)], ORACLE).tobytes(),
    [(READ, 51200, 4096, 5 * units.SECONDS), (READ, 153600, 512, 6 * units.SECONDS), (READ, 51200, 4096, 9 * units.SECONDS)],
)
recognise = _records.is_oracle


def read(path: Path) -> Batches:
    """Time, object and size; the next access is checked and dropped."""
    for first, records in _records.read_oracle(path):
        _records.refuse(path, first, records, records["object"] >= units.NEVER // SECTOR, "its object is a hash, no sector")
        columns = {"offset": records["object"].astype(np.int64) * SECTOR, "length": records["size"].astype(np.int64)}
        columns |= {"operation": np.full(len(records), READ), "arrival": records["time"].astype(np.int64) * units.SECONDS}
        yield make_batch(columns, first, unknown=("operation",))


def write(batches: Batches, path: Path) -> None:
    """Reads and writes, not told apart, that begin at whole sectors, with times in order."""
    last = count = 0
    with path.open("w+b") as file:
        for batch in batches:
            time, length = _text.arrivals(batch, "oracle-general") // RESOLUTION, column(batch, "length")
            _text.operations(batch, {READ: 0, WRITE: 0}, "oracle-general")
            _hold("arrival", time, 1 << 32, "s")
            _hold("length", length - 1, (1 << 32) - 1, "B less than 1")
            records = np.zeros(batch.num_rows, ORACLE)
            records["object"] = _text.whole(batch, "offset", SECTOR, "oracle-general")
            records["time"], records["size"], records["next"] = time, length, -1
            if len(time) and (np.diff(time, prepend=last) < 0).any():
                raise errors.InvalidParameterError("arrival", "not in order", "oracle-general holds times that do not go back")
            last, count = int(time[-1]) if len(time) else last, count + len(time)
            file.write(records.tobytes())
        walk, walks = 0, max(1, -(-count // _OBJECTS))
        while walk < walks:
            linked = _link(file, count, walk, walks)
            walk, walks = (walk + 1, walks) if linked else (0, 2 * walks)


def _hold(what: str, values: Integers, bound: int, unit: str) -> None:
    _text.refuse((values < 0) | (values >= bound), what, lambda row: f"{values[row]} {unit}", f"oracle-general holds 0 to {bound - 1}")


def _link(file: BinaryIO, count: int, walk: int, walks: int) -> bool:
    """Fill in the next accesses of every `walks`-th object, from the last record to the first; False if these are too many objects."""
    objects, latest = PageNumbers(), np.full(min(count, _OBJECTS * 5 // 4), -1)
    for begin in range((count - 1) // AT_ONCE * AT_ONCE, -1, -AT_ONCE):
        file.seek(begin * ORACLE.itemsize)
        records = np.frombuffer(file.read(min(AT_ONCE, count - begin) * ORACLE.itemsize), ORACLE).copy()
        rows = np.flatnonzero((records["object"] * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)) % np.uint64(walks) == walk)[::-1]
        numbers = objects.number(records["object"][rows].astype(np.int64))
        if len(objects) > len(latest):
            return False
        records["next"][rows] = _follow(numbers, begin + rows, latest, np.empty(len(rows), np.int64))
        file.seek(begin * ORACLE.itemsize)
        file.write(records.tobytes())
    return True


@lean_kernel
def _follow(numbers: Numbers, records: Integers, latest: Integers, following: Integers) -> Integers:
    """The next record of each object, of records from the last to the first; `latest` notes it by the object's number."""
    for row in range(numbers.shape[0]):
        place = numbers[row] - FIRST_PAGE
        following[row], latest[place] = latest[place], records[row]
    return following
