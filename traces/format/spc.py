"""Storage Performance Council, revision 1.0.1: ``ASU,LBA,Size,Opcode,Timestamp``; LBA in 512-byte blocks, size in bytes, seconds."""

import re
from pathlib import Path

import pyarrow as pa

from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import SECONDS
from traces.format import _text
from traces.format.base import Example
from traces.schema import Batches, make_batch

TITLE = "SPC trace (CSV)"
CARRIES = frozenset({"device", "operation", "offset", "length", "arrival"})
LEAVES_OUT = "blanks, digits beyond the nanosecond, optional fields"
RESOLUTION = 1

_COLUMNS = {"ASU": pa.int16(), "LBA": pa.int64(), "Size": pa.int64(), "Opcode": pa.string(), "Timestamp": _text.DECIMAL}
#: What follows the fifth field is optional, and free.
_OPTIONAL = re.compile(rb"^((?:[^,\n]*,){4}[^,\n]*),.*$", re.MULTILINE)
EXAMPLE = Example(
    b"0,20941264,8192,W,0.551706\n1, 20939840 ,512,r,0.554041,extra\n",
    [(WRITE, 20941264 * SECTOR, 8192, 551706000), (READ, 20939840 * SECTOR, 512, 554041000)],
)


def recognise(path: Path) -> bool:
    return _text.looks_like(path, rb"\d+\s*,\s*\d+\s*,\s*\d+\s*,\s*[rRwW]\s*,\s*\d+(\.\d*)?\s*(,.*)?")


def read(path: Path) -> Batches:
    """The application storage unit is the device; optional fields are dropped."""
    first = 0
    for lines in _text.read_csv(path, _COLUMNS, _required):
        operation = lines.choice("Opcode", ["r", "w", "R", "W"]) % 2
        lines.refuse(lines.numbers("ASU") < 0, "ASU must not be negative")
        arrival = lines.times("Timestamp", SECONDS)
        columns = {"device": lines.numbers("ASU"), "operation": operation, "arrival": arrival}
        yield make_batch(lines.extents("LBA", "Size", SECTOR) | columns, first)
        first += len(operation)


def _required(data: bytes) -> bytes:
    plain = data.replace(b" ", b"").replace(b"\t", b"")
    return _OPTIONAL.sub(rb"\1", plain) if _OPTIONAL.search(plain) else plain


def write(batches: Batches, path: Path) -> None:
    """Reads and writes that begin at whole sectors, with times."""

    def columns(batch: pa.RecordBatch) -> list[object]:
        operation = _text.operations(batch, {READ: "R", WRITE: "W"}, "spc")
        time = _text.decimals(_text.arrivals(batch, "spc"), SECONDS)
        return [batch.column("device"), _text.whole(batch, "offset", SECTOR, "spc"), batch.column("length"), operation, time]

    _text.write_lines(path, batches, columns, ",")
