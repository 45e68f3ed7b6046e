"""How long random writes still disturb a device: uFLIP's probe for the pause between runs.

Sequential reads are timed, then random writes follow, then the same reads again at once (Bouganim, Jónsson, Bonnet, CIDR 2009, section 4).
"""

from __future__ import annotations

import numpy as np

from experiments.bench.targets import Target
from flashsim.core.request import Completions, Integers
from flashsim.core.units import SECONDS
from traces.workload.base import Run, Setting

#: The pause where nothing is disturbed, and how much longer than the disturbance it is otherwise.
LEAST_PAUSE, MARGIN = SECONDS, 2
#: Reads are as before once their running mean, over a sixteenth of a run, stays within a fifth of what it was.
_TOLERANCE, _WINDOWS = 0.2, 16
#: Runs of reads after the writes, at most: what is disturbed for longer is paused for as long as was watched.
_MOST_RUNS = 16


def probed_pause(target: Target, setting: Setting, seed: int) -> int:
    """Nanoseconds to pause between runs; it writes, unless the setting only reads."""
    if not setting.write:
        return LEAST_PAUSE
    reads = Run("SR", 0, (setting.pattern("SR"),), setting.count).requests(seed)
    writes = Run("RW", 0, (setting.pattern("RW"),), setting.count).requests(seed)
    usual = _times(target.serve(reads, LEAST_PAUSE))
    target.serve(writes, LEAST_PAUSE)
    begin, lingering = -1, 0
    for _ in range(_MOST_RUNS):
        completions = target.serve(reads, 0)
        begin = int(completions["submitted"][0]) if begin < 0 else begin
        disturbed = disturbed_until(_times(completions), usual)
        if disturbed:
            lingering = int(completions["completed"][disturbed - 1]) - begin
        if disturbed < len(completions):
            break
    return max(LEAST_PAUSE, MARGIN * lingering)


def disturbed_until(times: Integers, usual: Integers) -> int:
    """How many of these response times pass until they are for good as usual.

    Examples
    --------
    >>> usual = np.full(160, 100)
    >>> disturbed_until(usual, usual)
    0
    >>> disturbed_until(np.repeat([900, 100], [50, 110]), usual)
    50
    >>> disturbed_until(np.full(160, 900), usual)
    160
    """
    window = max(1, len(times) // _WINDOWS)
    reference = usual[len(usual) // 2 :].mean()
    sums = np.concatenate([[0], np.cumsum(times)])
    means = (sums[window:] - sums[:-window]) / window
    off = np.flatnonzero(np.abs(means - reference) > _TOLERANCE * reference)
    if not len(off):
        return 0
    late = np.flatnonzero(np.abs(times - reference) > _TOLERANCE * reference)  # of the last window that is off, what puts it off
    inside = late[late < off[-1] + window]
    return int(inside[-1]) + 1 if len(inside) else int(off[-1]) + window


def _times(completions: Completions) -> Integers:
    times: Integers = (completions["completed"] - completions["submitted"]).astype(np.int64)
    return times
