"""What a calibration prints: measured beside simulated, cell by cell, what was fitted, and how far to trust it."""

from __future__ import annotations

import numpy as np

from experiments.calibration.session import Calibration, shown_interval
from experiments.presentation.tables import Entry, Table
from flashsim.core.units import MB, MICROSECONDS, SECONDS

NOTE = (
    "x N: N requests submitted at once and all waited for; the time is that of all of them, of x 1 of one request (the mean of the "
    "lower half of the samples, warm-up left out). +-: half the 95 % interval. Noise: the spread between visits of a cell."
)


def cells_table(done: Calibration, held_out: bool) -> Table:
    """The cells that the fit saw, or those held out, measured and simulated."""
    rows: list[list[Entry]] = []
    for one, shown in zip(done.measured, done.shown.tolist(), strict=True):
        if one.cell.held_out != held_out:
            continue
        low, high = one.interval(done.seed)
        rate = one.cell.batch_bytes * SECONDS / MB
        width = f"{50 * (high - low) / one.time:.1f} %"
        rows.append(
            [
                one.cell.name,
                one.time / MICROSECONDS,
                width,
                f"{one.noise:.1%}",
                rate / one.time,
                shown / MICROSECONDS,
                rate / shown,
                _percent(shown / one.time - 1),
            ]
        )
    title = "held out: not seen by the fit" if held_out else "fitted"
    return Table(["cell", "measured us", "+-", "noise", "MB/s", "simulated us", "simulated MB/s", "differs by"], rows, title, digits=1)


def summary(done: Calibration) -> str:
    """Findings, parameters and errors, a line each."""
    lines = [*done.findings, *(shown_interval(one) for one in done.estimates)]
    for name, held_out in (("fit error", False), ("held-out error", True)):
        errors = np.abs(done.errors(held_out))
        within = f"{int((errors <= 0.2).sum())} of {len(errors)} cells within 20 %"
        lines.append(f"{name}: median {np.median(errors):.1%}, worst {errors.max():.1%}; {within}")
    lines.append(f"noise between visits: median {done.noise:.1%}, worst {max(one.noise for one in done.measured):.1%}")
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"
