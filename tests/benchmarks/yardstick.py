"""How slow the machine is at this moment, so that a limit in seconds is one on flashsim and not on the machine or on what runs beside.

A limit in seconds is stated for a machine on which the walk takes `QUIET`; a test multiplies its limit by what this machine needs now.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

import numpy as np

from flashsim.core.kernel import kernel

#: Processor seconds of the walk where an access beyond the caches takes 75 ns, an assumption: no quiet machine was there to measure it on.
QUIET = 0.15
#: What flashsim imports of others, 0.65 s on that machine; `pyarrow.compute`, without which no column is read, takes a tenth of a second.
_IMPORTS = "import numba, pandas, pyarrow.compute, pyarrow.parquet, typer, rich.console"
_PLACES, _STEPS, _STARTS = 1 << 22, 2_000_000, 4


@kernel
def _walk(places: np.ndarray, steps: int) -> int:
    """Each place names the next, so that every step waits for memory, as a simulator's lists do."""
    place, total = 0, 0
    for step in range(steps):
        place = places[place]
        total += place ^ step
    return total


def loop_slowness() -> float:
    """Times as long as on that machine that compiled work over 16 MB takes now, at least 1."""
    order = np.random.default_rng(0).permutation(_PLACES).astype(np.int32)
    places = np.empty(_PLACES, np.int32)
    places[order] = np.roll(order, -1)  # one cycle through all
    _walk(places, 1)  # compiles
    taken = []
    for _ in range(3):
        begin = time.process_time()
        _walk(places, _STEPS)
        taken.append(time.process_time() - begin)
    return max(1.0, min(taken) / QUIET)


def times_the_imports(*words: str) -> float:
    """Processor time of a start of Python, by that of importing what flashsim rests on; the least of starts that take turns.

    Both are warm: modules are kept compiled, whatever the environment of tests says.
    """
    taken: dict[tuple[str, ...], list[float]] = {words: [], ("-c", _IMPORTS): []}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(1 + _STARTS):
        for each, seconds in taken.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *each], env=environment, stdout=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    measured, imports = (min(seconds[1:]) for seconds in taken.values())  # the first start may compile
    return measured / imports
