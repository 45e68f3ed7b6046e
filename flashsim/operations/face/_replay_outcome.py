"""Outcomes of replays, of a trace on devices and of requests on a drive in memory, and their pace in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.errors import RefusedError, option
from flashsim.core.units import MB, MICROSECONDS, SECONDS, format_duration, format_size
from flashsim.experiments.presentation.tables import SPREAD
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.replaying.device_report import ALL, PARTS, by_operation, devices_table
from flashsim.experiments.replaying.report import over_time, report_of
from flashsim.experiments.replaying.survey import Survey
from flashsim.operations.face._drive_run import DriveRun
from flashsim.operations.face._why_outcome import WhyOutcome, check_number, parts_of
from flashsim.operations.outcome import REPORT, Outcome, outstanding_frame


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
            yield from (Explanation(sentence) for sentence in [_latencies_in_words(run)] if sentence)
            if run.why:
                yield from ("", *parts_of(run.why))
            for table in run.tables():
                yield from ("", table)
        steps = [] if any(run.why or run.replay for run in self.runs) else [f"{option('why')} explains the latencies"]
        yield from ("", next_steps(*steps, f"{option('out-dir')} DIR draws them over time", "flashsim advise compares drives"))

    def why(self, device: int = 0) -> WhyOutcome:
        """Say why the requests took their time on a device, by its number; RefusedError: the replay was made without ``why``."""
        check_number("device", device, len(self.runs))
        if (answer := self.runs[device].why) is None:
            raise RefusedError("why: the drive has served more requests since; replay with why=True")
        return WhyOutcome(answer, self.provenance)

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


def _latencies_in_words(run: DriveRun) -> str:
    """Mean latency and 99th percentile of each operation, in a sentence; empty where nothing was timed."""
    times = {name: each for name, each in by_operation(run.report).items() if name != ALL}
    parts = [
        f"{name}s take {format_duration(round(each.mean))} on average, and 99 % at most {format_duration(each.percentile(99))}"
        for name, each in times.items()
    ]
    sentence = "; ".join(parts).replace("flushs", "flushes")
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""


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
