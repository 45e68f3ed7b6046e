"""fio's I/O log, version 3: ``time filename action offset length``, bytes and microseconds.

fio 3.33 writes and replays these times in microseconds; its manual of that version says milliseconds.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.core.request import FLUSH, READ
from flashsim.core.units import MICROSECONDS
from traces.file.schema import Batches, make_batch
from traces.format import _fio, _text
from traces.format.base import Example

TITLE = "fio I/O log, version 3"
CARRIES = _fio.CARRIES
LABELS = _fio.LABELS
LEAVES_OUT = "when files were added, opened and closed; that a sync was a datasync"
RESOLUTION = MICROSECONDS
FILLS = {"arrival": "0"}

_COLUMNS = {"time": pa.int64(), "filename": pa.string(), "action": pa.string(), "offset": pa.int64(), "length": pa.int64()}
EXAMPLE = Example(
    b"fio version 3 iolog\n0 /sdb add\n0 /sdb open\n5 /sdb read 4096 512\n9 /sdb sync 0 0\n9 /sdb close\n",
    [(READ, 4096, 512, 5000), (FLUSH, 0, 0, 9000)],
)


def recognise(path: Path) -> bool:
    """The first line says it."""
    return _fio.begins_with(path, 3)


def read(path: Path) -> Batches:
    """Sync and datasync are flushes; the file's name is the label, and `device` its place in order of appearance."""
    first, files = 0, _fio.Files()
    for lines in _fio.read(path, 3, _COLUMNS):
        actions = lines.choice("action", _fio.ACTIONS[: _fio.WAIT])
        columns, labels, rows = files.requests(lines, actions)
        yield make_batch(columns | {"arrival": lines.scaled("time", RESOLUTION)[rows]}, first, labels)
        first += len(rows)


def write(batches: Batches, path: Path) -> None:
    """Times are rounded down to microseconds; a trace without times gets 0 everywhere."""

    def timed(batch: pa.RecordBatch, columns: list[Any]) -> list[Any]:
        untimed = batch.num_rows and batch.column("arrival").null_count == batch.num_rows
        times = np.zeros(batch.num_rows, np.int64) if untimed else _text.arrivals(batch, "fio-iolog") // RESOLUTION
        return [times, *columns]

    _fio.write(batches, path, 3, timed, True, "fio-iolog")
