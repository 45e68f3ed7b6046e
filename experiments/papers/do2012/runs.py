"""The thesis's runs: TPC-C and TPC-E on its machine, with each design, with disks as in table 3.1 and with faster ones."""

from dataclasses import dataclass
from typing import Any

from experiments.papers.base import Cell, Claim, Judgement, Verdict
from experiments.presentation.tables import Entry
from experiments.runs.jobs import Job, Results, Settings
from experiments.runs.pools import PoolSeries, PoolSetup, run_pool

#: Pages and simulated time are a hundredth of the thesis's at scale 1; ratios are the same from a thousandth on.
SHARE = 0.01
#: Steady throughput is that of the last two hours.
STEADY = 20


@dataclass(frozen=True)
class Disks:
    """A reading of the thesis's disks.

    Parameters
    ----------
    name
        In words.
    faster
        Than table 3.1 has them, at random.
    work
        Processor time of a transaction of TPC-E, ns: the limit is 7.6 times what is done without an SSD at 230 GB.
    """

    name: str
    faster: float
    work: int


#: As published, and fitted to the 6.7 MB/s that TPC-C reads without an SSD.
DISKS = (Disks("table 3.1", 1.0, 727_000), Disks("disks 1.5 times as fast", 1.5, 493_000))
PUBLISHED, FITTED = DISKS

DESIGNS = {"none": "noSSD", "cw": "CW", "dw": "DW", "lc": "LC", "tac": "TAC"}


def writing(dirty_limit: int) -> dict[str, int]:
    """What goes to disk behind the clients' backs: 256 groups at the same time keep to lambda, and do not hold reads up for longer."""
    return {"dirty_limit": dirty_limit, "cleaners": 256}


def tpc_c(warehouses: int, design: str, disks: Disks, dirty_limit: int = 50) -> PoolSetup:
    """TPC-C for ten hours without checkpoints (3.4.2)."""
    return PoolSetup(f"tpc-c:warehouses={warehouses}", design, faster_disks=disks.faster, others=writing(dirty_limit))


def tpc_e(gigabytes: int, design: str, disks: Disks, **changes: Any) -> PoolSetup:
    """TPC-E for ten hours with a checkpoint every 40 minutes (3.4.3); pages of an extent of SQL Server, eight, are about as hot."""
    usual: dict[str, Any] = {"checkpoint": 40, "work": disks.work, "others": writing(1), "faster_disks": disks.faster}
    return PoolSetup(f"tpc-e:database={gigabytes}GiB,neighbours=8", design, **usual | changes)


def job(setup: PoolSetup, settings: Settings) -> Job:
    return Job.of(run_pool, _label(setup), setup=vars(setup), scale=settings.scale * SHARE, seed=settings.seed)


def _label(setup: PoolSetup) -> str:
    told = [setup.workload, DESIGNS[setup.design], f"disks of table {setup.disks}"]
    if setup.faster_disks != 1:
        told[-1] += f" times {setup.faster_disks:g}"
    if setup.checkpoint:
        told.append(f"a checkpoint every {setup.checkpoint:g} min")
    others = dict(setup.others or {})
    if setup.design == "lc":
        told.append(f"lambda {others['dirty_limit']} %")
    if others.get("expands_for_ssd"):
        told.append("reads of 8 pages until the SSD is full")
    return ", ".join(told)


class Runs:
    """What happened, by setup."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def series(self, setup: PoolSetup) -> PoolSeries | None:
        """Interval by interval; None where the run was not asked for."""
        found = self._results.get(job(setup, self._results.settings))
        return PoolSeries.of(found) if found else None

    def steady(self, setup: PoolSetup, what: str = "transactions") -> float | None:
        """Of something counted, a second over the last two hours."""
        found = self.series(setup)
        return None if found is None else found.rate(what, slice(-STEADY, None))

    def over(self, setup: PoolSetup, other: PoolSetup) -> float | None:
        mine, its = self.steady(setup), self.steady(other)
        return mine / its if mine is not None and its else None


def within(name: str, published: float, measured: float | None, limit: float) -> Cell:
    """A published number, and whether ours is within a share of it."""
    return Cell(name, published, measured, None if measured is None else abs(measured / published - 1) <= limit)


def judged(claim: Claim, cells: dict[str, list[Cell]], note: str = "") -> Judgement:
    """The verdict by the cells of each reading of the disks: with the first, the published one, it may be reproduced, else only fitted.

    A claim all of whose readings are fitted says so under ``always``.
    """
    told = [cell for found in cells.values() for cell in found]
    holds = {name: all(cell.inside for cell in found) for name, found in cells.items()}
    verdict = Verdict.DIFFERS
    if any(cell.inside is None for cell in told):
        verdict = Verdict.NOT_ATTEMPTED
    elif next(iter(holds.values())):
        verdict = Verdict.FITTED if claim.values.get("always") else Verdict.REPRODUCED
    elif any(holds.values()):
        verdict = Verdict.FITTED
    named = [_with(cell, f"{name}: {cell.name}") for name, found in cells.items() for cell in found]
    values: list[Entry] = [cell.published for cell in next(iter(cells.values()))]
    published = ", ".join(map(_shown, values))
    measured = "; ".join(f"{name}: {', '.join(_shown(cell.measured) for cell in found)}" for name, found in cells.items())
    return Judgement(claim, verdict, published, measured, named, note)


def _with(cell: Cell, name: str) -> Cell:
    return Cell(name, cell.published, cell.measured, cell.inside, cell.runs)


def _shown(value: Entry) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
