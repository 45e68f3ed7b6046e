"""What a call, a request and a byte cost the kernel on this machine: CPU time of reads and writes on a temporary file.

Requests of two sizes tell a byte; the smaller ones, by a call each and by one call for many, tell a call and a request.

The system's clocks of user and system time only tick, so the thread's CPU time is taken, less that of as many requests without bytes.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from experiments.calibration.cpu_user import Price, Timed, repeat
from flashsim.core.errors import FlashsimError
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE
from flashsim.core.units import KIB, MIB, format_size
from flashsim.device.aio import KernelQueue, all_at_once
from flashsim.device.batch import Batch
from flashsim.device.direct_memory import aligned_buffer

#: Sizes of requests: none, a page, and the largest command.
_SIZES = (0, 4 * KIB, 128 * KIB)
#: Reads and writes that are timed at a time, at places as far apart as the largest, and the file that holds them.
_REQUESTS = 128
_AREA = _REQUESTS * _SIZES[-1]
#: Calls that hand over as many requests: a set of reads, and one of writes.
_SETS = 2


def kernel_prices(folder: Path, duration: int, progress: Progress | None = None) -> list[Price]:
    """The price of a request, of a byte and of a call, measured for about `duration` ns in all; without sets of requests no call's.

    Parameters
    ----------
    folder
        Where the file is made; it has no name there.
    """
    timed: list[Timed] = []
    with _file(folder) as (file, how), _queue() as queue:
        calls = {f"requests of {format_size(size)}": partial(_serve, file, aligned_buffer(size).data, size) for size in _SIZES}
        if queue is not None:
            calls["sets of requests"] = partial(_serve_at_once, queue, file, _SIZES[1])
        for what, call in calls.items():
            if progress is not None:
                progress(len(timed), len(calls), what)
            timed.append(repeat(call, duration // len(calls)))
    empty, small, large, *sets = timed
    alone, long = ((one.least - empty.least) / _REQUESTS for one in (small, large))
    per_byte = max(0.0, (long - alone) / (_SIZES[2] - _SIZES[1]))
    per_request = max(0.0, alone - per_byte * _SIZES[1])
    source = f"CPU time of reads and writes of {' and '.join(map(format_size, _SIZES[1:]))} {how}"
    prices = [Price("per_request", per_request, small.spread, source), Price("per_byte", per_byte, large.spread, source)]
    if sets:
        saved = (_REQUESTS * alone - sets[0].least) / (_REQUESTS - _SETS)
        per_call = min(max(0.0, saved), per_request)
        told = f"CPU time that {_REQUESTS} reads and writes of {format_size(_SIZES[1])} save by {_SETS} calls instead of one each, {how}"
        prices[0] = replace(prices[0], value=per_request - per_call)
        prices.append(Price("per_call", per_call, sets[0].spread, told))
    return prices


@contextmanager
def _queue() -> Iterator[KernelQueue | None]:
    """For as many requests as are timed; None where the kernel has no such queues."""
    try:
        queue = KernelQueue(_REQUESTS)
    except OSError:
        yield None
        return
    try:
        yield queue
    finally:
        queue.close()


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
    for place in range(0, _REQUESTS, 2):
        os.preadv(file, [memory[:size]], place * _SIZES[-1])
        os.pwritev(file, [memory[:size]], (place + 1) * _SIZES[-1])


def _serve_at_once(queue: KernelQueue, file: int, size: int) -> None:
    places, memory = np.arange(0, _AREA, _SETS * _SIZES[-1]), aligned_buffer(size)
    for number, operation in enumerate((READ, WRITE)):
        all_at_once(queue, Batch(file, operation, places + number * _SIZES[-1], np.full(len(places), size), memory))
