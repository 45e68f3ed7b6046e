"""``fs.trace``: what a trace says of its workload, in frames, and the trace in another format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure

from experiments.face._operation import working
from experiments.face._outcome import Outcome
from experiments.face._traces import Traced, trace_file
from experiments.face._units import count, duration, number, several, text
from experiments.presentation import trace_plots
from flashsim.core.errors import RefusedError
from flashsim.core.provenance import provenance
from flashsim.core.request import OPERATIONS
from flashsim.core.units import SECONDS
from traces import information
from traces.conversion import Conversion
from traces.conversion import convert as convert_file
from traces.excerpt import requests_of


class TraceOutcome(Outcome, Traced):
    """A trace, or a part of it, summarised; `fs.replay` and a drive take it for a trace.

    Parameters
    ----------
    trace
        As it was given.
    part
        Which part of it (`traces.excerpt.excerpt`).
    told
        What `traces.information.describe` says.
    """

    def __init__(self, title: str, provenance: dict[str, Any], trace: Any, part: Mapping[str, Any], told: dict[str, Any]) -> None:
        Outcome.__init__(self, title, provenance)
        Traced.__init__(self, trace, part)
        self.told = told

    def summary(self) -> pd.DataFrame:
        """A row an operation: requests, bytes, and mean and percentiles of the sizes (bytes)."""
        rows = [
            {"operation": name, "requests": told["requests"], "bytes": told["bytes"]}
            | {f"size_{share}": value for share, value in told["size"].items()}
            for name, told in self.told["operations"].items()
        ]
        return pd.DataFrame(rows)

    def requests(self) -> pd.DataFrame:
        """A row a request, with the columns of a trace; operations by name."""
        with trace_file(self) as path:
            frame: pd.DataFrame = pa.Table.from_batches(list(requests_of(path))).to_pandas()
        return frame.assign(operation=frame["operation"].map(dict(enumerate(OPERATIONS))))

    def over_time(self) -> pd.DataFrame:
        """A row a window of time (or of requests, where nothing is timed): requests, bytes, working set and footprint (bytes)."""
        return trace_plots.windows_frame(self.told["over_time"]) if self.told["over_time"] else pd.DataFrame()

    def reuse(self) -> pd.DataFrame:
        """A row a size of a cache (bytes): the share of references that it serves if it replaces the least recently used page."""
        return pd.DataFrame({name: self.told["reuse"].get(name, []) for name in ("cache", "served")})

    def convert(self, target: str | PathLike[str], to: str, *, force: bool = False) -> Conversion:
        """Write the trace in another format; what that format does not hold is told.

        Raises
        ------
        RefusedError
            The file exists, and may not be replaced.
        FlashsimError
            There is no such format, it cannot hold a request, or the file cannot be written.
        """
        if Path(target).exists() and not force:
            raise RefusedError(f"target: {target} exists; force=True replaces it")
        with trace_file(self) as path, working("converting") as progress:
            return convert_file(path, Path(target), to, progress)

    def _draw(self) -> Figure:
        if self.told["over_time"]:
            return trace_plots.working_set(self.over_time(), self.told["over_time"])
        return trace_plots.share_by_size(trace_plots.sizes_frame(self.told))


def trace(
    trace: Any,
    *,
    format: str | None = None,
    columns: str | None = None,
    device_number: int | Sequence[int] | None = None,
    start: str | None = None,
    window: str | None = None,
    speed: float = 1,
) -> TraceOutcome:
    """What a trace says of its workload.

    Parameters
    ----------
    trace
        A file of any format (Parquet as flashsim records it, blktrace, blkparse, fio's logs, MSR, SPC, DiskSim, MQSim and others), or a
        frame with columns operation, offset and length (bytes).
    format
        The file's format, or a Python file that reads it, where its content does not tell.
    columns
        Columns of a CSV file, such as ``"time=Stamp:ms,offset=LBA:sectors,length=Size:bytes"``.
    device_number
        Only requests of this device of the trace, or these.
    start, window
        Only from so long after the first request, and only so long, such as ``"10s"``.
    speed
        How many times as fast requests arrive.

    Raises
    ------
    MissingFileError, DamagedFileError, SchemaError
        It is not there, or cannot be read.
    InvalidParameterError
        There is no such part of it.

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> fs.trace(pd.DataFrame({"operation": ["read", "write"], "offset": [0, 4096], "length": 4096})).summary()["operation"].tolist()
    ['read', 'write']
    """
    for value, name in ((start, "start"), (window, "window")):
        if value is not None:
            duration(value, name)
    part = {
        "format_name": None if format is None else text(format, "format"),
        "columns": None if columns is None else text(columns, "columns"),
        "device_number": None
        if device_number is None
        else [count(each, "device_number", 0) for each in several(device_number, "device_number")],
        "start": start,
        "window": window,
        "speed": number(speed, "speed", "a number is needed, such as 2 for twice as fast"),
    }
    traced = Traced(trace, part)
    with working("reading") as progress, trace_file(traced) as source:
        told = information.describe(source, progress)
        name = source.name if isinstance(trace, str | PathLike) else "frame"
    lasts = f" over {told['duration'] / SECONDS:,.3g} s" if told["duration"] else ""
    title = f"{name} ({told['format']}): {told['requests']:,} requests{lasts}"
    return TraceOutcome(title, provenance({"trace": name} | part), trace, part, told)
