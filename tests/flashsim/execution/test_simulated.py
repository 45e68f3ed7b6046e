"""The driver in virtual time: what time passes, where pages go, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.request import OPERATIONS, Completions, Requests
from flashsim.core.units import KIB
from flashsim.device.device import Device
from flashsim.execution import cpu
from flashsim.execution.drivers import simulate, trace_only
from flashsim.execution.file_access import METADATA
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm, Cpu, Drop, Emit, Flush, Mode, Phase, Read, Work, Write
from flashsim.experiments.runs.joining import JoinSetting, lay_out, open_pair, simulate_join
from flashsim.storage.attributes import Attribute
from flashsim.storage.heap_file import File, HeapFile, heap_file
from flashsim.storage.placement import PLACEMENTS
from flashsim.storage.relation import Relation
from flashsim.storage.rows import Tuples, key_tuples
from tests.cases import with_each

PAGE = 8 * KIB


class _Records:
    def record_sizes(self) -> int:
        return 100

    def attributes(self) -> tuple[Attribute, ...]:
        return Attribute("key", pa.int64(), 8), Attribute("padding", pa.large_binary(), 90)


@pytest.fixture
def file() -> HeapFile:
    return heap_file(Relation("orders", "key", np.arange(50_000), _Records()), PAGE)  # type: ignore[arg-type]


class _Kept:
    def __init__(self) -> None:
        self.operations: list[tuple[str, str, int]] = []
        self.completed: list[int] = []

    def record(self, requests: Requests, completions: Completions | None, label: str, after: int | None = None) -> None:
        self.operations += [(OPERATIONS[row["operation"]], label, int(row["device"])) for row in requests]
        if completions is not None:
            self.completed += completions["completed"].tolist()

    def close(self) -> None:
        """Nothing to do."""


def _scan(file: HeapFile, pages: int, mode: Mode = Mode.SERIAL) -> Algorithm:
    starts = np.arange(0, file.pages, pages)
    yield Phase("scan")
    yield Read(file, starts, np.minimum(pages, file.pages - starts), mode)


def _spill(file: HeapFile) -> Algorithm:
    """Copy the first pages to a temporary file, read it back, and drop it."""
    temporary = File("spill", file.layout)
    yield Phase("write")
    tuples = yield Read(file, np.array([0]), np.array([10]))
    assert isinstance(tuples, Tuples)
    yield Cpu({Work.WRITE_TUPLE: len(tuples)})
    yield Write(temporary, np.array([0, 5]), np.array([5, 5]), tuples)
    yield Flush(temporary)
    yield Phase("read")
    again = yield Read(temporary, np.array([0]), np.array([10]))
    assert isinstance(again, Tuples)
    assert np.array_equal(again.rows, tuples.rows) and np.array_equal(again.keys, tuples.keys)
    yield Emit(again.rows, again.rows)
    yield Drop(temporary)


def _time(algorithm: Algorithm, file: HeapFile, drive: str = "ocz-core-60gb", prices: cpu.CpuModel | None = None) -> int:
    machine = Machine([Device.open(drive)], prices)
    simulate(algorithm, [file], [machine])
    return machine.now


def test_synchronous_pages_take_a_latency_each(file: HeapFile) -> None:
    """The first that of a command anywhere, the others that of one that goes on."""
    elapsed = _time(_scan(file, 1), file)
    assert elapsed == pytest.approx(0.24e6 + file.pages * (0.11e6 + PAGE / 0.12), rel=1e-4)


def test_larger_blocks_take_less_time_on_both_drives(file: HeapFile) -> None:
    for drive in ("ocz-core-60gb", "toshiba-5400-320gb"):
        times = [_time(_scan(file, pages), file, drive) for pages in (1, 4, 64)]
        assert times == sorted(times, reverse=True)


def test_kernel_time_passes_between_synchronous_requests(file: HeapFile) -> None:
    prices = cpu.load("pentium-d-2009")
    machine = Machine([Device.open("ocz-core-60gb")], prices)
    (run,) = simulate(_scan(file, 1), [file], [machine])
    total = run.total()
    assert total.kernel_time == file.pages * prices.kernel_times("ssd", np.array([PAGE]), np.array([1]))[0]
    assert total.io_time == _time(_scan(file, 1), file)  # flash does not mind when a request comes
    assert total.work == {Work.PAGE: file.pages}
    assert total.user_time == round(file.pages * prices.user[Work.PAGE])
    assert machine.now == total.io_time + total.kernel_time + total.user_time


def test_a_batch_is_no_slower_than_one_after_another(file: HeapFile) -> None:
    for drive in ("ocz-core-60gb", "toshiba-5400-320gb"):
        assert _time(_scan(file, 1, Mode.BATCH), file, drive) <= _time(_scan(file, 1), file, drive)


@with_each("placement", PLACEMENTS.names())
def test_spilled_pages_come_back_from_where_they_were_put(file: HeapFile, placement: str) -> None:
    drives = PLACEMENTS.load(placement).DEVICE_MAP.devices
    kept, results, prices = _Kept(), [], cpu.load("pentium-d-2009")
    machine = Machine([Device.open("ocz-core-60gb") for _ in range(drives)], prices, kept)
    (run,) = simulate(_spill(file), [file], [machine], placement=placement, results=lambda r, s: results.append((r, s)), trim=True)
    last = drives - 1
    labels = [("read", "orders", 0), ("write", "spill", last), ("write", "spill", last), ("flush", "spill", last), ("read", "spill", last)]
    assert [each for each in kept.operations if each[1] != METADATA] == [*labels, ("trim", "spill", last)]
    assert (("write", METADATA, 0) in kept.operations) == placement.startswith("ext3")
    assert kept.completed == sorted(kept.completed)
    assert [(phase.name, phase.reads, phase.writes, phase.pages) for phase in run.phases] == [("write", 1, 2, 20), ("read", 1, 0, 10)]
    assert run.result_rows == len(results[0][0]) > 0
    work = {Work.WRITE_TUPLE: run.result_rows, Work.PAGE: 20}
    assert run.phases[0].work == work
    assert run.phases[0].user_time == pytest.approx(prices.user_time(work), abs=3)  # rounded three times
    assert machine.now == run.total().total_time


def test_without_a_machine_nothing_is_timed(file: HeapFile) -> None:
    kept = _Kept()
    run = trace_only(_spill(file), [file], kept)
    assert len(kept.operations) == 5 and kept.completed == []
    assert run.total().total_time == 0 and run.total().pages == 30


def _longer_relation(file: HeapFile) -> Algorithm:
    tuples = yield Read(file, np.array([0]), np.array([1]))
    assert isinstance(tuples, Tuples)
    yield Write(file, np.array([file.pages]), np.array([1]), tuples)


def _half_new(file: HeapFile) -> Algorithm:
    tuples = yield Read(file, np.array([0, 0]), np.array([2, 1]))
    assert isinstance(tuples, Tuples)
    yield Write(File("t", file.layout), np.array([0, 1]), np.array([2, 2]), tuples)


def _twice_at_once(file: HeapFile) -> Algorithm:
    tuples = yield Read(file, np.array([0, 0]), np.array([2, 1]))
    assert isinstance(tuples, Tuples)
    yield Write(file, np.array([0, 1]), np.array([2, 1]), tuples, Mode.BATCH)


def _other_columns(file: HeapFile) -> Algorithm:
    yield Write(File("t", file.layout), np.array([0]), np.array([1]), Tuples({"row": np.arange(2)}, np.array([0, 2])))


def _falling(file: HeapFile) -> Algorithm:
    yield Write(File("t", file.layout), np.array([0]), np.array([2]), key_tuples(np.arange(2), np.arange(2), np.array([0, 3, 2])))


def _no_sector(file: HeapFile) -> Algorithm:
    yield Read(file, np.array([0]), np.array([1]), parts=((256, 512),), columns=())


def _no_part(file: HeapFile) -> Algorithm:
    yield Read(file, np.array([0]), np.array([1]), parts=(), columns=())


def _over_the_edge(file: HeapFile) -> Algorithm:
    yield Read(file, np.array([0]), np.array([1]), parts=((PAGE - 512, 1024),), columns=())


def _no_such_column(file: HeapFile) -> Algorithm:
    yield Read(file, np.array([0]), np.array([1]), columns=("s_row",))


def _tuples_of_a_part(file: HeapFile) -> Algorithm:
    yield Read(file, np.array([0]), np.array([1]), parts=((0, 512),))


def _unwritten(file: HeapFile) -> Algorithm:
    yield Read(File("t", file.layout), np.array([0]), np.array([1]))


def _gap(file: HeapFile) -> Algorithm:
    tuples = yield Read(file, np.array([0]), np.array([1]))
    assert isinstance(tuples, Tuples)
    yield Write(File("t", file.layout), np.array([1]), np.array([1]), tuples)


def _short(file: HeapFile) -> Algorithm:
    tuples = yield Read(file, np.array([0]), np.array([1]))
    assert isinstance(tuples, Tuples)
    yield Write(File("t", file.layout), np.array([0]), np.array([2]), tuples)


def _beyond(file: HeapFile) -> Algorithm:
    yield Read(file, np.array([file.pages]), np.array([1]))


@with_each(
    "algorithm",
    [_longer_relation, _half_new, _twice_at_once, _other_columns, _falling, _gap, _short]
    + [_beyond, _unwritten, _no_sector, _no_part, _over_the_edge, _no_such_column, _tuples_of_a_part],
)
def test_an_algorithm_that_breaks_the_rules_is_stopped(file: HeapFile, algorithm: Callable[[HeapFile], Algorithm]) -> None:
    with pytest.raises(InvalidParameterError, match=r"^(read|write): .*"):
        trace_only(algorithm(file), [file])


@with_each("placement", PLACEMENTS.names())
def test_a_file_that_nobody_wrote_is_flushed_where_it_would_be(file: HeapFile, placement: str) -> None:
    def flush() -> Algorithm:
        yield Flush(File("t", file.layout))
        yield Flush(file)

    kept = _Kept()
    trace_only(flush(), [file], kept, placement=placement)
    flushed = [(label, device) for operation, label, device in kept.operations if operation == "flush"]
    assert flushed == [("t", int(placement == "two-disks")), ("orders", 0)]


def test_a_page_that_is_too_full_is_not_written(file: HeapFile) -> None:
    def crowded() -> Algorithm:
        tuples = yield Read(file, np.array([0]), np.array([2]))
        assert isinstance(tuples, Tuples)
        yield Write(File("t", file.layout), np.array([0]), np.array([1]), replace(tuples, pages=np.array([0, len(tuples)])))

    with pytest.raises(CapacityError, match="on a page of t, which holds 8184 B"):
        trace_only(crowded(), [file])


def test_a_relation_larger_than_the_drive_is_refused(file: HeapFile) -> None:
    file.pages = 60 * 10**9 // PAGE
    with pytest.raises(CapacityError, match="orders"):
        simulate(_scan(file, 64), [file], [Machine([Device.open("ocz-core-60gb")])])


def test_a_write_buffer_that_empties_on_does_not_hold_the_next_request_up() -> None:
    """Without CPU work the next request comes before the buffer of this drive is empty."""
    relations = open_pair("do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey")
    files = (lay_out(relations[0], 8192), lay_out(relations[1], 8192))
    run = simulate_join(JoinSetting("sort-merge", 32, cpu=None), files, ["intel-x25e-64gb"]).runs[0]
    assert run.total().io_time == run.total().total_time > 0
