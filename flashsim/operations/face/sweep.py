"""``fs.sweep``: one function of the front door over all combinations of its arguments, several at a time, kept and resumed."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import signature
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from flashsim.core.activity import activity
from flashsim.core.errors import FlashsimError, InvalidParameterError, RefusedError
from flashsim.core.provenance import provenance
from flashsim.core.source_files import is_trustworthy
from flashsim.core.units import MIB, parse_size
from flashsim.experiments.presentation.plots import axis_label, series_over
from flashsim.experiments.runs import kept
from flashsim.experiments.runs.jobs import Job, Settings, make
from flashsim.operations.face._arguments import A_TABLE, A_TRACE, arrow_table
from flashsim.operations.face._traces import as_trace
from flashsim.operations.face.drive import Drive
from flashsim.operations.fields import count
from flashsim.operations.operation import bind, check_arguments, describe
from flashsim.operations.outcome import Outcome
from flashsim.storage.source import source_file

#: A function of the front door whose module has a `point`, which makes one run and returns frames, JSON-ready.
Swept = Callable[..., Outcome]


class SweepOutcome(Outcome):
    """All runs of a sweep as one frame; axes are the names of the arguments that vary."""

    def __init__(self, points: Sequence[dict[str, Any]], axes: Mapping[str, Sequence[str]], title: str, provenance: dict[str, Any]) -> None:
        super().__init__(points, title, provenance)
        self.axes = dict(axes)

    def summary(self) -> pd.DataFrame:
        """A row a run and device: the arguments that vary, then what the run showed; ``problem`` where it was refused."""
        return self._frame("summary")

    def phases(self) -> pd.DataFrame:
        """A row a run and phase, of what has phases."""
        return self._frame("phases")

    def series(self) -> pd.DataFrame:
        """A row a run and interval of virtual time, of what has a series."""
        return self._frame("series")

    def __getitem__(self, column: str) -> pd.Series[Any]:
        """A column of the summary."""
        values: pd.Series[Any] = self.summary()[column]
        return values

    def __len__(self) -> int:
        return len(self.summary())

    def _frame(self, what: str) -> pd.DataFrame:
        rows = []
        for point in self.result:
            axes = point["varied"]
            rows += [axes | {name: row[name] for name in row if name not in axes} for row in point["frames"].get(what, [{}])]
        return pd.DataFrame(rows)

    def _draw(self) -> Figure:
        frame = self.summary()
        numbers = {name: scale for name, values in self.axes.items() if len(values) > 1 and (scale := _numbers(values))}
        x = next(iter(numbers), next(iter(self.axes)))
        others = [name for name in self.axes if name != x]
        y = next(name for name in ("total_s", "mean_us", "transactions_s", *frame.select_dtypes("number").columns) if name in frame)
        has_sizes = x in numbers and isinstance(self.axes[x][0], str)
        if has_sizes:
            frame = frame.assign(**{x: frame[x].map(dict(zip(self.axes[x], numbers[x], strict=True))) / MIB})
        return series_over(frame, x, y, next(iter(others), None), others[1:], f"{x} (MiB)" if has_sizes else axis_label(x))


def _numbers(values: Sequence[Any]) -> list[float]:
    """Numbers, or the bytes of sizes, that the values of an axis are; none if one is something else."""
    try:
        return [parse_size(value) if isinstance(value, str) else float(value) for value in values]
    except (InvalidParameterError, TypeError):
        return []


@check_arguments
def sweep(function: Swept, *, jobs: int | None = None, cluster: str | None = None, fresh: bool = False, **arguments: Any) -> SweepOutcome:
    """Call a function with every combination of those arguments that are lists, several at a time.

    Every run is kept under all that it depends on, the contents of tables and files among it: a sweep that was interrupted goes on where
    it stopped, and one that grew makes only what is new.  A combination that is refused, such as for too little memory, is a row that
    says so.

    Parameters
    ----------
    function
        `fs.join`, `fs.pool` or `fs.replay`.
    jobs
        Processes that work at the same time; one a core by default.
    cluster
        The address of a Dask scheduler whose workers make the runs instead; they must see this machine's files and cache folder.
    fresh
        Make runs again whose results are kept.
    **arguments
        Arguments of the function; a list is an axis.

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.sweep(
    ...     fs.join, r="do2009:customer@0.01", s="do2009:orders@0.01", on="c_custkey=o_custkey",
    ...     algorithm=["bnl", "grace-hash"], memory=["128KiB", "256KiB"], device="ocz-core-60gb", jobs=1,
    ... )
    >>> result.summary()[["algorithm", "memory"]].values.tolist()
    [['bnl', '128KiB'], ['bnl', '256KiB'], ['grace-hash', '128KiB'], ['grace-hash', '256KiB']]
    """
    module = import_module(getattr(function, "__module__", "builtins"))
    if not hasattr(module, "point"):
        raise InvalidParameterError("function", repr(function), "a sweep is of fs.join, fs.pool or fs.replay, without a call")
    bind(signature(function), (), arguments, function.__name__)
    axes = {name: list(value) for name, value in arguments.items() if isinstance(value, list | tuple | range)}
    empty = next((name for name, values in axes.items() if not values), None)
    if empty or not axes:
        raise InvalidParameterError(empty or "arguments", "an empty list" if empty else "none is a list", "an axis needs values")
    stamps = dict[str, str]()
    fixed = {name: _json(value, name, stamps) for name, value in arguments.items() if name not in axes}
    values_as_json = {name: [_json(value, name, stamps) for value in values] for name, values in axes.items()}
    cells = {name: [_cell(value) for value in values] for name, values in axes.items()}
    labels, combinations = list(product(*cells.values())), product(*values_as_json.values())
    every, point = [fixed | dict(zip(axes, values, strict=True)) for values in combinations], f"{module.__name__}:point"
    jobs_of = [Job.of(point, ", ".join(map(str, label)), arguments=each, stamps=stamps) for label, each in zip(labels, every, strict=True)]
    settings = Settings(jobs=os.cpu_count() or 1 if jobs is None else count(jobs, "jobs"), fresh=fresh, cluster=cluster)
    with activity("runs") as progress:
        results = make(jobs_of, settings, progress)
    runs = [{"varied": dict(zip(axes, values, strict=True)), "frames": results[job]} for values, job in zip(labels, jobs_of, strict=True)]
    problems = [row["problem"] for run in runs for row in run["frames"]["summary"] if "problem" in row]
    if len(problems) == len(runs):
        raise FlashsimError(problems[0])
    recalls = sum(run.recalled for run in results.runs.values())
    lengths = ", ".join(f"{len(values)} of {name}" for name, values in axes.items())
    title = f"{function.__name__}: {len(runs)} runs ({lengths}), {recalls} of them kept from before"
    title += f"; {len(problems)} were refused" if problems else ""
    return SweepOutcome(runs, cells, title, provenance({"arguments": fixed, "axes": values_as_json, "stamps": stamps}))


def _cell(value: Any) -> Any:
    if isinstance(value, Drive):
        return f"{value.name} ({value.state})"
    return describe(value) if isinstance(value, str | int | float | PathLike | None) else type(value).__name__


def _json(value: Any, name: str, stamps: dict[str, str]) -> Any:
    """An argument as JSON; tables become files of the cache, named after their content, and files leave a stamp of theirs."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | PathLike):
        text = os.fspath(value)
        stamps |= (stamp := kept.stamps([os.fspath(source_file(text) or text)]))
        if not stamp and name == "device" and os.sep in text:
            raise RefusedError(f"device: a sweep is of simulated devices; fs.compare runs on {text}")
        return text
    if isinstance(value, Mapping) and value and all(isinstance(each, str) for each in value.values()):  # types by column
        return dict(value)
    return value.recipe() if isinstance(value, Drive) else str(_cache_table(value, name))


def _cache_table(value: Any, name: str) -> Path:
    buffer, table = io.BytesIO(), arrow_table(value, name, A_TRACE if name == "trace" else A_TABLE)
    pq.write_table(as_trace(table.to_pandas()) if name == "trace" else table, buffer, compression="zstd", write_page_checksum=True)
    content = buffer.getvalue()
    path = kept.place("tables", f"{hashlib.sha256(content).hexdigest()[:32]}.parquet")
    if not path.exists() or not is_trustworthy(path):
        kept.write(path, content)
    return path
