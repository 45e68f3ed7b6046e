"""Content of a served drive, in memory or in a file; bytes that were never written, or were trimmed, read as zeros."""

import ctypes
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from flashsim.core.errors import FORCE, CapacityError, FlashsimError, MissingFileError, RefusedError
from flashsim.core.units import KIB, MIB, format_size

#: The unit in which memory is taken.
CHUNK = 64 * KIB

#: The attribute of files that were made here.
_MARK = "user.flashsim.content"

_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of fallocate(2)
_ZEROS = bytes(MIB)


class MemoryContent:
    """Content that lasts as long as the process, and takes memory only where something was written.

    A write that needs more memory than the limit, in bytes, fails.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: dict[int, bytearray] = {}

    @property
    def size(self) -> int:
        return len(self._chunks) * CHUNK

    def read(self, offset: int, length: int) -> bytes:
        """Bytes, zeros where nothing was written."""
        nothing = bytes(CHUNK)
        return b"".join(self._chunks.get(number, nothing)[begin:end] for number, begin, end in _pieces(offset, length))

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes in place; OSError if there is no room for them."""
        pieces = list(_pieces(offset, len(data)))
        new = sum(number not in self._chunks for number, _, _ in pieces)
        if self.size + new * CHUNK > self._limit:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        source, position = memoryview(data), 0
        for number, begin, end in pieces:
            if number not in self._chunks:
                self._chunks[number] = bytearray(CHUNK)
            self._chunks[number][begin:end] = source[position : position + end - begin]
            position += end - begin

    def clear(self, offset: int, length: int) -> None:
        """Let bytes read as zeros, and give back what they took."""
        numbers = range(offset // CHUNK, (offset + length - 1) // CHUNK + 1)
        for number in list(self._chunks) if len(numbers) > len(self._chunks) else numbers:
            begin, end = max(offset - number * CHUNK, 0), min(offset + length - number * CHUNK, CHUNK)
            if number not in self._chunks or begin >= end:
                continue
            if end - begin == CHUNK:
                del self._chunks[number]
            else:
                self._chunks[number][begin:end] = bytes(end - begin)

    def flush(self) -> None:
        """Make what was written durable, as far as the content lasts at all; OSError if that fails."""

    def close(self) -> None:
        self._chunks.clear()


def _pieces(offset: int, length: int) -> Iterator[tuple[int, int, int]]:
    end = offset + length
    while offset < end:
        number, begin = divmod(offset, CHUNK)
        size = min(CHUNK - begin, end - offset)
        yield number, begin, begin + size
        offset += size


class FileContent:
    """Content in a sparse file, which stays; it is made as long as the drive (`size`, bytes) unless it is there.

    With `read_only` nothing of it is changed: it must exist, and may be shorter.  With `force` a file that was not made here is taken too.
    """

    def __init__(self, path: Path, size: int, read_only: bool = False, force: bool = False) -> None:
        self.path = path
        is_new = not path.exists()
        if not is_new and not path.is_file():
            raise RefusedError(f"content: {path} is not a regular file")
        try:
            self._file = os.open(path, os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as problem:
            raise MissingFileError(f"content: cannot open {path}: {problem.strerror}") from problem
        with ExitStack() as unless_held:
            unless_held.callback(self.close)
            try:
                fcntl.flock(self._file, (fcntl.LOCK_SH if read_only else fcntl.LOCK_EX) | fcntl.LOCK_NB)
                length = os.fstat(self._file).st_size
                if length > size:
                    raise CapacityError(f"content: {path} has {format_size(length)}, but the drive holds {format_size(size)}")
                if not (read_only or is_new or force) and (length < size or not _is_marked(self._file)):
                    made = f"it was not made for this drive, which holds {format_size(size)}"
                    raise RefusedError(f"content: {path} has {format_size(length)}: {made}; add " + FORCE + " to take and overwrite it")
                if not read_only:
                    os.ftruncate(self._file, size)
                    with suppress(OSError):
                        os.setxattr(self._file, _MARK, b"1")
            except BlockingIOError as problem:
                raise RefusedError(f"content: {path} is being served already") from problem
            except OSError as problem:
                raise FlashsimError(f"content: {path} cannot be made {format_size(size)} long: {problem.strerror}") from problem
            unless_held.pop_all()

    def extents(self) -> Iterator[tuple[int, int]]:
        """Offset and length of the parts that are no holes."""
        end = os.fstat(self._file).st_size
        begin = 0
        while begin < end:
            try:
                begin = os.lseek(self._file, begin, os.SEEK_DATA)
            except OSError:  # only a hole follows
                return
            hole = os.lseek(self._file, begin, os.SEEK_HOLE)
            yield begin, hole - begin
            begin = hole

    def read(self, offset: int, length: int) -> bytes:
        data = os.pread(self._file, length, offset)
        while len(data) < length:
            more = os.pread(self._file, length - len(data), offset + len(data))
            data += more or bytes(length - len(data))
        return data

    def write(self, offset: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            count = os.pwrite(self._file, rest, offset)
            offset, rest = offset + count, rest[count:]

    def clear(self, offset: int, length: int) -> None:
        if not _punch(self._file, offset, length):
            for begin in range(offset, offset + length, len(_ZEROS)):
                self.write(begin, _ZEROS[: offset + length - begin])

    def flush(self) -> None:
        """Make what was written durable, and the file's length and holes too; OSError if that fails."""
        os.fsync(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


#: The bytes of a drive; whoever asks has checked that they lie on it.
Content = MemoryContent | FileContent


def _is_marked(file: int) -> bool:
    """Whether a file was made here; on a file system that keeps no marks its length must do."""
    try:
        return bool(os.getxattr(file, _MARK))
    except OSError as problem:
        return problem.errno == errno.ENOTSUP


def _punch(file: int, offset: int, length: int) -> bool:
    call = getattr(ctypes.CDLL(None), "fallocate64", None)
    if call is None:
        return False
    return bool(call(file, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_int64(offset), ctypes.c_int64(length)) == 0)
