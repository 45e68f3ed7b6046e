"""A flash drive from its figures, or from a table of what it shows under load.

Another drive's preset is fitted to two thirds of them, and judged by the third that it has not seen.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from flashsim.apps.calibration import nominal_figures
from flashsim.apps.calibration.cells import Estimate
from flashsim.apps.calibration.data_sheet import document_of, with_cache
from flashsim.apps.calibration.drive_figures import CACHE_FULL, SLC_CACHE, DriveFigure
from flashsim.apps.calibration.drive_fit import DriveFit
from flashsim.apps.calibration.drive_values import PARAMETERS, drive_with, parameters_of
from flashsim.apps.calibration.figure_runs import simulated_figures
from flashsim.apps.calibration.load_fit import FACTORS, LEAST_ROWS, LoadFit, bases, capacity_of, factors_of
from flashsim.apps.calibration.validation.under_load import LOAD, LoadRow
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.preset_files import as_toml
from flashsim.core.protocols import Progress
from flashsim.core.request import OPERATIONS, READ, WRITE
from flashsim.core.rng import generator
from flashsim.core.units import MICROSECONDS
from flashsim.device import presets
from flashsim.device.presets import Preset
from flashsim.experiments.runs.jobs import Settings
from flashsim.ssd.parameters import SsdParameters

#: Requests of a load of the final drive.
_FINAL = 20_000
#: Figures that are needed.
LEAST_FIGURES = 6


@dataclass(frozen=True)
class Identification:
    """A drive that was fitted to figures."""

    preset: Preset
    #: Preset that it comes from.
    base: str
    #: Figures, whether each was kept back from the fit, and as the fitted drive shows them.
    figures: Sequence[DriveFigure]
    kept: Sequence[bool]
    measured: Sequence[float]
    estimates: Sequence[Estimate]
    #: What could be fitted, with figures that tell it.
    parameters: Mapping[str, str]

    def rows(self) -> list[dict[str, Any]]:
        """A row a figure: the load, the value, as the drive shows it, the difference as a share, and whether the fit did not see it."""
        return [
            {
                "load": str(each.load), "figure": each.name, "kind": each.kind, "value": each.value, "shown": value,
                "difference": value / each.value - 1, "kept": kept, "note": each.note,
            }
            for each, kept, value in zip(self.figures, self.kept, self.measured, strict=True)
        ]  # fmt: skip

    def errors(self, kept: bool) -> list[dict[str, Any]]:
        """One row per kind of figures, kept back or fitted: their number, the median and the largest difference, and a bound.

        Nine of ten further figures of the kind are within the bound of those that were kept back.  Differences of fitted figures bound
        nothing.
        """
        groups = dict[str, list[float]]()
        for row in self.rows():
            if row["kept"] == kept:
                groups.setdefault(row["kind"], []).append(abs(row["difference"]))
        return [
            {
                "kind": kind,
                "figures": len(each),
                "median": float(np.median(each)),
                "worst": max(each),
                "bound": bound(each) if kept else None,
            }
            for kind, each in groups.items()
        ]

    @property
    def notes(self) -> list[str]:
        """Influences beside the drive, such as the page cache, and the number of figures that each affects."""
        counts = Counter(each.note for each in self.figures if each.note)
        return [f"{count} of {len(self.figures)} figures are {note}" for note, count in counts.items()]

    @property
    def unknown(self) -> list[str]:
        identified = {one.name for one in self.estimates if not one.unknown}
        return [name for name in self.parameters if name not in identified]

    @property
    def telling(self) -> list[str]:
        """Figures that would tell what is unknown."""
        return [f"{name}: {self.parameters[name]}" for name in self.unknown]

    def as_dict(self) -> dict[str, Any]:
        parameters = [vars(one) | {"unknown": one.unknown} for one in self.estimates]
        errors = {"fitted": self.errors(False), "kept": self.errors(True)}
        return {
            "preset": document_of(self.preset),
            "figures": self.rows(),
            "errors": errors,
            "estimates": parameters,
            "unknown": self.unknown,
            "telling": self.telling,
        }

    def text(self) -> str:
        comments = [f"Fitted to {self.kept.count(False)} figures, from {self.base}; {self.kept.count(True)} others were kept back."]
        comments += [
            f"Kept back, {each['kind']}: median {each['median']:.1%} off, worst {each['worst']:.1%}; nine of ten within {each['bound']:.1%}"
            for each in self.errors(True)
        ]
        return as_toml(document_of(self.preset), comments + self.notes)


def bound(differences: Sequence[float]) -> float:
    """The bound of nine of ten further differences: Student's t times the root mean square of these, and by the share of one more of them.

    That share is beyond what normal differences ask for: figures of one kind are not known equally well.
    """
    return float(student.ppf(0.95, len(differences)) * np.sqrt(np.mean(np.square(differences)) * (1 + 1 / len(differences))))


def _changes(source: Preset, drive: SsdParameters) -> dict[str, str]:
    """A source for each value that is no longer the base's: what has no source is not written to a preset's file."""
    names = (each.name for each in fields(drive))
    return {name: "follows from what was identified" for name in names if getattr(drive, name) != getattr(source.parameters, name)}


def hold_back(figures: Sequence[DriveFigure], seed: int) -> list[bool]:
    """Every third figure, drawn so that each kind loses a third; one that was measured twice is kept back twice or not at all.

    Raises
    ------
    InvalidParameterError
        There are fewer than `LEAST_FIGURES`.
    """
    if len(figures) < LEAST_FIGURES:
        raise InvalidParameterError("figures", len(figures), f"a third is kept back, and at least {LEAST_FIGURES} are needed")
    draws, first = generator(seed, "kept back").random(len(figures)), dict[tuple[Any, str], int]()
    places = [first.setdefault((each.load, each.name), place) for place, each in enumerate(figures)]
    kept = set(sorted(first.values(), key=lambda place: (figures[place].kind, draws[place]))[2::3])
    return [place in kept for place in places]


def identify(
    base: str, name: str, title: str, figures: Sequence[DriveFigure], capacity: int | None, seed: int, progress: Progress | None = None
) -> Identification:
    """Fit a drive to figures, those excepted that are kept back and judge it; then, for the preset, to all of them.

    Raises
    ------
    RefusedError, InvalidParameterError
        The base is no single flash drive; there are too few figures.
    """
    source = presets.load(base)
    flash = source.flash
    if flash is None or source.array is not None:
        raise RefusedError(f"preset: {source.name} is {'several drives' if flash else 'not a flash drive'}")
    origins = {"capacity": "as given"} if capacity else {}
    if capacity:
        flash = replace(
            flash, capacity=capacity, blocks_per_plane=-(-flash.blocks_per_plane * capacity // flash.capacity) + flash.gc_reserve
        )
    cliffs, levels, others = _of_cache(figures)
    cached, reasons, _ = with_cache(replace(source, parameters=flash), round(cliffs[0].value) if cliffs else None, None)
    if levels and not (cached.flash and cached.flash.slc_cache):
        raise RefusedError(f"figures: {SLC_CACHE} is needed, since {source.name} has no SLC cache")
    origins |= dict.fromkeys(reasons, "identified: where the rate of writes falls")
    result = _fit(cached, replace(source, name=name, title=title), others, origins, seed, progress)
    return _past_cache(result, cliffs, levels, progress) if cliffs or levels else result


def _fit(
    base: Preset, source: Preset, figures: Sequence[DriveFigure], reasons: Mapping[str, str], seed: int, progress: Progress | None
) -> Identification:
    """A drive of the base's mechanisms that was fitted to figures; name, title and the sources of what is not fitted are `source`'s."""
    flash = base.flash
    assert flash is not None
    kept = hold_back(figures, seed)
    fit = DriveFit(flash, [each for each, away in zip(figures, kept, strict=True) if not away], seed, progress)
    first = fit.run()
    judged = replace(source, parameters=drive_with(flash, first.structure, first.values, exact=True))
    measured = simulated_figures(judged, figures, seed + 1, _FINAL).tolist()
    best, parameters = fit.run_on([each for each, away in zip(figures, kept, strict=True) if away])
    drive = drive_with(flash, best.structure, best.values, exact=True)
    origins = {
        PARAMETERS[one.name][0]: "a guess: the figures do not tell it" if one.unknown else f"identified ({one})" for one in parameters
    }
    others = ", ".join(f"{channels} of {dies}" for channels, dies in fit.structures)
    how = (
        f"a guess: figures are shown about as well by channels and dies of {others}" if len(fit.structures) > 1 else "identified: best fit"
    )
    origins |= dict.fromkeys(("channels", "dies_per_package"), how) if fit.reads else {}
    origins |= {"write_buffer": "identified: best fit of writes"} if drive.write_buffer != flash.write_buffer else {}
    sources = dict.fromkeys(source.sources, f"as {base.name}: the figures do not tell it") | _changes(source, drive) | origins | {**reasons}
    preset, tells = Preset(source.name, "ssd", source.title, drive, sources), {each: PARAMETERS[each][3] for each in parameters_of(flash)}
    return Identification(preset, base.name, figures, kept, measured, parameters, tells)


def _past_cache(
    result: Identification, cliffs: Sequence[DriveFigure], levels: Sequence[DriveFigure], progress: Progress | None
) -> Identification:
    """The drive with figures of its SLC cache, whose rate past it tells the time of a program unless a steady state did: then it judges."""
    is_judge = any(each.load.state == "steady" for each in result.figures)
    level = round(levels[0].value) if levels and not is_judge else None
    preset, more, shown = with_cache(result.preset, None, level, progress)
    shown = shown or (nominal_figures.figures(preset, ["sequential_write_full"]) if levels else [])
    assert preset.flash is not None
    sources = _changes(result.preset, preset.flash) | dict.fromkeys(more, "identified: the rate past the SLC cache")
    return replace(
        result, preset=replace(result.preset, parameters=preset.flash, sources=result.preset.sources | sources),
        figures=[*result.figures, *cliffs, *levels], kept=[*result.kept, *(False for _ in cliffs), *(is_judge for _ in levels)],
        measured=[*result.measured, *(float(preset.flash.slc_cache) for _ in cliffs), *(shown[0].measured for _ in levels)],
    )  # fmt: skip


def _of_cache(figures: Sequence[DriveFigure]) -> tuple[list[DriveFigure], list[DriveFigure], list[DriveFigure]]:
    """The size of an SLC cache, the rate past it (one of each at most), and all other figures.

    Raises
    ------
    InvalidParameterError
        There are several of one.
    """
    cliffs = [each for each in figures if each.name == SLC_CACHE]
    levels = [each for each in figures if each.load.state == CACHE_FULL]
    for name, each in ((SLC_CACHE, cliffs), (CACHE_FULL, levels)):
        if len(each) > 1:
            raise InvalidParameterError("figures", f"{len(each)} of {name}", "one is needed")
    return cliffs, levels, [each for each in figures if each not in cliffs and each not in levels]


@dataclass(frozen=True)
class RowLoad:
    """The load of a row of a table under load, as its probe meets it."""

    #: READ or WRITE; requests a second of the background.
    operation: int
    background: float

    def __str__(self) -> str:
        return f"{OPERATIONS[self.operation]} beside {self.background:,.0f}/s"


@dataclass(frozen=True)
class RowFigure(DriveFigure):
    """A figure of a row of a table under load."""

    @property
    def kind(self) -> str:
        return "rate under load" if self.name == "iops" else f"{OPERATIONS[self.load.operation]} {self.name} under load"


def _figures_of(row: LoadRow, values: Mapping[str, float]) -> list[RowFigure]:
    """Figures of a row that `values` has (a row's, or a simulated drive's), by the row's columns."""
    result = list[RowFigure]()
    for column in row.values:
        if column not in LOAD:
            kind, _, name = column.removesuffix("_us").partition("_")
            load: Any = RowLoad(WRITE if kind == "write" else READ, row.values["background_per_s"])
            is_rate = column == "achieved_per_s"
            result.append(RowFigure(load, "iops" if is_rate else name, values[column] * (1 if is_rate else MICROSECONDS)))
    return result


def _load_of(row: LoadRow) -> tuple[float, ...]:
    return tuple(row.values[name] for name in LOAD)


def identify_under_load(
    base: str | None,
    name: str,
    title: str,
    rows: Sequence[LoadRow],
    capacity: int | None,
    settings: Settings,
    progress: Progress | None = None,
) -> Identification:
    """Fit a drive to rows of a table under load, every third of which, by its rate, is kept back; then, for the preset, to all of them.

    The base is the one of several presets that shows the rows best, unless it is given.

    Raises
    ------
    RefusedError, InvalidParameterError
        The base has no mechanisms under load; there are too few rows, or they differ in capacity.
    """
    if len(rows) < LEAST_ROWS:
        raise InvalidParameterError("figures", len(rows), f"at least {LEAST_ROWS} rows of one drive are needed")
    if base and base not in bases():
        raise RefusedError(f"preset: {base} does not say what interrupts its programs, as {', '.join(bases())} do")
    order = sorted(rows, key=lambda row: row.values["background_per_s"])
    loads = list(dict.fromkeys(_load_of(row) for row in order))  # one that was measured twice is kept back twice or not at all
    kept = [loads.index(_load_of(row)) % 3 == 1 for row in order]
    fit = LoadFit([base] if base else bases(), capacity_of(order), settings, progress)
    first, factors = fit.run([row for row, away in zip(order, kept, strict=True) if not away])
    shown = fit.show(order, first, factors)
    factors = fit.fit_all(order, first, factors)
    estimates = fit.intervals(order, first, factors)
    source, drive = presets.load(first.name), first.flash(factors)
    factored = {field: one for one in estimates for field in FACTORS[one.name][0]}
    origins = {
        field: "a guess: the rows do not tell it" if one.unknown else f"identified ({one.name}: {one.value:.3g} times {source.name}'s)"
        for field, one in factored.items()
    }
    origins |= {"capacity": "as given" if capacity else "the part in use", "channels": "identified: the best of three numbers of dies"}
    sources = dict.fromkeys(source.sources, f"as {source.name}: the rows do not tell it") | _changes(source, drive) | origins
    pairs = [(figure, away) for row, away in zip(order, kept, strict=True) for figure in _figures_of(row, row.values)]
    measured = [figure.value for row, values in zip(order, shown, strict=True) for figure in _figures_of(row, values)]
    preset = Preset(name, "ssd", title, replace(drive, capacity=capacity or drive.capacity), sources)
    figures, away = [each for each, _ in pairs], [each for _, each in pairs]
    return Identification(preset, source.name, figures, away, measured, estimates, {each: FACTORS[each][3] for each in factors_of(first)})
