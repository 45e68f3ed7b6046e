"""One join, four witnesses: the formula, the simulated device, the real device while the join runs, and the same trace replayed there.

All times are of I/O alone.  Executed: the sum of the times from submission to completion of each request, while the join does its work in
between; replayed: the same requests one right after another.  Simulated: the virtual time of the same join without CPU work.  Formula: Haas
et al., with the latency and transfer that the preset itself shows.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from algorithms.joins.base import JOINS as FAMILY
from algorithms.joins.base import plan as plan_join
from flashsim.core.errors import FlashsimError, RefusedError
from flashsim.core.options import options_in
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE, make_requests, response_times
from flashsim.core.rng import generator
from flashsim.core.units import KIB, MIB, MILLISECONDS, SECONDS
from flashsim.device import presets
from flashsim.device.access import check_typed, check_writable
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.device.presets import Preset
from flashsim.execution.drivers import needed_size, run
from flashsim.execution.machine import Machine
from flashsim.execution.run import ConcurrentRun
from flashsim.storage.heap_file import HeapFile
from flashsim.studies.formulas.comparison import BOUND, formula, sizes_of
from flashsim.studies.replaying.real import RealSettings, replay_on
from flashsim.studies.replaying.survey import survey
from flashsim.studies.runs.drives import disk_of
from flashsim.studies.runs.joining import JoinSetting, check_names, divide, needed_for
from flashsim.studies.validation.join_times import Begins, Floats, RequestTimes, Tee
from models.disk import Disk
from traces.file.recording import ParquetRecorder
from traces.replay.base import load_engine

#: The four joins of Haas et al.
JOINS = ("bnl", "sort-merge", "grace-hash", "hybrid-hash")
#: Two replays of one trace that differ by more are reported.
AGREE = 0.15

Seconds = list[float]
#: Sizes of a join's I/O blocks; requests of each; and where they go.
_SIZES = (8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, MIB)
_COUNT = 24
#: Writes of a call.
_TOGETHER = 256
_AREA = 64 * MIB


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


#: Remark on a phase that moves pages, which a formula does not have.
UNKNOWN = "no formula"


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
    #: Bytes moved by an execution.
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


def validate(
    on: Path,
    preset: Preset,
    files: tuple[HeapFile, HeapFile],
    setting: JoinsSetting,
    engines: Sequence[str],
    access: RealSettings,
    progress: Progress | None = None,
) -> JoinsValidation:
    """Run the joins on a real file or block device, replay their traces there, simulate them and ask the formula.

    `engines` are members of `traces.replay`; `access` has permissions to write; a file that is made is removed at the end.
    """
    check(on, files, access, engines)
    disk = fitted_disk(preset, files[0].page_size)
    joins = [_predict(algorithm, preset, disk, files, setting) for algorithm in setting.algorithms]
    for one, engine in product(joins, engines):
        if one.overlap and "think" not in load_engine(engine).PACES:
            raise RefusedError(f"engine: {engine} does not keep requests of {one.algorithm} that overlap; take builtin")
    exists = on.exists()
    total = setting.repeats * len(joins) * (1 + len(engines))
    step = 0

    def tell(what: str) -> None:
        nonlocal step
        if progress:
            progress(step, total, what)
        step += 1

    try:
        with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
            trace = Path(folder) / "join.parquet"
            for number in range(setting.repeats):
                for one in joins:
                    tell(one.algorithm)
                    # what an earlier run has made is overwritten without being asked again
                    _execute(one, on, preset, files, setting, access.allow_write, access.replace or (not exists and on.exists()), trace)
                    for engine in engines if number % 2 == 0 else reversed(engines):
                        tell(f"{one.algorithm}, replayed by {engine}")
                        _replay(one, on, trace, engine, access.destroy)
    finally:
        if not exists:
            on.unlink(missing_ok=True)
    return JoinsValidation(str(on), preset, disk, files, setting, engines, joins)


def check(on: Path, files: tuple[HeapFile, HeapFile], access: RealSettings, engines: Sequence[str]) -> None:
    """Refuse at once what `validate` would refuse when it has begun."""
    if str(on) in presets.names(zoned=True) or on.suffix == ".toml":
        raise RefusedError(f"path: {on} is a preset, but a real file or block device is needed")
    for engine in engines:
        load_engine(engine).check()
    if check_writable(on, needed_size(files), allow_write=access.allow_write, replace=access.replace):
        check_typed(on, access.destroy)


def _predict(algorithm: str, preset: Preset, disk: Disk, files: tuple[HeapFile, HeapFile], setting: JoinsSetting) -> Witnesses:
    how = setting.of(algorithm)
    parameters, allocation = divide(how, files, preset)
    join, machine = partial(plan_join, algorithm, *files, parameters, allocation), Machine([Device(preset)], None, name=preset.name)
    (cost,) = run(join, files, [machine], strands=parameters.strands > 1)
    if isinstance(cost, ConcurrentRun):
        simulated, cost_model = [cost.elapsed_in(phase.name) / SECONDS for phase in cost.phases], None
    else:
        simulated = [phase.io_time / SECONDS for phase in cost.phases]
        cost_model = formula(algorithm, sizes_of(files, setting.memory, algorithm, parameters, cost.result_rows), disk, allocation)
    level = cost.outstanding.as_dict()
    phases, requests = [phase.name for phase in cost.phases], [phase.requests for phase in cost.phases]
    by_phase = {phase.name: phase.seconds(cost_model.disk) for phase in cost_model.phases} if cost_model else {}
    formulas = [by_phase.get(phase, 0.0) for phase in phases] if cost_model else None
    known = {phase.name: BOUND * phase.is_bound for phase in cost_model.phases} if cost_model else {}
    remarks = [known.get(name, UNKNOWN * bool(cost_model and count)) for name, count in zip(phases, requests, strict=True)]
    return Witnesses(algorithm, phases, requests, simulated, formulas, remarks=remarks, overlap=bool(level and level["max"] > 1))


def _execute(
    one: Witnesses,
    on: Path,
    preset: Preset,
    files: tuple[HeapFile, HeapFile],
    setting: JoinsSetting,
    allow_write: bool,
    replace: bool,
    trace: Path,
) -> None:
    how = setting.of(one.algorithm)
    parameters, allocation = divide(how, files, preset)
    with (
        RealDevice(on, needed_for(how, files, parameters, allocation), allow_write=allow_write, replace=replace) as device,
        ParquetRecorder(trace) as recorder,
    ):
        sink = Tee(recorder)
        join = sink.watch(plan_join(one.algorithm, *files, parameters, allocation))
        (cost,) = run(lambda: join, files, device, strands=parameters.strands > 1, sink=sink)
    one.begins, one.bytes = sink.begins, sink.times.bytes
    one.executed.append(sink.times.seconds(one.begins, overlap=one.overlap))
    one.wall.append(cost.total().io_time / SECONDS)


def _replay(one: Witnesses, on: Path, trace: Path, engine: str, destroy: str | Sequence[str] | None) -> None:
    times = RequestTimes()
    settings = RealSettings("think" if one.overlap else "asap", 1, engine, allow_write=True, replace=True, destroy=destroy)
    replay_on(trace, on, settings, survey(trace), times.add_replay)
    one.replayed.setdefault(engine, []).append(times.seconds(one.begins, overlap=one.overlap))
    one.replayed_bytes[engine] = times.bytes
    if times.bytes != one.bytes:
        raise FlashsimError(f"engine: {engine} moved {times.bytes} B of {one.algorithm}, but the join moves {one.bytes} B")


def fitted_disk(preset: Preset, page_size: int) -> Disk:
    """The figures of a disk as its preset has them; of a flash drive the latency and rate that single requests of several sizes show.

    A flash drive's request of ``size`` bytes is taken to last ``latency + size / rate``; both are fitted to the relative errors, reads and
    writes with one latency and a rate each, which is what the formula has.  What writes take besides that are handed over at once is the
    rest of a call of many.
    """
    if preset.kind == "hdd":
        return disk_of(preset, page_size)
    device = Device(preset)
    area = min(_AREA, device.capacity // MIB * MIB)
    device.load(0, area)
    random = generator(0, "device figures")
    rows, times = [], []
    for operation in (READ, WRITE):
        for size in _SIZES:
            offsets = random.integers(0, area // size, _COUNT) * size
            completions = device.serve(make_requests(operation, offsets, size, serial=True))
            rows.append([1.0, size * (operation == READ), size * (operation == WRITE)])
            times.append(float(np.median(response_times(completions))))
    weights = 1 / np.array(times)
    (latency, read, write), *_ = np.linalg.lstsq(np.array(rows) * weights[:, None], np.ones(len(times)), rcond=None)
    disk = Disk.from_rates(0.0, max(0.0, latency) / MILLISECONDS, page_size, SECONDS / read, SECONDS / write)
    together = device.serve(make_requests(WRITE, np.arange(_TOGETHER) * _SIZES[0], _SIZES[0]))
    duration = int(together["completed"].max() - together["submitted"].min())
    return replace(disk, together_ms=max(0.0, (duration - latency) / _TOGETHER - write * _SIZES[0]) / MILLISECONDS)
