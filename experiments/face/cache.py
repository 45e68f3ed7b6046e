"""``fs.cache``: replacement policies on references to pages, by policy and size, beside each other, and as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure

from experiments.caching import curve_report, report, stepping
from experiments.caching.comparison import Comparison, with_optimum
from experiments.caching.confidence import WINDOWS
from experiments.caching.curves import Curves, curves, working_sets
from experiments.caching.on_device import Target
from experiments.caching.running import policy_names
from experiments.caching.session import Asked, ReferenceSource, Simulated, simulate
from experiments.caching.sizes import parse_sample, parse_share
from experiments.caching.sources import A_TRACE, of_text, of_values
from experiments.face._devices import device_of
from experiments.face._outcome import Outcome
from experiments.face._tables import arrow_table
from experiments.face._traces import Traced, trace_file
from experiments.face._units import count, several, text
from experiments.face._units import size as bytes_of
from experiments.face._working import working
from experiments.runs.joining import CPU
from flashsim.core.compiling import cores
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.provenance import provenance
from flashsim.core.references import ReferenceBatches
from flashsim.core.working_sets import WorkingSetCurve
from traces.page_trace import page_trace
from traces.recording import ParquetRecorder


class CacheOutcome(Outcome):
    """What policies did in pools of several sizes.

    Parameters
    ----------
    source
        The references, to be gone through again.
    asked
        What policies were asked.
    done
        What they did.
    """

    def __init__(self, provenance: dict[str, Any], source: ReferenceSource, asked: Asked, done: Simulated) -> None:
        super().__init__(done.title(), provenance)
        self.source, self.asked, self.done = source, asked, done

    def summary(self) -> pd.DataFrame:
        """A row a size and policy: hits, misses by kind, write-backs, bytes, and processor microseconds a reference (``reference_us``)."""
        return pd.DataFrame(self.done.rows())

    def compare(self, *policies: str) -> CacheComparison:
        """The same policies, or others, at the same sizes beside each other and the optimum, with confidence over windows of the trace.

        Raises
        ------
        InvalidParameterError
            There is only one, or there are too few references.
        """
        names = policy_names([text(each, "policy") for each in policies] or list(self.asked.policies))
        if len(names) < 2:
            raise InvalidParameterError("policy", ", ".join(names), "a comparison needs at least two")
        asked = replace(self.asked, policies=with_optimum(names), windows=WINDOWS)
        with working("simulating policies") as progress:
            told = Comparison(simulate(self.source, asked, progress))
        return CacheComparison(provenance({"trace": self.source.name} | asked.as_dict()), told)

    def steps(self, *policies: str, references: int = stepping.MOST_DRAWN) -> CacheSteps:
        """The first references one by one, at the smallest of the sizes, by the same policies or others, in their plain forms.

        Raises
        ------
        InvalidParameterError
            A number of references out of its bounds.
        FlashsimError
            A policy has no plain form.
        """
        names = policy_names([text(each, "policy") for each in policies] or list(self.asked.policies))
        frames = min(each.size.frames for each in self.done.runs)
        most = min(count(references, "references"), self.asked.limit or self.done.references)
        told = stepping.steps(self.source, names, frames, most, self.asked.seed)
        asked = self.asked.as_dict() | {"policies": names, "frames": frames, "references": most}
        return CacheSteps(f"{self.done.trace}, reference by reference in {frames:,} frames", provenance(asked), told)

    def curve(self, *policies: str, size: Any = "1%..100%", sample: float | str | None = None) -> CurveOutcome:
        """Miss ratios over the size, of LRU without any other policy; working sets and reuse distances.

        Parameters
        ----------
        size
            See `cache`; what takes one pass is known at all sizes besides.
        sample
            A share of the pages to look at, or ``"8000pages"`` at most; as in the simulation by default.

        Raises
        ------
        InvalidParameterError, UnknownNameError
            As `cache`.
        """
        wanted = self.asked.sample if sample is None else sample
        share, most = parse_sample(wanted)
        asked = replace(
            self.asked,
            policies=[text(each, "policy") for each in policies or ["lru"]],
            sizes=[_size(each) for each in several(size, "size")],
        )
        with working("making curves") as progress:
            told = curves(self.source, asked, share, most, progress)
            sets = working_sets(self.source, told.rate, asked.limit)
        return CurveOutcome(provenance({"trace": self.source.name} | asked.as_dict() | {"sample": wanted}), told, sets)

    def _draw(self) -> Figure:
        return report.picture(self.done.rows())


class CacheSteps(Outcome):
    """What references did, one by one.

    Parameters
    ----------
    steps
        A step a policy and reference.
    """

    def __init__(self, title: str, provenance: dict[str, Any], steps: Sequence[stepping.Step]) -> None:
        super().__init__(title, provenance)
        self.steps = steps

    def summary(self) -> pd.DataFrame:
        """A row a policy and reference: hit, first miss or miss again, who left, and the pages in the frames (``*``: dirty)."""
        return pd.DataFrame([step.row() for step in self.steps])

    def _draw(self) -> Figure:
        return stepping.picture(self.steps)


class CurveOutcome(Outcome):
    """Miss ratios over the size, and working sets.

    Parameters
    ----------
    told, sets
        As they were found.
    """

    def __init__(self, provenance: dict[str, Any], told: Curves, sets: WorkingSetCurve) -> None:
        super().__init__(curve_report.title(told), provenance)
        self.told, self.sets = told, sets

    def summary(self) -> pd.DataFrame:
        """A row a policy and size: its miss ratio, and half the width of its 95 % interval (``error``; 0 if all pages were looked at)."""
        return pd.DataFrame(self.told.rows())

    def all_sizes(self, policy: str = "lru") -> pd.DataFrame:
        """A row a size at which a policy misses less than with one page less, of those whose curve took one pass.

        Raises
        ------
        UnknownNameError
            There is no such curve.
        """
        if policy not in self.told.one_pass:
            raise UnknownNameError("curve of all sizes", policy, self.told.one_pass)
        return curve_report.steps_frame(self.told.curves[policy])

    def working_sets(self) -> pd.DataFrame:
        """A row a window of references: the pages in it on average, and the share of references to pages not in the one before."""
        return curve_report.sets_frame(self.sets)

    def _draw(self) -> Figure:
        return curve_report.picture(self.told, self.sets)


class CacheComparison(Outcome):
    """Policies beside each other, with confidence.

    Parameters
    ----------
    told
        As it was found.
    """

    def __init__(self, provenance: dict[str, Any], told: Comparison) -> None:
        super().__init__(told.done.title(), provenance)
        self.told = told

    def summary(self) -> pd.DataFrame:
        """A row a size and pair: the difference of hit ratios, half the width of its interval, and which is better, if that is shown."""
        return pd.DataFrame([each.row() for each in self.told.pairs])

    def best(self) -> pd.DataFrame:
        """A row a size: the best policy, those not told apart from it, its hit ratio and the optimum's."""
        return pd.DataFrame(self.told.best())

    def runs(self) -> pd.DataFrame:
        """A row a size and policy, as `CacheOutcome.summary`."""
        return pd.DataFrame(self.told.done.rows())

    def _draw(self) -> Figure:
        return report.differences(self.told)


def cache(
    trace: Any,
    *,
    policy: Any = "all",
    size: Any = "10%",
    page_size: str = "4KiB",
    warm_up: int | str = 0,
    limit: int | None = None,
    sample: float | str = 1.0,
    seed: int = 0,
    jobs: int | None = None,
    format: str | None = None,
    columns: str | None = None,
    device: Any = None,
    depth: int = 1,
    cpu: str | None = CPU,
    requests: str | PathLike[str] | None = None,
    allow_write: bool = False,
    force: bool = False,
) -> CacheOutcome:
    """Let replacement policies decide which pages a pool of frames holds, as references come.

    Parameters
    ----------
    trace
        References to pages: a trace's path, or a generator such as ``"zipf:pages=1000"``; ids as an array, a list or a Series, of integers
        or texts; a pair (pages, writes); or a frame with a column ``page``, and ``write`` if some of them write. Requests do as well, split
        into pages: a block trace, an `fs.trace`, or a frame with columns operation, offset and length (bytes).
    policy
        One or several, such as ``"lru"`` or ``"lru-k:k=3"``, or paths of Python files; ``"all"`` members by default.
    size
        One or several: ``"10%"`` of the trace's pages, ``"600pages"``, ``"4MiB"``, ``"1%..80%"`` (ten steps); a whole number is pages.
    page_size
        Of the pages that requests are cut into, and that bytes are told by.
    warm_up
        References that are made first and not counted, as a number or a share such as ``"10%"``.
    limit
        Only so many references.
    sample
        A share of the pages to look at, such as ``"1%"``, in pools as much smaller; what is told is estimated.
    seed
        Of generated references, and of policies that draw.
    jobs
        Runs at the same time; as many as there are cores by default.
    format, columns
        Of a trace, see `fs.trace`.
    device
        Where pages are read and written besides: a preset, an `fs.drive`, which is left as it is, or the path of a real file or block
        device. Seconds are told in virtual time, or by the clock.
    depth
        Pages that are exchanged with the device at once, at most.
    cpu
        The CPU preset that prices requests; None: they take no time of it.
    requests
        A Parquet file to record the requests to the device into, of one policy at one size.
    allow_write, force
        Whether a real file or block device may be written to, and a file that exists overwritten.

    Raises
    ------
    InvalidParameterError
        No reference, a size of 0 or above 100 %, or a parameter out of its bounds.
    UnknownNameError, MissingFileError
        There is no such policy, generator or file.
    FlashsimError
        A policy of one's own breaks its contract.

    Examples
    --------
    >>> import flashsim as fs
    >>> told = fs.cache([1, 2, 3, 1, 2, 3, 4, 1], policy="lru", size=3)
    >>> told.summary()[["policy", "pages", "hits", "first", "again"]].values.tolist()
    [['lru', 3, 3, 4, 1]]
    >>> told = fs.cache("zipf:pages=200,references=1000,write-share=0.5", policy=["lru", "cflru"], device="intel-x25e-64gb", cpu=None)
    >>> bool((told.summary().pages_written == told.summary().write_backs).all()), told.summary()[["io_s", "flush_s"]].shape
    (True, (2, 2))
    """
    target = None if device is None else _target(device, count(depth, "depth"), cpu, allow_write, force)
    asked = Asked(
        [text(each, "policy") for each in several(policy, "policy")],
        [_size(each) for each in several(size, "size")],
        bytes_of(page_size, "page_size"),
        warm_up,
        limit=None if limit is None else count(limit, "limit"),
        seed=count(seed, "seed", 0),
        jobs=cores() if jobs is None else count(jobs, "jobs"),
        sample=parse_share(sample),
    )
    source = _source(trace, asked, format, columns)
    origin = provenance({"trace": source.name} | asked.as_dict() | (target.as_dict() if target else {}))
    with ExitStack() as stack:
        if requests is not None:
            if target is None:
                raise InvalidParameterError("requests", repr(requests), "without a device there are none")
            target = replace(target, sink=stack.enter_context(ParquetRecorder(Path(text(requests, "requests")), origin)))
        done = simulate(source, asked, stack.enter_context(working("simulating policies")), target)
    return CacheOutcome(origin, source, asked, done)


def _target(device: Any, depth: int, cpu: str | None, allow_write: bool, force: bool) -> Target:
    given = device_of(device)
    name = None if cpu is None else text(cpu, "cpu")
    return Target(given if isinstance(given, str) else given.ready(), depth, name, bool(allow_write), bool(force))


@dataclass(frozen=True)
class _Requests:
    """Requests that are no file of their own, split into pages."""

    name: str
    trace: Any
    page_size: int

    def batches(self) -> ReferenceBatches:
        """See `experiments.caching.session.ReferenceSource`."""
        with trace_file(self.trace) as file:
            yield from page_trace(file, self.page_size).batches()


def _size(value: Any) -> str:
    return f"{value.__index__()}pages" if hasattr(value, "__index__") and not isinstance(value, bool) else text(value, "size")


def _source(value: Any, asked: Asked, format_name: str | None, columns: str | None) -> ReferenceSource:
    """References of whatever describes them."""
    if isinstance(value, str | PathLike):
        return of_text(text(value, "trace"), asked.page_size, asked.seed, format_name, columns)
    if isinstance(value, tuple) and len(value) == 2 and all(hasattr(each, "__len__") and not isinstance(each, str) for each in value):
        return of_values(*value)
    if isinstance(value, Mapping) or (hasattr(value, "__arrow_c_stream__") and not isinstance(value, pd.Series | pa.ChunkedArray)):
        frame = arrow_table(value, "trace", A_TRACE).to_pandas()
        if "page" in frame:
            return of_values(frame["page"], frame.get("write"), "frame")
        return _Requests("frame", frame, asked.page_size)
    if isinstance(value, Traced):
        return _Requests("requests", value, asked.page_size)
    if callable(getattr(value, "batches", None)) and isinstance(getattr(value, "name", None), str):
        source: ReferenceSource = value
        return source
    return of_values(value)
