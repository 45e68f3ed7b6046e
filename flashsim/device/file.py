"""A real file or block device, read and written with O_DIRECT: past the page cache, in whole blocks, from aligned memory."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import CapacityError, FlashsimError, InvalidParameterError, MissingFileError, RefusedError
from flashsim.core.request import COMPLETION, Completions, Integers
from flashsim.core.units import format_size

_ALIGNMENTS = (512, 4096)
#: Threads that make a batch of requests outstanding at once.
_BATCH_THREADS = 32

Bytes = npt.NDArray[np.uint8]


def aligned_buffer(size: int) -> Bytes:
    """Memory that begins at a page of the operating system, shape (size,)."""
    return np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8)[:size]


class RealDevice:
    """A file or block device that joins run on.

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

    Raises
    ------
    RefusedError
        Writing was not allowed, the file exists already, or the block device is mounted or in use.
    MissingFileError
        There is nothing to read.
    CapacityError
        The file, the block device, or the file system, is too small.
    FlashsimError
        The file system does not do O_DIRECT, or permission is missing.
    """

    def __init__(self, path: str | Path, size: int, *, allow_write: bool = False, replace: bool = False, read_only: bool = False) -> None:
        self.path = Path(path)
        self._made = False
        if read_only:
            block_device = self._check_readable()
            flags = os.O_RDONLY | os.O_DIRECT
        else:
            block_device = self._check(size, allow_write, replace)
            flags = os.O_RDWR | os.O_DIRECT | (os.O_EXCL if block_device else os.O_CREAT)
        existed = self.path.exists()
        try:
            self._file = os.open(self.path, flags, 0o644)
        except OSError as problem:
            raise self._refusal(problem) from problem
        self._made = not existed
        try:
            if block_device or read_only:
                self.size = os.lseek(self._file, 0, os.SEEK_END)
                if self.size < size:
                    raise CapacityError(f"device: {self.path} holds {format_size(self.size)}, but {format_size(size)} are needed")
            else:
                os.posix_fallocate(self._file, 0, size)
                os.ftruncate(self._file, size)
                self.size = size
            self.alignment = self._find_alignment()
        except OSError as problem:
            self.close()
            self.remove_if_made()
            raise self._refusal(problem) from problem
        except FlashsimError:
            self.close()
            self.remove_if_made()
            raise
        self._begin = perf_counter_ns()

    def _check(self, size: int, allow_write: bool, replace: bool) -> bool:
        try:
            mode = self.path.stat().st_mode if self.path.exists() else None
        except OSError as problem:
            raise self._refusal(problem) from problem
        block_device = mode is not None and stat.S_ISBLK(mode)
        what = f"the block device {self.path}" if block_device else f"{format_size(size)} in {self.path}"
        if mode is None and not self.path.parent.is_dir():
            raise MissingFileError(f"device: no folder {self.path.parent}")
        if mode is not None and not block_device and not stat.S_ISREG(mode):
            raise RefusedError(f"device: {self.path} is neither a file nor a block device")
        if block_device and self._mounted():
            raise RefusedError(f"device: {self.path} is mounted or in use, and is never written to")
        if not allow_write:
            raise RefusedError(f"device: writing would destroy {what}; allow it with --allow-write")
        if mode is not None and not block_device and not replace:
            raise RefusedError(f"device: the file {self.path} exists and would be overwritten; allow it with --force")
        return block_device

    def _check_readable(self) -> bool:
        try:
            mode = self.path.stat().st_mode
        except OSError as problem:
            raise MissingFileError(f"device: cannot read {self.path}: {problem.strerror}") from problem
        if not stat.S_ISREG(mode) and not stat.S_ISBLK(mode):
            raise RefusedError(f"device: {self.path} is neither a file nor a block device")
        return stat.S_ISBLK(mode)

    def _mounted(self) -> bool:
        """Whether the block device, a partition of it, or something on top of it is in use."""
        number = os.stat(self.path).st_rdev
        name = f"{os.major(number)}:{os.minor(number)}"
        with open("/proc/self/mountinfo", encoding="utf-8") as table:
            mounted = {line.split()[2] for line in table}
        folder = Path("/sys/dev/block") / name
        parts = {name} | {part.read_text().strip() for part in folder.glob("*/dev")}
        held = any(True for holder in (folder / "holders", *folder.glob("*/holders")) if holder.is_dir() for _ in holder.iterdir())
        return held or bool(parts & mounted)

    def _refusal(self, problem: OSError) -> FlashsimError:
        if problem.errno == errno.EBUSY:
            return RefusedError(f"device: {self.path} is mounted or in use, and is never written to")
        if problem.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            return CapacityError(f"device: no room on the file system of {self.path}: {problem.strerror}")
        if problem.errno == errno.EINVAL:
            return FlashsimError(f"device: the file system of {self.path} does not do direct I/O (O_DIRECT)")
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
        raise FlashsimError(f"device: {self.path} refuses direct reads of {format_size(_ALIGNMENTS[-1])}")

    def check_page_size(self, page_size: int) -> None:
        """Refuse pages that are smaller than the blocks of direct I/O."""
        if page_size % self.alignment:
            raise InvalidParameterError("page size", f"{page_size} B", f"{self.path} takes multiples of {self.alignment} B")

    def read(self, offsets: Integers, lengths: Integers, *, batch: bool = False) -> tuple[Bytes, Completions]:
        """Read extents, one after another or (batch) all at once; their bytes in order, and when each was read."""
        buffer = aligned_buffer(int(lengths.sum()))
        return buffer, self._transfer(os.preadv, buffer, offsets, lengths, batch)

    def write(self, offsets: Integers, data: Bytes, lengths: Integers, *, batch: bool = False) -> Completions:
        """Write extents, one after another or (batch) all at once; `data` holds their bytes in order."""
        buffer = aligned_buffer(len(data))
        buffer[:] = data
        return self._transfer(os.pwritev, buffer, offsets, lengths, batch)

    def _transfer(
        self, call: Callable[[int, list[memoryview], int], int], buffer: Bytes, offsets: Integers, lengths: Integers, batch: bool
    ) -> Completions:
        ends = np.cumsum(lengths)

        def one(index: int) -> tuple[int, int, int, int, int]:
            submitted = perf_counter_ns() - self._begin
            position, done, size = int(offsets[index]), 0, int(lengths[index])
            view = buffer[ends[index] - size : ends[index]]
            while done < size:
                moved = call(self._file, [view[done:].data], position + done)
                if moved <= 0:
                    raise FlashsimError(f"device: {self.path} ends at {position + done} B, before what was asked for")
                done += moved
            return index, 0, submitted, submitted, perf_counter_ns() - self._begin

        try:
            if batch and len(offsets) > 1:
                with ThreadPoolExecutor(min(_BATCH_THREADS, len(offsets))) as pool:
                    rows = list(pool.map(one, range(len(offsets))))
            else:
                rows = [one(index) for index in range(len(offsets))]
        except OSError as problem:
            raise FlashsimError(f"device: {self.path}: {problem.strerror}") from problem
        return np.array(rows, COMPLETION)

    def flush(self) -> None:
        """Make what was written durable."""
        os.fdatasync(self._file)

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove_if_made(self) -> None:
        """Delete the file, if it did not exist before."""
        if self._made:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
        if kind is not None:
            self.remove_if_made()
