"""``flashsim pool restart`` and ``fs.restart``: a pool with a log is shut down or crashes, recovers, and comes back to its peak."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, option
from flashsim.core.units import GIB, format_duration
from flashsim.experiments.designs.session import design_names, parse_percent
from flashsim.experiments.presentation.plots import LINES, panels
from flashsim.experiments.presentation.tables import with_headings
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.operations import fields
from flashsim.operations.fields import Count, Duration, Field, Name, Names, Scale, Size
from flashsim.operations.operation import operation
from flashsim.operations.outcome import PICTURE, TABLE, Outcome, OutputFile
from flashsim.pools import LogOptions, PoolOptions
from flashsim.pools.restart import CRASH, ENDS, PeakToPeak, run_restart
from flashsim.pools.setup import PoolSetup

#: Intervals of a run, and the last of them, whose mean is the peak; share of it that ends a ramp-up, and the intervals of that mean.
_INTERVALS, _LAST, _SHARE, _SMOOTHED = 100, 20, 0.95, 5
_EXPLAINED = (
    f"A ramp-up ends when the mean over {_SMOOTHED} intervals is at {_SHARE:.0%} of the peak, that of the last fifth of the time before "
    "the end; - says that it is not, in as long a time."
)
_SCALE = "Scale of workload, memory, SSD and times, above 0 and up to 1."


@dataclass(frozen=True)
class Restarts:
    """Peak-to-peak intervals by design of the extension and restart design."""

    ends: str
    time: int
    runs: Mapping[tuple[str, str], PeakToPeak]

    def title(self) -> str:
        return f"A {self.ends} after {format_duration(self.time)}, recovery, and the way back to the peak"

    def rows(self) -> list[dict[str, Any]]:
        """A row a run: seconds of the whole system."""
        rows = []
        for (design, restart), each in self.runs.items():
            peak = each.peak(_LAST)
            ramp_up = each.ramp_up(peak, _SHARE, _SMOOTHED)
            row = {"design": design, "restart": restart, "transactions_s": peak, "shutdown_s": each.shutdown}
            row |= {f"{phase}_s": seconds for phase, seconds in each.phases.items()}
            row |= {"ramp_up_s": ramp_up, "peak_to_peak_s": each.shutdown + each.recovery + ramp_up}
            rows.append(row | {"log_gib": each.log_bytes / GIB, "warm_frames": each.warm})
        return rows


class RestartOutcome(Outcome):
    """Restarts of designs."""

    SWEPT = ("summary", "series")

    def series(self) -> pd.DataFrame:
        """A row a run and interval: minutes after the end, and transactions a second."""
        frames = [each.frame(_INTERVALS).assign(design=design, restart=restart) for (design, restart), each in self.result.runs.items()]
        return pd.concat(frames, ignore_index=True)

    def as_dict(self) -> dict[str, Any]:
        finite = self.summary().replace(float("inf"), None)
        return {"ends": self.result.ends, "rows": finite.astype(object).where(finite.notna(), None).to_dict("records")}

    def printout(self) -> Iterator[Part]:
        headings = {"transactions_s": "transactions/s", "warm_frames": "warm frames"}
        yield from (self.title, "", with_headings(self.summary().replace(float("inf"), float("nan")), headings), "")
        yield from (
            Explanation(_EXPLAINED),
            "",
            next_steps(f"{option('plot')} FILE.svg draws the way back", "flashsim pool crash shows one"),
        )

    def _draw(self) -> Figure:
        """One panel per run, on one scale: lines over one another would hide which is which."""
        runs = self.series().groupby(["design", "restart"], sort=False)
        with panels(0.5 + 1.5 * runs.ngroups, runs.ngroups, sharex=True, sharey=True, squeeze=False) as (figure, grid):
            for axes, ((design, name), rows) in zip(grid[:, 0], runs, strict=True):
                axes.axvline(0, color="#555555", linestyle=":")
                axes.plot(rows["minutes"], rows["transactions/s"], color=LINES[0][0], linewidth=1.2)
                axes.set_title(f"{design}, restart design {name}", fontsize=9)
                axes.set(ylabel="transactions/s", ylim=(0, None))
            axes.set_xlabel(f"time after the {self.result.ends} (min; dotted line at 0)")
        return figure


def _write_timeline(outcome: RestartOutcome, target: Path, path: Path) -> None:
    """All runs side by side, each as a process of its own."""
    timeline: dict[str, Any] = {"displayTimeUnit": "ms", "traceEvents": []}
    for number, ((design, restart), run) in enumerate(outcome.result.runs.items(), 1):
        name = {"ph": "M", "name": "process_name", "args": {"name": f"{design} with {restart}"}}
        events = [name, *run.trace(run.peak(_LAST), _SHARE, _SMOOTHED)["traceEvents"]]
        timeline["traceEvents"] += [event | {"pid": number} for event in events]
    target.write_text(json.dumps(timeline))


_TIMELINE = OutputFile("--timeline", "FILE.json", "Write a timeline that Perfetto opens (trace-event format).", _write_timeline, (".json",))
RestartOutcome.FILES = (TABLE, PICTURE, _TIMELINE)


@operation
def restart(
    workload: Annotated[str, Name("Transactions: {workloads}.", "WORKLOAD", completes=("workloads",), argument=True, reads=True)],
    *,
    memory: Annotated[Any, Size("Size of the memory pool.")],
    ssd: Annotated[Any, Size("Size of the SSD extension.")],
    design: Annotated[Any, Names("Design of the SSD extension: {designs}. May be repeated.", "DESIGN", completes=("designs",))] = "dw",
    restart: Annotated[
        Any, Names("Restart design: {restarts}; or a Python file. May be repeated.", "NAME|FILE.py", completes=("restarts",))
    ] = "none,lvr",
    end: Annotated[str, Field(f"End of the run before the restart: {' or '.join(ENDS)}.", "HOW", fields.choice(*ENDS))] = CRASH,
    time: Annotated[Any, Duration("Virtual time before the shutdown or crash, and maximum after recovery.")] = "10min",
    disk: Annotated[str, Field("Device of the database, as in flashsim pool run.", "DEVICE", fields.text)] = "rates",
    ssd_device: Annotated[
        str, Field("Device of the SSD extension, as in flashsim pool run.", "DEVICE", fields.text)
    ] = "rates:further=50700",
    log: Annotated[str, Field("Device of the log.", "DEVICE", fields.text)] = "rates:read=10458,write=165,further=10458",
    policy: Annotated[str, Name("Replacement policy of memory: {policies}.", "POLICY", completes=("policies",))] = "lru-k",
    dirty_limit: Annotated[
        str | float, Field("Lambda: maximum share of SSD frames that are newer than the disk.", "SHARE", parse_percent, seldom=True)
    ] = "20%",
    checkpoint: Annotated[Any, Duration("Time between two (fuzzy) checkpoints.")] = "1min",
    flush_writes: Annotated[int, Count("MMR: number of sequential SSD writes per flushed table entry.", seldom=True)] = 1,
    pause: Annotated[Any, Duration("LVR and LRR: pause between two writes of frame-table chunks.", seldom=True)] = "500ms",
    clients: Annotated[int, Count("Number of concurrent clients.")] = 64,
    page_size: fields.PoolPages = "8KiB",
    scale: Annotated[float, Scale(_SCALE)] = 1.0,
    seed: fields.Seed = 0,
) -> RestartOutcome:
    """Measure recovery and warm-up after a restart.

    A pool with a log is shut down or crashed and recovered; reported is the time until throughput is as before.

    Records of a log, versions of pages and the frame table of the SSD are simulated; recovery reads and writes the same devices. Times are
    those of the whole system.

    Examples::

        flashsim pool restart tpc-c:warehouses=2 --memory 20MB --ssd 140MB --time 20s --checkpoint 2s --plot restart.svg
        flashsim pool restart tpc-c:warehouses=2 --memory 20MB --ssd 140MB --time 20s --checkpoint 2s --restart mmr --end shutdown
        flashsim pool restart tpc-c:warehouses=2 --memory 20MB --ssd 140MB --time 20s --checkpoint 2s --restart lrr --timeline restart.json

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.restart("tpc-c:warehouses=1", memory="20MB", ssd="64MB", time="5s", checkpoint="1s")
    >>> none, lvr = result.summary().warm_frames
    >>> none, bool(lvr > 0.2)
    (0.0, True)
    >>> result.plot().figure.axes[0].get_ylabel()
    'transactions/s'
    """
    if not time:
        raise InvalidParameterError("time", "0 s", "it must be more than 0")
    runs: dict[tuple[str, str], PeakToPeak] = {}
    parts = list(product(design_names(design), (name for each in restart for name in each.split(","))))
    devices, interval = {"disk": disk, "ssd": ssd_device, "log": log}, max(1, time // _INTERVALS)
    options = PoolOptions(dirty_limit=int(dirty_limit), checkpoint=checkpoint or 0, fuzzy=True, clients=clients)
    hardening = LogOptions(flush_writes=flush_writes, pause=pause)
    with activity("restarts") as progress:
        for number, (extension, name) in enumerate(parts):
            progress(number, len(parts), f"{extension} with {name}")
            common = (memory, ssd, time, interval, devices, policy, page_size, options, scale, seed)
            setup = PoolSetup(workload, extension, *common, name, hardening)
            runs[extension, name] = PeakToPeak.of(run_restart(setup.as_dict(), end, _INTERVALS))
    return RestartOutcome(Restarts(end, time, runs))
