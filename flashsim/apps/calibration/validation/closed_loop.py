"""A measured closed loop run again on a simulated drive, and the response times of both compared.

The next request comes its think time after the simulated completion.  Compared are means, percentiles and demerit figures, also without
each part of the model.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.request import FLUSH, OPERATIONS, READ, REQUEST, SECTOR, TRIM, WRITE, Integers, response_times
from flashsim.core.units import MICROSECONDS, MILLISECONDS, format_size
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.experiments.presentation import plots
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.replaying.device_report import demerit
from flashsim.experiments.replaying.survey import column
from flashsim.hdd.parameters import HddParameters
from traces.format import disksim
from traces.format.base import read_trace, recognise

#: Requests that are submitted together; each waits for the one before it.
BATCH = 8192


@dataclass(frozen=True)
class ClosedLoop:
    """A run, a row a request in order: shape (n,) each."""

    #: READ or WRITE.
    operation: npt.NDArray[np.int8]
    offset: Integers
    length: Integers
    #: Response times, ns.
    measured: Integers
    simulated: Integers
    #: The measured drive's cache: a number into `kinds`.
    tag: Integers
    #: Names of a cache's actions; none where the trace does not have them.
    kinds: tuple[str, ...] = ()

    def groups(self) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
        """All requests, reads, writes, and both by the cache's actions; no empty groups."""
        operations = {f"{OPERATIONS[operation]}s": self.operation == operation for operation in (READ, WRITE)}
        every = {"all": np.ones(len(self.measured), np.bool_)} | operations
        for name, rows in operations.items():
            every |= {f"{name}: {kind.lower()}": rows & (self.tag == number) for number, kind in enumerate(self.kinds)}
        yield from ((name, rows) for name, rows in every.items() if rows.any())


def run(preset: Preset, path: Path, model: str = "engine", progress: Progress | None = None) -> ClosedLoop:
    """Send the requests of a closed loop trace to a fresh drive, whole batches at once.

    Requests go to the drive as they stand in the trace: the measured drive took them in one command each, so none is split.
    """
    batches = list(_check(read_trace(path)))
    if not batches:
        raise InvalidParameterError("trace", path.name, "it must hold at least one request")
    names = ("operation", "offset", "length", "tag", "arrival", "completed")
    columns = {name: np.concatenate([column(batch, name) for batch in batches]) for name in names}
    measured = columns.pop("completed") - columns.pop("arrival")
    reach = int(np.max(columns["offset"] + columns["length"]))
    if reach > preset.capacity:
        raise CapacityError(f"trace: it reaches to {format_size(reach)}, but {preset.name} holds {format_size(preset.capacity)}")
    device = Device(preset, model, maximum_command=int(columns["length"].max()))
    simulated = []
    for batch in batches:
        requests = np.zeros(batch.num_rows, REQUEST)
        for name in ("operation", "offset", "length", "tag", "think", "flags"):
            requests[name] = column(batch, name)
        requests["dependency"] = np.arange(-1, batch.num_rows - 1)
        completions = device.serve(requests, device.now + int(requests["think"][0]))
        simulated.append(response_times(completions))
        if progress:
            progress(sum(map(len, simulated)), len(measured))
    kinds = disksim.KINDS if recognise(path) == "disksim" and np.ptp(columns["tag"]) > 0 else ()
    return ClosedLoop(**columns, measured=measured, simulated=np.concatenate(simulated), kinds=tuple(kinds))


def _check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in batches:
        for name in ("arrival", "completed"):
            if batch.column(name).null_count:
                raise InvalidParameterError(f"trace: {name}", "not recorded", "a validation needs the measured time of every request")
        if not np.array_equal(column(batch, "dependency"), np.arange(first - 1, first + batch.num_rows - 1)):
            raise InvalidParameterError("trace: dependency", "not a chain", "in a closed loop each request waits for the one before")
        operation = column(batch, "operation")
        if np.isin(operation, (TRIM, FLUSH)).any() or not np.isin(operation, (READ, WRITE)).all():
            raise InvalidParameterError("trace: operation", "trim or flush", "a validation compares reads and writes")
        if np.any((column(batch, "length") <= 0) | (column(batch, "length") % SECTOR != 0)):
            raise InvalidParameterError("trace: length", int(column(batch, "length").min()), f"it must be a multiple of {SECTOR} B")
        first += batch.num_rows
        for begin in range(0, batch.num_rows, BATCH):
            yield batch.slice(begin, BATCH)


PERCENTILES = (50, 90, 95, 99, 99.9)
#: The groups that every request is in one of.
_CLASSES = ["reads", "writes"]


def compare(loop: ClosedLoop) -> pd.DataFrame:
    """Measured beside simulated times (ms), by the name of the group.

    Columns: `requests`, `measured_mean`, `simulated_mean`, `mean_error` (how far the simulated mean lies above the measured one, as a share
    of it), `demerit`, its `share` of the measured mean, `median_error` (the median of the absolute error of a request), and `percentiles`,
    pairs (measured, simulated) by share.
    """
    by_group = {}
    for name, rows in loop.groups():
        measured, simulated = loop.measured[rows], loop.simulated[rows]
        percentiles = (np.percentile([measured, simulated], PERCENTILES, axis=1) / MILLISECONDS).tolist()
        means, apart = (measured.mean() / MILLISECONDS, simulated.mean() / MILLISECONDS), demerit(measured, simulated) / MILLISECONDS
        by_group[name] = {"requests": len(measured), "measured_mean": means[0], "simulated_mean": means[1]}
        by_group[name] |= {"mean_error": means[1] / means[0] - 1, "demerit": apart, "share": apart / means[0]}
        by_group[name] |= {"median_error": np.median(np.abs(measured - simulated)) / MILLISECONDS}
        by_group[name] |= {"percentiles": dict(zip(PERCENTILES, map(tuple, percentiles), strict=True))}
    return pd.DataFrame([*by_group.values()], index=[*by_group])


def by_class(groups: pd.DataFrame) -> dict[str, float]:
    """Errors of reads and of writes combined so that they cannot cancel.

    `demerit` (ms) is the root of the mean, over all requests, of their class's demerit squared; `mean_error` the mean of how far the mean
    of a request's class is off, either way, as a share of the measured mean.
    """
    classes = groups[groups.index.isin(_CLASSES)]
    off = np.average((classes["simulated_mean"] - classes["measured_mean"]).abs(), weights=classes["requests"])
    squares = np.average(classes["demerit"] ** 2, weights=classes["requests"])
    return {"demerit": math.sqrt(squares), "mean_error": float(off) / groups["measured_mean"].iloc[0]}


def as_json(groups: pd.DataFrame) -> dict[str, Any]:
    return {
        str(name): {
            "requests": row["requests"],
            "mean_ms": {"measured": row["measured_mean"], "simulated": row["simulated_mean"]},
            "mean_error": row["mean_error"],
            "demerit_ms": row["demerit"],
            "demerit_share": row["share"],
            "median_absolute_error_ms": row["median_error"],
            "percentiles_ms": {f"p{each:g}": {"measured": one, "simulated": two} for each, (one, two) in row["percentiles"].items()},
        }
        for name, row in zip(groups.index, groups.to_dict("records"), strict=True)
    }


def headline(groups: pd.DataFrame) -> str:
    """The demerit figure and the error of the mean, of all requests and by class, in a sentence."""
    by = by_class(groups)
    groups_of = zip(groups.index, groups["demerit"], 100 * groups["mean_error"], strict=True)
    texts = {name: f"{apart:.3f} ms, mean {error:+.2f} %" for name, apart, error in groups_of}
    return (
        f"demerit {texts['all']}; {'; '.join(f'{name} {texts[name]}' for name in _CLASSES if name in texts)}; "
        f"by class, where errors of reads and writes cannot cancel, {by['demerit']:.3f} ms, mean {100 * by['mean_error']:.2f} % off"
    )


def summary_table(groups: pd.DataFrame) -> Table:
    """Means and errors, a row a group."""
    columns: dict[str, Any] = {"requests of": "name", "count": "requests", "measured": "measured_mean", "simulated": "simulated_mean"}
    columns |= {"mean error": ("mean_error", lambda share: f"{100 * share:+.2f} %"), "demerit": "demerit"}
    columns |= {"of mean": ("share", lambda share: f"{100 * share:.2f} %"), "median error": "median_error"}
    rows = groups.rename_axis("name").reset_index().to_dict("records")
    return Table.of(rows, columns, digits=3, note="times in ms; median error: of a request, absolute")


def percentile_table(groups: pd.DataFrame) -> Table:
    header = ["requests of", "", *(f"{share:g} %" for share in PERCENTILES)]
    rows = [
        [name, which, *values]
        for name, percentiles in groups["percentiles"].items()
        for which, values in zip(("measured", "simulated"), zip(*percentiles.values(), strict=True), strict=True)
    ]
    return Table(header, rows, digits=3, note="times in ms")


def cumulative(loop: ClosedLoop) -> Figure:
    """The share of all requests, of reads and of writes that took at most so long: measured drawn solid, simulated dashed."""
    groups = {name: rows for name, rows in loop.groups() if ":" not in name}
    with plots.panels(0.4 + 2.4 * len(groups), len(groups), squeeze=False) as (figure, grid):
        for axes, (name, rows) in zip(grid[:, 0], groups.items(), strict=True):
            times = {"measured": loop.measured[rows], "simulated": loop.simulated[rows]}
            shares = 100 * (np.arange(int(rows.sum())) + 1) / rows.sum()
            for (label, values), (colour, _), line in zip(times.items(), plots.LINES, ("-", "--"), strict=False):
                axes.step(np.sort(values) / MILLISECONDS, shares, line, where="post", color=colour, label=label, linewidth=1.2)
            axes.set_title(f"{name}: demerit {demerit(*times.values()) / MILLISECONDS:.3f} ms", fontsize=9)
            axes.set_xlim(0, 1.02 * max(float(np.percentile(values, 99.9)) for values in times.values()) / MILLISECONDS)
            axes.grid(color="#dddddd", linewidth=0.5)
        figure.supxlabel("response time (ms)", fontsize=9)
        figure.supylabel("share of requests (%)", fontsize=9)
        plots.legend(figure, grid[0, 0])
    return figure


def requests_frame(loop: ClosedLoop) -> pd.DataFrame:
    """A row a request: operation, first sector, sectors, and both times (us)."""
    requests = {"operation": np.array(OPERATIONS)[loop.operation], "sector": loop.offset // SECTOR, "sectors": loop.length // SECTOR}
    return pd.DataFrame(requests | {"measured_us": loop.measured / MICROSECONDS, "simulated_us": loop.simulated / MICROSECONDS})


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
PARTS: dict[str, Callable[[HddParameters], dict[str, Any]]] = {
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
    variants = {"whole model": drive} | {part: dataclasses.replace(drive, **change(drive)) for part, change in PARTS.items()}
    models = {part: other for part, other in variants.items() if part == "whole model" or other != drive}
    for number, (part, other) in enumerate(models.items()):
        if progress:
            progress(number, len(models), part)
        loop = run(dataclasses.replace(preset, parameters=other), trace)
        groups = [(name, rows) for name, rows in loop.groups() if ":" not in name]
        yield part, {name: demerit(loop.measured[rows], loop.simulated[rows]) / MILLISECONDS for name, rows in groups}


def ablation_table(demerits: dict[str, dict[str, float]]) -> Table:
    rows = [[part, *figures.values()] for part, figures in demerits.items()]
    return Table(["without", *next(iter(demerits.values()))], rows, digits=3, note="demerit, ms")
