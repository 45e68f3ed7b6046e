"""What a trace says of a workload: counts, sizes, sequentiality, footprint, times, and how they change, in one pass in constant memory."""

from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.core.outstanding import OutstandingLevel
from flashsim.core.protocols import Progress
from flashsim.core.request import FLUSH, OPERATIONS, READ, WRITE, Integers
from flashsim.core.units import GIB, MILLISECONDS
from traces.file.excerpt import Source, recognised
from traces.file.schema import open_trace, provenance_of, unknown_columns
from traces.summary import distinct
from traces.summary.clock import Clock
from traces.summary.distinct import Touched
from traces.summary.histogram import Histogram
from traces.summary.locality import Locality

_PERCENTILES = (50, 90, 99, 99.9)
#: Labels, and sizes of an operation, that are counted one by one; those that come later are counted together, as "(others)".
_MOST_NAMES = 1 << 14
_OTHERS = "(others)"
#: No device takes larger requests; of those that files claim, so much counts as touched.
_MOST_TOUCHED = 4 * GIB


def describe(source: Source, progress: Progress | None = None) -> dict[str, Any]:
    """Summarise a trace file, of any format that is recognised or named, or a part of it.

    Returns
    -------
    dict
        JSON-ready: ``format``; ``requests``; by operation its ``requests``, ``bytes``, ``sizes`` (bytes: count), ``size`` (bytes: mean and
        percentiles) and, where timed, ``latency`` (ns: mean and percentiles); ``read_share`` of the bytes; ``sequential_share`` (requests
        that begin where the one before on the same device ended); ``footprint`` (distinct bytes read or written, in whole sectors, and
        ``footprint_error``, its relative standard error: 0 where it is exact); ``devices``; ``labels`` (requests by file); ``duration``
        (ns); ``between`` (ns from an arrival to the next: mean and percentiles, and ``values`` with ``shares``, the distribution);
        ``outstanding`` (`flashsim.core.outstanding.OutstandingLevel.as_dict`; None where nothing is timed);
        ``backward`` (arrivals before the one before, which count as 0 in ``between``); ``step`` (ns, of which all arrivals are multiples)
        and ``bursts``, a warning where that is coarse; ``unknown`` (columns that are not in the file, such as ``operation``);
        ``reuse`` (`traces.summary.locality.Locality.as_dict`); ``over_time`` (`OverTime`);
        ``provenance``.
    """
    whole = recognised(source)
    summary = _Summary()
    for batch in whole.batches():
        if batch.num_rows:
            summary.add(batch)
        if progress:
            progress(summary.requests, summary.requests)
    own = whole.format == "parquet"
    return {
        "format": whole.format,
        **summary.as_dict(),
        "provenance": provenance_of(open_trace(whole.path).schema_arrow) if own else {},
    }


class _Operation:
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
        spread = _spread(self.size)
        if _OTHERS not in sizes:  # every size was counted by itself
            values, ranks = [float(size) for size in sizes], np.cumsum(list(sizes.values()))
            spread |= {f"p{share:g}": values[int(np.searchsorted(ranks, share / 100 * self.requests - 1e-9))] for share in _PERCENTILES}
        told: dict[str, Any] = {"requests": self.requests, "bytes": self.bytes, "sizes": sizes, "size": spread}
        return told | ({"latency": _spread(self.latency)} if self.latency.count else {})


class _Summary:
    """All that is told, request by request."""

    def __init__(self) -> None:
        self.requests = self.sequential = self.backward = 0
        self.operations: dict[int, _Operation] = {}
        self.labels: dict[str, int] = {}
        self.touched, self.over_time, self.between = Touched(), OverTime(), Histogram()
        self.clock, self.locality, self.unknown = Clock(), Locality(), frozenset[str]()
        self.outstanding = OutstandingLevel()
        self._ends = np.full(1 << 15, -1)  # where the last request on each device ended
        self._begin: int | None = None
        self._end = 0
        self._last: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        device, operation, offset, length = (
            batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64) for name in ("device", "operation", "offset", "length")
        )
        for kind in np.unique(operation).tolist():
            self.operations.setdefault(kind, _Operation()).add(length[operation == kind])
        placed = operation != FLUSH
        self._follow(device[placed], offset[placed], length[placed])
        touched = np.where((operation == READ) | (operation == WRITE), np.minimum(length, _MOST_TOUCHED), 0)
        self.touched.add(device, offset, touched)
        self.locality.add(device, offset, touched)
        self.over_time.add(self.requests, batch.column("arrival"), device, offset, touched)
        _count(self.labels, {entry["values"] or "": entry["counts"] for entry in batch.column("label").value_counts().to_pylist()})
        self.requests += batch.num_rows
        self.unknown |= unknown_columns(batch.schema)
        self._time(batch, operation)

    def _follow(self, device: Integers, offset: Integers, length: Integers) -> None:
        order = np.argsort(device, kind="stable")
        device, offset, end = device[order], offset[order], (offset + length)[order]
        first = np.diff(device, prepend=-1) != 0
        before = np.where(first, self._ends[device], np.append([0], end[:-1])[: len(end)])
        self.sequential += int((offset == before).sum())
        last = np.diff(device, append=-1) != 0
        self._ends[device[last]] = end[last]

    def _time(self, batch: pa.RecordBatch, operation: Integers) -> None:
        known = batch.column("arrival").is_valid().to_numpy(zero_copy_only=False)
        if not known.any():
            return
        arrival = batch.column("arrival").fill_null(0).to_numpy()
        times = arrival[known]
        self.clock.add(times)
        steps = np.diff(times, prepend=times[0] if self._last is None else self._last)[1 if self._last is None else 0 :]
        self.between.add(np.maximum(steps, 0))
        self.backward += int((steps < 0).sum())
        self._last = int(times[-1])
        self._begin = int(times.min()) if self._begin is None else min(self._begin, int(times.min()))
        self._end = max(self._end, int(times.max()))
        timed = known & batch.column("completed").is_valid().to_numpy(zero_copy_only=False)
        if timed.any():
            completed = batch.column("completed").fill_null(0).to_numpy()
            self._end = max(self._end, int(completed[timed].max()))
            self.outstanding.add(arrival[timed], completed[timed])
            for kind in np.unique(operation[timed]).tolist():
                chosen = timed & (operation == kind)
                self.operations[kind].latency.add(np.maximum(completed - arrival, 0)[chosen])

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
            "between": _spread(self.between) | {"values": values.tolist(), "shares": shares.tolist()} if self.between.count else None,
            "outstanding": self.outstanding.as_dict(),
            "backward": self.backward,
            "step": self.clock.step if self.clock.count else None,
            "bursts": self.clock.bursts,
            "unknown": sorted(self.unknown),
            "reuse": self.locality.as_dict(),
            "over_time": self.over_time.as_dict(),
        }


def _count(counts: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        known = name if name in counts or len(counts) < _MOST_NAMES else _OTHERS
        counts[known] = counts.get(known, 0) + count


def _spread(values: Histogram) -> dict[str, float]:
    return {"mean": values.mean} | {f"p{share:g}": float(values.percentile(share)) for share in _PERCENTILES}


_WINDOWS = 128
_PLACES = 128
_SKETCH = 1 << 12
#: The shortest windows: of 2**20 ns, or of one request; the smallest places: of 1 MiB.
_SHORTEST = {"ns": MILLISECONDS.bit_length(), "requests": 0}
_SMALLEST = 20


class OverTime:
    """How a trace goes over time, in constant memory: at most 128 windows, which are joined in pairs as the trace grows longer.

    Time is that of arrivals (`unit` is ``"ns"``), or, where the first request has none, the number of the request (``"requests"``).  A
    window knows how many requests and bytes it had, its working set (the distinct pages of 4 KiB, by a sketch), and
    where on the device its requests began.
    """

    def __init__(self) -> None:
        self.unit = ""
        self._shift, self._place_shift = 0, _SMALLEST
        self._begin = self._reach = self._last = 0
        self._requests, self._bytes = np.zeros(_WINDOWS, np.int64), np.zeros(_WINDOWS, np.int64)
        self._sketches = distinct.new_sketches(_WINDOWS, _SKETCH)
        self._heat = np.zeros((_WINDOWS, _PLACES), np.int64)

    def add(self, first: int, arrival: Any, device: Integers, offset: Integers, length: Integers) -> None:
        """Take requests, shape (n,), of which the first has the number `first`; `arrival` is a column that may have nulls.

        What has no length touches no place.  A request without time, in a trace that has times, counts with the latest before it; one
        before the first, with the first.
        """
        if not len(offset):
            return
        if not self.unit:
            self.unit = "ns" if arrival[0].is_valid else "requests"
            self._begin = self._last = arrival[0].as_py() if self.unit == "ns" else first
            self._shift = _SHORTEST[self.unit]
        if self.unit == "ns":
            times = arrival.fill_null(0).to_numpy(zero_copy_only=False)
            if arrival.null_count:
                known = np.where(arrival.is_valid().to_numpy(zero_copy_only=False), times, 0)
                times = np.where(known > 0, known, np.maximum(self._last, np.maximum.accumulate(known)))
            self._last = max(self._last, int(times.max()))
        else:
            times = np.arange(first, first + len(offset))
        since = np.maximum(times - self._begin, 0)
        self._reach = max(self._reach, int(since.max()))
        touching = length > 0
        self._widen(int(offset.max(where=touching, initial=0)))
        window, place = since >> self._shift, offset >> self._place_shift
        self._requests += np.bincount(window, minlength=_WINDOWS)
        self._bytes += np.bincount(window, length, _WINDOWS).astype(np.int64)
        spot = (window * _PLACES + place)[touching]
        self._heat += np.bincount(spot, minlength=self._heat.size).reshape(self._heat.shape)
        distinct.sketch(window, device, offset, length, self._sketches)

    def _widen(self, offset: int) -> None:
        while self._reach >> self._shift >= _WINDOWS:
            for counts in (self._requests, self._bytes, self._heat):
                counts[: _WINDOWS // 2] = counts[::2] + counts[1::2]
                counts[_WINDOWS // 2 :] = 0
            self._sketches[: _WINDOWS // 2] = np.maximum(self._sketches[::2], self._sketches[1::2])
            self._sketches[_WINDOWS // 2 :] = 0
            self._shift += 1
        while offset >> self._place_shift >= _PLACES:
            self._heat[:, : _PLACES // 2] = self._heat[:, ::2] + self._heat[:, 1::2]
            self._heat[:, _PLACES // 2 :] = 0
            self._place_shift += 1

    def as_dict(self) -> dict[str, Any]:
        """What `traces.summary.information.describe` says of the windows; empty of a trace without requests."""
        if not self.unit:
            return {}
        used = (self._reach >> self._shift) + 1
        until = np.maximum.accumulate(self._sketches[:used], axis=0)
        places = int(np.flatnonzero(self._heat.any(axis=0)).max(initial=0)) + 1
        return {
            "unit": self.unit,
            "length": 1 << self._shift,
            "requests": self._requests[:used].tolist(),
            "bytes": self._bytes[:used].tolist(),
            "working_set": [_bytes(registers) for registers in self._sketches[:used]],
            "footprint": [_bytes(registers) for registers in until],
            "by_length": self._by_length(used),
            "standard_error": distinct.standard_error(_SKETCH),
            "place": 1 << self._place_shift,
            "places": self._heat[:used, :places].tolist(),
        }

    def _by_length(self, used: int) -> dict[str, list[int]]:
        """The working set in windows of each length: ``length``, the ``mean`` of those that are over, and the ``most``."""
        told: dict[str, list[int]] = {"length": [], "mean": [], "most": []}
        sketches, length = self._sketches[:used], 1 << self._shift
        while True:
            sizes = [_bytes(registers) for registers in sketches]
            over = sizes[: max(1, (self._reach + 1) // length)]
            for name, value in (("length", length), ("mean", round(sum(over) / len(over))), ("most", max(sizes))):
                told[name].append(value)
            if len(sketches) == 1:
                return told
            odd = distinct.new_sketches(len(sketches) % 2, _SKETCH)
            pairs = np.concatenate([sketches, odd])
            sketches, length = np.maximum(pairs[::2], pairs[1::2]), 2 * length


def _bytes(registers: distinct.Registers) -> int:
    return round(distinct.estimate(registers)) * distinct.PAGE
