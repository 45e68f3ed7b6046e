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
from flashsim.operations.operation import in_python
from flashsim.ssd.state.drive_state import BlockMap
from flashsim.studies.presentation.timeline import Timeline, write_timeline
from flashsim.studies.replaying import observation, real, simulated
from flashsim.studies.replaying.comparison import Comparison, EachDevice, recorded
from flashsim.studies.replaying.device_report import DeviceReport
from flashsim.studies.replaying.real import Lateness, RealSettings, Replayed, replay_on
from flashsim.studies.replaying.survey import Survey, load, survey
from flashsim.studies.runs.outputs import final_name
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
        """The timeline that arguments ask for, if they do."""
        for name, value in (("timeline-from", begin), ("timeline-to", end)):
            if value is not None and path is None:
                raise InvalidParameterError(name, format_duration(value), "there must be a --timeline")
        if path is None:
            return None
        begin, end = begin or 0, NEVER if end is None else end
        if begin >= end:
            raise InvalidParameterError("timeline-to", format_duration(end), f"it must be after {format_duration(begin)}")
        return cls(path, begin, end)

    def draw(self, device: Device, origin: dict[str, Any]) -> AbstractContextManager[Timeline]:
        """Begin the timeline of a device."""
        parts = {name: getattr(device.preset.flash, name, 0) for name in ("dies", "channels")}
        packed = final_name(self.path).endswith(".gz")
        return write_timeline(self.path, packed, device.name, **parts, begin=self.begin, end=self.end, about=origin)


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
        parts = {"queueing": ("arrival", "started"), "service": ("started", "completed"), "latency": ("arrival", "completed")}
        times = {f"{part}_us": (told[end] - told[begin]) / MICROSECONDS for part, (begin, end) in parts.items()}
        return pd.DataFrame({"time_s": told["arrival"] / SECONDS, "operation": names, **told[["offset", "length"]], **times})

    @property
    def amplification(self) -> dict[str, float]:
        """Flash bytes over host bytes, in all and by cause; empty of a disk, and before the first write."""
        flash = self.drive.preset.flash if self.drive else None
        return (observation.write_amplification(self.statistics, flash.page_size) if flash else None) or {}

    @property
    def notes(self) -> list[str]:
        """What must be known of the write amplification."""
        below = [observation.BELOW_ONE] if self.amplification.get("total", 1) < 1 else []
        return below + ([in_python(observation.NOT_COLLECTED)] if self.amplification and not self.statistics["flash_erases"] else [])

    def as_dict(self) -> dict[str, Any]:
        """The run JSON-ready."""
        told = self.report.as_dict(self.statistics)
        if self.drive is not None:
            return told | {"moved": self.moved, "state": self.state or None}
        return told | ({"runs": self.comparison.as_dict()} if self.comparison else {})

    def tables(self) -> Sequence[pd.DataFrame]:
        """What the command prints of it."""
        if self.comparison is None:
            return [*self.report.tables(self.statistics).values()]
        return [*self.report.tables({}).values()][:2] + [self.comparison.table()]

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
        groups = requests.groupby(place)
        latency = groups["latency_us"]
        columns = {"requests": groups.size(), "mb_per_s": groups["length"].sum() / MB}
        columns |= {"mean_us": latency.mean(), "p50_us": latency.median(), "p99_us": latency.quantile(0.99), "max_us": latency.max()}
        table = pd.DataFrame({"begin_s": edges[:-1], "end_s": edges[1:]}).join(pd.DataFrame(columns))
        table = table.fillna({"requests": 0, "mb_per_s": 0}).astype({"requests": np.int64})
        table["mb_per_s"] /= np.diff(edges)
        amplified = [name for name in counted.columns if str(name).startswith("write_amplification")]
        return table.assign(**{str(name): counted[name].to_numpy() for name in amplified})


@dataclass(frozen=True)
class Replay:
    """Requests that run on one device or several, and what is kept of each run.

    Parameters
    ----------
    what
        What the trace is like.
    limit
        Only so many requests.
    origin
        The provenance.
    out
        A file for the requests with their times.
    requests
        Whether they are kept without one, too.
    pauses
        Whether a flash drive's pauses by garbage collection are.
    """

    trace: Source
    what: Survey
    limit: int | None
    origin: dict[str, Any]
    out: Path | None = None
    requests: bool = True
    pauses: bool = False
    timeline: TimelineFile | None = None

    def on(self, device: Device, settings: simulated.ReplaySettings, state: str = "", *, used: bool = True) -> DriveRun:
        """Replay on a drive as it stands, and watch it; of one that was `used` before, counters are told as they grew."""
        before = device.statistics()
        with ExitStack() as stack:
            progress = stack.enter_context(activity(f"simulating {device.name}"))
            drawing = stack.enter_context(self.timeline.draw(device, self.origin)) if self.timeline else None
            watched = observation.Observation(device, drawing, record=self.pauses)
            run = DriveRun(device.name, DeviceReport(device.preset, watched), device, state=state)
            run.trace = self._place(run)
            observers = simulated.observers(run.report.add, watched.add, *self._written(stack, run.trace))
            run.moved = simulated.replay(self.trace, device, settings, self.what, observers, self.limit, progress, watched)
        after = device.statistics()
        run.statistics, run.blocks = grown(before, after) if used else after, device.block_map()
        return run

    def on_file(self, target: Path, settings: RealSettings, against: str | None = None) -> DriveRun:
        """Replay on a real file or block device, and the same requests on a simulated one if it is named."""
        lateness = Lateness()
        run = DriveRun(str(target), DeviceReport(), lateness=lateness)
        with ExitStack() as stack:
            progress = stack.enter_context(activity(f"replaying on {target}"))
            place = self._place(run)
            if place is None and against:
                place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flashsim-"))) / "replayed.parquet"
            with ExitStack() as writing:
                observers = simulated.observers(run.report.add, lateness.add, *self._written(writing, place))
                run.done = replay_on(self.trace, target, settings, self.what, observers, self.limit, progress)
            run.trace, run.moved = place, run.done.moved
            others = {"recorded": recorded(self.trace, self.limit)}
            if against and place:
                drive, same = Device.open(against), survey(place)
                load_unless_too_small(drive, same, wrap=settings.scale_offsets)
                beside = others[against] = DeviceReport(drive.preset)
                asked = simulated.ReplaySettings(settings.pace, settings.depth, settings.scale_offsets)
                simulated.replay(place, drive, asked, same, beside.add, None, progress)
            run.comparison = Comparison({str(target): run.report} | {name: each for name, each in others.items() if each})
        return run

    def on_files(self, paths: Mapping[str, Path], settings: RealSettings) -> list[DriveRun]:
        """Replay each device of the trace on a real file or block device of its own."""
        to, names = real.targets_of(paths, self.what), real.names_of(self.what)
        each, lateness = EachDevice(names), Lateness()
        runs = [DriveRun(name, each.reports[name], lateness=lateness) for name in names.values()]
        with ExitStack() as stack:
            progress = stack.enter_context(activity("replaying on files"))
            whole = self._place(runs[0])
            observers = simulated.observers(each.add, lateness.add, *self._written(stack, whole))
            done = replay_on(self.trace, to, settings, self.what, observers, self.limit, progress)
        compared = each.beside(self.trace, self.limit)
        for (number, name), run in zip(names.items(), runs, strict=True):
            run.moved, run.done, run.comparison = done.moved, done, compared[name]
            if whole is not None and self.requests:
                run.trace = _own_place(run)
                with ParquetWriter(run.trace, self.origin) as writer:
                    for batch in Excerpt(whole, devices=(number,)).batches():
                        writer.write(batch)
        return runs

    def _place(self, run: DriveRun) -> Path | None:
        """Where the requests of a run go."""
        return _own_place(run) if self.out is None and self.requests else self.out

    def _written(self, stack: ExitStack, place: Path | None) -> list[Observer]:
        """What writes requests to a place, if there is one."""
        writer = stack.enter_context(ParquetWriter(place, self.origin)) if place else None
        return [lambda batch, completions: writer.write(batch)] if writer else []


def _own_place(run: DriveRun) -> Path:
    """A file that is removed with its run."""
    folder = Path(tempfile.mkdtemp(prefix="flashsim-"))
    weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
    return folder / "replayed.parquet"


def load_unless_too_small(drive: Device, what: Survey, *, wrap: bool) -> None:
    """Write what a trace reads, unless it reaches beyond the drive, as the replay will say."""
    if what.reach <= drive.capacity or wrap:
        with activity(f"filling {drive.name}") as progress:
            load(drive, what, progress)


def grown(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """By how much counters have grown; what is no number stays as it is.

    Examples
    --------
    >>> grown({"reads": 2, "die_busy_ns": [1, 2]}, {"reads": 5, "die_busy_ns": [4, 2], "name": "x"})
    {'reads': 3, 'die_busy_ns': [3, 0], 'name': 'x'}
    """
    found: dict[str, Any] = {}
    for name, now in after.items():
        then = before.get(name)
        if isinstance(now, list) and isinstance(then, list):
            found[name] = [value - earlier for value, earlier in zip(now, then, strict=True)]
        else:
            found[name] = now - then if isinstance(now, int | float) and isinstance(then, int | float) else now
    return found
