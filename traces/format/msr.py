"""MSR Cambridge: ``Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime``; bytes, and times in steps of 100 ns.

Timestamps count from the year 1601 (Windows file time), further back than 64 bits of nanoseconds reach: the first line becomes 0.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import READ, WRITE
from flashsim.core.units import NEVER
from traces.format import _text
from traces.format.base import Example
from traces.schema import Batches, make_batch

TITLE = "MSR Cambridge block traces (CSV)"
CARRIES = frozenset({"device", "operation", "offset", "length", "arrival", "completed", "label"})
LEAVES_OUT = "the date of the first request, which arrives at 0"
RESOLUTION = 100
FILLS = {"completed": "a ResponseTime of -1"}

#: A response time that was not recorded.
_UNKNOWN = -1
_COLUMNS = {
    "Timestamp": pa.int64(),
    "Hostname": pa.string(),
    "DiskNumber": pa.int16(),
    "Type": pa.string(),
    "Offset": pa.int64(),
    "Size": pa.int64(),
    "ResponseTime": pa.int64(),
}
EXAMPLE = Example(
    b"128166372003061629,hm,1,Read,383496192,32768,413\n128166372016382155,hm,1,Write,0,4096,5\n",
    [(READ, 383496192, 32768, 0), (WRITE, 0, 4096, 1332052600)],
)


def recognise(path: Path) -> bool:
    """Seven fields with Read or Write in the middle."""
    return _text.looks_like(path, rb"\d+,[^,]+,\d+,(Read|Write),\d+,\d+,(\d+|-1)")


def read(path: Path) -> Batches:
    """The host's name is the label; a response time of -1 is not known; a request from before the first line makes the file damaged."""
    first, begin = 0, None
    for lines in _text.read_csv(path, _COLUMNS):
        time = lines.numbers("Timestamp")
        begin = int(time[0]) if begin is None else begin
        lines.refuse((time < begin) | (time - begin >= NEVER // RESOLUTION), "Timestamp is before that of the first line, or far after it")
        response = lines.numbers("ResponseTime")
        unknown = response == _UNKNOWN
        lines.refuse((response < _UNKNOWN) | (response >= NEVER // RESOLUTION), f"ResponseTime must be in [-1, {NEVER // RESOLUTION})")
        arrival, response = (time - begin) * RESOLUTION, np.maximum(response, 0) * RESOLUTION
        lines.refuse(arrival >= NEVER - response, "ResponseTime is too long")
        lines.refuse(lines.numbers("DiskNumber") < 0, "DiskNumber must not be negative")
        operation = lines.choice("Type", ["Read", "Write"])
        completed = pa.array(arrival + response, pa.int64(), mask=unknown)
        columns = {"device": lines.numbers("DiskNumber"), "operation": operation, "arrival": arrival, "completed": completed}
        label = lines.table.column("Hostname").combine_chunks().dictionary_encode()
        yield make_batch(lines.extents("Offset", "Size") | columns, first, label)
        first += len(operation)


def write(batches: Batches, path: Path) -> None:
    """Timestamps count from the trace's own begin; a response time that was not recorded is -1."""

    def columns(batch: pa.RecordBatch) -> list[object]:
        arrival = _text.arrivals(batch, "msr")
        completed = pc.fill_null(batch.column("completed"), 0).to_numpy()
        operation = _text.operations(batch, {READ: "Read", WRITE: "Write"}, "msr")
        label = pc.fill_null(batch.column("label").cast(pa.string()), "")
        label = pc.if_else(pc.equal(label, ""), "host", label)
        if pc.any(pc.match_substring_regex(label, '[",\r\n]')).as_py():
            raise InvalidParameterError("label", "with a comma, quote or line break", "msr cannot hold it")
        ticks = arrival // RESOLUTION
        known = batch.column("completed").is_valid().to_numpy(zero_copy_only=False)
        response = np.where(known, np.rint((completed - arrival) / RESOLUTION).astype(np.int64), _UNKNOWN)
        return [ticks, label, batch.column("device"), operation, batch.column("offset"), batch.column("length"), response]

    _text.write_lines(path, batches, columns, ",")
