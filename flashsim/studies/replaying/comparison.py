"""Runs of one trace side by side: as it was recorded, replayed on a real device, and simulated; and how far their times lie apart."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import COMPLETION, OPERATIONS, Completions
from flashsim.core.units import format_duration
from flashsim.studies.presentation.tables import Entry, Table, same
from flashsim.studies.replaying.device_report import DeviceReport
from flashsim.studies.replaying.survey import column, first_requests
from traces.file.excerpt import Source, requests_of
from traces.summary.histogram import Histogram

#: All operations together.
ALL = "all"


def recorded_report(source: Source, limit: int | None = None) -> DeviceReport | None:
    """The run that a trace was recorded from, of requests that are known to have completed; None if none is."""
    report = DeviceReport()
    for batch in first_requests(requests_of(source), limit):
        report.add(*complete_requests(batch))
    return report if report.duration else None


def complete_requests(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Completions]:
    """The requests of a batch of which it is known when they arrived and completed, and their completions."""
    batch = batch.filter(pc.and_(batch.column("arrival").is_valid(), batch.column("completed").is_valid()))
    completions = np.zeros(batch.num_rows, COMPLETION)
    completions["submitted"], completions["completed"] = column(batch, "arrival"), column(batch, "completed")
    start = batch.column("started")
    completions["started"] = np.where(start.is_valid(), start.fill_null(0), completions["submitted"])
    return batch, completions


class ReplayComparison:
    """Runs beside the first, which the others are compared with, by name."""

    def __init__(self, runs: Mapping[str, DeviceReport]) -> None:
        self.name = next(iter(runs))
        self.runs = runs

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

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, by run: ``duration`` (ns), and ``operations`` with what `rows` have (ns)."""
        runs: dict[str, Any] = {name: {"duration": report.duration, "operations": {}} for name, report in self.runs.items()}
        for row in self.rows():
            runs[row.pop("run")]["operations"][row.pop("operation")] = row
            del row["duration"]
        return runs

    def table(self) -> Table:
        """The comparison for a terminal; all operations of a run have a row if there are several."""
        rows = [row for row in self.rows() if row["operation"] != ALL or len(by_operation(self.runs[row["run"]])) > 2]
        times = {"mean": "mean", "median": "p50", "99 %": "p99", "max": "max", "demerit": "demerit", "total time": "duration"}
        columns = same("run", "operation", "requests")
        columns |= {head: (name, lambda time: format_duration(round(time))) for head, name in times.items()}
        return Table.of(rows, columns, note=f"demerit: rms distance of the distributions of latencies from those of {self.name}")


class EachDevice:
    """The reports of the devices of a trace, whose names are by number, and beside them of what was recorded of these."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self.reports = {name: DeviceReport() for name in names.values()}
        self._names = names

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Take requests and their completions, in the same order."""
        device = column(batch, "device")
        for number, name in self._names.items():
            mine = device == number
            if mine.any():
                self.reports[name].add(batch.filter(pa.array(mine)), completions[mine])

    def beside(self, source: Source, limit: int | None) -> dict[str, ReplayComparison]:
        """Comparisons of each device's run with its recorded one, if there is one, by device."""
        then = EachDevice(self._names)
        for batch in first_requests(requests_of(source), limit):
            then.add(*complete_requests(batch))
        comparisons = {}
        for name, report in self.reports.items():
            then_report = {"recorded": then.reports[name]} if then.reports[name].duration else {}
            comparisons[name] = ReplayComparison({"replayed": report} | then_report)
        return comparisons


def table(comparisons: Mapping[str, ReplayComparison]) -> Table:
    """The tables of several devices as one."""
    tables = {name: each.table() for name, each in comparisons.items()}
    rows: list[list[Entry]] = [[name, *row] for name, one in tables.items() for row in one.to_numpy()]
    first = next(iter(tables.values()))
    return Table(["device", *first.columns], rows, note=first.attrs["note"])


def by_operation(report: DeviceReport) -> dict[str, Histogram]:
    """Latencies by operation, of those that occurred, and of all."""
    every, latencies = Histogram(), {}
    for name, parts in zip(OPERATIONS, report.times, strict=True):
        if parts["latency"].count:
            latencies[name] = parts["latency"]
            every.merge(parts["latency"])
    return latencies | {ALL: every}


def demerit(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """The root mean square horizontal distance of the distribution functions of two sets of response times.

    Parameters
    ----------
    first, second
        Response times, ns, shape (n,) and (m,).

    Returns
    -------
    float
        In ns: the root of the mean, over all shares between 0 and 1, of the squared difference between the times that so large a share
        of each set does not exceed.  With n = m that is the difference between the sorted times, pair by pair.

    References
    ----------
    Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994.

    Examples
    --------
    >>> demerit([3, 1, 2], [4, 2, 3]), demerit([1, 3], [1, 1, 3, 3]), demerit([0], [3, 4])
    (1.0, 0.0, 3.5355339059327378)
    """
    times = [np.sort(np.asarray(each)) for each in (first, second)]
    return _distance(*((each, np.arange(1, len(each) + 1) / max(1, len(each))) for each in times))


def histogram_demerit(first: Histogram, second: Histogram) -> float:
    """The demerit figure of response times that were only counted: each is then known within 0.2 %.

    Examples
    --------
    >>> one, other = Histogram(), Histogram()
    >>> one.add(np.array([1, 2, 3]))
    >>> other.add(np.array([2, 3, 4]))
    >>> histogram_demerit(one, other)
    1.0
    """
    return _distance(first.distribution(), second.distribution())


def _distance(*distributions: tuple[npt.NDArray[Any], npt.NDArray[np.float64]]) -> float:
    """The distance of two distributions: times in order, and the share that each does not exceed."""
    if not all(len(times) for times, _ in distributions):
        raise InvalidParameterError("response times", "none", "their distribution needs at least one")
    ends = np.union1d(distributions[0][1], distributions[1][1])
    widths = np.diff(ends, prepend=0.0)
    places = [np.minimum(np.searchsorted(shares, ends, side="left"), len(times) - 1) for times, shares in distributions]
    first, second = (times[place].astype(np.float64) for (times, _), place in zip(distributions, places, strict=True))
    return math.sqrt(float(np.sum(widths * (first - second) ** 2)))
