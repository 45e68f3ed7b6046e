"""Traces as they come: files of any format, DataFrames, and requests drawn from a pattern, all as trace files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.face._tables import arrow_table
from experiments.face._units import text
from experiments.replaying.survey import WINDOW
from flashsim.core.errors import InvalidParameterError, SchemaError, UnknownNameError
from flashsim.core.request import OPERATIONS
from flashsim.core.rng import generator
from traces.excerpt import Excerpt, excerpt
from traces.parquet_writer import ParquetWriter
from traces.schema import SCHEMA, make_batch, schema_with
from traces.workload.base import Pattern

#: What a frame of requests must have; what else it may have are the columns of a trace.
_NEEDED = ("operation", "offset", "length")


class Traced:
    """What stands for a trace: its file or frame, and which part of it (`traces.excerpt.excerpt`)."""

    def __init__(self, trace: Any, part: Mapping[str, Any]) -> None:
        self.trace, self.part = trace, part


@contextmanager
def trace_file(trace: Any, parameter: str = "trace") -> Iterator[Excerpt]:
    """A trace, or a part of it, as a file, made for the while if it is a frame.

    Raises
    ------
    InvalidParameterError, SchemaError
        It is neither the path of a file nor a frame of requests.
    """
    trace, part = (trace.trace, trace.part) if isinstance(trace, Traced) else (trace, {})
    if isinstance(trace, str | PathLike):
        yield excerpt(Path(text(trace, parameter)), **part)
        return
    frame = arrow_table(trace, parameter).to_pandas()
    with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
        path = Path(folder) / "trace.parquet"
        pq.write_table(as_trace(frame, parameter), path)
        yield excerpt(path, **part)


def as_trace(frame: pd.DataFrame, parameter: str = "trace") -> pa.Table:
    """Requests as a trace.

    Raises
    ------
    SchemaError
        Columns that are missing, or hold no whole numbers.
    UnknownNameError
        An operation or a column that there is not.
    """
    missing = [name for name in _NEEDED if name not in frame]
    if missing:
        raise SchemaError(f"{parameter}: the frame has no column {missing[0]}; a request needs {', '.join(_NEEDED)} (bytes)")
    unknown = [name for name in frame if name not in SCHEMA.names]
    if unknown:
        raise UnknownNameError(f"{parameter}: column", str(unknown[0]), SCHEMA.names)
    if not len(frame):
        raise InvalidParameterError(parameter, "an empty frame", "there must be a request in it")
    columns: dict[str, Any] = {"operation": _operations(frame["operation"], parameter)}
    for name in frame.columns.difference(["operation", "label", "id"]):
        columns[str(name)] = _numbers(frame[name], f"{parameter}: {name}")
    return pa.Table.from_batches([make_batch(columns)], schema_with({}))


def _operations(values: pd.Series[Any], parameter: str) -> Any:
    if pd.api.types.is_integer_dtype(values):
        return _numbers(values, f"{parameter}: operation")
    codes = values.astype(str).map({name: code for code, name in enumerate(OPERATIONS)})
    if codes.isna().any():
        raise UnknownNameError(f"{parameter}: operation", str(values[codes.isna()].iloc[0]), OPERATIONS)
    return codes.to_numpy(np.int8)


def _numbers(values: pd.Series[Any], what: str) -> Any:
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.isna().any() or (numbers < 0).any() or (numbers % 1 != 0).any():
        bad = values[numbers.isna() | ~(numbers >= 0) | (numbers % 1 != 0)].iloc[0]
        raise SchemaError(f"{what}: {bad!r} is no whole number of at least 0")
    return numbers.to_numpy(np.int64)


@contextmanager
def drawn(pattern: Pattern, requests: int, seed: int) -> Iterator[Path]:
    """Requests of one pattern as a trace file."""
    offsets = pattern.offsets(requests, generator(seed, "requests"))
    with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
        path = Path(folder) / "drawn.parquet"
        with ParquetWriter(path) as writer:
            for begin in range(0, requests, WINDOW):
                piece = offsets[begin : begin + WINDOW]
                same = {"operation": np.full(len(piece), pattern.operation, np.int8), "length": np.full(len(piece), pattern.size)}
                writer.write(make_batch({"offset": piece, **same}, begin))
        yield path
