"""The bytes of a file, unpacked on the way where its first bytes say that it is gzip, xz or zstd."""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from flashsim.core.errors import DamagedFileError

_BUFFER = 1 << 18


def _zstd(path: Path) -> Any:
    return pa.CompressedInputStream(pa.OSFile(str(path), "rb"), "zstd")


#: What opens a packed file, by the bytes that it begins with.
_PACKERS: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open, b"\x28\xb5\x2f\xfd": _zstd}


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
