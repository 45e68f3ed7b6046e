"""A preset under random reads of closed loops, held against what was measured on the drive, row by row of a file.

Each process keeps so many requests outstanding: the next comes when one is done, once a core of its own has spent a time on it.  A latency
is the time between two requests of such a slot, so it includes what the request waits for the core.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flashsim.apps.calibration.validation.under_load import mean_factors, numbers_of, rows_of
from flashsim.core.compiling import parts_of
from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.core.request import SECTOR
from flashsim.core.units import KIB, MIB, MICROSECONDS, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.scaling import part_in_use
from flashsim.execution.closed_clients import ClosedClients
from flashsim.execution.compiled_loop import CompiledLoop
from flashsim.experiments.runs import kept
from flashsim.experiments.runs.jobs import Job, Settings, make

#: What is judged, by the file's columns, and the shares that percentiles are of.
MEASURES = {"iops": 0.0, "p50_us": 50, "p99_us": 99}
#: Columns that name a load, which a table of random reads has.
LOAD = ("engine", "rw", "bs", "queue_depth", "processes")
#: Requests at scale 1, and at least so many of each slot; the share of them that is not counted.
_REQUESTS, _EACH, _WARM_UP = 100_000, 200, 0.2
#: Requests outstanding of all processes, and bytes of one, at most.
_MOST, _LONGEST = 1 << 16, MIB
_SIZE = re.compile(r"([1-9][0-9]{0,6})(kb?|mb?)?", re.IGNORECASE)


@dataclass(frozen=True)
class ReadsRow:
    """A closed loop, and what was measured."""

    engine: str
    #: Bytes of a request, as the file has them, and as a number.
    bs: str
    length: int
    queue_depth: int
    processes: int
    #: Values of `MEASURES`, and ``p90_us`` if the table has it.
    measured: Mapping[str, float]


def read(path: Path, engine: str | None = None) -> list[ReadsRow]:
    """Rows of a table (CSV), or those of an I/O engine; further columns are left out, and anything but random reads is refused."""
    every = [_row(row, where) for row, where in rows_of(path, "reads", (*LOAD, *MEASURES))]
    if not (chosen := [row for row in every if engine in (None, row.engine)]):
        raise UnknownNameError("engine", str(engine), dict.fromkeys(row.engine for row in every))
    return chosen


def _row(row: Mapping[str, str | None], where: str) -> ReadsRow:
    counts = ("queue_depth", "processes")
    values = numbers_of(row, where, (*counts, *MEASURES), whole=counts)
    if row["rw"] != "randread":
        raise RefusedError(f"{where}: rw {row['rw'] or ''!r} is not judged, only randread")
    match = _SIZE.fullmatch(row["bs"] or "")
    length = int(match[1]) * {"": 1, "k": KIB, "m": MIB}[(match[2] or "")[:1].lower()] if match else 0
    if length % SECTOR or not 0 < length <= _LONGEST:
        bound = f"it must be like 4k, whole sectors of {SECTOR} B, and at most 1m"
        raise InvalidParameterError(f"{where}: bs", repr(row["bs"] or ""), bound)
    if values["queue_depth"] * values["processes"] > _MOST:
        raise InvalidParameterError(f"{where}: queue_depth", row["queue_depth"], f"there may be {_MOST:,} requests outstanding at most")
    measured = {name: values[name] for name in MEASURES}
    measured |= numbers_of(row, where, ["p90_us"]) if row.get("p90_us") else {}
    return ReadsRow(row["engine"] or "", row["bs"] or "", length, int(values["queue_depth"]), int(values["processes"]), measured)


def play(
    preset: str, length: int, depth: int, processes: int, core_time: int, scale: float, seed: int, stamps: Mapping[str, str]
) -> dict[str, float]:
    """Rate and latencies of random reads of a full drive, by measure."""
    device = Device(part_in_use(presets.load(preset)), maximum_command=max(length, 128 * KIB))
    device.load(0, device.capacity)
    clients = ClosedClients(depth * processes, core_time, page_size=length, seed=seed, cores=processes if core_time else 0)
    count = max(round(_REQUESTS * scale), _EACH * clients.clients)
    loop = CompiledLoop([device.compiled_model], clients.side([device.capacity // length], device.now), count)
    loop.run(completions=count)
    time, _, client = loop.log_rows[round(_WARM_UP * count) :].T
    order = np.lexsort((time, client))
    latencies = np.diff(time[order])[np.diff(client[order]) == 0] / MICROSECONDS
    rate = (len(time) - 1) * SECONDS / (time[-1] - time[0])
    return {name: float(np.percentile(latencies, share)) if share else float(rate) for name, share in MEASURES.items()}


@dataclass(frozen=True)
class RandomReads:
    """Rows of a file beside what a preset shows."""

    name: str
    preset: str
    cells: Sequence[Mapping[str, Any]]

    def title(self) -> str:
        return f"{self.name}: random reads of {self.preset}"

    def rows(self) -> list[dict[str, Any]]:
        return [dict(cell) for cell in self.cells]

    def errors(self) -> list[dict[str, Any]]:
        """A row an engine, size and measure: the mean of the logarithm's difference, as a factor."""
        return mean_factors(self.cells, ["engine", "bs", "measure"], {"factor": "simulated"})

    def as_dict(self) -> dict[str, Any]:
        return {"preset": self.preset, "rows": self.rows(), "errors": self.errors()}


def validate(
    path: Path, preset: str, engine: str | None, core_time: int, settings: Settings, progress: Progress | None = None
) -> RandomReads:
    """Play every row on a preset, those that are kept from before excepted, and judge what it shows."""
    rows = read(path, engine)
    if (flash := presets.load(preset).flash) is None:
        raise RefusedError(f"device: {preset} is not a flash drive")
    how: dict[str, Any] = {"preset": preset, "core_time": core_time, "scale": settings.scale, "seed": settings.seed}
    jobs = [
        Job.of(
            play, f"{row.bs}, {row.processes} x {row.queue_depth}", length=row.length, depth=row.queue_depth, processes=row.processes,
            stamps=kept.stamps([preset]), **how,
        )
        for row in rows
    ]  # fmt: skip
    results = make(jobs, settings, progress, [flash.ftl], kinds=("ssd",), more=parts_of(["flashsim.execution.closed_clients"]))
    cells = [
        {
            "engine": row.engine, "bs": row.bs, "queue_depth": row.queue_depth, "processes": row.processes, "measure": measure,
            "simulated": results[job][measure], "measured": row.measured[measure],
        }
        for row, job in zip(rows, jobs, strict=True)
        for measure in MEASURES
    ]  # fmt: skip
    return RandomReads(path.name, preset, cells)
