"""AIOMicrobench: bandwidth and latency over I/O size and outstanding level, in sets of requests handed over at once (psync I/O).

Shin et al., "Optimizing Hash Partitioning for Solid State Drives", SAC 2016, section 2.4: requests of one size go to random places of a
file, as many at once as the outstanding level says, and the next ones once all of these have completed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
import pandas as pd

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, SECTOR, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import GIB, KIB, MIB, format_size
from flashsim.experiments.bench.targets import Target
from flashsim.experiments.bench.uflip import COLUMNS, Method, start_up, statistics_of

#: The sets of micro-benchmarks that there are: uFLIP's and this one.
SETS = ("uflip", "aio")
#: Operations in the order in which they are measured: reads first, which leave the device as it is.
OPERATIONS = {"read": READ, "write": WRITE}
#: Bytes of the paper's file.
FILE = 8 * GIB
SIZES = tuple(4 * KIB << power for power in range(9))
LEVELS = tuple(1 << power for power in range(7))
_QUICK_SIZES, _QUICK_LEVELS = (4 * KIB, 64 * KIB, MIB), (1, 8, 64)
#: The least of a run: sets, requests, and bytes written as a multiple of the drive's buffer.
_SETS, _COUNT, _BUFFERS = 8, 128, 8
#: The most bytes of one request.
_LARGEST = 64 * MIB


@dataclass(frozen=True)
class Grid:
    """Sizes and levels, each of which is measured with each."""

    #: Bytes of a request.
    sizes: tuple[int, ...] = SIZES
    #: Requests that are handed over at once.
    levels: tuple[int, ...] = LEVELS
    #: Requests of a run at least; it has eight sets at least, and writes eight times what a simulated drive's buffer holds.
    count: int = _COUNT

    @classmethod
    def of(cls, sizes: Sequence[int] = (), levels: Sequence[int] = (), count: int | None = None, *, quick: bool = False) -> Self:
        """The values that are given, in order, or else the paper's up to 1 MiB and 64; a few of them in a quick run."""
        usual = (_QUICK_SIZES, _QUICK_LEVELS) if quick else (SIZES, LEVELS)
        first, second = (tuple(sorted(set(choice or values))) for choice, values in zip((sizes, levels), usual, strict=True))
        return cls(first, second, _COUNT if count is None else count)

    def __post_init__(self) -> None:
        for size in self.sizes:
            if not SECTOR <= size <= _LARGEST or size % SECTOR:
                raise InvalidParameterError("sizes", format_size(size), f"a multiple of {SECTOR} B up to {format_size(_LARGEST)} is needed")
        if self.levels[0] < 1:
            raise InvalidParameterError("levels", self.levels[0], "it must be at least 1")
        if self.count < 1:
            raise InvalidParameterError("count", self.count, "it must be at least 1")

    def check(self, size: int, least: int) -> None:
        """Refuse an area too small for the largest request, or requests in other units than the device's."""
        if size < self.sizes[-1]:
            raise InvalidParameterError("size", format_size(size), f"at least a request of {format_size(self.sizes[-1])} is needed")
        for each in self.sizes:
            if each % least:
                raise InvalidParameterError("sizes", format_size(each), f"the device takes multiples of {least} B")

    def requests(self, size: int, level: int, buffer: int) -> int:
        return max(_SETS, -(-max(self.count, _BUFFERS * buffer // size) // level)) * level


def operations(only: Sequence[str] = ()) -> list[str]:
    """Operations to measure, in order; all, if none is named."""
    for name in only:
        if name not in OPERATIONS:
            raise UnknownNameError("micro-benchmark", name, OPERATIONS)
    return [name for name in OPERATIONS if name in only or not only]


def run_all(
    target: Target, grid: Grid, method: Method, only: Sequence[str] = (), progress: Progress | None = None, *, write: bool = True
) -> tuple[str, int, pd.DataFrame]:
    """Measure every size with every level: the target's state, ns between runs, and the runs (`COLUMNS`), whose `pattern` is the level."""
    grid.check(target.size, target.least)
    names = [name for name in operations(only) if write or name != "write"]
    state = target.enforce_state(method.share, method.seed) if write else "as found: nothing is written"
    todo, runs = list(product(names, grid.levels, grid.sizes)), []
    for number, (name, level, size) in enumerate(todo):
        if progress:
            progress(number, len(todo), f"{name} {format_size(size)}, {level} at once")
        count = grid.requests(size, level, target.buffer if name == "write" else 0)
        places = generator(method.seed, "aio", name, level, size).integers(0, target.size // size, count)
        completions = target.together(make_requests(OPERATIONS[name], places * size, size), level, method.pause or 0)
        begins, ends = (completions[column].astype(np.int64).reshape(-1, level) for column in ("submitted", "completed"))
        start = start_up(ends.max(axis=1) - begins.min(axis=1)) * level if method.ignore is None else min(method.ignore, count - 1)
        runs.append((name, "I/O size", "bytes", str(level), size, *statistics_of(completions, np.full(count, size), start)))
    return state, method.pause or 0, pd.DataFrame(runs, columns=COLUMNS)
