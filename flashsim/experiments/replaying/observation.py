"""Observation of a simulated drive as it runs: write amplification by cause and over time, pauses by garbage collection, its timeline."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from flashsim.core.errors import option
from flashsim.core.request import Completions, Integers
from flashsim.core.spans import CAUSES, FOLD, GC, MERGE, SPAN, WEAR, Spans, holds
from flashsim.core.units import MILLISECONDS, NEVER
from flashsim.device.device import Device
from flashsim.device.latency_parts import parts_of
from flashsim.experiments.presentation.tables import spread
from flashsim.experiments.presentation.timeline import Timeline
from traces.summary.histogram import Histogram

#: Samples are thinned to half when there are so many.
MOST_SAMPLES = 256
#: Cause of fewer bytes programmed than written.
BELOW_ONE = "write amplification below 1: pages are still in the write buffer, or were rewritten there"
#: Cause of a drive that has moved no page.
NOT_COLLECTED = (
    "nothing was collected: no block was erased; a full drive writes more, as in its steady state (" + option("precondition") + " steady)"
)


def by_cause(statistics: Mapping[str, Any], what: str) -> dict[str, int]:
    """Counters ``<what>_<cause>`` of a drive, by cause; empty if it has none.

    Examples
    --------
    >>> by_cause({"programs_host": 5, "programs_gc": 2, "reads_host": 1}, "programs")
    {'host': 5, 'gc': 2}
    """
    return {cause: statistics[f"{what}_{cause}"] for cause in CAUSES if f"{what}_{cause}" in statistics}


def write_amplification(statistics: Mapping[str, Any], page_size: int) -> dict[str, float] | None:
    """Flash bytes programmed over host bytes written: ``total``, and its parts if counters have causes; None before the first write.

    The part of the host is more than 1 where it writes parts of flash pages.
    """
    host_bytes = statistics.get("host_write_bytes", 0)
    if not host_bytes or "flash_programs" not in statistics:
        return None
    programs = {"total": statistics["flash_programs"], **by_cause(statistics, "programs")}
    return {cause: count * page_size / host_bytes for cause, count in programs.items()}


def growth(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Growth of counters; other values stay as they are.

    Examples
    --------
    >>> growth({"reads": 2, "die_busy_ns": [1, 2]}, {"reads": 5, "die_busy_ns": [4, 2], "name": "x"})
    {'reads': 3, 'die_busy_ns': [3, 0], 'name': 'x'}
    """
    result: dict[str, Any] = {}
    for name, now in after.items():
        then = before.get(name)
        if isinstance(now, list) and isinstance(then, list):
            result[name] = [value - earlier for value, earlier in zip(now, then, strict=True)]
        else:
            result[name] = now - then if isinstance(now, int | float) and isinstance(then, int | float) else now
    return result


class CounterHistory:
    """Counters of a drive as a run goes on, at times that lie ever further apart, so that there are never many.

    `page_size` is bytes of a flash page, or of a mapping unit.
    """

    def __init__(self, page_size: int) -> None:
        self.page_size, self._interval = page_size, MILLISECONDS
        self._samples: list[dict[str, int]] = []

    @property
    def next(self) -> int:
        return self._samples[-1]["time"] + self._interval if self._samples else 0

    def take(self, now: int, statistics: Mapping[str, Any]) -> None:
        """Note the counters at a time, ns, not before the last one."""
        if self._samples and self._samples[-1]["time"] == now:
            self._samples.pop()
        programs = {f"programs_{cause}": count for cause, count in by_cause(statistics, "programs").items()}
        counts = {name: statistics[name] for name in ("host_write_bytes", "flash_programs", "flash_erases")}
        self._samples.append({"time": now, **counts, **programs})
        if len(self._samples) >= MOST_SAMPLES:
            self._samples = self._samples[::2]
            self._interval *= 2

    def as_frame(self) -> pd.DataFrame:
        """A row an interval: its `begin` and its end (`time`), ns, the counters' growth, and what it makes, `write_amplification`.

        Columns ``write_amplification_<cause>`` exist if counters have causes; the values are NaN where nothing was written.
        """
        frame = pd.DataFrame(self._samples)
        if len(frame) < 2:
            return frame.iloc[0:0]
        grown = frame.diff().iloc[1:].astype("int64").assign(time=frame["time"].iloc[1:])
        grown.insert(0, "begin", frame["time"].to_numpy()[:-1])
        pages = grown["host_write_bytes"].where(grown["host_write_bytes"] > 0, math.nan) / self.page_size
        grown["write_amplification"] = grown["flash_programs"] / pages
        for cause in CAUSES:
            if f"programs_{cause}" in grown:
                grown[f"write_amplification_{cause}"] = grown[f"programs_{cause}"] / pages
        return grown.reset_index(drop=True)


class GcPauses:
    """Pauses of all dies: holds of one die by garbage collection, merges, wear levelling or folding that follow each other without a gap.

    A host operation or an idle moment between two holds ends a pause: an operation that comes then is served.  The dies are the drive's
    first servers.
    """

    def __init__(self, dies: int) -> None:
        self._dies = dies
        self._times = Histogram()
        self._last = np.zeros(0, SPAN)  # a span a die: the last pause or other stretch of work, which may go on

    def add(self, spans: Spans) -> None:
        """Take what parts of the drive did, dtype SPAN; each call later than the one before."""
        self._times.add(self._stretches(np.concatenate([self._last, holds(spans[spans["server"] < self._dies])]), keep=True))

    def as_dict(self) -> dict[str, float] | None:
        """Number, total, mean, percentiles and maximum, ns; None if there was none.  More may follow."""
        times = Histogram()
        times.merge(self._times)
        times.add(self._stretches(self._last, keep=False))
        return {"pauses": times.count, "total": round(times.mean * times.count), **spread(times)} if times.count else None

    def _stretches(self, spans: Spans, keep: bool) -> Integers:
        """The lengths of pauses that are over; with `keep`, the last stretch of each die is set aside."""
        spans = spans[np.lexsort((spans["begin"], spans["server"]))]
        if not len(spans):
            return np.zeros(0, np.int64)
        server, begin, end = (spans[name] for name in ("server", "begin", "end"))
        is_pause = np.isin(spans["cause"], (FOLD, GC, MERGE, WEAR))
        starts = np.ones(len(spans), bool)
        starts[1:] = (server[1:] != server[:-1]) | (is_pause[1:] != is_pause[:-1]) | (begin[1:] > end[:-1])
        first = np.flatnonzero(starts)
        stretches, over = spans[first], is_pause[first]
        stretches["end"] = np.maximum.reduceat(end, first)
        if keep:
            newest = np.append(np.diff(server[first]) != 0, True)
            self._last, over = stretches[newest], over & ~newest
        lengths: Integers = stretches["end"] - stretches["begin"]
        return lengths[over]


class Observation:
    """Samples a drive, fresh apart from loaded data, whenever its clock has moved, before completions are handed out.

    `history` and `pauses` are None of a disk, `pauses` also of a drive that records no spans: `record` them even without a timeline.
    """

    def __init__(self, device: Device, timeline: Timeline | None = None, record: bool = False) -> None:
        self._device, self._timeline, parameters = device, timeline, device.preset.flash
        self._record = np.zeros(0, SPAN)  # of requests that have not been handed out
        self.history = CounterHistory(parameters.unit_size) if parameters else None
        if self.history:
            self.history.take(device.now, device.statistics())
        has_spans = parameters is not None and (timeline or record) and device.record_spans()
        self.pauses = GcPauses(parameters.dies) if parameters and has_spans else None

    def __getstate__(self) -> dict[str, Any]:
        """The observation without the live drive, which cannot be pickled."""
        return vars(self) | {"_device": None, "_timeline": None}

    @property
    def next(self) -> int:
        """The latest time of the next look, ns."""
        return self.history.next if self.history else NEVER

    def look(self) -> None:
        if self.history and self._device.now >= self.history.next:
            self.history.take(self._device.now, self._device.statistics())
        if self.pauses:
            spans = self._device.spans()
            self.pauses.add(spans)
            if self._timeline:
                self._timeline.add_spans(spans)
                self._record = np.concatenate([self._record, spans])

    def finish(self) -> None:
        self.look()
        if self.history:
            self.history.take(self._device.now, self._device.statistics())

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Requests (columns of the trace schema) have completed, in the order of their ids."""
        if self._timeline:
            columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in ("operation", "offset", "length")}
            parts = parts_of(self._device, self._record, columns, completions) if self.pauses else None
            self._timeline.add_requests(columns, completions, parts)
            self._record = self._record[self._record["end"] >= completions["submitted"].min(initial=NEVER)]
