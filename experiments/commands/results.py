"""What commands write of a result: its table, its picture, JSON and a report, where options name files for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.presentation.plots import FORMATS, save
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.errors import InvalidParameterError

_TABLES = (".csv", ".parquet")

#: Where to write for now, and the final name, by option.
Targets = dict[str, tuple[Path, Path]]


@dataclass(frozen=True)
class Shown:
    """What a command writes: rows of its table, JSON, its picture, and a report into a folder with its provenance."""

    rows: list[dict[str, Any]]
    told: dict[str, Any]
    draw: Callable[[], Figure]
    report: Callable[..., None]


def targets_of(
    outputs: Outputs, named: str, source: str, out: Path | None, plot: Path | None, json: Path | None, out_dir: Path | None
) -> Targets:
    """Take the files that options name; never over the source, which the command calls as `named` says.

    Raises
    ------
    InvalidParameterError
        A name whose ending says nothing.
    FlashsimError
        As `Outputs.file` and `Outputs.folder`.
    """
    outputs.spare(named, Path(source))
    for option, path, endings in (("--out", out, _TABLES), ("--plot", plot, FORMATS)):
        if path is not None and path.suffix not in endings:
            raise InvalidParameterError(option, repr(str(path)), f"its name must end in {', '.join(endings)}")
    wanted = {"--out": out, "--plot": plot, "--json": json}
    targets = {option: (outputs.file(option, path), path) for option, path in wanted.items() if path is not None}
    return targets | ({"--out-dir": (outputs.folder("--out-dir", out_dir), out_dir)} if out_dir else {})


def write_result(targets: Targets, shown: Shown, origin: dict[str, Any]) -> None:
    """Write what was asked for, with where it comes from."""
    if "--out" in targets:
        target, named = targets["--out"]
        frame = pd.DataFrame(shown.rows)
        frame.to_csv(target, index=False) if named.suffix == ".csv" else frame.to_parquet(target, index=False)
    if "--plot" in targets:
        target, named = targets["--plot"]
        save(shown.draw(), target, named.suffix)
    if "--json" in targets:
        write_json(targets["--json"][0], shown.told | {"provenance": origin})
    if "--out-dir" in targets:
        shown.report(targets["--out-dir"][0], origin=origin)
