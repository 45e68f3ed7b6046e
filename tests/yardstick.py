"""How slow the machine is, load included, so that a deadline bounds what is tested and not the machine or what runs beside it.

Deadlines of tests only keep a test from hanging: events decide outcomes.  A deadline is stated for a quiet machine (`seconds`).
"""

from __future__ import annotations

import os
import time

#: Wall-clock seconds of the loop on a quiet machine: one core at 4 GHz, Python 3.11.
QUIET = 0.25
_STEPS = 10_000_000
#: Tests, and other programs, that begin after the measurement slow the machine down too.
_MARGIN = 3
_VARIABLE = "TESTS_SLOWNESS"


def slowness_now() -> float:
    """Times as long as on a quiet machine that plain Python takes at this moment, at least 1."""
    begin, total = time.perf_counter(), 0
    for step in range(_STEPS):
        total += step & 7
    return max(1.0, (time.perf_counter() - begin) / QUIET)


def slowness() -> float:
    """The same as it was when the session began; processes that the session starts find the number in their environment."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = str(slowness_now())
    return float(os.environ[_VARIABLE])


def seconds(quiet: float) -> float:
    """A deadline for what a quiet machine does within some seconds."""
    return quiet * _MARGIN * slowness()
