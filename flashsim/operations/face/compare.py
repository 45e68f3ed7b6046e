"""``flashsim validate joins`` and ``fs.compare``: joins by the formula, on a simulated device and on a real file, side by side."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from algorithms.joins.base import page_format as page_format_of
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.units import MIB
from flashsim.device import presets
from flashsim.execution.drivers import needed_size
from flashsim.operations.face import _fields as fields
from flashsim.operations.face._fields import Count, Duration, Field, Name, Names, Number, Size, choice
from flashsim.operations.face._operation import operation
from flashsim.operations.face._outcome import REPORT, Outcome
from flashsim.operations.face._tables import Table, key, source
from flashsim.operations.face._units import several, text
from flashsim.operations.face.calibrate import CalibrationOutcome
from flashsim.studies.calibration.session import calibrate
from flashsim.studies.calibration.targets import open_target
from flashsim.studies.presentation.terminal import Explanation, Part
from flashsim.studies.replaying.real import RealSettings
from flashsim.studies.runs.joining import lay_out, memory_pages, open_pair
from flashsim.studies.validation import joins as validation
from flashsim.studies.validation import joins_report as report

#: Stands for a preset that is fitted to the device first.
CALIBRATED = "calibrated"
#: A calibration uses so much at least, in units of its largest request.
_LEAST, _UNIT = 256 * MIB, 4 * MIB
_ENGINES = choice("builtin", "fio", "both")


class ComparisonOutcome(Outcome):
    """Joins, and what each witness says of them.

    Parameters
    ----------
    done
        As they ran.
    """

    FILES = (REPORT,)

    def __init__(self, done: validation.JoinsValidated) -> None:
        super().__init__(report.conditions(done))
        self.done = done

    def printed(self) -> Iterator[Part]:
        """What every witness says, how noisy the real file is, and what the columns mean."""
        yield from (Explanation(self.title), "", report.table(self.done), "", report.noise_table(self.done), "")
        for name, meaning in report.MEANING:
            yield Explanation(f"{name}: {meaning}")
        yield Explanation(report.WHY)

    def _write_report(self, folder: Path) -> None:
        report.write_report(folder, self.done, self.provenance)

    def summary(self) -> pd.DataFrame:
        """A row a join and phase, the total last: I/O seconds by every witness, and by how much two of them differ from the real file."""
        rows = []
        for one in self.done.joins:
            columns = one.columns()
            for number, (phase, requests) in enumerate(zip([*one.phases, "total"], [*one.requests, sum(one.requests)], strict=True)):
                seconds = {f"{name.replace(' ', '_')}_s": times[number] if times else None for name, times in columns.items()}
                rows.append({"algorithm": one.algorithm, "phase": phase, "requests": requests, **seconds})
        frame = pd.DataFrame(rows)
        frame["formula_s"] = frame["formula_s"].astype(float)
        for name in ("formula", "simulated"):
            frame[f"{name}_difference"] = frame[f"{name}_s"] / frame["executed_s"] - 1
        return frame

    def noise(self) -> pd.DataFrame:
        """A row a join and column of the real file: how far the totals of the repeats lie apart, as a share."""
        rows = [(one.algorithm, name, noise) for one in self.done.joins for name, noise in one.noise().items()]
        return pd.DataFrame(rows, columns=["algorithm", "witness", "noise"])

    def _draw(self) -> Figure:
        return report.picture(self.done)


def _device(value: Any, parameter: str) -> Any:
    if isinstance(value, CalibrationOutcome) or value == CALIBRATED:
        return value
    presets.load(text(value, parameter))
    return value


def _engines(value: Any, parameter: str) -> list[str]:
    asked = [_ENGINES(each, parameter) for each in several(value, parameter)]
    return ["builtin", "fio"] if "both" in asked else asked


@operation
def compare(
    r: Annotated[Table | None, Field("One relation; do2009's customer by default.", "SOURCE", option="--r")] = None,
    s: Annotated[Table | None, Field("The other one; do2009's orders by default.", "SOURCE", option="--s")] = None,
    on: Annotated[str, Field("The key, in both relations or in each.", "COLUMN[=COLUMN]", key, option="--key")] = "c_custkey=o_custkey",
    *,
    path: Annotated[
        str | PathLike[str],
        Name("A real file, made if there is none, or a block device.", "PATH", option="--on --path", reads=True),
    ],
    device: Annotated[
        str | CalibrationOutcome,
        Field(
            "What is simulated; calibrated: a preset fitted to PATH first.",
            "PRESET|calibrated",
            _device,
            ("presets",),
            python="Or an `fs.calibrate`.",
        ),
    ],
    algorithm: Annotated[
        Any,
        Names(
            "One of {joins}; or a Python file. Several may be given; the four of Haas et al. by default.",
            "NAME",
            completes=("joins",),
            option="--join --algorithm",
        ),
    ] = None,
    first: fields.FirstJoin = None,
    fetch: fields.FetchStrategy = None,
    k: fields.CacheShare = None,
    policy: fields.FetchPolicy = None,
    kernel: fields.KernelJoin = None,
    columns: fields.ResultColumns = None,
    partition: fields.PartitionMethod = None,
    sub_buffer: fields.SubBuffer = None,
    strands: fields.Strands = None,
    scale: Annotated[float, Number("Of do2009's customer and orders.", metavar="F")] = 0.1,
    memory: Annotated[Any, Size("The buffer pool, such as 512KiB.")] = "512KiB",
    page_size: fields.PageSize = "8KiB",
    page_format: fields.PageFormat = None,
    engine: Annotated[Any, Field("What replays; both, if fio is installed.", "builtin|fio|both", _engines)] = None,
    repeats: Annotated[int, Count("Runs on the real device; of each request the shortest time counts.")] = 5,
    time: Annotated[Any, Duration("How long to calibrate, about.")] = "30s",
    allow_write: Annotated[bool, fields.Flag("Write to PATH: what it holds is lost.", told=False)] = False,
    yes_destroy: fields.YesDestroy = None,
    seed: Annotated[int, Count("Of the calibration.", parse=fields.least(0))] = 0,
    force: fields.Force = False,
) -> ComparisonOutcome:
    r"""Run joins on a real device, replay their traces, and hold simulation and formula against them.

    All times are of I/O alone, phase by phase. The joins write, so --allow-write is needed, and for a file that exists --force. A file
    that is made is removed again.

    Examples::

        flashsim validate joins --on ./joins.bin --device intel-x25e-64gb --scale 0.02 --memory 256KiB --engine builtin --allow-write \
            --repeats 1 --out-dir joins
        flashsim validate joins --on ./joins.bin --device intel-x25e-64gb --scale 0.01 --memory 256KiB --engine builtin --allow-write \
            --repeats 1 --join digest --first hybrid-hash --fetch naive

    Examples
    --------
    >>> import flashsim as fs
    >>> told = fs.compare("do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey", path="./joins.bin", memory="256KiB",
    ...                   device="intel-x25e-64gb", allow_write=True)  # doctest: +SKIP
    """
    if not 0 < scale <= 1000:
        raise InvalidParameterError("--scale", scale, "it must be in (0, 1000]")
    target, names = Path(path), algorithm or validation.JOINS
    on_pages = page_size, page_format or page_format_of(*names)
    told: dict[str, Any] = {"first": first, "fetch": fetch, "k": k, "policy": policy, "kernel": kernel, "columns": columns}
    told |= {"partition": partition, "sub_buffer": sub_buffer, "strands": strands}
    setting = validation.JoinsSetting(names, memory_pages(memory, *on_pages), repeats, told)
    both = shutil.which("fio") and partition in (None, "traditional")
    engines = engine or (["builtin", "fio"] if both else ["builtin"])
    with activity("joins") as progress:
        given = (f"do2009:customer@{scale:g}" if r is None else r, f"do2009:orders@{scale:g}" if s is None else s)
        relations = open_pair(source(given[0], "r"), source(given[1], "s"), on)
        files = (lay_out(relations[0], *on_pages), lay_out(relations[1], *on_pages))
        access = RealSettings("asap", allow_write=allow_write, replace=force, destroy=yes_destroy)
        validation.check(target, files, access, engines)
        chosen = device.preset if isinstance(device, CalibrationOutcome) else None
        if chosen is None and device == CALIBRATED:
            chosen = _calibrated(path, needed_size(files), time, access, seed, progress)
        done = validation.validate(target, chosen or presets.load(str(device)), files, setting, engines, access, progress)
    return ComparisonOutcome(done)


def _calibrated(path: Any, size: int, time: int, access: RealSettings, seed: int, progress: Progress | None) -> presets.Preset:
    """A preset fitted to the device, of the size that the joins need."""
    used = max(_LEAST, -(-size // _UNIT) * _UNIT)
    with open_target(
        str(path), used, allow_write=access.allow_write, replace=access.replace, destroy=access.destroy, progress=progress
    ) as target:
        return calibrate(target, CALIBRATED, time=time, write=True, seed=seed, progress=progress).preset
