"""Other readings of the paper, and other prices: what each makes of the crossings and gains of figures 7 to 9, of k, and of figure 12."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from algorithms.joins.base import JoinParameters, plan
from experiments.papers.li2009.measured import STRATEGIES, crossing
from experiments.papers.li2009.runs import BASIC, LABELS, MEMORY, PAGE_SIZE, Setup, algorithm_of, execute, inputs, pages_of
from experiments.presentation.section import Section
from experiments.presentation.tables import Entry, Table
from experiments.runs.jobs import Job, Results, Settings
from flashsim.core.units import MB, MICROSECONDS, SECONDS
from models.allocation.buffers import NestedLoopsAllocation

TITLE = "What other readings and prices make of it"
#: Other drives: values of parameters, ns and bytes a second.
_US = MICROSECONDS
DRIVES: dict[str, dict[str, int]] = {
    "as assumed": {},
    "random reads of 0.08 ms": {"read": 8 * _US, "read_latency": 39 * _US},
    "random reads of 0.1 ms": {"read_latency": 59 * _US},
    "reads in sequence as dear as at random": {"continuation_latency": 49 * _US, "link_write_rate": 330 * MB},
    "nothing but the transfer for pages in sequence": {"continuation_latency": 1},
    "0.2 and 0.4 ms a request (table I)": {
        "read_latency": 200 * _US,
        "write_latency": 400 * _US,
        "continuation_latency": 0,
        "continuation_limit": 0,
    },
}
#: Selectivities at which each method is run.
_GRID = {
    "naive": (0.01, 0.03, 0.05, 0.07, 0.1, 0.2, 0.3),
    "page-based": (0.05, 0.1, 0.2, 0.3, 0.4, 0.5),
    "graph-based": (0.005, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5),
    "original": (0.05, 0.1, 0.15, 0.2, 0.3, 0.5),
}
#: How graph-based fetching may be made: bytes that a result takes in the graph, and which of segments with as few pages missing goes first.
GRAPHS: dict[str, dict[str, Any]] = {
    "16 bytes a result in the graph": {"entry_bytes": 16},
    "56 bytes a result": {"entry_bytes": 56},
    "96 bytes a result": {"entry_bytes": 96},
    "ties: the fewest results first": {"ties": "fewest"},
    "ties: any segment": {"ties": "any"},
}
#: Where k may matter: selectivity, pages of memory, and whether both inputs lie in one order.
_K = (0.5, 1.0, 2.0, 4.0)
_WITH_K = ((0.05, MEMORY, True), (0.5, MEMORY, True), (0.05, MEMORY, False), (0.2, MEMORY, False), (0.05, 64, True), (0.05, 64, False))


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every reading of every method, with one coin; all drives share a run."""
    grid = [
        (BASIC, 0.05),
        *((method, selectivity) for method, selectivities in _GRID.items() for selectivity in selectivities),
    ]
    found = [_job(settings, Setup(*each, same_order=same_order)) for each in grid for same_order in (True, False)]
    changed = [each for each in grid if each[0] in ("graph-based", "original")]
    found += [_job(settings, Setup(*each), graph) for each in changed for graph in GRAPHS]
    found += [_job(settings, setup) for setup in _setups_of_k()]
    return [*found, *(_fitting_job(settings, method) for method in (BASIC, *STRATEGIES))]


def _job(settings: Settings, setup: Setup, graph: str = "") -> Job:
    told = {"setup": vars(setup), "graph": graph, "scale": settings.scale, "seed": settings.seed}
    return Job.of(on_drives, ", ".join(filter(None, [setup.name, graph, "other drives"])), **told)


def _fitting_job(settings: Settings, method: str) -> Job:
    return Job.of(in_memory, f"{LABELS[method]}, what fits is sorted in memory", method=method, scale=settings.scale, seed=settings.seed)


def _setups_of_k() -> list[Setup]:
    return [Setup("graph-based", *each[:2], k=k, same_order=each[2]) for each in _WITH_K for k in _K]


def on_drives(setup: dict[str, Any], graph: str, scale: float, seed: int) -> list[float]:
    """I/O seconds on every drive, JSON-ready."""
    asked = Setup(**setup)
    files = inputs(asked, scale, seed)
    memory = pages_of(asked.memory, PAGE_SIZE, scale)
    runs, _ = execute(files, algorithm_of(asked, files, memory, **GRAPHS.get(graph, {})), tuple(DRIVES.values()))
    return [run.total().io_time / SECONDS for run in runs]


def in_memory(method: str, scale: float, seed: int) -> float:
    """I/O seconds with memory for a table and a page more, where what fits is not written: a nested loop of one block reads as much."""
    files = inputs(Setup(method), scale, seed)
    memory = files[0].pages + 1
    parameters = JoinParameters(memory, page_io=True, fudge=1.0, first="bnl", fetch="naive" if method == BASIC else method)
    once = NestedLoopsAllocation(memory - 1, 1) if method == BASIC else None
    (run,), _ = execute(files, plan("bnl" if method == BASIC else "digest", *files, parameters, once))
    return run.total().io_time / SECONDS


def sections(results: Results) -> list[Section]:
    """The tables."""
    return [_readings(results), _of_k(results), _that_fit(results)]


def _readings(results: Results) -> Section:
    """Crossings and gains by reading."""
    cases = [("as the worked example demands", True, "", 0), ("each input in an order of its own", False, "", 0)]
    cases += [(name, True, name, 0) for name in GRAPHS]
    cases += [(name, True, "", number) for number, name in enumerate(DRIVES) if number]
    rows: list[list[Entry]] = []
    for title, same_order, graph, drive in cases:
        over: dict[str, list[tuple[float, float]]] = {}
        for method, selectivities in _GRID.items():
            changed = graph if method in ("graph-based", "original") else ""
            for selectivity in selectivities:
                mine = results.get(_job(results.settings, Setup(method, selectivity, same_order=same_order), changed))
                basic = results.get(_job(results.settings, Setup(BASIC, same_order=same_order)))
                if mine and basic:
                    over.setdefault(method, []).append((selectivity, mine[drive] / basic[drive]))
        if len(over) == len(_GRID):
            saved = [100 * (1 - ratio) for _, ratio in over["graph-based"]]
            crossings = [crossing(over[method]) for method in ("naive", "page-based", "original")]
            rows.append([title, *crossings, min(saved), max(saved)])
    rows.insert(0, ["published", 0.08, 0.3, 0.2, 15.0, 64.0])
    header = ["reading", "naive crosses", "page-based crosses", "original crosses", "graph-based saves least %", "most %"]
    text = (
        "Selectivities at which strategies become slower than sort-merge (none: they do not, or are slower at once), and what graph-based "
        "fetching saves at selectivities of 0.005 to 0.5, with one thing changed at a time and one coin. The drive's prices, 48 bytes a "
        "result and the order of ties were chosen with these numbers in view."
    )
    return Section(TITLE, text, [Table(header, rows, "sensitivity")])


def _of_k(results: Results) -> Section:
    """I/O seconds of graph-based fetching by k."""
    rows: list[list[Entry]] = []
    for selectivity, memory, same_order in _WITH_K:
        setups = [Setup("graph-based", selectivity, memory, k=k, same_order=same_order) for k in _K]
        found = [results.get(_job(results.settings, setup)) for setup in setups]
        rows.append(["one" if same_order else "of their own", selectivity, memory, *(seconds[0] if seconds else None for seconds in found)])
    header = ["order of the inputs", "selectivity", "memory, pages", *(f"k = {k:g}" for k in _K)]
    text = (
        "I/O seconds of graph-based fetching. k says how many pages the cache keeps when the graph grows. With figure 6's selectivity the "
        "graph takes 121 of 512 pages and never asks, so that k can have no effect."
    )
    return Section("Where k matters", text, [Table(header, rows, "sensitivity-k", digits=3)])


def _that_fit(results: Results) -> Section:
    """Figure 12's last point if what fits in memory is not written."""
    rows: list[list[Entry]] = []
    for method in (BASIC, *STRATEGIES):
        rows.append([LABELS[method], results.get(_fitting_job(results.settings, method))])
    text = (
        "I/O seconds with memory for a whole table, if a table or digests that fit are sorted there and not written, as figure 12 needs "
        "and the worked example forbids: it writes what even the last pass sorts."
    )
    return Section("A table that fits in memory", text, [Table(["method", "I/O s"], rows, "sensitivity-fits", digits=3)])
