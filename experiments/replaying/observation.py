"""What is watched while a simulated drive runs: its counters over time, pauses of its dies by garbage collection, and its timeline."""

import numpy as np
import pyarrow as pa

from experiments.presentation.percentiles import summary
from experiments.presentation.timeline import Timeline
from experiments.replaying.amplification import History
from flashsim.core.request import Completions
from flashsim.core.spans import GC, MERGE, SPAN, WEAR, Spans
from flashsim.core.units import NEVER
from flashsim.device.device import Device
from traces.histogram import Histogram


class GcPauses:
    """Pauses of all dies: holds of one die by garbage collection, merges or wear levelling that follow each other without a gap.

    A host operation or an idle moment between two holds ends a pause: an operation that comes then is served.

    Parameters
    ----------
    dies
        Of the drive; its first so many servers.
    """

    def __init__(self, dies: int) -> None:
        self._dies = dies
        self._times = Histogram()
        self._last = np.zeros(0, SPAN)  # a span a die: the last pause or other stretch of work, which may go on

    def add(self, spans: Spans) -> None:
        """Take what parts of the drive did, dtype SPAN; each call later than the one before."""
        self._times.add(self._stretches(np.concatenate([self._last, spans[spans["server"] < self._dies]]), keep=True))

    def as_dict(self) -> dict[str, float] | None:
        """How many there were, and their total, mean, percentiles and maximum, ns; None if there was none.  More may follow."""
        times = Histogram()
        times.merge(self._times)
        times.add(self._stretches(self._last, keep=False))
        return {"pauses": times.count, "total": round(times.mean * times.count), **summary(times)} if times.count else None

    def _stretches(self, spans: Spans, keep: bool) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The lengths of pauses that are over; with `keep`, the last stretch of each die is set aside."""
        spans = spans[np.lexsort((spans["begin"], spans["server"]))]
        if not len(spans):
            return np.zeros(0, np.int64)
        server, paused = spans["server"], np.isin(spans["cause"], (GC, MERGE, WEAR))
        starts = np.ones(len(spans), bool)
        starts[1:] = (server[1:] != server[:-1]) | (paused[1:] != paused[:-1]) | (spans["begin"][1:] > spans["end"][:-1])
        first = np.flatnonzero(starts)
        stretches = spans[first]
        stretches["end"] = np.maximum.reduceat(spans["end"], first)
        over = paused[first]
        if keep:
            newest = np.append(stretches["server"][1:] != stretches["server"][:-1], True)
            self._last = stretches[newest]
            over = over & ~newest
        return (stretches["end"] - stretches["begin"])[over]


class Observation:
    """Looks at a drive whenever its clock has moved, before anybody is told which requests completed.

    `history` and `pauses` are None of a disk, `pauses` also of a drive that records no spans.

    Parameters
    ----------
    device
        Fresh, apart from what was loaded.
    timeline
        What to write the run into.
    record
        Whether the drive shall record spans even without a timeline, for `pauses`.
    """

    def __init__(self, device: Device, timeline: Timeline | None = None, record: bool = False) -> None:
        self._device, self._timeline = device, timeline
        self.history: History | None = None
        self.pauses: GcPauses | None = None
        parameters = device.preset.flash
        if parameters:
            self.history = History(parameters.page_size)
            self.history.take(device.now, device.statistics())
            if (timeline or record) and device.record_spans():
                self.pauses = GcPauses(parameters.dies)

    @property
    def next(self) -> int:
        """When it wants to look next, ns, at the latest."""
        return self.history.next if self.history else NEVER

    def look(self) -> None:
        if self.history and self._device.now >= self.history.next:
            self.history.take(self._device.now, self._device.statistics())
        if self.pauses:
            spans = self._device.spans()
            self.pauses.add(spans)
            if self._timeline:
                self._timeline.add_spans(spans)

    def finish(self) -> None:
        self.look()
        if self.history:
            self.history.take(self._device.now, self._device.statistics())

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Requests (columns of the trace schema) have completed, in the order of their ids."""
        if self._timeline:
            columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in ("operation", "offset", "length")}
            self._timeline.add_requests(columns, completions)
