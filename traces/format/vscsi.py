"""VMware's vscsi traces, as CloudPhysics published them: fixed records, little-endian, of version 1 (32 bytes) or 2 (40 bytes).

::

    version 1                        version 2
     0  sequence  uint32              0  command   uint16   SCSI operation code
     4  length    uint32   bytes      2  version   uint16   in the upper byte
     8  segments  uint32              4  sequence  uint32
    12  command   uint16              8  length    uint32   bytes
    14  version   uint16             12  segments  uint32
    16  block     uint64   512 B     16  block     uint64   512 B
    24  time      uint64   us        24  time      uint64   us
                                     32  response  uint64   us

The layout is that of libCacheSim's reader (``customizedReader/vscsi.h``).
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import DamagedFileError
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE
from flashsim.core.units import MICROSECONDS, NEVER
from traces.file.schema import Batches, make_batch
from traces.format import _packed, _text
from traces.format.base import Example

TITLE = "VMware vscsi trace (binary), version 1 or 2"
LEAVES_OUT = "sequence numbers, segments, commands other than reads, writes, unmaps and flushes"

_PLACES = [("block", "<u8"), ("time", "<u8")]
_RECORDS = {
    1: np.dtype([("sequence", "<u4"), ("length", "<u4"), ("segments", "<u4"), ("command", "<u2"), ("version", "<u2"), *_PLACES]),
    2: np.dtype(
        [("command", "<u2"), ("version", "<u2"), ("sequence", "<u4"), ("length", "<u4"), ("segments", "<u4"), *_PLACES, ("response", "<u8")]
    ),
}
_BLOCK = 1 << 18
#: Records that must all be of one version, and of plausible commands, for a file to be recognised.
_JUDGED = 32
#: SCSI operation codes (6, 10, 12, 16 bytes; with verification): what each is here, and -1 for all others.
_OPERATION = np.full(256, -1)
_OPERATION[[0x08, 0x28, 0xA8, 0x88]] = READ
_OPERATION[[0x0A, 0x2A, 0xAA, 0x8A, 0x2E, 0xAE, 0x8E]] = WRITE
_OPERATION[0x42] = TRIM
_OPERATION[[0x35, 0x91]] = FLUSH
EXAMPLE = Example(
    np.array(
        [(0x28, 0x200, 1, 4096, 1, 64, 5, 120), (0x12, 0x200, 2, 36, 1, 0, 6, 3), (0x8A, 0x2FF, 3, 512, 1, 9, 8, 40)], _RECORDS[2]
    ).tobytes(),
    [(READ, 64 * SECTOR, 4096, 5000), (WRITE, 9 * SECTOR, 512, 8000)],
)


def recognise(path: Path) -> bool:
    """The first records carry the same version; most are reads and writes."""
    with _packed.open_bytes(path) as file:
        return _version(file.read(_JUDGED * _RECORDS[2].itemsize)) > 0


def _version(begin: bytes) -> int:
    """The version of a file, by its first bytes; 0 of another file."""
    for version, kind in _RECORDS.items():
        records = np.frombuffer(begin[: min(_JUDGED, len(begin) // kind.itemsize) * kind.itemsize], kind)
        known = (records["command"] < 256) & (_OPERATION[records["command"] & 0xFF] >= 0)
        if len(records) and (records["version"] >> 8 == version).all() and 2 * known.sum() >= len(records):
            return version
    return 0


def read(path: Path) -> Batches:
    """Reads, writes, unmaps and flushes; a request of version 2 completes its response time after its time."""
    first = at = 0
    with _packed.open_bytes(path) as file:
        data = file.read(_JUDGED * _RECORDS[2].itemsize)
        version = _version(data)
        if not version:
            raise DamagedFileError(f"trace: {path}, record 0 at byte 0: it is of neither version 1 nor 2")
        kind = _RECORDS[version]
        while more := file.read(_BLOCK * kind.itemsize - len(data)) or data:
            data = data + more if more is not data else data
            whole = len(data) // kind.itemsize * kind.itemsize
            if not whole:
                raise DamagedFileError(f"trace: {path} is cut short in record {at} at byte {at * kind.itemsize}")
            batch = _requests(path, np.frombuffer(data[:whole], kind), version, at, first)
            yield batch
            first, at, data = first + batch.num_rows, at + whole // kind.itemsize, data[whole:]


def _requests(path: Path, records: npt.NDArray[Any], version: int, at: int, first: int) -> pa.RecordBatch:
    def refuse(bad: _text.Bools, why: str) -> None:
        if bad.any():
            row = at + int(np.argmax(bad))
            raise DamagedFileError(f"trace: {path}, record {row} at byte {row * records.itemsize}: {why}")

    refuse(records["version"] >> 8 != version, f"it is not of version {version}")
    operation = np.where(records["command"] < 256, _OPERATION[records["command"] & 0xFF], -1)
    chosen = (operation >= 0) & ((records["length"] > 0) | (operation == FLUSH))
    response = records["response"] if version > 1 else np.zeros(len(records), np.uint64)
    refuse(chosen & (records["block"] >= (NEVER - (1 << 32)) // SECTOR), "its block is beyond any device")
    refuse(chosen & ((records["time"] >= NEVER // 4000) | (response >= NEVER // 4000)), "its time is too large")
    kept, operation = records[chosen], operation[chosen]
    arrival = kept["time"].astype(np.int64) * MICROSECONDS
    moves = operation != FLUSH
    columns = {"operation": operation, "arrival": arrival, "length": np.where(moves, kept["length"], 0).astype(np.int64)}
    columns["offset"] = np.where(moves, kept["block"], 0).astype(np.int64) * SECTOR
    if version > 1:
        columns["completed"] = arrival + response[chosen].astype(np.int64) * MICROSECONDS
    return make_batch(columns, first)
