"""The pages of a SQLite database file, with what its write-ahead log has committed.

Source: "Database File Format", sections 1.3, 3 and 4 (sqlite.org/fileformat2.html).
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import DamagedFileError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.page.sqlite import LARGEST_PAGE, SMALLEST_PAGE
from flashsim.storage.record import Bytes, byte_at
from flashsim.storage.source.base import reading

_MAGIC = b"SQLite format 3\0"
_HEADER = 100
_SMALLEST_USABLE = 480
_ENCODINGS = {1: "utf-8", 2: "utf-16-le", 3: "utf-16-be"}
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_LOG_HEADER, _FRAME_HEADER = 32, 24
_LOG_MAGIC, _LOG_VERSION = 0x377F0682, 3_007_000


@dataclass(frozen=True)
class Database:
    """A database at its last commit.

    Parameters
    ----------
    path
        For messages.
    pages
        Shape (pages, page size); page number 1 is row 0.
    usable
        Bytes of a page that SQLite uses.
    encoding
        Of texts, as Python names it.
    """

    path: Path
    pages: Bytes
    usable: int
    encoding: str

    def damaged(self, what: str) -> DamagedFileError:
        return DamagedFileError(f"{self.path}: {what}")


def read_database(path: Path) -> Database:
    """The pages of a database."""
    with reading(path):
        _refuse_journal(path)
        data = np.fromfile(path, np.uint8)
        head = data[:_HEADER].tobytes()
        if len(head) < _HEADER or not head.startswith(_MAGIC):
            raise DamagedFileError(f"{path}: it is no SQLite database, or an encrypted one")
        size = _page_size(path, head)
        log = _committed_frames(path, size)
    if log is None:
        pages = _pages_of_file(path, data, size, head)
    else:
        frames, numbers, count = log
        if count > len(data) // size + len(numbers):
            raise DamagedFileError(f"{path}: it is truncated: its write-ahead log speaks of {count} pages")
        pages = np.zeros((count, size), np.uint8)
        held = min(count, len(data) // size)
        pages[:held] = data[: held * size].reshape(held, size)
        inside = numbers <= count
        pages[numbers[inside] - 1] = frames[inside]
        head = pages[0, :_HEADER].tobytes()
    return _checked(path, pages, head)


def _refuse_journal(path: Path) -> None:
    journal = path.with_name(path.name + "-journal")
    if journal.is_file():
        with journal.open("rb") as opened:
            if opened.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC:
                raise DamagedFileError(f"{path}: {journal.name} says that a transaction was interrupted; open it with sqlite3 once")


def _page_size(path: Path, head: bytes) -> int:
    (written,) = struct.unpack_from(">H", head, 16)
    size = LARGEST_PAGE if written == 1 else int(written)
    if size & (size - 1) or not SMALLEST_PAGE <= size <= LARGEST_PAGE:
        raise DamagedFileError(f"{path}: its header gives a page size of {size} B, which SQLite does not have")
    return size


def _pages_of_file(path: Path, data: Bytes, size: int, head: bytes) -> Bytes:
    changed, count = struct.unpack_from(">II", head, 24)
    (valid_for,) = struct.unpack_from(">I", head, 92)
    held = len(data) // size
    # Versions before 3.7.0 do not keep the count; the file's length holds then.
    if count == 0 or changed != valid_for:
        count = held
    if held < count or not held:
        raise DamagedFileError(f"{path}: it is truncated: {held} pages of {max(count, 1)}")
    return data[: count * size].reshape(count, size)


def _checked(path: Path, pages: Bytes, head: bytes) -> Database:
    size = pages.shape[1]
    versions, usable, fractions = head[18:20], size - head[20], tuple(head[21:24])
    (encoding,) = struct.unpack_from(">I", head, 56)
    intact = head.startswith(_MAGIC) and _page_size(path, head) == size and max(versions) <= 2 and fractions == (64, 32, 32)
    if not intact or usable < _SMALLEST_USABLE or encoding not in {0, *_ENCODINGS}:
        raise DamagedFileError(f"{path}: its header is damaged")
    return Database(path, pages, usable, _ENCODINGS.get(encoding, "utf-8"))


def _committed_frames(path: Path, size: int) -> tuple[Bytes, Integers, int] | None:
    """Pages in the write-ahead log, their numbers, and the pages of the database after the last commit; None without a commit.

    Frames count as long as salts and checksums are right, and up to the last that ends a transaction.
    """
    log = path.with_name(path.name + "-wal")
    if not log.is_file() or log.stat().st_size < _LOG_HEADER:
        return None
    data = np.fromfile(log, np.uint8)
    magic, version, log_size, _, *salts_and_sums = struct.unpack(">8I", data[:_LOG_HEADER].tobytes())
    big_endian = bool(magic & 1)
    sums = np.zeros(2, np.int64)
    _checksum(data[: _LOG_HEADER - 8], big_endian, sums)
    if magic & ~1 != _LOG_MAGIC or sums.tolist() != salts_and_sums[2:]:
        return None
    if version != _LOG_VERSION or log_size != size:
        raise DamagedFileError(f"{path}: {log.name} is of version {version} and pages of {log_size} B, which do not belong to it")
    frames = data[_LOG_HEADER:][: (len(data) - _LOG_HEADER) // (_FRAME_HEADER + size) * (_FRAME_HEADER + size)].reshape(
        -1, _FRAME_HEADER + size
    )
    heads = frames[:, :_FRAME_HEADER].copy().view(">u4").astype(np.int64)
    salted = (heads[:, 2] == salts_and_sums[0]) & (heads[:, 3] == salts_and_sums[1]) & (heads[:, 0] > 0)
    valid = _valid_frames(frames, heads, salted, big_endian, sums)
    (commits,) = np.nonzero(heads[:valid, 1])
    if not len(commits):
        return None
    last = int(commits[-1])
    return frames[: last + 1, _FRAME_HEADER:], heads[: last + 1, 0], int(heads[last, 1])


@kernel
def _valid_frames(frames: Bytes, heads: Integers, salted: npt.NDArray[np.bool_], big_endian: bool, sums: Integers) -> int:
    """How many frames, from the first on, carry the log's salts and the right running checksum."""
    for frame in range(len(frames)):
        if not salted[frame]:
            return frame
        _checksum(frames[frame, :8], big_endian, sums)
        _checksum(frames[frame, 24:], big_endian, sums)
        if sums[0] != heads[frame, 4] or sums[1] != heads[frame, 5]:
            return frame
    return len(frames)


@kernel
def _checksum(data: Bytes, big_endian: bool, sums: Integers) -> None:
    """Go on with the log's running checksum, over pairs of words of 32 bits."""
    for at in range(0, data.shape[0], 8):
        sums[0] = (sums[0] + _word(data, at, big_endian) + sums[1]) & 0xFFFFFFFF
        sums[1] = (sums[1] + _word(data, at + 4, big_endian) + sums[0]) & 0xFFFFFFFF


@kernel
def _word(data: Bytes, at: int, big_endian: bool) -> int:
    word = 0
    for byte in range(4):
        place = at + (byte if big_endian else 3 - byte)
        word = (word << 8) | byte_at(data, place)
    return word
