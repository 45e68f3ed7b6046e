"""Scans by strands see every tuple once, in every driver, and overlap what they say they overlap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from algorithms.files import parallel_scan, prefetching_scan
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.execution import cpu
from flashsim.execution.drivers import needed_size, run_strands, trace_only
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm, Cpu, Emit, Work
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.rows import Tuples
from flashsim.storage.source.base import load_pair, open_source
from tests.contract.drivers import Pairs, run_on_file
from tests.flashsim.execution.strand_programs import Kept

SCANS: dict[str, Callable[[HeapFile], Algorithm]] = {
    "parallel": lambda file: parallel_scan(file, _emit, 4, 5),
    "prefetching": lambda file: prefetching_scan(file, _emit, 4),
}


@pytest.fixture(scope="module")
def file() -> HeapFile:
    pair = load_pair(open_source("do2009:customer@0.02"), open_source("do2009:orders@0.02"), "c_custkey", "o_custkey")
    return heap_file(pair[0], 4096)


def _emit(tuples: Tuples) -> Algorithm:
    yield Cpu({Work.EMIT: len(tuples)})
    yield Emit(tuples.rows, tuples.keys)


def _digest(tuples: Tuples) -> Algorithm:
    """Work of a kind that no preset knows, priced by default."""
    yield Cpu({"digest": 5 * len(tuples)})


@pytest.mark.parametrize("scan", SCANS)
def test_every_driver_sees_every_tuple_and_page_once(scan: str, file: HeapFile, tmp_path: Path) -> None:
    sinks, pairs = [Kept() for _ in range(3)], [Pairs() for _ in range(3)]
    make = SCANS[scan]
    machine = Machine([Device.open("intel-x25e-64gb")], cpu.load("pentium-d-2009"), sinks[0])
    run_strands(make(file), [file], machine, results=pairs[0])
    trace_only(make(file), [file], sinks[1], results=pairs[1])
    with RealDevice(tmp_path / "device", needed_size([file]), allow_write=True, replace=True) as device:
        run = run_on_file(make(file), [file], device, sink=sinks[2], results=pairs[2])
    assert run.total().pages == file.pages
    read = [sorted((row[5], row[6]) for requests, _, _, _ in sink.rows for row in requests) for sink in sinks]
    assert read[0] == read[1] == read[2]
    rows = np.arange(len(file.relation))
    for found in pairs:
        assert np.array_equal(found.sorted(), np.column_stack([rows, file.relation.keys(rows)]))


def _time(algorithm: Algorithm, file: HeapFile, drive: str) -> int:
    return run_strands(algorithm, [file], Machine([Device.open(drive)], cpu.load("pentium-d-2009"))).elapsed


def test_flash_serves_several_strands_at_once_and_a_disk_does_not(file: HeapFile) -> None:
    speedups = {}
    for drive in ("intel-x25e-64gb", "toshiba-5400-320gb"):
        one, eight = (_time(parallel_scan(file, _emit, 1, strands), file, drive) for strands in (1, 8))
        speedups[drive] = one / eight
    assert speedups["intel-x25e-64gb"] > 1.3
    assert speedups["toshiba-5400-320gb"] < 1.1


def test_prefetching_hides_the_shorter_of_work_and_input(file: HeapFile) -> None:
    machine = Machine([Device.open("ocz-core-60gb")], cpu.load("pentium-d-2009"))
    run = run_strands(prefetching_scan(file, _digest, 4), [file], machine)
    total = run.total()
    assert max(total.io_time, total.user_time) < run.elapsed < 0.8 * (total.io_time + total.cpu_time)
