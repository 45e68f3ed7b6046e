"""A system of pools by formula: what its workload's references ask of its devices, and the throughput that comes of it."""

from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.transactions import CREATES, FIRST, MARKS, SCANS, WRITES, TransactionStream
from flashsim.core.units import SECONDS
from flashsim.execution.pooled.system import PoolSystem
from flashsim.pools.devices import Rates
from models.extended_pool import Clients, Prediction, Service, predict
from models.pool_flows import Flows, ReferenceStream, Stays, Window, flows, stays

#: The share of the references, at the end, over which flows are counted; and by how much more are looked at each time.
LAST, _MORE = 0.2, 1.3


class TransactionReferences:
    """The references of a workload's transactions, made as they are needed."""

    def __init__(self, stream: TransactionStream) -> None:
        self._batches, self._transactions = stream.batches(), 0
        self._narrow = np.int32 if stream.pages < 1 << 31 else np.int64
        self._rows = np.empty((0, 2), self._narrow)

    @property
    def each(self) -> float:
        """Mean number a transaction, over the transactions that were made."""
        return len(self._rows) / max(1, self._transactions)

    def until(self, count: int) -> ReferenceStream:
        """The first of them, or all if there are fewer."""
        parts, have = [self._rows], len(self._rows)
        while have < count and (batch := next(self._batches, None)) is not None:
            if np.any(batch.references[:, MARKS] & SCANS):
                raise InvalidParameterError("workload", "it has scans", "formulas are of references to single pages alone")
            parts.append(batch.references[:, [FIRST, MARKS]].astype(self._narrow))
            self._transactions, have = self._transactions + len(batch.ends), have + len(batch.references)
        if not have:
            raise InvalidParameterError("workload", "no references", "at least one is needed")
        self._rows = np.concatenate(parts) if len(parts) > 1 else self._rows
        pages, marks = self._rows[:count].T
        return ReferenceStream(pages, marks & (WRITES | CREATES) > 0, marks & CREATES > 0)


def last_of(count: int) -> Window:
    return Window(round(count * (1 - LAST)), round(count * (1 - LAST / 2)), count)


def service(rates: Rates) -> Service:
    """Service time of a station of so many requests a second."""
    faster, further = rates.speed / 100, 1 / rates.further if rates.further else 0.0
    return Service(rates.servers / (rates.read * faster), rates.servers / (rates.write * faster), further, rates.servers)


@dataclass(frozen=True)
class Formula:
    """A system with its devices, as formulas take it."""

    #: A system whose design is one of `models.pool_flows.DESIGNS`.
    system: PoolSystem
    #: Service times.
    disk: Service
    ssd: Service
    #: 1 for LRU in memory, 2 for LRU-2.
    uses: int = 2

    def stays(self, references: ReferenceStream, window: Window) -> Stays:
        return stays(references, self.system.memory, window, self.uses)

    def flows(self, page_stays: Stays, window: Window) -> Flows:
        """Requests of disk and SSD, a reference."""
        system, name = self.system, self.system.design.name.partition(":")[0]
        extent = system.design.parameters.get("extent", 0) or 32
        return flows(page_stays, name, system.ssd, window, system.dirty_limit / 100, extent, system.group)

    def predict(self, flow: Flows, each: float) -> Prediction:
        """The throughput of transactions of `each` references."""
        system = self.system
        clients = Clients(system.clients, each, self.system.work / SECONDS, system.think / SECONDS)
        return predict(flow, self.disk, self.ssd, clients, system.throttle)

    def steady(self, references: ReferenceStream, each: float) -> tuple[Flows, Prediction]:
        window = last_of(len(references.pages))
        flow = self.flows(self.stays(references, window), window)
        return flow, self.predict(flow, each)

    def after(self, transactions: TransactionReferences, seconds: float) -> tuple[Flows, Prediction]:
        """Over the last part of so many seconds, from cold; of all references if they do not last so long."""
        elapsed, before, count = 0.0, 0, 4 * self.system.memory
        while True:
            references = transactions.until(count)
            flow, prediction = self.steady(references, transactions.each)
            end = len(references.pages)
            took = (end - before) / (prediction.throughput * transactions.each)
            if elapsed + took >= seconds:
                end = max(1, before + round((end - before) * (seconds - elapsed) / took))
                return self.steady(references.until(end), transactions.each)
            if end < count:
                return flow, prediction
            elapsed, before, count = elapsed + took, end, round(count * _MORE)
