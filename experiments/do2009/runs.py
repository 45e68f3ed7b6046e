"""The paper's runs: four joins with six buffer pools, each timed on the HDD and the SSD in one pass, and the formula for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from experiments import kept
from experiments.formulas import Compared
from experiments.joining import CPU, JoinSetting, lay_out, simulate_join
from experiments.papers import Settings
from experiments.parallel import each
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.units import MIB
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.source import load_pair
from flashsim.storage.source.do2009 import KEYS, PaperRecords

JOINS = ("bnl", "sort-merge", "grace-hash", "hybrid-hash")
#: Buffer pools in the paper's "MB", taken as MiB: 100 MB are 12,800 pages, as the relations' sizes suggest.
MEMORY = (100, 200, 300, 400, 500, 600)
PAGE_SIZE = 8192
SCALE_FACTOR = 30
#: The machines of section 4.1; the buffers are divided for the HDD (section 3.5).
DEVICES = {"HDD": "toshiba-5400-320gb", "SSD": "ocz-core-60gb"}
#: What a kept result depends on besides the simulator.
_SOURCES = ("experiments.do2009.runs", "experiments.formulas", "experiments.joining")


@dataclass(frozen=True)
class Result:
    """One join with one buffer pool on one machine."""

    join: str
    memory: int  # the paper's MB
    machine: str
    comparison: tuple[Compared, ...]

    @property
    def total(self) -> Compared:
        """All phases together."""
        return self.comparison[-1]

    @property
    def phases(self) -> tuple[Compared, ...]:
        """The phases, in order."""
        return self.comparison[:-1]


class Grid:
    """All results of the paper's figure 1 and table 3.

    Parameters
    ----------
    problems
        Why a run could not be made, by join and buffer pool.
    """

    def __init__(self, settings: Settings, results: Sequence[Result], problems: Mapping[tuple[str, int], str]) -> None:
        self.settings = settings
        self.results = list(results)
        self.problems = dict(problems)
        self._found = {(result.join, result.memory, result.machine): result for result in results}

    def get(self, join: str, memory: int, machine: str) -> Result | None:
        """One result, or None where the run could not be made."""
        return self._found.get((join, memory, machine))

    def seconds(self, join: str, memory: int, machine: str, what: str = "total") -> float | None:
        """``total``, ``io`` or ``cpu`` seconds of a run."""
        found = self.get(join, memory, machine)
        return getattr(found.total, what) if found else None

    def speedup(self, join: str, memory: int, what: str) -> float | None:
        """HDD over SSD seconds."""
        hdd, ssd = (self.seconds(join, memory, machine, what) for machine in ("HDD", "SSD"))
        return hdd / ssd if hdd is not None and ssd else None

    def cells(self) -> Iterator[tuple[str, int]]:
        """Every join and buffer pool, in the paper's order."""
        for join in JOINS:
            for memory in MEMORY:
                yield join, memory


def run(settings: Settings, progress: Progress | None = None) -> Grid:
    """Make all runs, several at a time; those kept from earlier runs are taken from there.

    Raises
    ------
    InvalidParameterError
        A scale that is not above 0 and at most 1, or leaves no join enough memory.
    """
    if not 0 < settings.scale <= 1:
        raise InvalidParameterError("scale", settings.scale, "it must be above 0 and at most 1")
    cells = [(join, memory) for memory in MEMORY for join in JOINS]  # the longest first
    found: dict[tuple[str, int], Any] = {}
    if not settings.fresh:
        found = {cell: result for cell in cells if (result := kept.recall(_key(cell, settings), *_SOURCES)) is not None}
    left = [cell for cell in cells if cell not in found]
    # Worker processes generate the relations themselves, once each: that costs less than handing them over.
    work = partial(run_cell, scale=settings.scale, seed=settings.seed)
    for done, (cell, result) in enumerate(each(work, left, settings.jobs), start=len(found) + 1):
        kept.keep(result, _key(cell, settings), *_SOURCES)
        found[cell] = result
        if progress is not None:
            progress(done, len(cells), f"{cell[0]}, {cell[1]} MB")
    if all("problem" in result for result in found.values()):
        raise InvalidParameterError("scale", settings.scale, "not even the largest buffer pool is then large enough for any join")
    return _grid(settings, found)


def _grid(settings: Settings, found: Mapping[tuple[str, int], Any]) -> Grid:
    results, problems = [], {}
    for (join, memory), result in found.items():
        if "problem" in result:
            problems[join, memory] = result["problem"]
        for machine, rows in result.get("machines", {}).items():
            results.append(Result(join, memory, machine, tuple(Compared(**row) for row in rows)))
    return Grid(settings, results, problems)


def _key(cell: tuple[str, int], settings: Settings) -> dict[str, Any]:
    return {"runs": __name__, "join": cell[0], "memory": cell[1], "scale": settings.scale, "seed": settings.seed}


@lru_cache(maxsize=1)
def relations(scale: float, seed: int) -> tuple[HeapFile, HeapFile]:
    """Customer and orders at a scale, as heap files of the paper's length."""
    customer, orders = (PaperRecords(name, SCALE_FACTOR * scale, seed) for name in ("customer", "orders"))
    pair = load_pair(customer, orders, KEYS["customer"], KEYS["orders"])
    return lay_out(pair[0], PAGE_SIZE), lay_out(pair[1], PAGE_SIZE)


def run_cell(cell: tuple[str, int], scale: float, seed: int) -> dict[str, Any]:
    """One join with one buffer pool on both machines, JSON-ready; a pool too small at this scale is told as a ``problem``."""
    join, memory = cell
    files = relations(scale, seed)
    setting = JoinSetting(join, max(1, round(memory * scale * MIB / PAGE_SIZE)), cpu=CPU)
    try:
        result = simulate_join(setting, files, list(DEVICES.values()))
    except InvalidParameterError as problem:
        if problem.parameter != "memory":
            raise
        return {"problem": str(problem)}
    machines = {machine: [vars(row) for row in result.compare(index)] for index, machine in enumerate(DEVICES)}
    return {"machines": machines}
