"""``flashsim device identify`` and ``fs.identify``: a preset from figures of a drive that is not at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.calibration import drive_figures, figure_files
from flashsim.apps.calibration.face._preset_file import preset_file
from flashsim.apps.calibration.face.calibrate import CalibrationOutcome
from flashsim.apps.calibration.identification import Identification, identify_under_load
from flashsim.apps.calibration.identification import identify as fit
from flashsim.apps.calibration.validation import random_reads, under_load
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, UnknownNameError, option
from flashsim.experiments.presentation.plots import scatter_beside
from flashsim.experiments.presentation.tables import Table, difference, same
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.runs.jobs import Settings
from flashsim.operations import fields
from flashsim.operations.fields import Name, Names, Size, Target, choice
from flashsim.operations.operation import operation
from flashsim.operations.outcome import PICTURE, Outcome

_SHOWN = (("fitted", False), ("kept back", True))
#: The drive that is changed, by default, and for random reads through an NVMe queue.
_BASE, _NVME_BASE = "micron-p300", "samsung-990-pro-2tb"


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
        for title, kept in _SHOWN:
            columns = {"figures of": "kind", "number": "figures"} | {name: (name, "{:.1%}".format) for name in ("median", "worst")}
            columns |= {"nine of ten within": ("bound", "{:.1%}".format)} if kept else {}
            yield from (Table.of(self.result.errors(kept), columns, title=f"differences of figures {title}"), "")
        if estimates := [str(one) for one in self.result.estimates if not one.unknown]:
            yield from (*estimates, "")
        yield from (Explanation(f"{note}.") for note in self.result.notes)
        if self.result.unknown:
            yield Explanation(f"The figures do not tell: {', '.join(self.result.unknown)}.")
        if self.result.telling:
            yield Explanation(f"These would: {'; '.join(self.result.telling)}.")
        yield from ("", next_steps("flashsim device show FILE.toml shows the preset", "--device FILE.toml takes it"))

    def _draw(self) -> Figure:
        return scatter_beside(self.summary(), "value", "shown", "kept", ("kept back", "fitted"))


def _rows_of(file: Path, drive: str | None) -> list[under_load.LoadRow]:
    """Rows of one drive of a table under load."""
    rows = under_load.read(file)
    drives = list(dict.fromkeys(row.drive for row in rows))
    if drive is not None and drive not in drives:
        raise UnknownNameError("drive", drive, drives)
    if drive is None and len(drives) > 1:
        raise InvalidParameterError("figures", f"{len(drives)} drives", "name one of them with " + option("drive"))
    return [row for row in rows if row.drive == (drive or drives[0])]


@operation
def identify(
    figures: Annotated[Any, Names("Measured figures: a table (CSV or TOML), or fio's JSON or text output.", "FILE")],
    *,
    out: Annotated[Any, Target("Target file of the preset.", "PRESET.toml", required=True)] = None,
    preset: Annotated[
        str | None,
        Name("Base preset: parameters that no figure determines are copied from it.", "BASE", completes=("presets",)),
    ] = None,
    drive: Annotated[str | None, Name("Drive in a table of loads; by default the only one.", "NAME")] = None,
    engine: Annotated[str | None, Name("I/O engine in a table of random reads; by default the only one.", "NAME")] = None,
    capacity: Annotated[Any, Size("Capacity that the host can address; by default that of the base preset.")] = None,
    state: Annotated[
        str,
        Name(
            "State of the drive before the writes of fio, whose output does not contain it.",
            "STATE",
            parse=choice(*drive_figures.STATES[:-1]),
        ),
    ] = ("steady"),
    seed: fields.Seed = 0,
    jobs: fields.Jobs = None,
    force: fields.Force = False,
) -> IdentificationOutcome:
    """Fit a preset to published figures or fio output.

    A third of the figures is held out to test the fit.

    A table of figures has one per row: ``operation`` (read or write), ``order`` (random or sequential), ``size``, ``depth`` or ``rate``
    (requests a second that arrive), ``state`` (empty, sequential, steady or cache-full), ``used`` (share of the capacity), ``reads`` (share
    of a mixed load), ``figure`` (iops, bandwidth, mean, p50, p90, p99, p99.9, write_amplification or slc_cache) and ``value``. Of fio, JSON
    (beside its logs) and the text that it prints are read, as pasted. A table under load has one load per row: columns ``drive``,
    ``used_gib``, ``background_per_s``, ``probe_per_s``, ``achieved_per_s`` and percentiles, as ``flashsim validate ssd --under-load`` takes
    it. A table of random reads has ``engine``, ``rw``, ``bs``, ``queue_depth``, ``processes``, ``iops``, ``p50_us`` and ``p99_us``, as its
    ``--reads`` takes it.

    Parameters come with 95 % intervals; those that no figure tells are named. The base is ``micron-p300``, of a table of random reads
    ``samsung-990-pro-2tb``, under load the nearest of the presets that say what interrupts a program. A third of the figures judges the
    fit, and then counts as well. A fit that is interrupted goes on where it stopped.

    Examples::

        flashsim device identify --figures figures.csv --preset micron-p300 --out mine.toml --json mine.json

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.identify("figures.csv", preset="micron-p300").save("mine.toml")  # doctest: +SKIP
    """
    files = [Path(file) for file in figures]
    name, tables = Path(preset_file(out, "identified.toml")).stem, [under_load.is_table(file) for file in files]
    if any(tables) and len(files) > 1:
        raise InvalidParameterError("figures", f"{len(files)} files", "a table under load stands alone")
    reads = [under_load.is_table(file, random_reads.LOAD) for file in files]
    if engine is not None and not any(reads):
        raise InvalidParameterError("engine", engine, "only a table of random reads has engines")
    with activity("fitting") as progress:
        if any(tables):
            settings = Settings(jobs=os.cpu_count() or 1 if jobs is None else jobs, seed=seed)
            title = f"{name}, from latencies under load"
            result = identify_under_load(preset, name, title, _rows_of(files[0], drive), capacity, settings, progress)
        else:
            shown = [
                figure for file, is_reads in zip(files, reads, strict=True)
                for figure in (figure_files.read_random_reads(file, engine) if is_reads else figure_files.read(file, state))
            ]  # fmt: skip
            result = fit(preset or (_NVME_BASE if all(reads) else _BASE), name, f"{name}, from figures", shown, capacity, seed, progress)
    outcome = IdentificationOutcome(result)
    if out is not None:
        out.write_text(outcome.text(), encoding="utf-8")
    return outcome
