"""DiskSim's default ascii trace: ``arrival_ms device lbn blocks flags``, 512-byte blocks; bit 0 of the hexadecimal flags is a read."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa

from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import MILLISECONDS
from traces.format import _text
from traces.format.base import Example
from traces.schema import Batches, make_batch

TITLE = "DiskSim ascii (open loop)"
CARRIES = frozenset({"device", "operation", "offset", "length", "arrival"})
LEAVES_OUT = "blanks beyond one between fields, digits beyond the nanosecond, flags other than that of reads"
RESOLUTION = 1

#: Lines that are judged, and the mean time between requests, ms, beyond which a trace is not taken for one of milliseconds.
_JUDGED, _LONGEST_PAUSE = 1000, 10_000
_COLUMNS = {"arrival": _text.DECIMAL, "device": pa.int16(), "lbn": pa.int64(), "blocks": pa.int64(), "flags": pa.string()}
EXAMPLE = Example(b"0.000000 0 40 8 1\n12.500000 1 0 16 0\n", [(READ, 20480, 4096, 0), (WRITE, 0, 8192, 12500000)])


def recognise(path: Path) -> bool:
    """Five numbers, of which the first has decimals, or is of milliseconds rather than of MQSim's nanoseconds as far as can be told.

    Where times are whole numbers, MQSim's lines look the same.  They are certainly not milliseconds if so few requests came a second.
    """
    if not _text.looks_like(path, rb"\d+(\.\d*)?\s+\d+\s+\d+\s+\d+\s+[0-9a-fA-F]{1,8}"):
        return False
    words = [line.split()[0] for line in _text.head(path, _JUDGED) if line]
    times = [float(word) for word in words if re.fullmatch(rb"\d+(\.\d*)?", word)]
    return any(b"." in word for word in words) or len(times) < 2 or max(times) - min(times) < _LONGEST_PAUSE * (len(times) - 1)


def read(path: Path) -> Batches:
    first = 0
    for lines in _text.read_words(path, _COLUMNS):
        words = lines.table.column("flags").combine_chunks().dictionary_encode()
        texts = [_flags(text) for text in words.dictionary.to_pylist()]
        flags = np.array(texts, np.int64)[words.indices.to_numpy()]
        lines.refuse(flags < 0, "flags must be hexadecimal")
        lines.refuse(lines.numbers("device") < 0, "device must not be negative")
        operation = np.where(flags & 1, READ, WRITE)
        columns = lines.extents("lbn", "blocks", SECTOR, SECTOR)
        arrival = lines.times("arrival", MILLISECONDS)
        yield make_batch(columns | {"device": lines.numbers("device"), "operation": operation, "arrival": arrival}, first)
        first += len(operation)


def _flags(text: str) -> int:
    return int(text, 16) if re.fullmatch("[0-9a-fA-F]{1,15}", text) else -1


def write(batches: Batches, path: Path) -> None:
    def columns(batch: pa.RecordBatch) -> list[object]:
        places = [_text.whole(batch, name, SECTOR, "disksim-ascii") for name in ("offset", "length")]
        operation = _text.operations(batch, {WRITE: 0, READ: 1}, "disksim-ascii")
        return [_text.decimals(_text.arrivals(batch, "disksim-ascii"), MILLISECONDS), batch.column("device"), *places, operation]

    _text.write_lines(path, batches, columns, " ")
