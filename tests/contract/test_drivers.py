"""One join, written once, runs in every driver: the same rows and the same requests in virtual time, on a real file, and traced."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from algorithms.joins.base import JOINS, JoinParameters, plan
from flashsim.core.request import Completions, Requests
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.execution import cpu
from flashsim.execution.real import needed_size, run_on_file
from flashsim.execution.simulated import Machine, simulate
from flashsim.execution.trace_only import trace_only
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.source.base import load_pair, open_source

PAGE = 4096


@dataclass
class Recorded:
    """A sink that keeps everything."""

    rows: list[tuple[int, int, int, int, str]] = field(default_factory=list)

    def record(self, requests: Requests, completions: Completions | None, label: str) -> None:
        for request in requests:
            self.rows.append((*(int(request[name]) for name in ("operation", "offset", "length", "dependency")), label))

    def close(self) -> None:
        """Nothing to do."""


@dataclass
class Pairs:
    """Collects result rows."""

    parts: list[np.ndarray] = field(default_factory=list)

    def __call__(self, r_rows: np.ndarray, s_rows: np.ndarray) -> None:
        self.parts.append(np.stack([r_rows, s_rows], axis=1))

    def sorted(self) -> list[list[int]]:
        return sorted(np.concatenate(self.parts).tolist()) if self.parts else []


@pytest.fixture(scope="module")
def files() -> tuple[HeapFile, HeapFile]:
    relations = load_pair(open_source("do2009:customer@0.01"), open_source("do2009:orders@0.01"), "c_custkey", "o_custkey")
    return heap_file(relations[0], PAGE), heap_file(relations[1], PAGE)


@pytest.mark.parametrize("page_io", [False, True])
@pytest.mark.parametrize("join", JOINS.names())
def test_rows_and_requests_are_the_same_in_all_drivers(join: str, page_io: bool, files: tuple[HeapFile, HeapFile], tmp_path: Path) -> None:
    parameters = JoinParameters(memory=40, page_io=page_io)

    def algorithm():  # noqa: ANN202
        return plan(join, *files, parameters)

    drives = ["toshiba-5400-320gb", "ocz-core-60gb"]
    sinks = [Recorded(), Recorded()]
    machines = [Machine([Device.open(name)], cpu.load("pentium-d-2009"), sink) for name, sink in zip(drives, sinks, strict=True)]
    simulated_rows, traced_rows, real_rows = Pairs(), Pairs(), Pairs()
    simulated = simulate(algorithm(), files, machines, results=simulated_rows)
    traced_sink, real_sink = Recorded(), Recorded()
    traced = trace_only(algorithm(), files, traced_sink, results=traced_rows)
    with RealDevice(tmp_path / "device", needed_size(files), allow_write=True) as device:
        real = run_on_file(algorithm(), files, device, sink=real_sink, results=real_rows)
    assert sinks[0].rows == sinks[1].rows == traced_sink.rows == real_sink.rows
    assert simulated_rows.sorted() == traced_rows.sorted() == real_rows.sorted()
    assert real.result_rows == len(files[1].relation)  # every order has one customer
    for run in (*simulated, traced, real):
        assert [(phase.name, phase.reads, phase.writes, phase.pages, phase.work) for phase in run.phases] == [
            (phase.name, phase.reads, phase.writes, phase.pages, phase.work) for phase in traced.phases
        ]
        assert run.total().pages * PAGE == sum(length for _, _, length, _, _ in traced_sink.rows)
        assert run.total().requests <= len(traced_sink.rows)  # a file in several places takes a device request for each
    for run, machine in zip(simulated, machines, strict=True):
        assert run.total().total_time == machine.now  # the parts make up the whole
        assert run.total().user_time > 0 and run.total().kernel_time > 0 and run.total().io_time > 0
    assert real.total().total_time > 0
