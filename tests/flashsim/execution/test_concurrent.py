"""Strands in virtual time: a serial algorithm costs what it costs under the serial driver, and strands overlap as the rules say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from algorithms.joins.base import JOINS, JoinParameters, page_format, plan
from flashsim.core.errors import DeadlockError, InvalidParameterError, RefusedError
from flashsim.core.units import NEVER
from flashsim.device.device import Device
from flashsim.execution import cpu
from flashsim.execution.concurrent import ConcurrentDriver
from flashsim.execution.drivers import run_strands, simulate, trace_only
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Acquire, Algorithm, Cpu, Latch, Phase, Read, Release, Sleep, Spawn, Strand, Wait
from flashsim.execution.run import ConcurrentRun
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.placement import PLACEMENTS
from flashsim.storage.source.base import load_pair, open_source
from tests.cases import with_each
from tests.flashsim.execution.strand_programs import LAYOUT, PAGES, Kept, Places, cpu_model, station
from traces.file.recording import ParquetRecorder


@pytest.fixture(scope="module")
def relations() -> tuple[HeapFile, HeapFile]:
    pair = load_pair(open_source("do2009:customer@0.003"), open_source("do2009:orders@0.003"), "c_custkey", "o_custkey")
    return heap_file(pair[0], 4096), heap_file(pair[1], 4096)


#: Each join on two of the drives, and each drive with half of the joins.
PAIRS = [
    (join, drive, PLACEMENTS.names()[(row + column) % len(PLACEMENTS.names())])
    for row, join in enumerate(JOINS.names())
    for column, drive in enumerate(["toshiba-5400-320gb", "ocz-core-60gb", "intel-x25e-64gb", "station"])
    if (row + column) % 2 == 0
]


@pytest.mark.parametrize(("join", "drive", "placement"), PAIRS)
def test_a_serial_algorithm_takes_the_same_time_under_both_drivers(
    join: str, drive: str, placement: str, relations: tuple[HeapFile, HeapFile], tmp_path: Path
) -> None:
    """And leaves the same trace: requests, what they waited for, think times, and when they arrived, started and completed."""
    prices = cpu.load("pentium-d-2009")
    files = [heap_file(file.relation, 4096, page_format=page_format(join)) for file in relations]
    runs, traces, ends = [], [], []
    for name in ("serial", "concurrent"):
        parameters = JoinParameters(memory=16, page_io=join != "bnl")
        count = PLACEMENTS.load(placement).DEVICE_MAP.devices
        devices = [station(1, 5000) if drive == "station" else Device.open(drive) for _ in range(count)]
        with ParquetRecorder(tmp_path / name) as recorder:
            machine = Machine(devices, prices, recorder)
            algorithm = plan(join, files[0], files[1], parameters)
            if name == "serial":
                runs.append(simulate(algorithm, files, [machine], placement=placement)[0].as_dict())
            else:
                found = run_strands(algorithm, files, machine, placement=placement)
                runs.append(found.strands[0].as_dict())
                assert found.elapsed == found.total().total_time
                assert found.core_times == {"host": found.total().cpu_time}
                assert sum(found.device_times) == found.total().io_time
        ends.append(machine.now)
        traces.append(pq.read_table(tmp_path / name))
    for run in runs:  # a strand does not know the head's movements
        for phase in [run["total"], *run["phases"]]:
            del phase["seeks"], phase["seek_time"]
    assert runs[0] == runs[1]
    assert ends[0] == ends[1]
    assert traces[0].equals(traces[1])


FILE = HeapFile("0.0", LAYOUT, temporary=False, pages=PAGES)


def _read(page: int = 0) -> Read:
    return Read(FILE, np.array([page]), np.array([1]))


def _run(algorithm: Algorithm, cores: int = 1, servers: int = 8) -> ConcurrentRun:
    """On a station that takes 1000 ns a request; the kernel's work for it takes 10."""
    places: Any = Places()
    return ConcurrentDriver(places, places, Machine([station(servers, 1000)], cpu_model(cores), Kept())).run(algorithm)


def _busy(*requests: Any) -> Algorithm:
    for request in requests:  # noqa: UP028 - a tuple takes no answers
        yield request


def _beside(*strands: Algorithm) -> Algorithm:
    begun = []
    for strand in strands:
        begun.append((yield Spawn(strand)))
    yield Wait(begun)


def test_work_shares_cores_first_come_first_served() -> None:
    work = [_busy(Cpu({"hash": 100})) for _ in range(5)]
    run = _run(_beside(*work), cores=2)
    assert [strand.total().user_time for strand in run.strands] == [0] + 5 * [1000]
    assert [strand.total().wait_time for strand in run.strands[1:]] == [0, 0, 1000, 1000, 2000]
    assert run.elapsed == 3000
    assert run.core_shares == {"host": 5 / 6, "device": 0}


def test_work_in_the_device_needs_no_core_of_the_host() -> None:
    run = _run(_beside(_busy(Cpu({"hash": 100})), _busy(Cpu({"hash": 100}, "device")), _busy(Cpu({"hash": 100}, "device"))))
    assert run.elapsed == 2000
    assert run.core_times == {"host": 1000, "device": 2000}


def test_work_overlaps_with_requests_of_others() -> None:
    run = _run(_beside(_busy(_read(), Cpu({"hash": 100})), _busy(Cpu({"hash": 100}), _read())))
    assert run.elapsed == 10 + 1000 + 10 + 1000  # the second strand's core is free again when the first one's page has come
    assert run.total().io_time == 2000
    assert run.device_shares == [2000 / run.elapsed]


def test_requests_of_strands_wait_at_the_device() -> None:
    assert _run(_beside(*(_busy(_read()) for _ in range(4))), cores=4).elapsed == 1010
    assert _run(_beside(*(_busy(_read()) for _ in range(4))), cores=4, servers=1).elapsed == 4010


def test_the_run_ends_with_its_last_strand() -> None:
    def main() -> Algorithm:
        yield Phase("short")
        yield Spawn(_busy(Sleep(700)), "sleeper")

    run = _run(main())
    assert run.elapsed == 700
    assert [(strand.strand, strand.total().wait_time) for strand in run.strands] == [("main", 0), ("sleeper", 700)]


def test_a_latch_goes_to_the_one_that_waits_longest() -> None:
    latch = Latch("index")
    run = _run(_beside(*(_busy(Acquire(latch), Sleep(100), Release(latch)) for _ in range(3))))
    assert [strand.total().wait_time for strand in run.strands[1:]] == [100, 200, 300]


def test_a_deadlock_says_who_waits_for_whom() -> None:
    one, two = Latch("one"), Latch("two")

    def main() -> Algorithm:
        yield Acquire(one)
        other = yield Spawn(_busy(Acquire(two), Acquire(one)), "other")
        assert isinstance(other, Strand)
        yield Sleep(10)
        yield Wait([other])

    with pytest.raises(DeadlockError, match="^deadlock: other waits for latch one, which main holds; main waits for other$"):
        _run(main())


def test_a_strand_that_fails_ends_the_run_with_its_error() -> None:
    closed = []

    def failing() -> Algorithm:
        yield Sleep(5)
        raise ValueError("broken")

    def main() -> Algorithm:
        try:
            yield Wait([(yield Spawn(failing()))])  # type: ignore[list-item]
        finally:
            closed.append(True)

    with pytest.raises(ValueError, match="broken"):
        _run(main())
    assert closed == [True]


@with_each(
    ("requests", "message"),
    [
        ([Sleep(-1)], "sleep: -1 ns"),
        ([Release(Latch("index"))], "release: index, but main does not hold"),
        ([Acquire(Latch("index"))], "latch: index, but main ended while it held it"),
        ([Cpu({"hash": 1}, "attic")], "place: 'attic', but CPU preset tiny has host, device"),
    ],
)
def test_what_no_strand_may_do_is_refused(requests: list[Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        _run(_busy(*requests))


def test_the_serial_driver_refuses_strands(relations: tuple[HeapFile, HeapFile]) -> None:
    with pytest.raises(RefusedError, match="spawn: this driver runs one strand"):
        simulate(_beside(_busy()), relations, [Machine([Device.open("ocz-core-60gb")])])


def test_without_a_machine_strands_take_turns(relations: tuple[HeapFile, HeapFile]) -> None:
    def reads(first: int) -> Algorithm:
        for page in range(first, first + 2):
            yield Read(relations[0], np.array([page]), np.array([1]))

    kept = Kept()
    run = trace_only(_beside(reads(0), reads(4)), relations, kept)
    first = kept.rows[0][0][0][5]
    assert [((requests[0][5] - first) // 4096, after) for requests, _, _, after in kept.rows] == [(0, -1), (4, -1), (1, 0), (5, 1)]
    assert run.total().reads == 4
    assert [phase.name for phase in run.phases] == ["run", "strand 1: run", "strand 2: run"]


@with_each(
    "asked", [Sleep(NEVER), Sleep(1.5), Cpu({"hash": -1}), Cpu({"hash": NEVER}), Wait([Strand("stranger", 1, ended=True)])]  # type: ignore[arg-type]
)  # fmt: skip
def test_what_is_impossible_is_refused(asked: Any) -> None:
    def algorithm() -> Algorithm:
        yield Sleep(5)
        yield asked

    with pytest.raises(InvalidParameterError, match="whole number from 0|no such strand"):
        _run(algorithm())


def test_a_strand_that_asks_for_something_while_it_is_closed_does_not_hide_the_error() -> None:
    latch = Latch("index")

    def holding() -> Algorithm:
        yield Acquire(latch)
        try:
            yield Sleep(1000)
        finally:
            yield Release(latch)

    def failing() -> Algorithm:
        yield Spawn(holding())
        yield _read()
        yield _read(PAGES)

    with pytest.raises(InvalidParameterError, match="read: pages up to"):
        _run(failing())
