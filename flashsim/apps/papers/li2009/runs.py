"""The paper's runs: a table joined with itself, of whose results a coin keeps some, by sort-merge or DigestJoin, on the paper's drive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from algorithms.joins.base import JoinParameters, plan
from algorithms.joins.digest import DigestOptions
from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.apps.papers.li2009 import pages as page_format
from flashsim.core.request import Integers
from flashsim.core.rng import generator
from flashsim.core.units import KIB, MB, MICROSECONDS, SECONDS
from flashsim.device import presets
from flashsim.execution.drivers import run
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm
from flashsim.execution.run import Run
from flashsim.experiments.runs.drives import DriveInUse, TimedDrive, disk_of, timed_drives
from flashsim.experiments.runs.jobs import Job, Settings
from flashsim.storage.columns import column_of
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.relation import Relation
from flashsim.storage.source.base import TableRecords

DEVICE = "mtron-msd-sata3025-16gb"
#: The traditional join that all are compared with; the other methods are DigestJoin with a fetch strategy each.
BASIC = "external-sort-merge"
LABELS = {BASIC: "Basic", "naive": "Digest(Naive)", "page-based": "Digest(Page)", "graph-based": "Digest(Graph)"}
LABELS |= {"original": "Original", "planned": "flashsim's plan"}
#: Table II: 8,192 pages of 4 KB with 25 tuples each, and 512 pages of memory.
PAGES, PAGE_SIZE, PER_PAGE, MEMORY, SELECTIVITY = 8192, 4 * KIB, 25, 512, 0.05
TUPLE_SIZE = 160
#: Pages with which every method can run, at small scales.
_LEAST_MEMORY = 6
_NUMBERS = ("selectivity", "memory", "page_size", "k", "theta")


@dataclass(frozen=True)
class FetchSetup:
    """One run; memory is in pages of 4 KB, and `k` and `least_frames` are those of graph-based fetching.

    Results are skewed over pages by `theta`; those beyond the tuples of a page are lost, or if `refilled` go to pages that have room.
    `same_order` says whether both inputs lie in one page order, as a table that is joined with itself does.
    """

    method: str
    selectivity: float = SELECTIVITY
    memory: int = MEMORY
    page_size: int = PAGE_SIZE
    k: float = 1.0
    theta: float = 0.0
    refilled: bool = False
    same_order: bool = True
    least_frames: int = LEAST_FRAMES

    @property
    def name(self) -> str:
        usual = FetchSetup(self.method)
        parts = [f"{name} {value:g}" for name, value in vars(self).items() if name in _NUMBERS and value != getattr(usual, name)]
        parts += ["refilled"] * self.refilled + ["each input in its own order"] * (not self.same_order)
        parts += ["a cache of one frame"] * (self.least_frames < usual.least_frames)
        return ", ".join([LABELS[self.method], *parts])

    def with_method(self, method: str) -> "FetchSetup":
        """Another method; what becomes of results does not matter to sort-merge."""
        return FetchSetup(BASIC, memory=self.memory, page_size=self.page_size) if method == BASIC else replace(self, method=method)

    def job(self, settings: Settings, coin: int = 0) -> Job:
        with_method = self.with_method(self.method)
        return Job.of(run_join, with_method.name, setup=vars(with_method), scale=settings.scale, seed=settings.seed + coin)


class KeyRecords(TableRecords):
    """Keys, in tuples of a given size, bytes."""

    def __init__(self, name: str, keys: Integers, size: int) -> None:
        super().__init__(name, pa.table({"key": column_of(keys)}))
        self._sizes = np.full(len(keys), size, np.int32)


def table(name: str, keys: Integers, size: int, page_size: int = PAGE_SIZE) -> HeapFile:
    """A relation of tuples of that size on the paper's pages."""
    relation = Relation(name, "key", keys, KeyRecords(name, keys, size))
    return heap_file(relation, page_size, page_format=str(page_format.__file__))


def inputs(setup: FetchSetup, scale: float, seed: int) -> tuple[HeapFile, HeapFile]:
    """Both inputs of a join: keys are even where a result is kept, and those of the second input odd where it is dropped.

    So either side is sorted as it would be if results were dropped when they are found.
    """
    per_page = PER_PAGE * setup.page_size // PAGE_SIZE
    count = round(PAGES * scale * PAGE_SIZE / setup.page_size) * per_page
    draw = generator(seed, "li2009")
    order = draw.permutation(count)
    stays = draw.random(count) < _chances(setup, count // per_page, draw)[np.arange(count) // per_page]
    codes = 2 * order
    other = np.where(stays, codes, codes + 1)
    if not setup.same_order:
        other = other[draw.permutation(count)]
    return table("customer", codes, TUPLE_SIZE, setup.page_size), table("customer2", other, TUPLE_SIZE, setup.page_size)


def _chances(setup: FetchSetup, pages: int, draw: np.random.Generator) -> Any:
    """Probability that a result stays, by page: Zipf's law with `selectivity` in the mean, but at most 1."""
    weights = np.arange(1, pages + 1) ** -setup.theta
    low = high = setup.selectivity / weights.mean()
    while np.minimum(1, high * weights).mean() < setup.selectivity * setup.refilled:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, middle * weights).mean() < setup.selectivity else (low, middle)
    return np.minimum(1, high * weights)[draw.permutation(pages)]


def execute(
    files: tuple[HeapFile, HeapFile], algorithm: Algorithm, drives: Sequence[Mapping[str, Any]] = ({},)
) -> tuple[list[Run], list[TimedDrive]]:
    """A join on drives like the paper's, with some parameters changed."""
    timed = timed_drives([DriveInUse(DEVICE, changes).load() for changes in drives], files)
    return list(run(lambda: algorithm, files, [Machine([drive], full=True) for drive in timed])), timed


def algorithm_of(setup: FetchSetup, files: tuple[HeapFile, HeapFile], scale: float, **graph: Any) -> Algorithm:
    """The join of a setup; `graph` says how graph-based fetching is made otherwise."""
    memory = max(_LEAST_MEMORY, round(setup.memory * scale * PAGE_SIZE / setup.page_size))
    if setup.method == BASIC:
        return plan(BASIC, *files, JoinParameters(memory, page_io=True))
    ratio = disk_of(presets.load(DEVICE), setup.page_size).latency_ratio
    graph = {"least_frames": setup.least_frames, **({"k": setup.k} if setup.method == "graph-based" else {}), **graph}
    options = DigestOptions(first=BASIC, fetch=setup.method, **graph)
    return plan("digest", *files, JoinParameters(memory, True, options=options, latency_ratio=ratio, in_series=True))


def run_join(setup: Mapping[str, Any], scale: float, seed: int) -> dict[str, float]:
    """One run, JSON-ready: I/O seconds, those of reads and of writes, and page accesses of each kind."""
    of_run = FetchSetup(**setup)
    files = inputs(of_run, scale, seed)
    (run,), (drive,) = execute(files, algorithm_of(of_run, files, scale))
    total, statistics = run.total(), drive.statistics()
    times = {"seconds": total.io_time, "read": drive.read_time, "write": drive.write_time}
    figures = {name: time / SECONDS for name, time in times.items()}
    for kind, pages in (("reads", total.pages_read), ("writes", total.pages_written)):
        continued = statistics[f"continued_{kind}"]
        figures |= {f"sequential_{kind}": continued, f"random_{kind}": pages - continued}
    return figures


#: Other values of the drive's parameters, ns and bytes a second.
DRIVES: dict[str, dict[str, int]] = {
    "as the worked example demands": {},
    "random reads of 0.08 ms": {"read": 8 * MICROSECONDS, "read_latency": 39 * MICROSECONDS},
    "random reads of 0.1 ms": {"read_latency": 59 * MICROSECONDS},
    "reads in sequence as dear as at random": {"continuation_latency": 49 * MICROSECONDS, "link_write_rate": 330 * MB},
    "pages in sequence cost their transfer alone": {"continuation_latency": 1},
    "0.2 and 0.4 ms a request (table I)": {"continuation_latency": 0, "continuation_limit": 0}
    | {"read_latency": 200 * MICROSECONDS, "write_latency": 400 * MICROSECONDS},
}
#: Variants of graph-based fetching: bytes of a result in the graph, and the first among segments with as few pages missing.
GRAPHS: dict[str, dict[str, Any]] = {f"{size} bytes a result in the graph": {"entry_bytes": size} for size in (16, 56, 96)}
GRAPHS |= {"ties: the fewest results first": {"ties": "fewest"}, "ties: any segment": {"ties": "any"}}


def on_drives(setup: Mapping[str, Any], graph: str, on: list[str], scale: float, seed: int) -> list[float]:
    """I/O seconds on every drive, JSON-ready."""
    files = inputs(FetchSetup(**setup), scale, seed)
    algorithm = algorithm_of(FetchSetup(**setup), files, scale, **GRAPHS.get(graph, {}))
    runs, _ = execute(files, algorithm, [DRIVES[name] for name in on])
    return [run.total().io_time / SECONDS for run in runs]


#: The worked example's tables: pages, tuples a page, and the bytes of one.  Digests of 16 bytes are then 6 and 9 % of a tuple, and fill
#: 600 and 450 pages.
_EXAMPLE = {"customer": (10_000, 30, 266), "orders": (5_000, 45, 177)}


def count_pages(seed: int) -> list[int]:
    """Page accesses of sort-merge and of DigestJoin in the worked example, in the order of the published ones; JSON-ready.

    No tuples join: what the second phase fetches is not of the example.
    """
    draw = generator(seed, "li2009", "example")
    customer, orders = (
        table(name, 2 * draw.permutation(pages * per_page) + side, size, 8 * KIB)
        for side, (name, (pages, per_page, size)) in enumerate(_EXAMPLE.items())
    )
    parameters = JoinParameters(20, page_io=True, options=DigestOptions(first=BASIC, fetch="naive"), in_series=True)
    runs = [execute((customer, orders), plan(join, customer, orders, parameters))[0][0] for join in (BASIC, "digest")]
    pages, own = ({phase.name: phase.pages for phase in run.phases} for run in runs)
    basic, digest, projected = sum(pages.values()), sum(own.values()), own["project"]
    return [pages["sort"], basic, projected, digest - projected, digest, basic - digest]
