"""What a trace says of a workload: counts, sizes, sequentiality, footprint and latencies, in one pass over the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flashsim.core.request import FLUSH, OPERATIONS, READ, WRITE, Integers
from traces.format.base import read_trace, recognise
from traces.histogram import Histogram
from traces.schema import open_trace, provenance_of

_PERCENTILES = (50, 90, 99, 99.9)


class Footprint:
    """The union of byte ranges seen, as disjoint sorted ranges."""

    def __init__(self) -> None:
        self.ranges = np.zeros((0, 2), np.int64)

    def add(self, offset: Integers, length: Integers) -> None:
        """Take byte ranges, shape (n,) each."""
        ranges = np.concatenate([self.ranges, np.stack([offset, offset + length], axis=1)])
        ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
        if len(ranges):
            reach = np.maximum.accumulate(ranges[:, 1])
            begins = np.flatnonzero(np.concatenate([[True], ranges[1:, 0] > reach[:-1]]))
            self.ranges = np.stack([ranges[begins, 0], reach[np.append(begins[1:], len(ranges)) - 1]], axis=1)

    @property
    def size(self) -> int:
        """How many bytes that is."""
        return int((self.ranges[:, 1] - self.ranges[:, 0]).sum())


def describe(path: str | Path) -> dict[str, Any]:
    """Summarise a trace file, of any format that is recognised.

    Returns
    -------
    dict
        JSON-ready: ``format``; ``requests``; by operation its ``requests``, ``bytes``, ``sizes`` (bytes: count) and, where timed,
        ``latency`` (ns: mean and percentiles); ``read_share`` of the bytes; ``sequential_share`` (requests that begin where the one
        before on the same device ended); ``footprint`` (distinct bytes); ``labels`` (requests by file); ``duration`` (ns); ``between``
        (ns from an arrival to the next: mean and percentiles); ``provenance``.

    Raises
    ------
    MissingFileError, DamagedFileError
        See `traces.format.base.recognise` and `traces.format.base.Format.read`.
    """
    name = recognise(path)
    sizes: dict[int, dict[int, int]] = {}
    latencies: dict[int, Histogram] = {}
    footprints: dict[int, Footprint] = {}
    ends: dict[int, int] = {}
    labels: dict[str, int] = {}
    requests = sequential = 0
    begin: int | None = None
    end, last, between = 0, None, Histogram()
    for batch in read_trace(path, name):
        column = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in ("device", "operation", "offset", "length")}
        requests += batch.num_rows
        for operation in np.unique(column["operation"]).tolist():
            chosen = column["operation"] == operation
            bucket = sizes.setdefault(operation, {})
            for length, count in zip(*np.unique(column["length"][chosen], return_counts=True), strict=True):
                bucket[int(length)] = bucket.get(int(length), 0) + int(count)
        for device in np.unique(column["device"]).tolist():
            chosen = (column["device"] == device) & (column["operation"] != FLUSH)
            offset, length = column["offset"][chosen], column["length"][chosen]
            before = np.concatenate([[ends.get(device, -1)], (offset + length)[:-1]])
            sequential += int((offset == before).sum())
            if len(offset):
                ends[device] = int(offset[-1] + length[-1])
            footprints.setdefault(device, Footprint()).add(offset, length)
        for entry in batch.column("label").value_counts().to_pylist():
            labels[entry["values"]] = labels.get(entry["values"], 0) + entry["counts"]
        if not batch.num_rows or batch.column("arrival").null_count:
            continue
        arrival = batch.column("arrival").to_numpy()
        steps = np.diff(arrival, prepend=arrival[0] if last is None else last)
        between.add(np.maximum(steps, 0)[1 if last is None else 0 :])
        last = int(arrival[-1])
        begin = int(arrival.min()) if begin is None else min(begin, int(arrival.min()))
        end = max(end, int(arrival.max()))
        timed = batch.column("completed").is_valid().to_numpy(zero_copy_only=False)
        if timed.any():
            completed = batch.column("completed").fill_null(0).to_numpy()
            end = max(end, int(completed[timed].max()))
            for operation in np.unique(column["operation"][timed]).tolist():
                chosen = timed & (column["operation"] == operation)
                latencies.setdefault(operation, Histogram()).add((completed - arrival)[chosen])
    operations = {OPERATIONS[operation]: _operation(sizes[operation], latencies.get(operation)) for operation in sorted(sizes)}
    read, written = (operations.get(OPERATIONS[kind], {}).get("bytes", 0) for kind in (READ, WRITE))
    return {
        "format": name,
        "requests": requests,
        "operations": operations,
        "read_share": read / (read + written) if read + written else None,
        "sequential_share": sequential / requests if requests else None,
        "footprint": sum(footprint.size for footprint in footprints.values()),
        "devices": len(footprints),
        "labels": labels,
        "duration": None if begin is None else end - begin,
        "between": _times(between) if between.count else None,
        "provenance": provenance_of(open_trace(path).schema_arrow) if name == "parquet" else {},
    }


def _operation(sizes: dict[int, int], latencies: Histogram | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "requests": sum(sizes.values()),
        "bytes": sum(size * count for size, count in sizes.items()),
        "sizes": {str(size): sizes[size] for size in sorted(sizes)},
    }
    if latencies:
        told["latency"] = _times(latencies)
    return told


def _times(times: Histogram) -> dict[str, float]:
    return {"mean": times.mean} | {f"p{share:g}": float(times.percentile(share)) for share in _PERCENTILES}
