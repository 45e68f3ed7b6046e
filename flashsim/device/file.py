"""A real file or block device, read and written with O_DIRECT: past the page cache, in whole blocks, from aligned memory."""

import errno
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from time import perf_counter_ns
from types import TracebackType
from typing import Self

import numpy as np

from flashsim.core.errors import CapacityError, FlashsimError, InvalidParameterError, RefusedError
from flashsim.core.request import COMPLETION, READ, WRITE, Completions, Integers
from flashsim.core.units import format_size
from flashsim.device.access import check_readable, check_writable
from flashsim.device.aio import Queue, call, check_outstanding, in_sets, kernel_room, open_queue
from flashsim.device.batch import Batch, Bytes, LastingMemory, aligned_buffer

_ALIGNMENTS = (512, 4096)
MOST_OUTSTANDING = 1024  #: Requests that may be outstanding at once without being announced.


class NoDirectIOError(FlashsimError):
    """A file system that does not do O_DIRECT."""


class RealDevice:
    """A file or block device that joins run on and traces are replayed on.

    Parameters
    ----------
    path
        A regular file (made, if there is none) or a block device.
    size
        Bytes needed; a file is made so long.
    allow_write
        Without it nothing is opened.
    replace
        Whether a file that exists already may be overwritten.
    read_only
        Opened for reading: it must exist, nothing of it is changed, and it may be in use.
    buffered
        Through the page cache instead of O_DIRECT; requests may then begin and end anywhere.

    Raises
    ------
    RefusedError
        Writing was not allowed, the file exists already, the device is mounted or in use, or the system is not Linux.
    MissingFileError
        There is nothing to read.
    CapacityError
        The file, the block device, or the file system, is too small.
    NoDirectIOError
        The file system does not do O_DIRECT.
    FlashsimError
        Permission is missing.
    """

    def __init__(
        self,
        path: str | Path,
        size: int,
        *,
        allow_write: bool = False,
        replace: bool = False,
        read_only: bool = False,
        buffered: bool = False,
    ) -> None:
        self.path = Path(path)
        #: True if this object created the file.
        self.is_new = False
        self.buffered = buffered
        #: Devices by their numbers in requests, this one among them, to whose files these go; if empty, all go to this one's.
        self.beside: Mapping[int, RealDevice] = {}
        self._queue: Queue | None = None
        self._lock = Lock()
        self._memory = LastingMemory()
        if not hasattr(os, "O_DIRECT"):
            raise RefusedError(f"device: {self.path} is real, and real files and devices are read and written on Linux alone")
        try:
            if read_only:
                block_device = check_readable(self.path)
            else:
                block_device = check_writable(self.path, size, allow_write=allow_write, replace=replace)
            flags = os.O_RDONLY if read_only else os.O_RDWR | (os.O_EXCL if block_device else os.O_CREAT)
            self.is_new = not self.path.exists()
            self._file = os.open(self.path, flags | (0 if buffered else os.O_DIRECT), 0o644)
        except OSError as problem:
            if problem.errno == errno.EINVAL:  # Linux makes a file even where it then refuses direct I/O
                self.remove_if_new()
            raise self._refusal(problem) from problem
        try:
            if block_device or read_only:
                self.size = os.lseek(self._file, 0, os.SEEK_END)
                if self.size < size:
                    raise CapacityError(f"device: {self.path} holds {format_size(self.size)}, but {format_size(size)} are needed")
            else:
                os.posix_fallocate(self._file, 0, size)
                os.ftruncate(self._file, size)
                self.size = size
            self.alignment = 1 if buffered else self._find_alignment()
        except (OSError, FlashsimError) as problem:
            self.close()
            self.remove_if_new()
            if isinstance(problem, OSError):
                raise self._refusal(problem) from problem
            raise
        self.opened = perf_counter_ns()  #: Zero of the device's clock, ns of `time.perf_counter_ns`.

    def _refusal(self, problem: OSError) -> FlashsimError:
        if problem.errno == errno.EBUSY:
            return RefusedError(f"device: {self.path} is mounted or in use, and is never written to")
        if problem.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            return CapacityError(f"device: no room on the file system of {self.path}: {problem.strerror}")
        if problem.errno == errno.EINVAL and not self.buffered:
            return NoDirectIOError(f"device: the file system of {self.path} does not do direct I/O (O_DIRECT)")
        return FlashsimError(f"device: cannot open {self.path}: {problem.strerror}")

    def _find_alignment(self) -> int:
        for alignment in _ALIGNMENTS:
            try:
                os.preadv(self._file, [aligned_buffer(alignment).data], alignment)
            except OSError as problem:
                if problem.errno != errno.EINVAL:
                    raise
            else:
                return alignment
        raise NoDirectIOError(f"device: {self.path} refuses direct reads of {format_size(_ALIGNMENTS[-1])}")

    def check_page_size(self, page_size: int) -> None:
        """Refuse pages that are smaller than the blocks of direct I/O."""
        if page_size % self.alignment:
            raise InvalidParameterError("page size", f"{page_size} B", f"{self.path} takes multiples of {self.alignment} B")

    def read(self, offsets: Integers, lengths: Integers, *, batch: bool = False) -> tuple[Bytes, Completions]:
        """Read extents, one after another or (batch) all at once; their bytes in order, and when each was read."""
        data = np.empty(int(lengths.sum()), np.uint8)
        return data, self._transfer(READ, data, offsets, lengths, batch)

    def write(self, offsets: Integers, data: Bytes, lengths: Integers, *, batch: bool = False) -> Completions:
        """Write extents, one after another or (batch) all at once; `data` holds their bytes in order."""
        return self._transfer(WRITE, data, offsets, lengths, batch)

    def _transfer(self, operation: int, data: Bytes, offsets: Integers, lengths: Integers, batch: bool) -> Completions:
        """Batches through the queue; what is served one after another may also come from several threads.

        The bytes pass through memory that is in place before a request is timed.
        """
        ends = np.cumsum(lengths)
        completions = np.zeros(len(offsets), COMPLETION)
        completions["id"] = np.arange(len(offsets))
        if batch and len(offsets) > 1:
            memory = self._memory.take(len(data))
            if operation == WRITE:
                memory[:] = data
            work = self.prepare(operation, offsets, lengths, memory, ends - lengths)
            completions["submitted"], completions["completed"] = self.serve(work, partial(in_sets, level=len(work)), len(work))
            if operation == READ:
                data[:] = memory
        else:
            for index, (offset, end, size) in enumerate(zip(offsets.tolist(), ends.tolist(), lengths.tolist(), strict=True)):
                memory, part = self._memory.take(size), data[end - size : end]
                if operation == WRITE:
                    memory[:] = part
                completions["submitted"][index] = self.now
                self._move(self._file, operation, memory.data, offset)
                completions["completed"][index] = self.now
                if operation == READ:
                    part[:] = memory
        completions["started"] = completions["submitted"]
        return completions

    def _move(self, file: int, operation: int, buffer: memoryview, offset: int) -> None:
        count = 0
        while count < len(buffer):
            moved = call(file, operation, buffer[count:], offset + count)
            if moved < 0:
                raise FlashsimError(f"device: {self._path_of(file)}: {os.strerror(-moved)}")
            if moved == 0:
                raise FlashsimError(f"device: {self._path_of(file)} ends at {offset + count} B, before the end of the request")
            count += moved

    def _path_of(self, file: object) -> Path:
        return next((each.path for each in self.beside.values() if each._file == file), self.path)

    @property
    def now(self) -> int:
        """Nanoseconds since the device was opened."""
        return perf_counter_ns() - self.opened

    def prepare(
        self,
        operation: int | Integers,
        offsets: Integers,
        lengths: Integers,
        memory: Bytes,
        places: int | Integers = 0,
        devices: Integers | None = None,
    ) -> Batch:
        """Requests for `serve`, whose bytes are in aligned memory, those of each at a place of its own or those of all at its begin.

        `devices` are the numbers of the devices that they go to (`beside`).
        """
        files: int | Integers = self._file
        if devices is not None and self.beside:
            files = np.full(max(self.beside) + 1, -1)
            files[list(self.beside)] = [each._file for each in self.beside.values()]
            files = files[devices]
        return Batch(files, operation, offsets, lengths, memory, places)

    def serve(self, batch: Batch, loop: Callable[[Queue, Batch], object], level: int = 1) -> tuple[Integers, Integers]:
        """Have a loop serve prepared requests; when each was submitted and had completed, ns since the device was opened, shape (n,).

        The loop, such as `flashsim.device.aio.closed_loop`, submits all of them to the queue and reaps them.  `level` requests must be able
        to be outstanding at once, or `MOST_OUTSTANDING` if that is more and the kernel lets them.
        """
        with self._lock:
            if self._queue is not None and level > self._queue.depth:
                self._close_queue()
            self._queue = self._queue or self._open_queue(level)
            try:
                loop(self._queue, batch)
                short = batch.check()
            except BaseException as problem:
                self._close_queue()
                if isinstance(problem, OSError):
                    raise FlashsimError(f"device: {self._path_of(problem.filename)}: {problem.strerror}") from problem
                raise
        submitted, completed = batch.times()
        for row, moved in short:
            memory, offset = batch.memories[row][moved:], int(batch.commands["offset"][row]) + moved
            self._move(batch.file(row), int(batch.operation[row]), memory, offset)
            completed[row] = perf_counter_ns()
        return submitted - self.opened, completed - self.opened

    @property
    def queue(self) -> Queue:
        """Queue of batches: of Linux past the page cache, where a batch would be served one by one of threads."""
        self._queue = self._queue or self._open_queue(1)
        return self._queue

    def _open_queue(self, level: int) -> Queue:
        if self.buffered:
            return open_queue(max(level, MOST_OUTSTANDING), threads=True)
        check_outstanding(level)
        return open_queue(max(level, min(MOST_OUTSTANDING, kernel_room())))

    def _close_queue(self) -> None:
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def flush(self) -> None:
        os.fdatasync(self._file)

    def close(self) -> None:
        self._close_queue()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove_if_new(self) -> None:
        if self.is_new:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
        if kind is not None:
            self.remove_if_new()
