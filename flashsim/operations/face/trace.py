"""``flashsim trace info`` and ``fs.trace``: the workload of a trace, in frames, and the trace in another format."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from flashsim.core.activity import activity
from flashsim.core.errors import RefusedError
from flashsim.core.request import OPERATIONS
from flashsim.core.units import GIB, KIB, MIB, MICROSECONDS, SECONDS, format_duration, format_size
from flashsim.experiments.presentation.plots import BINARY, LINES, STEPS, legend, lines, panels
from flashsim.experiments.presentation.report import Report, Section
from flashsim.experiments.presentation.tables import Entry, Table, outstanding
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.runs.outputs import final_name
from flashsim.operations.face._traces import TracePart, TraceSource, part_of, trace_file
from flashsim.operations.fields import Field, Name, Target
from flashsim.operations.member_names import names
from flashsim.operations.operation import in_words_of_python, operation
from flashsim.operations.outcome import REPORT, Listing, Outcome
from traces.file import conversion
from traces.file.excerpt import SAMPLES, requests_of
from traces.summary import information

_PYTHON = "Or a frame with columns operation, offset and length (bytes), or an `fs.trace`."
Trace = Annotated[
    Any,
    Field(
        "A trace (its format is detected from its content), or sample:shop, sample:shop-blocks.",
        "FILE",
        argument=True,
        reads=True,
        python=_PYTHON,
    ),
]

_SHARES = {"p50": "median", "p90": "90 %", "p99": "99 %", "p99.9": "99.9 %"}
#: The files with the most requests are shown one by one; windows are shown as so many rows at most.
_MOST_FILES, _MOST_ROWS = 20, 12


def _tables(summary: dict[str, Any]) -> list[Table]:
    """The tables of a summary by `traces.summary.information.describe`; none is empty."""
    every = [_operations(summary), _times(summary), outstanding(summary["outstanding"])]
    every += [make(summary) for make in (_facts, _reuse, _windows, _files)]
    return [table for table in every if len(table)]


def _in_words(summary: dict[str, Any]) -> str:
    """Bytes by operation, distinct bytes, and the share of requests in order, in a sentence."""
    words = {"read": "read", "write": "written", "trim": "trimmed"}
    moved = [f"{format_size(each['bytes'])} {words.get(name, 'moved')}" for name, each in _by_operation(summary).items() if each["bytes"]]
    share = summary["sequential_share"]
    order = "" if share is None else f"; {100 * share:.0f} % of the requests continue the one before"
    return f"{' and '.join(moved) or 'No bytes'}; {format_size(summary['footprint'])} are distinct{order}."


def _operations(summary: dict[str, Any]) -> Table:
    sizes = ("mean", *_SHARES)
    rows = [
        [name, each["requests"], format_size(each["bytes"]), *(format_size(round(each["size"][key])) for key in sizes)]
        for name, each in _by_operation(summary).items()
    ]
    return Table(["operation", "requests", "bytes", "mean size", *_SHARES.values()], rows)


def _by_operation(summary: dict[str, Any]) -> dict[str, Any]:
    """Summaries by operation; requests of a file without operations are plain requests."""
    operations: dict[str, Any] = summary["operations"]
    return {"request": operations["read"]} if "operation" in summary["unknown"] and [*operations] == ["read"] else operations


def _times(summary: dict[str, Any]) -> Table:
    spreads = {
        f"latency of {name}{'es' if name.endswith('sh') else 's'}": operation["latency"]
        for name, operation in _by_operation(summary).items()
        if "latency" in operation
    }
    if summary["between"]:
        spreads["from one arrival to the next"] = summary["between"]
    rows = [[name, *(format_duration(round(spread[key])) for key in ("mean", *_SHARES))] for name, spread in spreads.items()]
    return Table(["time", "mean", *_SHARES.values()], rows)


def _facts(summary: dict[str, Any]) -> Table:
    read, sequential = (None if each is None else f"{100 * each:.1f} %" for each in (summary["read_share"], summary["sequential_share"]))
    duration, error = summary["duration"], summary["footprint_error"]
    rows: list[list[Entry]] = [
        ["requests", f"{summary['requests']:,}"],
        ["devices", f"{summary['devices']:,}"],
        ["distinct bytes read or written", format_size(summary["footprint"]) + (f" (estimate, ± {100 * error:.1f} %)" if error else "")],
        ["share of bytes read", read],
        ["share of requests that continue the one before", sequential],
        ["duration", None if duration is None else format_duration(duration)],
    ]
    if "operation" in summary["unknown"]:
        rows.insert(1, ["operations", "not in the file"])
    if summary["step"]:
        rows.append(["step of times", format_duration(summary["step"])])
    if summary["backward"]:
        rows.append(["arrivals earlier than the one before", f"{summary['backward']:,}"])
    return Table(["fact", "value"], rows)


def _windows(summary: dict[str, Any]) -> Table:
    if not (windows := summary["over_time"]):
        return Table([], [])
    frame = windows_frame(windows)
    step, show = -(-len(frame) // _MOST_ROWS), format_duration if windows["unit"] == "ns" else "{:,}".format
    every = frame[::step].itertuples(index=False, name=None)
    rows = [[show(begin), requests, *map(format_size, sizes)] for begin, requests, *sizes in every]
    length = format_duration(windows["length"]) if windows["unit"] == "ns" else f"{windows['length']:,} requests"
    error = f"distinct bytes are estimates, ± {100 * windows['standard_error']:.1f} %"
    some = "" if step == 1 else f"; shown is one window of {step}"
    header = ["window begins at", "requests", "bytes", "distinct bytes", "distinct since the begin"]
    return Table(header, rows, note=f"windows of {length}; {error}{some}")


def _reuse(summary: dict[str, Any]) -> Table:
    reuse = summary["reuse"]
    if not reuse or not reuse["distance"]:
        return Table([], [])
    rows: list[list[Entry]] = [
        [format_size(size), f"{100 * share:.1f} %" + (f" ± {100 * error:.1f}" if reuse["rate"] < 1 else "")]
        for size, share, error in zip(reuse["cache"], reuse["served"], reuse["error"], strict=True)
    ]
    sample = "" if reuse["rate"] == 1 else f", from a sample of 1 in {round(1 / reuse['rate']):,} pages"
    distances = ", ".join(f"{_SHARES[key]} {format_size(reuse['distance'][key])}" for key in ("p50", "p90", "p99"))
    references = f"{reuse['references']:,} references, by requests that reach the drive, to pages of {format_size(reuse['page'])}"
    note = f"{references}{sample}; reuse distance: {distances}"
    return Table(["LRU cache of", "references served"], rows[-_MOST_ROWS:], note=note)


def _files(summary: dict[str, Any]) -> Table:
    counts = sorted(summary["labels"].items(), key=lambda entry: -entry[1])
    rows: list[list[Entry]] = [[name, count] for name, count in counts[:_MOST_FILES]]
    if len(counts) > _MOST_FILES:
        rows.append([f"{len(counts) - _MOST_FILES} more", sum(count for _, count in counts[_MOST_FILES:])])
    return Table(["file", "requests"], rows if summary["labels"] != {"": summary["requests"]} else [])


def sizes_frame(summary: dict[str, Any]) -> pd.DataFrame:
    """A row an operation and size: bytes, and how many requests."""
    sizes = ((name, size, count) for name, operation in summary["operations"].items() for size, count in operation["sizes"].items())
    rows = [(name, int(size), count) for name, size, count in sizes if size.isdigit()]
    return pd.DataFrame(rows, columns=["operation", "bytes", "requests"])


def windows_frame(over_time: dict[str, Any]) -> pd.DataFrame:
    """A row a window: where it begins (in its unit), requests, bytes moved, and distinct bytes in it and until its end."""
    columns = {name: over_time[name] for name in ("requests", "bytes", "working_set", "footprint")}
    begin = np.arange(len(over_time["requests"])) * over_time["length"]
    return pd.DataFrame({f"begin_{over_time['unit']}": begin, **columns})


def share_by_size(sizes: pd.DataFrame) -> Figure:
    """The share of an operation's requests up to each size (columns `operation`, `bytes`, `requests`)."""
    series = {}
    for name, rows in sizes.sort_values("bytes").groupby("operation", sort=False):
        values = np.maximum(rows["bytes"].to_numpy(), 1) / KIB
        shares = 100 * rows["requests"].cumsum().to_numpy() / rows["requests"].sum()
        series[str(name)] = np.append(values[0], values), np.append(0, shares)
    in_order = {name: series[name] for name in sizes["operation"].unique()}
    return lines(in_order, line=STEPS, xscale=BINARY, ylim=(0, 103), xlabel="size (KiB)", ylabel="share of requests (%)")


def served_share(caches: pd.DataFrame) -> Figure:
    """The share of references that a cache serves which replaces the least recently used page (columns of bytes, and `served`)."""
    line = caches.iloc[:, 0] / MIB, 100 * caches["served"]
    return lines({"": line}, xscale=BINARY, ylim=(0, 103), xlabel="size of an LRU cache (MiB)", ylabel="hit ratio (%)")


def working_set(windows: pd.DataFrame, over_time: dict[str, Any]) -> Figure:
    """Distinct bytes since the begin (column `footprint`); distinct bytes of each window and what it moved (`working_set`, `bytes`)."""
    second, axis = _axis(over_time)
    edges = np.arange(len(windows) + 1) * over_time["length"] / second
    largest = max(1, int(windows[["working_set", "footprint"]].to_numpy().max()))
    unit, name = next((unit, name) for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "B")) if largest >= unit)
    with panels(4.4, 2, sharex=True) as (figure, (above, below)):
        above.stairs(windows["footprint"] / unit, edges, color=LINES[1][0], baseline=None)
        below.stairs(windows["working_set"] / unit, edges, color=LINES[0][0], fill=True, label="distinct")
        below.stairs(windows["bytes"] / unit, edges, color=LINES[2][0], label="moved", baseline=None)
        above.set(ylabel=f"distinct since the begin ({name})", ylim=(0, None))
        below.set(ylabel=f"in the window ({name})", xlabel=axis, ylim=(0, None))
        legend(figure, below)
    return figure


def offsets(over_time: dict[str, Any]) -> Figure:
    """Requests by their place on the device, over time; devices of one trace lie on one another."""
    counts = np.array(over_time["places"]).T
    second, axis = _axis(over_time)
    extent = (0.0, counts.shape[1] * over_time["length"] / second, 0.0, counts.shape[0] * over_time["place"] / GIB)
    looks: dict[str, Any] = {"aspect": "auto", "origin": "lower", "interpolation": "nearest", "cmap": "viridis", "rasterized": True}
    with panels(3.6) as (figure, axes):
        picture = axes.imshow(np.ma.masked_equal(counts, 0), norm=LogNorm(1, max(2, counts.max())), extent=extent, **looks)
        axes.set(xlabel=axis, ylabel="offset (GiB)")
        figure.colorbar(picture, ax=axes, label="requests")
    return figure


def _axis(over_time: dict[str, Any]) -> tuple[int, str]:
    return (SECONDS, "time (s)") if over_time["unit"] == "ns" else (1, "requests")


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
        yield from (self.title, f"format: {self.result['format']}", f"recognised by: {self.result['basis']}")
        yield Explanation(_in_words(self.result))
        for table in _tables(self.result):
            yield from ("", table)
        yield from (
            "",
            next_steps("flashsim trace replay runs it on a device", "flashsim advise compares drives", "--out-dir DIR draws it"),
        )

    def _report(self) -> Report:
        """Pictures only where there is more than one value to show."""
        summary, pictures, frames = self.result, dict[str, Figure](), {"sizes": sizes_frame(self.result)}
        if frames["sizes"]["bytes"].nunique() > 1:
            pictures["sizes"] = share_by_size(frames["sizes"])
        if between := summary["between"]:
            frames["between"] = pd.DataFrame({"nanoseconds": between["values"], "share": between["shares"]})
            if len(frames["between"]) > 1:
                step = np.maximum(frames["between"]["nanoseconds"], 1) / MICROSECONDS, 100 * frames["between"]["share"]
                axis: dict[str, Any] = {"xlabel": "time between arrivals (µs)", "ylabel": "share of requests (%)"}
                pictures["between"] = lines({"": step}, line=STEPS, xscale="log", ylim=(0, 103), **axis)
        if summary["reuse"]:
            frames["reuse"] = self.reuse()
            pictures |= {"reuse": served_share(frames["reuse"])} if len(frames["reuse"]) > 1 else {}
        if over_time := summary["over_time"]:
            frames["over_time"] = self.over_time()
            pictures |= {"working_set": working_set(frames["over_time"], over_time), "offsets": offsets(over_time)}
        others = [table for table in _tables(summary) if table.columns[0] != "fact"]
        figures = [(str(name), str(value)) for name, value in _facts(summary).itertuples(index=False) if value is not None]
        sections = [Section("Pictures", pictures=pictures), Section("Operations, times and files", tables=others)]
        return Report(self.title.partition(" (")[0], f"Format: {summary['format']}.", figures, sections, self.provenance, frames)

    def requests(self) -> pd.DataFrame:
        """A row a request, with the columns of a trace; operations by name."""
        with trace_file(self) as path:
            frame: pd.DataFrame = pa.Table.from_batches(list(requests_of(path))).to_pandas()
        return frame.assign(operation=frame["operation"].map(dict(enumerate(OPERATIONS))))

    def over_time(self) -> pd.DataFrame:
        """A row a window of time (or of requests, where nothing is timed): requests, bytes, working set and footprint (bytes)."""
        return windows_frame(self.result["over_time"]) if self.result["over_time"] else pd.DataFrame()

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
            return working_set(self.over_time(), self.result["over_time"])
        return share_by_size(sizes_frame(self.result))


@operation
def trace(trace: Trace, **part: Unpack[TracePart]) -> TraceOutcome:
    """Summarize a trace.

    Format, requests, sizes, sequentiality, footprint, reuse distances and times.

    Examples::

        flashsim trace info sample:shop
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
    target: Annotated[Any, Target("Target file.", "OUT", argument=True)],
    *,
    to: Annotated[str, Name("Target format: {writable}; or a Python file.", "FORMAT", completes=("writable",))],
    **part: Unpack[TracePart],
) -> Listing:
    """Convert a trace to another format.

    Information that the target format cannot hold is reported.

    Examples::

        flashsim trace convert bnl.parquet bnl.iolog --to fio-iolog
        flashsim trace convert bnl.parquet bnl.csv --to spc
        flashsim trace convert bnl.parquet first.parquet --to parquet --window 2s --device-number 0
    """
    with activity("converting") as progress, trace_file(part_of(trace, part)) as source:
        outcome = conversion.convert(source, target, to, progress)
    row = {"file": final_name(target), "format": to, "requests": outcome.requests}
    return Listing(
        [f"{outcome.requests:,} requests in {row['file']}", *outcome.lines(to), next_steps(f"flashsim trace info {row['file']}")], [row]
    )


@operation
def trace_list() -> Listing:
    """List sample traces and formats of traces.

    A sample needs no file: every command that takes a trace takes sample:NAME.

    Examples::

        flashsim trace list
    """
    samples = Table(["sample", "contents"], [[f"sample:{name}", title] for name, title in SAMPLES.items()])
    known = {"formats that are read": names("formats", files=False), "formats that are written": names("writable", files=False)}
    lines = [Explanation(f"{kind[:1].upper()}{kind[1:]}: {', '.join(each)}.") for kind, each in known.items()]
    steps = next_steps("flashsim trace info sample:shop summarizes a sample", "flashsim record makes a trace of a program")
    rows = [{"name": f"sample:{name}", "title": title} for name, title in SAMPLES.items()]
    return Listing(["Traces that come with flashsim, and formats\n", samples, "", *lines, "", steps], rows, {"samples": rows} | known)
