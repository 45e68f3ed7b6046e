"""fio's I/O log, version 2: ``filename action offset length``; ``filename wait microseconds 0`` says how long after the wait before."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.core.request import READ, TRIM, WRITE
from flashsim.core.units import MICROSECONDS
from traces.file.schema import Batches, make_batch
from traces.format import _fio, _text
from traces.format.base import Example

TITLE = "fio I/O log, version 2"
CARRIES = _fio.CARRIES
LABELS = _fio.LABELS
LEAVES_OUT = "where files were added, opened and closed; that a sync was a datasync; waits after the last request"
RESOLUTION = MICROSECONDS

_COLUMNS = {"filename": pa.string(), "action": pa.string(), "offset": pa.int64(), "length": pa.int64()}
EXAMPLE = Example(
    b"fio version 2 iolog\n/a add\n/a open\n/a read 4096 512\n/a wait 250 0\n/a write 0 512\n/a wait 50 0\n/a trim 0 1024\n/a close\n",
    [(READ, 4096, 512, 0), (WRITE, 0, 512, 250000), (TRIM, 0, 1024, 300000)],
)


def recognise(path: Path) -> bool:
    """The first line says it."""
    return _fio.begins_with(path, 2)


def read(path: Path) -> Batches:
    """A request arrives at the sum of the waits before it; in a file without waits, nothing is timed."""
    timed = any(b" wait " in data for *_, data in _text.chunks(path))
    first, now, files = 0, 0, _fio.Files()
    for lines in _fio.read(path, 2, _COLUMNS):
        actions = lines.choice("action", _fio.ACTIONS)
        waits = np.where(actions == _fio.WAIT, lines.scaled("offset", RESOLUTION), 0)
        times = now + np.cumsum(waits)
        lines.refuse(times < now, "the waits sum up to more than a trace holds")
        columns, labels, rows = files.requests(lines, actions)
        yield make_batch(columns | ({"arrival": times[rows]} if timed else {}), first, labels)
        first, now = first + len(rows), int(times[-1])


def write(batches: Batches, path: Path) -> None:
    """Times become waits, rounded down to microseconds; a trace without times is written without waits."""
    now, begun = 0, False

    def timed(batch: pa.RecordBatch, columns: list[Any]) -> list[Any]:
        nonlocal now, begun
        if not batch.num_rows or batch.column("arrival").null_count == batch.num_rows:
            return columns
        times = np.maximum.accumulate(np.maximum(_text.arrivals(batch, "fio-iolog-v2") // RESOLUTION, now))
        waits = np.diff(times, prepend=now)
        now = int(times[-1])
        paused = waits > 0
        paused[0] |= not begun  # a wait of 0, so that the file says it has times
        begun = True
        order = np.argsort(np.concatenate([2 * np.flatnonzero(paused), 2 * np.arange(batch.num_rows) + 1]))
        words = pa.array(["wait"] * int(paused.sum()), pa.string())
        pauses = pa.table([columns[0].filter(pa.array(paused)), words, waits[paused], 0 * waits[paused]], list("abcd"))
        return pa.concat_tables([pauses, pa.table(columns, list("abcd"))]).take(pa.array(order)).columns

    _fio.write(batches, path, 2, timed, False, "fio-iolog-v2")
