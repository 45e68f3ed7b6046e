"""``flashsim cache`` and ``fs.cache``: replacement policies on references to pages, by policy and size, compared, and as curves."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from typing import Annotated, Any, TypedDict, Unpack

import pandas as pd
import pyarrow as pa

from flashsim.apps.caching.face._caching import (
    CacheComparison,
    CacheOutcome,
    CurveOutcome,
    at_least_two,
    comparison_of,
    curve_of,
    size_text,
)
from flashsim.apps.caching.on_device import Target
from flashsim.apps.caching.running import CacheStudy, parse_share
from flashsim.apps.caching.session import NamedReferences, execute
from flashsim.apps.caching.sources import A_TRACE, of_text, of_values
from flashsim.core.activity import activity
from flashsim.core.errors import RefusedError
from flashsim.core.processes import cores
from flashsim.core.transactions import ReferenceBatches
from flashsim.core.units import parse_count
from flashsim.execution.cpu import BY_YEAR, warn_of_years
from flashsim.experiments.runs.outputs import final_name
from flashsim.operations import fields
from flashsim.operations.face._arguments import arrow_table
from flashsim.operations.face._device_arguments import AllowWrite, device_of
from flashsim.operations.face._traces import TraceSource, trace_file
from flashsim.operations.fields import Count, Field, Name, Names, text
from flashsim.operations.operation import operation, origin
from flashsim.operations.outcome import Listing
from traces.file import page_trace
from traces.file.recording import ParquetRecorder

_POLICIES = "Replacement policy: {policies}; all; or a Python file. May be repeated or separated by commas."
_TRACE = "A trace of pages or requests, or a generator with parameters: {references}."
_TRACES = (
    "Or ids as an array, a list or a Series, of integers or texts; a pair (pages, writes); a frame with a column page, and write if some "
    "of them write; or requests, which are split into pages: an `fs.trace`, or a frame with columns operation, offset and length (bytes)."
)
_DEVICE = "Device for page reads and writes: a preset, a TOML file, or the path of a real file or disk."
_DRIVE = "Or an `fs.drive`, which is left as it is."
_SIZES = "Pool size: 10% of the trace's pages, 600pages, 4MiB, a range 1%..80% in ten steps, or several separated by commas."
_SAMPLE = "Sample a share of the pages, such as 1%, in proportionally smaller pools; counts are estimates."
_OF_A_CURVE = "Sample a share of the pages, such as 1%, or at most a number of them, such as 8000pages; the error is reported."
_FORMATS = "Format of the trace, if it cannot be detected: pages {page_traces}; requests {formats}."
_COLUMNS = "Columns of a CSV file: page=KEY,write=OP:get/set; of requests such as offset=LBA:sectors,length=Size:bytes."


def _limit(value: Any, parameter: str) -> int:
    return parse_count(value, parameter) if isinstance(value, str) else fields.count(value, parameter)


Trace = Annotated[Any, Field(_TRACE, "TRACE", completes=("references",), argument=True, reads=True, python=_TRACES)]
Policies = Annotated[Any, Names(_POLICIES, "NAME[:PARAMETER=NUMBER,...]", completes=("policies",))]
Sizes = Annotated[Any, Field(_SIZES, "SIZE", fields.each(size_text), several=True, python="A whole number is pages.")]
Limit = Annotated[Any, Field("Only the first references, such as 100000 or 1e6.", "N", _limit)]
PagesOf = Annotated[Any, fields.Size("Page size: requests are split into pages, and sizes in bytes are converted.", default="4KiB")]
Format = Annotated[str | None, Name(_FORMATS, "NAME|FILE.py", completes=("page_traces", "formats"), seldom=True)]
Columns = Annotated[str | None, Name(_COLUMNS, "ROLE=NAME,...", seldom=True)]


class SimulationChoices(TypedDict, total=False):
    """Options of a simulation, besides policies and sizes."""

    page_size: PagesOf
    warm_up: Annotated[int | str, Field("Warm-up references that are not counted, such as 10000 or 10%.", "N|SHARE", default=0)]
    limit: Limit
    sample: Annotated[Any, Field(_SAMPLE, "SHARE", lambda value, parameter: parse_share(value), default="100%")]
    seed: fields.Seed
    jobs: fields.Jobs
    format: Format
    columns: Columns


@operation
def cache(
    trace: Trace,
    *,
    policy: Policies = "all",
    size: Sizes = "10%",
    device: Annotated[Any, Field(_DEVICE, "DEVICE", device_of, ("presets",), python=_DRIVE, reads=True, after_group=True)] = None,
    depth: Annotated[int, Count("Maximum queue depth.", needs="device", seldom=True)] = 1,
    cpu: fields.Cpu = BY_YEAR,
    requests: Annotated[
        Any, fields.Target("Record the requests of one pool to the device (Parquet).", "FILE", needs="device", seldom=True)
    ] = None,
    allow_write: AllowWrite = False,
    force: fields.Force = False,
    **how: Unpack[SimulationChoices],
) -> CacheOutcome:
    """Count hits of replacement policies on a trace.

    Examples::

        flashsim cache simulate pages.txt --policy all --size 1%..80% --plot told.svg
        flashsim cache simulate zipf:pages=1000,write-share=0.3 --policy lru-k:k=3 --policy cflru --size 5%,100pages,1MiB --out told.csv
        flashsim cache simulate ycsb:workload=A,records=20000,references=1e5 --policy lru --policy lirs --size 20% --sample 0.1
        flashsim cache simulate zipf:pages=1000,references=1e4,write-share=0.3 --policy lru,cflru --size 5% --device intel-x25e-64gb

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.cache([1, 2, 3, 1, 2, 3, 4, 1], policy="lru", size=3)
    >>> result.summary()[["policy", "pages", "hits", "first", "again"]].values.tolist()
    [['lru', 3, 3, 4, 1]]
    >>> result = fs.cache("zipf:pages=200,references=1000,write-share=0.5", policy=["lru", "cflru"], device="intel-x25e-64gb", cpu=None)
    >>> bool((result.summary().pages_written == result.summary().write_backs).all()), result.summary()[["io_s", "flush_s"]].shape
    (True, (2, 2))
    """
    source, study = _study(trace, policy, size, **how)
    target = None
    if device is not None:
        target = Target(device if isinstance(device, str) else device.ready(), depth, cpu, allow_write, force)
        if target.file is not None and isinstance(trace, str | PathLike) and os.path.realpath(target.file) == os.path.realpath(trace):
            raise RefusedError(f"device: {device} is the trace, and would be overwritten")
        if target.preset is not None:
            warn_of_years(cpu, target.preset)
    with ExitStack() as stack:
        if target is not None and requests is not None:
            target = replace(target, sink=stack.enter_context(ParquetRecorder(requests, origin())))
        results = execute(source, study, stack.enter_context(activity("simulating policies")), target)
    return CacheOutcome(results, source, study)


@operation
def cache_compare(
    trace: Trace,
    policies: Annotated[Any, Names("At least two policies.", "[POLICY]...", completes=("policies",), argument=True)] = None,
    *,
    policy: Policies = None,
    size: Sizes = "10%",
    **how: Unpack[SimulationChoices],
) -> CacheComparison:
    """Compare replacement policies with confidence.

    Differences of hit ratios at each size, with confidence intervals over windows of the trace, beside the optimum.

    Examples::

        flashsim cache compare pages.txt lru arc sieve --size 1%..80%
        flashsim cache compare scan:pages=2000,references=1e5 lru 2q --size 10% --warm-up 10% --json told.json
    """
    names = at_least_two([*(policies or []), *(policy or [])])
    return comparison_of(*_study(trace, names, size, **how))


@operation
def cache_curve(
    trace: Trace,
    *,
    policy: Policies = "lru",
    size: Sizes = "1%..100%",
    page_size: PagesOf = "4KiB",
    limit: Limit = None,
    sample: Annotated[Any, Field(_OF_A_CURVE, "SHARE")] = "100%",
    seed: fields.Seed = 0,
    jobs: fields.Jobs = None,
    format: Format = None,
    columns: Columns = None,
) -> CurveOutcome:
    """Compute miss-ratio curves and reuse distances.

    LRU's curve takes one pass for all sizes, exact or of a sample of the pages with its error. Other policies are simulated at each size.

    Examples::

        flashsim cache curve pages.txt --plot curve.svg
        flashsim cache curve zipf:pages=100000 --sample 10% --json curve.json
        flashsim cache curve zipf:pages=100000 --sample 5000pages
        flashsim cache curve pages.txt --policy lru --policy arc --policy opt --size 5%..50%
    """
    how: SimulationChoices = {"page_size": page_size, "limit": limit, "seed": seed, "jobs": jobs, "format": format, "columns": columns}
    return curve_of(*_study(trace, policy, size, **how), sample)


@operation
def cache_keep(
    trace: Trace,
    *,
    out: Annotated[Any, fields.Target("Target file.", "FILE")],
    to: Annotated[str, Name("Target format: parquet, or lines (one page per line, without the write flag).", "FORMAT")] = "parquet",
    page_size: PagesOf = "4KiB",
    seed: fields.Seed = 0,
    format: Format = None,
    columns: Columns = None,
) -> Listing:
    """Write page references to a file.

    The references are those of a trace or a generator.

    Examples::

        flashsim cache keep zipf:pages=1000,references=1e5,write-share=0.2 --out zipf.parquet
        flashsim cache keep pages.txt --out again.txt --to lines
    """
    source = of_text(text(trace, "trace"), page_size, seed, format, columns)
    with activity("writing references") as progress:
        references = page_trace.keep(source.batches(), out, to, progress)
    row = {"file": final_name(out), "references": references}
    return Listing([f"{row['file']}: {references:,} references"], [row])


@dataclass(frozen=True)
class _RequestPages:
    """Requests that are no file of their own, split into pages."""

    name: str
    trace: Any
    page_size: int

    def batches(self) -> ReferenceBatches:
        with trace_file(self.trace) as file:
            yield from page_trace.page_trace(file, self.page_size).batches()


def _study(trace: Any, policies: Any, sizes: Any, **how: Unpack[SimulationChoices]) -> tuple[NamedReferences, CacheStudy]:
    page_size, seed, sample = how["page_size"], how["seed"], how.get("sample", 1.0)
    study = CacheStudy(policies, sizes, page_size, how.get("warm_up", 0), how["limit"], seed, how["jobs"] or cores(), sample)
    return _source(trace, study, how["format"], how["columns"]), study


def _source(value: Any, study: CacheStudy, format_name: str | None, columns: str | None) -> NamedReferences:
    if isinstance(value, str | PathLike):
        return of_text(text(value, "trace"), study.page_size, study.seed, format_name, columns)
    if isinstance(value, tuple) and len(value) == 2 and all(hasattr(each, "__len__") and not isinstance(each, str) for each in value):
        return of_values(*value)
    if isinstance(value, Mapping) or (hasattr(value, "__arrow_c_stream__") and not isinstance(value, pd.Series | pa.ChunkedArray)):
        frame = arrow_table(value, "trace", A_TRACE).to_pandas()
        if "page" in frame:
            return of_values(frame["page"], frame.get("write"), "frame")
        return _RequestPages("frame", frame, study.page_size)
    if isinstance(value, TraceSource):
        return _RequestPages("requests", value, study.page_size)
    if callable(getattr(value, "batches", None)) and isinstance(getattr(value, "name", None), str):
        source: NamedReferences = value
        return source
    return of_values(value)
