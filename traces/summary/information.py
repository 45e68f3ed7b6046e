"""The summary of a trace: counts, sizes, sequentiality, footprint, times, and how they change, in one pass in constant memory."""

from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.core.outstanding import OutstandingLevel
from flashsim.core.protocols import Progress
from flashsim.core.request import FLUSH, OPERATIONS, READ, WRITE, Integers
from flashsim.core.units import GIB, MIB
from traces.file.excerpt import Source, recognised
from traces.file.page_trace import pages_touched
from traces.file.schema import column, open_trace, provenance_of, unknown_columns
from traces.format.base import basis
from traces.references.base import expanded
from traces.summary.distinct import PAGE, OverTime, Touched
from traces.summary.histogram import Clock, Histogram
from traces.summary.reuse import FIRST, SampledDistances

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
        JSON-ready: ``format``; ``basis`` (what it was recognised by, and the units of its numbers); ``requests``; by operation its
        ``requests``, ``bytes``, ``sizes`` (bytes: count), ``size`` (bytes: mean and percentiles) and, where timed, ``latency`` (ns: mean
        and percentiles); ``read_share`` of the bytes; ``sequential_share`` (requests that begin where the one before on the same device
        ended); ``footprint`` (distinct bytes read or written, in whole sectors, and ``footprint_error``, its relative standard error: 0
        where it is exact); ``devices``; ``labels`` (requests by file); ``duration`` (ns); ``between`` (ns from an arrival to the next: mean
        and percentiles, and ``values`` with ``shares``, the distribution);
        ``outstanding`` (`flashsim.core.outstanding.OutstandingLevel.as_dict`; None where nothing is timed);
        ``backward`` (arrivals before the one before, which count as 0 in ``between``); ``step`` (ns, of which all arrivals are multiples)
        and ``bursts``, a warning where that is coarse; ``unknown`` (columns that are not in the file, such as ``operation``);
        ``reuse`` (`Locality.as_dict`); ``over_time`` (`traces.summary.distinct.OverTime`);
        ``provenance``.
    """
    whole = recognised(source)
    summary = _Summary()
    for batch in whole.batches():
        if batch.num_rows:
            summary.add(batch)
        if progress:
            progress(summary.requests, summary.requests)
    provenance = provenance_of(open_trace(whole.path).schema_arrow) if whole.format == "parquet" else {}
    return {"format": whole.format, "basis": basis(whole.path, whole.format or ""), **summary.as_dict(), "provenance": provenance}


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
        latency = {"latency": _spread(self.latency)} if self.latency.count else {}
        return {"requests": self.requests, "bytes": self.bytes, "sizes": sizes, "size": spread, **latency}


class _Summary:
    """The summary of the requests so far."""

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
        device, operation, offset, length = (column(batch, name).astype(np.int64) for name in ("device", "operation", "offset", "length"))
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


#: The part of a longer request that counts: what reads more at once does not come back to it in a cache.
_LONGEST = 16 * MIB
_MOST_PAGES = 1 << 22


class Locality:
    """Reuse distances of a trace's pages, and so the hits of caches of any size.

    Pages are of 4 KiB.  Distances are exact (`traces.summary.reuse`) while there are at most 4 million pages (16 GiB); then the pages whose
    hash is in the lower half go on as a sample, and so on as more come: their references and distances count twice, four times, ...
    (`traces.summary.reuse`).

    Examples
    --------
    >>> locality = Locality()
    >>> locality.add(np.zeros(3, np.int64), np.array([0, 4096, 0]), np.array([8192, 4096, 4096]))
    >>> reuse = locality.as_dict()
    >>> reuse["references"], reuse["first"], reuse["cache"], reuse["served"]
    (4, 2, [4096, 8192], [0.25, 0.5])
    """

    def __init__(self, most_pages: int = _MOST_PAGES) -> None:
        self.references = self._first = 0
        self._distances, self._sample = Histogram(), SampledDistances(most_pages=most_pages, even=False)

    def add(self, device: Integers, offset: Integers, length: Integers) -> None:
        """Take requests, in their order, shape (n,); what has no length touches nothing."""
        for pages, _ in expanded(*pages_touched(device, offset, np.minimum(length, _LONGEST), PAGE)):
            self.references += len(pages)
            for sample in self._sample.add(pages):
                weight, again = round(sample.scale), sample.distances[sample.distances != FIRST]
                self._distances.add(again * weight, weight)
                self._first += weight * (len(sample.distances) - len(again))

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, empty of a trace that touches nothing.

        ``page`` (bytes); ``references``; ``first``, those to pages not touched before; ``rate`` (the share of pages in the sample: 1 where
        distances are exact); ``distance`` (distinct bytes touched since: percentiles of references to pages touched before);
        ``distances`` (bytes) with ``shares``, their distribution; ``cache`` (bytes, powers of two) with ``served``, the share of all
        references that a cache of that size serves if it replaces the least recently used page.
        """
        if not self.references:
            return {}
        again = self._distances.count
        values, shares = self._distances.distribution()
        largest = round(self._sample.distinct / self._sample.rate)
        pages = [1 << power for power in range(max(1, largest - 1).bit_length() + 1)]
        below = np.append(0.0, shares)[np.searchsorted(values, pages)]  # exact: a bucket of the histogram begins at each power of two
        return {
            "page": PAGE,
            "references": self.references,
            "first": self._first,
            "rate": self._sample.rate,
            "distance": {f"p{share}": self._distances.percentile(share) * PAGE for share in (50, 90, 99)} if again else None,
            "distances": (values * PAGE).tolist(),
            "shares": shares.tolist(),
            "cache": [size * PAGE for size in pages],
            "served": (again * below / (again + self._first)).tolist(),
        }
