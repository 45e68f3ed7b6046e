"""The CPU times that table 3 implies, beside ours, and how near any CPU model with a price for each kind of work can come to them.

With I/O seconds h on the HDD, an I/O speedup a and a speedup b of the whole join, the SSD's I/O takes h / a, and equal CPU seconds c on
both machines follow from (h + c) / (h / a + c) = b.

The counted work of the joins with 200 and 500 MB, and their commands and bytes, leave a linear program: prices of at least 0 that minimise
the largest relative error of the priced times.  Whatever is fitted, and to what, no list of prices does better.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from flashsim.core.units import SECONDS
from flashsim.literature.base import Entry, Exhibit, Section, Shown, Table, load
from flashsim.literature.do2009.cpu_work import KINDS, RUNS, Run, committed
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import GRID, LABELS, LONGEST_FIRST, MEMORY, Setup


def implied_cpu(hdd_io: float, io_speedup: float, join_speedup: float) -> float:
    """CPU seconds that two speedups imply, given the I/O seconds on the slower device.

    Examples
    --------
    >>> implied_cpu(300, 2, 1.5)  # 300 s and 150 s of I/O: (300 + 150) / (150 + 150) = 1.5
    150.0
    """
    return (hdd_io - join_speedup * hdd_io / io_speedup) / (join_speedup - 1)


def implied(hdd_io: Mapping[Run, float]) -> dict[Run, tuple[float, float]]:
    """SSD's I/O and CPU seconds of each run that table 3 implies, from its I/O seconds on the HDD."""
    io, join = (load("do2009").claim(name).published for name in ("table3-io", "table3-join"))
    speedups = {run: [float(row[run[0]][MEMORY.index(run[1])]) for row in (io, join)] for run in hdd_io}
    return {run: (seconds / speedups[run][0], implied_cpu(seconds, *speedups[run])) for run, seconds in hdd_io.items()}


def _implied(runs: Runs) -> list[Section]:
    rows, totals = list[list[Entry]](), dict[Run, float]()
    for setup in GRID:
        run = join, memory = setup.join, setup.memory
        hdd, ssd = (runs.result(setup, machine) for machine in ("HDD", "SSD"))
        if hdd and ssd:
            ssd_io, cpu = implied({run: hdd.total.io})[run]
            totals[run] = ssd_io + cpu
            rows.append([LABELS[join], memory, cpu, hdd.total.cpu, ssd.total.cpu, totals[run], ssd.total.total, cpu / hdd.total.io])
    pairs = {memory: [totals.get((join, memory)) for join in ("grace-hash", "hybrid-hash")] for memory in MEMORY}
    ratios = [f"{grace / hybrid:.2f} at {memory} MB" for memory, (grace, hybrid) in pairs.items() if grace and hybrid]
    text = load("do2009").texts["implied_cpu"].format(ratios=", ".join(ratios))
    header = ["join", "MB", "CPU s implied", "ours, HDD", "ours, SSD", "SSD total s implied", "ours", "implied CPU over I/O, HDD"]
    return [Section("CPU times that table 3 implies", text, [Table(header, rows, "implied-cpu", digits=2)])]


@dataclass(frozen=True)
class Bound:
    """The least largest relative error, the prices that have it, ns of each kind of work, and the seconds that they give each run."""

    error: float
    prices: dict[str, float]
    seconds: dict[Run, float]


def bound(seconds: Mapping[Run, float], scale: float = 1.0) -> Bound:
    """The prices of user work and of the kernel's that come nearest to CPU seconds of runs at a scale."""
    counts = [committed()[0][run] for run in seconds]
    work: npt.NDArray[np.float64] = np.array([[one.get(kind, 0) for kind in KINDS] for one in counts]) * scale / SECONDS
    shares = work / np.array(list(seconds.values()))[:, None]
    least, ones = np.append(np.zeros(len(KINDS)), 1.0), np.ones((len(shares), 1))
    limits = np.vstack([np.hstack([shares, -ones]), np.hstack([-shares, -ones])])
    solution = linprog(least, A_ub=limits, b_ub=np.vstack([ones, -ones])[:, 0])
    *prices, error = np.asarray(solution.x).tolist()
    return Bound(error, dict(zip(KINDS, prices, strict=True)), dict(zip(seconds, (work @ prices).tolist(), strict=True)))


def _bound(runs: Runs) -> list[Section]:
    io = {run: seconds for run in RUNS if (seconds := runs.seconds(Setup(*run), "HDD", "io")) is not None}
    if len(io) < len(RUNS):
        return []
    every = {run: cpu for run, (_, cpu) in implied(io).items()}
    without = {run: seconds for run, seconds in every.items() if run[0] != "grace-hash"}
    bounds = [bound(seconds, runs.settings.scale) for seconds in (every, without)]
    rows: list[list[Entry]] = [[LABELS[run[0]], run[1], every[run], *(one.seconds.get(run) for one in bounds)] for run in RUNS]
    text = load("do2009").texts["cpu_bound"].format(every=100 * bounds[0].error, without=100 * bounds[1].error)
    header = ["join", "MB", "CPU s implied", "nearest prices", "nearest without GH"]
    return [Section("Nearest prices of CPU work", text, [Table(header, rows, "cpu-bound", digits=1)])]


EXHIBITS: Mapping[str, Exhibit] = {
    "implied_cpu": Shown(LONGEST_FIRST, _implied, runs=Runs),
    "cpu_bound": Shown([Setup(*run) for run in RUNS], _bound, runs=Runs),
}
