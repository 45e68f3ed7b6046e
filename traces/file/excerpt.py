"""A part of a trace: of a format that is recognised or named, all of it or some devices and a stretch of time, at any speed."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core import errors, units
from flashsim.core.request import Integers
from traces.file.schema import SCHEMA, Batches, make_batch, unknown_columns
from traces.format.base import read_trace, recognise

#: Most requests from one that a request waits for to that request, where requests in between are left out.
_BACK = 1 << 20
_SLOWEST, _FASTEST = 1e-6, 1e6
#: The folder of the samples that come with this package, and what stands before the name of one.
_SAMPLES, _SAMPLE = Path(__file__).parents[1] / "samples", "sample:"
#: Contents of the samples by name.
SAMPLES = {
    "shop": "calls of a shop in Python on its SQLite database: 300 sales, each a transaction",
    "shop-blocks": "requests that sample:shop causes on a device",
}


@dataclass(frozen=True)
class Excerpt:
    """A trace file, or a part of it."""

    path: str | Path
    #: A format's name, the path of a Python file, or ``csv:`` and columns; recognised by the content if None.
    format: str | None = None
    #: The numbers of the devices whose requests are wanted; all if empty.
    devices: Collection[int] = ()
    #: How long after the trace's first request the part begins, ns.
    start: int = 0
    #: How long it lasts, ns; None: to the end.
    window: int | None = None
    #: The factor by which requests arrive, and programs think, faster; latencies that were recorded stay.
    speed: float = 1

    def __post_init__(self) -> None:
        if self.start < 0:
            raise errors.InvalidParameterError("start", units.format_duration(self.start), "it must not be negative")
        if self.window is not None and self.window <= 0:
            raise errors.InvalidParameterError("window", units.format_duration(self.window), "it must be longer than 0")
        if not (math.isfinite(self.speed) and _SLOWEST <= self.speed <= _FASTEST):
            raise errors.InvalidParameterError("speed", self.speed, f"it must be in [{_SLOWEST:g}, {_FASTEST:g}]")
        for device in self.devices:
            if not 0 <= device < 1 << 15:
                raise errors.InvalidParameterError("device number", device, f"it must be in [0, {(1 << 15) - 1}]")

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def whole(self) -> bool:
        return not self.devices and not self.start and self.window is None

    @property
    def has_time_limits(self) -> bool:
        return bool(self.start) or self.window is not None

    def batches(self) -> Batches:
        """The requests, numbered anew."""
        batches = read_trace(self.path, self.format)
        return batches if self.whole and self.speed == 1 else _Cutting(self).cut(batches)


def excerpt(
    path: str | Path,
    format_name: str | None = None,
    columns: str | None = None,
    device_number: int | Sequence[int] | None = None,
    start: str | None = None,
    window: str | None = None,
    speed: float = 1,
) -> Excerpt:
    """A part of a trace, as people ask for it.

    Times have a unit, columns of a CSV file are ``time=Stamp:ms,offset=LBA:sectors``, and ``sample:NAME`` is a sample of this package.
    """
    if columns is not None:
        if format_name not in (None, "csv"):
            raise errors.InvalidParameterError(
                "columns", repr(columns[:40]), f"{format_name} has its own; they are of " + errors.option("format") + " csv"
            )
        format_name = f"csv:{columns}"
    numbers = (device_number,) if isinstance(device_number, int) else tuple(device_number or ())
    begin, lasts = (units.parse_duration(text, name) if text else None for text, name in ((start, "start"), (window, "window")))
    return Excerpt(_file_of(path), format_name, numbers, begin or 0, lasts, speed)


def _file_of(path: str | Path) -> str | Path:
    """The file that a path names, which may be a sample."""
    if not str(path).startswith(_SAMPLE):
        return path
    files = {each.stem: each for each in sorted(_SAMPLES.glob("*.parquet"))}
    name = str(path).removeprefix(_SAMPLE)
    if name not in files:
        raise errors.UnknownNameError("sample", name, files)
    return files[name]


#: A trace file, by its path or as an excerpt.
Source = str | Path | Excerpt


def requests_of(source: Source) -> Batches:
    """The requests of a trace file, or of a part of it."""
    return source.batches() if isinstance(source, Excerpt) else read_trace(source)


def with_format(source: Source) -> Excerpt:
    """An excerpt whose format is known."""
    excerpt = source if isinstance(source, Excerpt) else Excerpt(source)
    return excerpt if excerpt.format else replace(excerpt, format=recognise(excerpt.path))


def path_of(source: Source) -> Path:
    return Path(source.path if isinstance(source, Excerpt) else source)


class _Cutting:
    """An excerpt in the making, and the state after the requests so far."""

    def __init__(self, excerpt: Excerpt) -> None:
        self._excerpt = excerpt
        self._end = units.NEVER if excerpt.window is None else excerpt.start + excerpt.window
        self._origin: int | None = None
        self._latest = 0
        self._numbers = np.zeros(0, np.int64)  # new numbers of the last requests, -1 of those that were left out
        self._rows_read = self._count = 0
        self._devices: set[int] = set()

    def cut(self, batches: Batches) -> Batches:
        for batch in batches:
            rows = self._matching_rows(batch) if batch.num_rows else np.zeros(0, np.int64)
            columns: dict[str, Any] = {name: batch.column(name).take(pa.array(rows)) for name in SCHEMA.names}
            if not self._excerpt.whole:
                columns |= self._waits(batch, rows)
            if self._excerpt.speed != 1:
                columns |= self._faster(columns)
            if len(rows):
                yield make_batch(columns, self._count, columns["label"], unknown_columns(batch.schema))
            self._rows_read += batch.num_rows
            self._count += len(rows)
        if not self._count and self._rows_read:
            devices = f"{', '.join(map(str, sorted(self._devices)[:20]))}{' and more' if len(self._devices) > 20 else ''}"
            there = f"the trace is of {devices}" if self._excerpt.devices else f"the last comes at {units.format_duration(self._latest)}"
            raise errors.InvalidParameterError("excerpt", self._name(), f"none of {self._rows_read:,} requests is in it; {there}")

    def _name(self) -> str:
        parts = [f"device {', '.join(map(str, sorted(self._excerpt.devices)))}"] if self._excerpt.devices else []
        if self._excerpt.has_time_limits:
            until = "the end" if self._end == units.NEVER else units.format_duration(self._end)
            parts.append(f"from {units.format_duration(self._excerpt.start)} to {until}")
        return " ".join(parts)

    def _matching_rows(self, batch: pa.RecordBatch) -> Integers:
        """The rows that are wanted; a request whose time is not known counts with the latest before it."""
        matches = np.ones(batch.num_rows, np.bool_)
        if self._excerpt.devices:
            device = batch.column("device").to_numpy()
            self._devices.update(np.unique(device).tolist())
            matches &= np.isin(device, list(self._excerpt.devices))
        arrival = batch.column("arrival")
        if self._origin is None:
            if self._excerpt.has_time_limits and not arrival[0].is_valid:
                raise errors.InvalidParameterError("start", self._name(), "the trace does not say when its first request arrived")
            self._origin = int(arrival[0].as_py() or 0)
        if self._excerpt.has_time_limits:
            since = arrival.fill_null(self._origin).to_numpy() - self._origin
            if arrival.null_count:
                latest = np.maximum(np.maximum.accumulate(since), self._latest)
                since = np.where(_valid(arrival), since, latest)
            matches &= (since >= self._excerpt.start) & (since < self._end)
            self._latest = max(self._latest, int(since.max()))
        return np.flatnonzero(matches)

    def _waits(self, batch: pa.RecordBatch, rows: Integers) -> dict[str, Any]:
        numbers = np.full(batch.num_rows, -1)
        numbers[rows] = np.arange(self._count, self._count + len(rows))
        both, begin = np.concatenate([self._numbers, numbers]), self._rows_read - len(self._numbers)
        self._numbers = both[-_BACK:]
        dependency = batch.column("dependency").to_numpy()[rows]
        far = (dependency >= 0) & (dependency < begin)
        if far.any():
            row = int(np.argmax(far))
            waits = f"request {self._rows_read + rows[row]} waits for {dependency[row]}"
            raise errors.InvalidParameterError("dependency", waits, f"in an excerpt it may be {_BACK} back at most")
        dependency = np.where(dependency >= 0, both[np.maximum(dependency - begin, 0)], -1)
        return {"dependency": dependency, "think": np.where(dependency >= 0, batch.column("think").to_numpy()[rows], 0)}

    def _faster(self, columns: dict[str, Any]) -> dict[str, Any]:
        speed, origin = self._excerpt.speed, self._origin or 0
        since, think = columns["arrival"].fill_null(origin).to_numpy() - origin, np.asarray(columns["think"])
        most = max(abs(since).max(initial=0), think.max(initial=0)) / speed
        if most >= units.NEVER // 4:
            raise errors.InvalidParameterError("speed", speed, f"the trace would take more than {units.format_duration(units.NEVER // 4)}")
        earlier = since - np.rint(since / speed).astype(np.int64)
        moved = {name: np.maximum(columns[name].fill_null(0).to_numpy() - earlier, 0) for name in ("arrival", "started", "completed")}
        times = {name: pa.array(values, pa.int64(), mask=~_valid(columns[name])) for name, values in moved.items()}
        return times | {"think": np.rint(think / speed).astype(np.int64)}


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    return column.is_valid().to_numpy(zero_copy_only=False)
