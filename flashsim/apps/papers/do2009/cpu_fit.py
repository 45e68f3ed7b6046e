"""The prices of the CPU preset ``pentium-d-2009``, fitted to the paper's calibration cells and to nothing else.

``python -m flashsim.apps.papers.do2009.cpu_fit`` prints the preset's file.  No device is simulated:

- Kernel prices solve table 5's rows of 8 and 32 KB exactly, on each device: a price a request and a price a byte.
- User prices are the least squares, in relative errors, of twelve published values: user time in the same four cells of table 5, and
  table 3's speedups of total time with 200 and 500 MB, eight cells.  A total is I/O + user + kernel time.  The HDD's I/O time is the
  formula's (`models.haas`) for the figures of table 2, with temporary files written full; the SSD's is that over table 3's I/O speedup.
- Twelve cells do not tell eight prices apart, since most kinds of work occur together.  What they leave open is settled by keeping
  the prices a tuple near their common mean (of logarithms): a price e times as high costs as much as a cell that is 1 % off.

The work of the joins is counted by the algorithms themselves, without any device.  The counts of the calibration cells at scale 1 are
committed beside this module, since counting them takes two minutes; ``python -m flashsim.apps.papers.do2009.cpu_fit work`` counts them
again and prints the file.
"""

import sys
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from algorithms.joins.base import JoinParameters, plan
from flashsim.apps.papers.base import load
from flashsim.apps.papers.do2009.runs import CPU, DEVICES, JOINS, MEMORY, PAGE_SIZE, large_pages, relations
from flashsim.core.protocols import Label
from flashsim.core.request import Completions, Requests
from flashsim.core.units import KIB, MIB, SECONDS
from flashsim.device.block_layer import command_counts
from flashsim.execution import drivers
from flashsim.execution.cpu import DEFAULT, CpuModel, mean_price
from flashsim.execution.requests import HOST, Work
from flashsim.experiments.runs.joining import lay_out
from flashsim.storage.heap_file import heap_file
from flashsim.storage.source.do2009 import SEED
from models.disk import Disk
from models.haas import cost

#: The calibration columns of table 3: buffer pools in the paper's MB.
CALIBRATION_MEMORY = (200, 500)
FILE = Path(__file__).with_name("cpu_work.toml")
#: What is counted: the user's work, and what the kernel handles, device commands of at most 128 KiB and bytes.
KINDS = (*Work, "commands", "bytes")
#: A join with a buffer pool.
Run = tuple[str, int]
#: Counts by kind, of kinds that a run has.
Counts = dict[str, int]
RUNS: list[Run] = [(join, memory) for join in JOINS for memory in CALIBRATION_MEMORY]


class _CommandCounter:
    commands = bytes = 0

    def record(self, requests: Requests, completions: Completions | None, label: Label, after: int | None = None) -> None:
        self.commands += int(command_counts(requests["length"]).sum())
        self.bytes += int(requests["length"].sum())

    def close(self) -> None: ...


def count_work(join: str, memory: int, scale: float = 1.0, seed: int = SEED) -> Counts:
    """Run a join without devices and count its work: pages of 8 KiB, whole blocks, buffers as the paper divides them.

    The buffer pool, in the paper's MB, which are MiB, shrinks with the scale; too little is refused.
    """
    r, s = (lay_out(relation, PAGE_SIZE) for relation in relations(scale, seed))
    sink = _CommandCounter()
    parameters = JoinParameters(round(memory * scale * MIB / PAGE_SIZE))
    (cost,) = drivers.run(lambda: plan(join, r, s, parameters), [r, s], sink=sink)
    return {**cost.total().work, "commands": sink.commands, "bytes": sink.bytes}


@cache
def committed_work() -> tuple[dict[Run, Counts], tuple[int, int]]:
    """Counts of each run at scale 1, and the pages of temporary files that would hold all customers, and all orders."""
    document = tomllib.loads(FILE.read_text(encoding="utf-8"))
    rows = {run: zip(KINDS, document["runs"]["{} {}".format(*run)], strict=True) for run in RUNS}
    return {run: {kind: number for kind, number in row if number} for run, row in rows.items()}, tuple(document["temporary_pages"])


def work_text() -> str:
    """The committed file; temporary files are written full."""
    lines = [
        "# Work of the four joins at scale 1 with the buffer pools of table 3's calibration columns (MB), and the pages of temporary files",
        "# that would hold each relation; printed by python -m flashsim.apps.papers.do2009.cpu_fit work.",
        f"temporary_pages = {[heap_file(relation, PAGE_SIZE).pages for relation in relations(1.0, SEED)]}",
        "kinds = [{}]\n\n[runs]".format(", ".join(f'"{kind}"' for kind in KINDS)),
    ]
    for join, memory in RUNS:
        counts = count_work(join, memory)
        lines.append(f'"{join} {memory}" = [{", ".join(f"{counts.get(kind, 0):_}" for kind in KINDS)}]')
    return "\n".join(lines) + "\n"


#: Table 5's rows, KB of a page, and those that the fit sees.
ROWS, CALIBRATION_ROWS = (2, 4, 8, 16, 32), (8, 32)
#: Table 2, for pages of 8 KiB.
_HDD = Disk.from_rates(12, 5.56, PAGE_SIZE, 34 * MIB)
#: User prices lie in this range, ns: from some thirty cycles at 3.2 GHz to ten microseconds.
_LEAST, _MOST = 10.0, 10_000.0
#: Weight of a price that is e times the common mean, as a relative error of a cell.
_DIVISION = 0.01

Floats = npt.NDArray[np.float64]
#: Kernel prices a request and a byte, ns, by device.
Kernel = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class FittedValue:
    """One published value and what predicts it, seconds: user time, or with other time on the devices ``(hdd + user) / (ssd + user)``."""

    name: str
    published: float
    work: Counts
    hdd: float | None = None
    ssd: float | None = None

    def value(self, prices: Floats) -> float:
        """The value for prices in the order of `Work`, ns."""
        user = float(np.array([self.work.get(kind, 0) for kind in Work], np.float64) @ prices) / SECONDS
        return user if self.hdd is None or self.ssd is None else (self.hdd + user) / (self.ssd + user)


def _published_values(claim: str, row: str) -> list[float]:
    """The values of a row that the fit sees."""
    values = load("do2009").claim(claim).published[row]
    seen, places = (CALIBRATION_ROWS, ROWS) if claim == "table5" else (CALIBRATION_MEMORY, MEMORY)
    return [float(values[places.index(place)]) for place in seen]


def page_sized(kilobytes: int) -> Counts:
    """The work of block nested loops with 500 MB, which only reads, with pages of another size and a request a page."""
    counts = committed_work()[0]["bnl", 500]
    pages = counts["bytes"] // (kilobytes * KIB)
    return {**counts, Work.PAGE: pages, "commands": pages}


def fit_kernel() -> Kernel:
    """Prices by device, from two rows of table 5 each."""
    runs = [page_sized(kilobytes) for kilobytes in CALIBRATION_ROWS]
    counts = np.array([[run["commands"], run["bytes"]] for run in runs], np.float64)
    return {
        device: tuple((np.linalg.solve(counts, _published_values("table5", f"{device}, kernel")) * SECONDS).tolist()) for device in DEVICES
    }


def kernel_seconds(kernel: Kernel, device: str, run: Counts) -> float:
    per_request, per_byte = kernel[device]
    return (per_request * run["commands"] + per_byte * run["bytes"]) / SECONDS


def cells() -> list[FittedValue]:
    """The twelve values that user prices are fitted to."""
    values, kernel = [], fit_kernel()
    speedups = {join: zip(_published_values("table3-io", join), _published_values("table3-join", join), strict=True) for join in JOINS}
    for (join, memory), run in committed_work()[0].items():
        (io_speedup, speedup), hdd = next(speedups[join]), hdd_seconds(join, memory)
        times = (hdd + kernel_seconds(kernel, "HDD", run), hdd / io_speedup + kernel_seconds(kernel, "SSD", run))
        values.append(FittedValue(f"table 3, {join} {memory} MB", speedup, run, *times))
    for device in DEVICES:
        for kilobytes, seconds in zip(CALIBRATION_ROWS, _published_values("table5", f"{device}, user"), strict=True):
            values.append(FittedValue(f"table 5, {device} {kilobytes} KB", seconds, page_sized(kilobytes)))
    return values


def hdd_seconds(join: str, memory: int) -> float:
    """I/O seconds by the formula."""
    r_full, s_full = committed_work()[1]
    return cost(join, *large_pages(PAGE_SIZE), memory * MIB // PAGE_SIZE, _HDD, r_temporary=r_full, s_temporary=s_full).seconds


def fit_user(values: list[FittedValue]) -> Floats:
    """Prices in the order of `Work`, ns."""
    per_tuple = np.array([kind is not Work.PAGE for kind in Work])

    def residuals(logs: Floats) -> Floats:
        prices = np.exp(logs)
        errors = [cell.value(prices) / cell.published - 1 for cell in values]
        apart = logs[per_tuple] - logs[per_tuple].mean()
        return np.concatenate([errors, _DIVISION * apart])

    start = np.full(len(Work), np.log(500.0))
    solution = least_squares(residuals, start, bounds=(np.log(_LEAST), np.log(_MOST)), xtol=1e-12, ftol=1e-12, gtol=1e-12)
    return np.asarray(np.exp(solution.x))


@cache
def prices(without: Collection[str] = ()) -> CpuModel:
    """Prices, rounded as the preset's, whose user part is fitted without table 3's cells of some joins, such as ``("grace-hash",)``."""
    return _model(fit_user([cell for cell in cells() if not any(f", {join} " in cell.name for join in without)]), {})


def fit_preset() -> tuple[CpuModel, list[str]]:
    """The preset, its prices rounded, and what is said above them."""
    values = cells()
    prices = fit_user(values)
    without = np.array([fit_user(values[:omitted] + values[omitted + 1 :]) for omitted in range(len(values))])
    sources = {
        f"user.{kind.value}": f"fitted: do2009, tables 3 and 5; {low:.0f} to {high:.0f} with any one of the cells left out"
        for kind, low, high in zip(Work, without.min(axis=0), without.max(axis=0), strict=True)
    }
    for device in DEVICES:
        source = f"fitted: do2009, table 5, {device}, rows of 8 and 32 KB"
        sources |= {f"kernel.{device.lower()}.{part}": source for part in ("per_request", "per_byte")}
    sources[f"user.{DEFAULT}"] = "fitted: do2009, tables 3 and 5; the geometric mean of the prices a tuple"
    return _model(prices, sources), [*_COMMENTS, *(f"  {each.name}: {each.published:g}, {each.value(prices):.4g}" for each in values)]


def _model(prices: Floats, sources: Mapping[str, str]) -> CpuModel:
    user: dict[str, float] = {kind: float(f"{price:.3g}") for kind, price in zip(Work, prices, strict=True)}
    per_request, per_byte = ({device.lower(): float(f"{price[part]:.4g}") for device, price in fit_kernel().items()} for part in (0, 1))
    cores = {HOST: 2}  # "a dual-core Pentium"
    return CpuModel(CPU, user | {DEFAULT: mean_price(user)}, per_request, per_byte, sources, cores=cores, year=2009)


_COMMENTS = (
    "The machine of Do and Patel (DaMoN 2009): a dual-core Pentium of 3.2 GHz under Red Hat Enterprise 5.",
    "",
    "Printed by python -m flashsim.apps.papers.do2009.cpu_fit, whose beginning says how every price was fitted, and to",
    "which cells.",
    "Whatever rests on these prices is fitted. The cells of user time, published and as fitted:",
)


if __name__ == "__main__":
    model, comments = fit_preset()
    print(work_text() if sys.argv[1:] == ["work"] else model.as_toml(comments), end="")
