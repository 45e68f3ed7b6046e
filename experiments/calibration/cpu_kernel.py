"""What a request and a byte cost the kernel on this machine: CPU time of reads and writes of two sizes on a temporary file.

The system's clocks of user and system time only tick, so the thread's CPU time is taken, less that of as many requests without bytes.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from experiments.calibration.cpu_user import Price, Timed, repeat
from flashsim.core.errors import FlashsimError
from flashsim.core.protocols import Progress
from flashsim.core.units import KIB, MIB, format_size
from flashsim.device.direct_memory import aligned_buffer

#: Sizes of requests: none, a page, and the largest command.
_SIZES = (0, 4 * KIB, 128 * KIB)
#: Reads and writes that are timed at a time, at places as far apart as the largest, and the file that holds them.
_REQUESTS = 128
_AREA = _REQUESTS * _SIZES[-1]


def kernel_prices(folder: Path, duration: int, progress: Progress | None = None) -> list[Price]:
    """The price of a request and of a byte, measured for about `duration` ns in all.

    Parameters
    ----------
    folder
        Where the file is made; it has no name there.

    Raises
    ------
    FlashsimError
        It cannot be made, written or read.
    """
    timed: dict[int, Timed] = {}
    with _file(folder) as (file, how):
        for size in _SIZES:
            if progress is not None:
                progress(len(timed), len(_SIZES), f"requests of {format_size(size)}")
            timed[size] = repeat(partial(_serve, file, aligned_buffer(size).data, size), duration // len(_SIZES))
    empty, *measured = (timed[size] for size in _SIZES)
    times = [(one.least - empty.least) / _REQUESTS for one in measured]
    counts = np.array([[1.0, size] for size in _SIZES[1:]])
    per_request, per_byte = np.maximum(0.0, np.linalg.solve(counts, times)).tolist()
    source = f"CPU time of reads and writes of {' and '.join(map(format_size, _SIZES[1:]))} {how}"
    return [
        Price(name, value, one.spread, source)
        for name, value, one in zip(("per_request", "per_byte"), (per_request, per_byte), measured, strict=True)
    ]


@contextmanager
def _file(folder: Path) -> Iterator[tuple[int, str]]:
    """A file without a name, written once; past the page cache where the file system allows that, and how in words."""
    try:
        with tempfile.TemporaryFile(dir=folder) as opened:
            file = opened.fileno()
            os.posix_fallocate(file, 0, _AREA)
            try:
                fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_DIRECT)
                os.pwritev(file, [aligned_buffer(_SIZES[1]).data], 0)
                how = "by O_DIRECT"
            except OSError:
                fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) & ~os.O_DIRECT)
                how = "through the page cache, since the file system has no O_DIRECT"
            for offset in range(0, _AREA, MIB):
                os.pwritev(file, [aligned_buffer(MIB).data], offset)
            yield file, how
    except OSError as problem:
        raise FlashsimError(f"--cpu: a temporary file in {folder}: {problem.strerror}") from problem


def _serve(file: int, memory: memoryview, size: int) -> None:
    """Reads and writes by turns, in order of place."""
    for place in range(0, _REQUESTS, 2):
        os.preadv(file, [memory[:size]], place * _SIZES[-1])
        os.pwritev(file, [memory[:size]], (place + 1) * _SIZES[-1])
