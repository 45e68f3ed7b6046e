"""Measured and simulated response times compared: means, percentiles, demerit figures, without each part of the model, and their report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.protocols import Progress
from flashsim.core.request import OPERATIONS, READ, SECTOR, WRITE, Integers
from flashsim.core.units import MICROSECONDS, MILLISECONDS
from flashsim.device.presets import Preset
from flashsim.hdd.parameters import HddParameters
from flashsim.studies.presentation.plots import LINES, legend, panels
from flashsim.studies.presentation.report import Report
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Table, captioned
from flashsim.studies.replaying.demerit import demerit
from flashsim.studies.validation import closed_loop
from flashsim.studies.validation.closed_loop import ClosedLoop

PERCENTILES = (50, 90, 95, 99, 99.9)

#: The groups that every request is in one of.
_CLASSES = tuple(f"{OPERATIONS[operation]}s" for operation in (READ, WRITE))

Booleans = npt.NDArray[np.bool_]
#: Seeks are made longer by this share.
SEEK_ERROR = 0.05
_HITS_AND_MISSES = tuple(
    (f"{kind}_hit_after_{last}", f"{kind}_miss_after_{last}") for kind in ("read", "write") for last in ("read", "write")
)
_CONTROLLER = (
    *(name for pair in _HITS_AND_MISSES for name in pair), "data_preparation", "reselect_first", "reselect_other",
    "disconnect_read_after_read", "disconnect_read_after_write", "disconnect_write", "complete_read", "complete_write", "extra_command",
    "extra_disconnect_first", "extra_pause", "extra_disconnect_second", "extra_seek_delay",
)  # fmt: skip
Change = Callable[[HddParameters], dict[str, Any]]


@dataclass(frozen=True)
class Group:
    """One group of requests: times in ms, measured beside simulated.

    `median_error` is the median of the absolute error of a request; percentiles are pairs (measured, simulated) by share.
    """

    name: str
    requests: int
    measured_mean: float
    simulated_mean: float
    demerit: float
    median_error: float
    percentiles: dict[float, tuple[float, float]]

    @property
    def mean_error(self) -> float:
        """How far the simulated mean lies above the measured one, as a share of it."""
        return self.simulated_mean / self.measured_mean - 1

    def as_dict(self) -> dict[str, object]:
        return {
            "requests": self.requests,
            "mean_ms": {"measured": self.measured_mean, "simulated": self.simulated_mean},
            "mean_error": self.mean_error,
            "demerit_ms": self.demerit,
            "demerit_share": self.demerit / self.measured_mean,
            "median_absolute_error_ms": self.median_error,
            "percentiles_ms": {
                f"p{share:g}": {"measured": measured, "simulated": simulated} for share, (measured, simulated) in self.percentiles.items()
            },
        }


def compare(loop: ClosedLoop) -> list[Group]:
    """All requests, reads, writes, and both by what the measured drive's cache did, where the trace tells; no empty groups."""
    return [_group(name, loop.measured[rows], loop.simulated[rows]) for name, rows in _groups(loop) if rows.any()]


def _groups(loop: ClosedLoop) -> Iterator[tuple[str, Booleans]]:
    yield "all", np.ones(len(loop.measured), np.bool_)
    for operation in (READ, WRITE):
        yield f"{OPERATIONS[operation]}s", loop.operation == operation
    for operation in (READ, WRITE):
        for number, kind in enumerate(loop.kinds):
            yield f"{OPERATIONS[operation]}s: {kind.lower()}", (loop.operation == operation) & (loop.tag == number)


def _group(name: str, measured: Integers, simulated: Integers) -> Group:
    percentiles = np.percentile([measured, simulated], PERCENTILES, axis=1) / MILLISECONDS
    return Group(
        name,
        len(measured),
        float(measured.mean()) / MILLISECONDS,
        float(simulated.mean()) / MILLISECONDS,
        demerit(measured, simulated) / MILLISECONDS,
        float(np.median(np.abs(measured - simulated))) / MILLISECONDS,
        {share: (float(pair[0]), float(pair[1])) for share, pair in zip(PERCENTILES, percentiles, strict=True)},
    )


@dataclass(frozen=True)
class ByClass:
    """Errors of reads and of writes put together so that they cannot cancel, in ms.

    `demerit` is the root of the mean, over all requests, of their class's demerit squared; `mean_error` the mean of how far the mean of a
    request's class is off, either way, as a share of the measured mean.
    """

    demerit: float
    mean_error: float

    @classmethod
    def of(cls, groups: Sequence[Group]) -> ByClass:
        """Of the groups that `compare` returns."""
        classes = [group for group in groups if group.name in _CLASSES]
        requests = [group.requests for group in classes]
        off = np.average([abs(group.simulated_mean - group.measured_mean) for group in classes], weights=requests)
        squares = np.average([group.demerit**2 for group in classes], weights=requests)
        return cls(math.sqrt(squares), float(off) / groups[0].measured_mean)


def headline(groups: Sequence[Group]) -> str:
    """The demerit figure and the error of the mean, of all requests and by class, in a sentence."""
    total, by_class = groups[0], ByClass.of(groups)
    classes = [f"{each.name} {each.demerit:.3f} ms, mean {100 * each.mean_error:+.2f} %" for each in groups if each.name in _CLASSES]
    return (
        f"demerit {total.demerit:.3f} ms, mean {100 * total.mean_error:+.2f} %; {'; '.join(classes)}; "
        f"by class, where errors of reads and writes cannot cancel, {by_class.demerit:.3f} ms, mean {100 * by_class.mean_error:.2f} % off"
    )


def summary_table(groups: list[Group]) -> Table:
    """Means and errors, a row a group."""
    rows = [vars(group) | {"mean_error": group.mean_error, "share": group.demerit / group.measured_mean} for group in groups]
    columns: dict[str, Any] = {"requests of": "name", "count": "requests", "measured": "measured_mean", "simulated": "simulated_mean"}
    columns |= {"mean error": ("mean_error", lambda share: f"{100 * share:+.2f} %"), "demerit": "demerit"}
    columns |= {"of mean": ("share", lambda share: f"{100 * share:.2f} %"), "median error": "median_error"}
    return Table.of(rows, columns, digits=3, note="times in ms; median error: of a request, absolute")


def percentile_table(groups: list[Group]) -> Table:
    """Percentiles, measured and simulated in turns."""
    header = ["requests of", "", *(f"{share:g} %" for share in PERCENTILES)]
    rows = [
        [group.name, which, *(pair[number] for pair in group.percentiles.values())]
        for group in groups
        for number, which in enumerate(("measured", "simulated"))
    ]
    return Table(header, rows, digits=3, note="times in ms")


def cumulative(loop: ClosedLoop) -> Figure:
    """The share of all requests, of reads and of writes that took at most so long: measured drawn solid, simulated dashed."""
    groups = {name: rows for name, rows in _groups(loop) if rows.any() and ":" not in name}
    with panels(0.4 + 2.4 * len(groups), len(groups), squeeze=False) as (figure, grid):
        for axes, (name, rows) in zip(grid[:, 0], groups.items(), strict=True):
            times = {"measured": loop.measured[rows], "simulated": loop.simulated[rows]}
            shares = 100 * (np.arange(int(rows.sum())) + 1) / rows.sum()
            for (label, values), (colour, _), line in zip(times.items(), LINES, ("-", "--"), strict=False):
                axes.step(np.sort(values) / MILLISECONDS, shares, line, where="post", color=colour, label=label, linewidth=1.2)
            axes.set_title(f"{name}: demerit {demerit(*times.values()) / MILLISECONDS:.3f} ms", fontsize=9)
            axes.set_xlim(0, 1.02 * max(float(np.percentile(values, 99.9)) for values in times.values()) / MILLISECONDS)
            axes.grid(color="#dddddd", linewidth=0.5)
        figure.supxlabel("response time, ms", fontsize=9)
        figure.supylabel("share of requests, %", fontsize=9)
        legend(figure, grid[0, 0])
    return figure


def write_report(folder: Path, title: str, loop: ClosedLoop, groups: list[Group], others: list[Table], origin: dict[str, Any]) -> None:
    """Fill a folder with ``report.html``, the distributions (SVG), the tables (CSV), and every request with both times (CSV)."""
    whole = groups[0]
    figures = [("demerit", f"{whole.demerit:.3f} ms"), ("of the mean", f"{100 * whole.demerit / whole.measured_mean:.2f} %")]
    figures += [(f"mean error, {group.name}", f"{100 * group.mean_error:+.2f} %") for group in groups[:3]]
    sections = [
        Section("Response times", "Measured drawn solid, simulated dashed.", pictures={"response_times": cumulative(loop)}),
        Section("Means and errors", tables=[captioned(summary_table(groups), title="summary")]),
        Section("Percentiles", tables=[captioned(percentile_table(groups), title="percentiles")]),
        *(Section("Without each part of the model", tables=[table]) for table in others),
    ]
    lead = "The requests that were measured on the drive, on its model: a closed loop."
    Report(title, lead, figures, sections, origin).write(folder)
    requests = {"operation": np.array(OPERATIONS)[loop.operation], "sector": loop.offset // SECTOR, "sectors": loop.length // SECTOR}
    times = {"measured_us": loop.measured / MICROSECONDS, "simulated_us": loop.simulated / MICROSECONDS}
    pd.DataFrame(requests | times).to_csv(folder / "requests.csv", index=False)


def _without_zones(drive: HddParameters) -> dict[str, Any]:
    tracks = np.array([row[0] for row in drive.zones])
    mean = int(np.ceil(np.average([row[1] for row in drive.zones], weights=tracks)))
    rows = []
    for row in drive.zones:
        skews = [value * mean / row[1] for value in row[2:5]]
        rows.append((row[0], mean, *skews, *row[5:]) if skews else (row[0], mean))
    return {"zones": tuple(rows)} | _without_spares(dataclasses.replace(drive, zones=tuple(rows), capacity=0))


def _without_spares(drive: HddParameters) -> dict[str, Any]:
    zones = tuple((*row[:5], 0, 0, *row[7:]) if len(row) > 2 else row for row in drive.zones)
    return {"zones": zones, "sparing": "none", "slips": (), "defects": (), "capacity": 0}


def _with_longer_seeks(drive: HddParameters) -> dict[str, Any]:
    longer = 1 + SEEK_ERROR
    return {
        "seek_table": tuple((distance, longer * time) for distance, time in drive.seek_table),
        "seek_formula": tuple((boundary, *(longer * value for value in rest)) for boundary, *rest in drive.seek_formula),
        "seek_first": tuple((longer * time,) for (time,) in drive.seek_first),
        **{name: round(longer * getattr(drive, name)) for name in ("seek_single", "seek_average", "seek_full")},
    }


def _hits_like_misses(drive: HddParameters) -> dict[str, Any]:
    means = {pair: (getattr(drive, pair[0]) + getattr(drive, pair[1])) // 2 for pair in _HITS_AND_MISSES}
    return {name: mean for pair, mean in means.items() for name in pair}


#: The parts, and what a drive without one changes.
PARTS: dict[str, Change] = {
    "zones: one mean density": _without_zones,
    "skews": lambda drive: {"zones": tuple((*row[:2], 0, 0, *(row[4:] or (0, 0, 0, 0))) for row in drive.zones)},
    "spares, slips and empty space": _without_spares,
    f"seeks {100 * SEEK_ERROR:.0f} % too long": _with_longer_seeks,
    "head switch": lambda drive: {"head_switch": 0},
    "settling of writes": lambda drive: {"write_settle": 0},
    "bus": lambda drive: {"bus_read": 0, "bus_write": 0, "bulk_transfer": 0},
    "controller's overheads": lambda drive: dict.fromkeys(_CONTROLLER, 0),
    "hits told from misses": _hits_like_misses,
    "read-ahead": lambda drive: {"read_ahead": 0, "read_ahead_least": 0},
    "discarding what was read": lambda drive: {"keep_read": True},
    "water marks": lambda drive: {"read_start": 0.0, "read_start_least": 1, "write_start": 1.0, "write_start_most": 0},
    "second disconnect of writes": lambda drive: {"extra_disconnect": False},
    "fast write": lambda drive: {"write_behind": 0},
}


def ablate(preset: Preset, trace: Path, progress: Progress | None = None) -> Iterator[tuple[str, dict[str, float]]]:
    """The demerit figures (ms) of all requests, of reads and of writes: first of the whole model, then without one part at a time.

    Parts that the drive does not have are left out.
    """
    drive = preset.disk
    assert drive
    changed = {"whole model": drive} | {part: dataclasses.replace(drive, **change(drive)) for part, change in PARTS.items()}
    kept = {part: other for part, other in changed.items() if part == "whole model" or other != drive}
    for number, (part, other) in enumerate(kept.items()):
        if progress:
            progress(number, len(kept), part)
        loop = closed_loop.run(dataclasses.replace(preset, parameters=other), trace)
        groups = {"all": np.ones(len(loop.measured), np.bool_), "reads": loop.operation == READ, "writes": loop.operation == WRITE}
        yield part, {name: demerit(loop.measured[rows], loop.simulated[rows]) / MILLISECONDS for name, rows in groups.items() if rows.any()}


def ablation_table(found: dict[str, dict[str, float]]) -> Table:
    """A row a part."""
    rows = [[part, *figures.values()] for part, figures in found.items()]
    return Table(["without", *next(iter(found.values()))], rows, digits=3, note="demerit, ms")
