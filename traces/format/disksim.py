"""DiskSim's validation traces: ``R|W Hit|Miss|Doub|Trip lbn blocks response_us think_us``, 512-byte blocks, one request at a time.

The next request is issued think_us after the completion, so a line's think time belongs to the request of the next line here; the
drive's own view of its cache (Hit, Miss, ...) is kept as `tag`: 0, 1, 2, 3 in the order above.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import MICROSECONDS
from traces.file.schema import Batches, make_batch
from traces.format import _text
from traces.format.base import Example

TITLE = "DiskSim validation trace (closed loop, measured response times)"
CARRIES = frozenset({"operation", "offset", "length", "tag", "dependency", "think", "arrival", "started", "completed"})
LEAVES_OUT = "blanks beyond one between fields, digits beyond the nanosecond, the think time after the last request"
RESOLUTION = 1

#: What the drive did, by `tag`.
KINDS = ["Hit", "Miss", "Doub", "Trip"]
_COLUMNS = {
    "operation": pa.string(),
    "cache": pa.string(),
    "lbn": pa.int64(),
    "blocks": pa.int64(),
    "response": _text.DECIMAL,
    "think": _text.DECIMAL,
}
EXAMPLE = Example(
    b"R Miss  564347     2     14095.370     13876.270\nW Hit   564349     4      1414.000     18746.770\n",
    [(READ, 564347 * SECTOR, 1024, 0), (WRITE, 564349 * SECTOR, 2048, 27971640)],
)


def recognise(path: Path) -> bool:
    return _text.looks_like(path, rb"[RW]\s+(Hit|Miss|Doub|Trip)\s+\d+\s+\d+\s+[\d.]+\s+[\d.]+")


def read(path: Path) -> Batches:
    """The first request arrives at 0; the think time of the last line is dropped, since no request follows."""
    first, arrival, thought = 0, 0, 0
    for lines in _text.read_words(path, _COLUMNS):
        response, after = lines.times("response", MICROSECONDS), lines.times("think", MICROSECONDS)
        think = np.concatenate([[thought], after[:-1]])
        arrivals = arrival + np.concatenate([[0], np.cumsum(response + after)])
        columns = lines.extents("lbn", "blocks", SECTOR, SECTOR) | {
            "operation": lines.choice("operation", ["R", "W"]),
            "tag": lines.choice("cache", KINDS),
            "dependency": np.arange(first - 1, first + len(think) - 1),
            "think": think,
            "arrival": arrivals[:-1],
            "started": arrivals[:-1],
            "completed": arrivals[:-1] + response,
        }
        yield make_batch(columns, first)
        first, arrival, thought = first + len(think), int(arrivals[-1]), int(after[-1])


def write(batches: Batches, path: Path) -> None:
    """Each request must wait for the one before, and have been timed; the last line's think time is 0."""
    held: pa.RecordBatch | None = None

    def lines(batch: pa.RecordBatch, following: int) -> list[object]:
        arrival, completed = _text.arrivals(batch, "disksim"), _text.column(batch, "completed")
        tag = _text.column(batch, "tag")
        if np.any((tag < 0) | (tag >= len(KINDS))):
            raise InvalidParameterError("tag", int(tag.max()), f"disksim keeps {', '.join(KINDS)} there: 0 to {len(KINDS) - 1}")
        think = np.append(_text.column(batch, "think")[1:], following)
        places = [_text.whole(batch, name, SECTOR, "disksim") for name in ("offset", "length")]
        operation = _text.operations(batch, {READ: "R", WRITE: "W"}, "disksim")
        times = [_text.decimals(values, MICROSECONDS) for values in (completed - arrival, think)]
        return [operation, pa.array(KINDS).take(pa.array(tag)), *places, *times]

    def checked() -> Batches:
        first = 0
        for batch in batches:
            if batch.column("completed").null_count:
                raise InvalidParameterError("completed", "not recorded", "disksim needs the response time of every request")
            if not np.array_equal(_text.column(batch, "dependency"), np.arange(first - 1, first + batch.num_rows - 1)):
                raise InvalidParameterError("dependency", "not a chain", "disksim holds requests that each wait for the one before")
            first += batch.num_rows
            if batch.num_rows:
                yield batch

    following: list[int] = []

    def delayed() -> Batches:
        nonlocal held
        for batch in checked():
            if held is not None:
                following.append(int(_text.column(batch, "think")[0]))
                yield held
            held = batch
        if held is not None:
            following.append(0)
            yield held

    _text.write_lines(path, delayed(), lambda batch: lines(batch, following.pop()), " ")
