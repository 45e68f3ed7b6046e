"""A trace, or requests that were asked for, on a drive: run, watched, and told as frames."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from experiments.face._operation import working
from experiments.face._outcome import Outcome, outstanding_frame
from experiments.presentation.percentiles import SUMMARY
from experiments.replaying import simulated
from experiments.replaying.comparison import Comparison, recorded
from experiments.replaying.device_report import PARTS, DeviceReport
from experiments.replaying.observation import BELOW_ONE, Observation, write_amplification
from experiments.replaying.real import RealSettings, replay_on
from experiments.replaying.report import over_time
from experiments.replaying.several import EachDevice, names_of, targets_of
from experiments.replaying.survey import Survey
from flashsim.core.provenance import provenance
from flashsim.core.request import OPERATIONS
from flashsim.core.units import MB, MICROSECONDS, SECONDS, format_duration
from flashsim.device.device import Device
from traces.excerpt import Excerpt, Source
from traces.parquet_writer import ParquetWriter

#: A run on a drive without counters over time is told in so many intervals.
_INTERVALS = 100


@dataclass(eq=False)
class DriveRun:
    """What one drive showed under one run of requests.

    Parameters
    ----------
    statistics
        By how much the drive's counters grew.
    folder
        Holds the requests with their times, and is removed with the run.
    moved
        Requests that were wrapped around.
    comparison
        Of a real device: beside what was recorded, if the trace knows that.
    """

    device: str
    report: DeviceReport
    statistics: dict[str, Any]
    folder: Path
    page_size: int | None
    moved: int = 0
    comparison: Comparison | None = None

    def __post_init__(self) -> None:
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    @property
    def trace(self) -> Path:
        """The requests with their times, as a trace file."""
        return self.folder / "replayed.parquet"

    @cached_property
    def requests(self) -> pd.DataFrame:
        """A row a request."""
        columns = ["operation", "offset", "length", "arrival", "started", "completed"]
        told = pq.read_table(self.trace, columns=columns).to_pandas()
        names = told["operation"].map(dict(enumerate(OPERATIONS))).astype(pd.CategoricalDtype(list(OPERATIONS)))
        times = {
            "queueing_us": (told["started"] - told["arrival"]) / MICROSECONDS,
            "service_us": (told["completed"] - told["started"]) / MICROSECONDS,
            "latency_us": (told["completed"] - told["arrival"]) / MICROSECONDS,
        }
        return pd.DataFrame({"time_s": told["arrival"] / SECONDS, "operation": names, **told[["offset", "length"]], **times})

    @property
    def amplification(self) -> dict[str, float]:
        """Flash bytes over host bytes, in all and by cause; empty of a disk, and before the first write."""
        return (write_amplification(self.statistics, self.page_size) if self.page_size else None) or {}

    def timeline(self) -> pd.DataFrame:
        """A row an interval: requests, rate, latencies, and write amplification of a flash drive."""
        requests = self.requests
        history = self.report.observation.history if self.report.observation else None
        counted = history.as_frame() if history else pd.DataFrame()
        completed = requests["time_s"] + requests["latency_us"] * MICROSECONDS / SECONDS
        if len(counted):
            edges = np.append(counted["begin"], counted["time"].iloc[-1]) / SECONDS
        else:
            edges = np.linspace(requests["time_s"].min(), completed.max() + 1e-9, min(_INTERVALS, len(requests)) + 1)
        place = np.clip(np.searchsorted(edges, completed, side="left") - 1, 0, len(edges) - 2)
        groups = pd.DataFrame({"place": place, "length": requests["length"], "latency": requests["latency_us"]}).groupby("place")
        every = np.arange(len(edges) - 1)
        latency = groups["latency"]
        seconds = np.diff(edges)
        told = pd.DataFrame({"begin_s": edges[:-1], "end_s": edges[1:]})
        told["requests"] = groups.size().reindex(every, fill_value=0).to_numpy()
        told["mb_per_s"] = groups["length"].sum().reindex(every, fill_value=0).to_numpy() / MB / seconds
        for name, values in (("mean", latency.mean()), ("p50", latency.median()), ("p99", latency.quantile(0.99)), ("max", latency.max())):
            told[f"{name}_us"] = values.reindex(every).to_numpy()
        for name in counted.columns:
            if str(name).startswith("write_amplification"):
                told[str(name)] = counted[name].to_numpy()
        return told


def run_on(
    device: Device, trace: Source, settings: simulated.ReplaySettings, what: Survey, limit: int | None, asked: Mapping[str, Any]
) -> DriveRun:
    """Replay a trace on a drive as it stands, and watch it."""
    folder = Path(tempfile.mkdtemp(prefix="flashsim-"))
    before = device.statistics()
    observation = Observation(device)
    report = DeviceReport(device.preset, observation)
    flash = device.preset.flash
    run = DriveRun(device.name, report, {}, folder, flash.page_size if flash else None)
    with working(f"simulating {device.name}") as progress, ParquetWriter(run.trace, provenance(dict(asked))) as writer:
        keep = simulated.observers(report.add, observation.add, lambda batch, completions: writer.write(batch))
        run.moved = simulated.replay(trace, device, settings, what, keep, limit, progress, observation)
    run.statistics = grown(before, device.statistics())
    return run


def run_on_file(target: Path, trace: Source, settings: RealSettings, what: Survey, limit: int | None, asked: Mapping[str, Any]) -> DriveRun:
    """Replay a trace on a real file or block device."""
    report = DeviceReport()
    run = DriveRun(str(target), report, {}, Path(tempfile.mkdtemp(prefix="flashsim-")), None)
    with working(f"replaying on {target}") as progress, ParquetWriter(run.trace, provenance(dict(asked))) as writer:
        keep = simulated.observers(report.add, lambda batch, completions: writer.write(batch))
        run.moved = replay_on(trace, target, settings, what, keep, limit, progress).moved
    then = recorded(trace, limit)
    run.comparison = Comparison("replayed", report, {"recorded": then}) if then else None
    return run


def run_on_files(
    paths: Mapping[str, Path], trace: Source, settings: RealSettings, what: Survey, limit: int | None, asked: Mapping[str, Any]
) -> list[DriveRun]:
    """Replay each device of a trace on a real file or block device of its own."""
    to, names = targets_of(paths, what), names_of(what)
    each = EachDevice(names)
    told = provenance({**asked, "device": {name: str(path) for name, path in paths.items()}})
    runs = []
    with working("replaying on files") as progress, tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
        whole = Path(folder) / "replayed.parquet"
        with ParquetWriter(whole, told) as writer:
            keep = simulated.observers(each.add, lambda batch, completions: writer.write(batch))
            moved = replay_on(trace, to, settings, what, keep, limit, progress).moved
        compared = each.beside(trace, limit)
        for number, name in names.items():
            place = Path(tempfile.mkdtemp(prefix="flashsim-"))
            runs.append(DriveRun(name, each.reports[name], {}, place, None, moved, compared[name]))
            with ParquetWriter(runs[-1].trace, told) as writer:
                for batch in Excerpt(whole, devices=(number,)).batches():
                    writer.write(batch)
    return runs


def grown(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """By how much counters have grown; what is no number stays as it is.

    Examples
    --------
    >>> grown({"reads": 2, "die_busy_ns": [1, 2]}, {"reads": 5, "die_busy_ns": [4, 2], "name": "x"})
    {'reads': 3, 'die_busy_ns': [3, 0], 'name': 'x'}
    """
    found: dict[str, Any] = {}
    for name, value in after.items():
        then = before.get(name)
        if isinstance(value, list) and isinstance(then, list):
            found[name] = [now - earlier for now, earlier in zip(value, then, strict=True)]
        elif isinstance(value, int | float) and isinstance(then, int | float):
            found[name] = value - then
        else:
            found[name] = value
    return found


class ReplayOutcome(Outcome):
    """What one drive or several showed under the same requests."""

    def __init__(self, title: str, provenance: dict[str, Any], runs: Sequence[DriveRun]) -> None:
        super().__init__(title, provenance)
        self.runs = list(runs)

    def summary(self) -> pd.DataFrame:
        """A row a drive and operation: requests, rates, latencies (us), and on a flash drive the write amplification of the run."""
        rows = []
        for run in self.runs:
            for row in run.report.as_frame().to_dict("records"):
                told = {"device": run.device, "operation": row["operation"], "requests": row["requests"]}
                told |= {"seconds": run.report.duration / SECONDS, "iops": row["iops"], "mb_per_s": row["bytes_per_second"] / MB}
                told |= {f"{name}_us": row[f"latency_{name}"] / MICROSECONDS for name in ("mean", "p50", "p99", "max")}
                rows.append(told | {"write_amplification": run.amplification.get("total", np.nan)})
        return pd.DataFrame(rows)

    def demerits(self) -> pd.DataFrame:
        """A row a real device and operation, of requests of which the trace has recorded latencies: means of both (us), and the demerit.

        The demerit (us) is the rms distance of the distributions of both (`experiments.replaying.demerit`).
        """
        rows = []
        for run in self.runs:
            told = run.comparison.as_dict() if run.comparison else {}
            for operation, then in told.get("recorded", {"operations": {}})["operations"].items():
                now = told["replayed"]["operations"][operation]
                times = {"recorded": then["mean"], "replayed": now["mean"], "demerit": then["demerit"]}
                row = {"device": run.device, "operation": operation, "requests": then["requests"]}
                rows.append(row | {f"{name}_us": value / MICROSECONDS for name, value in times.items()})
        return pd.DataFrame(rows, columns=["device", "operation", "requests", "recorded_us", "replayed_us", "demerit_us"])

    def latencies(self) -> pd.DataFrame:
        """A row a drive, operation and part of the time (``queueing``, ``service``, ``latency``): mean, percentiles and most, us."""
        rows = []
        for run in self.runs:
            for row in run.report.as_frame().to_dict("records"):
                for part in PARTS:
                    times = {f"{name}_us": row[f"{part}_{name}"] / MICROSECONDS for name in SUMMARY}
                    rows.append({"device": run.device, "operation": row["operation"], "time": part, **times})
        return pd.DataFrame(rows)

    def outstanding(self) -> pd.DataFrame:
        """A row a drive and level: how many requests were outstanding (``outstanding``), and in which ``share`` of the time."""
        return outstanding_frame((run.device, run.report.outstanding.as_dict()) for run in self.runs)

    def write_amplification(self) -> pd.DataFrame:
        """A row a drive and cause (``total`` first): flash bytes programmed over host bytes written; none of disks, and without writes."""
        rows = [
            {"device": run.device, "cause": cause, "write_amplification": value}
            for run in self.runs
            for cause, value in run.amplification.items()
        ]
        return pd.DataFrame(rows, columns=["device", "cause", "write_amplification"])

    def timeline(self) -> pd.DataFrame:
        """A row a drive and interval: begin and end (s), requests that completed, MB/s, latencies (us), write amplification by cause."""
        return self._of_all("timeline")

    def requests(self) -> pd.DataFrame:
        """A row a drive and request: when it arrived (s), operation, offset, length (bytes), and the parts of its time (us)."""
        return self._of_all("requests")

    def _of_all(self, what: str) -> pd.DataFrame:
        frames = []
        for run in self.runs:
            frame = run.timeline() if what == "timeline" else run.requests.copy()
            frame.insert(0, "device", run.device)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def _draw(self) -> Figure:
        return over_time({run.device: run.timeline() for run in self.runs})


def titled(what: str, runs: Sequence[DriveRun], state: str = "") -> str:
    """One line: what was run, on what, for how long."""
    places = ", ".join(f"{run.device} {format_duration(run.report.duration)}" for run in runs)
    moved = max(run.moved for run in runs)
    wrapped = f"{moved:,} requests wrapped around" if moved else ""
    below = BELOW_ONE if any(run.amplification.get("total", 1) < 1 for run in runs) else ""
    return "; ".join(filter(None, (f"{what}: {places}", state, wrapped, below)))
