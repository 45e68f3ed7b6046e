"""What a trace says of a workload: counts, sizes, sequentiality, footprint and latencies, in one pass over the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flashsim.core.errors import DamagedFileError
from flashsim.core.request import FLUSH, OPERATIONS, READ, WRITE, Integers
from traces.schema import open_trace, provenance_of

_PERCENTILES = (50, 90, 99, 99.9)


class _Footprint:
    """The union of byte ranges seen, as disjoint sorted ranges."""

    def __init__(self) -> None:
        self.ranges = np.zeros((0, 2), np.int64)

    def add(self, offset: Integers, length: Integers) -> None:
        ranges = np.concatenate([self.ranges, np.stack([offset, offset + length], axis=1)])
        ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
        if len(ranges):
            reach = np.maximum.accumulate(ranges[:, 1])
            begins = np.flatnonzero(np.concatenate([[True], ranges[1:, 0] > reach[:-1]]))
            self.ranges = np.stack([ranges[begins, 0], reach[np.append(begins[1:], len(ranges)) - 1]], axis=1)

    @property
    def size(self) -> int:
        return int((self.ranges[:, 1] - self.ranges[:, 0]).sum())


def describe(path: str | Path) -> dict[str, Any]:
    """Summarise a trace file.

    Returns
    -------
    dict
        JSON-ready: ``requests``; by operation its ``requests``, ``bytes``, ``sizes`` (bytes: count) and, where timed, ``latency`` (ns:
        mean and percentiles); ``read_share`` of the bytes; ``sequential_share`` (requests that begin where the one before on the
        same device ended); ``footprint`` (distinct bytes); ``labels`` (requests by file); ``duration`` (ns); ``provenance``.

    Raises
    ------
    MissingFileError, DamagedFileError
        See `traces.schema.open_trace`.
    """
    file = open_trace(path)
    sizes: dict[int, dict[int, int]] = {}
    latencies: dict[int, list[Integers]] = {}
    footprints: dict[int, _Footprint] = {}
    ends: dict[int, int] = {}
    labels: dict[str, int] = {}
    requests = sequential = 0
    begin, end = None, 0
    try:
        for batch in file.iter_batches(batch_size=1 << 18):
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
                footprints.setdefault(device, _Footprint()).add(offset, length)
            for entry in batch.column("label").value_counts().to_pylist():
                labels[entry["values"]] = labels.get(entry["values"], 0) + entry["counts"]
            if batch.num_rows and not batch.column("completed").null_count:
                arrival, completed = batch.column("arrival").to_numpy(), batch.column("completed").to_numpy()
                begin = int(arrival.min()) if begin is None else min(begin, int(arrival.min()))
                end = max(end, int(completed.max()))
                for operation in np.unique(column["operation"]).tolist():
                    chosen = column["operation"] == operation
                    latencies.setdefault(operation, []).append((completed - arrival)[chosen])
    except OSError as problem:
        raise DamagedFileError(f"trace: {path} is damaged: {problem}".split("\n", 1)[0]) from problem
    operations = {OPERATIONS[operation]: _operation(sizes[operation], latencies.get(operation)) for operation in sorted(sizes)}
    read, written = (operations.get(OPERATIONS[kind], {}).get("bytes", 0) for kind in (READ, WRITE))
    return {
        "requests": requests,
        "operations": operations,
        "read_share": read / (read + written) if read + written else None,
        "sequential_share": sequential / requests if requests else None,
        "footprint": sum(footprint.size for footprint in footprints.values()),
        "devices": len(footprints),
        "labels": labels,
        "duration": None if begin is None else end - begin,
        "provenance": provenance_of(file),
    }


def _operation(sizes: dict[int, int], latencies: list[Integers] | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "requests": sum(sizes.values()),
        "bytes": sum(size * count for size, count in sizes.items()),
        "sizes": {str(size): sizes[size] for size in sorted(sizes)},
    }
    if latencies:
        every = np.concatenate(latencies)
        told["latency"] = {"mean": float(every.mean())} | {f"p{p:g}": float(np.percentile(every, p)) for p in _PERCENTILES}
    return told
