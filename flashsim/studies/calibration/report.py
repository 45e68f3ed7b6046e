"""What a calibration prints: measured beside simulated, cell by cell, what was fitted, and how far to trust it."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flashsim.core.units import MB, MICROSECONDS, SECONDS
from flashsim.studies.calibration.fitting import Floats
from flashsim.studies.calibration.session import Calibration, shown_interval
from flashsim.studies.presentation.plots import LINES, legend, panels
from flashsim.studies.presentation.report import Report
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table, captioned, difference

NOTE = (
    "x N: N requests submitted at once and all waited for; the time is that of all of them, of x 1 of one request (the mean of the "
    "lower half of the samples, warm-up left out)."
)
NOISE = "+-: half the 95 % interval. Noise: the spread between visits of a cell."


def is_noisy(done: Calibration) -> bool:
    """Whether visits of a cell differ at all: a simulated drive may show the same each time, and then there is no noise to tell of."""
    return any(one.noise > 0 for one in done.measured)


def cells_table(done: Calibration, held_out: bool) -> Table:
    """The cells that the fit saw, or those held out, measured and simulated."""
    noisy = is_noisy(done)
    rows: list[list[Entry]] = []
    for one, shown in zip(done.measured, done.shown.tolist(), strict=True):
        if one.cell.held_out != held_out:
            continue
        low, high = one.interval(done.seed)
        rate = one.cell.batch_bytes * SECONDS / MB
        noise = [f"{50 * (high - low) / one.time:.1f} %", f"{one.noise:.1%}"] if noisy else []
        rates: list[Entry] = [rate / one.time, shown / MICROSECONDS, rate / shown]
        rows.append([one.cell.name, one.time / MICROSECONDS, *noise, *rates, difference(shown / one.time - 1)])
    title = "held out: not seen by the fit" if held_out else "fitted"
    header = ["cell", "measured us", *(["+-", "noise"] if noisy else []), "MB/s", "simulated us", "simulated MB/s", "differs by"]
    return Table(header, rows, title, digits=1)


def note(done: Calibration) -> str:
    """What the columns mean."""
    return f"{NOTE} {NOISE}" if is_noisy(done) else NOTE


def summary(done: Calibration) -> str:
    lines = [*done.findings, *(shown_interval(one) for one in done.estimates)]
    for name, held_out in (("fit error", False), ("held-out error", True)):
        errors = np.abs(done.errors(held_out))
        lines.append(f"{name}: median {np.median(errors):.1%}, worst {errors.max():.1%}; {_within(errors)} cells within 20 %")
    if is_noisy(done):
        lines.append(f"noise between visits: median {done.noise:.1%}, worst {max(one.noise for one in done.measured):.1%}")
    return "\n".join(lines)


def _within(errors: Floats) -> str:
    return f"{int((np.abs(errors) <= 0.2).sum())} of {len(errors)}"


def write_report(folder: Path, done: Calibration, lead: str, origin: dict[str, Any]) -> None:
    """Fill a folder with ``report.html``, the tables (CSV) and the picture (SVG)."""
    figures = []
    for name, held_out in (("fitted", False), ("held out", True)):
        errors = np.abs(done.errors(held_out))
        figures += [(f"{name}: median error", f"{np.median(errors):.1%}"), (f"{name}: within 20 %", _within(errors))]
    figures += [("noise between visits", f"{done.noise:.1%}")] if is_noisy(done) else []
    estimates: list[list[Entry]] = [[*shown_interval(one).split(", 95 % interval ")] for one in done.estimates]
    sections = [
        Section(
            "What was found",
            ". ".join(finding[:1].upper() + finding[1:] for finding in done.findings) + ".",
            [Table(["fitted", "95 % interval"], estimates, "parameters")],
        ),
        Section("Measured and simulated", note(done), pictures={"cells": picture(done)}),
        Section("Fitted cells", tables=[captioned(cells_table(done, False), title="fitted")]),
        Section("Cells held out", "The fit did not see them.", [captioned(cells_table(done, True), title="held-out")]),
    ]
    Report(f"Calibration of {done.device}", lead, figures, sections, origin).write(folder)


def picture(done: Calibration) -> Figure:
    """By how much each cell's simulated time is off, those held out hollow, over the measured time; within 20 % is grey."""
    with panels(3.0) as (figure, axes):
        axes.axhspan(-20, 20, color="#e3e3e3", linewidth=0, label="within 20 %")
        for held_out, face, name in ((False, LINES[0][0], "fitted"), (True, "white", "held out")):
            times = [one.time / MICROSECONDS for one in done.measured if one.cell.held_out == held_out]
            axes.plot(times, 100 * done.errors(held_out), "o", color=LINES[0][0], markerfacecolor=face, markersize=5, label=name)
        axes.set(xscale="log", xlabel="measured, us", ylabel="simulated over measured, %")
        legend(figure, axes)
    return figure
