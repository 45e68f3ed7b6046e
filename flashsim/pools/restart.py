"""The peak-to-peak interval of a system of pools: a shutdown or a crash, recovery, and the time until clients do as much as before.

Source: Do, 2012, section 4.1 and figure 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MICROSECONDS, MINUTES, SECONDS
from flashsim.execution.compiled_loop import Striped
from flashsim.execution.pooled.recovering import recover
from flashsim.execution.pooled.system import PURPOSES
from flashsim.pools.setup import PoolResult, PoolSetup, SystemRun
from flashsim.storage.log.recovery import Recovery

SHUTDOWN, CRASH = ENDS = ("shutdown", "crash")  #: How a system ends.
_STEPS = 60  #: Steps of an interval in which a shutdown's end is looked for.


@dataclass(frozen=True)
class PeakToPeak:
    """A restart; times are seconds of the whole system, to which those of the scaled one are multiplied."""

    #: Counts of each interval before the end and after recovery.
    before: PoolResult
    after: PoolResult
    shutdown: float  #: Seconds of the shutdown, 0 after a crash.
    phases: Mapping[str, float]  #: Seconds of recovery by phase.
    #: Records that survived, and their bytes, of the whole system.
    records: float
    log_bytes: float
    warm: float  #: Share of the SSD's frames that are in use after recovery.
    #: Counts of `flashsim.storage.log.recovery.Phases`, at the scale.
    work: Mapping[str, int]
    scale: float

    def peak(self, intervals: int) -> float:
        """Transactions a second over `intervals` before the end."""
        return self.before.rate("transactions", slice(-intervals, None))

    def ramp_up(self, peak: float, share: float, smoothed: int) -> float:
        """Seconds after recovery until the mean over some intervals is at a share of a peak; infinite if it never is."""
        rates = np.convolve(self.after.counts["transactions"] / self.after.seconds, np.full(smoothed, 1 / smoothed), "valid")
        above = np.flatnonzero(rates >= share * peak)
        return float((above[0] + smoothed) * self.after.seconds / self.scale) if len(above) else float("inf")

    @property
    def recovery(self) -> float:
        return sum(self.phases.values())

    def frame(self, before: int) -> pd.DataFrame:
        """A row an interval: minutes after the end of so many before it, none while nothing is served, and those after; transactions/s."""
        every, begin, after = self.before.seconds / self.scale, self.shutdown + self.recovery, self.after.counts["transactions"]
        seconds = np.concatenate([(np.arange(-before, 0) + 0.5) * every, [0.0, begin], begin + (np.arange(len(after)) + 0.5) * every])
        counts = np.concatenate([self.before.counts["transactions"][-before:], np.zeros(2), after])
        return pd.DataFrame({"minutes": seconds * SECONDS / MINUTES, "transactions/s": counts / self.before.seconds})

    def trace(self, peak: float, share: float, smoothed: int) -> dict[str, Any]:
        """The run in Chrome's trace-event format, which Perfetto opens: parts of the interval one after the other, throughput as a counter.

        Parameters are those of `ramp_up`.
        """
        before, after = (len(each.counts["transactions"]) for each in (self.before, self.after))
        start, begin, events = _us(-before * self.before.seconds / self.scale), 0.0, list[dict[str, Any]]()
        ramp_up = min(self.ramp_up(peak, share, smoothed), after * self.after.seconds / self.scale)
        for name, seconds in {"shutdown": self.shutdown, **self.phases, "ramp-up": ramp_up}.items():
            if seconds:
                events.append({"ph": "X", "pid": 1, "tid": 1, "name": name, "ts": _us(begin) - start, "dur": _us(seconds)})
            begin += seconds
        for minutes, rate in self.frame(before).to_numpy().tolist():
            at = _us(minutes * MINUTES / SECONDS) - start
            events.append({"ph": "C", "pid": 1, "name": "transactions/s", "ts": at, "args": {"rate": rate}})
        return {"displayTimeUnit": "ms", "traceEvents": events}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> PeakToPeak:
        return cls(**dict(record) | {"before": PoolResult.of(record["before"]), "after": PoolResult.of(record["after"])})


def _us(seconds: float) -> float:
    return seconds * SECONDS / MICROSECONDS


def run_restart(setup: Mapping[str, Any], ends: str, after: int) -> dict[str, Any]:
    """Run a system with a log to its end, recover, and run it on for `after` intervals; JSON-ready, see `PeakToPeak`."""
    whole = PoolSetup.of(setup)
    run = whole.build()
    if (logging := whole.logging(run.system.ssd)) is None:
        raise InvalidParameterError("restart", "none", "a log of records needs a restart design")
    before, took = run.result(), 0
    if ends == SHUTDOWN:
        step = run.system.interval // _STEPS
        run.shut_down()
        while not run.is_down:
            took += step
            run.run(whole.intervals * run.system.interval + took)
    run.check_log()  # recovery would read more than the device has
    durable, _ = run.image()
    recovery = Recovery(durable, logging.restart, run.system.ssd, run.system.memory)
    phases = recover(recovery, run.system, _devices(whole, run))
    following = replace(whole, time=after * whole.interval, seed=whole.seed + 1).build(recovered=recovery)
    rates = following.result()
    following.check_log()
    return {
        "before": before.as_dict(),
        "after": rates.as_dict(),
        "shutdown": took / SECONDS / whole.scale,
        "phases": {phase: time / SECONDS / whole.scale for phase, (time, _) in phases.items()},
        "records": (durable.durable_end - durable.first) / whole.scale,
        "log_bytes": durable.bytes_from(durable.first, durable.durable_end) / whole.scale,
        "warm": len(recovery.entries) / max(1, run.system.ssd),
        "work": vars(recovery.phases),
        "scale": whole.scale,
    }


def _devices(whole: PoolSetup, run: SystemRun) -> dict[int, tuple[Sequence[Any], int]]:
    devices = {}
    for name, part in whole.parts().items():
        if name != "ssd" or run.system.ssd:
            made = part.make(run.system.page_size)
            devices[PURPOSES.index(name)] = (made.drives, made.stripe) if isinstance(made, Striped) else ([made], made.capacity)
    return devices
