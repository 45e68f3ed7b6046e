"""Our own format: `traces.schema` as a Parquet file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from flashsim.core.errors import DamagedFileError
from traces.parquet_writer import ParquetWriter
from traces.schema import SCHEMA, Batches, open_trace

TITLE = "flashsim's own trace (Parquet)"
CARRIES = frozenset(SCHEMA.names)
RESOLUTION = 1


def recognise(path: Path) -> bool:
    """Parquet files begin with PAR1; whether the rest is a trace is told when it is read."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def read(path: Path) -> Batches:
    """Read row by row, as it was recorded."""
    file = open_trace(path)
    try:
        yield from file.iter_batches(batch_size=1 << 18)
    except (OSError, pa.ArrowException) as problem:
        raise DamagedFileError(f"trace: {path} is damaged: {problem}".split("\n", 1)[0]) from problem


def write(batches: Batches, path: Path) -> None:
    """Write everything."""
    with ParquetWriter(path) as writer:
        for batch in batches:
            writer.write(batch)
