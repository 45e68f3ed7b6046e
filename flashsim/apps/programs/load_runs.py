"""Runs of a trace on one drive: as it was recorded, again and again, and faster and faster."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.apps.programs.drive_parts import LoadSize, part_for
from flashsim.apps.programs.load_search import greatest_load
from flashsim.core.activity import activity, report_share
from flashsim.core.errors import FlashsimWarning
from flashsim.core.large_arrays import Original
from flashsim.core.request import WRITE, Completions
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
from traces.file.excerpt import Excerpt, Source, requests_of
from traces.file.schema import Batches
from traces.summary.distinct import Touched

#: Names of the latencies that a bound may be of, and the share that each percentile is of.
LATENCIES: dict[str, float | None] = {"mean": None, "p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": None}
#: Loads that a search tries, about.
_MOST_LOADS = 10
#: Shares of a run that are done when the drive is in its state, and when the trace has been repeated, about.
_READY, _REPEATED = 0.3, 0.7
#: Write amplification has settled if bursts of collection shift it by less than the second share, and the third and the last quarter of
#: the repetitions differ by less than the first, or by so many times the shift.  A rate, whose bursts are larger, has settled at the last.
_SETTLED, _BURSTS, _DEVIATIONS, _RATE_BURSTS = 0.02, 0.015, 2.0, 0.03
#: Requests at least, and at most where the trace has fewer, by which the rate of a drive that is never idle is measured.
_MEASURED, _MOST_MEASURED = 10_000, 1 << 22


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
    #: Distinct bytes that the trace writes, by which a flash drive's part is chosen; None: drives are whole.
    written: int | None


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
    #: See `LoadStudy`.
    written: int | None = None
    #: Whether the state of the drive is kept for other runs.
    keeps: bool = True

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
        ``report`` (`flashsim.experiments.replaying.device_report.DeviceReport.as_dict`), ``latency`` (ns) of the first repetition and
        ``latencies`` of each, ``state`` in words, ``repetitions`` (host bytes, bytes programmed, and ns of each), whether it ``settled``,
        and ``wear``; the ``capacity`` of the drive or its part, and whether the trace's addresses were ``folded`` into it.
    """
    return _repeat(_LoadRuns(TraceLoad(**load)), presets.load(load["device"]), repeats)


def _repeat(run: _LoadRuns, whole: presets.Preset, repeats: int) -> dict[str, Any]:
    report_share(_READY)
    report, statistics = run.replay(1.0, observed=True)
    device, flash = run.device, run.device.preset.flash
    repetitions, settled, latencies = [_sums(statistics, report, device)], True, [_latencies(report)]
    if flash and repetitions[0]["written"]:
        with activity(f"repeating on {device.name}") as progress:
            spare = flash.effective_overprovisioning * device.capacity
            while not (settled := _is_long_run(repetitions, spare)) and len(repetitions) < repeats:
                again, growing = run.replay(1.0, device)
                repetitions.append(_sums(growing, again, device))
                latencies.append(_latencies(again))
                progress(len(repetitions), repeats, f"{len(repetitions)} repetitions")
                report_share(_READY + (_REPEATED - _READY) * len(repetitions) / repeats)
    result: dict[str, Any] = {"report": report.as_dict(statistics), "latency": latencies[0], "latencies": latencies, "state": run.state}
    result |= {"capacity": device.capacity, "folded": run.is_folded, "repetitions": repetitions, "settled": settled}
    return result | {"wear": wear_figures(repetitions, whole) if flash else None}


def run_endlessly(load: Mapping[str, Any], repeats: int, stamps: Mapping[str, str]) -> dict[str, Any]:
    """The result of `run_repeatedly`, and the greatest speed at which the drive keeps up with the trace over and over.

    It is the ``limit`` (None: there is none) of the drive as the repetitions left it; ``limit_settled`` is False where a flash drive still
    had free blocks, or its rate still moved.
    """
    run = _LoadRuns(TraceLoad(**load))
    result = _repeat(run, presets.load(load["device"]), repeats)
    report_share(_REPEATED)
    with activity(f"measuring the rate of {run.device.name}"):
        limit, settled = run.limit(result["repetitions"][0]["time"])
    return result | {"limit": limit if math.isfinite(limit) else None, "limit_settled": settled}


def run_briefly(load: Mapping[str, Any], repeats: int, stamps: Mapping[str, str]) -> dict[str, Any]:
    """The latencies (ns) and wear of one drive of many; see `run_repeatedly`."""
    run = run_repeatedly(load, repeats, stamps)
    return {name: run[name] for name in ("latency", "wear", "settled")} | {"requests": run["report"]["requests"]}


def _sums(statistics: Mapping[str, Any], report: DeviceReport, device: Device) -> dict[str, int]:
    programs = statistics.get("flash_programs", 0) * (device.preset.flash.unit_size if device.preset.flash else 0)
    sums = {"written": statistics.get("host_write_bytes", 0), "programmed": programs, "erases": statistics.get("flash_erases", 0)}
    return {name: int(value) for name, value in sums.items()} | {"time": report.duration}


def _is_long_run(repetitions: Sequence[Mapping[str, int]], spare: float) -> bool:
    """True if write amplification has settled, and that is no rest of the state before: its first half has programmed the spare flash."""
    programmed = sum(each["programmed"] for each in repetitions[: len(repetitions) // 2])
    return programmed >= spare and has_settled(repetitions) and _has_erased(repetitions)


def _has_erased(repetitions: Sequence[Mapping[str, int]]) -> bool:
    """True if blocks were erased in the third quarter of repetitions and in the last: no free blocks are left that writes could take."""
    return all(any(each["erases"] for each in part) for part in _last_quarters(repetitions))


def _last_quarters(repetitions: Sequence[Mapping[str, int]]) -> tuple[Sequence[Mapping[str, int]], ...]:
    count = len(repetitions)
    return repetitions[count // 2 : 3 * count // 4], repetitions[3 * count // 4 :]


def has_settled(repetitions: Sequence[Mapping[str, int]], what: str = "programmed", per: str = "written", bursts: float = _BURSTS) -> bool:
    """True if the ratio of two sums, write amplification, of the third quarter of repetitions is that of the last; at each fourth.

    A drive that collects in bursts has some repetitions without any: by how much the sums of the second half, as they grow, depart from
    proportion, shows how far such bursts may shift the ratio.
    """
    count = len(repetitions)
    if count < 4 or count % 4:
        return False
    parts = _last_quarters(repetitions)
    third, last = (sum(each[what] for each in part) / max(1, sum(each[per] for each in part)) for part in parts)
    sums, amounts = (np.cumsum([each[name] for part in parts for each in part]) for name in (what, per))
    departure = np.append(sums - amounts * (sums[-1] / max(1, amounts[-1])), 0.0)
    error = (departure.max() - departure.min()) / 2 / max(1, sums[-1])
    return bool(error <= bursts and abs(third - last) <= max(_SETTLED, _DEVIATIONS * error) * last)


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


def find_load(
    load: Mapping[str, Any], recorded: Mapping[str, float], limit: float | None, latency: str, most: int, stamps: Mapping[str, str]
) -> dict[str, Any]:
    """The greatest speed of a trace at which a latency, one of `LATENCIES`, is at most `most` ns, and all speeds that were tried.

    It is at most the speed at which the drive, never idle, just keeps up, the `limit` (None: there is none), however well the drive takes
    the trace once.  `recorded` has the latencies and the duration of the trace as it was recorded, by `run_endlessly`.
    """
    tried = {1.0: {"speed": 1.0, **recorded}}

    def play(speed: float) -> dict[str, Any]:
        if speed not in tried:
            report, _ = _LoadRuns(TraceLoad(**load)).replay(speed)
            tried[speed] = {"speed": speed, "duration": report.duration} | _latencies(report)
        return tried[speed]

    with activity(f"looking for the load of {load['device']}") as progress:

        def tell(count: int) -> None:
            progress(count, _MOST_LOADS, f"{count} loads tried")
            report_share(min(count / _MOST_LOADS, 1))

        greatest = greatest_load(
            lambda speed: bool(play(speed)[latency] <= most),
            math.inf if limit is None else limit,
            lambda: tell(len(tried)),
        )
    return {"greatest": greatest, "tried": sorted(tried.values(), key=lambda each: float(each["speed"]))}


class _LoadRuns:
    """Replays of one trace on copies of one drive."""

    def __init__(self, load: TraceLoad) -> None:
        self._load = load
        self._what, self._drive, self.state = ready_drive(load)
        self.device = self._drive.copy()
        self.is_folded = self._what.reach > self.device.capacity

    def replay(self, speed: float, device: Device | None = None, observed: bool = False) -> tuple[DeviceReport, dict[str, Any]]:
        """The report of a replay on a device, otherwise on a copy of the drive as prepared, and the growth of its counters.

        Only the report of a replay that is observed has write amplification over time.
        """
        self.device = device or self._drive.copy()
        before = self.device.statistics()
        watch = Observation(self.device) if observed else None
        report = DeviceReport(self.device.preset, watch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FlashsimWarning)  # said once of the trace
            settings = ReplaySettings(self._load.pace, scale_offsets=self.is_folded)
            observe = observers(report.add, *([watch.add] if watch else []))
            with activity(f"simulating {self.device.name}") as progress:
                for source in self._load.sources:
                    rest = None if self._load.limit is None else self._load.limit - sum(each["latency"].count for each in report.times)
                    if rest is None or rest > 0:
                        replay(replace(source, speed=speed), self.device, settings, self._what, observe, rest, progress, watch)
        after = self.device.statistics()
        return report, growth(before, after) if device else after

    def limit(self, duration: int) -> tuple[float, bool]:
        """The greatest speed at which the drive keeps up with the trace over and over, and whether that has settled.

        The drive, as the repetitions have left it, gets all requests at once, pass after pass, until the rate of passes has settled as
        write amplification does and blocks are erased.  The first pass, which fills the cache, does not count.  The rate is compared with
        that of the trace's arrivals; where requests wait for others, with the rate at which they are done when played as recorded, in such
        a `duration` (ns).
        """
        load, preset, (source,) = self._load, self.device.preset, self._load.sources
        count, written, times = 0, 0, list[int]()
        for batch in first_requests(source.batches(), load.limit):
            arrival, is_write = column(batch, "arrival"), column(batch, "operation") == WRITE
            count, written = count + batch.num_rows, written + int(column(batch, "length")[is_write].sum())
            times = [min([*times[:1], int(arrival.min())]), max([*times[1:], int(arrival.max())])]
        cache = preset.flash.write_buffer if preset.flash else preset.disk.write_behind if preset.disk else 0
        cache *= (preset.array.drives if preset.array else 1) * 2
        most = max(2, _MOST_MEASURED // count)
        repeats = min(max(1, -(-cache // written) if written else 1, -(-_MEASURED // count)), most // 2)
        period = duration if load.pace == "think" else (times[1] - times[0]) * count / max(1, count - 1)
        self._rate(source, repeats)
        rates, total = [self._rate(source, repeats)], 2 * repeats
        settled = not (preset.flash and written)
        while not settled and total + repeats <= most:
            rates.append(self._rate(source, repeats))
            total += repeats
            if has_settled(rates, "time", "requests", _RATE_BURSTS):
                needed = math.ceil(repeats * self._free / max(1, rates[-1]["programmed"]))
                if (settled := _has_erased(rates)) or total + needed > most:
                    break
                self._rate(source, needed)
                rates, total = [], total + needed
        rates = rates[len(rates) // 2 :]
        busy = sum(each["time"] for each in rates) / max(1, sum(each["requests"] for each in rates))
        return period / (busy * count) if busy and period else math.inf, settled

    @property
    def _free(self) -> int:
        """Bytes of flash pages that can be programmed before a block is erased; 0 of an array, which does not tell."""
        flash, blocks = self.device.preset.flash, None if self.device.preset.array else self.device.block_map()
        return 0 if flash is None or blocks is None else int((blocks.pages - blocks.written[~blocks.retired]).sum()) * flash.unit_size

    def _rate(self, source: Excerpt, repeats: int) -> dict[str, int]:
        """Submit the trace a number of times, all at once: ``requests``, ``time`` (ns), ``erases``, and bytes ``programmed``.

        The time ends when the drive has programmed all that the requests wrote, not when the last write is acknowledged.
        """
        repeated = _Repeated(source.path, source.format, source.devices, times=repeats, limit=self._load.limit)
        device, flash, count = self.device, self.device.preset.flash, 0
        before, begin = device.statistics(), device.now

        def observe(batch: pa.RecordBatch, completions: Completions) -> None:
            nonlocal count
            count += len(completions)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FlashsimWarning)
            replay(repeated, device, ReplaySettings("asap", WINDOW // 2, self.is_folded), self._what, observe)
        growing = growth(before, device.statistics())
        programmed = growing.get("flash_programs", 0) * (flash.unit_size if flash else 0)
        return {"time": device.now - begin, "requests": count, "erases": int(growing.get("flash_erases", 0)), "programmed": int(programmed)}


@lru_cache(maxsize=1)
def ready_drive(load: TraceLoad) -> tuple[Survey, Original[Device], str]:
    """The trace's survey, and the drive, or its part, in its state, which a process makes once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlashsimWarning)
        what = survey(replace(load.sources[0], start=0), None if load.begin else load.limit)
    preset = presets.load(load.device)
    device = Device(preset if load.written is None else part_for(preset, LoadSize(what.reach, load.written)))
    with activity(f"preparing {device.name}") as progress:
        if device.preset.flash and load.state:

            def tell(done: float, total: float, message: str = "") -> None:
                progress(done, total, message)
                report_share(_READY * done / total if total else 0)

            state = bring_into(device, load.state, load.seed, tell, keeps=load.keeps)
        else:
            load_reads(device, what, progress)
            state = ""
    return what, Original(device, device.arrays, goes_on=True), state


def written_bytes(source: Source, limit: int | None = None) -> int:
    """Distinct bytes that the first requests of a trace write."""
    touched = Touched()
    for batch in first_requests(requests_of(source), limit):
        writes = column(batch, "operation") == WRITE
        touched.add(*(column(batch, name)[writes].astype(np.int64) for name in ("device", "offset", "length")))
    return touched.size


def _latencies(report: DeviceReport) -> dict[str, float]:
    times = by_operation(report)[ALL]
    percentiles = {name: times.percentile(share) for name, share in LATENCIES.items() if share is not None}
    return {"mean": times.mean, **percentiles, "max": times.maximum}
