"""A system of pools by formula: what its workload's references ask of its devices, and the throughput that comes of it."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.transactions import CREATES, FIRST, MARKS, SCANS, WRITES, TransactionStream
from flashsim.core.units import SECONDS
from flashsim.execution.pooled.system import PoolSystem
from flashsim.pools.devices import Rates
from flashsim.pools.mechanisms import PROCESSOR
from flashsim.pools.setup import PoolSetup
from models.extended_pool import Clients, Prediction, Service, predict
from models.pool_flows import DESIGNS, Flows, ReferenceStream, Window, flows, stays

#: The share of the references, at the end, over which flows are counted; and by how much more are looked at each time.
_LAST, _MORE = 0.2, 1.3
#: References of a run beyond which formulas would take longer than it does, and those that are looked at for it.
LONGEST_RUN, MOST_REFERENCES = 1 << 20, 1 << 21
#: Servers at which no client waits.
_BOUNDLESS = 1 << 20


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


def service(rates: Rates) -> Service:
    """Service time of a station with these rates (requests/s)."""
    faster, further = rates.speed / 100, 1 / rates.further if rates.further else 0.0
    return Service(rates.servers / (rates.read * faster), rates.servers / (rates.write * faster), further, rates.servers)


def _ideal_service(each: Service, purpose: str, ideal: Collection[str]) -> Service:
    """Service with some of `flashsim.pools.mechanisms.mechanisms_of_rates` ideal."""
    each = each._replace(write=each.further) if f"{purpose} writes" in ideal else each
    return each._replace(servers=_BOUNDLESS) if f"{purpose} queue" in ideal else each


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

    def steady(self, references: ReferenceStream, each: float) -> tuple[Flows, Prediction]:
        """Requests of disk and SSD, a reference, and the throughput of transactions of `each` references."""
        system, name, count = self.system, self.system.design.name.partition(":")[0], len(references.pages)
        window = Window(round(count * (1 - _LAST)), round(count * (1 - _LAST / 2)), count)
        if window.begin == window.end:
            raise InvalidParameterError("references", count, "they are too few for a formula")
        extent = system.design.parameters.get("extent", 0) or 32
        page_stays = stays(references, system.memory, window, self.uses)
        flow = flows(page_stays, name, system.ssd, window, system.dirty_limit / 100, extent, system.group)
        return flow, predict(flow, self.disk, self.ssd, self._clients(each), system.throttle)

    def _clients(self, each: float) -> Clients:
        return Clients(self.system.clients, each, self.system.work / SECONDS, self.system.think / SECONDS)

    def as_counted(self, counts: Mapping[str, int], ideal: Collection[str] = ()) -> Prediction:
        """The throughput with the requests that a run made (`flashsim.execution.pooled.system.COUNTED`), and some mechanisms ideal."""
        references, pages = max(1, counts["references"]), counts["pages_cleaned"]
        rates = {name: count / references for name, count in counts.items()}
        served, cleaned, group = rates["ssd_reads"], rates["pages_cleaned"], max(1.0, pages / max(1, counts["cleanings"]))
        flow = Flows(
            rates["disk_reads"] + served, served, rates["ssd_reads_newer"], rates["evicted"], rates["ssd_writes"], 0.0,
            rates["disk_pages_written"] - cleaned, cleaned, group,
        )  # fmt: skip
        clients = self._clients(references / max(1, counts["transactions"]))
        if PROCESSOR in ideal:
            clients = clients._replace(think=clients.think + clients.work, work=0.0)
        disk, ssd = (_ideal_service(each, name, ideal) for name, each in (("disk", self.disk), ("ssd", self.ssd)))
        return predict(flow, disk, ssd, clients)

    def after(self, transactions: TransactionReferences, seconds: float, most: float = np.inf) -> tuple[Flows, Prediction]:
        """The formula over the last part of a run of `seconds` that begins cold, or of all references where these end sooner.

        Raises
        ------
        InvalidParameterError
            It takes more than `most` references.
        """
        elapsed, before, count = 0.0, 0, 4 * self.system.memory
        while True:
            if count > most:
                raise InvalidParameterError("references", count, f"at most {most:,} are looked at")
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


def formula_of(setup: PoolSetup) -> Formula | None:
    """A system as formulas take it; None of what they do not know."""
    devices, uses = setup.parts(), {"lru": 1, "lru-k": 2}.get(setup.policy)
    system, known = setup.system(setup.stream().pages), setup.design.partition(":")[0] in DESIGNS and "log" not in devices
    if uses is None or not known or system.checkpoint or not all(device.is_rates for device in devices.values()):
        return None
    return Formula(system, service(devices["disk"].rates()), service(devices["ssd"].rates()), uses)


def predict_system(setup: PoolSetup, most: int) -> Prediction | None:
    """A system over the last part of its time; None of what formulas do not know, or would take more than `most` references for."""
    formula = formula_of(setup)
    with suppress(InvalidParameterError):  # scans, too few references or too many, or a round that takes no time
        return formula.after(TransactionReferences(setup.stream()), setup.time * setup.scale / SECONDS, most)[1] if formula else None
    return None
