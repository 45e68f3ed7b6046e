"""The paper's runs: a join with a buffer pool, page size and kind of I/O, timed on several states of both machines in one pass."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from operator import attrgetter
from statistics import fmean
from typing import Any

from experiments.formulas.comparison import Compared
from experiments.papers.do2009.states import states
from experiments.runs.jobs import Job, Results, Settings
from experiments.runs.joining import CPU, JoinSetting, divide, lay_out, simulate_join
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MIB, SECONDS
from flashsim.device import presets
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.relation import Relation
from flashsim.storage.source import load_pair
from flashsim.storage.source.do2009 import KEYS, PaperRecords

JOINS = ("bnl", "sort-merge", "grace-hash", "hybrid-hash")
LABELS = {"bnl": "BNL", "sort-merge": "SM", "grace-hash": "GH", "hybrid-hash": "HH"}
#: Buffer pools in the paper's "MB", taken as MiB: 100 MB are 12,800 pages, as the relations' sizes suggest.
MEMORY = (100, 200, 300, 400, 500, 600)
PAGE_SIZE = 8192
SCALE_FACTOR = 30
#: Section 4.5: "the flash page size (4 KB)".
FLASH_PAGE = 4096
#: The paper's machine ran Red Hat Enterprise 5, whose file system was ext3.
PLACEMENT = "ext3"
#: The machines of section 4.1; the buffers are divided for the HDD (section 3.5).
DEVICES = {"HDD": "toshiba-5400-320gb", "SSD": "ocz-core-60gb"}
#: Section 4.4 and 4.5 vary the page size with one buffer pool.
PAGE_SIZES, PAGE_SIZES_MEMORY = (2048, 4096, 8192, 16384, 32768), 500
#: States of the drives that a run is repeated on ("each data point is the average over three runs"), and more of them for the runs by which
#: the variation is judged.
REPETITIONS, VARIATION_REPETITIONS, VARIATION_MEMORY = 3, 12, 500


@dataclass(frozen=True)
class Setup:
    """One join: buffer pool in the paper's MB, page size, whether requests are single pages or output buffers whole flash pages."""

    join: str
    memory: int
    page_size: int = PAGE_SIZE
    page_io: bool = False
    aligned: bool = False

    @property
    def repetitions(self) -> int:
        """How many drive states it is run on."""
        usual = (self.page_size, self.page_io) == (PAGE_SIZE, False)
        return VARIATION_REPETITIONS if usual and self.memory == VARIATION_MEMORY else REPETITIONS

    @property
    def name(self) -> str:
        """In words."""
        more = f", {self.page_size // 1024} KB pages" if self.page_size != PAGE_SIZE else ""
        kind = f"{', page-sized I/O' if self.page_io else ''}{', output in whole flash pages' if self.aligned else ''}"
        return f"{self.join}, {self.memory} MB{more}{kind}"

    def job(self, settings: Settings) -> Job:
        """The run of it."""
        return Job.of(
            f"{__name__}:run_join", self.name, **asdict(self), repetitions=self.repetitions, scale=settings.scale, seed=settings.seed
        )


def page_size_grid(page_io: bool) -> list[Setup]:
    """Figures 2 and 3: every join with every page size, the longest runs first."""
    return [Setup(join, PAGE_SIZES_MEMORY, page_size, page_io) for page_size in PAGE_SIZES for join in JOINS]


def grid_jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """The ``jobs`` of an exhibit that needs the whole grid, the longest runs first."""
    return [setup.job(settings) for setup in sorted(cells(), key=attrgetter("memory"))]


@dataclass(frozen=True)
class Result:
    """One join on one machine; `comparisons` holds a repetition each."""

    setup: Setup
    machine: str
    comparisons: tuple[tuple[Compared, ...], ...]
    user: tuple[float, ...]  # seconds of a repetition
    kernel: tuple[float, ...]

    @property
    def comparison(self) -> tuple[Compared, ...]:
        """The phases and their total, times averaged over the repetitions."""
        return tuple(map(_average, zip(*self.comparisons, strict=True)))

    @property
    def total(self) -> Compared:
        """All phases together."""
        return self.comparison[-1]

    @property
    def phases(self) -> tuple[Compared, ...]:
        """The phases, in order."""
        return self.comparison[:-1]

    @property
    def io_times(self) -> list[float]:
        """I/O seconds of each repetition."""
        return [comparison[-1].io for comparison in self.comparisons]


def _average(repeated: Sequence[Compared]) -> Compared:
    io, cpu, total = (fmean(getattr(one, name) for one in repeated) for name in ("io", "cpu", "total"))
    return replace(repeated[0], io=io, cpu=cpu, total=total)


class Runs:
    """What was measured, by setup and machine."""

    def __init__(self, results: Results) -> None:
        self.settings = results.settings
        self._results = results

    def get(self, setup: Setup, machine: str) -> Result | None:
        """One result, or None where the run was not asked for or could not be made."""
        found = self._results.get(setup.job(self.settings), {})
        if machine not in found.get("machines", {}):
            return None
        repeated = found["machines"][machine]
        comparisons = tuple(tuple(Compared(**row) for row in one["comparison"]) for one in repeated)
        user, kernel = (tuple(one[name] for one in repeated) for name in ("user", "kernel"))
        return Result(setup, machine, comparisons, user, kernel)

    def run(self, setup: Setup) -> str:
        """The id of its run."""
        return setup.job(self.settings).id

    def problem(self, setup: Setup) -> str:
        """Why a run could not be made, or an empty text."""
        text: str = self._results.get(setup.job(self.settings), {}).get("problem", "")
        return text

    def seconds(self, setup: Setup, machine: str, what: str = "total") -> float | None:
        """``total``, ``io`` or ``cpu`` seconds of a run."""
        found = self.get(setup, machine)
        return getattr(found.total, what) if found else None

    def speedup(self, setup: Setup, what: str) -> float | None:
        """HDD over SSD seconds."""
        hdd, ssd = (self.seconds(setup, machine, what) for machine in ("HDD", "SSD"))
        return hdd / ssd if hdd is not None and ssd else None


def cells() -> Iterator[Setup]:
    """The paper's grid in the order of its tables."""
    for join in JOINS:
        for memory in MEMORY:
            yield Setup(join, memory)


def _in_flash_pages(allocation: Any, page_size: int) -> Any:
    """The same buffers, but for output in whole flash pages."""
    per_flash_page = max(1, FLASH_PAGE // page_size)
    return replace(allocation, output=max(per_flash_page, allocation.output // per_flash_page * per_flash_page))


def too_small(problem: InvalidParameterError) -> str:
    """That a buffer pool is too small at this scale, in words; anything else is raised again."""
    if problem.parameter != "memory":
        raise problem
    return str(problem)


@lru_cache(maxsize=1)
def relations(scale: float, seed: int) -> tuple[Relation, Relation]:
    """Customer and orders at a scale."""
    customer, orders = (PaperRecords(name, SCALE_FACTOR * scale, seed) for name in ("customer", "orders"))
    return load_pair(customer, orders, KEYS["customer"], KEYS["orders"])


def laid_out(setup: Setup, scale: float, seed: int) -> tuple[tuple[HeapFile, HeapFile], JoinSetting]:
    """The relations' heap files and how the join runs."""
    pair = relations(scale, seed)
    memory = max(1, round(setup.memory * scale * MIB / setup.page_size))
    setting = JoinSetting(setup.join, memory, setup.page_io, PLACEMENT, DEVICES["HDD"], CPU)
    return (lay_out(pair[0], setup.page_size), lay_out(pair[1], setup.page_size)), setting


def run_join(
    join: str, memory: int, page_size: int, page_io: bool, aligned: bool, repetitions: int, scale: float, seed: int
) -> dict[str, Any]:
    """One join on both machines, JSON-ready; a pool that is too small at this scale is told as a ``problem``."""
    files, setting = laid_out(Setup(join, memory, page_size, page_io), scale, seed)
    machines = states(DEVICES, repetitions, seed)
    try:
        allocation = _in_flash_pages(divide(setting, files, presets.load(DEVICES["HDD"]))[1], page_size) if aligned else None
        result = simulate_join(setting, files, [state for repeated in machines.values() for state in repeated], allocation=allocation)
    except InvalidParameterError as problem:
        return {"problem": too_small(problem)}
    told = []
    for index, run in enumerate(result.runs):
        total = run.total()
        comparison = [vars(row) for row in result.compare(index)]
        told.append({"comparison": comparison, "user": total.user_time / SECONDS, "kernel": total.kernel_time / SECONDS})
    return {"machines": {machine: told[place * repetitions :][:repetitions] for place, machine in enumerate(machines)}}
