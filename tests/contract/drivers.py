"""Run one algorithm in every driver, and check that rows and requests are the same in all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flashsim.core.protocols import Label
from flashsim.core.request import Completions, Integers, Requests
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.execution import cpu
from flashsim.execution.drivers import needed_size, run, run_strands, simulate, trace_only, unbounded_volume
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm
from flashsim.execution.run import ConcurrentRun, Run
from flashsim.storage.heap_file import HeapFile

DRIVES = ("toshiba-5400-320gb", "ocz-core-60gb")


@dataclass
class Recorded:
    """A sink that keeps what was asked for."""

    rows: list[tuple[int, int, int, int, str]] = field(default_factory=list)

    def record(self, requests: Requests, completions: Completions | None, label: Label, after: int | None = None) -> None:
        """Keep operation, offset, length, dependency and label."""
        columns = (requests[name].tolist() for name in ("operation", "offset", "length", "dependency"))
        labels = [label] * len(requests) if isinstance(label, str) else label
        self.rows += [(*row, each) for row, each in zip(zip(*columns, strict=True), labels, strict=True)]

    def close(self) -> None:
        """Nothing to do."""

    @property
    def bytes(self) -> int:
        """Bytes of all requests."""
        return sum(length for _, _, length, _, _ in self.rows)


@dataclass
class Pairs:
    """Collects result rows."""

    parts: list[Integers] = field(default_factory=list)

    def __call__(self, *rows: Integers) -> None:
        self.parts.append(np.stack(rows, axis=1))

    def sorted(self) -> Integers:
        """All of them, in order of their row ids: pairs, shape (n, 2), or as many as there are relations."""
        rows = np.concatenate(self.parts) if self.parts else np.zeros((0, 2), np.int64)
        return rows[np.lexsort(rows.T[::-1])]


def run_on_file(algorithm: Algorithm, files: Sequence[HeapFile], device: RealDevice, **options: Any) -> Run:
    """Run an algorithm on a real device, all its strands as one."""
    return run(lambda: algorithm, files, device, **options)[0]


def run_strands_everywhere(
    make: Callable[[], Algorithm], files: Sequence[HeapFile], folder: Path
) -> tuple[list[Integers], ConcurrentRun, list[Run]]:
    """Rows (pairs of row ids, sorted) of an algorithm of several strands in virtual time, traced and on a real file; and its runs there."""
    found = [Pairs() for _ in range(3)]
    machine = Machine([Device.open("intel-x25e-64gb")], cpu.load("pentium-d-2009").on_cores(2))
    timed = run_strands(make(), files, machine, results=found[0])
    volume = unbounded_volume()
    others = [trace_only(make(), files, results=found[1], volume=volume)]
    size = 2 * max(needed_size(files), volume.laid_out_size)  # who comes first decides how many pages are not full
    with RealDevice(folder / "device", size, allow_write=True, replace=True, buffered=True) as device:
        others.append(run_on_file(make(), files, device, results=found[2]))
    return [pairs.sorted() for pairs in found], timed, others


def run_everywhere(
    make: Callable[[], Algorithm], files: Sequence[HeapFile], folder: Path, *, buffered: bool = False
) -> tuple[Integers, list[Run], Recorded]:
    """Rows (pairs of row ids, sorted), runs (two drives, traced, real file) and requests of an algorithm.

    Checks that all drivers saw the same requests, returned the same rows and counted the same, and that time passes.  The real file's may
    be `buffered`: then requests may be of single sectors everywhere.
    """
    sinks = [Recorded() for _ in range(4)]
    pairs = [Pairs() for _ in range(3)]
    prices = cpu.load("pentium-d-2009")
    machines = [Machine([Device.open(name)], prices, sink) for name, sink in zip(DRIVES, sinks, strict=False)]
    runs = simulate(make(), files, machines, results=pairs[0])
    for each, machine in zip(runs, machines, strict=True):
        assert each.total().total_time == machine.now  # the parts make up the whole
    volume = unbounded_volume()
    runs.append(trace_only(make(), files, sinks[2], results=pairs[1], volume=volume))
    size = max(needed_size(files), volume.laid_out_size)
    with RealDevice(folder / "device", size, allow_write=True, replace=True, buffered=buffered) as device:
        runs.append(run_on_file(make(), files, device, sink=sinks[3], results=pairs[2]))
    for sink in sinks[1:]:
        assert sink.rows == sinks[0].rows
    for other in pairs[1:]:
        assert np.array_equal(other.sorted(), pairs[0].sorted())
    counted = [[(phase.name, phase.reads, phase.writes, phase.pages, phase.work) for phase in run.phases] for run in runs]
    assert counted.count(counted[0]) == len(counted)
    assert {run.result_rows for run in runs} == {len(pairs[0].sorted())}
    *timed, traced, real = (run.total() for run in runs)
    assert traced.total_time == 0
    if sinks[0].rows:
        assert real.total_time > 0
        assert all(min(total.user_time, total.kernel_time, total.io_time) > 0 for total in timed)
    return pairs[0].sorted(), runs, sinks[0]
