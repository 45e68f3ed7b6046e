"""Throughput of clients whose memory pool an SSD extends: a closed network of disks, SSD and processor, by mean value analysis.

A client waits for what it reads.  Nobody waits for writes, nor for what the cleaner reads, but they keep servers busy: to the client a
station is slower by the share of its time that they take (a shadow server; Sevcik, "Priority scheduling disciplines in queuing network
models of computer systems", IFIP Congress 1977).  While more than so many requests are at the SSD, others pass it by (the throttle of Do,
2012, 3.3.3): pages are then read from the disk, and what leaves memory goes there or nowhere.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from models.closed_network import Equilibrium, Station, equilibrium
from models.pool_flows import Flows


class Service(NamedTuple):
    """Servers behind one queue: seconds that they take to read and to write a page, and for each further page of a request."""

    read: float
    write: float
    further: float = 0.0
    servers: int = 1


class Clients(NamedTuple):
    """Clients and their transactions: how many, references of a transaction, seconds of processor and of thought for each."""

    number: int
    references: float
    work: float = 0.0
    think: float = 0.0


class Prediction(NamedTuple):
    """Predicted steady state of a system."""

    throughput: float  #: Transactions a second.
    bypassed: float  #: Share of the SSD's requests that pass it by, if they may.
    #: Share of the servers' time.
    disk_busy: float
    ssd_busy: float


class _Loads(NamedTuple):
    """Seconds of service a transaction: waited for and not, of the disk and of the SSD; and requests to the SSD, waited for and all."""

    disk: tuple[float, float]
    ssd: tuple[float, float]
    waits: float
    requests: float


def _loads(flows: Flows, disk: Service, ssd: Service, references: float, bypass: float) -> _Loads:
    """Loads if requests pass the SSD by: a page that was not copied is not served, and one that is newer is read all the same."""
    copied = 1 - bypass * min(1.0, flows.admitted / flows.left) if flows.left else 1.0
    served, newer, cleaned = (copied * each for each in (flows.served, flows.served_newer, flows.cleaned))
    from_ssd = newer + (served - newer) * (1 - bypass)
    from_disk = flows.missed - from_ssd
    admitted = flows.admitted * (1 - bypass)
    written = flows.written + flows.only_admitted * bypass
    cleaning = cleaned / flows.group * (disk.write + (flows.group - 1) * disk.further)
    return _Loads(
        (references * from_disk * disk.read, references * (written * disk.write + cleaning)),
        (references * from_ssd * ssd.read, references * (admitted * ssd.write + cleaned * ssd.read)),
        references * from_ssd,
        references * (from_ssd + admitted + cleaned),
    )


def _network(loads: _Loads, disk: Service, ssd: Service, clients: Clients) -> Equilibrium:
    pairs = [(*loads.disk, disk.servers), (*loads.ssd, ssd.servers), (clients.work, 0.0, 1)]

    def at(rate: float) -> Equilibrium:
        stations = [Station(wait / max(1e-9, 1 - rate * other / servers), servers) for wait, other, servers in pairs]
        return equilibrium(stations, clients.number, clients.think)

    most = min([servers / other for _, other, servers in pairs if other], default=np.inf)
    most = min(most, at(0.0).throughput)
    if at(most).throughput >= most:  # nobody waits where servers have the most to do
        return at(most)
    return at(float(brentq(lambda rate: at(rate).throughput - rate, 0.0, most, rtol=1e-6)))


def predict(flows: Flows, disk: Service, ssd: Service, clients: Clients, throttle: int = 0) -> Prediction:
    """Throughput.

    Parameters
    ----------
    flows
        For each reference.
    disk, ssd
        Their service.
    clients
        How many go round, and what a round is.
    throttle
        Requests at the SSD at which others pass it by, 0 for no limit.
    """

    def solve(bypass: float) -> tuple[_Loads, Equilibrium]:
        loads = _loads(flows, disk, ssd, clients.references, bypass)
        return loads, _network(loads, disk, ssd, clients)

    def pending(bypass: float) -> float:
        loads, network = solve(bypass)
        return network.queues[1] * loads.requests / loads.waits if loads.waits else 0.0

    bypass = 0.0
    if throttle and pending(0.0) > throttle:
        bypass = float(brentq(lambda share: pending(share) - throttle, 0.0, 1.0, xtol=1e-3))
    loads, network = solve(bypass)
    busy = [network.throughput * sum(each) / servers for each, servers in ((loads.disk, disk.servers), (loads.ssd, ssd.servers))]
    return Prediction(network.throughput, bypass, *busy)
