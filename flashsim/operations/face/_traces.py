"""Traces as arguments: files of any format, DataFrames, and requests drawn from a pattern, all as trace files."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.core.errors import CapacityError, InvalidParameterError, SchemaError, UnknownNameError
from flashsim.core.processes import free_memory
from flashsim.core.request import OPERATIONS
from flashsim.core.rng import generator
from flashsim.core.source_files import is_trustworthy, make_private
from flashsim.core.units import format_size
from flashsim.experiments.replaying.survey import WINDOW
from flashsim.experiments.runs import kept
from flashsim.operations.face._arguments import A_TRACE, arrow_table
from flashsim.operations.fields import Count, Duration, Name, Number, duration, each, number, seed, text
from traces.file.excerpt import Excerpt, excerpt
from traces.file.recording import ParquetWriter
from traces.file.schema import SCHEMA, default, make_batch, schema_with
from traces.format._text import refuse_lengths
from traces.format.base import recognise
from traces.workload.base import Pattern

#: Columns that a frame of requests must have; further ones are those of a trace.
_NEEDED = ("operation", "offset", "length")
#: Bytes of memory that drawing one request takes: its offset, and what that is made of.
_DRAWING = 3 * 8


def _duration_text(value: Any, parameter: str) -> Any:
    """A time with a unit, as it was given."""
    duration(value, parameter)
    return value


_COLUMNS_OF_CSV = "Columns of a CSV file, such as time=Stamp:ms,offset=LBA:sectors,length=Size:bytes."
_PLAYED = {"metavar": "X", "parse": number("a number is needed, such as 2 for twice as fast")}


class TracePart(TypedDict, total=False):
    """A part of a trace (`traces.file.excerpt.excerpt`)."""

    format: Annotated[
        str | None,
        Name("Format of the trace, if it cannot be detected: {formats}.", "NAME|FILE.py", completes=("formats",), seldom=True),
    ]
    columns: Annotated[str | None, Name(_COLUMNS_OF_CSV, "ROLE=NAME:UNIT,...")]
    device_number: Annotated[Any, Count("Only requests of this device; may be repeated.", parse=each(seed), several=True, seldom=True)]
    start: Annotated[str | None, Duration("Skip this time from the first request on, such as 10s.", parse=_duration_text)]
    window: Annotated[str | None, Duration("Only requests of this time span, from --start on.", parse=_duration_text)]
    speed: Annotated[float, Number("Divide inter-arrival and think times by X.", **_PLAYED, default=1, seldom=True)]


class TraceSource:
    """The source of a trace: its file or frame, and a part of it (`traces.file.excerpt.excerpt`)."""

    def __init__(self, trace: Any, part: Mapping[str, Any]) -> None:
        self.trace, self.part = trace, part


def part_of(trace: Any, part: TracePart) -> TraceSource:
    """A part of a trace, or a part of a part."""
    filters = {"format_name" if name == "format" else name: value for name, value in part.items() if value is not None}
    return TraceSource(trace.trace, {**trace.part, **filters}) if isinstance(trace, TraceSource) else TraceSource(trace, filters)


@contextmanager
def trace_file(trace: Any) -> Iterator[Excerpt]:
    """A trace, or a part of it, as a file, made for the while if it is a frame."""
    trace, part = (trace.trace, trace.part) if isinstance(trace, TraceSource) else (trace, {})
    if isinstance(trace, str | PathLike):
        yield excerpt(Path(text(trace, "trace")), **part)
        return
    frame = arrow_table(trace, "trace", A_TRACE).to_pandas()
    with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
        path = Path(folder) / "trace.parquet"
        pq.write_table(as_trace(frame), path)
        yield excerpt(path, **part)


def as_trace(frame: pd.DataFrame) -> pa.Table:
    """Requests as a trace, numbered anew; one that waited for a request which the frame does not have waits for none."""
    if missing := [name for name in _NEEDED if name not in frame]:
        raise SchemaError(f"trace: the frame has no column {missing[0]}; a request needs {', '.join(_NEEDED)} (bytes)")
    if unknown := [name for name in frame if name not in SCHEMA.names]:
        raise UnknownNameError("trace: column", str(unknown[0]), SCHEMA.names)
    if not len(frame):
        raise InvalidParameterError("trace", "an empty frame", "there must be a request in it")
    columns: dict[str, Any] = {"operation": _operations(frame["operation"])}
    columns |= {str(name): _numbers(frame[name], str(name)) for name in frame.columns.difference(["operation", "label", "id"])}

    def refuse(bad: Any, why: str) -> None:
        if bad.any():
            raise SchemaError(f"trace: row {int(np.argmax(bad))}: {why}")

    refuse_lengths(np.asarray(columns["operation"]), np.asarray(columns["length"]), refuse, "length: ")
    if "id" in frame and "dependency" in frame:
        number = pd.Index(frame["id"])
        if number.has_duplicates:
            raise SchemaError(f"trace: id: {number[number.duplicated()][0]} is there twice, so that dependency is not clear")
        dependency = columns["dependency"].to_numpy()
        columns["dependency"] = number.get_indexer(dependency)
        columns["think"] = np.where((dependency >= 0) & (columns["dependency"] < 0), 0, columns.get("think", 0))
    return pa.Table.from_batches([make_batch(columns)], schema_with({}))


def _operations(values: pd.Series[Any]) -> Any:
    if pd.api.types.is_integer_dtype(values):
        return _numbers(values, "operation")
    codes = values.astype(str).map({name: code for code, name in enumerate(OPERATIONS)})
    if codes.isna().any():
        raise UnknownNameError("trace: operation", str(values[codes.isna()].iloc[0]), OPERATIONS)
    return codes.to_numpy(np.int8)


def _numbers(values: pd.Series[Any], column: str) -> pa.Array:
    field = SCHEMA.field(column)
    least, end = default(column) or 0, 1 << field.type.bit_width - 1
    unknown = values.isna() & field.nullable
    numbers = pd.to_numeric(values.mask(unknown, 0), errors="coerce")
    right = ((numbers >= least) & (numbers < end) & (numbers % 1 == 0)).fillna(False).astype(bool)
    if not right.all():
        bad = values[~right].tolist()[0]
        raise SchemaError(f"trace: {column}: {bad!r} is not a whole number of at least {least} and below {end}")
    return pa.array(numbers.to_numpy(np.int64), field.type, mask=unknown.to_numpy())


@contextmanager
def pattern_trace(pattern: Pattern, requests: int, seed: int, parameter: str, stream: int = 0) -> Iterator[Path]:
    """Requests of one pattern as a trace file, all of one stream."""
    room, free = requests * _DRAWING, free_memory()
    if free is not None and room > free:
        request = f"{requests:,} requests of {format_size(pattern.size)} take {format_size(room)} of memory"
        raise CapacityError(f"{parameter}: {request}, and {format_size(free)} are free; ask for less at a time, or for larger requests")
    offsets = pattern.offsets(requests, generator(seed, "requests"))
    with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
        path = Path(folder) / "drawn.parquet"
        with ParquetWriter(path) as writer:
            for begin in range(0, requests, WINDOW):
                piece = offsets[begin : begin + WINDOW]
                same = {"operation": np.full(len(piece), pattern.operation, np.int8), "length": np.full(len(piece), pattern.size)}
                same |= {"stream": np.full(len(piece), stream, np.int16)} if stream else {}
                writer.write(make_batch({"offset": piece, **same}, begin))
        yield path


def lasting(source: Excerpt, is_file: bool) -> Excerpt:
    """The trace as a file that later runs know again: a part of one, a frame or a recording is kept under its content."""
    is_recording = (source.format or recognise(source.path)).partition(":")[0] == "calls"  # of a program
    if is_file and source.whole and source.speed == 1 and not is_recording:
        return source
    folder = kept.place("tables", "")
    make_private(folder)
    with tempfile.TemporaryDirectory(dir=folder) as own:
        partial = Path(own, "trace.parquet")
        with ParquetWriter(partial) as writer:
            for batch in source.batches():
                writer.write(batch)
        with partial.open("rb") as file:
            target = folder / f"{hashlib.file_digest(file, 'sha256').hexdigest()[:32]}.parquet"
        if not target.exists() or not is_trustworthy(target):
            os.replace(partial, target)
    return Excerpt(target, "parquet")
