"""A trace, or requests that were asked for, on one device: run, watched, and kept."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import OPERATIONS
from flashsim.core.units import MB, MICROSECONDS, NEVER, SECONDS, format_duration
from flashsim.device.device import Device
from flashsim.operations.face._operation import in_python
from flashsim.ssd.state.block_map import BlockMap
from flashsim.studies.presentation import timeline as timelines
from flashsim.studies.replaying import several, simulated
from flashsim.studies.replaying.comparison import Comparison, recorded
from flashsim.studies.replaying.device_report import DeviceReport
from flashsim.studies.replaying.observation import BELOW_ONE, NOT_COLLECTED, Observation, write_amplification
from flashsim.studies.replaying.real import Lateness, RealSettings, Replayed, replay_on
from flashsim.studies.replaying.survey import Survey, load, survey
from flashsim.studies.runs.partial_files import final_name
from traces.file.excerpt import Excerpt, Source
from traces.file.recording import ParquetWriter
from traces.replay.base import Observer

#: A run on a drive without counters over time is told in so many intervals.
_INTERVALS = 100


@dataclass(frozen=True)
class TimelineFile:
    """A timeline to write, and the time of the run that it shows, ns."""

    path: Path
    begin: int = 0
    end: int = NEVER

    @classmethod
    def of(cls, path: Path | None, begin: int | None, end: int | None) -> TimelineFile | None:
        """As it was asked for, if it was."""
        for name, value in (("timeline-from", begin), ("timeline-to", end)):
            if value is not None and path is None:
                raise InvalidParameterError(name, format_duration(value), "there must be a --timeline")
        if path is None:
            return None
        made = cls(path, begin or 0, NEVER if end is None else end)
        if made.begin >= made.end:
            raise InvalidParameterError("timeline-to", format_duration(made.end), f"it must be after {format_duration(made.begin)}")
        return made

    def draw(self, device: Device, origin: dict[str, Any]) -> AbstractContextManager[timelines.Timeline]:
        """Begin the timeline of a device."""
        flash = device.preset.flash
        dies, channels = (flash.dies, flash.channels) if flash else (0, 0)
        packed = final_name(self.path).endswith(".gz")
        return timelines.write_timeline(
            self.path, packed, device.name, dies=dies, channels=channels, begin=self.begin, end=self.end, about=origin
        )


@dataclass(frozen=True)
class Kept:
    """What is kept of a run.

    Parameters
    ----------
    origin
        Its provenance.
    out
        A file for the requests with their times.
    requests
        Whether they are kept without one, too.
    pauses
        Whether a flash drive's pauses by garbage collection are.
    """

    origin: dict[str, Any]
    out: Path | None = None
    requests: bool = True
    pauses: bool = False
    timeline: TimelineFile | None = None

    def place(self, run: DriveRun) -> Path | None:
        """Where its requests go."""
        if self.out is None and self.requests:
            folder = Path(tempfile.mkdtemp(prefix="flashsim-"))
            weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
            return folder / "replayed.parquet"
        return self.out


@dataclass(eq=False)
class DriveRun:
    """What one device showed under one run of requests.

    Parameters
    ----------
    statistics
        By how much a simulated drive's counters grew.
    state
        What it was in before, in words, if it was brought there.
    trace
        The requests with their times, as a trace file, if they were kept.
    moved
        Requests that were wrapped around.
    done, lateness
        Of a real device.
    comparison
        Of a real device: beside what was recorded, if the trace knows that, and what was simulated.
    """

    device: str
    report: DeviceReport
    drive: Device | None = None
    statistics: dict[str, Any] = field(default_factory=dict)
    state: str = ""
    trace: Path | None = None
    moved: int = 0
    blocks: BlockMap | None = None
    done: Replayed | None = None
    lateness: Lateness | None = None
    comparison: Comparison | None = None

    @cached_property
    def requests(self) -> pd.DataFrame:
        """A row a request."""
        if self.trace is None:
            raise InvalidParameterError("requests", "False", "requests were not kept")
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
        flash = self.drive.preset.flash if self.drive else None
        return (write_amplification(self.statistics, flash.page_size) if flash else None) or {}

    @property
    def notes(self) -> list[str]:
        """What must be known of the write amplification."""
        below = [BELOW_ONE] if self.amplification.get("total", 1) < 1 else []
        return below + ([in_python(NOT_COLLECTED)] if self.amplification and not self.statistics["flash_erases"] else [])

    def as_dict(self) -> dict[str, Any]:
        """The run JSON-ready."""
        told = self.report.as_dict(self.statistics)
        if self.drive is not None:
            return told | {"moved": self.moved, "state": self.state or None}
        return told | ({"runs": self.comparison.as_dict()} if self.comparison else {})

    def tables(self) -> Sequence[pd.DataFrame]:
        """What the command prints of it."""
        if self.comparison is None:
            return self.report.tables(self.statistics)
        return [*self.report.tables({})[:2], self.comparison.table()]

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
    device: Device,
    trace: Source,
    settings: simulated.ReplaySettings,
    what: Survey,
    limit: int | None,
    kept: Kept,
    state: str = "",
    *,
    used: bool = True,
) -> DriveRun:
    """Replay a trace on a drive as it stands, and watch it; of one that was `used` before, counters are told as they grew."""
    before = device.statistics()
    with ExitStack() as stack:
        progress = stack.enter_context(activity(f"simulating {device.name}"))
        drawing = stack.enter_context(kept.timeline.draw(device, kept.origin)) if kept.timeline else None
        observation = Observation(device, drawing, record=kept.pauses)
        run = DriveRun(device.name, DeviceReport(device.preset, observation), device, state=state)
        observers: list[Observer] = [run.report.add, observation.add]
        if (place := kept.place(run)) is not None:
            run.trace = place
            observers.append(_written(stack.enter_context(ParquetWriter(place, kept.origin))))
        run.moved = simulated.replay(trace, device, settings, what, simulated.observers(*observers), limit, progress, observation)
    after = device.statistics()
    run.statistics, run.blocks = grown(before, after) if used else after, device.block_map()
    return run


def run_on_file(
    target: Path, trace: Source, settings: RealSettings, what: Survey, limit: int | None, kept: Kept, against: str | None = None
) -> DriveRun:
    """Replay a trace on a real file or block device, and the same requests on a simulated one if it is named."""
    run = DriveRun(str(target), DeviceReport(), lateness=Lateness())
    with ExitStack() as stack:
        progress = stack.enter_context(activity(f"replaying on {target}"))
        place = kept.place(run)
        if place is None and against:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flashsim-"))) / "replayed.parquet"
        observers: list[Observer] = [run.report.add, run.lateness.add] if run.lateness else []
        with ExitStack() as writing:
            if place is not None:
                observers.append(_written(writing.enter_context(ParquetWriter(place, kept.origin))))
            run.done = replay_on(trace, target, settings, what, simulated.observers(*observers), limit, progress)
        run.trace, run.moved = place, run.done.moved
        others = {"recorded": recorded(trace, limit)}
        if against and place:
            drive, same = Device.open(against), survey(place)
            load_unless_too_small(drive, same, wrap=settings.scale_offsets)
            beside = others[against] = DeviceReport(drive.preset)
            asked = simulated.ReplaySettings(settings.pace, settings.depth, settings.scale_offsets)
            simulated.replay(place, drive, asked, same, beside.add, None, progress)
        run.comparison = Comparison(str(target), run.report, {name: each for name, each in others.items() if each})
    return run


def load_unless_too_small(drive: Device, what: Survey, *, wrap: bool) -> None:
    """Write what a trace reads, unless it reaches beyond the drive, as the replay will say."""
    if what.reach <= drive.capacity or wrap:
        with activity(f"filling {drive.name}") as progress:
            load(drive, what, progress)


def run_on_files(
    paths: Mapping[str, Path], trace: Source, settings: RealSettings, what: Survey, limit: int | None, kept: Kept
) -> list[DriveRun]:
    """Replay each device of a trace on a real file or block device of its own."""
    to, names = several.targets_of(paths, what), several.names_of(what)
    each, lateness = several.EachDevice(names), Lateness()
    runs = [DriveRun(name, each.reports[name], lateness=lateness) for name in names.values()]
    with ExitStack() as stack:
        progress = stack.enter_context(activity("replaying on files"))
        observers: list[Observer] = [each.add, lateness.add]
        whole = kept.place(runs[0])
        if whole is not None:
            observers.append(_written(stack.enter_context(ParquetWriter(whole, kept.origin))))
        done = replay_on(trace, to, settings, what, simulated.observers(*observers), limit, progress)
    compared = each.beside(trace, limit)
    for (number, name), run in zip(names.items(), runs, strict=True):
        run.moved, run.done, run.comparison = done.moved, done, compared[name]
        own = None if whole is None or not kept.requests else Kept(kept.origin).place(run)
        if own is not None and whole is not None:
            run.trace = own
            with ParquetWriter(own, kept.origin) as writer:
                for batch in Excerpt(whole, devices=(number,)).batches():
                    writer.write(batch)
    return runs


def _written(writer: ParquetWriter) -> Observer:
    return lambda batch, completions: writer.write(batch)


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
