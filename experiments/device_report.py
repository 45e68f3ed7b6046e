"""What a device showed under a workload: rates, latencies with their tails, waiting against service, and its own counters."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure

from experiments.tables import Entry, Table
from flashsim.core.request import OPERATIONS, Completions
from flashsim.core.units import SECONDS, format_duration, format_size
from traces.histogram import Histogram

PERCENTILES = (50, 90, 99, 99.9, 99.99)
#: The parts of a request's time: from arrival to dispatch, from there to the end, and both.
PARTS = ("queueing", "service", "latency")


class DeviceReport:
    """Collects completions in constant memory; percentiles are within 0.2 %."""

    def __init__(self) -> None:
        self._times = [{part: Histogram() for part in PARTS} for _ in OPERATIONS]
        self._bytes = [0] * len(OPERATIONS)
        self._begin: int | None = None
        self._end = 0

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Take requests (columns `operation` and `length` of the trace schema) and their completions, in the same order."""
        if not len(completions):
            return
        operation, length = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("operation", "length"))
        submitted, started, completed = (completions[name] for name in ("submitted", "started", "completed"))
        for kind in np.unique(operation).tolist():
            chosen = operation == kind
            self._bytes[kind] += int(length[chosen].sum())
            for part, begin, end in zip(PARTS, (submitted, started, submitted), (started, completed, completed), strict=True):
                self._times[kind][part].add((end - begin)[chosen])
        first = int(submitted.min())
        self._begin = first if self._begin is None else min(self._begin, first)
        self._end = max(self._end, int(completed.max()))

    @property
    def duration(self) -> int:
        """From the first arrival to the last completion, ns."""
        return 0 if self._begin is None else self._end - self._begin

    def as_frame(self) -> pd.DataFrame:
        """A row an operation that occurred: requests, bytes, rates a second, and for each part of the time (ns) mean, percentiles, max."""
        rows = []
        duration = self.duration / SECONDS or math.nan
        for kind, parts in enumerate(self._times):
            count = parts["latency"].count
            if count:
                row: dict[str, Any] = {"operation": OPERATIONS[kind], "requests": count, "bytes": self._bytes[kind]}
                row |= {"iops": count / duration, "bytes_per_second": self._bytes[kind] / duration}
                for part, times in parts.items():
                    row[f"{part}_mean"] = times.mean
                    row |= {f"{part}_p{share:g}": times.percentile(share) for share in PERCENTILES}
                    row[f"{part}_max"] = times.maximum
                rows.append(row)
        return pd.DataFrame(rows)

    def as_dict(self, statistics: dict[str, Any]) -> dict[str, Any]:
        """Everything, JSON-ready: ``duration`` (ns), rates, ``operations``, ``busy_shares`` and the device's ``statistics``."""
        frame = self.as_frame()
        operations = {row["operation"]: {key: row[key] for key in row if key != "operation"} for row in frame.to_dict("records")}
        seconds = self.duration / SECONDS
        requests, moved = (int(frame[name].sum()) if len(frame) else 0 for name in ("requests", "bytes"))
        told = {
            "duration": self.duration,
            "requests": requests,
            "bytes": moved,
            "iops": requests / seconds if seconds else None,
            "bytes_per_second": moved / seconds if seconds else None,
            "operations": operations,
            "busy_shares": busy_shares(statistics, self.duration),
            "statistics": statistics,
        }
        plain: dict[str, Any] = _plain(told)
        return plain

    def tables(self, statistics: dict[str, Any]) -> list[Table]:
        """The same for a terminal."""
        told = self.as_dict(statistics)
        head: list[list[Entry]] = []
        times: list[list[Entry]] = []
        for name, row in told["operations"].items():
            head.append([name, row["requests"], format_size(row["bytes"]), row["iops"], row["bytes_per_second"] / 1e6])
            for part in PARTS:
                keys = ("mean", *(f"p{share:g}" for share in PERCENTILES), "max")
                times.append([name, part, *(format_duration(round(row[f"{part}_{key}"])) for key in keys)])
        rates = Table(["operation", "requests", "bytes", "requests/s", "MB/s"], head)
        shares = [[part, f"{100 * share:.1f} %"] for part, share in _summary(told["busy_shares"])]
        counters: list[list[Entry]] = [[key, value] for key, value in told["statistics"].items() if isinstance(value, int | float)]
        tables = [rates, Table(["operation", "time", "mean", *(f"{share:g} %" for share in PERCENTILES), "max"], times)]
        tables += [Table(["part", "busy"], shares)] if shares else []
        return [*tables, Table(["device", "value"], counters)]

    def latency_plot(self) -> Figure:
        """The share of requests that took at most so long, a line an operation."""
        with matplotlib.rc_context({"font.size": 9.0, "axes.spines.top": False, "axes.spines.right": False}):
            figure = Figure(figsize=(6, 3.6), layout="constrained")
            axes = figure.subplots()
            for kind, parts in enumerate(self._times):
                if parts["latency"].count:
                    values, shares = parts["latency"].distribution()
                    axes.step(values / 1e6, shares, where="post", label=OPERATIONS[kind])
            axes.set_xscale("log")
            axes.set_ylim(0, 1.02)
            axes.set_xlabel("latency, ms")
            axes.set_ylabel("share of requests")
            axes.legend(frameon=False)
        return figure


def busy_shares(statistics: dict[str, Any], duration: int) -> dict[str, Any]:
    """The share of a duration (ns) that each part of a device was busy, from its counters ``..._busy_ns`` (numbers or lists).

    Examples
    --------
    >>> busy_shares({"die_busy_ns": [5, 10], "link_busy_ns": 2}, 10)
    {'die': [0.5, 1.0], 'link': 0.2}
    """
    shares: dict[str, Any] = {}
    for name, value in statistics.items():
        if name.endswith("_busy_ns") and duration > 0:
            part = name.removesuffix("_busy_ns")
            shares[part] = [entry / duration for entry in value] if isinstance(value, list) else value / duration
    return shares


def _summary(shares: dict[str, Any]) -> list[tuple[str, float]]:
    rows: list[tuple[str, float]] = []
    for part, value in shares.items():
        if isinstance(value, list):
            rows += [(f"{part}s, mean of {len(value)}", float(np.mean(value))), (f"{part}s, busiest", max(value))]
        else:
            rows.append((part, value))
    return rows


def _plain(value: Any) -> Any:
    """Numbers of Python, with None for what is no number."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
