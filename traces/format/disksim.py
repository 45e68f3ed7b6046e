"""DiskSim's validation traces: ``R|W Hit|Miss|Doub|Trip lbn blocks response_us think_us``, 512-byte blocks, one request at a time.

The next request is issued think_us after the completion, so a line's think time belongs to the request of the next line here; the
drive's own view of its cache (Hit, Miss, ...) is kept as `tag`: 0, 1, 2, 3 in the order above.
"""

from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from flashsim.core import errors, units
from flashsim.core.request import READ, SECTOR, WRITE
from traces.file.schema import Batches, column, make_batch
from traces.format import _text
from traces.format.base import Example

TITLE = "DiskSim validation trace (closed loop, measured response times)"
BASIS = "what the drive's cache did, in its first lines; times in us, places in sectors of 512 B"
CARRIES = frozenset({"operation", "offset", "length", "tag", "dependency", "think", "arrival", "started", "completed"})
LEAVES_OUT = "blanks beyond one between fields, digits beyond the nanosecond, the think time after the last request"
RESOLUTION = 1

#: The drive's answers, by `tag`.
KINDS = ["Hit", "Miss", "Doub", "Trip"]
_COLUMNS = {"operation": pa.string(), "cache": pa.string(), "lbn": pa.int64(), "blocks": pa.int64()}
_COLUMNS |= {"response": _text.DECIMAL, "think": _text.DECIMAL}
EXAMPLE = Example(
    b"R Miss  564347     2     14095.370     13876.270\nW Hit   564349     4      1414.000     18746.770\n",
    [(READ, 564347 * SECTOR, 1024, 0), (WRITE, 564349 * SECTOR, 2048, 27971640)],
)


def recognise(path: Path) -> bool:
    return _text.looks_like(path, rb"[RW]\s+(Hit|Miss|Doub|Trip)\s+\d+\s+\d+\s+[\d.]+\s+[\d.]+")


def read(path: Path) -> Batches:
    """The first request arrives at 0; the think time of the last line is dropped, since no request follows."""
    first, begin, think_before = 0, 0, 0
    for lines in _text.read_words(path, _COLUMNS):
        response, think_after = lines.times("response", units.MICROSECONDS), lines.times("think", units.MICROSECONDS)
        ends = begin + np.cumsum(response + think_after)
        arrival = np.append(begin, ends[:-1])
        columns = lines.extents("lbn", "blocks", SECTOR, SECTOR) | {"arrival": arrival, "started": arrival, "completed": arrival + response}
        columns |= {"operation": lines.choice("operation", ["R", "W"]), "tag": lines.choice("cache", KINDS)}
        columns |= {"dependency": np.arange(first, first + len(ends)) - 1, "think": np.append(think_before, think_after[:-1])}
        yield make_batch(columns, first)
        first, begin, think_before = first + len(ends), int(ends[-1]), int(think_after[-1])


def write(batches: Batches, path: Path) -> None:
    """Each request must wait for the one before, and have been timed; the last line's think time is 0."""
    with path.open("wb") as file:
        for batch, following in pairwise(chain(_chain(batches), [None])):
            assert batch is not None
            think = np.append(column(batch, "think")[1:], 0 if following is None else column(following, "think")[0])
            arrival, tag = _text.arrivals(batch, "disksim"), column(batch, "tag")
            if np.any((tag < 0) | (tag >= len(KINDS))):
                raise errors.InvalidParameterError("tag", int(tag.max()), f"disksim keeps {', '.join(KINDS)} there: 0 to {len(KINDS) - 1}")
            places = [_text.whole(batch, name, SECTOR, "disksim") for name in ("offset", "length")]
            operation = _text.operations(batch, {READ: "R", WRITE: "W"}, "disksim")
            times = [_text.decimals(values, units.MICROSECONDS) for values in (column(batch, "completed") - arrival, think)]
            _text.write_table(file, [operation, pa.array(KINDS).take(pa.array(tag)), *places, *times], " ")


def _chain(batches: Batches) -> Batches:
    first = 0
    for batch in batches:
        if batch.column("completed").null_count:
            raise errors.InvalidParameterError("completed", "not recorded", "disksim needs the response time of every request")
        if not np.array_equal(column(batch, "dependency"), np.arange(first - 1, first + batch.num_rows - 1)):
            raise errors.InvalidParameterError("dependency", "not a chain", "disksim holds requests that each wait for the one before")
        first += batch.num_rows
        if batch.num_rows:
            yield batch
