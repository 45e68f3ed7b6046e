"""The thesis's runs: TPC-C and TPC-E on its machine, with each design, with disks as in table 3.1 and with faster ones."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from flashsim.apps.papers import base
from flashsim.apps.papers.base import Cell, Claim, Job, Results, Settings
from flashsim.core.units import GIB, HOURS, MINUTES
from flashsim.experiments.judging.cells import ratio
from flashsim.pools import PoolOptions
from flashsim.pools.setup import PoolResult, PoolSetup, run_pool

#: Pages and simulated time are a hundredth of the thesis's at scale 1; ratios are the same from a thousandth on.
SHARE = 0.01
#: Steady throughput is that of the last two hours.
STEADY = 20
LAST = slice(-STEADY, None)


class Disks(NamedTuple):
    """A reading of the thesis's disks: its name, and how many times as fast as in table 3.1 they are at random.

    `work` is the processor time of a transaction of TPC-E, ns: the limit is 7.6 times what is done without an SSD at 230 GB.
    """

    name: str
    faster: float
    work: int


#: Disks as published, and fitted to the 6.7 MB/s that TPC-C reads without an SSD.
DISKS = (Disks("table 3.1", 1.0, 727_000), Disks("disks 1.5 times as fast", 1.5, 493_000))
PUBLISHED, FITTED = DISKS

DESIGNS = {"none": "noSSD", "cw": "CW", "dw": "DW", "lc": "LC", "tac": "TAC"}
#: Parts of the SSD's frames.
PARTITIONS = PoolOptions(partitions=16)
#: Writes to disk behind the clients' backs: 256 groups at the same time keep to lambda, and do not hold reads up for longer.
WRITING = replace(PARTITIONS, cleaners=256)
#: Table 3.1, but disks whose writes take next to no time.
NO_WRITES = "3.1, writes in no time"
#: Rates of the disks by the table that has them; table 4.3 has the eighteen of chapter 4.
RATES = {"3.1": "rates", "4.3": "rates:read=2718,write=2610,further=188244,servers=18"}
RATES[NO_WRITES] = "rates:read=1015,write=210000,further=26370,servers=8"


def devices(faster: float, table: str = "3.1") -> dict[str, str]:
    """The thesis's devices, with disks `faster` times as fast at random."""
    speed = "" if faster == 1 else f"{',' if ':' in RATES[table] else ':'}speed={100 * faster:g}"
    return {"disk": RATES[table] + speed, "ssd": "rates"}


def tpc_c(warehouses: int, design: str, disks: Disks, dirty_limit: int = 50) -> PoolSetup:
    """TPC-C for ten hours without checkpoints (3.4.2)."""
    options = replace(WRITING, dirty_limit=dirty_limit)
    return PoolSetup(f"tpc-c:warehouses={warehouses}", design, devices=devices(disks.faster), options=options)


def tpc_e(gigabytes: int, design: str, disks: Disks, time: int = 10 * HOURS) -> PoolSetup:
    """TPC-E for ten hours with a checkpoint every 40 minutes (3.4.3); pages of an extent of SQL Server, eight, are about as hot."""
    options = replace(WRITING, dirty_limit=1, checkpoint=40 * MINUTES, work=disks.work)
    return PoolSetup(f"tpc-e:database={gigabytes}GiB,neighbours=8", design, time=time, devices=devices(disks.faster), options=options)


def dual_write(benchmark: str, *, expands: bool) -> PoolSetup:
    """DW on the machine of chapter 4 with 2,000 warehouses or 20,000 customers, and the recovery intervals of section 4.4.1.

    How many pages the background writer writes at the same time is an assumption: so it writes all the time, as section 4.2.1.2 tells.
    """
    setup, minutes = (tpc_c(2000, "dw", PUBLISHED), 30.0) if benchmark == "TPC-C" else (tpc_e(230, "dw", PUBLISHED), 7.5)
    until, work = "ssd" if expands else "memory", setup.options.work
    options = replace(PARTITIONS, cleaners=8, fuzzy=True, expansion_until=until, checkpoint=round(minutes * MINUTES), work=work)
    return replace(setup, devices=devices(PUBLISHED.faster, "4.3"), memory=24 * GIB, interval=2 * MINUTES, options=options)


def at_scale(setup: PoolSetup, scale: float, settings: Settings) -> dict[str, Any]:
    """The setup's values, JSON-ready."""
    return replace(setup, scale=scale, seed=settings.seed).as_dict()


def disks_of(setup: PoolSetup) -> str:
    """The disks in words."""
    rates, _, speed = setup.devices["disk"].replace(":speed", ",speed").partition(",speed=")
    table = next(table for table, text in RATES.items() if text == rates)
    return f"disks of table {table}" + (f" times {int(speed) / 100:g}" if speed else "")


def job(setup: PoolSetup, settings: Settings) -> Job:
    """The run of a system whose devices have rates."""
    options, parts = setup.options, [setup.workload, DESIGNS[setup.design], disks_of(setup)]
    parts += [f"a checkpoint every {options.checkpoint / MINUTES:g} min"] if options.checkpoint else []
    parts += [f"lambda {options.dirty_limit} %"] if setup.design == "lc" else []
    parts += ["reads of 8 pages until the SSD is full"] if options.expansion_until == "ssd" else []
    return Job.of(run_pool, ", ".join(parts), drives=False, setup=at_scale(setup, settings.scale * SHARE, settings))


class ThesisRuns(base.Runs):
    """Results by setup, of those runs that `job` makes of setups."""

    job: Callable[[PoolSetup, Settings], Job] = staticmethod(job)

    def __init__(self, results: Results, job: Callable[[PoolSetup, Settings], Job] = job) -> None:
        super().__init__(results)
        self.job = job

    def series(self, setup: PoolSetup) -> PoolResult | None:
        """Interval by interval; None where the run was not asked for."""
        output = self.get(setup)
        return PoolResult.of(output) if output else None

    def result(self, setup: PoolSetup) -> PoolResult:
        """The same of a run that was made."""
        return PoolResult.of(self.get(setup))

    def steady(self, setup: PoolSetup, what: str = "transactions") -> float | None:
        """Events of a counter a second, over the last two hours."""
        result = self.series(setup)
        return None if result is None else result.rate(what, LAST)

    def over(self, setup: PoolSetup, other: PoolSetup) -> float | None:
        return ratio(self.steady(setup), self.steady(other))


#: Makes a claim's cells with a reading of the disks.
Judge = Callable[[Claim, Any, Disks], list[Cell]]


def of_readings(judge: Judge, readings: Sequence[Disks], claim: Claim, runs: base.Runs) -> list[Cell]:
    """The cells of each reading of the disks: the published one is the claim's own, the other a variant."""
    return [replace(cell, variant="" if disks is PUBLISHED else disks.name) for disks in readings for cell in judge(claim, runs, disks)]
