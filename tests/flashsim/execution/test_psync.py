"""Sets of requests handed over at once: what they cost, what they are answered with, and what is refused, in every driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from algorithms.hashing.buckets import partition
from algorithms.joins.base import JoinParameters, plan
from algorithms.joins.digest import DigestOptions
from algorithms.partitioning import base
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters
from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.units import MIB
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.execution import cpu
from flashsim.execution.drivers import run_strands, simulate, trace_only
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm, Cpu, Mode, NewPages, Psync, Read, Sleep, Work, Write, rewrite
from flashsim.execution.run import Run
from flashsim.storage.heap_file import File, HeapFile, heap_file
from flashsim.storage.rows import Tuples
from flashsim.storage.source.base import load_pair, open_source
from tests.cases import with_each
from tests.contract.drivers import run_on_file
from tests.flashsim.execution.strand_programs import Kept, station
from traces.file.recording import ParquetRecorder

CALL = 3000  # ns


@pytest.fixture(scope="module")
def files() -> list[HeapFile]:
    pair = load_pair(open_source("do2009:customer@0.003"), open_source("do2009:orders@0.003"), "c_custkey", "o_custkey")
    return [heap_file(relation, 4096) for relation in pair]


@pytest.fixture(scope="module")
def prices() -> cpu.CpuModel:
    return replace(cpu.load("pentium-d-2009"), per_call={"ssd": CALL, "hdd": CALL})


def _pages(file: File, *pages: int, mode: Mode = Mode.SERIAL) -> Read:
    return Read(file, np.array(pages), np.ones(len(pages), np.int64), mode)


def _copies(files: list[HeapFile], *, at_once: bool) -> Algorithm:
    """Pages of two files go to two temporary files and come back, each set at once or by one request after another."""
    tuples = []
    for read in (_pages(files[0], 3, 1, 7), _pages(files[1], 5, 9)):
        answered = yield Psync([read]) if at_once else read
        assert answered is not None
        tuples.append(answered[0] if isinstance(answered, tuple) else answered)
    copies = [File("first", files[0].layout), File("second", files[1].layout)]
    writes = []
    for copy, part in zip(copies, tuples, strict=True):
        assert isinstance(part, Tuples)
        yield Cpu({"hash": len(part)})
        writes.append(Write(copy, np.array([0]), np.array([len(part.pages) - 1]), part))
    reads = [_pages(copies[1], 1, 0), _pages(copies[0], 2), _pages(copies[1], 0)]
    found: list[Any] = []
    if at_once:
        yield Psync(writes)
        answered = yield Psync(reads)
        assert isinstance(answered, tuple)
        found = list(answered)
    else:
        yield from writes
        for read in reads:
            found.append((yield read))
    assert found[0].rows.tolist() == np.concatenate([_of_page(tuples[1], 1), _of_page(tuples[1], 0)]).tolist()
    assert found[1].rows.tolist() == _of_page(tuples[0], 2).tolist()
    assert found[2].rows.tolist() == _of_page(tuples[1], 0).tolist()


def _of_page(tuples: Any, page: int) -> Any:
    return tuples.rows[tuples.pages[page] : tuples.pages[page + 1]]


def _machine(prices: cpu.CpuModel | None, recorder: Any = None, drive: str = "intel-x25e-64gb", devices: int = 1) -> Machine:
    return Machine([Device.open(drive) for _ in range(devices)], prices, recorder)


def test_it_is_answered_with_the_tuples_of_each(files: list[HeapFile], tmp_path: Path) -> None:
    counts = []
    for at_once in (False, True):
        runs = [
            simulate(_copies(files, at_once=at_once), files, [_machine(None)])[0],
            run_strands(_copies(files, at_once=at_once), files, _machine(None)).strands[0],
            trace_only(_copies(files, at_once=at_once), files),
        ]
        with RealDevice(tmp_path / f"{at_once}", 32 * MIB, allow_write=True) as device:
            runs.append(run_on_file(_copies(files, at_once=at_once), files, device))
        counts += [(run.total().reads, run.total().writes, run.total().pages_read, run.total().pages_written) for run in runs]
    assert set(counts) == {(9, 2, 9, 5)}


@pytest.mark.parametrize("drive", ["intel-x25e-64gb", "toshiba-5400-320gb"])
@pytest.mark.parametrize("placement", ["packed", "two-disks"])
def test_the_serial_driver_does_what_the_concurrent_one_does(
    files: list[HeapFile], prices: cpu.CpuModel, drive: str, placement: str, tmp_path: Path
) -> None:
    """And leaves the same trace."""
    runs: list[Run] = []
    ends = []
    for name in ("serial", "concurrent"):
        with ParquetRecorder(tmp_path / name) as recorder:
            machine = _machine(prices, recorder, drive, 2 if placement == "two-disks" else 1)
            algorithm = _copies(files, at_once=True)
            if name == "serial":
                runs += simulate(algorithm, files, [machine], placement=placement)
            else:
                runs += run_strands(algorithm, files, machine, placement=placement).strands
        ends.append(machine.now)
    assert ends[0] == ends[1]
    for run in runs:  # a strand does not know the head's movements
        run.phases = [replace(phase, seeks=0, seek_time=0) for phase in run.phases]
    assert runs[0].as_dict() == runs[1].as_dict()
    trace = pq.read_table(tmp_path / "serial")
    assert trace.equals(pq.read_table(tmp_path / "concurrent"))
    assert trace["label"].to_pylist()[-6:] == ["first", "second", "second", "second", "first", "second"]
    waits = trace["dependency"].to_pylist()
    assert waits[:5] == [-1, -1, -1, waits[3], waits[3]] and len(set(waits[-4:])) == 1
    times = trace["arrival"].to_pylist()
    assert times[-1] == times[-4]


@pytest.mark.parametrize("run", [simulate, run_strands])
def test_a_set_of_one_request_costs_what_the_request_costs(run: Callable[..., Any], files: list[HeapFile], prices: cpu.CpuModel) -> None:
    def algorithm(alone: bool) -> Algorithm:
        for page in range(0, 40, 3):
            read = _pages(files[1], page)
            yield read if alone else Psync([read])
            yield Cpu({"hash": page})

    found = []
    for alone in (True, False):
        machine = _machine(prices, Kept())
        run(algorithm(alone), files, [machine] if run is simulate else machine)
        found.append((machine.now, machine.sink.rows))  # type: ignore[union-attr]
    assert found[0] == found[1]


@pytest.mark.parametrize("run", [simulate, run_strands])
def test_the_price_of_a_call_is_paid_once_a_set(run: Callable[..., Any], files: list[HeapFile], prices: cpu.CpuModel) -> None:
    def kernel_time(*requests: Any, prices: cpu.CpuModel) -> int:
        def algorithm() -> Algorithm:
            for request in requests:  # noqa: UP028 - a tuple takes no answers
                yield request

        machine = _machine(prices)
        ran = run(algorithm(), files, [machine] if run is simulate else machine)
        return int((ran[0] if run is simulate else ran).total().kernel_time)

    free = replace(prices, per_call={})
    reads = [_pages(files[0], 1, 2, 3), _pages(files[1], 4, 5)]
    together = kernel_time(Psync(reads), prices=free)
    assert together == kernel_time(*reads, prices=free)
    assert kernel_time(Psync(reads), prices=prices) == together + CALL
    assert kernel_time(*reads, prices=prices) == together + 5 * CALL
    assert kernel_time(*(replace(read, mode=Mode.BATCH) for read in reads), prices=prices) == together + 2 * CALL


@pytest.mark.parametrize("run", [simulate, run_strands])
def test_it_ends_with_the_last_of_all_devices(run: Callable[..., Any], files: list[HeapFile]) -> None:
    def algorithm() -> Algorithm:
        tuples = yield _pages(files[1], *range(5))
        assert isinstance(tuples, Tuples)
        copy = File("copy", files[1].layout)
        yield Write(copy, np.array([0]), np.array([5]), tuples)
        yield Psync([_pages(copy, 0, 1, 2, 3, 4), _pages(files[0], 1, 2)])

    machine = Machine([station(1, 1000), station(1, 1000)], sink=Kept())
    run(algorithm(), files, [machine] if run is simulate else machine, placement="two-disks")
    assert machine.now == 5000 + 1000 + 5000
    requests, times, labels, _ = machine.sink.rows[-1]  # type: ignore[union-attr]
    assert labels == ["copy"] * 5 + ["customer"] * 2
    assert [request[0] for request in requests] == [1] * 5 + [0] * 2
    assert [completed for _, _, completed in times] == [7000, 8000, 9000, 10000, 11000, 7000, 8000]


def test_a_set_takes_as_long_as_its_slowest_request_and_no_longer_than_all_one_after_another(files: list[HeapFile]) -> None:
    reads = [_pages(files[0], *range(9)), _pages(files[1], *range(0, 40, 4))]

    def time(*requests: Any) -> int:
        def algorithm() -> Algorithm:
            for request in requests:  # noqa: UP028 - a tuple takes no answers
                yield request

        machine = _machine(None)
        simulate(algorithm(), files, [machine])
        return machine.now

    together = time(Psync(reads))
    assert (
        max(time(_pages(files[0], 0)), time(_pages(files[1], 0))) <= together <= time(*(replace(each, mode=Mode.BATCH) for each in reads))
    )
    assert together < time(*reads) / 3


def test_a_real_device_is_handed_all_at_once(files: list[HeapFile], tmp_path: Path) -> None:
    with RealDevice(tmp_path / "disk", 32 * MIB, allow_write=True) as device, ParquetRecorder(tmp_path / "trace") as recorder:
        run_on_file(_copies(files, at_once=True), files, device, sink=recorder)
    trace = pq.read_table(tmp_path / "trace")
    assert trace["label"].to_pylist() == [*["customer"] * 3, *["orders"] * 2, "first", "second", "second", "second", "first", "second"]
    for rows in (range(3), range(3, 5), range(5, 7), range(7, 11)):
        part = trace.take(list(rows)).to_pydict()
        assert len(set(part["dependency"])) == 1
        assert max(part["arrival"]) <= min(part["completed"])  # none before all were handed over


@with_each(
    ("requests", "message"),
    [
        (lambda r, w: [], "psync: a set of no request, but a set has reads, or writes, and at least one"),
        (lambda r, w: [r, w], "psync: a set of read and write, but a set has reads, or writes"),
        (lambda r, w: [Sleep(5)], "psync: a set of sleep, but"),
        (lambda r, w: [Psync([r])], "psync: a set of psync, but"),
        (lambda r, w: [w, w], "psync: two writes of customer, but the extents of a file belong into one"),
        (lambda r, w: [r, _pages(r.file, r.file.pages)], "read: pages up to"),
        (lambda r, w: [replace(w, starts=np.array([1, 1]))], "write: a page of customer twice at once"),
    ],
)
def test_what_no_set_may_have_is_refused(requests: Any, message: str, files: list[HeapFile]) -> None:
    def algorithm() -> Algorithm:
        read = _pages(files[0], 1, 2)
        tuples = yield read
        assert isinstance(tuples, Tuples)
        yield Psync(requests(read, Write(files[0], np.array([1, 2]), np.array([1, 1]), tuples)))

    for run in (trace_only, lambda *given: simulate(*given, [_machine(None)])):
        with pytest.raises(InvalidParameterError, match=f"^{message}"):
            run(algorithm(), files)


def _each(request: Any) -> Any:
    """Every write of new pages by itself."""
    return Psync([*request.requests]) if isinstance(request, NewPages) else request


@pytest.mark.parametrize("page_io", [False, True])
@pytest.mark.parametrize("placement", ["packed", "ext3"])
@pytest.mark.parametrize("output", [1, 5])
@pytest.mark.parametrize("method, priced", [("n-hash", False), ("n-hash", True), ("traditional", False), ("traditional", True)])
def test_new_pages_together_are_what_their_writes_are(
    files: list[HeapFile],
    prices: cpu.CpuModel,
    page_io: bool,
    placement: str,
    output: int,
    method: str,
    priced: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same requests, costs, places and tuples, whether or not a driver makes each read and write."""
    monkeypatch.setattr(base, "AHEAD", 24)  # there are several previews, and blocks go on from one to the next
    prices = replace(prices, user={**prices.user, Work.PAGE: 438.0 * priced})
    runs, read = [], []
    for name, each in (("together", False), ("each", True)):
        buckets = [File(f"bucket-{number}", files[1].layout) for number in range(7)]

        def algorithm(buckets: list[File] = buckets, each: bool = each) -> Algorithm:
            buffers, parameters = PartitionBuffers(8, output, 7), PartitionParameters(method, page_io=page_io, in_series=not each)
            yield from partition(files[1], buckets, 0, buffers, parameters)
            for bucket in reversed(buckets):
                answered = yield Read(bucket, np.array([0]), np.array([bucket.pages]))
                assert isinstance(answered, Tuples)
                read.append((bucket.tuples, answered.rows.tolist(), answered.pages.tolist()))

        with ParquetRecorder(tmp_path / name) as recorder:
            machine = _machine(prices, recorder)
            runs += simulate(rewrite(algorithm(), _each) if each else algorithm(), files, [machine], placement=placement)
    assert vars(runs[0].total()) == vars(runs[1].total()) and read[:7] == read[7:]
    assert pq.read_table(tmp_path / "together").equals(pq.read_table(tmp_path / "each"))


class _CountsSeeks(Device):
    """A drive each of whose phases is served by itself, so that seeks, of which there are none, are counted by phase."""

    def statistics(self) -> dict[str, Any]:
        return super().statistics() | {"seeks": 0, "seek_time": 0}


@pytest.mark.parametrize("placement", ["packed", "two-disks"])
@pytest.mark.parametrize("fetch", ["naive", "page-based", "graph-based"])
@pytest.mark.parametrize("priced", [False, True])
def test_reads_in_series_are_what_they_are_one_by_one(
    files: list[HeapFile], prices: cpu.CpuModel, fetch: str, priced: bool, placement: str, tmp_path: Path
) -> None:
    """The same requests, rows and costs of every phase, and also where a phase's requests are served apart from the next one's."""
    prices = replace(prices, user={**prices.user, Work.PAGE: 438.0 * priced})
    runs, rows = [], list[list[int]]()
    for in_series in (True, False):
        rows.append([])

        def take(*columns: Any, into: list[int] = rows[-1]) -> None:
            into += np.stack(columns).T.reshape(-1).tolist()

        parameters = JoinParameters(12, True, options=DigestOptions(first="external-sort-merge", fetch=fetch), in_series=in_series)
        with ParquetRecorder(tmp_path / str(in_series)) as recorder:
            kind = Device if in_series else _CountsSeeks
            devices = [kind(presets.load("mtron-msd-sata3025-16gb")) for _ in range(1 + (placement == "two-disks"))]
            machine = Machine(devices, prices, recorder)
            runs += simulate(plan("digest", files[0], files[1], parameters), files, [machine], placement=placement, results=take)
    assert runs[0].as_dict() == runs[1].as_dict() and rows[0] == rows[1] and rows[0]
    traces = [pq.read_table(tmp_path / str(in_series)) for in_series in (True, False)]
    names = ["offset", "length", "label"] if priced else traces[0].column_names  # a read of several pages is paid before the first
    assert traces[0].select(names).equals(traces[1].select(names))


def test_new_pages_that_overfill_are_refused_as_their_writes_are(files: list[HeapFile]) -> None:
    copies, one = [File("first", files[0].layout), File("second", files[0].layout)], np.ones(2, np.int64)
    tuples = Tuples(dict(zip(files[0].layout.row_format.columns, [np.arange(400)] * 2, strict=False)), np.array([0, 3, 400]))

    def algorithm(files: list[File], counts: list[int]) -> Algorithm:
        yield NewPages(files, one, np.array(counts), one, tuples)

    with pytest.raises(CapacityError, match="of tuples on a page of second"):
        simulate(algorithm([*copies], [3, 397]), files, [_machine(None)])
    with pytest.raises(InvalidParameterError, match="two writes of first"):
        simulate(algorithm([copies[0], copies[0]], [3, 397]), files, [_machine(None)])
