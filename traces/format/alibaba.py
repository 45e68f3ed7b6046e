"""Alibaba block traces 2020: ``device_id,opcode,offset,length,timestamp``; bytes and microseconds."""

from pathlib import Path

import pyarrow as pa

from flashsim.core.request import READ, WRITE
from flashsim.core.units import MICROSECONDS
from traces.format import _text
from traces.format.base import Example
from traces.schema import Batches, make_batch

TITLE = "Alibaba block traces (CSV)"
CARRIES = frozenset({"device", "operation", "offset", "length", "arrival"})
LEAVES_OUT = ""
RESOLUTION = MICROSECONDS

_COLUMNS = {"device_id": pa.int16(), "opcode": pa.string(), "offset": pa.int64(), "length": pa.int64(), "timestamp": pa.int64()}
EXAMPLE = Example(
    b"419,W,8792731648,16384,1577808000000046\n419,R,0,512,1577808000000050\n",
    [(WRITE, 8792731648, 16384, 1577808000000046000), (READ, 0, 512, 1577808000000050000)],
)


def recognise(path: Path) -> bool:
    return _text.looks_like(path, rb"\d+,[RW],\d+,\d+,\d+")


def read(path: Path) -> Batches:
    """Times stay as they are: microseconds since 1970."""
    first = 0
    for lines in _text.read_csv(path, _COLUMNS):
        operation = lines.choice("opcode", ["R", "W"])
        lines.refuse(lines.numbers("device_id") < 0, "device_id must not be negative")
        arrival = lines.scaled("timestamp", RESOLUTION)
        columns = {"device": lines.numbers("device_id"), "operation": operation, "arrival": arrival}
        yield make_batch(lines.extents("offset", "length") | columns, first)
        first += len(operation)


def write(batches: Batches, path: Path) -> None:
    def columns(batch: pa.RecordBatch) -> list[object]:
        operation = _text.operations(batch, {READ: "R", WRITE: "W"}, "alibaba")
        time = _text.arrivals(batch, "alibaba") // RESOLUTION
        return [batch.column("device"), operation, batch.column("offset"), batch.column("length"), time]

    _text.write_lines(path, batches, columns, ",")
