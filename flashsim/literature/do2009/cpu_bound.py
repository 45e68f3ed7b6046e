"""Bound of every CPU model with a price for each kind of work: how near it can come to the CPU times that table 3 implies.

The counted work of the joins with 200 and 500 MB, and their commands and bytes, leave a linear program: prices of at least 0 that minimise
the largest relative error of the priced times.  Whatever is fitted, and to what, no list of prices does better.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from flashsim.core.units import SECONDS
from flashsim.execution.requests import Work
from flashsim.literature.base import load
from flashsim.literature.do2009.cpu_work import CALIBRATION_MEMORY, Counted, committed
from flashsim.literature.do2009.implied_cpu import implied_cpu
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import JOINS, LABELS, MEMORY, Setup
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

Run = tuple[str, int]
RUNS: list[Run] = [(join, memory) for join in JOINS for memory in CALIBRATION_MEMORY]


@dataclass(frozen=True)
class Bound:
    """The least largest relative error, the prices that have it, ns of each kind of work, and the seconds that they give each run."""

    error: float
    prices: dict[str, float]
    seconds: dict[Run, float]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """The runs whose I/O on the HDD the implied times rest on."""
    return [Setup(*run).job(settings) for run in RUNS]


def implied(hdd_io: Mapping[Run, float]) -> dict[Run, float]:
    """CPU seconds of each run that table 3 implies, from its I/O seconds on the HDD."""
    io, join = (load("do2009").claim(name).published for name in ("table3-io", "table3-join"))
    return {run: implied_cpu(h, *(float(row[run[0]][MEMORY.index(run[1])]) for row in (io, join))) for run, h in hdd_io.items()}


def bound(seconds: Mapping[Run, float], scale: float = 1.0) -> Bound:
    """The prices of user work and of the kernel's that come nearest to CPU seconds of runs at a scale."""
    names = [*Work, "commands", "bytes"]
    counts = [Counted.from_dict(committed()[join][str(memory)]).as_dict() for join, memory in seconds]
    work: npt.NDArray[np.float64] = np.array([[one.get(name, 0) for name in names] for one in counts]) * scale / SECONDS
    shares = work / np.array(list(seconds.values()))[:, None]
    least, ones = np.append(np.zeros(len(names)), 1.0), np.ones((len(shares), 1))
    limits = np.vstack([np.hstack([shares, -ones]), np.hstack([-shares, -ones])])
    solution = linprog(least, A_ub=limits, b_ub=np.vstack([ones, -ones])[:, 0])
    *prices, error = np.asarray(solution.x).tolist()
    return Bound(error, dict(zip(names, prices, strict=True)), dict(zip(seconds, (work @ prices).tolist(), strict=True)))


def sections(results: Results) -> list[Section]:
    """Implied seconds beside those of the nearest prices, of all joins and without Grace hash, whose equal work has unequal times."""
    runs, scale = Runs(results), results.settings.scale
    io = {run: seconds for run in RUNS if (seconds := runs.seconds(Setup(*run), "HDD", "io")) is not None}
    if len(io) < len(RUNS):
        return []
    every = implied(io)
    bounds = [bound(seconds, scale) for seconds in (every, {run: value for run, value in every.items() if run[0] != "grace-hash"})]
    rows: list[list[Entry]] = [[LABELS[run[0]], run[1], every[run], *(one.seconds.get(run) for one in bounds)] for run in RUNS]
    text = (
        "CPU seconds that table 3 implies, and those of the prices, one for each kind of work, whose largest relative error is least: "
        f"{100 * bounds[0].error:.0f} %, and {100 * bounds[1].error:.0f} % without GH. No model of this form gives all joins their times."
    )
    header = ["join", "MB", "CPU s implied", "nearest prices", "nearest without GH"]
    return [Section("Nearest prices of CPU work", text, [Table(header, rows, "cpu-bound", digits=1)])]
