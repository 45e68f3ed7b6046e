"""``flashsim device calibrate`` and ``fs.calibrate``: a preset from micro-benchmarks of a device, or of this machine's CPU."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.calibration import cpu_prices, session
from flashsim.core.activity import activity
from flashsim.core.errors import ALLOW_WRITE, InvalidParameterError, option
from flashsim.core.units import MICROSECONDS, SECONDS, format_duration, format_size
from flashsim.experiments.bench.targets import open_target
from flashsim.experiments.presentation.plots import scatter_beside
from flashsim.experiments.presentation.report import Report, Section
from flashsim.experiments.presentation.tables import Table, with_caption
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.runs.outputs import Outputs, final_name
from flashsim.operations import fields
from flashsim.operations.face._device_arguments import YesDestroy
from flashsim.operations.fields import Count, Duration, Flag, Name, Target
from flashsim.operations.operation import in_words_of_python, operation
from flashsim.operations.outcome import REPORT, Outcome

_PATH = "A real file or block device; or a preset, to test how well calibration recovers its parameters."
_CPU_INSTEAD = option("cpu") + " measures this machine, and no device"


class CalibrationOutcome(Outcome):
    """A device's micro-benchmarks, and the preset that was fitted to them, which `fs.compare` takes as its device."""

    FILES = (REPORT,)

    def __init__(self, result: session.Calibration, has_writes: bool) -> None:
        super().__init__(result, result.summary())
        self.preset = result.preset
        self.lead = f"{result.device}, {format_size(result.size)}; {'read and written' if has_writes else 'only read'}"

    def printout(self) -> Iterator[Part]:
        yield f"{self.lead}\n"
        for held_out in (False, True):
            yield from (self.result.table(held_out), "")
        yield from self.title.split("\n")
        yield from ("", Explanation(self.result.note))
        yield from ("", next_steps("flashsim validate joins holds the preset against the device", "--out-dir DIR draws the fit"))

    def _report(self) -> Report:
        result, figures = self.result, []
        for name, held_out in (("fitted", False), ("held out", True)):
            errors = np.abs(result.errors(held_out))
            figures += [(f"{name}: median error", f"{np.median(errors):.1%}"), (f"{name}: within 20 %", session.within(errors))]
        figures += [("noise between visits", f"{result.noise:.1%}")] if result.noisy else []
        found = ". ".join(finding[:1].upper() + finding[1:] for finding in result.findings)
        estimates = [str(one).split(", 95 % interval ") for one in result.estimates]
        sections = [
            Section("What was found", f"{found}.", [Table(["fitted", "95 % interval"], estimates, "parameters")]),
            Section("Measured and simulated", result.note, pictures={"cells": result.picture()}),
            Section("Fitted cells", tables=[with_caption(result.table(False), title="fitted")]),
            Section("Cells held out", "The fit did not see them.", [with_caption(result.table(True), title="held-out")]),
        ]
        return Report(f"Calibration of {result.device}", self.lead, figures, sections, self.provenance)

    def summary(self) -> pd.DataFrame:
        """A row a micro-benchmark: measured and simulated (us), the noise of the measurement, and whether it was held out of the fit."""
        cells = self.result.cells
        times, simulated_times = cells["time_ns"] / MICROSECONDS, cells["simulated_ns"] / MICROSECONDS
        columns = cells[["cell", "held_out"]].assign(measured_us=times, noise=cells["noise"], simulated_us=simulated_times)
        return columns.assign(difference=cells["error"])

    def estimates(self) -> pd.DataFrame:
        """A row a parameter that was fitted, with its 95 % interval."""
        return pd.DataFrame([vars(one) for one in self.result.estimates])

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the preset as a TOML file, which is then a device by its path."""
        target = Path(fields.text(path, "path"))
        if target.suffix != ".toml":
            raise InvalidParameterError("path", str(target), "a preset's file ends in .toml")
        with in_words_of_python(), Outputs(force) as outputs:
            outputs.file("path", target).write_text(self.text(), encoding="utf-8")
        return target

    def text(self) -> str:
        """The preset, as a TOML file has it."""
        return self.result.text()

    def _draw(self) -> Figure:
        return scatter_beside(self.summary(), "measured_us", "simulated_us", "held_out", ("held out", "fitted"))


class CpuOutcome(CalibrationOutcome):
    """Prices of this machine's work; `save` writes a CPU preset."""

    def __init__(self, result: cpu_prices.CpuPrices) -> None:
        Outcome.__init__(self, result, f"prices of this machine's CPU: {result.processor}")

    def summary(self) -> pd.DataFrame:
        """A row a price: nanoseconds, their spread, and where it comes from."""
        return self.result.table()

    def printout(self) -> Iterator[Part]:
        yield self.summary()

    def _report(self) -> Report:
        raise InvalidParameterError(option("out-dir"), "given", _CPU_INSTEAD)


@operation
def calibrate(
    path: Annotated[str | PathLike[str] | None, Name(_PATH, "PATH", argument=True, reads=True)] = None,
    *,
    out: Annotated[Any, Target("Target file of the preset.", "PRESET.toml", required=True)] = None,
    cpu: Annotated[bool, Flag("Measure this machine's CPU instead of a device.")] = False,
    size: fields.PartOfDevice = None,
    time: Annotated[Any, Duration("Approximate duration: 1min for a device, 10s for a CPU by default.")] = None,
    allow_write: Annotated[bool, Flag("Measure writes too; the contents of the device are lost.")] = False,
    yes_destroy: YesDestroy = None,
    seed: Annotated[int, Count("Random seed.", parse=fields.seed)] = 0,
    force: fields.Force = False,
) -> CalibrationOutcome:
    """Measure a real device and fit a preset to it.

    The device is only read (O_DIRECT), unless --allow-write is given; then a file that does not exist is made and removed again. Whether it
    turns is decided by the data: a disk gets its rotation, zones, heads, seeks, cache and link; anything else the controller's and the
    dies' times, the dies at work side by side, and the link. Some cells are held out of the fit, to judge what it predicts.

    With --cpu, flashsim's own operations on tuples are timed, and the kernel's work on a temporary file beside the preset.

    Examples::

        flashsim device calibrate ./disk.bin --allow-write --size 64MiB --time 200ms --out mine.toml
        flashsim device calibrate seagate-st3300655lc --time 5s --out found-again.toml --json calibration.json
        flashsim device calibrate --cpu --time 1s --out my-cpu.toml

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.calibrate("./disk.bin", size="64MiB", time="2s", allow_write=True).save("mine.toml")  # doctest: +SKIP
    """
    lasts = time or (10 if cpu else 60) * SECONDS
    if not SECONDS // 10 <= lasts <= 3600 * SECONDS:
        raise InvalidParameterError("time", format_duration(lasts), "it must be in [100ms, 60min]")
    if out is not None and not final_name(out).endswith(".toml"):
        raise InvalidParameterError("out", final_name(out), "a preset's file ends in .toml")
    name = Path(final_name(out)).stem if out else "calibrated"
    if cpu:
        device_only = {"PATH": path, "size": size and format_size(size), ALLOW_WRITE: "given" * allow_write, "yes_destroy": yes_destroy}
        for parameter, value in device_only.items():
            if value:
                raise InvalidParameterError(parameter, value, _CPU_INSTEAD)
        with activity("measuring") as progress:
            prices = cpu_prices.measure(name, out.parent if out else Path(), duration=lasts, seed=seed, progress=progress)
        outcome: CalibrationOutcome = CpuOutcome(prices)
    else:
        if path is None:
            raise InvalidParameterError("PATH", "none", "a device is needed, or " + option("cpu"))
        with (
            activity("measuring") as progress,
            open_target(str(path), size, allow_write=allow_write, replace=force, destroy=yes_destroy, progress=progress) as target,
        ):
            calibration = session.calibrate(target, name, time=lasts, write=allow_write, seed=seed, progress=progress)
            outcome = CalibrationOutcome(calibration, allow_write)
    if out is not None:
        out.write_text(outcome.text(), encoding="utf-8")
    return outcome
