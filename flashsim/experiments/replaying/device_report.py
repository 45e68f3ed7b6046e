"""The report of a device under a workload: rates, latencies with their tails, waiting and service, write amplification, pauses, energy.

And runs of one trace side by side: as it was recorded, replayed on a real device, and simulated; and how far their times lie apart.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import InvalidParameterError
from flashsim.core.outstanding import OutstandingLevel
from flashsim.core.request import COMPLETION, OPERATIONS, Completions
from flashsim.core.units import JOULES, MB, MICROJOULES, SECONDS, format_duration, format_size
from flashsim.device.presets import Preset
from flashsim.experiments.presentation.tables import SPREAD_HEADS, Entry, Table, durations, outstanding, same, spread
from flashsim.experiments.replaying.observation import BELOW_ONE, NOT_COLLECTED, Observation, by_cause, write_amplification
from flashsim.experiments.replaying.survey import column, first_requests
from flashsim.ssd.energy import energy_of, in_joules
from traces.file.excerpt import Source, requests_of
from traces.summary.histogram import Histogram

#: The parts of a request's time: from arrival to dispatch, from there to the end, and both.
PARTS = ("queueing", "service", "latency")


class DeviceReport:
    """Collects completions in constant memory; percentiles are within 0.2 %.

    `preset` is the drive, where it is simulated: a flash drive's figures need it, and the `observation` of its run.  `active` are
    nanoseconds in which at least one request was being served, provided that requests are dispatched in the order in which they came.
    """

    def __init__(self, preset: Preset | None = None, observation: Observation | None = None) -> None:
        self._preset, self.observation = preset, observation
        self.times = [{part: Histogram() for part in PARTS} for _ in OPERATIONS]
        self._bytes = [0] * len(OPERATIONS)
        self._begin: int | None = None
        self._end = self.active = 0
        self.outstanding = OutstandingLevel()

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Take requests (columns `operation` and `length` of the trace schema) and their completions, in the same order."""
        if not len(completions):
            return
        operation, length = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("operation", "length"))
        arrival, start, end = (completions[name] for name in ("submitted", "started", "completed"))
        for kind in np.unique(operation).tolist():
            rows = operation == kind
            self._bytes[kind] += int(length[rows].sum())
            for part, since, until in zip(PARTS, (arrival, start, arrival), (start, end, end), strict=True):
                self.times[kind][part].add((until - since)[rows])
        self.outstanding.add(arrival, end)
        first = int(arrival.min())
        self._begin = first if self._begin is None else min(self._begin, first)
        order = np.argsort(start, kind="stable")
        until = np.maximum.accumulate(np.append(self._end, end[order]))
        self.active += int(np.maximum(until[1:] - np.maximum(start[order], until[:-1]), 0).sum())
        self._end = int(until[-1])

    @property
    def duration(self) -> int:
        """Time from the first arrival to the last completion, ns."""
        return 0 if self._begin is None else self._end - self._begin

    def as_frame(self) -> pd.DataFrame:
        """A row an operation that occurred: requests, bytes, rates a second, and for each part of the time (ns) mean, percentiles, max."""
        rows, duration = [], self.duration / SECONDS or math.nan
        for kind, parts in enumerate(self.times):
            if count := parts["latency"].count:
                row: dict[str, Any] = {"operation": OPERATIONS[kind], "requests": count, "bytes": self._bytes[kind]}
                row |= {"iops": count / duration, "bytes_per_second": self._bytes[kind] / duration}
                for part, times in parts.items():
                    row |= {f"{part}_{name}": value for name, value in spread(times).items()}
                rows.append(row)
        return pd.DataFrame(rows)

    def busy_frame(self, statistics: dict[str, Any]) -> pd.DataFrame:
        """A row a part of the device (each die, each channel): its name, and the share of the time in which it was busy."""
        rows: list[tuple[str, float]] = []
        for part, share in busy_shares(statistics, self.duration).items():
            rows += [(f"{part} {number}", one) for number, one in enumerate(share)] if isinstance(share, list) else [(part, share)]
        return pd.DataFrame(rows, columns=["part", "busy"])

    def as_dict(self, statistics: dict[str, Any]) -> dict[str, Any]:
        """The whole report, JSON-ready.

        ``duration`` and ``active`` (ns), rates, ``operations``, ``outstanding``
        (`flashsim.core.outstanding.OutstandingLevel.as_dict`), ``busy_shares``, of a flash drive ``write_amplification``,
        ``reads_by_cause``, ``erases_by_cause``, ``gc_pauses`` (ns) and ``energy`` (J), and the device's ``statistics``; None stands for
        what is not known.
        """
        frame = self.as_frame()
        operations = {row.pop("operation"): row for row in frame.to_dict("records")}
        seconds = self.duration / SECONDS
        requests, size = (int(frame[name].sum()) if len(frame) else 0 for name in ("requests", "bytes"))
        result: dict[str, Any] = {"duration": self.duration, "active": self.active, "requests": requests, "bytes": size}
        result |= {"iops": requests / seconds if seconds else None, "bytes_per_second": size / seconds if seconds else None}
        result |= {"operations": operations, "outstanding": self.outstanding.as_dict()}
        result |= {"busy_shares": busy_shares(statistics, self.duration)}
        if self._preset and (flash := self._preset.flash):
            figures, pauses = self._preset.energy, self.observation.pauses if self.observation else None
            energy = energy_of(figures, flash, statistics, self.duration, self.active) if figures else None
            result |= {"write_amplification": write_amplification(statistics, flash.unit_size)}
            result |= {f"{what}_by_cause": by_cause(statistics, what) or None for what in ("reads", "erases")}
            result |= {"gc_pauses": pauses.as_dict() if pauses else None, "energy": in_joules(energy._asdict()) if energy else None}
        plain: dict[str, Any] = _plain(result | {"statistics": statistics})
        return plain

    def tables(self, statistics: dict[str, Any]) -> dict[str, Table]:
        """Tables for a terminal, by the title of the section; the last one has the device's counters."""
        figures = self.as_dict(statistics)
        operations = [{"operation": name} | row for name, row in figures["operations"].items()]
        times = [{"operation": row["operation"], "time": part} | durations(row, f"{part}_") for row in operations for part in PARTS]
        rates = {"requests/s": "iops", "MB/s": ("bytes_per_second", MB)}
        tables = {"Rates": Table.of(operations, {**same("operation", "requests"), "bytes": ("bytes", format_size)} | rates)}
        tables["Latencies"] = Table.of(times, same("operation", "time", *SPREAD_HEADS))
        if figures["outstanding"]:
            tables["Outstanding level"] = outstanding(figures["outstanding"])
        shares: dict[str, float] = {}
        for part, busy in figures["busy_shares"].items():
            if isinstance(busy, list):
                shares |= {f"{part}s, mean of {len(busy)}": float(np.mean(busy)), f"{part}s, busiest": max(busy)}
            else:
                shares[part] = busy
        if shares:
            tables["Busy parts"] = Table(["part", "busy"], [[part, f"{100 * share:.1f} %"] for part, share in shares.items()])
        counters = [[key, value] for key, value in figures["statistics"].items() if isinstance(value, int | float)]
        return tables | _flash_tables(figures) | {"Counters of the device": Table(["device", "value"], counters)}


def busy_shares(statistics: dict[str, Any], duration: int) -> dict[str, Any]:
    """The share of a duration (ns) that each part of a device was busy, from its counters ``..._busy_ns`` (numbers or lists).

    Examples
    --------
    >>> busy_shares({"die_busy_ns": [5, 10], "link_busy_ns": 2}, 10)
    {'die': [0.5, 1.0], 'link': 0.2}
    """
    shares: dict[str, Any] = {}
    for name, value in statistics.items():
        if name.endswith("_busy_ns") and duration > 0:
            part = name.removesuffix("_busy_ns")
            shares[part] = [entry / duration for entry in value] if isinstance(value, list) else value / duration
    return shares


def _flash_tables(figures: dict[str, Any]) -> dict[str, Table]:
    tables = {}
    if figures.get("write_amplification"):
        notes = [BELOW_ONE] if figures["write_amplification"]["total"] < 1 else []
        notes += [NOT_COLLECTED] if figures["statistics"]["flash_erases"] == 0 else []
        amplification = [[cause, value] for cause, value in figures["write_amplification"].items() if value]
        tables["Write amplification"] = Table(["programs for", "write amplification"], amplification, digits=3, note="; ".join(notes))
    if figures.get("gc_pauses"):
        pauses = figures["gc_pauses"]
        row = {"GC pauses of dies": pauses["pauses"], "total": format_duration(pauses["total"])} | durations(pauses)
        tables["Pauses"] = Table.of([row], same(*row))
    if figures.get("energy") and figures["energy"]["total"]:
        joules = figures["energy"]
        rows = [[part, energy, f"{100 * energy / joules['total']:.1f} %"] for part, energy in joules.items()]
        mean, each = joules["total"] / (figures["duration"] / SECONDS), joules["total"] / figures["requests"] * (JOULES // MICROJOULES)
        note = f"{mean:.3f} W on average, {each:,.1f} uJ a request"
        tables["Energy"] = Table(["energy", "J", "share"], rows, digits=6, note=note)
    elif "energy" in figures:
        tables["Energy"] = Table(["energy"], [["no energy figures"]])
    return tables


def _plain(value: Any) -> Any:
    """Numbers of Python, with None for what is no number."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        rows, first = list[dict[str, Any]](), by_operation(self.runs[self.name])
        for name, report in self.runs.items():
            for operation, times in by_operation(report).items():
                beside = first.get(operation)
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


def devices_table(comparisons: Mapping[str, ReplayComparison]) -> Table:
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
    """The root mean square horizontal distance, ns, of the distribution functions of two sets of response times, shape (n,) and (m,).

    That is the root of the mean, over all shares between 0 and 1, of the squared difference between the times that so large a share of each
    set does not exceed.  With n = m that is the difference between the sorted times, pair by pair.

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
    if not all(len(times) for times, _ in distributions):
        raise InvalidParameterError("response times", "none", "their distribution needs at least one")
    ends = np.union1d(distributions[0][1], distributions[1][1])
    first, second = (
        times[np.minimum(np.searchsorted(shares, ends, side="left"), len(times) - 1)].astype(np.float64) for times, shares in distributions
    )
    return math.sqrt(float(np.sum(np.diff(ends, prepend=0.0) * (first - second) ** 2)))
