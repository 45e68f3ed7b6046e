"""``flashsim validate`` and ``fs.compare``: joins by formula, simulation and a real file; a disk's model under measured requests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import cycle
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from algorithms.joins.base import page_format as page_format_of
from flashsim.apps.calibration.face.calibrate import CalibrationOutcome
from flashsim.apps.calibration.session import calibrate
from flashsim.apps.calibration.validation import closed_loop, joins, joins_report
from flashsim.core.activity import activity
from flashsim.core.errors import RefusedError, option
from flashsim.core.units import MIB, MILLISECONDS_A_SECOND, SECONDS
from flashsim.device import presets
from flashsim.execution.drivers import needed_size
from flashsim.experiments.bench.targets import open_target
from flashsim.experiments.presentation.plots import LINES, legend, panels
from flashsim.experiments.presentation.report import Report, Section
from flashsim.experiments.presentation.tables import with_caption
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.replaying.real import RealSettings
from flashsim.experiments.runs.joining import lay_out, memory_pages, open_pair
from flashsim.operations import fields
from flashsim.operations.face._arguments import Table, Types, key
from flashsim.operations.face._arguments import sources as open_sources
from flashsim.operations.face._device_arguments import YesDestroy
from flashsim.operations.face._join_options import JoinChoices, given_options
from flashsim.operations.fields import Count, Duration, Field, Flag, Name, Names, Scale, Size
from flashsim.operations.operation import operation
from flashsim.operations.outcome import REPORT, Outcome

#: Stands for a preset that is fitted to the device first.
CALIBRATED = "calibrated"
#: A calibration uses so much at least, in units of its largest request.
_LEAST, _UNIT = 256 * MIB, 4 * MIB
_PRESET = "Simulated device; calibrated: a preset that is fitted to PATH first."
_JOINS = "Join algorithm: {joins}; or a Python file. May be repeated; by default the four of Haas et al."
_ENGINES = fields.choice("builtin", "fio", "both")
#: Of the phases of a join, from the bottom.
_HATCHES = ("", "//", "..", "xx", "\\\\")


class ComparisonOutcome(Outcome):
    """Joins, and their times by each witness."""

    FILES = (REPORT,)

    def printout(self) -> Iterator[Part]:
        yield from (Explanation(self.title), "", joins_report.table(self.result), "", joins_report.noise_table(self.result), "")
        for name, meaning in joins_report.MEANING:
            yield Explanation(f"{name}: {meaning}")
        yield Explanation(joins_report.WHY)
        yield from ("", next_steps("docs/how-to/validate-joins.md explains the columns", "--out-dir DIR writes a report"))

    def _report(self) -> Report:
        tables = (
            with_caption(joins_report.table(self.result), title="joins"),
            with_caption(joins_report.noise_table(self.result), title="noise"),
        )
        sections = [
            Section("I/O of each join", "Phases are stacked from the bottom, hatched from the second on.", (), {"joins": self._draw()}),
            Section("Phase by phase", tables=tables[:1]),
            Section("How far to trust the real times", tables=tables[1:]),
            Section("What the numbers mean", joins_report.WHY, terms=joins_report.MEANING),
        ]
        totals = self.summary().query("phase == 'total'")
        remarked = [one.algorithm for one in self.result.joins if any(one.remarks)]  # of a bound, or a part, there is no ratio
        known = {"simulated": totals, "formula": totals[~totals["algorithm"].isin(remarked)].dropna(subset="formula_s")}
        figures = [
            (f"{join}: {name} / executed", f"{100 * difference:+.0f} %")
            for name, rows in known.items()
            for join, difference in zip(rows["algorithm"], rows[f"{name}_difference"], strict=True)
        ]
        title = "Four joins by formula, simulation and real device"
        return Report(title, joins_report.conditions(self.result), figures, sections, self.provenance)

    def summary(self) -> pd.DataFrame:
        """A row a join and phase, the total last: I/O seconds by every witness, and by how much two of them differ from the real file."""
        seconds = joins_report.seconds(self.result.joins)
        frame = seconds.infer_objects().rename(columns={name: f"{name.replace(' ', '_')}_s" for name in seconds.columns[3:]})
        frame["formula_s"] = frame["formula_s"].astype(float)
        for name in ("formula", "simulated"):
            frame[f"{name}_difference"] = frame[f"{name}_s"] / frame["executed_s"] - 1
        return frame

    def noise(self) -> pd.DataFrame:
        """A row a join and column of the real file: how far the totals of the repeats lie apart, as a share."""
        rows = [(one.algorithm, name, noise) for one in self.result.joins for name, noise in one.noise().items()]
        return pd.DataFrame(rows, columns=["algorithm", "witness", "noise"])

    def _draw(self) -> Figure:
        """Bars of every witness, a group a join; the phases stand on top of each other."""
        joins = [(one, one.columns()) for one in self.result.joins]
        names = [*joins[0][1]]
        with panels(3.6) as (figure, axes):
            width = 0.8 / len(names)
            for number, name in enumerate(names):
                look: dict[str, Any] = {"color": LINES[number % len(LINES)][0]}
                for group, (_, columns) in enumerate(joins):
                    place, bottom = group + (number - (len(names) - 1) / 2) * width, 0.0
                    for time, hatch in zip((columns[name] or [])[:-1], cycle(_HATCHES), strict=False):
                        look |= {"hatch": hatch, "edgecolor": "white", "linewidth": 0.5}
                        axes.bar(place, MILLISECONDS_A_SECOND * time, 0.9 * width, bottom=bottom, **look)
                        bottom += MILLISECONDS_A_SECOND * time
                axes.bar([0], [0], color=look["color"], label=name)
            axes.set_xticks(range(len(joins)), [f"{one.algorithm}\n({', '.join(one.phases)})" for one, _ in joins])
            axes.set_ylabel("I/O (ms)")
            legend(figure, axes, 3)
        return figure


def _device(value: Any, parameter: str) -> Any:
    if not isinstance(value, CalibrationOutcome) and value != CALIBRATED:
        presets.load(fields.text(value, parameter))
    return value


def _engines(value: Any, parameter: str) -> list[str]:
    engines = [_ENGINES(each, parameter) for each in fields.several(value, parameter)]
    return ["builtin", "fio"] if "both" in engines else engines


@operation
def compare(
    r: Annotated[Table | None, Field("First relation; do2009's customer by default.", "SOURCE", reads=True)] = None,
    s: Annotated[Table | None, Field("Second relation; do2009's orders by default.", "SOURCE", reads=True)] = None,
    on: Annotated[
        str, Field("Join key: one name for both relations, or the name in each.", "COLUMN[=COLUMN]", key)
    ] = "c_custkey=o_custkey",
    *,
    path: Annotated[str | PathLike[str], Name("A block device or a file; a missing file is created.", "PATH", reads=True)],
    device: Annotated[str | CalibrationOutcome, Field(_PRESET, "PRESET|calibrated", _device, ("presets",), python="Or an `fs.calibrate`.")],
    algorithm: Annotated[Any, Names(_JOINS, "NAME", completes=("joins",))] = None,
    scale: Annotated[
        float, Scale("Scale of do2009's customer and orders.", parse=fields.positive("it must be in (0, 1000]", 1000), after_group=True)
    ] = 0.1,
    memory: Annotated[Any, Size("Size of the buffer pool, such as 512KiB.")] = "512KiB",
    types: Types = None,
    page_size: fields.PageSize = "8KiB",
    page_format: fields.PageFormat = None,
    engine: Annotated[Any, Field("Replay engine; by default both, if fio is installed.", "builtin|fio|both", _engines)] = None,
    repeats: Annotated[int, Count("Runs on the real device; the shortest time of each request counts.")] = 5,
    time: Annotated[Any, Duration("Approximate duration of the calibration.", seldom=True)] = "30s",
    allow_write: Annotated[bool, Flag("Permit writes to PATH; its contents are lost.", provenance=False)] = False,
    yes_destroy: YesDestroy = None,
    seed: Annotated[int, Count("Random seed.", parse=fields.seed, seldom=True)] = 0,
    force: fields.Force = False,
    **choices: JoinChoices,
) -> ComparisonOutcome:
    r"""Compare joins on a real device with both models.

    Joins run on the device, their traces are replayed, and simulation and formula are compared with the measured times.

    All times are of I/O alone, phase by phase. The joins write, so --allow-write is needed, and for a file that exists --force. A file
    that is made is removed again.

    Examples::

        flashsim validate joins --path ./joins.bin --device intel-x25e-64gb --scale 0.02 --memory 256KiB --engine builtin --allow-write \
            --repeats 1 --out-dir joins
        flashsim validate joins --path ./joins.bin --device intel-x25e-64gb --scale 0.01 --memory 256KiB --engine builtin --allow-write \
            --repeats 1 --algorithm digest --first hybrid-hash --fetch naive

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.compare("do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey", path="./joins.bin", memory="256KiB",
    ...                   device="intel-x25e-64gb", allow_write=True)  # doctest: +SKIP
    """
    if r is not None and s is not None:
        fields.refuse({"scale": scale != 0.1}, "it is of do2009's relations, but " + option("r") + " and " + option("s") + " name others")
    if isinstance(device, CalibrationOutcome) or device != CALIBRATED:
        fields.refuse({"time": time != 30 * SECONDS, "seed": seed}, "the preset is not calibrated here")
    target, names = Path(path), algorithm or joins.JOINS
    on_pages = page_size, page_format or page_format_of(*names)
    setting = joins_report.JoinsSetting(names, memory_pages(memory, *on_pages), repeats, given_options(choices))
    both = shutil.which("fio") and choices.get("partition") in (None, "traditional")
    engines = engine or (["builtin", "fio"] if both else ["builtin"])
    with activity("joins") as progress:
        sources = (f"do2009:customer@{scale:g}" if r is None else r, f"do2009:orders@{scale:g}" if s is None else s)
        opened = open_sources({"r": sources[0], "s": sources[1]}, types)
        relations = open_pair(opened["r"], opened["s"], on)
        files = (lay_out(relations[0], *on_pages), lay_out(relations[1], *on_pages))
        access = RealSettings("asap", allow_write=allow_write, replace=force, destroy=yes_destroy)
        joins.check(target, files, access, engines)
        simulated = device.preset if isinstance(device, CalibrationOutcome) else None
        if simulated is None and device == CALIBRATED:
            area = max(_LEAST, -(-needed_size(files) // _UNIT) * _UNIT)
            opening = open_target(str(path), area, allow_write=allow_write, replace=force, destroy=yes_destroy, progress=progress)
            with opening as measured:
                simulated = calibrate(measured, CALIBRATED, time=time, write=True, seed=seed, progress=progress).preset
        validation = joins.validate(target, simulated or presets.load(str(device)), files, setting, engines, access, progress)
    return ComparisonOutcome(validation, joins_report.conditions(validation))


class ClosedLoopOutcome(Outcome):
    """A drive's model under the requests of a measured run; `parts`: demerits of the model without each of its parts."""

    FILES = (REPORT,)

    def __init__(self, preset: presets.Preset, trace: Path, loop: closed_loop.ClosedLoop, parts: dict[str, Any]) -> None:
        groups = closed_loop.compare(loop)
        super().__init__(loop, f"{trace.name} on {preset.name}: {closed_loop.headline(groups)}")
        self.preset, self.trace, self.groups, self.parts = preset, trace, groups, parts

    def summary(self) -> pd.DataFrame:
        """A row a group of requests: means of both, and the demerit."""
        return closed_loop.summary_table(self.groups)

    def as_dict(self) -> dict[str, Any]:
        document = {"drive": self.preset.name, "trace": self.trace.name, "demerit_ms": self.groups["demerit"].iloc[0]}
        document |= {"by_class": closed_loop.by_class(self.groups)}
        document |= {"groups": closed_loop.as_json(self.groups), "notes": list(self.preset.notes)}
        return document | ({"ablation_demerit_ms": self.parts} if self.parts else {})

    def printout(self) -> Iterator[Part]:
        yield from (f"{self.title}\n", closed_loop.summary_table(self.groups), "", closed_loop.percentile_table(self.groups))
        if self.parts:
            yield from ("", closed_loop.ablation_table(self.parts))
        yield from (f"note: {note}" for note in self.preset.notes)
        yield from ("", next_steps("--out-dir DIR draws the distributions", "docs/explanation/hdd_validation.md explains the demerit"))

    def _report(self) -> Report:
        """Distributions, tables, and every request with both times (CSV)."""
        pictures = {"response_times": closed_loop.cumulative(self.result)}
        groups, whole = self.groups, self.groups.iloc[0]
        tables = with_caption(self.summary(), title="summary"), with_caption(closed_loop.percentile_table(groups), title="percentiles")
        sections = [
            Section("Response times", "Measured drawn solid, simulated dashed.", (), pictures),
            Section("Means and errors", tables=tables[:1]),
            Section("Percentiles", tables=tables[1:]),
            Section("Without each part of the model", tables=[closed_loop.ablation_table(self.parts)] if self.parts else []),
        ]
        figures = [("demerit", f"{whole['demerit']:.3f} ms"), ("of the mean", f"{100 * whole['demerit'] / whole['measured_mean']:.2f} %")]
        figures += [(f"mean error, {name}", f"{100 * error:+.2f} %") for name, error in groups["mean_error"].head(3).items()]
        lead = "The requests that were measured on the drive, on its model: a closed loop."
        title = f"{self.trace.name} on {self.preset.name}"
        return Report(title, lead, figures, sections, self.provenance, {"requests": closed_loop.requests_frame(self.result)})


@operation
def validate_hdd(
    *,
    drive: Annotated[str, Name("A preset's name, a TOML file, or DiskSim's FILE.parv.", "PRESET", completes=("presets",))],
    trace: Annotated[str, Name("A closed-loop trace with measured times, such as DiskSim's validation traces.", "FILE", reads=True)],
    ablate: Annotated[bool, Flag("Ablation: also run the model without each of its parts in turn.")] = False,
) -> ClosedLoopOutcome:
    """Compare a disk model with measured times.

    A closed loop: the next request comes its think time after the simulated completion. Printed are means, percentiles and the demerit
    figure (the root mean square of the horizontal distance between both cumulative distributions).

    Examples::

        flashsim validate hdd --drive toshiba-5400-320gb --trace measured.trace
        flashsim validate hdd --drive toshiba-5400-320gb --trace measured.trace --json v.json --out-dir validated
    """
    preset, measurements = presets.load(drive), Path(trace)
    if preset.kind != "hdd":
        raise RefusedError(f"drive: {preset.name} is not a hard disk")
    with activity("replaying") as progress:
        loop = closed_loop.run(preset, measurements, progress=progress)
        parts = dict(closed_loop.ablate(preset, measurements, progress)) if ablate else {}
    return ClosedLoopOutcome(preset, measurements, loop, parts)
