"""Runs of a trace on one drive: as it was recorded, again and again, and faster and faster."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.core.activity import activity
from flashsim.core.errors import FlashsimWarning
from flashsim.core.request import WRITE, Completions, Integers
from flashsim.core.units import SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.experiments.replaying.device_report import ALL, DeviceReport, by_operation
from flashsim.experiments.replaying.observation import Observation, growth
from flashsim.experiments.replaying.preconditioning import bring_into
from flashsim.experiments.replaying.simulated import ReplaySettings, observers, replay
from flashsim.experiments.replaying.survey import WINDOW, Survey, column, first_requests, survey
from flashsim.experiments.replaying.survey import load as load_reads
from flashsim.pools.devices import wear
from traces.file.excerpt import Excerpt
from traces.file.schema import Batches

#: Names of the latencies that a bound may be of, and the share that each percentile is of.
LATENCIES: dict[str, float | None] = {"mean": None, "p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": None}
#: A greatest load is within the first factor of one that breaks the bound, and so does the load of the second: a tail is uneven.
PRECISION, BEYOND = 1.02, 1.05
#: Speeds of a trace that are tried at most and at least, and the step to the next while no bound is passed.
FASTEST, SLOWEST, _STEP = 1e6, 1 / 1024, 4.0
#: Write amplification has settled if the third and the last quarter of the repetitions differ by less than this share.
_SETTLED = 0.02
#: Requests at least, and at most where the trace has fewer, by which the rate of a drive that is never idle is measured.
_MEASURED, _MOST_MEASURED = 10_000, 1 << 20


@dataclass(frozen=True)
class LoadStudy:
    """Parameters of a study of drives under one load."""

    #: File of the trace, its format, and its name for people.
    trace: str
    format: str | None
    name: str
    #: State of flash drives before the trace, as ``--precondition`` has it.
    state: str
    repeats: int
    years: float
    limit: int | None
    seed: int
    #: Stamps of the files (`flashsim.experiments.runs.kept.stamps`).
    stamps: Mapping[str, str]


@dataclass(frozen=True)
class _Repeated(Excerpt):
    """A trace over and over, of each time the first requests, in batches of about half a window."""

    times: int = 1
    limit: int | None = None

    def batches(self) -> Batches:
        parts, rows = list[pa.RecordBatch](), 0
        kept = [_join_batches([*first_requests(super().batches(), self.limit)])] if self.times > 2 else []  # a short trace
        for _ in range(self.times):
            for batch in kept or first_requests(super().batches(), self.limit):
                parts.append(batch)
                rows += batch.num_rows
                if rows >= WINDOW // 2:
                    yield _join_batches(parts)
                    parts, rows = [], 0
        if parts:
            yield _join_batches(parts)


def _join_batches(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(parts).unify_dictionaries().combine_chunks().to_batches()[0]


@dataclass(frozen=True)
class TraceLoad:
    """A trace on a drive before anything is run."""

    #: File of the trace, and its format.
    trace: str
    format: str | None
    #: Preset, state of a flash drive before the trace, and the seed of what is drawn for it.
    device: str
    state: str
    seed: int
    #: Pace of requests (`flashsim.experiments.replaying.simulated.ReplaySettings`).
    pace: str
    #: Number of requests, from the first on.
    limit: int | None
    #: Device of the trace whose requests are taken; None: all.
    volume: int | None = None
    #: Nanoseconds after the first request at which the trace begins; what comes before follows behind its end.
    begin: int = 0

    @property
    def sources(self) -> list[Excerpt]:
        """Parts of the trace, in order."""
        whole = Excerpt(self.trace, self.format, () if self.volume is None else (self.volume,))
        return [replace(whole, start=self.begin), replace(whole, window=self.begin)] if self.begin else [whole]


def run_repeatedly(load: Mapping[str, Any], repeats: int, stamps: Mapping[str, str]) -> dict[str, Any]:
    """The report of a trace as recorded, and the write amplification as it is repeated, at most so often, until that has settled.

    Changed `stamps` of the files make it another run.

    Returns
    -------
    dict
        ``report`` (`flashsim.experiments.replaying.device_report.DeviceReport.as_dict`), ``latency`` (ns), ``state`` in words,
        ``repetitions`` (host bytes, bytes programmed, and ns of each), whether it ``settled``, and ``wear``.
    """
    run = _LoadRuns(TraceLoad(**load))
    report, statistics = run.replay(1.0)
    device, flash = run.device, run.device.preset.flash
    repetitions, settled = [_sums(statistics, report, device)], True
    if flash and repetitions[0]["written"]:
        with activity(f"repeating on {device.name}") as progress:
            while not (settled := has_settled(repetitions) and _has_erased(repetitions)) and len(repetitions) < repeats:
                again, growing = run.replay(1.0, device)
                repetitions.append(_sums(growing, again, device))
                progress(len(repetitions), repeats, f"{len(repetitions)} repetitions")
    result = {"report": report.as_dict(statistics), "latency": _latencies(report), "state": run.state}
    return result | {"repetitions": repetitions, "settled": settled, "wear": wear_figures(repetitions, device.preset) if flash else None}


def run_briefly(load: Mapping[str, Any], repeats: int, stamps: Mapping[str, str]) -> dict[str, Any]:
    """The latencies (ns) and wear of one drive of many; see `run_repeatedly`."""
    run = run_repeatedly(load, repeats, stamps)
    return {name: run[name] for name in ("latency", "wear", "settled")} | {"requests": run["report"]["requests"]}


def _sums(statistics: Mapping[str, Any], report: DeviceReport, device: Device) -> dict[str, int]:
    programs = statistics.get("flash_programs", 0) * (device.preset.flash.unit_size if device.preset.flash else 0)
    sums = {"written": statistics.get("host_write_bytes", 0), "programmed": programs, "erases": statistics.get("flash_erases", 0)}
    return {name: int(value) for name, value in sums.items()} | {"time": report.duration}


def _has_erased(repetitions: Sequence[Mapping[str, int]]) -> bool:
    """True if blocks were erased in the third quarter of repetitions and in the last: no free blocks are left that writes could take."""
    return all(any(each["erases"] for each in part) for part in _last_quarters(repetitions))


def _last_quarters(repetitions: Sequence[Mapping[str, int]]) -> tuple[Sequence[Mapping[str, int]], ...]:
    count = len(repetitions)
    return repetitions[count // 2 : 3 * count // 4], repetitions[3 * count // 4 :]


def has_settled(repetitions: Sequence[Mapping[str, int]]) -> bool:
    """True if the write amplification of the third quarter of repetitions is that of the last, looked at when they have doubled."""
    count = len(repetitions)
    if count < 4 or count & (count - 1):
        return False
    parts = _last_quarters(repetitions)
    third, last = (sum(each["programmed"] for each in part) / max(1, sum(each["written"] for each in part)) for part in parts)
    return abs(third - last) <= _SETTLED * last


def wear_figures(repetitions: Sequence[Mapping[str, int]], preset: presets.Preset) -> dict[str, float | None]:
    """Write amplification, and years of life, over the second half of the repetitions (`flashsim.pools.devices.wear`).

    Erases are those that the programs need in the long run: one erase per as many programs as a block holds.
    """
    assert preset.flash is not None
    written, programmed, time = (
        sum(each[name] for each in repetitions[len(repetitions) // 2 :]) for name in ("written", "programmed", "time")
    )
    erases = programmed / (preset.flash.unit_size * preset.flash.slots_per_block)
    sums = {"flash_written": written, "flash_programmed": programmed, "flash_erases": erases, "transactions": 0}
    figures = wear(sums, time / SECONDS if time else math.inf, preset.lifetime_erases)
    return {"write_amplification": figures["ssd_write_amplification"], "erases_s": figures["ssd_erases_s"], "years": figures["ssd_years"]}


def find_load(load: Mapping[str, Any], latency: str, most: int, stamps: Mapping[str, str]) -> dict[str, Any]:
    """The greatest speed of a trace at which a latency, one of `LATENCIES`, is at most `most` ns, and all speeds that were tried.

    It is at most the speed at which the drive, never idle, just keeps up, the ``limit`` (None: there is none), however well the drive takes
    the trace once; ``settled`` is False where a flash drive still had free blocks, or its rate still moved.
    """
    run, tried = _LoadRuns(TraceLoad(**load)), dict[float, dict[str, Any]]()

    def play(speed: float) -> dict[str, Any]:
        if speed not in tried:
            report, _ = run.replay(speed)
            tried[speed] = {"speed": speed, "duration": report.duration} | _latencies(report)
        return tried[speed]

    with activity(f"looking for the load of {load['device']}") as progress:
        limit, settled = run.limit(play(1.0)["duration"])
        greatest = greatest_load(
            lambda speed: speed <= limit and bool(play(speed)[latency] <= most),
            lambda: progress(len(tried), 0, f"{len(tried)} loads tried"),
        )
    result = {"greatest": greatest, "limit": limit if math.isfinite(limit) else None, "settled": settled}
    return result | {"tried": sorted(tried.values(), key=lambda each: float(each["speed"]))}


def greatest_load(holds: Callable[[float], bool], tell: Callable[[], None] = lambda: None) -> float | None:
    """The greatest speed at which a bound holds, within `PRECISION`; 0 if it does at none, None if it holds at any.

    Where it breaks and holds again, the search goes on until it breaks at `BEYOND` times the speed, too.

    Examples
    --------
    >>> abs(greatest_load(lambda speed: speed < 37) / 37 - 1) < 0.02, greatest_load(lambda speed: True)
    (True, None)
    >>> greatest_load(lambda speed: speed < 37 or 38 < speed < 48) > 45
    True
    """
    low, high = 0.0, math.inf
    if holds(1.0):
        low = 1.0
        if holds(FASTEST):
            return None
        while high == math.inf:
            tell()
            low, high = (low * _STEP, high) if holds(low * _STEP) else (low, low * _STEP)
    else:
        high = 1.0
        while not low:
            tell()
            if high <= SLOWEST:
                return 0.0
            low, high = (high / _STEP, high) if holds(high / _STEP) else (0.0, high / _STEP)
    while high / low > PRECISION:
        tell()
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    while holds(BEYOND * low):
        tell()
        low *= BEYOND
    return low


class _LoadRuns:
    """Replays of one trace on copies of one drive."""

    def __init__(self, load: TraceLoad) -> None:
        self._load = load
        self._what, self._drive, self.state = ready_drive(load)
        self.device = self._drive

    def replay(self, speed: float, device: Device | None = None) -> tuple[DeviceReport, dict[str, Any]]:
        """The report of a replay on a device, otherwise on a copy of the drive as prepared, and the growth of its counters."""
        self.device = device or deepcopy(self._drive)
        before = self.device.statistics()
        watch = Observation(self.device)
        report = DeviceReport(self.device.preset, watch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FlashsimWarning)  # said once of the trace
            settings, observe = ReplaySettings(self._load.pace), observers(report.add, watch.add)
            with activity(f"simulating {self.device.name}") as progress:
                for source in self._load.sources:
                    rest = None if self._load.limit is None else self._load.limit - sum(each["latency"].count for each in report.times)
                    if rest is None or rest > 0:
                        replay(replace(source, speed=speed), self.device, settings, self._what, observe, rest, progress, watch)
        after = self.device.statistics()
        return report, growth(before, after) if device else after

    def limit(self, duration: int) -> tuple[float, bool]:
        """The greatest speed at which the drive keeps up with the trace over and over, and whether that has settled.

        The drive gets all requests at once, so often that its cache is full in the second half, whose rate of completions counts; a flash
        drive gets four times as many, and again, until it collects garbage and the rate changes no more.  That is compared with the rate of
        the trace's arrivals; where requests wait for others, with the rate at which they are done when played as recorded, in such a
        `duration` (ns).
        """
        load, preset, (source,) = self._load, self._drive.preset, self._load.sources
        count, written, times = 0, 0, list[int]()
        for batch in first_requests(source.batches(), load.limit):
            arrival, is_write = column(batch, "arrival"), column(batch, "operation") == WRITE
            count, written = count + batch.num_rows, written + int(column(batch, "length")[is_write].sum())
            times = [min([*times[:1], int(arrival.min())]), max([*times[1:], int(arrival.max())])]
        cache = preset.flash.write_buffer if preset.flash else preset.disk.write_behind if preset.disk else 0
        cache *= (preset.array.drives if preset.array else 1) * 2
        repeats, most = max(-(-cache // written) if written else 1, -(-_MEASURED // count)), max(1, _MOST_MEASURED // count)
        repeats = max(1, min(repeats, most))
        period = duration if load.pace == "think" else (times[1] - times[0]) * count / max(1, count - 1)
        busy, collects, programmed = self._rate(source, repeats)
        settled = is_steady = not (preset.flash and written)
        while not is_steady and repeats < most:
            before, needed = busy, 0 if collects or not programmed else math.ceil(2 * repeats * self._free / programmed)
            repeats = min(max(4 * repeats, needed * (needed <= most)), most)  # where free blocks are too many, the rate with these counts
            busy, collects, programmed = self._rate(source, repeats)
            settled = collects and abs(busy - before) <= _SETTLED * before
            is_steady = settled or (needed > most and abs(busy - before) <= _SETTLED * before)
        return period / (busy * count) if busy and period else math.inf, settled

    @property
    def _free(self) -> int:
        """Bytes of flash pages that can be programmed before a block is erased; 0 of an array, which does not tell."""
        flash, blocks = self._drive.preset.flash, None if self._drive.preset.array else self._drive.block_map()
        return 0 if flash is None or blocks is None else int((blocks.pages - blocks.written[~blocks.retired]).sum()) * flash.unit_size

    def _rate(self, source: Excerpt, repeats: int) -> tuple[float, bool, int]:
        """Nanoseconds of a request in the second of two halves, of so many repetitions each; whether blocks were erased in both; and bytes.

        The bytes are those that were programmed.
        """
        repeated = _Repeated(source.path, source.format, source.devices, times=2 * repeats, limit=self._load.limit)
        ends, erases, device = list[Integers](), list[tuple[int, int]](), deepcopy(self._drive)
        before, ended = device.statistics(), 0

        def observe(batch: pa.RecordBatch, completions: Completions) -> None:
            nonlocal ended
            ends.append(completions["completed"])
            ended += len(completions)
            erases.append((ended, device.statistics().get("flash_erases", 0)))

        with warnings.catch_warnings(), activity(f"measuring the rate of {device.name}"):
            warnings.simplefilter("ignore", FlashsimWarning)
            replay(repeated, device, ReplaySettings("asap", WINDOW // 2), self._what, observe)
        completed = np.sort(np.concatenate(ends))
        half = len(completed) // 2
        middle = max((each for count, each in erases if count <= half), default=0)
        growing, flash = growth(before, device.statistics()), device.preset.flash
        programmed = growing.get("flash_programs", 0) * (flash.unit_size if flash else 0)
        collects = before.get("flash_erases", 0) < middle < erases[-1][1]
        return (int(completed[-1]) - int(completed[half - 1])) / (len(completed) - half), collects, int(programmed)


@lru_cache(maxsize=1)
def ready_drive(load: TraceLoad) -> tuple[Survey, Device, str]:
    """The trace's survey, and the drive in its state, which a process makes once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlashsimWarning)
        what = survey(replace(load.sources[0], start=0), None if load.begin else load.limit)
    device = Device.open(load.device)
    with activity(f"preparing {device.name}") as progress:
        if device.preset.flash and load.state:
            return what, device, bring_into(device, load.state, load.seed, progress)
        load_reads(device, what, progress)
    return what, device, ""


def _latencies(report: DeviceReport) -> dict[str, float]:
    times = by_operation(report)[ALL]
    percentiles = {name: times.percentile(share) for name, share in LATENCIES.items() if share is not None}
    return {"mean": times.mean, **percentiles, "max": times.maximum}
