"""Figures 2 and 3 and table 5: times over the page size with blocked and with page-sized I/O, and what blocked I/O saves.

The CPU preset was fitted to table 5's rows of 8 and 32 KB (`flashsim.literature.do2009.cpu_fit`); the other rows are what it predicts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from flashsim.core.units import KIB
from flashsim.literature.base import Cell, Claim, Entry, Exhibit, Job, Results, Section, Settings, Table
from flashsim.literature.do2009.cpu_fit import ROWS
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import DEVICES, FLASH_PAGE, JOINS, LABELS, PAGE_SIZES, PAGE_SIZES_MEMORY, Setup
from flashsim.studies.judging.cells import ratio, statement

#: Runs that show whether half flash pages make small pages dear.
_ALIGNED = [Setup(join, PAGE_SIZES_MEMORY, PAGE_SIZES[0], aligned=True) for join in JOINS if join != "bnl"]


def _grid(page_io: bool) -> list[Setup]:
    """Every join with every page size, the longest runs first."""
    return [Setup(join, PAGE_SIZES_MEMORY, page_size, page_io) for page_size in PAGE_SIZES for join in JOINS]


@dataclass(frozen=True)
class _Figure(Exhibit):
    """The joins over the page size with one kind of I/O."""

    number: int
    page_io: bool

    def sections(self, results: Results) -> list[Section]:
        """Bars and seconds of both machines."""
        runs, rows, ids = Runs(results), list[list[Entry]](), list[str]()
        kind = "page-sized" if self.page_io else "blocked"
        for machine in DEVICES:
            for setup in _grid(self.page_io):
                if result := runs.result(setup, machine):
                    total, kib = result.total, setup.page_size // 1024
                    rows.append([machine, setup.join, kib, total.formula_io, total.io, result.user[0], result.kernel[0], total.total])
                    ids.append(runs.id(setup))
        header = ["machine", "join", "page, KB", "formula I/O", "I/O", "user", "kernel", "total"]
        text = (
            f"A buffer pool of 500 MB and {kind} I/O: I/O time (dark) and CPU time (light), in seconds; the dot is the formula's I/O time."
        )
        name, sizes = f"figure{self.number}", {f"{size // 1024} KB": size for size in PAGE_SIZES}
        groups = {group: [each for each in _grid(self.page_io) if each.page_size == size] for group, size in sizes.items()}
        title = f"Join times over the page size, {kind} I/O (figure {self.number})"
        return [Section(title, text, [Table(header, rows, name, runs=ids)], {name: runs.bars(groups, f"{kind} I/O, ")})]


class _Figure2(_Figure):
    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        """Every join with every page size, page-sized too."""
        return [setup.job(settings) for setup in [*_grid(page_io=True), *_grid(page_io=False)]]

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        """Spread of total times over the page sizes, largest over smallest, less 1: little with blocked I/O, more with page-sized."""
        runs, limit, cells = Runs(results), claim.limits["spread"], list[Cell]()
        for page_io, words in ((False, "below"), (True, "above")):
            for machine in DEVICES:
                for join in JOINS:
                    seconds = [runs.seconds(each, machine) for each in _grid(page_io) if each.join == join]
                    spread = None if None in seconds else max(filter(None, seconds)) / min(filter(None, seconds)) - 1
                    name = f"spread of {join}, {machine}{', page-sized I/O' * page_io}"
                    holds = (lambda value: value > limit) if page_io else (lambda value: value < limit)
                    cells.append(statement(name, f"{words} {limit:g}", [spread], holds, equal=0))
        return cells


class _Aligned(Exhibit):
    """Small pages in buffers of whole flash pages, beside small pages and pages as large as those of flash."""

    TITLE = "Small pages and flash pages"

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        return [setup.job(settings) for setups in map(self._setups, _ALIGNED) for setup in setups]

    def _setups(self, setup: Setup) -> tuple[Setup, Setup, Setup]:
        usual = replace(setup, aligned=False)
        return usual, setup, replace(usual, page_size=FLASH_PAGE)

    def sections(self, results: Results) -> list[Section]:
        """I/O seconds of the joins that write."""
        runs = Runs(results)
        rows: list[list[Entry]] = [[LABELS[one.join], *(runs.seconds(each, "SSD", "io") for each in self._setups(one))] for one in _ALIGNED]
        text = (
            "I/O seconds on the SSD. A buffer of an odd number of 2 KB pages ends in the middle of a flash page of 4 KB: the next one "
            "begins there, so every command of it touches one flash page that another command touched as well."
        )
        header = ["join", "2 KB pages", "2 KB pages, output in whole flash pages", "4 KB pages"]
        return [Section(self.TITLE, text, [Table(header, rows, "aligned", digits=1)])]


class _Figure3(_Figure):
    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        """Every join with every page size, and with blocked I/O at the page size of the rest of the paper."""
        return [setup.job(settings) for setup in [*_grid(page_io=True), *(Setup(join, PAGE_SIZES_MEMORY) for join in JOINS)]]

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        """Total times with page-sized I/O over those with blocked I/O; or with the smallest pages those of the SSD beside the HDD's."""
        runs = Runs(results)

        def measured(machine: str, join: str) -> tuple[str, float | None, str]:
            usual = Setup(join, PAGE_SIZES_MEMORY)
            times = (runs.seconds(each, machine) for each in (replace(usual, page_io=True), usual))
            return f"{LABELS[join]}, {machine}, page-sized over blocked", ratio(*times), ""

        if claim.id == "fig3-blocked":
            return claim.grid(JOINS, measured)
        small = [Setup(join, PAGE_SIZES_MEMORY, PAGE_SIZES[0], page_io=True) for join in ("sort-merge", "grace-hash")]
        orders = [(f"{LABELS[s.join]}, HDD and SSD", "the first less, s", [(s, name, "total") for name in DEVICES]) for s in small]
        return runs.orders(claim, orders)


class _Table5(Exhibit):
    """CPU times of block nested loops, as at scale 1: work is proportional to the scale."""

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        """A run for each row, the longest first."""
        return [setup.job(settings) for setup in _grid(page_io=True) if setup.join == "bnl"]

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        """The 20 times, a row a machine and kind of time."""
        runs = Runs(results)

        def measured(row: str, kilobytes: int) -> tuple[str, float | None, str]:
            setup = Setup("bnl", PAGE_SIZES_MEMORY, kilobytes * KIB, page_io=True)
            seconds = runs.seconds(setup, *row.split(", "))
            return f"{row}, {kilobytes} KB", ratio(seconds, results.settings.scale), runs.id(setup)

        return claim.grid(ROWS, measured)


EXHIBITS: Mapping[str, Exhibit] = {
    "figure2": _Figure2(2, page_io=False),
    "figure3": _Figure3(3, page_io=True),
    "table5": _Table5(),
    "aligned": _Aligned(),
}
