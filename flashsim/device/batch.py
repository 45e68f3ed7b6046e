"""Requests of files in the form in which Linux's asynchronous I/O takes them, their times, and aligned memory for them."""

import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from threading import local

import numpy as np
import numpy.typing as npt

from flashsim.core.request import FLUSH, OPERATIONS, Integers
from flashsim.core.units import MIB, format_size

HUGE_PAGE = 2 * MIB
_MOST_KEPT = 64 * MIB  #: Memory that is kept for the next transfer is at most so large.

Bytes = npt.NDArray[np.uint8]

#: ``struct iocb`` and ``struct io_event`` (include/uapi/linux/aio_abi.h).
_COMMAND = np.dtype(
    {
        "names": ["data", "key", "rw_flags", "opcode", "priority", "file", "buffer", "bytes", "offset", "reserved", "flags", "notify"],
        "formats": ["u8", "u4", "u4", "u2", "i2", "u4", "u8", "u8", "i8", "u8", "u4", "u4"],
    }
)
_EVENT = np.dtype({"names": ["data", "command", "result", "second"], "formats": ["u8", "u8", "i8", "i8"]})
#: IOCB_CMD_PREAD, IOCB_CMD_PWRITE and IOCB_CMD_FDSYNC, by operation; trims have none.
_OPCODES = np.array([0, 1, 0, 3], np.uint16)


class Batch:
    """Requests of one file or several, in the order of their submission, and when each was submitted and had completed.

    `file`: a file descriptor, or one a request, shape (n,). `operation`, `offset` and `length`: READ, WRITE or FLUSH; bytes; bytes, shape
    (n,). `memory`: where their bytes are; aligned, if the file is opened with O_DIRECT. `places`: where in it those of each request begin,
    shape (n,), or those of all.
    """

    def __init__(
        self, file: int | Integers, operation: int | Integers, offset: Integers, length: Integers, memory: Bytes, places: int | Integers = 0
    ) -> None:
        count = len(offset)
        self.submitted, self.completed = 0, 0
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
        """Requests that were submitted and have not completed."""
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

    def _rows(self, order: npt.NDArray[np.uint64]) -> Integers:
        return ((order - np.uint64(self._base)) // np.uint64(_COMMAND.itemsize)).astype(np.int64)

    def next_rows(self, count: int) -> list[int]:
        rows: list[int] = self._rows(self._order[self.submitted : self.submitted + count]).tolist()
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

    def note_submission(self, count: int, at: int) -> None:
        self._submissions.append((count, at))
        self.submitted += count

    def note_completion(self, count: int, at: int) -> None:
        """Note that so many more have completed; their events are in place."""
        self._completions.append((count, at))
        self.completed += count

    def times(self) -> tuple[Integers, Integers]:
        """Times when each request was submitted and completed, ns of `time.perf_counter_ns`, shape (n,), once all have."""
        return _by_row(self._rows(self._order), self._submissions), _by_row(self.events["data"].astype(np.int64), self._completions)

    def check(self) -> list[tuple[int, int]]:
        """The rows of requests that moved fewer bytes than they should, and how many."""
        completions = self.events[: self.completed]
        failed = completions["data"][completions["result"] < 0]
        if len(failed):
            row = int(failed.min())
            number = -int(completions["result"][completions["data"] == row][0])
            raise OSError(number, f"{os.strerror(number)}: {self.describe(row)}", self.file(row))
        short = completions[completions["result"].astype(np.uint64) < self.commands["bytes"][completions["data"].astype(np.int64)]]
        return [(int(row), int(moved)) for row, moved in zip(short["data"], short["result"], strict=True)]

    @cached_property
    def memories(self) -> list[memoryview]:
        whole, base = self._memory.data, self._memory.ctypes.data
        begins, sizes = self.commands["buffer"].astype(np.int64) - base, self.commands["bytes"].astype(np.int64)
        return [whole[begin : begin + size] for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True)]

    @cached_property
    def calls(self) -> list[tuple[int, memoryview, int]]:
        """Arguments of a plain call for each request: operation, memory, offset."""
        return list(zip(self.operation.tolist(), self.memories, self.commands["offset"].tolist(), strict=True))

    def call(self, row: int) -> tuple[int, memoryview, int]:
        """The call of one request, where few are served so: those of all are made in tens of ms."""
        command = self.commands[row]
        begin = int(command["buffer"]) - self._memory.ctypes.data
        return int(self.operation[row]), self._memory.data[begin : begin + int(command["bytes"])], int(command["offset"])

    def file(self, row: int) -> int:
        return int(self.commands["file"][row])

    def describe(self, row: int) -> str:
        command = self.commands[row]
        name = OPERATIONS[int(self.operation[row])]
        return name if name == "flush" else f"{name} of {format_size(int(command['bytes']))} at byte {command['offset']}"


def _by_row(rows: Integers, stamps: list[tuple[int, int]]) -> Integers:
    times = np.zeros(len(rows), np.int64)
    counts, at = np.array(stamps, np.int64).reshape(-1, 2).T
    times[rows] = np.repeat(at, counts)
    return times


def aligned_buffer(size: int) -> Bytes:
    """Memory for direct I/O, shape (size,): it begins at a page of the operating system and is in place.

    From 2 MiB on it lies on huge pages where the system has them.  A device is told each piece of physical memory apart, and for a virtual
    disk a request of 1 MiB takes twice as long if its memory lies scattered over pages of 4 KiB.
    """
    huge = size >= HUGE_PAGE
    room = mmap.mmap(-1, size + HUGE_PAGE if huge else max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory = np.frombuffer(room, np.uint8)
    if huge:
        with suppress(AttributeError, OSError):  # this system has none, or refuses them
            room.madvise(mmap.MADV_HUGEPAGE)
        memory = memory[-memory.ctypes.data % HUGE_PAGE :]
    memory = memory[:size]
    memory[:: mmap.PAGESIZE] = 0
    return memory


class LastingMemory(local):
    """Memory that a thread uses for one transfer after the other."""

    def __init__(self) -> None:
        self._buffer = np.empty(0, np.uint8)

    def take(self, size: int) -> Bytes:
        """Memory of this thread, shape (size,); what it holds lasts until the next call."""
        if size > _MOST_KEPT:
            return aligned_buffer(size)
        if size > len(self._buffer):
            self._buffer = aligned_buffer(max(size, HUGE_PAGE))
        return self._buffer[:size]
