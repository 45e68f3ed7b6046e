"""Reads and writes of files: many outstanding at once by Linux asynchronous I/O, or by threads where it is refused; one by plain calls.

A `Batch` holds requests in the form in which the kernel takes them.  A queue submits the next few of them and reaps those that have
completed; each costs one system call, whatever the number of requests, and nothing is done request by request.
"""

import ctypes
import errno
import os
import platform
import queue
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import perf_counter_ns, sleep

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import FLUSH, READ
from flashsim.core.units import NEVER, SECONDS
from flashsim.device.batch import Batch

#: Numbers of io_setup, io_destroy, io_getevents and io_submit (Linux: arch/*/*/syscalls/syscall*.tbl and scripts/syscall.tbl).
_CALLS = {"x86_64": (206, 207, 208, 209), "ppc64le": (227, 228, 229, 230), "s390x": (243, 244, 245, 246)}
_CALLS |= dict.fromkeys(("aarch64", "loongarch64", "riscv64"), (0, 1, 4, 2))

#: Requests of one submission at most, so that none of those that complete in the meantime waits long for its time to be taken.
AT_ONCE = 64
#: So long before a request is due, ns, its thread stays awake: Linux lets one sleep 50 us and more longer than it asked for, and on a busy
#: machine one that sleeps goes before one that works, as the recorded one did.
_AWAKE = 2_000_000
#: Files with the limit of outstanding requests of the whole system, and with the number of reserved ones.
_LIMIT, _RESERVED = Path("/proc/sys/fs/aio-max-nr"), Path("/proc/sys/fs/aio-nr")
_MOST_THREADS = 64  #: Threads that stand in for the kernel's queue at most.


class KernelQueue:
    """Linux asynchronous I/O: it overlaps requests of files opened with O_DIRECT; others are served one by one while they are submitted.

    After an error, or when a batch is given up, a queue must be closed: then nothing is outstanding any more.

    `depth` is how many requests may be outstanding.
    """

    TITLE = "Linux asynchronous I/O"

    def __init__(self, depth: int) -> None:
        self.depth = depth
        if sys.platform != "linux" or platform.machine() not in _CALLS or struct.calcsize("P") != 8:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        setup, self._destroy_call, self._reap_call, self._submit_call = _CALLS[platform.machine()]
        self._call = ctypes.CDLL(None, use_errno=True)["syscall"]
        self._call.argtypes, self._call.restype = [ctypes.c_long] * 6, ctypes.c_long
        context = ctypes.c_ulong(0)
        if self._call(setup, depth, ctypes.addressof(context), 0, 0, 0) < 0:
            raise _failure()
        self._context: int | None = context.value
        self._patience = (ctypes.c_long * 2)()
        self._patience_at = ctypes.addressof(self._patience)

    def submit(self, batch: Batch, count: int) -> None:
        """Submit the next `count` requests, or some of them; at most `depth` may be outstanding."""
        at = perf_counter_ns()
        accepted = self._call(self._submit_call, self._context, count, batch.next_command, 0, 0)
        if accepted >= 0:
            batch.note_submission(accepted, at)
        elif ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR) or not batch.outstanding:
            problem = _failure()
            (row,) = batch.next_rows(1)
            raise OSError(problem.errno, f"{problem.strerror}: {batch.describe(row)}", batch.file(row))

    def reap(self, batch: Batch, least: int, timeout: int | None = None) -> int:
        """Wait until `least` have completed, or for `timeout` ns; return how many did.  Signals end the wait."""
        patience = 0
        if timeout is not None:
            self._patience[0], self._patience[1] = divmod(max(timeout, 0), SECONDS)
            patience = self._patience_at
        count = self._call(self._reap_call, self._context, least, batch.outstanding, batch.next_event, patience)
        if count < 0:
            if ctypes.get_errno() == errno.EINTR:
                return 0
            raise _failure()
        if count:
            batch.note_completion(count, perf_counter_ns())
        return int(count)

    def close(self) -> None:
        """Wait for what is outstanding, and free what the queue holds."""
        if self._context is not None:
            self._call(self._destroy_call, self._context, 0, 0, 0, 0)
            self._context = None


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


class ThreadQueue:
    """Threads that each read or write one request at a time, where the kernel has no queue; otherwise as `KernelQueue`."""

    TITLE = "threads"

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._pool = ThreadPoolExecutor(min(depth, _MOST_THREADS))
        self._results: queue.SimpleQueue[tuple[int, int, int]] = queue.SimpleQueue()

    def submit(self, batch: Batch, count: int) -> None:
        rows, memories = batch.next_rows(count), batch.memories
        at = perf_counter_ns()
        batch.note_submission(count, at)
        for row in rows:
            self._pool.submit(self._serve, batch, row, memories[row])

    def _serve(self, batch: Batch, row: int, memory: memoryview) -> None:
        result = call(batch.file(row), int(batch.operation[row]), memory, int(batch.commands["offset"][row]))
        self._results.put((row, result, perf_counter_ns()))

    def reap(self, batch: Batch, least: int, timeout: int | None = None) -> int:
        until = None if timeout is None else perf_counter_ns() + timeout
        count = 0
        while batch.outstanding:
            pause = None if until is None else max(until - perf_counter_ns(), 0) / SECONDS
            try:
                row, result, at = self._results.get(timeout=pause) if count < least and pause != 0 else self._results.get_nowait()
            except queue.Empty:
                break
            batch.events[batch.completed] = (row, 0, result, 0)
            batch.note_completion(1, at)
            count += 1
        return count

    def close(self) -> None:
        self._pool.shutdown()


Queue = KernelQueue | ThreadQueue


def call(file: int, operation: int, memory: memoryview, offset: int) -> int:
    """Serve one request by a plain call; its result as the kernel tells it in an event."""
    try:
        if operation == FLUSH:
            os.fdatasync(file)
            return 0
        return (os.preadv if operation == READ else os.pwritev)(file, [memory], offset)
    except OSError as problem:
        return -(problem.errno or errno.EIO)


def kernel_room() -> int:
    """Requests that the kernel lets be outstanding beside those that others have reserved; no bound where it does not tell."""
    try:
        return max(0, int(_LIMIT.read_text(encoding="ascii")) - int(_RESERVED.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return NEVER


def check_outstanding(level: int) -> None:
    room = kernel_room()
    if not 1 <= level <= room:
        raise InvalidParameterError("outstanding level", level, f"it must be in [1, {room}], the kernel's limit ({_LIMIT})")


def open_queue(depth: int, *, threads: bool = False) -> Queue:
    """The queue of Linux, or threads, where it is refused or they are asked for."""
    if not threads:
        with suppress(OSError):
            return KernelQueue(depth)
    return ThreadQueue(depth)


def one_by_one(batch: Batch, look: Callable[[], None] | None = None) -> None:
    """Serve a batch by plain calls, one request after another: a call comes back sooner than a queue tells that a request has completed.

    `look` is called after each request.
    """
    while batch.completed < len(batch):
        (row,) = batch.next_rows(1)
        call_next(batch, row, batch.calls[row])
        if look is not None:
            look()


def call_next(batch: Batch, row: int, what: tuple[int, memoryview, int]) -> None:
    """Serve the next request of a batch, which is this one, by a plain call (`Batch.call`); none is outstanding."""
    operation, memory, offset = what
    begin = perf_counter_ns()
    result = call(batch.file(row), operation, memory, offset)
    end = perf_counter_ns()
    batch.events[batch.completed] = (row, 0, result, 0)
    batch.note_submission(1, begin)
    batch.note_completion(1, end)


def closed_loop(to: Queue, batch: Batch, depth: int, look: Callable[[], None] | None = None) -> None:
    """Serve a batch with `depth` requests outstanding: a place that becomes free is taken by the next one.

    A batch of at most `depth` requests is submitted at once and waited for.  One request at a time needs no queue.

    `look` is called after each wait.
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


def in_sets(to: Queue, batch: Batch, level: int) -> None:
    """Submit `level` requests of a batch in one call, or as many of them as the queue takes; once all have completed, the next ones.

    With all requests of the batch as the level this is psync I/O.
    """
    while batch.completed < len(batch):
        end = min(batch.completed + level, len(batch))
        while batch.completed < end:
            free = min(to.depth - batch.outstanding, end - batch.submitted)
            if free:
                to.submit(batch, free)
            to.reap(batch, 1)


def wait_until(to: Queue, batch: Batch, moment: int) -> int:
    """Wait for a time, ns of `time.perf_counter_ns`, or for the first request that completes before; return how many did."""
    rest = moment - perf_counter_ns()
    if batch.outstanding:
        return to.reap(batch, 1, max(rest, 0))
    if rest > _AWAKE:
        sleep((rest - _AWAKE) / SECONDS)
    while perf_counter_ns() < moment:
        pass
    return 0
