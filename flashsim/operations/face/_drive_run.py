"""Runs of a trace, or of generated requests, on one device, with their observation and their requests."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, python_wording
from flashsim.core.request import OPERATIONS
from flashsim.core.units import MB, MICROSECONDS, NEVER, SECONDS, format_duration
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.experiments.presentation.timeline import Timeline, write_timeline
from flashsim.experiments.replaying import observation, real, simulated
from flashsim.experiments.replaying.device_report import DeviceReport, EachDevice, ReplayComparison, recorded_report
from flashsim.experiments.replaying.real import Lateness, RealReplay, RealSettings, replay_on
from flashsim.experiments.replaying.survey import Survey, load, survey
from flashsim.experiments.runs.outputs import final_name
from flashsim.experiments.why.answers import RunWhy
from flashsim.experiments.why.replays import why_replay
from flashsim.operations.fields import Duration, Target
from flashsim.ssd.state.drive_state import BlockMap
from traces.file.excerpt import Excerpt, Source
from traces.file.recording import ParquetWriter
from traces.replay.base import Observer

#: Intervals of the timeline of a drive without counters over time.
_INTERVALS = 100
TimelineFile = Annotated[Any, Target("Write a timeline that Perfetto opens (trace-event format).", "FILE.json[.gz]", after_group=True)]
TimelineFrom = Annotated[Any, Duration("Begin of the timeline, such as 1.5s.", needs="timeline", seldom=True)]
TimelineTo = Annotated[Any, Duration("End of the timeline.", needs="timeline", seldom=True)]

#: Begins the timeline of a device.
TimelineWriter = Callable[[Device], AbstractContextManager[Timeline]]


def timeline_writer(path: Path | None, begin: int | None, end: int | None, origin: dict[str, Any]) -> TimelineWriter | None:
    """What writes timelines of the time from `begin` to `end` (ns) into a file, with the provenance; None without a file."""
    if path is None:
        return None
    begin, end = begin or 0, NEVER if end is None else end
    if begin >= end:
        raise InvalidParameterError("timeline-to", format_duration(end), f"it must be after {format_duration(begin)}")

    def write(device: Device) -> AbstractContextManager[Timeline]:
        parts = {name: getattr(device.preset.flash, name, 0) for name in ("dies", "channels")}
        if device.preset.flash and device.preset.flash.bus_rate:
            parts["cores"] = device.preset.inside.cores if device.preset.inside else 0
        return write_timeline(path, final_name(path).endswith(".gz"), device.name, **parts, begin=begin, end=end, about=origin)

    return write


@dataclass(eq=False)
class DriveRun:
    """A run of requests on one device, and its report.

    Of a simulated drive its preset, growth of its counters, `state` before the run in words, if it was brought into one, and blocks; of a
    real one figures of the replay, and the comparison with the recorded run, if the trace has one, and with a simulated one.  `trace` is a
    file of the requests with their times, if kept, and `moved` how many were wrapped around.
    """

    device: str
    report: DeviceReport
    preset: Preset | None = None
    statistics: dict[str, Any] = field(default_factory=dict)
    state: str = ""
    trace: Path | None = None
    moved: int = 0
    blocks: BlockMap | None = None
    replay: RealReplay | None = None
    lateness: Lateness | None = None
    comparison: ReplayComparison | None = None
    #: The analysis of its latencies, if requested.
    why: RunWhy | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The run without a file of its own, which another process lacks, and which is removed with this object."""
        return vars(self) | ({} if self.trace is None else {"requests": self.requests, "trace": None})

    @cached_property
    def requests(self) -> pd.DataFrame:
        if self.trace is None:
            raise InvalidParameterError("requests", "False", "requests were not kept")
        columns = ["operation", "offset", "length", "arrival", "started", "completed"]
        trace = pq.read_table(self.trace, columns=columns).to_pandas()
        names = trace["operation"].map(dict(enumerate(OPERATIONS))).astype(pd.CategoricalDtype(list(OPERATIONS)))
        parts = {"queueing": ("arrival", "started"), "service": ("started", "completed"), "latency": ("arrival", "completed")}
        times = {f"{part}_us": (trace[end] - trace[begin]) / MICROSECONDS for part, (begin, end) in parts.items()}
        return pd.DataFrame({"time_s": trace["arrival"] / SECONDS, "operation": names, **trace[["offset", "length"]], **times})

    @property
    def amplification(self) -> dict[str, float]:
        """Flash bytes over host bytes, in all and by cause; empty of a disk, and before the first write."""
        flash = self.preset.flash if self.preset else None
        return (observation.write_amplification(self.statistics, flash.unit_size) if flash else None) or {}

    @property
    def notes(self) -> list[str]:
        below = [observation.BELOW_ONE] if self.amplification.get("total", 1) < 1 else []
        return below + ([python_wording(observation.NOT_COLLECTED)] if self.amplification and not self.statistics["flash_erases"] else [])

    def as_dict(self) -> dict[str, Any]:
        document = self.report.as_dict(self.statistics)
        if self.preset is not None:
            answer = {"why": self.why.as_dict()} if self.why else {}
            return document | {"moved": self.moved, "state": self.state or None} | answer
        return document | ({"runs": self.comparison.as_dict()} if self.comparison else {})

    def tables(self) -> Sequence[pd.DataFrame]:
        """Tables that the command prints of the run."""
        if self.comparison is None:
            return [*self.report.tables(self.statistics).values()]
        return [*self.report.tables({}).values()][:2] + [self.comparison.table()]

    def timeline(self) -> pd.DataFrame:
        """A row an interval: requests, rate, latencies, and write amplification of a flash drive."""
        requests, watch = self.requests, self.report.observation
        history_frame = watch.history.as_frame() if watch and watch.history else pd.DataFrame()
        ends = requests["time_s"] + requests["latency_us"] * MICROSECONDS / SECONDS
        if len(history_frame):
            edges = np.append(history_frame["begin"], history_frame["time"].iloc[-1]) / SECONDS
        else:
            edges = np.linspace(requests["time_s"].min(), ends.max() + 1e-9, min(_INTERVALS, len(requests)) + 1)
        place = np.clip(np.searchsorted(edges, ends, side="left") - 1, 0, len(edges) - 2)
        groups = requests.groupby(place)
        latency, columns = groups["latency_us"], {"requests": groups.size(), "mb_per_s": groups["length"].sum() / MB}
        columns |= {"mean_us": latency.mean(), "p50_us": latency.median(), "p99_us": latency.quantile(0.99), "max_us": latency.max()}
        table = pd.DataFrame({"begin_s": edges[:-1], "end_s": edges[1:]}).join(pd.DataFrame(columns))
        table = table.fillna({"requests": 0, "mb_per_s": 0}).astype({"requests": np.int64})
        table["mb_per_s"] /= np.diff(edges)
        names = [name for name in history_frame.columns if str(name).startswith("write_amplification")]
        return table.assign(**{str(name): history_frame[name].to_numpy() for name in names})


@dataclass(frozen=True)
class DriveReplay:
    """A replay of the first `limit` requests of a trace on one device or several, and its records of each run.

    Requests with their times are written to `out`, if that is named, and otherwise kept if `requests` says so; `pauses`: keep a flash
    drive's pauses by garbage collection.
    """

    trace: Source
    what: Survey
    limit: int | None
    #: The provenance.
    origin: dict[str, Any]
    out: Path | None = None
    requests: bool = True
    pauses: bool = False
    timeline: TimelineWriter | None = None
    why: bool = False
    exact: bool = False

    def on(self, device: Device, settings: simulated.ReplaySettings, state: str = "", *, has_past: bool = True) -> DriveRun:
        """Replay on a drive as it stands, and observe it; if it `has_past`, the report has the growth of its counters."""
        before = device.statistics()
        with ExitStack() as stack:
            progress = stack.enter_context(activity(f"simulating {device.name}"))
            why = None
            if self.why:
                why = why_replay(self.trace, device, settings, self.what, self.limit, progress, exact=self.exact)
            drawing = stack.enter_context(self.timeline(device)) if self.timeline else None
            watch = observation.Observation(device, drawing, record=self.pauses)
            run = DriveRun(device.name, DeviceReport(device.preset, watch), device.preset, state=state, why=why)
            run.trace = self._place(run)
            observers = simulated.observers(run.report.add, watch.add, *self._writers(stack, run.trace))
            run.moved = simulated.replay(self.trace, device, settings, self.what, observers, self.limit, progress, watch)
        after = device.statistics()
        run.statistics, run.blocks = observation.growth(before, after) if has_past else after, device.block_map()
        return run

    def on_file(self, target: Path, settings: RealSettings, against: str | None = None) -> DriveRun:
        """Replay on a real file or block device, and the same requests on a simulated one that `against` names."""
        lateness = Lateness()
        run = DriveRun(str(target), DeviceReport(), lateness=lateness)
        with ExitStack() as stack:
            progress = stack.enter_context(activity(f"replaying on {target}"))
            place = self._place(run)
            if place is None and against:
                place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flashsim-"))) / "replayed.parquet"
            with ExitStack() as writing:
                observers = simulated.observers(run.report.add, lateness.add, *self._writers(writing, place))
                run.replay = replay_on(self.trace, target, settings, self.what, observers, self.limit, progress)
            run.trace, run.moved = place, run.replay.moved
            others = {"recorded": recorded_report(self.trace, self.limit)}
            if against and place:
                drive, same = Device.open(against), survey(place)
                load_unless_too_small(drive, same, wrap=settings.scale_offsets)
                beside = others[against] = DeviceReport(drive.preset)
                settings_of = simulated.ReplaySettings(settings.pace, settings.depth, settings.scale_offsets)
                simulated.replay(place, drive, settings_of, same, beside.add, None, progress)
            run.comparison = ReplayComparison({str(target): run.report} | {name: each for name, each in others.items() if each})
        return run

    def on_files(self, paths: Mapping[str, Path], settings: RealSettings) -> list[DriveRun]:
        """Replay each device of the trace on a real file or block device of its own."""
        to, names = real.targets_of(paths, self.what), real.names_of(self.what)
        each, lateness = EachDevice(names), Lateness()
        runs = [DriveRun(name, each.reports[name], lateness=lateness) for name in names.values()]
        whole = self._place(runs[0])
        with ExitStack() as stack:
            progress = stack.enter_context(activity("replaying on files"))
            observers = simulated.observers(each.add, lateness.add, *self._writers(stack, whole))
            replay = replay_on(self.trace, to, settings, self.what, observers, self.limit, progress)
        comparisons = each.beside(self.trace, self.limit)
        for (number, name), run in zip(names.items(), runs, strict=True):
            run.moved, run.replay, run.comparison = replay.moved, replay, comparisons[name]
            if whole is not None and self.requests:
                run.trace = _own_place(run)
                with ParquetWriter(run.trace, self.origin) as writer:
                    for batch in Excerpt(whole, devices=(number,)).batches():
                        writer.write(batch)
        return runs

    def _place(self, run: DriveRun) -> Path | None:
        return _own_place(run) if self.out is None and self.requests else self.out

    def _writers(self, stack: ExitStack, place: Path | None) -> list[Observer]:
        writer = stack.enter_context(ParquetWriter(place, self.origin)) if place else None
        return [lambda batch, completions: writer.write(batch)] if writer else []


def _own_place(run: DriveRun) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="flashsim-"))
    weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
    return folder / "replayed.parquet"


def load_unless_too_small(drive: Device, what: Survey, *, wrap: bool) -> None:
    """Write what a trace reads, unless it reaches beyond the drive, as the replay will say."""
    if what.reach <= drive.capacity or wrap:
        with activity(f"filling {drive.name}") as progress:
            load(drive, what, progress)
