"""One join, four witnesses: the formula, the simulated device, the real device while the join runs, and the same trace replayed there.

All times are of I/O alone.  Executed: the sum of the times from submission to completion of each request, while the join does its work in
between; replayed: the same requests one right after another.  Simulated: the virtual time of the same join without CPU work.  Formula: Haas
et al., with the latency and transfer that the preset itself shows.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count, pairwise, product
from pathlib import Path

import numpy as np
import pyarrow as pa

from algorithms.joins.base import plan as plan_join
from flashsim.apps.calibration.validation.joins_report import UNKNOWN, Begins, Floats, JoinsSetting, JoinsValidation, Witnesses
from flashsim.core.errors import FlashsimError, RefusedError
from flashsim.core.protocols import Label, Progress
from flashsim.core.request import FLUSH, READ, WRITE, Completions, Integers, Requests, make_requests, response_times
from flashsim.core.rng import generator
from flashsim.core.units import KIB, MIB, MILLISECONDS, SECONDS
from flashsim.device import presets
from flashsim.device.access import check_typed, check_writable
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.device.presets import Preset
from flashsim.execution.drivers import needed_size, run
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm, Phase, Request, rewrite
from flashsim.execution.run import ConcurrentRun
from flashsim.experiments.formulas.comparison import BOUND, formula, sizes_of
from flashsim.experiments.replaying.real import RealSettings, replay_on
from flashsim.experiments.replaying.survey import survey
from flashsim.experiments.runs.drives import disk_of
from flashsim.experiments.runs.joining import divide, size_for_join
from flashsim.storage.heap_file import HeapFile
from models.disk import Disk
from traces.file.recording import ParquetRecorder
from traces.replay.base import load_engine

#: The four joins of Haas et al.
JOINS = ("bnl", "sort-merge", "grace-hash", "hybrid-hash")
#: Sizes of a join's I/O blocks; requests of each; and where they go.
_SIZES = (8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, MIB)
_COUNT = 24
#: Writes of a call.
_TOGETHER = 256
_AREA = 64 * MIB


class RequestTimes:
    """Begins and ends of requests, and the sum of their bytes."""

    def __init__(self) -> None:
        self.bytes = self.count = 0
        self._times = [np.zeros((2, 0), np.int64)]

    def add(self, begins: Integers, ends: Integers, lengths: Integers) -> None:
        """Take requests, ns and bytes, shape (n,) each."""
        self._times.append(np.stack([begins, ends]))
        self.count += len(begins)
        self.bytes += int(lengths.sum())

    def add_replay(self, batch: pa.RecordBatch, completions: Completions) -> None:
        moves = batch.column("operation").to_numpy() != FLUSH
        self.add(completions["started"][moves], completions["completed"][moves], batch.column("length").to_numpy()[moves])

    def seconds(self, phases: Begins, *, overlap: bool) -> Floats:
        """Seconds of each request; or, where requests overlap, those of each phase entered in which any request was under way."""
        starts, ends = np.concatenate(self._times, axis=1)
        if not overlap:
            return (ends - starts) / SECONDS
        bounds = [*(first for _, first in phases), len(starts)]
        return np.array([under_way(starts[first:end], ends[first:end]) / SECONDS for first, end in pairwise(bounds)])


def under_way(begins: Integers, ends: Integers) -> int:
    """The time in which any of some requests was under way, by their begins and ends.

    Examples
    --------
    >>> under_way(np.array([0, 20, 1]), np.array([5, 30, 9]))
    19
    """
    order = np.argsort(begins, kind="stable")
    until = np.maximum.accumulate(ends[order], dtype=np.int64)
    before = np.concatenate([[begins.min(initial=0)], until[:-1]]) if len(order) else until
    return int(np.maximum(until - np.maximum(begins[order], before), 0).sum())


class Tee:
    """Records a trace, the bytes and the time of every request, and where phases begin.

    An extent that lies in several places is several requests here, and one in the counts of a run.
    """

    def __init__(self, recorder: ParquetRecorder) -> None:
        self.recorder = recorder
        self.times = RequestTimes()
        self.begins: list[tuple[str, int]] = []  # of each phase entered, its first request

    def record(self, requests: Requests, completions: Completions | None, label: Label, after: int | None = None) -> None:
        self.recorder.record(requests, completions, label, after)
        if completions is not None:
            self.times.add(completions["submitted"], completions["completed"], requests["length"])

    def close(self) -> None:
        self.recorder.close()

    def watch(self, algorithm: Algorithm) -> Algorithm:
        """An algorithm whose phases are noted; it begins one when all its strands have ended."""

        def note(request: Request) -> Request:
            if isinstance(request, Phase):
                self.begins.append((request.name, self.times.count))
            return request

        return rewrite(algorithm, note)


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
    result = JoinsValidation(str(on), preset, fitted_disk(preset, files[0].page_size), files, setting, engines, [])
    result.joins.extend(_predict(algorithm, result) for algorithm in setting.algorithms)
    for one, engine in product(result.joins, engines):
        if one.overlap and "think" not in load_engine(engine).PACES:
            raise RefusedError(f"engine: {engine} does not keep requests of {one.algorithm} that overlap; take builtin")
    exists = on.exists()
    steps, total = count(), setting.repeats * len(result.joins) * (1 + len(engines))

    def tell(what: str) -> None:
        if progress:
            progress(next(steps), total, what)

    try:
        with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
            trace = Path(folder) / "join.parquet"
            for number in range(setting.repeats):
                for one in result.joins:
                    tell(one.algorithm)
                    # what an earlier run has made is overwritten without being asked again
                    _execute(one, on, result, access.allow_write, access.replace or (not exists and on.exists()), trace)
                    for engine in engines if number % 2 == 0 else reversed(engines):
                        tell(f"{one.algorithm}, replayed by {engine}")
                        _replay(one, on, trace, engine, access.destroy)
    finally:
        if not exists:
            on.unlink(missing_ok=True)
    return result


def check(on: Path, files: tuple[HeapFile, HeapFile], access: RealSettings, engines: Sequence[str]) -> None:
    """Refuse at once what `validate` would refuse when it has begun."""
    if str(on) in presets.names(zoned=True) or on.suffix == ".toml":
        raise RefusedError(f"path: {on} is a preset, but a real file or block device is needed")
    for engine in engines:
        load_engine(engine).check()
    if check_writable(on, needed_size(files), allow_write=access.allow_write, replace=access.replace):
        check_typed(on, access.destroy)


def _predict(algorithm: str, result: JoinsValidation) -> Witnesses:
    how, files, preset = result.setting.of(algorithm), result.files, result.preset
    parameters, allocation = divide(how, files, preset)
    join, machine = partial(plan_join, algorithm, *files, parameters, allocation), Machine([Device(preset)], None, name=preset.name)
    (cost,) = run(join, files, [machine], strands=parameters.strands > 1)
    if isinstance(cost, ConcurrentRun):
        simulated, cost_model = [cost.time_in(phase.name) / SECONDS for phase in cost.phases], None
    else:
        simulated = [phase.io_time / SECONDS for phase in cost.phases]
        sizes = sizes_of(files, result.setting.memory, algorithm, parameters, cost.result_rows)
        cost_model = formula(algorithm, sizes, result.disk, allocation)
    level = cost.outstanding.as_dict()
    phases, requests = [phase.name for phase in cost.phases], [phase.requests for phase in cost.phases]
    by_phase = {phase.name: phase.seconds(cost_model.disk) for phase in cost_model.phases} if cost_model else {}
    formulas = [by_phase.get(phase, 0.0) for phase in phases] if cost_model else None
    known = {phase.name: BOUND * phase.is_bound for phase in cost_model.phases} if cost_model else {}
    remarks = [known.get(name, UNKNOWN * bool(cost_model and count)) for name, count in zip(phases, requests, strict=True)]
    return Witnesses(algorithm, phases, requests, simulated, formulas, remarks=remarks, overlap=bool(level and level["max"] > 1))


def _execute(one: Witnesses, on: Path, result: JoinsValidation, allow_write: bool, replace: bool, trace: Path) -> None:
    how, files = result.setting.of(one.algorithm), result.files
    parameters, allocation = divide(how, files, result.preset)
    with (
        RealDevice(on, size_for_join(how, files, parameters, allocation), allow_write=allow_write, replace=replace) as device,
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
