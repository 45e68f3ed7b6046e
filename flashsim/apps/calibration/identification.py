"""A flash drive from its figures: another drive's preset is fitted to two thirds of them, and judged by the third that it has not seen."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flashsim.apps.calibration.cells import Estimate
from flashsim.apps.calibration.data_sheet import document_of
from flashsim.apps.calibration.drive_figures import DriveFigure
from flashsim.apps.calibration.drive_fit import PARAMETERS, DriveFit, drive_with
from flashsim.apps.calibration.figure_runs import simulated_figures
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.preset_files import as_toml
from flashsim.core.protocols import Progress
from flashsim.core.rng import generator
from flashsim.device import presets
from flashsim.device.presets import Preset

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
        """A row a kind of figures: their number, and the median and the largest difference, of those kept back or those fitted."""
        groups = dict[str, list[float]]()
        for row in self.rows():
            if row["kept"] == kept:
                groups.setdefault(row["kind"], []).append(abs(row["difference"]))
        return [{"kind": kind, "figures": len(each), "median": float(np.median(each)), "worst": max(each)} for kind, each in groups.items()]

    @property
    def notes(self) -> list[str]:
        """Influences beside the drive, such as the page cache, and the number of figures that each affects."""
        counts = Counter(each.note for each in self.figures if each.note)
        return [f"{count} of {len(self.figures)} figures are {note}" for note, count in counts.items()]

    @property
    def unknown(self) -> list[str]:
        identified = {one.name for one in self.estimates if not one.unknown}
        return [name for name in PARAMETERS if name not in identified]

    def as_dict(self) -> dict[str, Any]:
        parameters = [vars(one) | {"unknown": one.unknown} for one in self.estimates]
        errors = {"fitted": self.errors(False), "kept": self.errors(True)}
        return {
            "preset": document_of(self.preset),
            "figures": self.rows(),
            "errors": errors,
            "estimates": parameters,
            "unknown": self.unknown,
        }

    def text(self) -> str:
        comments = [f"Fitted to {self.kept.count(False)} figures, from {self.base}; {self.kept.count(True)} others were kept back."]
        comments += [f"Kept back, {each['kind']}: median {each['median']:.1%} off, worst {each['worst']:.1%}" for each in self.errors(True)]
        return as_toml(document_of(self.preset), comments + self.notes)


def hold_back(figures: Sequence[DriveFigure], seed: int) -> list[bool]:
    """Every third figure, drawn so that each kind loses a third.

    Raises
    ------
    InvalidParameterError
        There are fewer than `LEAST_FIGURES`.
    """
    if len(figures) < LEAST_FIGURES:
        raise InvalidParameterError("figures", len(figures), f"a third is kept back, and at least {LEAST_FIGURES} are needed")
    draws = generator(seed, "kept back").random(len(figures))
    order = sorted(range(len(figures)), key=lambda place: (figures[place].kind, draws[place]))
    kept = set(order[2::3])
    return [place in kept for place in range(len(figures))]


def identify(
    base: str, name: str, title: str, figures: Sequence[DriveFigure], capacity: int | None, seed: int, progress: Progress | None = None
) -> Identification:
    """Fit a drive to figures, those excepted that are kept back.

    Raises
    ------
    RefusedError, InvalidParameterError
        The base is no flash drive, or has pages of different times; there are too few figures.
    """
    source = presets.load(base)
    flash = source.flash
    if flash is None or flash.read_pages or flash.program_pages:
        what = "is no flash drive" if flash is None else "has pages with times of their own, which figures do not tell"
        raise RefusedError(f"preset: {source.name} {what}")
    flash = replace(  # no figure tells the host's share of a latency apart, and no drive could be faster than the base's
        flash, read_submission=0, read_latency=flash.read_latency + flash.read_submission,
        write_submission=0, write_latency=flash.write_latency + flash.write_submission,
    )  # fmt: skip
    if capacity:
        flash = replace(
            flash, capacity=capacity, blocks_per_plane=-(-flash.blocks_per_plane * capacity // flash.capacity) + flash.gc_reserve
        )
    kept = hold_back(figures, seed)
    fit = DriveFit(flash, [each for each, away in zip(figures, kept, strict=True) if not away], seed, progress)
    best, parameters = fit.run()
    drive = drive_with(flash, best.structure, best.values, exact=True)
    origins = {
        PARAMETERS[one.name][0]: "a guess: the figures do not tell it" if one.unknown else f"identified ({one})" for one in parameters
    }
    origins |= {"capacity": "as given"} if capacity else {}
    others = ", ".join(f"{channels} of {dies}" for channels, dies in fit.structures)
    how = (
        f"a guess: figures are shown about as well by channels and dies of {others}" if len(fit.structures) > 1 else "identified: best fit"
    )
    origins |= dict.fromkeys(("channels", "dies_per_package"), how) if fit.reads else {}
    origins |= {"write_buffer": "identified: best fit of writes"} if drive.write_buffer != flash.write_buffer else {}
    origins |= {f"{kind}_submission": f"in {kind}_latency" for kind in ("read", "write") if f"{kind}_submission" in source.sources}
    sources = dict.fromkeys(source.sources, f"as {source.name}: the figures do not tell it") | origins
    preset = Preset(name, "ssd", title, drive, sources)
    return Identification(preset, source.name, figures, kept, simulated_figures(preset, figures, seed + 1, _FINAL).tolist(), parameters)
