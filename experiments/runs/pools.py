"""Systems of pools from names and sizes, run for hours of virtual time: what happened in each interval.

Pages, the units in which a workload grows, and simulated time are scaled alike; devices and clients are not.  So rates and ratios hardly
depend on the scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from algorithms.extensions.base import extension_design
from algorithms.replacement.base import replacement_policy
from flashsim.core.model import CompiledModel
from flashsim.core.request import Integers
from flashsim.core.transactions import TransactionStream
from flashsim.core.units import GIB, KIB, SECONDS
from flashsim.device.station.engine import StationEngine
from flashsim.device.station.parameters import StationParameters
from flashsim.execution.compiled_loop import Striped
from flashsim.execution.pooled.run import PoolRun, Recorder
from flashsim.execution.pooled.system import COUNTED, CPU, DISK, SSD, PoolSystem
from traces.transactions import scaled, workload

HOUR, MINUTE = 3600 * SECONDS, 60 * SECONDS
#: Counts that are states at an interval's end, and not what happened in it.
STATES = ("ssd_used", "ssd_newer", "ssd_invalid")


@dataclass(frozen=True)
class Rates:
    """Requests of a page that a device serves a second.

    Parameters
    ----------
    read, write
        At random, by all its servers together.
    further
        Pages a second that a request goes on with behind its first one, 0 for no end of them.
    servers
        Requests served at once.
    exponential
        Whether times are exponentially distributed, with these means.
    """

    read: int
    write: int
    further: int = 0
    servers: int = 1
    exponential: bool = False

    def station(self, page_size: int, faster: float = 1.0) -> StationEngine:
        """The device; `faster` divides the time of a request's first page."""
        ahead = SECONDS // self.further if self.further else 0
        read, write = (round(self.servers * SECONDS / (rate * faster)) - ahead for rate in (self.read, self.write))
        parameters = StationParameters(read, write, servers=self.servers, rate=self.further * page_size, exponential=self.exponential)
        return StationEngine(parameters)


#: Do, 2012, table 3.1: eight disks and the Fusion ioDrive.
DISKS_3_1, SSD_3_1 = Rates(1015, 895, 26370, 8), Rates(12182, 12374)
#: The disks by the table that has their rates; table 4.3 has the eighteen of chapter 4.
DISKS = {"3.1": DISKS_3_1, "4.3": Rates(2718, 2610, 188_244, 18)}


@dataclass(frozen=True)
class PoolSetup:
    """A system and how long it runs; JSON-ready.

    Parameters
    ----------
    workload
        As `traces.transactions.workload` takes it, one that can be scaled.
    design
        Of the extension.
    memory, ssd
        Bytes of the memory pool and of the SSD; the latter is not used by a design that takes none.
    hours
        That it runs.
    disks
        The thesis's table that has their rates, of `DISKS`.
    faster_disks
        Divides the time of a request at random.
    work
        Processor time of a transaction, ns; 0 for none.  There is one processor.
    checkpoint
        Minutes between two checkpoints, 0 for none.
    every
        Minutes of an interval.
    policy
        Of the memory pool.
    others
        More parameters of `flashsim.execution.pooled.system.PoolSystem`, by name.
    """

    workload: str
    design: str
    memory: int = 20 * GIB
    ssd: int = 140 * GIB
    hours: float = 10.0
    disks: str = "3.1"
    faster_disks: float = 1.0
    work: int = 0
    checkpoint: float = 0.0
    every: float = 6.0
    policy: str = "lru-k"
    others: Mapping[str, int] | None = None

    def transactions(self, scale: float, seed: int) -> TransactionStream:
        """The workload at a scale."""
        return scaled(workload(self.workload, seed=seed), scale)

    def system(self, pages: int, scale: float) -> PoolSystem:
        """The system for a database of so many pages, at a scale."""
        usual: dict[str, Any] = {"throttle": 100, "partitions": 16, "group": 32, "clients": 64, "page_size": 8 * KIB}
        told = usual | {**(self.others or {})}
        size = told["page_size"]
        design = extension_design(self.design)
        return PoolSystem(
            pages,
            round(self.memory * scale / size),
            replacement_policy(self.policy),
            design,
            0 if self.design == "none" else round(self.ssd * scale / size),
            checkpoint=round(self.checkpoint * MINUTE * scale),
            work=self.work,
            interval=round(self.every * MINUTE * scale),
            **told,
        )

    def with_(self, **changes: Any) -> PoolSetup:
        return PoolSetup(**{field.name: changes.get(field.name, getattr(self, field.name)) for field in fields(self)})


@dataclass(frozen=True)
class PoolSeries:
    """What happened in each interval of a run.

    Parameters
    ----------
    counts
        By what was counted (`flashsim.execution.pooled.system.COUNTED`), a number an interval.
    seconds
        Of an interval, at the scale of the run: rates are those of devices, which are not scaled.
    ssd
        Frames of the SSD.
    """

    counts: Mapping[str, Integers]
    seconds: float
    ssd: int

    def total(self, what: str, part: slice = slice(None)) -> int:
        return int(self.counts[what][part].sum())

    def rate(self, what: str, part: slice = slice(None)) -> float:
        counts = self.counts[what][part]
        return float(counts.sum() / (len(counts) * self.seconds))

    def share(self, what: str, of: str, part: slice = slice(None)) -> float:
        return self.total(what, part) / max(1, self.total(of, part))

    def filled(self, what: str, part: slice = slice(None)) -> float:
        """Share of the SSD that is in a state, in the mean over the ends of some intervals."""
        return float(self.counts[what][part].mean() / max(1, self.ssd))

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> PoolSeries:
        """From what `run_pool` returned."""
        return cls({name: np.array(values) for name, values in kept["counts"].items()}, kept["seconds"], kept["ssd"])


def pool_run(
    setup: PoolSetup,
    scale: float,
    seed: int,
    drives: Mapping[int, CompiledModel | Striped] | None = None,
    record: Recorder | None = None,
) -> tuple[PoolRun, int, int]:
    """A system that has not run yet, when it ends, and its whole intervals; with stations by table 3.1 for what there are no drives for."""
    stream = setup.transactions(scale, seed)
    system = setup.system(stream.pages, scale)
    devices: dict[int, CompiledModel | Striped] = {DISK: DISKS[setup.disks].station(system.page_size, setup.faster_disks)}
    if system.ssd:
        devices[SSD] = SSD_3_1.station(system.page_size)
    devices |= drives or {}
    if setup.work:
        devices[CPU] = StationEngine(StationParameters(setup.work, setup.work))
    intervals = round(setup.hours * 60 / setup.every)
    return PoolRun(system, devices, stream, intervals + 1, record=record), intervals * system.interval, intervals


def run_pool(setup: Mapping[str, Any], scale: float, seed: int) -> dict[str, Any]:
    """Run a system; JSON-ready, see `PoolSeries`."""
    run, until, intervals = pool_run(PoolSetup(**setup), scale, seed)
    run.run(until)
    series = run.tables.series[:intervals]
    counts = {name: series[:, place].tolist() for place, name in enumerate(COUNTED)}
    return {"counts": counts, "seconds": run.system.interval / SECONDS, "ssd": run.system.ssd}
