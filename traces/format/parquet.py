"""Our own format: `traces.file.schema` as a Parquet file."""

from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from flashsim.core import errors, units
from flashsim.core.request import OPERATIONS
from traces.file.recording import ParquetWriter
from traces.file.schema import DAMAGE, SCHEMA, Batches, open_trace, provenance_of, unknown_columns
from traces.format._text import Bools

TITLE = "flashsim's own trace (Parquet)"
BASIS = "Parquet with the columns of a trace; times in ns, places in bytes"
CARRIES = frozenset(SCHEMA.names)
RESOLUTION = 1
KEEPS_UNKNOWN = True
#: Other formats are Parquet files too.
GENERIC = True

#: Ends of the ranges of columns' values, which begin at 0.
_BOUNDS = {"operation": len(OPERATIONS), "device": 1 << 15}
_BOUNDS |= dict.fromkeys(("offset", "length", "think", "arrival", "started", "completed"), units.NEVER)


def recognise(path: Path) -> bool:
    """Parquet files begin with PAR1; whether the rest is a trace is told when it is read."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def read(path: Path) -> Batches:
    file, first = open_trace(path), 0
    try:
        for group in range(file.num_row_groups):  # one by one: Arrow keeps what it has read of all groups that are asked for at once
            for batch in file.iter_batches(batch_size=1 << 18, row_groups=[group]):
                _check(path, batch, first)
                yield batch
                first += batch.num_rows
    except DAMAGE as problem:
        raise errors.DamagedFileError(f"trace: {path} is damaged: {problem}".split("\n", 1)[0]) from problem


def _check(path: Path, batch: pa.RecordBatch, first: int) -> None:
    for name, end in _BOUNDS.items():
        column = batch.column(name)
        values = (column.fill_null(0) if column.null_count else column).to_numpy()
        if len(values) and (values.min() < 0 or values.max() >= end):
            _refuse(path, batch, first, name, (values < 0) | (values >= end))
    offset, length, dependency = (batch.column(name).to_numpy() for name in ("offset", "length", "dependency"))
    _refuse(path, batch, first, "length", offset + length >= units.NEVER)
    _refuse(path, batch, first, "dependency", (dependency < -1) | (dependency >= np.arange(first, first + batch.num_rows)))


def _refuse(path: Path, batch: pa.RecordBatch, first: int, name: str, bad: Bools) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise errors.DamagedFileError(f"trace: {path}, request {first + row}: its {name} is {batch.column(name)[row].as_py()}")


def write(batches: Batches, path: Path) -> None:
    """Write everything, with where the trace came from, if the first batch says so."""
    first = next(batches, None)
    schema = SCHEMA if first is None else first.schema
    with ParquetWriter(path, provenance_of(schema), unknown_columns(schema)) as writer:
        for batch in chain([] if first is None else [first], batches):
            writer.write(batch)
