"""The micro-benchmarks of uFLIP with their method: a known state, start-up phases left out, and pauses between runs.

Bouganim, Jónsson, Bonnet, "uFLIP: Understanding Flash IO Patterns", CIDR 2009.  Runs that only read come first, since they leave the
device's state as it is; then those that write.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.request import Completions, Integers, response_times
from flashsim.core.units import SECONDS, format_duration, format_size
from flashsim.experiments.bench.targets import Target
from traces.workload.base import FAMILY, WorkloadRun, WorkloadSpace

#: The order of the paper's tool: what changes the device's state least comes first.
ORDER = ("granularity", "alignment", "locality", "pause", "bursts", "mix", "partitioning", "parallelism", "order")

#: Times have settled where their running mean, over a sixteenth of a run, is this close to the mean of the second half.
_TOLERANCE, _WINDOWS = 0.2, 16
#: The pause where nothing is disturbed, and how much longer than the disturbance it is otherwise.
LEAST_PAUSE, MARGIN = SECONDS, 2
#: Most runs of reads after the writes: a longer disturbance is taken to last as long as these.
_MOST_RUNS = 16


@dataclass(frozen=True)
class Method:
    """State, pauses and start-up of runs."""

    #: The share of the area that is written at random before the first run (simulated drives; a real one is written whole).
    share: float = 0.1
    #: Nanoseconds between runs; None: by a probe (`probed_pause`).
    pause: int | None = SECONDS
    #: Requests at the beginning of a run that statistics leave out; None: by the response times (`start_up`).
    ignore: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidParameterError("share", self.share, "it must be from 0 to 1")
        if self.ignore is not None and self.ignore < 0:
            raise InvalidParameterError("ignore", self.ignore, "it must be at least 0")
        if self.seed < 0:
            raise InvalidParameterError("seed", self.seed, "it must be at least 0")


#: The columns of measured runs: response times are ns, after the start-up phase, and `bandwidth` is bytes a second.
COLUMNS = [
    "benchmark", "parameter", "unit", "pattern", "value", "requests", "ignored", "minimum", "mean", "maximum", "deviation", "p99",
    "bandwidth",
]  # fmt: skip


def names(only: Sequence[str] = ()) -> list[str]:
    """The benchmarks to run, in order; all, if none are named."""
    for name in only:
        FAMILY.load(name)
    known = [*(name for name in ORDER if name in FAMILY.names()), *(name for name in FAMILY.names() if name not in ORDER)]
    return [name for name in known if name in only] + [name for name in only if name not in known] if only else known


def run_all(
    target: Target, setting: WorkloadSpace, method: Method, only: Sequence[str] = (), progress: Progress | None = None
) -> tuple[str, int, pd.DataFrame]:
    """Bring the target into a known state and run the benchmarks: the state, ns between runs, and the runs (`COLUMNS`)."""
    if method.ignore is not None and method.ignore >= setting.count:
        raise InvalidParameterError("ignore", method.ignore, f"a run has {setting.count} requests")
    members = {name: FAMILY.load(name) for name in names(only)}
    todo = [(name, run) for name, member in members.items() for run in member.runs(setting)]
    todo.sort(key=lambda pair: pair[1].writes)  # stable: otherwise in order
    state = target.enforce_state(method.share, method.seed) if setting.write else "as found: nothing is written"
    pause = probed_pause(target, setting, method.seed) if method.pause is None else method.pause
    runs = []
    for number, (name, run) in enumerate(todo):
        if progress:
            progress(number, len(todo), f"{name} {run.name}")
        requests, member = run.requests(method.seed), members[name]
        completions = target.measure(requests, pause)
        start = start_up(response_times(completions)) if method.ignore is None else method.ignore
        runs.append((name, member.PARAMETER, member.UNIT, run.name, run.value, *statistics_of(completions, requests["length"], start)))
    order = [*members]
    return state, pause, pd.DataFrame(sorted(runs, key=lambda run: order.index(str(run[0]))), columns=COLUMNS)


def probed_pause(target: Target, setting: WorkloadSpace, seed: int) -> int:
    """Nanoseconds to pause between runs: for so long random writes disturb sequential reads (section 4).

    The probe writes, unless the setting only reads.
    """
    if not setting.write:
        return LEAST_PAUSE
    reads = WorkloadRun("SR", 0, (setting.pattern("SR"),), setting.count).requests(seed)
    writes = WorkloadRun("RW", 0, (setting.pattern("RW"),), setting.count).requests(seed)
    usual = response_times(target.serve(reads, LEAST_PAUSE))
    target.serve(writes, LEAST_PAUSE)
    begin, lingering = -1, 0
    for _ in range(_MOST_RUNS):
        completions = target.serve(reads, 0)
        begin = int(completions["submitted"][0]) if begin < 0 else begin
        slow = disturbance_length(response_times(completions), usual)
        if slow:
            lingering = int(completions["completed"][slow - 1]) - begin
        if slow < len(completions):
            break
    return max(LEAST_PAUSE, MARGIN * lingering)


def disturbance_length(times: Integers, usual: Integers) -> int:
    """Response times until all that follow are as usual.

    Examples
    --------
    >>> usual = np.full(160, 100)
    >>> disturbance_length(usual, usual)
    0
    >>> disturbance_length(np.repeat([900, 100], [50, 110]), usual)
    50
    >>> disturbance_length(np.full(160, 900), usual)
    160
    """
    reference = usual[len(usual) // 2 :].mean()
    means, window = _running_means(times)
    off = np.flatnonzero(np.abs(means - reference) > _TOLERANCE * reference)
    if not len(off):
        return 0
    late = np.flatnonzero(np.abs(times - reference) > _TOLERANCE * reference)  # of the last window that is off, what puts it off
    inside = late[late < off[-1] + window]
    return int(inside[-1]) + 1 if len(inside) else int(off[-1]) + window


def statistics_of(completions: Completions, lengths: Integers, start: int) -> tuple[Any, ...]:
    """The numbers of a run (the last eight `COLUMNS`), statistics without its start-up phase."""
    times = response_times(completions)[start:]
    duration = int(completions["completed"][start:].max() - completions["submitted"][start:].min())
    statistics = int(times.min()), float(times.mean()), int(times.max()), float(times.std()), float(np.percentile(times, 99))
    return len(completions), start, *statistics, float(lengths[start:].sum()) * SECONDS / max(duration, 1)


def start_up(times: Integers) -> int:
    """Requests of the start-up phase: until the running mean first comes within 20 % of the second half's mean.

    The running mean is over a sixteenth of the run.  At most half of the run is start-up, so that a device which
    never settles is measured all the same.

    Examples
    --------
    >>> start_up(np.repeat([100, 500], [200, 1000])) in range(150, 201)
    True
    >>> start_up(np.full(1000, 70))
    0
    """
    reference = times[len(times) // 2 :].mean()
    means, _ = _running_means(times)
    is_settled = np.abs(means - reference) <= _TOLERANCE * reference
    first = int(np.argmax(is_settled)) if is_settled.any() else len(times)
    return min(first, len(times) // 2)


def _running_means(times: Integers) -> tuple[npt.NDArray[np.float64], int]:
    window = max(1, len(times) // _WINDOWS)
    sums = np.concatenate([[0], np.cumsum(times)])
    return (sums[window:] - sums[:-window]) / window, window


def shown_value(unit: str, value: int) -> str:
    """A parameter's value with its unit.

    Examples
    --------
    >>> shown_value("bytes", 512), shown_value("ns", 100_000), shown_value("count", -1)
    ('512 B', '100 us', '-1')
    """
    if unit == "bytes":
        return format_size(value)
    return format_duration(value) if unit == "ns" else str(value)
