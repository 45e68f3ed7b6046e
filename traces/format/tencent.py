"""Tencent cloud block storage: ``Timestamp,Offset,Size,IOType,VolumeID``; seconds, 512-byte sectors; type 0 is a read, 1 a write.

Volume numbers are larger than the schema's devices: the volume is the label, and `device` its place in order of appearance.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import SECONDS
from traces.format import _text
from traces.format.base import Example
from traces.schema import Batches, make_batch

TITLE = "Tencent CBS block traces (CSV)"
CARRIES = frozenset({"device", "operation", "offset", "length", "arrival", "label"})
LEAVES_OUT = ""
RESOLUTION = SECONDS
LABELS = r"[0-9]+"

_COLUMNS = {"Timestamp": pa.int64(), "Offset": pa.int64(), "Size": pa.int64(), "IOType": pa.string(), "VolumeID": pa.string()}
EXAMPLE = Example(
    b"1538323200,12910952,128,0,1063\n1538323201,6265688,8,1,1064\n",
    [(READ, 12910952 * SECTOR, 65536, 1538323200 * SECONDS), (WRITE, 6265688 * SECTOR, 4096, 1538323201 * SECONDS)],
)


def recognise(path: Path) -> bool:
    """Five whole numbers, of which the fourth is 0 or 1."""
    return _text.looks_like(path, rb"\d+,\d+,\d+,[01],\d+")


def read(path: Path) -> Batches:
    """Sectors become bytes, and seconds nanoseconds."""
    first, volumes = 0, dict[str, int]()
    for lines in _text.read_csv(path, _COLUMNS):
        operation = lines.choice("IOType", ["0", "1"])
        label = lines.table.column("VolumeID").combine_chunks().dictionary_encode()
        numbers = np.array([volumes.setdefault(volume, len(volumes)) for volume in label.dictionary.to_pylist()], np.int64)
        device = numbers[label.indices.to_numpy()]
        lines.refuse(device >= 1 << 15, f"it is of the {1 << 15}th volume, and a trace holds fewer")
        lines.refuse(~pc.match_substring_regex(lines.table.column("VolumeID"), "^[0-9]+$").to_numpy(), "VolumeID must be a number")
        arrival = lines.scaled("Timestamp", RESOLUTION)
        columns = {"device": device, "operation": operation, "arrival": arrival}
        yield make_batch(lines.extents("Offset", "Size", SECTOR, SECTOR) | columns, first, label)
        first += len(operation)


def write(batches: Batches, path: Path) -> None:
    """Reads and writes of whole sectors, with times; a request without a label is of the volume with its device number."""

    def columns(batch: pa.RecordBatch) -> list[object]:
        operation = _text.operations(batch, {READ: 0, WRITE: 1}, "tencent")
        places = [_text.whole(batch, name, SECTOR, "tencent") for name in ("offset", "length")]
        label = pc.fill_null(batch.column("label").cast(pa.string()), "")
        named = pc.not_equal(label, "")
        if pc.any(pc.and_(named, pc.invert(pc.match_substring_regex(label, "^[0-9]+$")))).as_py():
            raise InvalidParameterError("label", "text", "tencent holds volume numbers only")
        volume = pc.if_else(named, label, batch.column("device").cast(pa.string()))
        return [_text.arrivals(batch, "tencent") // RESOLUTION, *places, operation, volume]

    _text.write_lines(path, batches, columns, ",")
