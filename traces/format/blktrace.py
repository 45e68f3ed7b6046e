"""blktrace's binary streams: a record of 48 bytes and its payload an event, in the byte order of the machine that recorded it.

::

     0  magic      uint32   0x65617400 | version (7)
     4  sequence   uint32   of its processor
     8  time       uint64   ns
    16  sector     uint64   of 512 bytes
    24  bytes      uint32
    28  action     uint32   what happened, and above 16 bits of categories
    32  pid        uint32
    36  device     uint32   major << 20 | minor
    40  cpu        uint32
    44  error      uint16
    46  pdu_len    uint16   bytes of payload that follow

The layout is `struct blk_io_trace` of Linux, ``include/uapi/linux/blktrace_api.h``.  blktrace writes a file a processor,
``NAME.blktrace.0``, ``NAME.blktrace.1``, ...; whichever of these is named, all are read, as blkparse does, and those of idle processors
are empty.  A record that is out of its place in time by at most a block of 8 MiB is put there.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from flashsim.core import errors, units
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, SECTOR, TRIM, WRITE, Integers
from flashsim.storage.packed_files import open_bytes
from traces.file.schema import Batches
from traces.format import _block_events, _records
from traces.format._block_events import COMPLETED, FLUSH_BEFORE, ISSUED, NO_REQUEST, QUEUED, REQUEUED, Events
from traces.format.base import Example

TITLE = "blktrace binary, of one or all processors"
BASIS = "the number that begins its first record; times in ns, places in sectors of 512 B"
CARRIES = _block_events.CARRIES
LEAVES_OUT = _block_events.LEAVES_OUT
LABELS = _block_events.LABELS
RESOLUTION = 1

Order = Literal["little", "big"]
_MAGIC, _VERSION = 0x65617400, 7
_FIELDS = {"magic": "u4", "sequence": "u4", "time": "u8", "sector": "u8", "bytes": "u4", "action": "u4", "pid": "u4", "device": "u4"}
_FIELDS |= {"cpu": "u4", "error": "u2", "pdu_len": "u2"}
_RECORD = {order: np.dtype([(name, sign + kind) for name, kind in _FIELDS.items()]) for order, sign in (("little", "<"), ("big", ">"))}
_SIZE = _RECORD["little"].itemsize
_PAYLOAD_AT = 46

# Actions (blktrace_api.h, enum blktrace_act) and categories (enum blktrace_cat), the latter above the lower 16 bits.
_ACTIONS = {1: QUEUED, 6: REQUEUED, 7: ISSUED, 8: COMPLETED}
_OF_GROUP = 1 << 8
_READ, _WRITE, _FLUSH, _NOTIFY, _COMMAND, _DISCARD, _FUA = (1 << bit for bit in (0, 1, 2, 10, 9, 13, 15))
_CATEGORY_OF = {QUEUED: 1 << 4, REQUEUED: 1 << 5, ISSUED: 1 << 6, COMPLETED: 1 << 7}

_BLOCK = 8 << 20
_PROCESSOR = re.compile(r"(.+\.blktrace\.)(\d+)")
EXAMPLE = Example(
    np.array(
        [
            (_MAGIC | _VERSION, number, time, sector, length, category << 16 | action, 697, 8 << 20, 0, 0, 0)
            for number, (time, sector, length, action, category) in enumerate(
                [
                    (0, 8, 4096, 3, 0x1),
                    (1000, 8, 4096, 7, 0x41),
                    (90000, 8, 4096, 8, 0x81),
                    (100500, 4096, 8192, 7, 0x804A),
                    (300500, 4096, 8192, 8, 0x808A),
                    (400000, 0, 0, 7, 0x45),
                    (500000, 64, 32768, 7, 0x2042),
                ]
            )
        ],
        _RECORD["little"],
    ).tobytes(),
    _block_events.EXAMPLE,
)


def recognise(path: Path) -> bool:
    """The first record's magic number, in either byte order; of an empty file, that of another processor's."""
    for each in [path] if path.stat().st_size else _processors(path)[:1]:
        with open_bytes(each) as file:
            return _order(file.read(4)) is not None
    return False


def _order(begin: bytes) -> Order | None:
    """The byte order of a file, by its first bytes; None of another file."""
    orders: tuple[Order, ...] = ("little", "big")
    fitting = (order for order in orders if len(begin) >= 4 and int.from_bytes(begin[:4], order) & 0xFFFFFF00 == _MAGIC)
    return next(fitting, None)


def read(path: Path) -> Batches:
    """Requests in order of issue (`traces.format._block_events`); all files of the processors together, if the name is one of theirs."""
    return _block_events.requests(lambda: _merge(_processors(path)), path)


def _processors(path: Path) -> list[Path]:
    match = _PROCESSOR.fullmatch(path.name)
    if not match:
        return [path]
    names = [(_PROCESSOR.fullmatch(other.name), other) for other in path.parent.iterdir()]
    files = {int(named[2]): other for named, other in names if named and named[1] == match[1] and other.is_file()}
    return [file for _, file in sorted(files.items()) if file.stat().st_size]


def _merge(paths: list[Path]) -> Iterator[Events]:
    """The events of several files in order of time, as far as each file is."""
    sources = [_events(path) for path in paths]
    if len(sources) == 1:
        yield from sources[0]
        return
    buffers = [_block_events.new_events(0) for _ in sources]
    at_end = [False] * len(sources)
    while not all(at_end):
        for number, source in enumerate(sources):
            while not at_end[number] and not len(buffers[number]):
                batch = next(source, None)
                at_end[number], buffers[number] = batch is None, buffers[number] if batch is None else batch
        limit = min((int(buffers[number]["time"].max()) for number, end in enumerate(at_end) if not end), default=units.NEVER)
        is_ready = [events["time"] <= limit for events in buffers]
        yield _block_events.sorted_events(
            _block_events.concatenate([events[chosen] for events, chosen in zip(buffers, is_ready, strict=True)])
        )
        buffers = [events[~chosen] for events, chosen in zip(buffers, is_ready, strict=True)]


def _events(path: Path) -> Iterator[Events]:
    with open_bytes(path) as file:
        begin = file.read(4)
        order = _order(begin)
        if order is None:
            raise errors.DamagedFileError(f"trace: {path}, record 0 at byte 0: it does not begin with blktrace's number")
        data, at, first = begin, 0, 0
        while block := file.read(_BLOCK):
            data += block
            places = np.empty(len(data) // _SIZE, np.int64)
            count, used, fault = _places(np.frombuffer(data, np.uint8), order == "little", places)
            if fault:
                number = int.from_bytes(data[used : used + 4], order)
                is_record = number & 0xFFFFFF00 == _MAGIC
                what = f"version {number & 0xFF}, but {_VERSION} is read" if is_record else "no record begins there"
                raise errors.DamagedFileError(f"trace: {path}, record {first + count} at byte {at + used}: {what}")
            yield _decode(path, first, at, data, places[:count], order)
            data, at, first = data[used:], at + used, first + count
        if (_MAGIC | _VERSION).to_bytes(4, order) in data[_SIZE:]:  # records follow: it is damaged rather than cut short
            raise errors.DamagedFileError(f"trace: {path}, record {first} at byte {at}: its payload is longer than the file")
        if data:
            left_over = f"{len(data)} bytes are left over, and a record has {_SIZE} or more; the {at} bytes before are whole"
            raise errors.DamagedFileError(f"trace: {path} is cut short in record {first} at byte {at}: {left_over}")


@lean_kernel
def _places(data: _records.Bytes, little: bool, places: Integers) -> tuple[int, int, bool]:
    """Fill in where whole records begin; return their number, where the next one begins, and whether that is none of this version."""
    at = count = 0
    while at + _SIZE <= data.shape[0]:
        number = 0
        for byte in range(4):
            number |= int(data[at + byte]) << (8 * byte if little else 24 - 8 * byte)
        if number != _MAGIC | _VERSION:
            return count, at, True
        low, high = int(data[at + _PAYLOAD_AT]), int(data[at + _PAYLOAD_AT + 1])
        size = _SIZE + (low | high << 8 if little else high | low << 8)
        if at + size > data.shape[0]:
            break
        places[count] = at
        count += 1
        at += size
    return count, at, False


def _decode(path: Path, first: int, at: int, data: bytes, places: Integers, order: Order) -> Events:
    packed = len(places) and places[-1] == (len(places) - 1) * _SIZE
    every = np.frombuffer(data, np.uint8)
    whole = every[: len(places) * _SIZE] if packed else every[places[:, None] + np.arange(_SIZE)].reshape(-1)
    records = whole.view(_RECORD[order])
    action, category = records["action"] & (0xFFFF & ~_OF_GROUP), records["action"] >> 16
    known = np.isin(action, list(_ACTIONS)) & (category & (_NOTIFY | _COMMAND) == 0)
    rows, records, category = np.flatnonzero(known), records[known], category[known]
    empty, flushes = records["bytes"] == 0, category & _FLUSH != 0
    bad = (records["time"] >= units.NEVER) | (~empty & (records["sector"] >= (units.NEVER - (1 << 32)) // SECTOR))
    if bad.any():
        row = int(rows[np.argmax(bad)])
        raise errors.DamagedFileError(f"trace: {path}, record {first + row} at byte {at + places[row]}: its time or sector is too large")
    events = _block_events.new_events(len(records))
    events["action"] = np.select([action[known] == number for number in _ACTIONS], list(_ACTIONS.values()))
    kinds = [empty & flushes, empty, category & _DISCARD != 0, category & _WRITE != 0]
    events["operation"] = np.select(kinds, [FLUSH, NO_REQUEST, TRIM, WRITE], READ)
    events["flags"] = np.where(category & _FUA != 0, FORCE_UNIT_ACCESS, 0) | np.where(flushes, FLUSH_BEFORE, 0)
    events["offset"] = np.where(empty, 0, records["sector"]).astype(np.int64) * SECTOR
    for field, column in (("time", "time"), ("bytes", "length"), ("device", "device")):
        events[column] = records[field]
    return events


def write(batches: Batches, path: Path) -> None:
    """One stream, as of processor 0, little-endian; blkparse finds it under a name that ends in ``.blktrace.0``."""
    kinds = np.zeros(4, np.int64)
    kinds[[READ, WRITE, TRIM, FLUSH]] = [_READ, _WRITE, _WRITE | _DISCARD, _READ | _FLUSH]
    count = 0
    with path.open("wb") as file:
        for events in _block_events.events_of(batches, "blktrace"):
            if (events["length"] >= 1 << 32).any():
                raise errors.InvalidParameterError("length", f"{events['length'].max()} B", "blktrace holds lengths below 4 GiB")
            records = np.zeros(len(events), _RECORD["little"])
            records["magic"] = _MAGIC | _VERSION
            records["sequence"] = (np.arange(count, count + len(events)) + 1) & 0xFFFFFFFF
            records["sector"] = events["offset"] // SECTOR
            for column, field in (("time", "time"), ("length", "bytes"), ("device", "device")):
                records[field] = events[column]
            category = kinds[events["operation"]] | np.where(events["flags"] & FORCE_UNIT_ACCESS, _FUA, 0)
            for number, letter in _ACTIONS.items():
                of_it = events["action"] == letter
                records["action"][of_it] = (category[of_it] | _CATEGORY_OF[letter]) << 16 | number
            file.write(records.tobytes())
            count += len(events)
