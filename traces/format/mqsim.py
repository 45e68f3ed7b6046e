"""MQSim and SSDSim: ``time_ns device lba sectors type`` with 512-byte sectors; type 0 is a write, 1 a read."""

from pathlib import Path

import pyarrow as pa

from flashsim.core.request import READ, SECTOR, WRITE
from traces.format import _text
from traces.format.base import Example
from traces.schema import Batches, make_batch

TITLE = "MQSim or SSDSim ascii"
CARRIES = frozenset({"device", "operation", "offset", "length", "arrival"})
LEAVES_OUT = "blanks beyond one between fields"
RESOLUTION = 1

_COLUMNS = {"time": pa.int64(), "device": pa.int16(), "lba": pa.int64(), "sectors": pa.int64(), "type": pa.string()}
EXAMPLE = Example(
    b"938513000 4 264719034 16 0\n938828000 3 2 8 1\n",
    [(WRITE, 264719034 * SECTOR, 8192, 938513000), (READ, 1024, 4096, 938828000)],
)


def recognise(path: Path) -> bool:
    """Five whole numbers, of which the last is 0 or 1."""
    return _text.looks_like(path, rb"\d+\s+\d+\s+\d+\s+\d+\s+[01]")


def read(path: Path) -> Batches:
    """Sectors become bytes."""
    first = 0
    for lines in _text.read_words(path, _COLUMNS):
        operation = 1 - lines.choice("type", ["0", "1"])
        lines.refuse(lines.numbers("device") < 0, "device must not be negative")
        columns = lines.extents("lba", "sectors", SECTOR, SECTOR)
        yield make_batch(columns | {"device": lines.numbers("device"), "operation": operation, "arrival": lines.scaled("time", 1)}, first)
        first += len(operation)


def write(batches: Batches, path: Path) -> None:
    def columns(batch: pa.RecordBatch) -> list[object]:
        places = [_text.whole(batch, name, SECTOR, "mqsim") for name in ("offset", "length")]
        operation = _text.operations(batch, {WRITE: 0, READ: 1}, "mqsim")
        return [_text.arrivals(batch, "mqsim"), batch.column("device"), *places, operation]

    _text.write_lines(path, batches, columns, " ")
