"""Reads and writes of one file: many outstanding at once by Linux asynchronous I/O, or by threads where it is refused; one by plain calls.

A `Batch` holds requests in the form in which the kernel takes them.  A queue submits the next few of them and reaps those that have
completed; each costs one system call, whatever the number of requests, and nothing is done request by request.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import queue
import struct
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from time import perf_counter_ns, sleep
from typing import Protocol

import numpy as np
import numpy.typing as npt

from flashsim.core.request import FLUSH, OPERATIONS, READ, Integers
from flashsim.core.units import SECONDS, format_size

#: Numbers of io_setup, io_destroy, io_getevents and io_submit (Linux: arch/*/*/syscalls/syscall*.tbl and scripts/syscall.tbl).
_COMMON = (0, 1, 4, 2)
_CALLS = {
    "x86_64": (206, 207, 208, 209),
    "ppc64le": (227, 228, 229, 230),
    "s390x": (243, 244, 245, 246),
    "aarch64": _COMMON,
    "loongarch64": _COMMON,
    "riscv64": _COMMON,
}

#: ``struct iocb`` and ``struct io_event`` (include/uapi/linux/aio_abi.h).
_COMMAND = np.dtype(
    [
        ("data", np.uint64),
        ("key", np.uint32),
        ("rw_flags", np.uint32),
        ("opcode", np.uint16),
        ("priority", np.int16),
        ("file", np.uint32),
        ("buffer", np.uint64),
        ("bytes", np.uint64),
        ("offset", np.int64),
        ("reserved", np.uint64),
        ("flags", np.uint32),
        ("notify", np.uint32),
    ]
)
_EVENT = np.dtype([("data", np.uint64), ("command", np.uint64), ("result", np.int64), ("second", np.int64)])
#: IOCB_CMD_PREAD, IOCB_CMD_PWRITE and IOCB_CMD_FDSYNC, by operation; trims have none.
_OPCODES = np.array([0, 1, 0, 3], np.uint16)

#: Requests of one submission at most, so that none of those that complete in the meantime waits long for its time to be taken.
AT_ONCE = 64
#: Threads that stand in for the kernel's queue at most.
_MOST_THREADS = 64


class Batch:
    """Requests of one file, in the order of their submission, and when each was submitted and had completed.

    Parameters
    ----------
    file
        A file descriptor.
    operation, offset, length
        READ, WRITE or FLUSH; bytes; bytes, shape (n,).
    memory
        Where their bytes are; aligned, if the file is opened with O_DIRECT.
    places
        Where in it those of each request begin, shape (n,), or those of all.
    """

    def __init__(
        self,
        file: int,
        operation: int | Integers,
        offset: Integers,
        length: Integers,
        memory: npt.NDArray[np.uint8],
        places: int | Integers = 0,
    ) -> None:
        count = len(offset)
        self.file, self.submitted, self.completed = file, 0, 0
        self.operation = np.broadcast_to(np.asarray(operation), count)
        self.commands, self.events = np.zeros(count, _COMMAND), np.zeros(count, _EVENT)
        moves = self.operation != FLUSH
        self.commands["data"], self.commands["file"] = np.arange(count), file
        self.commands["opcode"] = _OPCODES[self.operation]
        self.commands["buffer"] = np.where(moves, memory.ctypes.data + np.asarray(places), 0)
        self.commands["bytes"], self.commands["offset"] = np.where(moves, length, 0), np.where(moves, offset, 0)
        self._memory = memory  # not to be freed while the kernel uses it
        self._base = self.commands.ctypes.data
        self._order = self._base + np.arange(count, dtype=np.uint64) * np.uint64(_COMMAND.itemsize)
        self._order_at, self._events_at = self._order.ctypes.data, self.events.ctypes.data
        self._submissions: list[tuple[int, int]] = []  # how many, and when
        self._completions: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self.commands)

    @property
    def outstanding(self) -> int:
        """How many were submitted and have not completed."""
        return self.submitted - self.completed

    @property
    def next_command(self) -> int:
        """The address of the pointers to the commands that are submitted next."""
        return self._order_at + 8 * self.submitted

    @property
    def next_event(self) -> int:
        """The address where the next event goes."""
        return self._events_at + _EVENT.itemsize * self.completed

    def put_next(self, rows: Sequence[int]) -> None:
        """Make these requests the next ones to be submitted; without it they go in the order in which they were given."""
        order = np.asarray(rows, np.uint64) * np.uint64(_COMMAND.itemsize) + np.uint64(self._base)
        self._order[self.submitted : self.submitted + len(rows)] = order

    def next_rows(self, count: int) -> list[int]:
        """The next requests to be submitted."""
        chosen = self._order[self.submitted : self.submitted + count]
        rows: list[int] = ((chosen - np.uint64(self._base)) // np.uint64(_COMMAND.itemsize)).tolist()
        return rows

    def completions_since(self, count: int) -> list[tuple[int, int]]:
        """The requests that have completed after the first `count`, and when."""
        rows = self.events["data"][count : self.completed].tolist()
        times: list[int] = []
        for many, at in reversed(self._completions):
            if len(times) >= len(rows):
                break
            times += [at] * many
        return list(zip(rows, reversed(times[: len(rows)]), strict=True))

    def were_submitted(self, count: int, at: int) -> None:
        """Note that so many more were submitted."""
        self._submissions.append((count, at))
        self.submitted += count

    def have_completed(self, count: int, at: int) -> None:
        """Note that so many more have completed; their events are in place."""
        self._completions.append((count, at))
        self.completed += count

    def times(self) -> tuple[Integers, Integers]:
        """When each was submitted and had completed, ns of `time.perf_counter_ns`, shape (n,), once all have."""
        rows = ((self._order - np.uint64(self._base)) // np.uint64(_COMMAND.itemsize)).astype(np.int64)
        return _by_row(rows, self._submissions), _by_row(self.events["data"].astype(np.int64), self._completions)

    def check(self) -> list[tuple[int, int]]:
        """The rows of requests that moved fewer bytes than they should, and how many.

        Raises
        ------
        OSError
            The first one that failed; the text says what it was.
        """
        done = self.events[: self.completed]
        failed = done["data"][done["result"] < 0]
        if len(failed):
            row = int(failed.min())
            number = -int(done["result"][done["data"] == row][0])
            raise OSError(number, f"{os.strerror(number)}: {self.describe(row)}")
        short = done[done["result"].astype(np.uint64) < self.commands["bytes"][done["data"].astype(np.int64)]]
        return [(int(row), int(moved)) for row, moved in zip(short["data"], short["result"], strict=True)]

    @cached_property
    def memories(self) -> list[memoryview]:
        """Where the bytes of each request are."""
        whole, base = self._memory.data, self._memory.ctypes.data
        begins, sizes = self.commands["buffer"].astype(np.int64) - base, self.commands["bytes"].astype(np.int64)
        return [whole[begin : begin + size] for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True)]

    def describe(self, row: int) -> str:
        """A request in words."""
        command = self.commands[row]
        name = OPERATIONS[int(self.operation[row])]
        return name if name == "flush" else f"{name} of {format_size(int(command['bytes']))} at byte {command['offset']}"


def _by_row(rows: Integers, stamps: list[tuple[int, int]]) -> Integers:
    times = np.zeros(len(rows), np.int64)
    counts, at = np.array(stamps, np.int64).reshape(-1, 2).T
    times[rows] = np.repeat(at, counts)
    return times


class Queue(Protocol):
    """Requests outstanding at a file.

    After an error, or when a batch is given up, the queue must be closed: then nothing is outstanding any more.
    """

    TITLE: str
    depth: int

    def submit(self, batch: Batch, count: int) -> None:
        """Submit the next `count` requests, or some of them; at most `depth` may be outstanding.

        Raises
        ------
        OSError
            The first of them is refused.
        """

    def reap(self, batch: Batch, least: int, timeout: int | None = None) -> int:
        """Wait until `least` have completed, or for `timeout` ns; return how many did.  Signals end the wait."""

    def close(self) -> None:
        """Wait for what is outstanding, and free what the queue holds."""


class KernelQueue:
    """Linux asynchronous I/O: it overlaps requests of files opened with O_DIRECT; others are served one by one while they are submitted.

    Parameters
    ----------
    depth
        How many requests may be outstanding.

    Raises
    ------
    OSError
        This system has no such calls, refuses them, or has no more room for queues.
    """

    TITLE = "Linux asynchronous I/O"

    def __init__(self, depth: int) -> None:
        self.depth = depth
        if sys.platform != "linux" or platform.machine() not in _CALLS or struct.calcsize("P") != 8:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        setup, self._destroy_call, self._reap_call, self._submit_call = _CALLS[platform.machine()]
        self._call = _system_call()
        context = ctypes.c_ulong(0)
        if self._call(setup, depth, ctypes.addressof(context), 0, 0, 0) < 0:
            raise _failure()
        self._context: int | None = context.value
        self._patience = (ctypes.c_long * 2)()
        self._patience_at = ctypes.addressof(self._patience)

    def submit(self, batch: Batch, count: int) -> None:
        """See `Queue.submit`."""
        at = perf_counter_ns()
        done = self._call(self._submit_call, self._context, count, batch.next_command, 0, 0)
        if done >= 0:
            batch.were_submitted(done, at)
        elif ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR) or not batch.outstanding:
            problem = _failure()
            raise OSError(problem.errno, f"{problem.strerror}: {batch.describe(batch.next_rows(1)[0])}")

    def reap(self, batch: Batch, least: int, timeout: int | None = None) -> int:
        """See `Queue.reap`."""
        patience = 0
        if timeout is not None:
            self._patience[0], self._patience[1] = divmod(max(timeout, 0), SECONDS)
            patience = self._patience_at
        done = self._call(self._reap_call, self._context, least, batch.outstanding, batch.next_event, patience)
        if done < 0:
            if ctypes.get_errno() == errno.EINTR:
                return 0
            raise _failure()
        if done:
            batch.have_completed(done, perf_counter_ns())
        return int(done)

    def close(self) -> None:
        """See `Queue.close`."""
        if self._context is not None:
            self._call(self._destroy_call, self._context, 0, 0, 0, 0)
            self._context = None


def _system_call() -> Callable[..., int]:
    call = ctypes.CDLL(None, use_errno=True)["syscall"]
    call.argtypes, call.restype = [ctypes.c_long] * 6, ctypes.c_long
    return call


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


class ThreadQueue:
    """Threads that each read or write one request at a time."""

    TITLE = "threads"

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._pool = ThreadPoolExecutor(min(depth, _MOST_THREADS))
        self._done: queue.SimpleQueue[tuple[int, int, int]] = queue.SimpleQueue()

    def submit(self, batch: Batch, count: int) -> None:
        """See `Queue.submit`."""
        rows, memories = batch.next_rows(count), batch.memories
        at = perf_counter_ns()
        batch.were_submitted(count, at)
        for row in rows:
            self._pool.submit(self._serve, batch, row, memories[row])

    def _serve(self, batch: Batch, row: int, memory: memoryview) -> None:
        result = call(batch.file, int(batch.operation[row]), memory, int(batch.commands["offset"][row]))
        self._done.put((row, result, perf_counter_ns()))

    def reap(self, batch: Batch, least: int, timeout: int | None = None) -> int:
        """See `Queue.reap`."""
        until = None if timeout is None else perf_counter_ns() + timeout
        done = 0
        while batch.outstanding:
            left = None if until is None else max(until - perf_counter_ns(), 0) / SECONDS
            try:
                row, result, at = self._done.get(timeout=left) if done < least and left != 0 else self._done.get_nowait()
            except queue.Empty:
                break
            batch.events[batch.completed] = (row, 0, result, 0)
            batch.have_completed(1, at)
            done += 1
        return done

    def close(self) -> None:
        """See `Queue.close`."""
        self._pool.shutdown()


def call(file: int, operation: int, memory: memoryview, offset: int) -> int:
    """Serve one request by a plain call; its result as the kernel tells it in an event."""
    try:
        if operation == FLUSH:
            os.fdatasync(file)
            return 0
        return (os.preadv if operation == READ else os.pwritev)(file, [memory], offset)
    except OSError as problem:
        return -(problem.errno or errno.EIO)


def open_queue(depth: int, *, threads: bool = False) -> Queue:
    """The queue of Linux, or threads, where it is refused or they are asked for."""
    if threads:
        return ThreadQueue(depth)
    try:
        return KernelQueue(depth)
    except OSError:
        return ThreadQueue(depth)


def one_by_one(batch: Batch, look: Callable[[], None] | None = None) -> None:
    """Serve a batch by plain calls, one request after another: a call comes back sooner than a queue tells that a request has completed.

    Parameters
    ----------
    look
        Is called after each request.
    """
    kinds, offsets, memories = batch.operation.tolist(), batch.commands["offset"].tolist(), batch.memories
    rows = batch.next_rows(len(batch))
    results: list[int] = []
    for row in rows:
        kind, memory, offset = kinds[row], memories[row], offsets[row]
        begin = perf_counter_ns()
        results.append(call(batch.file, kind, memory, offset))
        end = perf_counter_ns()
        batch.were_submitted(1, begin)
        batch.have_completed(1, end)
        if look is not None:
            look()
    batch.events["data"], batch.events["result"] = rows, results


def closed_loop(to: Queue, batch: Batch, depth: int, look: Callable[[], None] | None = None) -> None:
    """Serve a batch with `depth` requests outstanding: a place that becomes free is taken by the next one.

    A batch of at most `depth` requests is submitted at once and waited for.  One request at a time needs no queue.

    Parameters
    ----------
    look
        Is called after each wait.
    """
    depth, count = min(depth, to.depth), len(batch)
    if depth == 1:
        one_by_one(batch, look)
    while batch.completed < count:
        free = min(depth - batch.outstanding, count - batch.submitted)
        if free:
            to.submit(batch, min(free, AT_ONCE))
        more = free > AT_ONCE
        to.reap(batch, 0 if more else 1, 0 if more else None)
        if look is not None:
            look()


def wait_until(to: Queue, batch: Batch, due: int) -> int:
    """Wait for a time, ns of `time.perf_counter_ns`, or for the first request that completes before; return how many did."""
    left = due - perf_counter_ns()
    if batch.outstanding:
        return to.reap(batch, 1, max(left, 0))
    if left > 0:
        sleep(left / SECONDS)
    return 0
