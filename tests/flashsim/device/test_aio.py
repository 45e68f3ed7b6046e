"""Requests outstanding at once, by Linux and by threads: bytes arrive where `pread` and `pwrite` put them, and failures are reported."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter_ns

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.request import FLUSH, READ, WRITE
from flashsim.core.units import SECONDS
from flashsim.device import aio
from flashsim.device.aio import KernelQueue, Queue, ThreadQueue, closed_loop, open_queue, wait_until
from flashsim.device.batch import Batch, aligned_buffer
from flashsim.device.file import RealDevice
from tests.tiers import examples
from tests.yardstick import seconds, slowness_now

SIZE = 1 << 18
BLOCK = 4096
QUEUES: list[Callable[[int], Queue]] = [KernelQueue, ThreadQueue]


@pytest.fixture(params=QUEUES, ids=lambda kind: kind.__name__, scope="module")
def opened(request: pytest.FixtureRequest) -> Iterator[Queue]:
    """A queue of each kind, eight requests deep."""
    try:
        made = request.param(8)
    except OSError as problem:
        pytest.skip(f"this system refuses asynchronous I/O: {problem.strerror}")
    yield made
    made.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    """A file of random bytes, opened past the page cache where the file system does that."""
    path = tmp_path / "file"
    path.write_bytes(np.random.default_rng(1).bytes(SIZE))
    try:
        number = os.open(path, os.O_RDWR | os.O_DIRECT)
    except OSError:
        number = os.open(path, os.O_RDWR)
    yield number
    os.close(number)


EXTENTS = st.lists(st.tuples(st.integers(0, SIZE // BLOCK - 4), st.integers(1, 4)), min_size=1, max_size=40)


@settings(max_examples=examples(25))
@given(blocks=st.permutations(range(SIZE // BLOCK)), cuts=st.sets(st.integers(1, 60)), depth=st.integers(1, 12), read=EXTENTS)
def test_what_is_written_is_what_pread_reads_and_reads_equal_pread(
    opened: Queue, tmp_path_factory: pytest.TempPathFactory, blocks: list[int], cuts: set[int], depth: int, read: list[tuple[int, int]]
) -> None:
    """Extents that do not overlap are written all over the file in any order, then any extents are read."""
    path = tmp_path_factory.getbasetemp() / "extents"
    path.write_bytes(bytes(SIZE))
    number = os.open(path, os.O_RDWR | os.O_DIRECT)
    try:
        starts = np.array([begin for begin, _ in pairwise([0, *sorted(cuts), SIZE // BLOCK])]) * BLOCK
        lengths = np.diff(np.append(starts, SIZE))
        order = np.argsort(np.array(blocks[: len(starts)]))
        data = aligned_buffer(SIZE)
        data[:] = np.random.default_rng(len(cuts)).integers(0, 256, SIZE)
        wrote = Batch(number, WRITE, starts[order], lengths[order], data, starts[order])
        closed_loop(opened, wrote, depth)
        assert wrote.check() == []
        assert path.read_bytes() == data.tobytes()
        offset, length = np.array(read).T * BLOCK
        got = aligned_buffer(int(length.sum()))
        begins = np.cumsum(length) - length
        closed_loop(opened, Batch(number, READ, offset, length, got, begins), depth)
        for begin, where, size in zip(begins.tolist(), offset.tolist(), length.tolist(), strict=True):
            assert got[begin : begin + size].tobytes() == data[where : where + size].tobytes()
    finally:
        os.close(number)


def test_times_are_in_order_and_no_more_is_outstanding_than_allowed(opened: Queue, file: int) -> None:
    buffer = aligned_buffer(BLOCK)
    for depth in (1, 3, 100):
        batch = Batch(file, READ, np.arange(60) * BLOCK, np.full(60, BLOCK), buffer)
        most = [0]
        closed_loop(opened, batch, depth, lambda batch=batch, most=most: most.append(batch.outstanding))
        submitted, completed = batch.times()
        assert (submitted < completed).all() and (np.diff(submitted) >= 0).all()
        at_once = [int(((submitted <= at) & (completed > at)).sum()) for at in submitted]
        assert max(at_once) <= min(depth, 8) and max(most) <= min(depth, 8)
        assert depth > 1 or (submitted[1:] >= completed[:-1]).all()


def test_requests_may_be_submitted_in_any_order(opened: Queue, file: int) -> None:
    batch = Batch(file, READ, np.arange(4) * BLOCK, np.full(4, BLOCK), aligned_buffer(BLOCK))
    for rows in ([2], [3, 0], [1]):
        batch.put_next(rows)
        assert batch.next_rows(len(rows)) == rows
        opened.submit(batch, len(rows))
        while batch.outstanding:
            opened.reap(batch, 1)
    submitted, completed = batch.times()
    assert completed[2] <= submitted[3] == submitted[0] and max(completed[3], completed[0]) <= submitted[1]


@pytest.mark.parametrize("depth", [1, 2], ids=["by calls", "by queue"])
def test_a_flush_is_a_request_among_others(opened: Queue, file: int, depth: int) -> None:
    buffer = aligned_buffer(BLOCK)
    operation = np.array([WRITE, FLUSH, READ])
    batch = Batch(file, operation, np.array([0, 77, BLOCK]), np.array([BLOCK, 5, BLOCK]), buffer)
    closed_loop(opened, batch, depth)
    assert batch.check() == [] and batch.describe(1) == "flush"


def test_waiting_ends_when_it_is_due(opened: Queue, file: int) -> None:
    batch = Batch(file, READ, np.zeros(1, np.int64), np.full(1, BLOCK), aligned_buffer(BLOCK))
    begin = perf_counter_ns()
    assert wait_until(opened, batch, begin + 3_000_000) == 0
    assert perf_counter_ns() >= begin + 3_000_000
    opened.submit(batch, 1)
    assert wait_until(opened, batch, perf_counter_ns() + round(seconds(60) * SECONDS)) == 1
    assert opened.reap(batch, 0, 0) == 0


@pytest.mark.parametrize("depth", [1, 2], ids=["by calls", "by queue"])
def test_a_read_that_ends_early_is_told(opened: Queue, file: int, depth: int) -> None:
    batch = Batch(file, READ, np.array([0, SIZE - BLOCK]), np.array([BLOCK, 2 * BLOCK]), aligned_buffer(2 * BLOCK))
    closed_loop(opened, batch, depth)
    assert batch.check() == [(1, BLOCK)]


@pytest.mark.parametrize("depth", [1, 2], ids=["by calls", "by queue"])
@pytest.mark.parametrize(
    "number, offset, problem",
    [(-1, 0, errno.EBADF), (None, 3, errno.EINVAL), (None, -BLOCK, errno.EINVAL)],
    ids=["no file", "not aligned", "before the begin"],
)
def test_errors_of_the_kernel_name_the_request(opened: Queue, file: int, number: int | None, offset: int, problem: int, depth: int) -> None:
    chosen = file if number is None else 10_000
    batch = Batch(chosen, READ, np.array([offset]), np.array([BLOCK]), aligned_buffer(BLOCK))
    with pytest.raises(OSError, match=f"{os.strerror(problem)}: read of 4 KiB at byte {offset}") as told:
        closed_loop(opened, batch, depth)
        batch.check()
    assert told.value.errno == problem


def test_an_error_leaves_nothing_outstanding_and_the_device_usable(tmp_path: Path) -> None:
    with RealDevice(tmp_path / "file", SIZE, allow_write=True) as device:
        buffer = aligned_buffer(BLOCK)
        offsets, lengths = np.arange(16) * BLOCK, np.full(16, BLOCK)
        device.write(offsets, aligned_buffer(16 * BLOCK), lengths)  # what was never written is not looked up, and nothing fails
        offsets[7] = 5
        with pytest.raises(FlashsimError, match=r"file: Invalid argument: read of 4 KiB at byte 5"):
            device.serve(device.prepare(READ, offsets, lengths, buffer), partial(closed_loop, depth=4))
        offsets[7] = 0
        submitted, completed = device.serve(device.prepare(READ, offsets, lengths, buffer), partial(closed_loop, depth=4))
        assert (completed > submitted).all()


def test_where_asynchronous_calls_are_refused_threads_serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as without:
        without.setattr(aio.platform, "machine", lambda: "pdp11")
        with pytest.raises(OSError, match=os.strerror(errno.ENOSYS)):
            KernelQueue(1)
        made = open_queue(3)
        assert isinstance(made, ThreadQueue)
        made.close()
        data = np.random.default_rng(3).integers(0, 256, SIZE, np.uint8)
        with RealDevice(tmp_path / "file", SIZE, allow_write=True) as device:
            places = np.arange(0, SIZE, BLOCK)
            device.write(places, data, np.full(len(places), BLOCK), batch=True)
            assert np.array_equal(
                device.read(places[::-1], np.full(len(places), BLOCK), batch=True)[0].reshape(-1, BLOCK)[::-1].ravel(), data
            )
    assert (tmp_path / "file").read_bytes() == data.tobytes()


def test_one_request_at_a_time_takes_a_plain_call_and_microseconds_more() -> None:
    """A file in memory takes no time of its own, so what is left is the loop's: beside bare calls in turns, and the best of each."""
    path, count = Path("/dev/shm", f"flashsim-{os.getpid()}"), 500
    if not path.parent.is_dir():
        pytest.skip("no file system in memory")
    path.write_bytes(bytes(4096 * count))
    memory = aligned_buffer(4096)
    offsets = np.arange(count) * 4096
    bare, ours = [], []
    file = os.open(path, os.O_RDONLY)
    try:
        for _ in range(10):
            times = np.zeros(count, np.int64)
            for row, offset in enumerate(offsets.tolist()):
                begin = perf_counter_ns()
                os.preadv(file, [memory], offset)
                times[row] = perf_counter_ns() - begin
            bare.append(float(np.median(times)))
            batch = Batch(file, np.full(count, READ), offsets, np.full(count, 4096), memory, np.zeros(count, np.int64))
            aio.one_by_one(batch)
            submitted, completed = batch.times()
            ours.append(float(np.median(completed - submitted)))
    finally:
        os.close(file)
        path.unlink()
    assert min(ours) < min(bare) + 3_000 * slowness_now()


def test_more_at_once_than_the_kernel_allows_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And as many as it allows are not, nor more than are usual, if they are announced."""
    limit = tmp_path / "aio-max-nr"
    monkeypatch.setattr(aio, "_LIMIT", limit)
    for allowed, count in ((8, 8), (8, 9), (4096, 1500)):
        limit.write_text(str(allowed + int(Path("/proc/sys/fs/aio-nr").read_text())))
        places, lengths, data = np.arange(count) * BLOCK, np.full(count, BLOCK), aligned_buffer(count * BLOCK)
        with RealDevice(tmp_path / f"{count}", 2048 * BLOCK, allow_write=True) as device:
            if count > allowed:
                with pytest.raises(InvalidParameterError, match=r"^outstanding level: 9, but it must be in .*, the kernel's limit"):
                    device.write(places, data, lengths, batch=True)
            else:
                completions = device.write(places, data, lengths, batch=True)
                assert completions["submitted"].max() <= completions["completed"].min()
