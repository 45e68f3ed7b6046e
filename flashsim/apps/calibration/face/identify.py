"""``flashsim device identify`` and ``fs.identify``: a preset from figures of a drive that is not at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.calibration import drive_figures, figure_files
from flashsim.apps.calibration.face._preset_file import preset_file
from flashsim.apps.calibration.face.calibrate import CalibrationOutcome
from flashsim.apps.calibration.identification import Identification
from flashsim.apps.calibration.identification import identify as fit
from flashsim.core.activity import activity
from flashsim.experiments.presentation.plots import scatter_beside
from flashsim.experiments.presentation.tables import Table, difference, same
from flashsim.experiments.presentation.terminal import Explanation, Part
from flashsim.operations import fields
from flashsim.operations.fields import Name, Names, Size, Target, choice
from flashsim.operations.operation import operation
from flashsim.operations.outcome import PICTURE, Outcome

_SHOWN = (("fitted", False), ("kept back", True))


class IdentificationOutcome(CalibrationOutcome):
    """Figures of a drive beside those of the preset that was fitted to two thirds of them."""

    FILES = (PICTURE,)
    _report = Outcome._report

    def __init__(self, result: Identification) -> None:
        lead = f"{result.preset.name}: {len(result.figures)} figures, {sum(result.kept)} of them kept back, from {result.base}"
        Outcome.__init__(self, result, lead)
        self.preset = result.preset

    def summary(self) -> pd.DataFrame:
        """A row a figure: its load, its value and the drive's, the difference as a share, and whether it was kept back."""
        return pd.DataFrame(self.result.rows())

    def errors(self) -> pd.DataFrame:
        """A row a kind of figures, fitted or kept back: their number, and the median and the largest difference."""
        return pd.concat([pd.DataFrame(self.result.errors(kept)).assign(kept=kept) for _, kept in _SHOWN], ignore_index=True)

    def printout(self) -> Iterator[Part]:
        rows = [row | {"show": figure.show} for row, figure in zip(self.result.rows(), self.result.figures, strict=True) if row["kept"]]
        rows = [row | {name: row["show"](row[name]) for name in ("value", "shown")} for row in rows]
        columns: dict[str, Any] = {"kept back": "load"} | same("figure", "value", "shown") | {"differs by": ("difference", difference)}
        yield from (f"{self.title}\n", Table.of(rows, columns), "")
        columns = {"figures of": "kind", "number": "figures"} | {name: (name, "{:.1%}".format) for name in ("median", "worst")}
        for title, kept in _SHOWN:
            yield from (Table.of(self.result.errors(kept), columns, title=f"differences of figures {title}"), "")
        if estimates := [str(one) for one in self.result.estimates if not one.unknown]:
            yield from (*estimates, "")
        yield from (Explanation(f"{note}.") for note in self.result.notes)
        if self.result.unknown:
            yield Explanation(f"The figures do not tell: {', '.join(self.result.unknown)}.")

    def _draw(self) -> Figure:
        return scatter_beside(self.summary(), "value", "shown", "kept", ("kept back", "fitted"))


@operation
def identify(
    figures: Annotated[Any, Names("A table (CSV or TOML), or fio's JSON or text, beside its logs.", "FILE")],
    *,
    out: Annotated[Any, Target("The preset to write.", "PRESET.toml", required=True)] = None,
    preset: Annotated[str, Name("A flash drive, for what figures do not tell.", "BASE", completes=("presets",))] = "micron-p300",
    capacity: Annotated[Any, Size("Bytes that the host can address; by default the base's.")] = None,
    state: Annotated[
        str, Name("Of the drive before the writes of fio, which does not tell it.", "STATE", parse=choice(*drive_figures.STATES))
    ] = ("steady"),
    seed: fields.Seed = 0,
    force: fields.Force = False,
) -> IdentificationOutcome:
    """Fit the preset of a flash drive to figures of it, and tell how well it shows a third of them, which the fit does not see.

    A table has a row a figure: ``operation`` (read or write), ``order`` (random or sequential), ``size``, ``depth`` or ``rate`` (requests a
    second that arrive), ``state`` (empty, sequential or steady), ``used`` (share of the capacity), ``reads`` (share of a mixed load),
    ``figure`` (iops, bandwidth, mean, p50, p90, p99, p99.9 or write_amplification) and ``value``. Of fio, JSON and the text that it prints
    are read, as pasted. Parameters come with 95 % intervals; those that no figure tells are named.

    Examples::

        flashsim device identify --figures figures.csv --preset micron-p300 --out mine.toml --json mine.json

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.identify("figures.csv", preset="micron-p300").save("mine.toml")  # doctest: +SKIP
    """
    target = preset_file(out, "identified.toml")
    shown = [figure for file in figures for figure in figure_files.read(Path(file), state)]
    name = Path(target).stem
    with activity("fitting") as progress:
        outcome = IdentificationOutcome(fit(preset, name, f"{name}, from figures", shown, capacity, seed, progress))
    if out is not None:
        out.write_text(outcome.text(), encoding="utf-8")
    return outcome
