"""``fs.calibrate``: a preset from micro-benchmarks of a real file or block device."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.calibration import report
from experiments.calibration.session import Calibration
from experiments.calibration.session import calibrate as run
from experiments.calibration.targets import open_target
from experiments.face._operation import working
from experiments.face._outcome import Outcome
from experiments.face._units import count, duration, text
from experiments.face._units import size as _size
from experiments.presentation.plots import scatter_beside
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.provenance import provenance
from flashsim.core.units import MICROSECONDS


class CalibrationOutcome(Outcome):
    """A device's micro-benchmarks, and the preset that was fitted to them, which `fs.compare` takes as its device.

    Parameters
    ----------
    done
        As it was measured and fitted.
    """

    def __init__(self, title: str, provenance: dict[str, Any], done: Calibration) -> None:
        super().__init__(title, provenance)
        self.done = done
        self.preset = done.preset

    def summary(self) -> pd.DataFrame:
        """A row a micro-benchmark: measured and simulated (us), the noise of the measurement, and whether it was held out of the fit."""
        rows = [
            {"cell": one.cell.name, "held_out": one.cell.held_out, "measured_us": one.time / MICROSECONDS, "noise": one.noise}
            | {"simulated_us": simulated / MICROSECONDS, "difference": simulated / one.time - 1}
            for one, simulated in zip(self.done.measured, self.done.shown, strict=True)
        ]
        return pd.DataFrame(rows)

    def estimates(self) -> pd.DataFrame:
        """A row a parameter that was fitted, with its 95 % interval."""
        return pd.DataFrame([vars(one) for one in self.done.estimates])

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the preset as a TOML file, which is then a device by its path.

        Raises
        ------
        InvalidParameterError
            The file's name does not end in .toml.
        RefusedError
            It exists, and may not be replaced.
        """
        target = Path(text(path, "path"))
        if target.suffix != ".toml":
            raise InvalidParameterError("path", str(target), "a preset's file ends in .toml")
        if target.exists() and not force:
            raise RefusedError(f"path: {target} exists; force=True replaces it")
        target.write_text(self.done.text(), encoding="utf-8")
        return target

    def _draw(self) -> Figure:
        return scatter_beside(self.summary(), "measured_us", "simulated_us", "held_out", ("held out", "fitted"))


def calibrate(
    path: str | PathLike[str],
    *,
    size: str | None = None,
    time: str = "1min",
    allow_write: bool = False,
    yes_destroy: str | None = None,
    force: bool = False,
    seed: int = 0,
) -> CalibrationOutcome:
    """Measure a device with micro-benchmarks, and fit a preset that shows the same figures when it is simulated.

    Parameters
    ----------
    path
        A real file (made, if writing is allowed and there is none) or block device; or a preset, which shows how well it is found again.
    size
        How much of the device is used, such as ``"4GiB"``.
    time
        How long to measure, about.
    allow_write, yes_destroy, force
        Whether writes are measured too, which destroys what the path holds; which block device that is; whether a file is overwritten.
    seed
        Of places and order.

    Raises
    ------
    RefusedError, FlashsimError
        The device may not be written to, has no direct I/O, or is too small.

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.calibrate("./disk.bin", size="64MiB", time="2s", allow_write=True).save("mine.toml")  # doctest: +SKIP
    """
    name, used = text(path, "path"), None if size is None else _size(size, "size")
    lasts = duration(time, "time")
    with (
        working("measuring") as progress,
        open_target(name, used, allow_write=allow_write, replace=force, destroy=yes_destroy, progress=progress) as target,
    ):
        done = run(target, "calibrated", time=lasts, write=allow_write, seed=count(seed, "seed", 0), progress=progress)
    return CalibrationOutcome(report.summary(done), provenance({"path": name, "time": time, "size": done.size}, seed), done)
