"""What is watched while a simulated drive runs: its counters over time, pauses of its dies, and its timeline."""

from __future__ import annotations

import pyarrow as pa

from experiments.presentation.timeline import Timeline
from experiments.replaying.amplification import History
from experiments.replaying.gc_pauses import GcPauses
from flashsim.core.request import Completions
from flashsim.core.units import NEVER
from flashsim.device.device import Device


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
        """The clock has moved."""
        if self.history and self._device.now >= self.history.next:
            self.history.take(self._device.now, self._device.statistics())
        if self.pauses:
            spans = self._device.spans()
            self.pauses.add(spans)
            if self._timeline:
                self._timeline.add_spans(spans)

    def finish(self) -> None:
        """The run is over."""
        self.look()
        if self.history:
            self.history.take(self._device.now, self._device.statistics())

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Requests (columns of the trace schema) have completed, in the order of their ids."""
        if self._timeline:
            columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in ("operation", "offset", "length")}
            self._timeline.add_requests(columns, completions)
