"""The bytes of a file, unpacked on the way where its first bytes say that it is gzip, xz, bzip2, zstd or lz4, and packed records in it.

Those of libCacheSim's oracleGeneral, which traces of requests and of pages have, take 24 bytes each, little-endian:

::

    0   time             uint32   seconds
    4   object           uint64
    12  size             uint32   bytes
    16  next access      int64    the number of the record that asks for the object next; -1 (or the largest number): none
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import DamagedFileError

Records = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

ORACLE = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
#: Records that are read at once.
AT_ONCE = 1 << 18
_BUFFER = 1 << 18


def _opened_by_arrow(codec: str) -> Callable[[Path], Any]:
    return lambda path: pa.CompressedInputStream(pa.OSFile(str(path), "rb"), codec)


#: Functions that open a packed file, by the bytes with which it begins; pzstd begins with one of zstd's frames that are to be skipped.
_PACKERS: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open, b"BZh": bz2.open}
_PACKERS |= {b"\x28\xb5\x2f\xfd": _opened_by_arrow("zstd"), b"\x04\x22\x4d\x18": _opened_by_arrow("lz4")}
_PACKERS |= dict.fromkeys((bytes([0x50 + number]) + b"\x2a\x4d\x18" for number in range(16)), _opened_by_arrow("zstd"))
#: What is named, and not read, by the same.
_ARCHIVES = {b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "rar", b"LZIP": "lzip", b"\x1f\x9d": "compress"}


def open_bytes(path: Path) -> BinaryIO:
    """A file's bytes, as a stream; reading a packed file that is damaged or cut short raises a `DamagedFileError`."""
    file = path.open("rb")
    begin = file.read(max(map(len, _PACKERS)))
    file.seek(0)
    for magic, opened in _PACKERS.items():
        if begin.startswith(magic):
            file.close()
            return cast(BinaryIO, io.BufferedReader(_Unpacked(path, opened(path)), _BUFFER))
    return file


def archive(path: Path) -> str:
    """The program that packed a file which cannot be unpacked here; nothing of another file."""
    with path.open("rb") as file:
        begin = file.read(max(map(len, _ARCHIVES)))
    return next((name for magic, name in _ARCHIVES.items() if begin.startswith(magic)), "")


class _Unpacked(io.RawIOBase):
    """A packed file's content; all that goes wrong is one kind of error, which names the file and how far it could be unpacked."""

    def __init__(self, path: Path, packed: Any) -> None:
        self._path, self._packed, self._count = path, packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._packed.read(len(buffer))
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as problem:
            reason = " ".join(str(problem).split()) or "it is damaged"
            raise DamagedFileError(f"trace: {self._path} cannot be unpacked beyond byte {self._count}: {reason}") from problem
        buffer[: len(data)] = data
        self._count += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._packed.close()
        super().close()


def read_records(path: Path, kind: np.dtype[Any]) -> Iterator[tuple[int, Records]]:
    """Records of a file, some at a time, and the number of the first."""
    first = 0
    with open_bytes(path) as file:
        while data := file.read(AT_ONCE * kind.itemsize):
            records = np.frombuffer(data, kind, len(data) // kind.itemsize)
            if len(records):
                yield first, records
            first += len(records)
            if len(data) % kind.itemsize:
                raise DamagedFileError(f"trace: {path} is cut short in record {first} at byte {first * kind.itemsize}")


def refuse(path: Path, first: int, records: Records, bad: Bools, why: str) -> None:
    """Raise a `DamagedFileError` that names the first bad record, if there is any; `first` is the number of the first of all."""
    if bad.any():
        row = first + int(np.argmax(bad))
        raise DamagedFileError(f"trace: {path}, record {row} at byte {row * records.itemsize}: {why}")


def is_oracle(path: Path) -> bool:
    """Nothing in an oracleGeneral says so: the first records must be plausible, with times that rise and accesses that lie ahead."""
    with open_bytes(path) as file:
        begin = file.read(64 * ORACLE.itemsize)
    if not begin or len(begin) % ORACLE.itemsize or b"\0" not in begin:
        return False
    records = np.frombuffer(begin, ORACLE)
    ahead = (records["next"] == -1) | (records["next"] > np.arange(len(records)))
    return bool(ahead.all() and (np.diff(records["time"].astype(np.int64)) >= 0).all() and (records["size"] > 0).all())


def read_oracle(path: Path) -> Iterator[tuple[int, Records]]:
    """Records of an oracleGeneral, some at a time, and the number of the first; sizes and next accesses are checked."""
    for first, records in read_records(path, ORACLE):
        ahead = (records["next"] == -1) | (records["next"] > np.arange(first, first + len(records)))
        refuse(path, first, records, ~ahead, "its next access is not ahead")
        refuse(path, first, records, records["size"] == 0, "its size is 0")
        yield first, records
