"""``flashsim trace info`` and ``fs.trace``: the workload of a trace, in frames, and the trace in another format."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Unpack

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure

from flashsim.core.activity import activity
from flashsim.core.errors import RefusedError
from flashsim.core.request import OPERATIONS
from flashsim.core.units import SECONDS
from flashsim.experiments.presentation import trace_report
from flashsim.experiments.presentation.terminal import Part
from flashsim.experiments.runs.outputs import final_name
from flashsim.operations.face._traces import TracePart, TraceSource, part_of, trace_file
from flashsim.operations.fields import Field, Name, Target
from flashsim.operations.operation import in_words_of_python, operation
from flashsim.operations.outcome import REPORT, Listing, Outcome
from traces.file import conversion
from traces.file.excerpt import requests_of
from traces.summary import information

_PYTHON = "Or a frame with columns operation, offset and length (bytes), or an `fs.trace`."
Trace = Annotated[
    Any, Field("A trace of any format; the format is detected from its content.", "FILE", argument=True, reads=True, python=_PYTHON)
]


class TraceOutcome(Outcome, TraceSource):
    """A trace, or a part of it, summarised (`traces.summary.information.describe`); `fs.replay` and a drive take it for a trace."""

    FILES = (REPORT,)

    def __init__(self, result: dict[str, Any], title: str, source: TraceSource) -> None:
        Outcome.__init__(self, result, title)
        TraceSource.__init__(self, source.trace, source.part)

    def summary(self) -> pd.DataFrame:
        """A row an operation: requests, bytes, and mean and percentiles of the sizes (bytes)."""
        rows = [
            {"operation": name, "requests": each["requests"], "bytes": each["bytes"]}
            | {f"size_{share}": value for share, value in each["size"].items()}
            for name, each in self.result["operations"].items()
        ]
        return pd.DataFrame(rows)

    def as_dict(self) -> dict[str, Any]:
        return self.result

    def printout(self) -> Iterator[Part]:
        yield from (f"format: {self.result['format']}", f"recognised by: {self.result['basis']}")
        for table in trace_report.tables(self.result):
            yield from ("", table)

    def _write_report(self, folder: Path) -> None:
        trace_report.write_report(folder, self.title.partition(" (")[0], self.result, self.provenance)

    def requests(self) -> pd.DataFrame:
        """A row a request, with the columns of a trace; operations by name."""
        with trace_file(self) as path:
            frame: pd.DataFrame = pa.Table.from_batches(list(requests_of(path))).to_pandas()
        return frame.assign(operation=frame["operation"].map(dict(enumerate(OPERATIONS))))

    def over_time(self) -> pd.DataFrame:
        """A row a window of time (or of requests, where nothing is timed): requests, bytes, working set and footprint (bytes)."""
        return trace_report.windows_frame(self.result["over_time"]) if self.result["over_time"] else pd.DataFrame()

    def reuse(self) -> pd.DataFrame:
        """A row a size of a cache (bytes): the share of references that it serves if it replaces the least recently used page."""
        return pd.DataFrame({name: self.result["reuse"].get(name, []) for name in ("cache", "served")})

    def convert(self, target: str | PathLike[str], to: str, *, force: bool = False) -> conversion.Conversion:
        """Write the trace in another format; the result has what that format does not hold."""
        if Path(target).exists() and not force:
            raise RefusedError(f"target: {target} exists; force=True replaces it")
        with trace_file(self) as path, in_words_of_python(), activity("converting") as progress:
            return conversion.convert(path, Path(target), to, progress)

    def _draw(self) -> Figure:
        if self.result["over_time"]:
            return trace_report.working_set(self.over_time(), self.result["over_time"])
        return trace_report.share_by_size(trace_report.sizes_frame(self.result))


@operation
def trace(trace: Trace, **part: Unpack[TracePart]) -> TraceOutcome:
    """Summarise a trace: format, requests, sizes, sequentiality, footprint, reuse distances, and times.

    Examples::

        flashsim trace info bnl.parquet
        flashsim trace info bnl.parquet --json bnl.json --out-dir shown
        flashsim trace info requests.csv --columns time=Stamp:ms,offset=LBA:sectors,length=Size:bytes

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> fs.trace(pd.DataFrame({"operation": ["read", "write"], "offset": [0, 4096], "length": 4096})).summary()["operation"].tolist()
    ['read', 'write']
    """
    part_source = part_of(trace, part)
    with activity("reading") as progress, trace_file(part_source) as source:
        summary = information.describe(source, progress)
        name = source.name if isinstance(trace, str | PathLike) else "frame"
    lasts = f" over {summary['duration'] / SECONDS:,.3g} s" if summary["duration"] else ""
    return TraceOutcome(summary, f"{name} ({summary['format']}): {summary['requests']:,} requests{lasts}", part_source)


@operation
def trace_convert(
    trace: Trace,
    target: Annotated[Any, Target("The file to write.", "OUT", argument=True)],
    *,
    to: Annotated[str, Name("The format to write, of {writable}; or a Python file.", "FORMAT", completes=("writable",))],
    **part: Unpack[TracePart],
) -> Listing:
    """Write a trace in another format, and say what that format does not hold.

    Examples::

        flashsim trace convert bnl.parquet bnl.iolog --to fio-iolog
        flashsim trace convert bnl.parquet bnl.csv --to spc
        flashsim trace convert bnl.parquet first.parquet --to parquet --window 2s --device-number 0
    """
    with activity("converting") as progress, trace_file(part_of(trace, part)) as source:
        outcome = conversion.convert(source, target, to, progress)
    row = {"file": final_name(target), "format": to, "requests": outcome.requests}
    return Listing([f"{outcome.requests:,} requests in {row['file']}", *outcome.lines(to)], [row])
