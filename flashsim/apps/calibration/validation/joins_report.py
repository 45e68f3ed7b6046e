"""The result of joins, its table, its picture and its page: formula, simulation and real device side by side, phase by phase."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from algorithms.joins.base import JOINS as FAMILY
from flashsim.core.options import options_in
from flashsim.core.units import MILLISECONDS_A_SECOND, format_size
from flashsim.device.presets import Preset
from flashsim.experiments.presentation.tables import Entry, Table, difference, same
from flashsim.experiments.runs.joining import JoinSetting, check_names
from flashsim.storage.heap_file import HeapFile
from models.disk import Disk

Floats = npt.NDArray[np.float64]
Seconds = list[float]
#: Phases in the order in which they were entered, and the first time of each.
Begins = Sequence[tuple[str, int]]
#: Two replays of one trace that differ by more are reported.
AGREE = 0.15
#: Remark on a phase that moves pages, which a formula does not have.
UNKNOWN = "no formula"

MEANING = (
    (
        "formula",
        "Haas, Carey and Livny: seeks, requests and pages, as the formula counts them, times the seek, latency and transfer of the device. "
        "Of requests that N-Hash hands over together one waits the latency.",
    ),
    ("simulated", "the virtual time in which the simulated device serves the very requests of the join; CPU work takes no time."),
    (
        "executed",
        "the join on the real file, past the page cache: the sum of the times of its requests, each from submission to completion. Tuples "
        "are copied and joined in between, which is not counted, but leaves caches cold and lets the device rest. Where requests overlap, "
        "as those of N-Hash and ParaHash do, the time in which any of them is under way.",
    ),
    (
        "replayed",
        "the same requests again, one right after another, by an engine: builtin, of our own, or fio, a program by others. Requests that "
        "overlap come when those that they waited for have completed, after the same pauses, by builtin alone.",
    ),
)
WHY = (
    "All times are of I/O alone. The formula prices a request with one latency and one rate whatever its size, and a "
    "seek by its mean; the simulation has no operating system, whose share of a small request is part of the calibrated latency, and no "
    "other users of the disk; a join's requests come after pauses, as a calibration's may, a replay's do not; writes of a real file may "
    "meet the file system's journal and first-time allocation."
)


@dataclass(frozen=True)
class JoinsSetting:
    """Joins of a validation: algorithms, memory in pages, repeats on the real device, and options for the joins that have them."""

    algorithms: Sequence[str]
    memory: int
    repeats: int = 5
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = {option for algorithm in self.algorithms for option in options_in(FAMILY.load(algorithm).OPTIONS)}
        strange = {name: value for name, value in self.options.items() if name not in known}
        for setting in map(self.of, self.algorithms):
            check_names(replace(setting, given={**setting.given, **strange}), None)  # which refuses what no join here takes

    def of(self, algorithm: str) -> JoinSetting:
        takes = options_in(FAMILY.load(algorithm).OPTIONS)
        return JoinSetting(algorithm, self.memory, cpu=None, given={name: each for name, each in self.options.items() if name in takes})


@dataclass
class Witnesses:
    """A join's I/O seconds by phase, from every witness."""

    algorithm: str
    phases: list[str]
    requests: list[int]
    simulated: Seconds
    #: Seconds by the formula; None for a join that the formula does not know; phases that it does not have cost 0.
    formula: Seconds | None
    #: By phase, that its formula is a bound, or that there is none; empty where neither is so.
    remarks: list[str] = field(default_factory=list)
    bytes: int = 0
    #: The seconds of each request, an array a repeat; `replayed` by engine.  What counts is `shortest_times`, request by request.
    executed: list[Floats] = field(default_factory=list)
    replayed: dict[str, list[Floats]] = field(default_factory=dict)
    replayed_bytes: dict[str, int] = field(default_factory=dict)
    #: Wall-clock less CPU time of each execution, as in do2009.
    wall: Seconds = field(default_factory=list)
    #: Phases in the order in which they were entered, and the first request of each on the device.
    begins: Begins = ()
    #: Requests overlap: then times are those of phases, in which any request was under way.
    overlap: bool = False

    def columns(self) -> dict[str, Seconds | None]:
        """Seconds by phase, the total last, of every witness."""
        columns: dict[str, Seconds | None] = {"formula": self.formula, "simulated": self.simulated}
        columns |= {name: self._by_phase(shortest_times(times)) for name, times in self.real().items()}
        return {name: None if times is None else [*times, sum(times)] for name, times in columns.items()}

    def noise(self) -> dict[str, float]:
        """The spread of the repeats' totals as a share of the result, for the real device's columns."""
        totals = {name: [float(one.sum()) for one in times] for name, times in self.real().items()}
        return {name: (max(sums) - min(sums)) / float(shortest_times(self.real()[name]).sum()) for name, sums in totals.items()}

    def real(self) -> dict[str, list[Floats]]:
        """The repeats of each of the real device's columns."""
        return {"executed": self.executed} | {f"replayed by {engine}": times for engine, times in self.replayed.items()}

    def _by_phase(self, times: Floats) -> Seconds:
        sums = dict.fromkeys(self.phases, 0.0)
        begins = [(phase, number) for number, (phase, _) in enumerate(self.begins)] if self.overlap else self.begins
        for (phase, begin), (_, end) in pairwise([*begins, ("", len(times))]):
            sums[phase] += float(times[begin:end].sum())
        return [*sums.values()]


@dataclass(frozen=True)
class JoinsValidation:
    """All joins, and the device's figures that the formula took."""

    device: str
    preset: Preset
    disk: Disk
    files: tuple[HeapFile, HeapFile]
    setting: JoinsSetting
    engines: Sequence[str]
    joins: list[Witnesses]

    def as_dict(self) -> dict[str, Any]:
        disk, first = self.disk, self.files[0]
        return {
            "device": self.device,
            "preset": self.preset.name,
            "memory_pages": self.setting.memory,
            "page_size": first.page_size,
            "page_format": first.layout.page_format,
            "relations": [{"name": file.name, "rows": len(file.relation), "pages": file.pages} for file in self.files],
            "disk": {name: getattr(disk, name) for name in ("seek_ms", "latency_ms", "page_transfer_ms", "page_write_ms")},
            "engines_differ_by": engines_differ(self.joins),
            "joins": [
                {
                    "algorithm": one.algorithm,
                    "phases": [*one.phases, "total"],
                    "requests": one.requests,
                    "bytes": one.bytes,
                    "seconds": one.columns(),
                    "noise": one.noise(),
                    "wall_less_cpu": one.wall,
                    "replayed_bytes": one.replayed_bytes,
                    "engines_differ_by": engines_differ([one]),
                    "totals": {name: [float(each.sum()) for each in times] for name, times in one.real().items()},
                }
                for one in self.joins
            ],
        }


def seconds(joins: Sequence[Witnesses]) -> pd.DataFrame:
    """A row a join and phase, the total last: `algorithm`, `phase`, `requests`, and the I/O seconds of every witness, None if unknown."""
    frames = []
    for one in joins:
        phases, requests = [*one.phases, "total"], [*one.requests, sum(one.requests)]
        times: dict[str, Any] = {name: times or None for name, times in one.columns().items()}
        frames.append(pd.DataFrame({"algorithm": one.algorithm, "phase": phases, "requests": requests, **times}, dtype=object))
    return pd.concat(frames, ignore_index=True)


def engines_differ(joins: Sequence[Witnesses]) -> float | None:
    """The difference of the engines' totals over these joins, as a share of the smaller; None without two engines."""
    totals = [sum(float(shortest_times(one.replayed[engine]).sum()) for one in joins) for engine in joins[0].replayed]
    return max(totals) / min(totals) - 1 if len(totals) > 1 else None


def shortest_times(repeats: Sequence[Floats]) -> Floats:
    """The shortest time of each request: what others do on the machine only ever adds to one.

    Examples
    --------
    >>> shortest_times([np.array([1.0, 9.0]), np.array([3.0, 2.0]), np.array([50.0, 4.0])]).tolist()
    [1.0, 2.0]
    """
    shortest: Floats = np.stack(repeats).min(axis=0)
    return shortest


def table(result: JoinsValidation) -> Table:
    """A row a phase, and one for the whole of a join of several; ms, and relative differences."""
    frame = seconds(result.joins)
    names = list(frame.columns[3:])
    phases = frame[(frame["phase"] != "total") | (frame.groupby("algorithm")["phase"].transform("size") > 2)]
    columns = same("phase", "requests") | {f"{name} ms": (name, lambda time: MILLISECONDS_A_SECOND * time) for name in names}
    columns = {"join": "algorithm"} | columns | {f"{name} / executed": f"{name} / executed" for name in ("formula", "simulated")}
    records = phases.to_dict("records")
    remarks = {
        one.algorithm: dict(zip(one.phases, one.remarks, strict=False)) | {"total": ", ".join(dict.fromkeys(filter(None, one.remarks)))}
        for one in result.joins
    }
    for row in records:
        for name in ("formula", "simulated"):
            is_known = row[name] is not None and row["executed"]
            row[f"{name} / executed"] = difference(row[name] / row["executed"] - 1) if is_known else None
        row["remark"] = remarks[row["algorithm"]].get(row["phase"]) or None
        row["formula / executed"] = None if row["remark"] else row["formula / executed"]
    return Table.of(records, columns | (same("remark") if any(row["remark"] for row in records) else {}), digits=1)


def noise_table(result: JoinsValidation) -> Table:
    """The spread of repeats, if there are several, and the difference of engines, if there are two."""
    noisy, two = result.setting.repeats > 1, len(result.engines) > 1
    columns = [f"{name}: noise" for name in result.joins[0].noise()] if noisy else []
    rows: list[list[Entry]] = []
    for name, joins in ({one.algorithm: [one] for one in result.joins} | {"all": result.joins}).items():
        noise = [f"{value:.1%}" for value in joins[0].noise().values()] if name != "all" else [""] * len(columns)
        differs = engines_differ(joins)
        agreement = None if differs is None else f"{differs:.1%}{'' if differs <= AGREE else ' (more than 15 %)'}"
        rows.append([name, format_size(sum(one.bytes for one in joins)), *(noise if noisy else []), *([agreement] if two else [])])
    note = f"noise: how far the totals of {result.setting.repeats} repeats lie apart; of each request the shortest time counts"
    return Table(["join", "bytes moved", *columns, *(["engines differ by"] if two else [])], rows, note=note if noisy else "")


def conditions(result: JoinsValidation) -> str:
    sides = ", ".join(f"{file.name} {len(file.relation):,} rows on {file.pages:,} pages" for file in result.files)
    disk = result.disk
    write = disk.page_write_ms or disk.page_transfer_ms
    return (
        f"{result.device} beside {result.preset.name} ({result.preset.title}): {sides} of {result.files[0].layout.page_title}; memory "
        f"{result.setting.memory:,} pages. The formula takes a seek of {disk.seek_ms:.4g} ms, a latency of {disk.latency_ms:.4g} ms and "
        f"{disk.page_transfer_ms:.4g} ms a page read, {write:.4g} ms written."
    )
