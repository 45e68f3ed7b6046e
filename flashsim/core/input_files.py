"""Files of a user's own that are read whole: only regular ones, up to a size."""

import errno
import io
import os
import stat
from pathlib import Path

from flashsim.core.units import MIB, format_size

_LARGEST = 256 * MIB  #: Bytes of the largest.


def read_bytes(path: Path) -> bytes:
    """All that a file holds.

    Raises OSError: it cannot be read, is a pipe, a device or the like, or is too large.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a pipe is not waited for
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise OSError(errno.EFBIG, f"it is larger than {format_size(_LARGEST)}", str(path))
    return content


def read_text(path: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a file, lines ended alike; raises as `read_bytes` does, or ValueError."""
    return io.TextIOWrapper(io.BytesIO(read_bytes(path)), encoding, errors).read()
