"""Strands on a real file: threads that wait for each other, hold latches, and end together."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from algorithms.files import parallel_scan
from flashsim.core.errors import DeadlockError, InvalidParameterError
from flashsim.core.units import NEVER, SECONDS
from flashsim.device.file import RealDevice
from flashsim.execution.drivers import needed_size
from flashsim.execution.requests import Acquire, Algorithm, Cpu, Latch, Phase, Read, Release, Sleep, Spawn, Strand, Wait
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.rows import Tuples
from flashsim.storage.source.base import load_pair, open_source
from tests.contract.drivers import run_on_file
from tests.flashsim.execution.strand_programs import Kept
from tests.yardstick import seconds
from traces.file.recording import ParquetRecorder

#: A strand that waits for others to have begun sleeps so long again and again.
SLEEP = 5_000_000


@pytest.fixture(scope="module")
def file() -> HeapFile:
    pair = load_pair(open_source("do2009:customer@0.003"), open_source("do2009:orders@0.003"), "c_custkey", "o_custkey")
    return heap_file(pair[0], 4096)


@pytest.fixture
def device(file: HeapFile, tmp_path: Path) -> Iterator[RealDevice]:
    with RealDevice(tmp_path / "device", needed_size([file]), allow_write=True, replace=True) as device:
        yield device


def _spawn(*algorithms: Algorithm) -> Algorithm:
    begun = []
    for algorithm in algorithms:
        strand = yield Spawn(algorithm)
        assert isinstance(strand, Strand)
        begun.append(strand)
    yield Wait(begun)


def _until(condition: Callable[[], object]) -> Algorithm:
    while not condition():
        yield Sleep(SLEEP)


def _holds(latches: list[Latch], file: HeapFile, device: RealDevice) -> list[tuple[int, int]]:
    """When each of some strands held its latch, in which it slept until each latch had been held; in order."""
    held: list[tuple[int, int]] = []
    in_use: set[Latch] = set()

    def strand(latch: Latch) -> Algorithm:
        yield Acquire(latch)
        begin = time.perf_counter_ns()
        in_use.add(latch)
        yield Sleep(SLEEP)
        yield from _until(lambda: in_use == {*latches})
        held.append((begin, time.perf_counter_ns()))
        yield Release(latch)

    run = run_on_file(_spawn(*map(strand, latches)), [file], device)
    assert all(phase.wait_time >= SLEEP for phase in run.phases[1:])
    return sorted(held)


def test_strands_sleep_at_once_and_hold_a_latch_one_by_one(file: HeapFile, device: RealDevice) -> None:
    apart = _holds([Latch(str(number)) for number in range(4)], file, device)
    assert all(begin < end for (_, end), (begin, _) in pairwise(apart))
    together = _holds([Latch("one")] * 4, file, device)
    assert all(begin > end for (_, end), (begin, _) in pairwise(together))


def test_a_deadlock_is_reported_and_ends_all_threads(file: HeapFile, device: RealDevice) -> None:
    one, two = Latch("one"), Latch("two")
    held: set[Latch] = set()

    def crossing(first: Latch, second: Latch) -> Algorithm:
        yield Acquire(first)
        held.add(first)
        yield from _until(lambda: len(held) == 2)
        yield Acquire(second)

    with pytest.raises(DeadlockError) as error:
        run_on_file(_spawn(crossing(one, two), crossing(two, one)), [file], device)
    for told in ("main waits for strand 1", "strand 1 waits for latch two, which strand 2 holds", "strand 2 waits for latch one"):
        assert told in str(error.value)


def test_a_strand_that_fails_ends_all_with_its_error(file: HeapFile, device: RealDevice) -> None:
    starts, closed = [], []

    def failing() -> Algorithm:
        yield from _until(lambda: starts)
        yield Release(Latch("index"))

    def endless() -> Algorithm:
        starts.append(True)
        try:
            while True:
                yield Read(file, np.array([0]), np.array([1]))
        finally:
            closed.append(True)

    with pytest.raises(InvalidParameterError, match="release: index, but strand 2 does not hold"):
        run_on_file(_spawn(endless(), failing()), [file], device)
    assert closed == [True]


def test_phases_and_times_are_those_of_each_strand(file: HeapFile, device: RealDevice) -> None:
    def named(name: str) -> Algorithm:
        yield Phase(name)
        yield Read(file, np.array([0, 1]), np.array([1, 1]))

    run = run_on_file(_spawn(named("left"), named("right")), [file], device)
    assert [phase.name for phase in run.phases] == ["run", "strand 1: left", "strand 2: right"]
    assert [phase.reads for phase in run.phases] == [0, 2, 2]
    assert all(phase.io_time > 0 for phase in run.phases[1:])


def test_a_trace_tells_what_each_request_waited_for(file: HeapFile, device: RealDevice, tmp_path: Path) -> None:
    def nothing(tuples: Tuples) -> Algorithm:
        yield Cpu({})

    with ParquetRecorder(tmp_path / "trace") as recorder:
        run_on_file(parallel_scan(file, nothing, 1, 3), [file], device, sink=recorder)
    rows = pq.read_table(tmp_path / "trace").to_pylist()
    assert len(rows) == file.pages
    part = {row["id"]: row["offset"] // 4096 for row in rows}
    first = min(part.values())
    begins = {first + file.pages * strand // 3 for strand in range(3)}
    for row in rows:
        page = part[row["id"]]
        assert row["dependency"] == (-1 if page in begins else next(id for id, other in part.items() if other == page - 1))
        if row["dependency"] >= 0:
            assert row["arrival"] == rows[row["dependency"]]["completed"] + row["think"]


def test_a_serial_algorithm_is_recorded_as_before(file: HeapFile, device: RealDevice) -> None:
    def reads() -> Algorithm:
        yield Read(file, np.array([0, 2]), np.array([1, 1]))
        yield Read(file, np.array([4]), np.array([1]))

    kept = Kept()
    run_on_file(reads(), [file], device, sink=kept)
    assert [([row[8] for row in requests], after) for requests, _, _, after in kept.rows] == [([-1, 0], -1), ([-1], 1)]


def test_a_strand_that_asks_for_something_while_it_is_closed_does_not_hide_the_error(file: HeapFile, device: RealDevice) -> None:
    latch = Latch("index")

    def holding() -> Algorithm:
        yield Acquire(latch)
        try:
            yield Sleep(SLEEP)
            yield Read(file, np.array([file.pages]), np.array([1]))
        finally:
            yield Release(latch)

    with pytest.raises(InvalidParameterError, match="read: pages up to"):
        run_on_file(_spawn(holding(), holding()), [file], device)


def _calls(name: str) -> set[str]:
    """Names of the functions that a thread is in."""
    frames = sys._current_frames()
    stacks = [frames[thread.ident] for thread in threading.enumerate() if thread.name == name and thread.ident in frames]
    return {frame.f_code.co_name for stack in stacks for frame, _ in traceback.walk_stack(stack)}


@pytest.mark.parametrize("busy", [False, True])
def test_an_interrupt_leaves_no_thread_behind(busy: bool, file: HeapFile, device: RealDevice) -> None:
    run_on_file(
        (Read(file, np.array([0]), np.array([1])) for _ in range(1)), [file], device
    )  # nothing is compiled when the interrupt comes

    def endless() -> Algorithm:
        while True:
            yield Read(file, np.array([0]), np.array([1])) if busy else Sleep(10**6 * SECONDS)

    def begins() -> Algorithm:
        yield Spawn(endless())

    def interrupt() -> None:
        """Once the first strand waits for the other to end, which reads or sleeps."""
        try:
            while "wait_for" not in _calls("MainThread") or ("_read" if busy else "wait") not in _calls("strand 1"):
                if over.wait(0.005) or time.monotonic() > begin + seconds(60):
                    break
        finally:  # also if the stacks of threads that run cannot be read
            if not over.is_set():
                signal.pthread_kill(main, signal.SIGINT)

    main, over, begin = threading.get_ident(), threading.Event(), time.monotonic()
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_on_file(begins(), [file], device)
    finally:
        over.set()
        interrupter.join()
    assert "strand 1" not in [thread.name for thread in threading.enumerate()]
    assert time.monotonic() - begin < seconds(120)


@pytest.mark.parametrize("asked", [Sleep(-1), Sleep(NEVER), Wait([Strand("stranger", 1, ended=True)])])
def test_what_is_impossible_is_refused(asked: Sleep | Wait, file: HeapFile, device: RealDevice) -> None:
    def algorithm() -> Algorithm:
        yield asked

    with pytest.raises(InvalidParameterError, match="whole number from 0|no such strand"):
        run_on_file(algorithm(), [file], device)
