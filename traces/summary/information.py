"""The summary of a trace: counts, sizes, sequentiality, footprint, times, and how they change, in one pass in constant memory."""

from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.core.outstanding import OutstandingLevel
from flashsim.core.protocols import Progress
from flashsim.core.request import FLUSH, OPERATIONS, READ, WRITE, Integers
from traces.file.excerpt import Source, with_format
from traces.file.page_trace import MOST_TOUCHED, PAGE_SIZE, references_of
from traces.file.schema import column, open_trace, provenance_of, unknown_columns
from traces.format.base import basis
from traces.summary.distinct import OverTime, Touched
from traces.summary.histogram import Clock, Histogram
from traces.summary.miss_curve import MOST_PAGES, LruCurve, MissCurve

_PERCENTILES = (50, 90, 99, 99.9)
#: Labels, and sizes of an operation, that are counted one by one; those that come later are counted together, as "(others)".
_MOST_NAMES = 1 << 14
_OTHERS = "(others)"
#: Of the distribution of distances so many are told at most.
_DISTANCES = 1 << 12


def describe(source: Source, progress: Progress | None = None) -> dict[str, Any]:
    """Summarise a trace file, of any format that is recognised or named, or a part of it.

    Returns
    -------
    dict
        JSON-ready: ``format``; ``basis`` (what it was recognised by, and the units of its numbers); ``requests``; by operation its
        ``requests``, ``bytes``, ``sizes`` (bytes: count), ``size`` (bytes: mean and percentiles) and, where timed, ``latency`` (ns: mean
        and percentiles); ``read_share`` of the bytes; ``sequential_share`` (requests that begin where the one before on the same device
        ended); ``footprint`` (distinct bytes read or written, in whole sectors, and ``footprint_error``, its relative standard error: 0
        where it is exact); ``devices``; ``labels`` (requests by file); ``duration`` (ns); ``between`` (ns from an arrival to the next: mean
        and percentiles, and ``values`` with ``shares``, the distribution);
        ``outstanding`` (`flashsim.core.outstanding.OutstandingLevel.as_dict`; None where nothing is timed);
        ``backward`` (arrivals before the one before, which count as 0 in ``between``); ``step`` (ns, of which all arrivals are multiples)
        and ``bursts``, a warning where that is coarse; ``unknown`` (columns that are not in the file, such as ``operation``);
        ``reuse`` (`_reuse`); ``over_time`` (`traces.summary.distinct.OverTime`);
        ``provenance``.
    """
    whole = with_format(source)
    summary = _Summary()
    for batch in whole.batches():
        if batch.num_rows:
            summary.add(batch)
        if progress:
            progress(summary.requests, summary.requests)
    provenance = provenance_of(open_trace(whole.path).schema_arrow) if whole.format == "parquet" else {}
    return {"format": whole.format, "basis": basis(whole.path, whole.format or ""), **summary.as_dict(), "provenance": provenance}


class _OperationSummary:
    """The requests of one operation."""

    def __init__(self) -> None:
        self.requests = self.bytes = 0
        self.sizes: dict[str, int] = {}
        self.size, self.latency = Histogram(), Histogram()

    def add(self, length: Integers) -> None:
        values, counts = np.unique(length, return_counts=True)
        _count(self.sizes, {str(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)})
        self.size.add(length)
        self.requests += len(length)
        self.bytes += int(length.sum())

    def as_dict(self) -> dict[str, Any]:
        sizes = {size: self.sizes[size] for size in sorted(self.sizes, key=lambda size: (not size.isdigit(), size.zfill(20)))}
        spread = _percentiles(self.size)
        if _OTHERS not in sizes:  # every size was counted by itself
            values, ranks = [float(size) for size in sizes], np.cumsum(list(sizes.values()))
            spread |= {f"p{share:g}": values[int(np.searchsorted(ranks, share / 100 * self.requests - 1e-9))] for share in _PERCENTILES}
        latency = {"latency": _percentiles(self.latency)} if self.latency.count else {}
        return {"requests": self.requests, "bytes": self.bytes, "sizes": sizes, "size": spread, **latency}


class _Summary:
    """The summary of the requests so far."""

    def __init__(self) -> None:
        self.requests = self.sequential = self.backward = 0
        self.operations: dict[int, _OperationSummary] = {}
        self.labels: dict[str, int] = {}
        self.touched, self.over_time, self.between = Touched(), OverTime(), Histogram()
        self.clock, self.curve, self.unknown = Clock(), LruCurve(0.0, MOST_PAGES), frozenset[str]()
        self.outstanding = OutstandingLevel()
        self._ends = np.full(1 << 15, -1)  # where the last request on each device ended
        self._begin: int | None = None
        self._end = 0
        self._last: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        device, operation, offset, length = (column(batch, name).astype(np.int64) for name in ("device", "operation", "offset", "length"))
        for kind in np.unique(operation).tolist():
            self.operations.setdefault(kind, _OperationSummary()).add(length[operation == kind])
        placed = operation != FLUSH
        self._follow(device[placed], offset[placed], length[placed])
        touched = np.where((operation == READ) | (operation == WRITE), np.minimum(length, MOST_TOUCHED), 0)
        self.touched.add(device, offset, touched)
        for references in references_of(batch):
            self.curve.add(references.pages)
        self.over_time.add(self.requests, batch.column("arrival"), device, offset, touched)
        _count(self.labels, {entry["values"] or "": entry["counts"] for entry in batch.column("label").value_counts().to_pylist()})
        self.requests += batch.num_rows
        self.unknown |= unknown_columns(batch.schema)
        self._time(batch, operation)

    def _follow(self, device: Integers, offset: Integers, length: Integers) -> None:
        order = np.argsort(device, kind="stable")
        device, offset, end = device[order], offset[order], (offset + length)[order]
        first, last = np.diff(device, prepend=-1) != 0, np.diff(device, append=-1) != 0
        before = np.where(first, self._ends[device], np.append([0], end[:-1])[: len(end)])
        self.sequential += int((offset == before).sum())
        self._ends[device[last]] = end[last]

    def _time(self, batch: pa.RecordBatch, operation: Integers) -> None:
        has_arrival = batch.column("arrival").is_valid().to_numpy(zero_copy_only=False)
        if not has_arrival.any():
            return
        arrival = batch.column("arrival").fill_null(0).to_numpy()
        times = arrival[has_arrival]
        self.clock.add(times)
        steps = np.diff(times, prepend=times[0] if self._last is None else self._last)[1 if self._last is None else 0 :]
        self.between.add(np.maximum(steps, 0))
        self.backward += int((steps < 0).sum())
        self._last = int(times[-1])
        self._begin = int(times.min()) if self._begin is None else min(self._begin, int(times.min()))
        self._end = max(self._end, int(times.max()))
        has_both = has_arrival & batch.column("completed").is_valid().to_numpy(zero_copy_only=False)
        if has_both.any():
            completed = batch.column("completed").fill_null(0).to_numpy()
            self._end = max(self._end, int(completed[has_both].max()))
            self.outstanding.add(arrival[has_both], completed[has_both])
            for kind in np.unique(operation[has_both]).tolist():
                rows = has_both & (operation == kind)
                self.operations[kind].latency.add(np.maximum(completed - arrival, 0)[rows])

    def as_dict(self) -> dict[str, Any]:
        operations = {OPERATIONS[kind]: self.operations[kind].as_dict() for kind in sorted(self.operations)}
        read, written = (self.operations[kind].bytes if kind in self.operations else 0 for kind in (READ, WRITE))
        values, shares = self.between.distribution()
        return {
            "requests": self.requests,
            "operations": operations,
            "read_share": read / (read + written) if read + written and "operation" not in self.unknown else None,
            "sequential_share": self.sequential / self.requests if self.requests else None,
            "footprint": self.touched.size,
            "footprint_error": self.touched.error,
            "devices": int((self._ends >= 0).sum()),
            "labels": self.labels,
            "duration": None if self._begin is None else self._end - self._begin,
            "between": _percentiles(self.between) | {"values": values.tolist(), "shares": shares.tolist()} if self.between.count else None,
            "outstanding": self.outstanding.as_dict(),
            "backward": self.backward,
            "step": self.clock.step if self.clock.count else None,
            "bursts": self.clock.bursts,
            "unknown": sorted(self.unknown),
            "reuse": _reuse(self.curve.curve()),
            "over_time": self.over_time.as_dict(),
        }


def _count(counts: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        known = name if name in counts or len(counts) < _MOST_NAMES else _OTHERS
        counts[known] = counts.get(known, 0) + count


def _percentiles(values: Histogram) -> dict[str, float]:
    return {"mean": values.mean} | {f"p{share:g}": float(values.percentile(share)) for share in _PERCENTILES}


def _reuse(curve: MissCurve) -> dict[str, Any]:
    """JSON-ready, empty of a trace that touches nothing.

    ``page`` (bytes); ``references``; ``first``, those to pages not touched before; ``rate`` (the share of pages looked at: 1 where all is
    exact); ``distance`` (distinct bytes touched since: percentiles of references to pages touched before); ``distances`` (bytes)
    with ``shares``, their distribution, at some thousands of them; ``cache`` (bytes, powers of two) with ``served``, the share of all
    references that a cache of that size serves if it replaces the least recently used page, and ``error``, what that may be off.
    """
    if not curve.references:
        return {}
    sizes, hits, pages = curve.sizes, curve.whole.hits, curve.doubling()
    some = np.unique(np.geomspace(1, len(sizes), _DISTANCES, dtype=np.int64)) - 1 if len(sizes) else sizes
    return {
        "page": PAGE_SIZE,
        "references": curve.references,
        "first": curve.pages,
        "rate": curve.rate,
        "distance": {f"p{share}": (curve.quantile(share / 100) - 1) * PAGE_SIZE for share in (50, 90, 99)} if len(sizes) else None,
        "distances": ((sizes[some] - 1) * PAGE_SIZE).tolist(),
        "shares": (hits[some] / hits[-1:]).tolist(),
        "cache": (pages * PAGE_SIZE).tolist(),
        "served": (1 - curve.ratio(pages)).tolist(),
        "error": curve.error(pages).tolist(),
    }
