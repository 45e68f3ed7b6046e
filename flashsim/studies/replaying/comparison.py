"""What several runs of one trace showed, side by side: as it was recorded, replayed on a real device, and simulated."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.request import COMPLETION, OPERATIONS, Completions
from flashsim.core.units import format_duration
from flashsim.studies.presentation.tables import Table, same
from flashsim.studies.replaying.demerit import histogram_demerit
from flashsim.studies.replaying.device_report import DeviceReport
from flashsim.studies.replaying.survey import column, limited
from traces.file.excerpt import Source, requests_of
from traces.summary.histogram import Histogram

#: All operations together.
ALL = "all"


def recorded(source: Source, limit: int | None = None) -> DeviceReport | None:
    """What a trace says of the run that it was recorded from, of requests that it knows to have completed; None if it does of none."""
    report = DeviceReport()
    for batch in limited(requests_of(source), limit):
        report.add(*known(batch))
    return report if report.duration else None


def known(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Completions]:
    """The requests of a batch of which it is known when they arrived and completed, and their completions."""
    batch = batch.filter(pc.and_(batch.column("arrival").is_valid(), batch.column("completed").is_valid()))
    completions = np.zeros(batch.num_rows, COMPLETION)
    completions["submitted"], completions["completed"] = column(batch, "arrival"), column(batch, "completed")
    started = batch.column("started")
    completions["started"] = np.where(started.is_valid(), started.fill_null(0), completions["submitted"])
    return batch, completions


class Comparison:
    """Runs beside one that they are compared with.

    Parameters
    ----------
    name, run
        The run that the others are compared with.
    others
        By name.
    """

    def __init__(self, name: str, run: DeviceReport, others: Mapping[str, DeviceReport]) -> None:
        self.name = name
        self.runs = {name: run, **others}

    def rows(self) -> list[dict[str, Any]]:
        """A row a run and operation, and one for all operations of a run.

        Requests, mean, median, 99 % and most (ns), the demerit figure against the run compared with (ns), and the run's duration (ns).
        """
        rows: list[dict[str, Any]] = []
        for name, report in self.runs.items():
            for operation, times in by_operation(report).items():
                beside = by_operation(self.runs[self.name]).get(operation)
                row = {"run": name, "operation": operation, "requests": times.count, "mean": times.mean}
                row |= {"p50": times.percentile(50), "p99": times.percentile(99), "max": times.maximum}
                apart = histogram_demerit(times, beside) if beside and name != self.name else None
                rows.append(row | {"demerit": apart, "duration": report.duration})
        return rows

    def as_frame(self) -> pd.DataFrame:
        """The rows."""
        return pd.DataFrame(self.rows())

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, by run: ``duration`` (ns), and ``operations`` with what `rows` have (ns)."""
        runs: dict[str, Any] = {name: {"duration": report.duration, "operations": {}} for name, report in self.runs.items()}
        for row in self.rows():
            kept = {key: value for key, value in row.items() if key not in ("run", "operation", "duration")}
            runs[row["run"]]["operations"][row["operation"]] = kept
        return runs

    def table(self) -> Table:
        """The same for a terminal; all operations of a run have a row if there are several."""

        def time(nanoseconds: float) -> str:
            return format_duration(round(nanoseconds))

        rows = [row for row in self.rows() if row["operation"] != ALL or len(by_operation(self.runs[row["run"]])) > 2]
        times = {"mean": "mean", "median": "p50", "99 %": "p99", "max": "max", "demerit": "demerit", "total time": "duration"}
        columns = same("run", "operation", "requests") | {head: (name, time) for head, name in times.items()}
        return Table.of(rows, columns, note=f"demerit: rms distance of the distributions of latencies from those of {self.name}")

    def by_run(self, operation: str) -> dict[str, Histogram]:
        """Latencies of one operation, of the runs that know it."""
        return {name: times[operation] for name, report in self.runs.items() if operation in (times := by_operation(report))}


def by_operation(report: DeviceReport) -> dict[str, Histogram]:
    """Latencies by operation, of those that occurred, and of all."""
    every, latencies = Histogram(), {}
    for name, parts in zip(OPERATIONS, report.times, strict=True):
        if parts["latency"].count:
            latencies[name] = parts["latency"]
            every.merge(parts["latency"])
    return latencies | {ALL: every}
