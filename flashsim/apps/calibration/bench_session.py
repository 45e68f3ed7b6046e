"""One benchmark session: a device that a command line names is measured, and its tables and a page with a picture a micro-benchmark shown.

For uFLIP these have response times over a parameter, a line a pattern; for AIOMicrobench bandwidth and latency over I/O size, a column or a
line an outstanding level (Shin et al., figure 2).
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure as Drawing
from matplotlib.scale import SymmetricalLogScale

from flashsim.apps.calibration.nominal_figures import NominalFigure, figures
from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError, option
from flashsim.core.protocols import Progress
from flashsim.core.request import SECTOR
from flashsim.core.units import GIB, KIB, MB, MICROSECONDS, MILLISECONDS
from flashsim.device import presets
from flashsim.device.access import is_path
from flashsim.device.aio import check_outstanding
from flashsim.device.device import Device
from flashsim.device.figures import show
from flashsim.device.file import RealDevice
from flashsim.experiments.bench import aio, aio_report, targets, uflip
from flashsim.experiments.presentation import plots
from flashsim.experiments.presentation.tables import Entry, Table, difference, same
from flashsim.experiments.presentation.timeline import Timeline
from flashsim.experiments.replaying import preconditioning
from traces.workload.base import WorkloadSpace

#: Default sizes: of a simulated drive, so that its state fits into memory, of a real one that is written, and of a quick run.
_SIMULATED, _WRITTEN, _QUICK = 64 * GIB, GIB, GIB
_UNIT = 32 * KIB
_COUNT, _QUICK_COUNT = 1024, 256

#: Begins the timeline of a device.
Draw = Callable[[Device], AbstractContextManager[Timeline]]


@dataclass(frozen=True)
class Options:
    """Choices of a user; None and 0 stand for the defaults."""

    only: Sequence[str] = ()
    size: int | None = None
    count: int | None = None
    quick: bool = False
    allow_write: bool = False
    replace: bool = False
    precondition: str | None = None
    set: str = "uflip"
    sizes: Sequence[int] = ()
    levels: Sequence[int] = ()


@dataclass(frozen=True)
class BenchSession:
    """The measurements: nominal `figures`, and `runs` with the columns `flashsim.experiments.bench.uflip.COLUMNS`."""

    device: str
    size: int
    state: str
    pause: int
    figures: list[NominalFigure]
    runs: pd.DataFrame
    set: str = "uflip"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; times are ns and rates bytes a second."""
        return vars(self) | {"figures": [one._asdict() for one in self.figures], "runs": self.runs.to_dict("records")}


def bench(device: str, options: Options, method: uflip.Method, progress: Progress | None = None, draw: Draw | None = None) -> BenchSession:
    """Measure a preset (its nominal figures as well) or a real file or block device (only reading, unless writing is allowed).

    `draw` begins a timeline of what is measured on a simulated drive.
    """
    grid = _grid(options)
    if is_path(device):
        if options.precondition:
            raise RefusedError(f"precondition: {device} is not a preset; only simulated drives are put into a state at once")
        if draw:
            raise RefusedError(f"timeline: {device} is not a preset; only simulated drives show their internal activity")
        return _real(Path(device), options, grid, method, progress)
    preset = presets.load(device)
    if not options.precondition or tuple(options.only) != ("read",):
        presets.refuse_zoned(preset, option("set") + " aio " + option("only") + " read " + option("precondition") + " sequential reads it")
    if options.precondition:
        preconditioning.parse_state(options.precondition, preset)  # refuse before anything is compiled
    drive = Device(preset)
    size = options.size or min(drive.capacity, _QUICK if options.quick else aio.FILE if grid else _SIMULATED)
    with draw(drive) if draw else nullcontext() as timeline:
        enforce = partial(preconditioning.bring_into, drive, options.precondition, progress=progress) if options.precondition else None
        target = targets.SimulatedTarget(drive, _whole(size), timeline, enforce)
        state, pause, runs = _run_set(target, options, grid, method, progress, write=True)
    nominal = [] if options.only or grid else figures(preset, seed=method.seed)
    return BenchSession(preset.name, target.size, state, pause, nominal, runs, options.set)


def _real(path: Path, options: Options, grid: aio.Grid | None, method: uflip.Method, progress: Progress | None) -> BenchSession:
    readable = not options.allow_write and (path.is_file() or path.is_block_device())
    size = _whole(options.size or (targets.size_of(path) if readable else _WRITTEN))
    if grid:  # refuse before anything is opened
        grid.check(size, SECTOR)
        check_outstanding(grid.levels[-1])
    else:
        _setting(size, SECTOR, options.allow_write, options)
    may_write = options.allow_write
    with RealDevice(path, size, allow_write=may_write, replace=options.replace, read_only=not may_write) as real:
        target = targets.RealTarget(real, size)
        state, pause, runs = _run_set(target, options, grid, method, progress, write=may_write)
    return BenchSession(str(path), target.size, state, pause, [], runs, options.set)


def _grid(options: Options) -> aio.Grid | None:
    """The grid of AIOMicrobench, None for uFLIP; names that the set does not have are refused."""
    if options.set not in aio.SETS:
        raise UnknownNameError("set", options.set, aio.SETS)
    if options.set == "aio":
        aio.operations(options.only)
        return aio.Grid.of(options.sizes, options.levels, options.count, quick=options.quick)
    uflip.names(options.only)
    for name in ("sizes", "levels"):
        if getattr(options, name):
            raise RefusedError(f"{name}: the set uflip has its own; only aio lets them be chosen")
    return None


def _run_set(
    target: targets.Target, options: Options, grid: aio.Grid | None, method: uflip.Method, progress: Progress | None, *, write: bool
) -> tuple[str, int, pd.DataFrame]:
    if grid:
        return aio.run_all(target, grid, method, options.only, progress, write=write)
    return uflip.run_all(target, _setting(target.size, target.least, write, options), method, options.only, progress)


def _whole(size: int) -> int:
    return size // _UNIT * _UNIT or size


def _setting(size: int, least: int, write: bool, options: Options) -> WorkloadSpace:
    count = options.count or (_QUICK_COUNT if options.quick else _COUNT)
    if count < 0:
        raise InvalidParameterError("count", count, "it must be at least 1")
    return WorkloadSpace(size, count=count, least=least, write=write, quick=options.quick)


#: More names below an axis would run into each other.
_MOST_TICKS = 8


def figures_table(figures: Sequence[NominalFigure]) -> Table:
    rows = [
        [name, show(name, measured), show(name, nominal) if nominal else None, None if differs is None else difference(differs)]
        for name, measured, nominal, _, differs in figures
    ]
    return Table(["figure", "measured", "cited", "difference"], rows, "Below the block layer, on a fresh drive")


def tables_of(runs: pd.DataFrame, style: str = "uflip") -> dict[str, list[Table]]:
    """Tables of each micro-benchmark, by its name."""
    return {str(name): STYLES[style].tables(own) for name, own in runs.groupby("benchmark", sort=False)}


def _uflip_tables(runs: pd.DataFrame) -> list[Table]:
    """The table of a micro-benchmark; times in ms."""
    texts = [uflip.shown_value(unit, value) for unit, value in zip(runs["unit"], runs["value"], strict=True)]
    times = {"min": "minimum", "mean": "mean", "max": "maximum", "stddev": "deviation", "p99": "p99"}
    columns = same("pattern") | {runs["parameter"].iloc[0]: "shown"} | {f"{head} ms": (name, MILLISECONDS) for head, name in times.items()}
    records = runs.assign(shown=texts).to_dict("records")
    return [Table.of(records, columns | {"MB/s": ("bandwidth", MB)} | same("ignored"), title=runs["benchmark"].iloc[0], digits=3)]


def _uflip_picture(runs: pd.DataFrame) -> Drawing:
    """Mean response times over the parameter, a line a pattern."""
    series = {str(pattern): (own["value"], own["mean"] / MICROSECONDS) for pattern, own in runs.groupby("pattern", sort=False)}
    values = sorted(set(runs["value"]))
    scale: Any = plots.BINARY if len(values) > 1 else "linear"
    if values[0] <= 0:
        least = min((value for value in values if value > 0), default=1)
        scale = SymmetricalLogScale(None, base=2, linthresh=max(1, least))
    figure = plots.lines(series, names=6, xscale=scale, yscale="log", xlabel=runs["parameter"].iloc[0], ylabel="mean response time (µs)")
    places = values[:: -(-len(values) // _MOST_TICKS)]
    plots.name_ticks(figure, {value: uflip.shown_value(runs["unit"].iloc[0], value) for value in places})
    return figure


def _uflip_overview(runs: pd.DataFrame) -> Table:
    """The spread of mean times over each micro-benchmark's parameter, for the pattern where it is largest."""
    rows: list[list[Entry]] = []
    for name, own in runs.groupby("benchmark", sort=False):
        spreads = []
        for pattern, each in own.groupby("pattern", sort=False):
            by_mean = each.sort_values("mean", kind="stable")
            ends = [by_mean[["mean", "unit", "value"]].iloc[end].tolist() for end in (0, -1)]
            spreads.append((ends[1][0] / ends[0][0], pattern, ends))
        ratio, pattern, ends = max(spreads, key=lambda spread: spread[0])
        cells = [part for mean, unit, value in ends for part in (mean / MILLISECONDS, uflip.shown_value(unit, value))]
        rows.append([str(name), str(pattern), own["parameter"].iloc[0], *cells, ratio])
    rows.sort(key=lambda row: -float(row[-1] or 0))
    header = ["micro-benchmark", "pattern", "parameter", "least mean ms", "at", "most mean ms", "at", "most / least"]
    return Table(header, rows, "overview", note="of each micro-benchmark the pattern whose mean times lie furthest apart")


class Style(NamedTuple):
    """Presentation of a set of micro-benchmarks: its title; tables and picture of one; and the table of what matters."""

    title: str
    tables: Callable[[pd.DataFrame], list[Table]]
    picture: Callable[[pd.DataFrame], Drawing]
    overview: Callable[[pd.DataFrame], Table]


#: Styles by the set's name.
STYLES = {
    "uflip": Style("uFLIP", _uflip_tables, _uflip_picture, _uflip_overview),
    "aio": Style("AIOMicrobench", aio_report.tables_of, aio_report.picture_of, aio_report.overview),
}
