"""``flashsim trace replay`` and ``fs.replay``: a trace on one device or several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, RefusedError, option
from flashsim.core.units import MB, MICROSECONDS, SECONDS, format_duration, format_size
from flashsim.device import presets
from flashsim.device.access import is_path
from flashsim.device.device import Device
from flashsim.experiments.presentation.tables import SPREAD
from flashsim.experiments.presentation.terminal import Part
from flashsim.experiments.replaying import preconditioning
from flashsim.experiments.replaying.device_report import PARTS, devices_table
from flashsim.experiments.replaying.real import RealSettings, parse_assignments
from flashsim.experiments.replaying.report import over_time, report_of
from flashsim.experiments.replaying.simulated import ReplaySettings
from flashsim.experiments.replaying.survey import Survey, check_zones, survey
from flashsim.operations import fields
from flashsim.operations.face._arguments import device_of, preset_of
from flashsim.operations.face._drive_run import DriveReplay, DriveRun, load_unless_too_small, timeline_writer
from flashsim.operations.face._traces import part_of, trace_file
from flashsim.operations.face.trace import Trace
from flashsim.operations.fields import Count, Field, Flag, Name, Names, Target, several, text
from flashsim.operations.operation import operation, origin
from flashsim.operations.outcome import REPORT, Outcome, outstanding_frame, point_of
from traces.file.excerpt import Source
from traces.replay.base import load_engine


class ReplayOutcome(Outcome):
    """Reports of one device or several under the same requests.

    `together`: each device of the trace had a device of its own.
    """

    FILES = (REPORT,)

    def __init__(
        self, runs: Sequence[DriveRun], title: str, provenance: dict[str, Any], name: str, pace: str, what: Survey, together: bool = False
    ) -> None:
        super().__init__(None, title, provenance)
        self.runs, self.name, self.pace, self.what, self.together = runs, name, pace, what, together

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready: the report of one device, or those of several by name."""
        first, runs = self.runs[0], {run.device: run.as_dict() for run in self.runs}
        beside: dict[str, Any] = {}
        if (replay := first.replay) and first.lateness:
            beside = {"engine": replay.how, "moved": replay.moved, "widened": replay.widened, "holes": replay.holes}
            beside["lateness"] = first.lateness.as_dict()
        return beside | (runs[first.device] if len(runs) == 1 and not self.together else {"devices": runs})

    def printout(self) -> Iterator[Part]:
        by = f" by {self.runs[0].replay.how}" if self.runs[0].replay else ""
        if self.together:
            yield f"{self.name} on {len(self.runs)} devices{by}, {self.pace}"
            yield from self._changes(self.runs[0], "the files")
            yield from ("", devices_table({run.device: run.comparison for run in self.runs if run.comparison}))
            return
        for number, run in enumerate(self.runs):
            yield from [""] * bool(number)
            yield f"{self.name} on {run.device}{by}, {self.pace}: {format_duration(run.report.duration)}"
            if run.state:
                yield f"state before: {run.state}"
            yield from self._changes(run, run.device)
            if self.what.devices > 1:
                yield f"the requests are of {self.what.devices} of its devices; all were replayed on this one (--device-number chooses)"
            if run.moved:
                end = f" {format_size(run.preset.capacity)}" if run.preset else " end"
                yield f"{run.moved:,} of {self.what.requests:,} requests lay beyond the device's{end} and were wrapped around"
            for table in run.tables():
                yield from ("", table)

    def _changes(self, run: DriveRun, where: str) -> Iterator[Part]:
        if run.replay is None or run.lateness is None:
            return
        parameters = self.provenance["parameters"]
        if not self.pace.startswith("as fast") and parameters.get("engine") in (None, "builtin"):
            yield str(run.lateness)
        if run.replay.holes:
            yield f"{format_size(run.replay.holes)} of {where} were never written: reading them moves no data"
        if run.replay.widened:
            yield f"{run.replay.widened:,} of {self.what.requests:,} requests were widened to whole blocks"

    def _write_report(self, folder: Path) -> None:
        for run in self.runs:
            place, title = folder, f"{self.name} on {run.device}"
            lead = f"Replayed on the real device by {run.replay.how}; {self.pace}." if run.replay else f"Simulated; {self.pace}."
            lead += f" State before: {run.state}." if run.state else ""
            if self.together and run.replay:
                title, lead = f"{self.name}, {run.device}", f"Replayed with its other devices by {run.replay.how}; {self.pace}."
            if self.together or len(self.runs) > 1:
                place = folder / run.device
                place.mkdir()
            report_of(title, lead, run.report, self.provenance, run.statistics, run.blocks, run.comparison).write(place)

    def summary(self) -> pd.DataFrame:
        """A row a drive and operation: requests, rates, latencies (us), and on a flash drive the write amplification of the run."""
        rows = []
        for run in self.runs:
            for row in run.report.as_frame().to_dict("records"):
                entry = {"device": run.device, "operation": row["operation"], "requests": row["requests"]}
                entry |= {"seconds": run.report.duration / SECONDS, "iops": row["iops"], "mb_per_s": row["bytes_per_second"] / MB}
                entry |= {f"{name}_us": row[f"latency_{name}"] / MICROSECONDS for name in ("mean", "p50", "p99", "p99.9", "max")}
                rows.append(entry | {"write_amplification": run.amplification.get("total", np.nan)})
        return pd.DataFrame(rows)

    def demerits(self) -> pd.DataFrame:
        """A row a real device and operation, of requests of which the trace has recorded latencies: means of both (us), and the demerit.

        The demerit (us) is the rms distance of the distributions of both (`flashsim.experiments.replaying.device_report`).
        """
        rows = []
        for run in self.runs:
            by_run = {(row["run"], row["operation"]): row for row in (run.comparison.rows() if run.comparison else ())}
            for (which, name), then in by_run.items():
                if which == "recorded" and run.comparison and (now := by_run.get((run.comparison.name, name))):
                    times = {"recorded": then["mean"], "replayed": now["mean"], "demerit": then["demerit"]}
                    row = {"device": run.device, "operation": name, "requests": then["requests"]}
                    rows.append(row | {f"{part}_us": value / MICROSECONDS for part, value in times.items()})
        return pd.DataFrame(rows, columns=["device", "operation", "requests", "recorded_us", "replayed_us", "demerit_us"])

    def latencies(self) -> pd.DataFrame:
        """A row a drive, operation and part of the time (``queueing``, ``service``, ``latency``): mean, percentiles and most, us."""
        rows = []
        for run in self.runs:
            for row, part in product(run.report.as_frame().to_dict("records"), PARTS):
                times = {f"{name}_us": row[f"{part}_{name}"] / MICROSECONDS for name in SPREAD}
                rows.append({"device": run.device, "operation": row["operation"], "time": part, **times})
        return pd.DataFrame(rows)

    def outstanding(self) -> pd.DataFrame:
        """A row a drive and level: how many requests were outstanding (``outstanding``), and in which ``share`` of the time."""
        return outstanding_frame((run.device, run.report.outstanding.as_dict()) for run in self.runs)

    def write_amplification(self) -> pd.DataFrame:
        """A row a drive and cause (``total`` first): flash bytes programmed over host bytes written; none of disks, and without writes."""
        rows = [(run.device, cause, value) for run in self.runs for cause, value in run.amplification.items()]
        return pd.DataFrame(rows, columns=["device", "cause", "write_amplification"])

    def timeline(self) -> pd.DataFrame:
        """A row a drive and interval: begin and end (s), requests that completed, MB/s, latencies (us), write amplification by cause."""
        return self._of_all(run.timeline() for run in self.runs)

    def requests(self) -> pd.DataFrame:
        """A row a drive and request: when it arrived (s), operation, offset, length (bytes), and the parts of its time (us)."""
        return self._of_all(run.requests for run in self.runs)

    def _of_all(self, frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
        pairs = zip(self.runs, frames, strict=True)
        return pd.concat([frame.assign(device=run.device)[["device", *frame]] for run, frame in pairs], ignore_index=True)

    def _draw(self) -> Figure:
        return over_time({run.device: run.timeline() for run in self.runs})


def title_of(what: str, runs: Sequence[DriveRun], state: str = "") -> str:
    """A line with requests, devices, durations, states and notes."""
    places = ", ".join(f"{run.device} {format_duration(run.report.duration)}" for run in runs)
    wraps = max(run.moved for run in runs)
    note = f"{wraps:,} requests wrapped around" if wraps else ""
    notes = dict.fromkeys(note for run in runs for note in run.notes)
    return "; ".join(filter(None, (f"{what}: {places}", state, note, *notes)))


def check_pace(pace: str, depth: int, speed: float = 1.0) -> None:
    """Refuse a depth or a speed that has no effect at a pace."""
    if pace == "asap" and speed != 1:
        raise RefusedError("speed: requests do not arrive at times of their own; take " + option("pace") + " timed or think")
    if pace != "asap" and depth != 1:
        raise RefusedError("depth: how many requests are outstanding follows from their times; take " + option("pace") + " asap")


def pace_in_words(pace: str, depth: int, speed: float = 1.0) -> str:
    """The pace of requests in words; `speed`: how many times as fast as the trace says.

    Examples
    --------
    >>> pace_in_words("timed", 1, 2.5), pace_in_words("asap", 4, 2.5)
    ("at 2.5 times the trace's speed", 'as fast as it goes with 4 outstanding')
    """
    words = {"timed": "at the trace's times", "think": "with the trace's dependencies and think times"}
    if pace in words and speed != 1:
        return f"at {speed:g} times the trace's speed" + ", with its dependencies and think times" * (pace == "think")
    return words.get(pace, f"as fast as it goes with {depth} outstanding")


_DEVICES = (
    "A preset, its TOML file, or a real file or block device; several, each by itself; or for each device of a trace such a path, "
    "as disk=./disk.bin."
)
_IN_PYTHON = 'Or an `fs.drive`, which is left as it is; or ``{"disk": "./disk.bin"}``.'


def _devices(value: Any, parameter: str) -> Any:
    """Devices, each by itself; or paths by the names of the devices of a trace."""
    if isinstance(value, Mapping) and "preset" not in value:
        if not value:
            raise InvalidParameterError(parameter, "{}", "a path for each device of the trace is needed")
        return {text(name, "device"): Path(text(path, "device")) for name, path in value.items()}
    many = several(value, parameter)
    if any(isinstance(one, str) and parse_assignments([one]) for one in many):
        return parse_assignments([text(one, parameter) for one in many])
    return [device_of(one) for one in many]


@operation
def replay(
    trace: Trace,
    device: Annotated[
        Any,
        Field(_DEVICES, "DEVICE", _devices, ("presets",), "--on", python=_IN_PYTHON, several=True, single=True, reads=True),
    ],
    *,
    pace: Annotated[str | None, Name("When requests arrive; by default as the trace knows.", "asap|timed|think")] = None,
    depth: Annotated[int, Count("With asap: how many requests are outstanding.")] = 1,
    out: Annotated[Any, Target("Write the replayed requests with their times.", "TRACE.parquet")] = None,
    limit: Annotated[int | None, Count("Only the first N requests.")] = None,
    timeline: fields.Timeline = None,
    timeline_from: fields.TimelineFrom = None,
    timeline_to: fields.TimelineTo = None,
    wrap: Annotated[bool, Flag("Wrap requests beyond the device's end around.", option="--wrap --scale-offsets")] = False,
    empty: Annotated[bool, Flag("Begin with an empty device; otherwise what is read was written before.")] = False,
    precondition: fields.Precondition = None,
    engine: Annotated[str | None, Name("What replays on a real device, of {engines} (builtin).", "NAME", completes=("engines",))] = None,
    against: Annotated[str | None, Name("Also simulate what is replayed on a real device.", "PRESET", completes=("presets",))] = None,
    writes_as_reads: Annotated[bool, Flag("Read on a real device what the trace writes.")] = False,
    widen: Annotated[bool, Flag("Widen requests to whole blocks of a real device.")] = False,
    buffered: Annotated[bool, Flag("Go through the page cache, where there is no direct I/O.")] = False,
    allow_write: fields.AllowWrite = False,
    yes_destroy: Annotated[Any, Names("What --allow-write may destroy.", "/dev/NAME", provenance=False, needs=fields.on_block)] = None,
    force: fields.Force = False,
    requests: Annotated[bool, Flag("Keep every request with its times.", constant=lambda values: False, provenance=False)] = True,
    pauses: Annotated[
        bool,
        Flag(
            "Watch a flash drive's pauses by garbage collection.",
            constant=lambda values: bool(values["json_"] or values["out_dir_"]),
            provenance=False,
        ),
    ] = False,
    **part: Unpack[fields.TracePart],
) -> ReplayOutcome:
    """Replay a trace on a simulated or real device and report what it showed.

    With --precondition a simulated drive begins in that state, and nothing else is written before. A real file or block device is only
    read, past the page cache; if the trace writes, take --writes-as-reads or --allow-write. The latencies that the trace has recorded, and
    those of --against, stand beside the real ones.

    Examples::

        flashsim trace replay bnl.parquet --on intel-x25e-64gb
        flashsim trace replay bnl.parquet --on toshiba-5400-320gb --pace asap --depth 4 --json bnl.json
        flashsim trace replay bnl.parquet --on mtron-msd-sata3025-16gb --precondition random:0.8
        flashsim trace replay bnl.parquet --on ocz-core-60gb --out-dir shown --timeline bnl.json.gz --timeline-to 10ms
        flashsim trace replay bnl.parquet --on ./disk.bin --allow-write --against ocz-core-60gb
        flashsim trace replay bnl.parquet --on intel-x25e-64gb --device-number 0 --window 500ms --speed 2
        flashsim trace replay pool.parquet --on disk=./disk.bin --on ssd=./ssd.bin --on log=./log.bin --allow-write

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> trace = pd.DataFrame({"operation": "read", "offset": [0, 65536, 4096], "length": 4096})
    >>> result = fs.replay(trace, ["intel-x25e-64gb", "toshiba-5400-320gb"])
    >>> result.summary()["requests"].tolist()
    [3, 3]
    """
    real_only = {"engine": engine, "against": against, "writes_as_reads": writes_as_reads, "widen": widen, "buffered": buffered}
    simulated_only = {"timeline": timeline, "empty": empty, "precondition": precondition}
    together = isinstance(device, Mapping)
    real = [one for one in device if together or (isinstance(one, str) and is_path(one))]
    if not real:
        fields.refuse(real_only, f"{preset_of(device[0])} is a preset")
    elif len(real) == len(device):
        fields.refuse(simulated_only, f"{real[0]} is no preset")
    if together:
        fields.refuse({"against": against}, "one simulated drive does not stand for several devices")
    if timeline and len(device) > 1:
        raise RefusedError("timeline: it shows one device")
    if empty and precondition:
        raise RefusedError("empty: " + option("precondition") + " says in which state the drive begins; take one of them")
    common = origin(), out, requests, pauses, timeline_writer(timeline, timeline_from, timeline_to, origin())
    if against:
        presets.load(against)
    with trace_file(part_of(trace, part)) as source:
        what, name = survey(source, limit), source.name
        replay_of, on_real, pace_of = DriveReplay(source, what, limit, *common), None, pace or what.pace()
        if real:
            how = engine or "builtin"
            pace_of = pace or (what.pace() if what.pace() in load_engine(how).PACES else "asap")
            on_real = RealSettings(pace_of, depth, how, wrap, widen, writes_as_reads, allow_write, force, yes_destroy, buffered)
        check_pace(pace_of, depth, source.speed)
        if on_real and together:
            runs = replay_of.on_files(device, on_real)
        else:
            runs = []
            for one in device:
                if on_real and one in real:
                    runs.append(replay_of.on_file(Path(one), on_real, against))
                    continue
                drive, state = _prepare(one, source, limit, what, wrap, empty, precondition)
                runs.append(replay_of.on(drive, ReplaySettings(pace_of, depth, wrap), state, has_past=not isinstance(one, str)))
    title = title_of(f"{name} replayed ({pace_of})", runs)
    return ReplayOutcome(runs, title, origin(), name, pace_in_words(pace_of, depth, source.speed), what, together)


def _prepare(
    device: Any, source: Source, limit: int | None, what: Survey, wrap: bool, empty: bool, precondition: str | None
) -> tuple[Device, str]:
    """A preset's drive, or a copy of one that there is, and the state that it was brought into, in words."""
    if not isinstance(device, str):
        fields.refuse({"precondition": precondition, "empty": empty}, f"{device.name} has a state of its own")
        return device.copy().device, ""
    preset = presets.load(device)
    if preset.flash is not None and preset.flash.zone_size:
        check_zones(source, preset.flash, limit)
    if precondition:
        preconditioning.parse_state(precondition, preset)  # refuse before anything is compiled
    drive, state = Device(preset), ""
    if precondition:
        with activity(f"preparing {drive.name}") as progress:
            state = preconditioning.bring_into(drive, precondition, progress=progress)
    elif not empty:
        load_unless_too_small(drive, what, wrap=wrap)
    return drive, state


#: A run of a sweep.
point = point_of(replay)
