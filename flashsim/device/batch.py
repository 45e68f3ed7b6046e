"""Requests of files in the form in which Linux's asynchronous I/O takes them, and when each was submitted and had completed."""

import os
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from flashsim.core.request import FLUSH, OPERATIONS, Integers
from flashsim.core.units import format_size

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


class Batch:
    """Requests of one file or several, in the order of their submission, and when each was submitted and had completed.

    Parameters
    ----------
    file
        A file descriptor, or one a request, shape (n,).
    operation, offset, length
        READ, WRITE or FLUSH; bytes; bytes, shape (n,).
    memory
        Where their bytes are; aligned, if the file is opened with O_DIRECT.
    places
        Where in it those of each request begin, shape (n,), or those of all.
    """

    def __init__(
        self,
        file: int | Integers,
        operation: int | Integers,
        offset: Integers,
        length: Integers,
        memory: npt.NDArray[np.uint8],
        places: int | Integers = 0,
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
        """The rows of requests that moved fewer bytes than they should, and how many."""
        done = self.events[: self.completed]
        failed = done["data"][done["result"] < 0]
        if len(failed):
            row = int(failed.min())
            number = -int(done["result"][done["data"] == row][0])
            raise OSError(number, f"{os.strerror(number)}: {self.describe(row)}", self.file(row))
        short = done[done["result"].astype(np.uint64) < self.commands["bytes"][done["data"].astype(np.int64)]]
        return [(int(row), int(moved)) for row, moved in zip(short["data"], short["result"], strict=True)]

    @cached_property
    def memories(self) -> list[memoryview]:
        """Where the bytes of each request are."""
        whole, base = self._memory.data, self._memory.ctypes.data
        begins, sizes = self.commands["buffer"].astype(np.int64) - base, self.commands["bytes"].astype(np.int64)
        return [whole[begin : begin + size] for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True)]

    @cached_property
    def calls(self) -> list[tuple[int, memoryview, int]]:
        """What a plain call for each request takes: operation, memory, offset."""
        return list(zip(self.operation.tolist(), self.memories, self.commands["offset"].tolist(), strict=True))

    def call(self, row: int) -> tuple[int, memoryview, int]:
        """The same for one request, where few are served so: those of all are made in tens of ms."""
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
