"""The prices of the CPU preset ``pentium-d-2009``, fitted to the paper's calibration cells and to nothing else.

``python -m flashsim.literature.do2009.cpu_fit`` prints the preset's file.  No device is simulated:

- Kernel prices solve table 5's rows of 8 and 32 KB exactly, on each device: a price a request and a price a byte.
- User prices are the least squares, in relative errors, of twelve published values: user time in the same four cells of table 5, and
  table 3's speedups of total time with 200 and 500 MB, eight cells.  A total is I/O + user + kernel time.  The HDD's I/O time is the
  formula's (`models.haas`) for the figures of table 2, with temporary files written full; the SSD's is that over table 3's I/O speedup.
- Twelve cells do not tell eight prices apart, since most kinds of work occur together.  What they leave open is settled by keeping
  the prices a tuple near their common mean (of logarithms): a price e times as high costs as much as a cell that is 1 % off.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from flashsim.core.units import KIB, MIB, SECONDS
from flashsim.execution.cpu import DEFAULT, CpuModel, mean_price
from flashsim.execution.requests import HOST, Work
from flashsim.literature.base import load
from flashsim.literature.do2009 import cpu_work
from flashsim.literature.do2009.cpu_work import CALIBRATION_MEMORY, Counted
from flashsim.literature.do2009.runs import JOINS, MEMORY, PAGE_SIZE, SCALE_FACTOR
from flashsim.storage.source.do2009 import PUBLISHED_BYTES
from models.disk import Disk
from models.haas import cost

NAME = "pentium-d-2009"
#: Table 5's rows, KB of a page, and those that the fit sees.
ROWS, CALIBRATION_ROWS = (2, 4, 8, 16, 32), (8, 32)
#: Table 2, for pages of 8 KiB.
_HDD = Disk.from_rates(12, 5.56, PAGE_SIZE, 34 * MIB)
DEVICES = {"HDD": "hdd", "SSD": "ssd"}
#: User prices lie in this range, ns: from some thirty cycles at 3.2 GHz to ten microseconds.
_LEAST, _MOST = 10.0, 10_000.0
#: Weight of a price that is e times the common mean, as a relative error of a cell.
_DIVISION = 0.01

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Kernel:
    """Kernel prices on one device, ns."""

    per_request: float
    per_byte: float

    def seconds(self, work: Counted) -> float:
        return (self.per_request * work.commands + self.per_byte * work.bytes) / SECONDS


@dataclass(frozen=True)
class FittedValue:
    """One published value and what predicts it: ``(hdd + user) / (ssd + user)``, or user time alone; seconds.

    Parameters
    ----------
    work
        Units of each kind, in the order of `Work`.
    hdd, ssd
        I/O and kernel time on the devices; None for a cell that is user time.
    """

    name: str
    published: float
    work: Floats
    hdd: float | None = None
    ssd: float | None = None

    def value(self, prices: Floats) -> float:
        """The value for prices in the order of `Work`, ns."""
        user = float(self.work @ prices) / SECONDS
        return user if self.hdd is None or self.ssd is None else (self.hdd + user) / (self.ssd + user)


def _published(claim: str, row: str, places: tuple[int, ...], all_places: tuple[int, ...]) -> list[float]:
    values = next(each for each in load("do2009").claims if each.id == claim).published[row]
    return [float(values[all_places.index(place)]) for place in places]


def _work_of_runs() -> dict[tuple[str, int], Counted]:
    committed = cpu_work.committed()
    return {(join, memory): Counted.from_dict(committed[join][str(memory)]) for join in JOINS for memory in CALIBRATION_MEMORY}


def page_sized(work: Counted, kilobytes: int) -> Counted:
    """The work of a join that only reads, with pages of another size and a request a page."""
    pages = work.bytes // (kilobytes * KIB)
    return replace(work, work={**work.work, Work.PAGE: pages}, commands=pages)


def fit_kernel() -> dict[str, Kernel]:
    """Prices by device, from two rows of table 5 each."""
    runs = [page_sized(_work_of_runs()["bnl", 500], kilobytes) for kilobytes in CALIBRATION_ROWS]
    counts = np.array([[run.commands, run.bytes] for run in runs], np.float64)
    return {
        device: Kernel(*(np.linalg.solve(counts, _published("table5", f"{device}, kernel", CALIBRATION_ROWS, ROWS)) * SECONDS).tolist())
        for device in DEVICES
    }


def cells(kernel: Mapping[str, Kernel]) -> list[FittedValue]:
    """The twelve values that user prices are fitted to."""
    runs = _work_of_runs()
    values = []
    for join in JOINS:
        io = _published("table3-io", join, CALIBRATION_MEMORY, MEMORY)
        total = _published("table3-join", join, CALIBRATION_MEMORY, MEMORY)
        for memory, io_speedup, speedup in zip(CALIBRATION_MEMORY, io, total, strict=True):
            run = runs[join, memory]
            hdd = _hdd_seconds(join, memory)
            times = (hdd + kernel["HDD"].seconds(run), hdd / io_speedup + kernel["SSD"].seconds(run))
            values.append(FittedValue(f"table 3, {join} {memory} MB", speedup, _in_order(run), *times))
    for device in DEVICES:
        for kilobytes, seconds in zip(CALIBRATION_ROWS, _published("table5", f"{device}, user", CALIBRATION_ROWS, ROWS), strict=True):
            run = page_sized(runs["bnl", 500], kilobytes)
            values.append(FittedValue(f"table 5, {device} {kilobytes} KB", seconds, _in_order(run)))
    return values


def _in_order(work: Counted) -> Floats:
    return np.array([work.work.get(kind, 0) for kind in Work], np.float64)


def _hdd_seconds(join: str, memory: int) -> float:
    r, s = (round(PUBLISHED_BYTES[name] * SCALE_FACTOR / PAGE_SIZE) for name in ("customer", "orders"))
    r_full, s_full = cpu_work.committed()["temporary_pages"]
    pool = memory * MIB // PAGE_SIZE
    return cost(join, r, s, pool, _HDD, r_temporary=r_full, s_temporary=s_full).seconds


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
    prices: Floats = np.exp(solution.x)
    return prices


@cache
def prices(without: Collection[str] = ()) -> CpuModel:
    """Prices, rounded as the preset's, whose user part is fitted without table 3's cells of some joins, such as ``("grace-hash",)``."""
    kernel = fit_kernel()
    values = [cell for cell in cells(kernel) if not any(f", {join} " in cell.name for join in without)]
    return _model(kernel, fit_user(values), {})


def fitted() -> tuple[CpuModel, list[str]]:
    """The preset, its prices rounded, and what is said above them."""
    kernel = fit_kernel()
    values = cells(kernel)
    prices = fit_user(values)
    without = np.array([fit_user(values[:omitted] + values[omitted + 1 :]) for omitted in range(len(values))])
    sources = {
        f"user.{kind.value}": f"fitted: do2009, tables 3 and 5; {low:.0f} to {high:.0f} with any one of the cells left out"
        for kind, low, high in zip(Work, without.min(axis=0), without.max(axis=0), strict=True)
    }
    for device, kind in DEVICES.items():
        sources |= {
            f"kernel.{kind}.{part}": f"fitted: do2009, table 5, {device}, rows of 8 and 32 KB" for part in ("per_request", "per_byte")
        }
    sources[f"user.{DEFAULT}"] = "fitted: do2009, tables 3 and 5; the geometric mean of the prices a tuple"
    comments = [*_COMMENTS, *(f"  {cell.name}: {cell.published:g}, {cell.value(prices):.4g}" for cell in values)]
    return _model(kernel, prices, sources), comments


def _model(kernel: Mapping[str, Kernel], prices: Floats, sources: Mapping[str, str]) -> CpuModel:
    user: dict[str, float] = {kind: _rounded(price, 3) for kind, price in zip(Work, prices, strict=True)}
    return CpuModel(
        NAME,
        user | {DEFAULT: mean_price(user)},
        {kind: _rounded(kernel[device].per_request, 4) for device, kind in DEVICES.items()},
        {kind: _rounded(kernel[device].per_byte, 4) for device, kind in DEVICES.items()},
        sources,
        cores={HOST: _CORES},
    )


_CORES = 2  # "a dual-core Pentium"
_COMMENTS = (
    "The machine of Do and Patel (DaMoN 2009): a dual-core Pentium of 3.2 GHz under Red Hat Enterprise 5.",
    "",
    "Printed by python -m flashsim.literature.do2009.cpu_fit, whose beginning says how every price was fitted, and to which cells.",
    "Whatever rests on these prices is fitted. The cells of user time, published and as fitted:",
)


def _rounded(price: float, digits: int) -> float:
    return float(f"{price:.{digits}g}")


if __name__ == "__main__":
    model, comments = fitted()
    print(model.as_toml(comments), end="")
