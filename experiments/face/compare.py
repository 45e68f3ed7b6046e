"""``fs.compare``: joins by the formula, on a simulated device and on a real file, side by side."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from algorithms.joins.base import page_format as page_format_of
from experiments.face._operation import working
from experiments.face._outcome import Outcome
from experiments.face._tables import Table, key, source
from experiments.face._units import count, late_options, partition_options, several, size, text
from experiments.face.calibrate import CalibrationOutcome
from experiments.replaying.real import RealSettings
from experiments.runs.joining import lay_out, memory_pages, open_pair
from experiments.validation import joins as validation
from experiments.validation.joins_report import conditions, picture
from flashsim.core.provenance import provenance
from flashsim.device import presets


class ComparisonOutcome(Outcome):
    """Joins, and what each witness says of them.

    Parameters
    ----------
    done
        As they ran.
    """

    def __init__(self, title: str, provenance: dict[str, Any], done: validation.JoinsValidated) -> None:
        super().__init__(title, provenance)
        self.done = done

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
        return picture(self.done)


def compare(
    r: Table,
    s: Table,
    on: str,
    *,
    path: str | PathLike[str],
    device: str | CalibrationOutcome,
    memory: str,
    algorithm: Any = validation.JOINS,
    page_size: str = "8KiB",
    page_format: str | None = None,
    first: str | None = None,
    fetch: str | None = None,
    k: float | None = None,
    policy: str | None = None,
    kernel: str | None = None,
    columns: Any = None,
    partition: str | None = None,
    sub_buffer: str | None = None,
    strands: int | None = None,
    repeats: int = 3,
    engine: Any = "builtin",
    allow_write: bool = False,
    yes_destroy: str | None = None,
    force: bool = False,
) -> ComparisonOutcome:
    """Run joins on a real file, replay their requests there, simulate them, and ask the formula; all times are of I/O alone.

    Parameters
    ----------
    r, s, on, memory, page_size, page_format
        See `fs.join`.
    path
        A real file, made and removed again if there is none, or a block device.
    device
        The preset that is simulated, and whose figures the formula takes, or an `fs.calibrate`.
    algorithm
        One join or several.
    first, fetch, k, policy, kernel, columns, partition, sub_buffer, strands
        See `fs.join`, of joins that fetch rows or make buckets; each is told to those that take it.
    repeats
        Runs on the real file; of each request the shortest time counts.
    engine
        What replays: ``"builtin"``, ``"fio"``, or both.
    allow_write, yes_destroy, force
        Whether the path may be written to, which block device that destroys, and whether a file that exists is overwritten.

    Raises
    ------
    RefusedError
        The path may not be written to.
    FlashsimError
        It is too small, an engine is missing, or as `fs.join`.

    Examples
    --------
    >>> import flashsim as fs
    >>> told = fs.compare("do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey", path="./joins.bin", memory="256KiB",
    ...                   device="intel-x25e-64gb", allow_write=True)  # doctest: +SKIP
    """
    chosen = device.preset if isinstance(device, CalibrationOutcome) else presets.load(text(device, "device"))
    target = Path(text(path, "path"))
    names, engines = ([text(each, name) for each in several(value, name)] for name, value in (("algorithm", algorithm), ("engine", engine)))
    on_pages = size(page_size, "page_size"), text(page_format or page_format_of(*names), "page_format")
    pages = memory_pages(size(memory, "memory"), *on_pages)
    relations = open_pair(source(r, "r"), source(s, "s"), key(on))
    files = (lay_out(relations[0], *on_pages), lay_out(relations[1], *on_pages))
    access = RealSettings("asap", allow_write=allow_write, replace=force, destroy=yes_destroy)
    told = late_options(first, fetch, k, policy, kernel, columns) | partition_options(partition, sub_buffer, strands)
    setting = validation.JoinsSetting(names, pages, count(repeats, "repeats"), told)
    with working("joins") as progress:
        done = validation.validate(target, chosen, files, setting, engines, access, progress)
    asked = {"on": on, "path": str(target), "device": chosen.name, "memory": pages, "page_format": on_pages[1]}
    return ComparisonOutcome(conditions(done), provenance(asked | told | {"algorithms": names, "repeats": repeats}), done)
