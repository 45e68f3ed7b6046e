"""A calibration: the device is measured, its kind decided, a preset fitted and simulated in the same cells, and the result reported."""

import datetime
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.calibration import hdd_fit, ssd_fit
from flashsim.apps.calibration.cells import CellTimes, Estimate, Floats, cells, measure
from flashsim.apps.calibration.data_sheet import document_of
from flashsim.apps.calibration.rotating import rotation_of
from flashsim.core.preset_files import as_toml
from flashsim.core.protocols import Progress
from flashsim.core.request import OPERATIONS, READ, WRITE
from flashsim.core.units import MB, MICROSECONDS, SECONDS
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.experiments.bench.targets import Target
from flashsim.experiments.presentation import plots, tables

#: Pages of a cell when the fitted preset is asked for its times.
_SHOWN = 4096
#: The share of the time that looks inside a rotating device take.
_INSIDE = 0.6
_NOTE = (
    "x N: N requests submitted at once and all waited for; the time is that of all of them, of x 1 of one request (the mean of the "
    "lower half of the samples, warm-up left out)."
)
_NOISE = "+-: half the 95 % interval. Noise: the spread between visits of a cell."


@dataclass(frozen=True)
class Calibration:
    """A device's cells, measured and as the fitted preset shows them."""

    device: str
    size: int
    preset: Preset
    #: A row a cell: `cell` (its name), `operation`, `sizes` (bytes), `depth`, `sequential`, `held_out`; measured `time_ns` with its 95 %
    #: interval `low_ns` to `high_ns`, `latency_ns` of a request, `bandwidth` (bytes a second) and `noise`; `simulated_ns`, and by how much
    #: it is off, `error`.
    cells: pd.DataFrame
    #: The fitted parameters, with 95 % intervals.
    estimates: list[Estimate]
    #: Other findings of the measurements, a sentence each.
    findings: list[str]

    def errors(self, held_out: bool) -> Floats:
        """Simulated over measured, less 1, of the cells that were held out, or of those fitted."""
        return self.cells.loc[self.cells["held_out"] == held_out, "error"].to_numpy()

    @property
    def noise(self) -> float:
        return float(np.median(self.cells["noise"]))

    @property
    def noisy(self) -> bool:
        """There is noise to report: visits of a cell differ, unlike those of some simulated drives."""
        return bool((self.cells["noise"] > 0).any())

    @property
    def note(self) -> str:
        """The meaning of the columns of `table`."""
        return f"{_NOTE} {_NOISE}" if self.noisy else _NOTE

    def text(self) -> str:
        """The preset as the text of a TOML file; of its parameters those that have a source."""
        errors, held_out_errors = (np.abs(self.errors(choice)) for choice in (False, True))
        comments = (
            f"Fitted to micro-benchmarks; the simulator differs from them by {np.median(errors):.1%} (median of {len(errors)} cells),",
            f"and by {np.median(held_out_errors):.1%} (median of {len(held_out_errors)}) where the fit did not see them. "
            f"Noise between visits: {self.noise:.1%}.",
        )
        return as_toml(document_of(self.preset), comments)

    def as_dict(self) -> dict[str, Any]:
        absolute = {name: np.abs(self.errors(held_out)) for name, held_out in (("fitted", False), ("held_out", True))}
        return {
            "device": self.device,
            "size": self.size,
            "kind": self.preset.kind,
            "cells": self.cells.to_dict("records"),
            "errors": {name: {"median": float(np.median(each)), "worst": float(np.max(each))} for name, each in absolute.items()},
            "noise": self.noise,
            "estimates": [vars(one) | {"relative": one.relative} for one in self.estimates],
            "findings": self.findings,
        }

    def table(self, held_out: bool) -> tables.Table:
        """The cells that the fit saw, or those held out, measured and simulated."""
        rows: list[list[tables.Entry]] = []
        for one in self.cells[self.cells["held_out"] == held_out].to_dict("records"):
            time, simulated_time, rate = one["time_ns"], one["simulated_ns"], np.mean(one["sizes"]) * one["depth"] * SECONDS / MB
            noise = [f"{50 * (one['high_ns'] - one['low_ns']) / time:.1f} %", f"{one['noise']:.1%}"] if self.noisy else []
            times = [time / MICROSECONDS, *noise, rate / time, simulated_time / MICROSECONDS, rate / simulated_time]
            rows.append([one["cell"], *times, tables.difference(one["error"])])
        title = "held out: not seen by the fit" if held_out else "fitted"
        header = ["cell", "measured us", *(["+-", "noise"] if self.noisy else []), "MB/s", "simulated us", "simulated MB/s", "differs by"]
        return tables.Table(header, rows, title, digits=1)

    def summary(self) -> str:
        lines = [*self.findings, *map(str, self.estimates)]
        for name, held_out in (("fit error", False), ("held-out error", True)):
            errors = np.abs(self.errors(held_out))
            lines.append(f"{name}: median {np.median(errors):.1%}, worst {errors.max():.1%}; {within(errors)} cells within 20 %")
        if self.noisy:
            lines.append(f"noise between visits: median {self.noise:.1%}, worst {self.cells['noise'].max():.1%}")
        return "\n".join(lines)

    def picture(self) -> Figure:
        """The error of each cell's simulated time over the measured time, held-out cells hollow; within 20 % is grey."""
        colour = plots.LINES[0][0]
        with plots.panels(3.0) as (figure, axes):
            axes.axhspan(-20, 20, color="#e3e3e3", linewidth=0, label="within 20 %")
            for held_out, face, name in ((False, colour, "fitted"), (True, "white", "held out")):
                own = self.cells[self.cells["held_out"] == held_out]
                times, errors = own["time_ns"] / MICROSECONDS, 100 * own["error"]
                axes.plot(times, errors, "o", color=colour, markerfacecolor=face, markersize=5, label=name)
            axes.set(xscale="log", xlabel="measured (µs)", ylabel="simulated over measured (%)")
            plots.legend(figure, axes)
        return figure


def within(errors: Floats) -> str:
    return f"{int((errors <= 0.2).sum())} of {len(errors)}"


def calibrate(target: Target, name: str, *, time: int, write: bool = False, seed: int = 0, progress: Progress | None = None) -> Calibration:
    """Measure a device for about `time` ns of its own time, and fit a preset that is called `name`.

    With `write` writes are measured too (not of a disk that turns); the device's content is lost.
    """
    spinning = rotation_of(target, seed)
    all_cells = cells(target.least, write)
    share = time * (1 - _INSIDE) if spinning.period else time
    reads = [cell for cell in all_cells if cell.operation == READ]
    writes = [cell for cell in all_cells if cell.operation == WRITE]
    # reads first: where random writes have put pages is not what a simulated drive that was loaded in order has
    times = measure(target, reads, int(share / (1 + write)), seed, progress)
    if spinning.period:
        fit = hdd_fit.fit(target, spinning, int(time * _INSIDE), seed, progress)
    else:
        if writes:
            times += measure(target, writes, int(share / 2), seed, progress)
        fit = ssd_fit.fit(times, target.size // ssd_fit.PAGE * ssd_fit.PAGE, seed, progress)
    day = f" on {target.name}, {datetime.datetime.now(datetime.UTC).date().isoformat()}"
    sources = {key: text + day if text.startswith("measured") else text for key, text in fit.sources.items()}
    preset = Preset(name, "hdd" if spinning.period else "ssd", f"{target.name}, calibrated", fit.parameters, sources)
    unknown = [one.name for one in fit.estimates if one.unknown]
    findings = [spinning.finding, *fit.findings, *([f"the measurements do not tell: {', '.join(unknown)}"] if unknown else [])]
    return Calibration(target.name, target.size, preset, _simulate_cells(times, preset, seed), fit.estimates, findings)


def _simulate_cells(cells: list[CellTimes], preset: Preset, seed: int) -> pd.DataFrame:
    """The cells (see `Calibration`) as they were measured, and as a fresh drive of the preset shows them, reads first."""
    device = Device(preset)
    device.load(0, device.capacity)
    times = np.zeros(len(cells))
    for operation in (READ, WRITE):
        rows = [row for row, one in enumerate(cells) if one.cell.operation == operation]
        if rows:
            times[rows] = ssd_fit.simulator([cells[row] for row in rows], device.capacity, seed, _SHOWN)(device)
    records = []
    for one, time in zip(cells, times.tolist(), strict=True):
        low, high = one.interval(seed)
        record = {"cell": one.cell.name} | vars(one.cell) | {"operation": OPERATIONS[one.cell.operation], "sizes": list(one.cell.sizes)}
        record |= {"time_ns": one.time, "low_ns": low, "high_ns": high, "latency_ns": one.latency, "bandwidth": one.bandwidth}
        records.append(record | {"noise": one.noise, "simulated_ns": time, "error": time / one.time - 1})
    return pd.DataFrame(records)
