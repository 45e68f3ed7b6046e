"""Tables and pictures that exhibits of the thesis share."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from flashsim.core.units import HOURS, KIB, MIB, MINUTES
from flashsim.literature.do2012.runs import DESIGNS, DISKS, STEADY, Disks, Runs
from flashsim.pools.setup import PoolResult, PoolSetup
from flashsim.studies.presentation.plots import series_over
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table

Floats = npt.NDArray[np.float64]
#: Name of a database, and its setup by design and disks.
Database = tuple[str, Callable[[str, Disks], PoolSetup]]
_SECOND = ("disk_reads", "disk_writes", "ssd_reads", "ssd_writes")


def speedups(title: str, name: str, of: str, databases: Sequence[Database], designs: Sequence[str], runs: Runs) -> list[Section]:
    """Throughput of each design in the last two hours on each database, absolute and over that without an SSD."""
    rows: list[list[Entry]] = []
    last = slice(-STEADY, None)
    for disks in DISKS:
        for label, setup_of in databases:
            for design in designs:
                setup = setup_of(design, disks)
                series = runs.series(setup)
                if series is None:
                    continue
                reads, from_disk = series.total("ssd_reads", last), series.total("disk_reads", last)
                states = [100 * series.filled(state, last) for state in ("ssd_used", "ssd_newer", "ssd_invalid")]
                rates = [runs.steady(setup), runs.over(setup, setup_of("none", disks)), 100 * reads / max(1, reads + from_disk)]
                rows.append([disks.name, label, DESIGNS[design], *rates, *(series.rate(what, last) for what in _SECOND), *states])
    header = [
        "disks",
        of,
        "design",
        "transactions/s",
        "speedup",
        "SSD hits, %",
        "disk reads/s",
        "disk writes/s",
        "SSD reads/s",
        "SSD writes/s",
    ]
    table = Table([*header, "used, %", "newer, %", "invalid, %"], rows, name, 1)
    text = "Means of the last two hours. SSD reads are those of misses, without the cleaner's."
    return [Section(title, text, [table], on_terminal=True)] if rows else []


def ramp_up(title: str, name: str, panels: Mapping[str, Mapping[str, PoolSetup]], runs: Runs, smoothed: int = 3) -> list[Section]:
    """Throughput over time, smoothed over three intervals as the thesis does, or more; a panel a database."""
    frames, every = [], 0.0
    for panel, lines in panels.items():
        for label, setup in lines.items():
            series = runs.series(setup)
            if series is not None:
                rates, every = smooth(series, smoothed), setup.interval / MINUTES
                hours = (np.arange(len(rates)) + (smoothed + 1) / 2) * every / 60
                frames.append(pd.DataFrame({"panel": panel, "hours": hours, "design": label, "transactions/s": rates}))
    if not frames:
        return []
    picture = series_over(pd.concat(frames), "hours", "transactions/s", "design", ["panel"], "hours")
    return [Section(title, f"Means over {smoothed * every:g} minutes.", pictures={name: picture})]


def smooth(series: PoolResult, intervals: int) -> Floats:
    """Transactions a second in the mean over so many intervals, wherever there are so many."""
    return np.convolve(series.counts["transactions"] / series.seconds, np.full(intervals, 1 / intervals), "valid")


#: Counts whose sum is the pages that moved, by device and direction.
TRAFFIC = {
    ("disks", "read"): ("disk_pages_read",),
    ("disks", "written"): ("disk_pages_written",),
    ("SSD", "read"): ("ssd_reads", "cleaner_reads"),
    ("SSD", "written"): ("ssd_writes",),
}


def megabytes(series: PoolResult, device: str, direction: str) -> Floats:
    """MB/s of 2^20 bytes, as the thesis has them, interval by interval."""
    pages = sum(series.counts[count] for count in TRAFFIC[device, direction])
    return np.asarray(pages * 8 * KIB / MIB / series.seconds)


def traffic(title: str, name: str, setup: PoolSetup, runs: Runs) -> list[Section]:
    """Reads and writes over time, a panel a device."""
    series = runs.series(setup)
    if series is None:
        return []
    hours = (np.arange(len(series.counts["references"])) + 0.5) * (setup.interval / HOURS)
    frames = [
        pd.DataFrame({"device": device, "hours": hours, "direction": direction, "MB/s": megabytes(series, device, direction)})
        for device, direction in TRAFFIC
    ]
    picture = series_over(pd.concat(frames), "hours", "MB/s", "direction", ["device"], "hours")
    return [Section(title, f"Intervals of {setup.interval / MINUTES:g} minutes.", pictures={name: picture})]
