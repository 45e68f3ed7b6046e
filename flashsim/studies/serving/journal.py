"""What a served drive was asked: in its own time, in real time, and as a trace."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.core.errors import FlashsimError
from flashsim.core.request import COMPLETION, OPERATIONS
from flashsim.device.nbd.drive import Served
from flashsim.device.presets import Preset
from flashsim.studies.presentation.percentiles import COLUMNS, durations, summary
from flashsim.studies.presentation.tables import Table, same
from flashsim.studies.replaying.device_report import DeviceReport
from traces.file.recording import ParquetWriter
from traces.file.schema import make_batch
from traces.summary.histogram import Histogram

#: A reply is late if it leaves more than this share of the request's time after it was due.
LATE = 0.1

#: Few enough requests at a time that no client waits for their accounts.
_AT_ONCE = 256


class Journal:
    """Collects requests in constant memory; percentiles are within 0.2 %.

    Parameters
    ----------
    preset
        The drive.
    trace
        Where requests are recorded: arrival, start and completion in the drive's time, and as `tag` the real nanoseconds from a request's
        coming to its reply (-1: never answered).

    Attributes
    ----------
    late
        Replies that left late (`LATE`).
    unanswered
        Requests whose client had gone, or that were outstanding in the end.
    """

    def __init__(self, preset: Preset, trace: ParquetWriter | None = None) -> None:
        self.late = self.unanswered = 0
        self._report = DeviceReport(preset)
        self._took = [Histogram() for _ in OPERATIONS]  # from coming to reply, real
        self._behind = [Histogram() for _ in OPERATIONS]  # from when the reply was due, real
        self._ahead: dict[int, Served] = {}  # those that await one before them
        self._rows: list[Served] = []
        self._next = 0
        self._trace = trace
        self._writer = ThreadPoolExecutor(1)  # compressing a part of a trace takes longer than a client may wait
        self._problem: FlashsimError | None = None

    def add(self, served: Served) -> None:
        """Take a request that has been answered; once all have come, their numbers are those of arrival, without gaps."""
        self._ahead[served.number] = served
        while self._next in self._ahead:
            self._rows.append(self._ahead.pop(self._next))
            self._next += 1
        if len(self._rows) >= _AT_ONCE:
            self._account()

    def close(self) -> None:
        """Nothing more comes."""
        self._account()
        self._writer.shutdown()
        if self._problem:
            raise self._problem

    def _account(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        columns: dict[str, Any] = {
            name: np.array([getattr(row, name) for row in rows]) for name in ("operation", "flags", "offset", "length", "number")
        }
        completions = np.array([(row.number, 0, row.submitted, row.started, row.completed) for row in rows], COMPLETION)
        replied, due = (
            np.array([-1 if time is None else time for time in times]) for times in zip(*((r.replied, r.due) for r in rows), strict=True)
        )
        took = np.where(replied < 0, -1, replied - np.array([row.received for row in rows]))
        columns |= {"stream": np.array([row.stream % (1 << 15) for row in rows]), "tag": took}
        columns |= {"arrival": completions["submitted"], "started": completions["started"], "completed": completions["completed"]}
        batch = make_batch(columns, rows[0].number, pa.array([f"client {row.stream}" for row in rows]).dictionary_encode())
        self._report.add(batch, completions)
        self._hold_against_clock(columns["operation"], took, replied, due)
        if self._trace:
            self._writer.submit(self._record, batch)

    def _hold_against_clock(self, operation: Any, took: Any, replied: Any, due: Any) -> None:
        answered = replied >= 0
        paced = answered & (due >= 0)
        behind = np.maximum(replied - due, 0)
        self.unanswered += int((~answered).sum())
        self.late += int((paced & (behind > LATE * (took - behind))).sum())
        for kind in np.unique(operation).tolist():
            self._took[kind].add(took[answered & (operation == kind)])
            self._behind[kind].add(behind[paced & (operation == kind)])

    def _record(self, batch: pa.RecordBatch) -> None:
        if self._trace and not self._problem:
            try:
                self._trace.write(batch)
            except FlashsimError as problem:
                self._problem = problem

    @property
    def requests(self) -> int:
        return self._next

    def as_dict(self, statistics: dict[str, Any]) -> dict[str, Any]:
        """Everything, JSON-ready, times in ns: ``drive`` in simulated time, as `DeviceReport` tells it; ``real`` by operation."""
        real = {
            name: {"latency": summary(took), "after_due": summary(behind) if behind.count else None}
            for name, took, behind in zip(OPERATIONS, self._took, self._behind, strict=True)
            if took.count
        }
        return {"late": self.late, "unanswered": self.unanswered, "real": real, "drive": self._report.as_dict(statistics)}

    def tables(self, statistics: dict[str, Any]) -> list[Table]:
        if not self.requests:
            return []
        rows = [
            {"operation": name, "real time": part} | durations(summary(times))
            for name, took, behind in zip(OPERATIONS, self._took, self._behind, strict=True)
            for part, times in (("latency", took), ("after due", behind))
            if times.count
        ]
        return [Table.of(rows, same("operation", "real time", *COLUMNS)), *self._report.tables(statistics)]
