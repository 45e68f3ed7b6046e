"""The bytes of a file, unpacked on the way where its first bytes say that it is gzip, xz, bzip2, zstd or lz4."""

import bz2
import gzip
import io
import lzma
import mmap
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from flashsim.core.errors import CapacityError, DamagedFileError
from flashsim.core.processes import free_memory
from flashsim.core.units import format_size

_BUFFER, _BLOCK = 1 << 18, 1 << 24


def _arrow_opener(codec: str) -> Callable[[Path], Any]:
    return lambda path: pa.CompressedInputStream(pa.OSFile(str(path), "rb"), codec)


#: Programs that pack a file, by the bytes with which it begins; pzstd begins with one of zstd's frames that are to be skipped.
_BEGINS = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_BEGINS |= dict.fromkeys((bytes([0x50 + number]) + b"\x2a\x4d\x18" for number in range(16)), "zstd")
_BEGINS |= {b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "rar", b"LZIP": "lzip", b"\x1f\x9d": "compress"}
#: Functions that open what some of them packed.
_OPENED: dict[str, Callable[[Path], Any]] = {"gzip": gzip.open, "xz": lzma.open, "bzip2": bz2.open}
_OPENED |= {codec: _arrow_opener(codec) for codec in ("zstd", "lz4")}
#: Endings of the names of packed files.
ENDINGS = (".gz", ".xz", ".bz2", ".zst", ".lz4", ".zip", ".7z", ".rar", ".lz", ".Z")


def open_bytes(path: Path) -> BinaryIO:
    """A file's bytes, as a stream; reading a packed file that is damaged or cut short raises a `DamagedFileError`."""
    opened = _OPENED.get(packer(path))
    return cast(BinaryIO, io.BufferedReader(_Unpacked(path, opened(path)), _BUFFER)) if opened else path.open("rb")


def packer(path: Path) -> str:
    """The program that packed a file; nothing of another file."""
    with path.open("rb") as file:
        begin = file.read(max(map(len, _BEGINS)))
    return next((name for magic, name in _BEGINS.items() if begin.startswith(magic)), "")


def unpack_first(path: Path) -> str:
    """What a message says of a file that a program packed; nothing of another file."""
    by = packer(path)
    return f"{by} packed it; unpack it first" if by else ""


def whole_bytes(path: Path) -> bytearray | mmap.mmap:
    """All bytes of a file that is not empty, mapped or unpacked; refused if that is not done here, or takes more than free memory."""
    by = packer(path)
    if by and by not in _OPENED:
        raise DamagedFileError(f"{path}: {unpack_first(path)}")
    with open_bytes(path) as file:
        if not by:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        content, free = bytearray(), free_memory() or sys.maxsize
        while block := file.read(_BLOCK):
            content += block
            if len(content) > free:
                raise CapacityError(f"{path}: unpacked it takes more than the {format_size(free)} of memory that are free")
        return content


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
            raise DamagedFileError(f"{self._path} cannot be unpacked beyond byte {self._count}: {reason}") from problem
        buffer[: len(data)] = data
        self._count += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._packed.close()
        super().close()
