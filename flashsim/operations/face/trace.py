"""``flashsim trace info`` and ``fs.trace``: what a trace says of its workload, in frames, and the trace in another format."""

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
from flashsim.operations.face._traces import Traced, part_of, trace_file
from flashsim.operations.fields import Field, Name, Target, TracePart
from flashsim.operations.operation import operation, working
from flashsim.operations.outcome import REPORT, Listing, Outcome
from flashsim.studies.presentation import trace_report
from flashsim.studies.presentation.terminal import Part
from flashsim.studies.runs.outputs import final_name
from traces.file import conversion
from traces.file.excerpt import requests_of
from traces.summary import information

_PYTHON = "Or a frame with columns operation, offset and length (bytes), or an `fs.trace`."
Trace = Annotated[
    Any, Field("A trace of any format; the format is told by its content.", "FILE", argument=True, reads=True, python=_PYTHON)
]


class TraceOutcome(Outcome, Traced):
    """A trace, or a part of it, summarised; `fs.replay` and a drive take it for a trace.

    Parameters
    ----------
    traced
        The trace as it was given, and which part of it.
    done
        What `traces.summary.information.describe` says.
    """

    FILES = (REPORT,)

    def __init__(self, done: dict[str, Any], title: str, traced: Traced) -> None:
        Outcome.__init__(self, done, title)
        Traced.__init__(self, traced.trace, traced.part)

    def summary(self) -> pd.DataFrame:
        """A row an operation: requests, bytes, and mean and percentiles of the sizes (bytes)."""
        rows = [
            {"operation": name, "requests": each["requests"], "bytes": each["bytes"]}
            | {f"size_{share}": value for share, value in each["size"].items()}
            for name, each in self.done["operations"].items()
        ]
        return pd.DataFrame(rows)

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        return self.done

    def printed(self) -> Iterator[Part]:
        """The format, and what there is to say of the requests."""
        yield f"format: {self.done['format']}"
        for table in trace_report.tables(self.done):
            yield from ("", table)

    def _write_report(self, folder: Path) -> None:
        trace_report.write_report(folder, self.title.partition(" (")[0], self.done, self.provenance)

    def requests(self) -> pd.DataFrame:
        """A row a request, with the columns of a trace; operations by name."""
        with trace_file(self) as path:
            frame: pd.DataFrame = pa.Table.from_batches(list(requests_of(path))).to_pandas()
        return frame.assign(operation=frame["operation"].map(dict(enumerate(OPERATIONS))))

    def over_time(self) -> pd.DataFrame:
        """A row a window of time (or of requests, where nothing is timed): requests, bytes, working set and footprint (bytes)."""
        return trace_report.windows_frame(self.done["over_time"]) if self.done["over_time"] else pd.DataFrame()

    def reuse(self) -> pd.DataFrame:
        """A row a size of a cache (bytes): the share of references that it serves if it replaces the least recently used page."""
        return pd.DataFrame({name: self.done["reuse"].get(name, []) for name in ("cache", "served")})

    def convert(self, target: str | PathLike[str], to: str, *, force: bool = False) -> conversion.Conversion:
        """Write the trace in another format; what that format does not hold is told."""
        if Path(target).exists() and not force:
            raise RefusedError(f"target: {target} exists; force=True replaces it")
        with trace_file(self) as path, working("converting") as progress:
            return conversion.convert(path, Path(target), to, progress)

    def _draw(self) -> Figure:
        if self.done["over_time"]:
            return trace_report.working_set(self.over_time(), self.done["over_time"])
        return trace_report.share_by_size(trace_report.sizes_frame(self.done))


@operation
def trace(
    trace: Trace,
    **part: Unpack[TracePart],
) -> TraceOutcome:
    """Summarise a trace: format, requests, sizes, sequentiality, footprint, working set, reuse distances, and times.

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
    traced = part_of(trace, part)
    with activity("reading") as progress, trace_file(traced) as source:
        done = information.describe(source, progress)
        name = source.name if isinstance(trace, str | PathLike) else "frame"
    lasts = f" over {done['duration'] / SECONDS:,.3g} s" if done["duration"] else ""
    return TraceOutcome(done, f"{name} ({done['format']}): {done['requests']:,} requests{lasts}", traced)


@operation
def convert(
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
        done = conversion.convert(source, target, to, progress)
    told = {"file": final_name(target), "format": to, "requests": done.requests}
    return Listing([f"{done.requests:,} requests in {told['file']}", *done.lines(to)], [told])
