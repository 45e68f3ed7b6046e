"""Why transactions on a system of pools take their time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.mechanisms import DeviceMechanism
from flashsim.core.processes import cores
from flashsim.core.protocols import Progress
from flashsim.core.records import RecordArray
from flashsim.core.request import READ, Integers
from flashsim.core.units import SECONDS, format_duration
from flashsim.execution.pooled.system import PURPOSES
from flashsim.execution.run import PhaseCost
from flashsim.experiments.designs.results import DesignResult, variant_name
from flashsim.experiments.designs.session import PoolStudy
from flashsim.experiments.formulas.extension import MOST_REFERENCES, TransactionReferences, formula_of
from flashsim.experiments.runs.jobs import Settings, make
from flashsim.experiments.why.answers import TRANSACTION, RunWhy
from flashsim.experiments.why.counterfactuals import Counterfactuals, Ideals
from flashsim.experiments.why.paths import PhasePath
from flashsim.pools.mechanisms import mechanisms_of_system

TRANSACTIONS = "transactions"
#: Waits of clients, by name: for reads of a device, and for all else.
WAITS = {
    "disk": "reads of the disks", "ssd": "reads of the SSD", "processor": "processor work", "think": "think time",
    "other": "other waits: frames, pages that others read, commits, checkpoints, the processor",
}  # fmt: skip


#: Requests of transactions and pages that they write, by counter.
_VISITS = {
    "disk_reads": "reads of the disks", "disk_writes": "writes to the disks", "disk_pages_written": "pages written to the disks",
    "ssd_reads": "reads of the SSD", "ssd_writes": "pages written to the SSD",
}  # fmt: skip
_THROUGH = "writes each dirty page to the disks as it leaves memory"
_BACK, _GROWS = "keeps dirty pages on the SSD until its cleaner writes them to the disks in groups", ", and they still become more"
#: By how much dirty pages on the SSD differ from the begin of the last part to its end where they have not become more.
_STEADY = 0.05
#: Reads and writes of each device, among those.
_SERVED = {"disk": ("reads of the disks", "writes to the disks"), "ssd": ("reads of the SSD", "pages written to the SSD")}


class Waits:
    """What clients wait for from one time to another, ns, and their reads, by purpose: from the requests of a run."""

    def __init__(self, begin: int, end: int, clients: int, purposes: Sequence[str]) -> None:
        self._window, self._clients, self._purposes = (begin, end), clients, purposes
        self._until = np.zeros(clients, np.int64)
        self.times, self.reads = dict.fromkeys(purposes, 0), dict.fromkeys(purposes, 0)

    def take(self, first: int, rows: RecordArray) -> None:
        """Take the next requests; where a client waits for several at once, each counts from where those before it have ended."""
        del first
        own = rows[(rows.who >= 0) & (rows.who < self._clients) & (rows.operation == READ)]
        low, high = self._window
        columns = (own[name].tolist() for name in ("who", "device_number", "time", "completed"))
        for client, device, issued, completed in zip(*columns, strict=True):
            purpose, end = self._purposes[device], high if completed < 0 else completed
            begin = max(issued, int(self._until[client]), low)
            self.times[purpose] += max(0, min(end, high) - begin)
            self.reads[purpose] += low <= issued < high
            self._until[client] = max(self._until[client], end)


def why_pool(result: DesignResult, study: PoolStudy, progress: Progress | None = None, *, exact: bool = False) -> RunWhy:
    """Take a run of a study apart, over its last part, which its rates are reported for."""
    setup, system, states = study.setup(result.design, result.without), result.system, study.preconditions()
    part, purposes = result.part, [name for name in PURPOSES if name in setup.devices and (name != "ssd" or system.ssd)]
    begin, end = part.start * result.interval, part.stop * result.interval
    waits = Waits(begin, end, system.clients, [*purposes, "cpu"])
    setup.build(states, record=waits.take).result()
    transactions, whole = result.total("transactions", part), system.clients * (end - begin)
    if not transactions:
        raise RefusedError("why: no transaction ended in the last part of the run, so there is none to explain; run it longer")
    visits = {title: result.total(name, part) for name, title in _VISITS.items() if system.ssd or "ssd" not in name}
    mechanisms = [each for name in purposes for each in _with_service(name, setup.parts()[name].mechanisms(), visits, transactions)]
    mechanisms += mechanisms_of_system(works=system.work > 0, checkpoints=system.checkpoint > 0)

    def evaluate(ideals: Sequence[Ideals]) -> list[Integers]:
        jobs = [study.job(result.design, result.without, states, [each.name for each in ideal]) for ideal in ideals]
        results = make(jobs, Settings(jobs=cores()), progress)
        counts = [int(np.sum(results[job]["counts"]["transactions"][part])) for job in jobs]
        return [np.array([round(whole * transactions / max(1, count))]) for count in counts]

    runs = Counterfactuals(mechanisms, np.array([whole]), evaluate, exact)
    times = {name: waits.times.get(name, 0) for name in ("disk", "ssd")}
    for name, each in (("processor", system.work), ("think", system.think)):
        times[name] = min(each * transactions, whole - sum(times.values()))
    times["other"] = whole - sum(times.values())
    path = PhasePath(np.array([times[name] for name in WAITS]), transactions, {}, WAITS, visits)
    cost = PhaseCost(TRANSACTIONS, io_time=whole, reads=sum(waits.reads.values()))
    formula, counted, worths, in_words = _formula(study, result, runs)
    key = {name: value for name, value in study.as_dict().items() if name not in ("designs", "devices", "states", "without")}
    name = variant_name(result.design, result.without)
    dirty = result.counts["ssd_newer"][part]
    back = _BACK + _GROWS * bool(dirty[-1] > (1 + _STEADY) * dirty[0])
    words: dict[str, Any] = {
        "ideal": "the time if nothing waited and writes took no time",
        "when": f"Over the last {format_duration(round((end - begin) / result.scale))}: ",
        "counts": in_words,
        "feature": "" if not system.ssd else back if system.design.write_back else _THROUGH,
    }
    return RunWhy(study.workload, name, [cost], {TRANSACTIONS: path}, runs, formula, counted, TRANSACTION, worths, key=key, **words)


def _with_service(
    purpose: str, mechanisms: Sequence[DeviceMechanism], visits: Mapping[str, int], transactions: int
) -> list[DeviceMechanism]:
    """Mechanisms of a device, of which waiting for it says what it serves."""
    reads, writes = (visits.get(title, 0) / transactions for title in _SERVED.get(purpose, ("", "")))
    served = f", which serve{'s' * (purpose == 'ssd')} {reads:.3g} reads and {writes:.3g} writes per transaction"
    is_queue = [purpose in _SERVED and each.name == f"{purpose} queue" for each in mechanisms]
    return [replace(each, sentence=each.sentence + served) if queue else each for each, queue in zip(mechanisms, is_queue, strict=True)]


def _formula(study: PoolStudy, result: DesignResult, runs: Counterfactuals) -> tuple[list[float], list[float], dict[str, float], str]:
    """Time of all transactions by the formula, and with the run's requests, ns; the cost of each mechanism by it, in order; and its counts.

    These are a clause, the run's beside them.
    """
    setup = study.setup(result.design, result.without)
    formula, unknown = formula_of(setup), ([np.nan], [np.nan], dict[str, float](), "")
    if formula is None:
        return unknown
    counts = {name: result.total(name, result.part) for name in result.counts}
    of_all = result.system.clients * counts["transactions"] * SECONDS
    worths, ideal, references = dict[str, float](), list[str](), TransactionReferences(setup.stream())
    try:
        flows, prediction = formula.after(references, setup.time * setup.scale / SECONDS, MOST_REFERENCES)
        counted = before = of_all / formula.as_counted(counts).throughput
        for worth in runs.worths:
            if worth.removed.any():
                ideal.append(worth.mechanism.name)
                after = of_all / formula.as_counted(counts, ideal).throughput
                worths[worth.mechanism.name], before = before - after, after
    except InvalidParameterError:  # scans, too few references or too many, or a round that takes no time
        return unknown
    reads, writes = (counts[name] / counts["transactions"] for name in ("disk_reads", "disk_writes"))
    by_formula = references.each * (flows.missed - flows.served), references.each * (flows.written + flows.cleaned / flows.group)
    made = f"the disks serve {reads:.3g} reads and {writes:.3g} writes per transaction"
    in_words = f"{made} where the formula counts {by_formula[0]:.3g} and {by_formula[1]:.3g}"
    return [of_all / prediction.throughput], [counted], worths, in_words
