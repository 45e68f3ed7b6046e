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

import numpy as np
import pyarrow as pa

from flashsim.core import errors, units
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE
from flashsim.storage.packed_files import open_bytes
from traces.file.schema import Batches, make_batch
from traces.format import _records
from traces.format.base import Example

TITLE = "VMware vscsi trace (binary), version 1 or 2"
BASIS = "the version in its first records; times in us, places in sectors of 512 B"
LEAVES_OUT = "sequence numbers, segments, what a flush is of, commands other than reads, writes, unmaps and flushes"

_SIZES = [("sequence", "<u4"), ("length", "<u4"), ("segments", "<u4")]
_COMMAND = [("command", "<u2"), ("version", "<u2")]
_PLACES = [("block", "<u8"), ("time", "<u8")]
_RECORDS = {1: np.dtype(_SIZES + _COMMAND + _PLACES), 2: np.dtype([*_COMMAND, *_SIZES, *_PLACES, ("response", "<u8")])}
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
    return _version(path) > 0


def _version(path: Path) -> int:
    """The version of a file, by its first records; 0 of another file."""
    with open_bytes(path) as file:
        begin = file.read(_JUDGED * _RECORDS[2].itemsize)
    for version, kind in _RECORDS.items():
        records = np.frombuffer(begin, kind, min(_JUDGED, len(begin) // kind.itemsize))
        is_operation = _operations(records) >= 0
        if len(records) and (records["version"] >> 8 == version).all() and 2 * is_operation.sum() >= len(records):
            return version
    return 0


def _operations(records: _records.Records) -> _records.Records:
    return np.where(records["command"] < 256, _OPERATION[records["command"] & 0xFF], -1)


def read(path: Path) -> Batches:
    """Reads, writes, unmaps and flushes; a request of version 2 completes its response time after its time."""
    first, version = 0, _version(path)
    if not version:
        raise errors.DamagedFileError(f"trace: {path}, record 0 at byte 0: it is of neither version 1 nor 2")
    for at, records in _records.read_records(path, _RECORDS[version]):
        _records.refuse(path, at, records, records["version"] >> 8 != version, f"it is not of version {version}")
        batch = _requests(path, records, at, first)
        yield batch
        first += batch.num_rows


def _requests(path: Path, records: _records.Records, at: int, first: int) -> pa.RecordBatch:
    operation, timed = _operations(records), records.dtype == _RECORDS[2]
    usable = (operation >= 0) & ((records["length"] > 0) | (operation == FLUSH))
    late = records["time"] >= units.NEVER // 4000
    late |= records["response"] >= units.NEVER // 4000 if timed else False
    _records.refuse(path, at, records, usable & (records["block"] >= (units.NEVER - (1 << 32)) // SECTOR), "its block is beyond any device")
    _records.refuse(path, at, records, usable & late, "its time is too large")
    records, operation = records[usable], operation[usable]
    moves = operation != FLUSH
    columns = {"operation": operation, "arrival": records["time"].astype(np.int64) * units.MICROSECONDS}
    columns["length"] = np.where(moves, records["length"], 0).astype(np.int64)
    columns["offset"] = np.where(moves, records["block"], 0).astype(np.int64) * SECTOR
    if timed:
        columns["completed"] = columns["arrival"] + records["response"].astype(np.int64) * units.MICROSECONDS
    return make_batch(columns, first)
