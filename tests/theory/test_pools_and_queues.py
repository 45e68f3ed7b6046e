"""A system of pools at exponential rates is a closed network of queues: exact mean value analysis lies in its confidence interval.

References are even and only read, so that each misses with the same chance whatever came before, and each miss goes to the SSD with the
same chance: routing is random, times at a station are alike, and the network is of product form.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import t

from algorithms.extensions.base import extension_design
from algorithms.replacement.base import replacement_policy
from flashsim.core.kernel import is_compiled
from flashsim.core.rng import generator
from flashsim.core.transactions import Transactions
from flashsim.core.units import MILLISECONDS, SECONDS
from flashsim.execution.pooled.run import PoolRun
from flashsim.execution.pooled.system import CPU, DISK, SSD, PoolSystem
from flashsim.pools.devices import PoolDevice
from models.closed_network import Equilibrium, Station, equilibrium

PAGES, EACH, BATCHES = 20_000, 4, 40
#: A design whose SSD keeps what it took first.
STILL = str(Path(__file__).with_name("still_extension.py"))
CONFIDENCE = 0.99


class Even:
    """Transactions that read so many pages each, all with the same chance."""

    pages, kinds = PAGES, ("read",)

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def batches(self) -> Iterator[Transactions]:
        """Without end."""
        draw = generator(self.seed, "even")
        while True:
            references = np.zeros((4096 * EACH, 3), np.int64)
            references[:, 0], references[:, 1] = draw.integers(0, PAGES, len(references)), 1
            yield Transactions(references, np.arange(EACH, 4096 * EACH + 1, EACH), np.zeros(4096, np.int64))


class Case(NamedTuple):
    """A system: its rates and servers, clients, milliseconds of thought, and microseconds of processor time."""

    design: str
    disks: int
    ssds: int
    clients: int
    think: int = 0
    work: int = 0


CASES = {
    "eight disks": Case("none", 8, 0, 12, think=25),
    "five disks and a processor": Case("none", 5, 0, 9, work=5000),
    "disks and an SSD": Case(STILL, 3, 1, 8),
    "all of it": Case(STILL, 4, 2, 20, think=60, work=2500),
}
#: Requests a second that one server of the disk and of the SSD serves.
DISK_RATE, SSD_RATE = 100, 250


class Measured(NamedTuple):
    """Transactions a second with half their confidence interval, and the network's demands by station as they were counted."""

    rate: float
    half: float
    stations: tuple[Station, ...]

    def theory(self, case: Case, **servers: int) -> Equilibrium:
        """Of the network, perhaps with other servers at a station."""
        pairs = zip(("disk", "ssd"), self.stations, strict=False)
        changed = [Station(each.demand, servers.get(name, each.servers)) for name, each in pairs]
        return equilibrium([*changed, *self.stations[2:]], case.clients, case.think / 1000)


def measured(case: Case, exponential: int = 1, seed: int = 7) -> Measured:
    """Run it until the SSD is full, and then in so many batches of time."""

    def device(purpose: str, rate: int, servers: int) -> Any:
        told = f"rates:read={rate * servers},write={rate * servers},servers={servers},exponential={exponential}"
        return PoolDevice(purpose, told).make(8192)

    devices = {DISK: device("disk", DISK_RATE, case.disks)}
    if case.ssds:
        devices[SSD] = device("ssd", SSD_RATE, case.ssds)
    if case.work:
        devices[CPU] = device("cpu", 1_000_000 // case.work, 1)  # a round number a second
    interval = 20 * SECONDS
    system = PoolSystem(
        PAGES, PAGES // 5, replacement_policy("lru"), extension_design(case.design), PAGES // 2 if case.ssds else 0,
        clients=case.clients, think=case.think * MILLISECONDS, expansion=1, read_ahead=1, throttle=0, work=case.work, interval=interval,
    )  # fmt: skip
    warm = 12
    run = PoolRun(system, devices, Even(seed), intervals=warm + BATCHES + 1)
    run.run((warm + BATCHES) * interval)
    series = run.tables.series[warm : warm + BATCHES]
    counts = {name: int(series[name].sum()) for name in run.counts}
    assert counts["ssd_writes"] == counts["disk_writes"] == 0  # nothing but what clients wait for
    each = {name: counts[name] / counts["transactions"] for name in ("disk_reads", "ssd_reads")}
    stations = (Station(each["disk_reads"] / DISK_RATE, case.disks), Station(each["ssd_reads"] / SSD_RATE, max(1, case.ssds)))
    rates = series.transactions * SECONDS / interval
    half = float(t.ppf((1 + CONFIDENCE) / 2, BATCHES - 1)) * rates.std(ddof=1) / np.sqrt(BATCHES)
    return Measured(float(rates.mean()), float(half), (*stations, Station(case.work / 1e6)))


@pytest.mark.skipif(not is_compiled(), reason="takes minutes uncompiled")
@pytest.mark.parametrize("name", CASES)
def test_throughput_is_that_of_mean_value_analysis(name: str) -> None:
    case = CASES[name]
    found = measured(case)
    assert abs(found.rate - found.theory(case).throughput) <= found.half < 0.01 * found.rate
    fewer = found.theory(case, disk=case.disks - 1).throughput
    assert abs(found.rate - fewer) > 3 * found.half  # a model that is wrong by one server would be found out


@pytest.mark.skipif(not is_compiled(), reason="takes minutes uncompiled")
def test_times_that_are_not_exponential_are_told_apart() -> None:
    case = CASES["five disks and a processor"]
    found = measured(case, exponential=0)
    assert found.rate - found.theory(case).throughput > 3 * found.half
