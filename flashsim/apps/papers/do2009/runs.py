"""The paper's runs: a join with a buffer pool, page size and kind of I/O, timed on several states of both machines in one pass."""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MIB
from flashsim.device import presets
from flashsim.execution import cpu as cpus
from flashsim.execution.recording import RequestRecording
from flashsim.experiments.runs.drives import ShipsModel, disk_of, states
from flashsim.experiments.runs.jobs import Job, Settings
from flashsim.experiments.runs.joining import JoinSetting, divide_pages, lay_out, simulate_join
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.relation import Relation
from flashsim.storage.source import load_pair
from flashsim.storage.source.do2009 import KEYS, PaperRecords
from models.allocation.buffers import Allocation
from models.disk import Disk

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
CPU = "pentium-d-2009"
PAGE_SIZES = (2048, 4096, 8192, 16384, 32768)
#: States of the drives that a run is repeated on ("each data point is the average over three runs"), and more of them for the runs by which
#: the variation is judged.
REPETITIONS, VARIATION_REPETITIONS, VARIATION_MEMORY = 3, 12, 500

#: Requests of this process's last join.
RECORDING = RequestRecording()


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
        usual = (self.page_size, self.page_io) == (PAGE_SIZE, False)
        return VARIATION_REPETITIONS if usual and self.memory == VARIATION_MEMORY else REPETITIONS

    @property
    def name(self) -> str:
        """In words; runs of that name make the same requests, and share a group."""
        more = f", {self.page_size // 1024} KB pages" if self.page_size != PAGE_SIZE else ""
        kind = f"{', page-sized I/O' if self.page_io else ''}{', output in whole flash pages' if self.aligned else ''}"
        return f"{self.join}, {self.memory} MB{more}{kind}"

    def job(self, settings: Settings) -> Job:
        return Job.of(run_join, self.name, self.name, **asdict(self), repetitions=self.repetitions, **settings_of(settings))


def settings_of(settings: Settings) -> dict[str, Any]:
    """Settings that all joins depend on, JSON-ready."""
    return {"scale": settings.scale, "seed": settings.seed, "ships_model": settings.ships_model}


def sized_setup(join: str, page_size: int = PAGE_SIZE, page_io: bool = False) -> Setup:
    """A join with the buffer pool of sections 4.4 and 4.5, which vary the page size.

    >>> sized_setup("bnl", 4096).name
    'bnl, 500 MB, 4 KB pages'
    """
    return Setup(join, 500, page_size, page_io)


#: The paper's grid in the order of its tables, those runs by which the variation is judged, and all with the longest first.
GRID = [Setup(join, memory) for join in JOINS for memory in MEMORY]
REPEATED = [Setup(join, VARIATION_MEMORY) for join in JOINS]
LONGEST_FIRST = sorted(GRID, key=attrgetter("memory"))


def reason(problem: InvalidParameterError) -> str:
    """The message that a buffer pool is too small at this scale; any other error is raised again."""
    if problem.parameter != "memory":
        raise problem
    return str(problem)


@lru_cache(maxsize=1)
def relations(scale: float, seed: int) -> tuple[Relation, Relation]:
    customer, orders = (PaperRecords(name, SCALE_FACTOR * scale, seed) for name in ("customer", "orders"))
    return load_pair(customer, orders, KEYS["customer"], KEYS["orders"])


def join_setting(setup: Setup, scale: float) -> JoinSetting:
    memory = max(1, round(setup.memory * scale * MIB / setup.page_size))
    return JoinSetting(setup.join, memory, setup.page_io, PLACEMENT, DEVICES["HDD"], CPU)


def lay_out_setup(setup: Setup, scale: float, seed: int) -> tuple[tuple[HeapFile, HeapFile], JoinSetting]:
    """The relations' heap files and how the join runs."""
    return heap_files(scale, seed, setup.page_size)[0], join_setting(setup, scale)


@lru_cache(maxsize=1)
def heap_files(scale: float, seed: int, page_size: int) -> tuple[tuple[HeapFile, HeapFile], list[int]]:
    """Both relations' heap files, and the pages that temporaries for all of each take."""
    r, s = relations(scale, seed)
    return (lay_out(r, page_size), lay_out(s, page_size)), [heap_file(relation, page_size).pages for relation in (r, s)]


def large_pages(page_size: int, scale: float = 1.0) -> tuple[int, int]:
    """Pages of customer and orders, of which the paper has scale 1."""
    customer, orders = (PaperRecords(name, SCALE_FACTOR * scale).published_pages(page_size) for name in ("customer", "orders"))
    return customer, orders


def paper_disk(page_size: int = PAGE_SIZE) -> Disk:
    """The HDD of table 2, for which the paper divides its buffers."""
    return disk_of(presets.load(DEVICES["HDD"]), page_size)


def buffers(setup: Setup, scale: float, r_pages: int, s_pages: int, *, ships_model: bool) -> Allocation:
    """The paper's division of memory, for its disk; with `aligned`, output is in whole flash pages.

    A ship's model has the division of scale 1, as far as its memory can be so divided.
    """
    setting, disk = join_setting(setup, scale), paper_disk(setup.page_size)
    allocation: Any = divide_pages(setting, r_pages, s_pages, disk)[1]
    if ships_model:
        large_r, large_s = large_pages(setup.page_size)
        large = divide_pages(join_setting(setup, 1.0), large_r, large_s, disk)[1]
        allocation = ShipsModel(scale).buffers(large, large_r, setting.memory, r_pages) or allocation
    if not setup.aligned:
        return allocation
    per_flash_page = max(1, FLASH_PAGE // setup.page_size)
    return replace(allocation, output=max(per_flash_page, allocation.output // per_flash_page * per_flash_page))


def run_join(
    join: str, memory: int, page_size: int, page_io: bool, aligned: bool, repetitions: int, scale: float, seed: int, ships_model: bool
) -> dict[str, Any]:
    """One join on both machines, JSON-ready; a pool that is too small at this scale is told as a ``problem``.

    ``machines`` has a list of `PhaseSeconds` each repetition, ``pages`` the lengths of both relations and of temporaries for all of them,
    ``work`` the CPU work by kind.
    """
    setup = Setup(join, memory, page_size, page_io, aligned)
    files, setting = lay_out_setup(setup, scale, seed)
    model = ShipsModel(scale, page_size * page_io) if ships_model else None
    machines = {machine: [drive.in_model(model) for drive in drives] for machine, drives in states(DEVICES, repetitions, seed).items()}
    pages = [file.pages for file in files]
    cpu = cpus.load(CPU)
    if model and join == "sort-merge":
        cpu = model.sorting(cpu, sum(len(file.relation) for file in files))
    try:
        allocation = buffers(setup, scale, *pages, ships_model=ships_model)
        drives = [state for repeated in machines.values() for state in repeated]
        result = simulate_join(setting, files, drives, allocation=allocation, cpu=cpu, recording=RECORDING)
    except InvalidParameterError as problem:
        return {"problem": reason(problem)}
    measured = [[vars(phase) for phase in result.phase_seconds(index)] for index in range(len(result.runs))]
    return {
        "machines": {machine: measured[place * repetitions :][:repetitions] for place, machine in enumerate(machines)},
        "pages": [*pages, *heap_files(scale, seed, page_size)[1]],
        "work": {str(kind): count for kind, count in result.runs[0].total().work.items()},
    }
