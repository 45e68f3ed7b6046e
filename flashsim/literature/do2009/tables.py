"""Tables 3, 4 and 5: speedups of I/O times, of total times and of phases, SSD over HDD, and CPU times of block nested loops.

The CPU preset was fitted to table 5's rows of 8 and 32 KB (`flashsim.literature.do2009.cpu_fit`); the other rows are what it predicts.
"""

from collections.abc import Collection, Mapping

from flashsim.core.units import KIB
from flashsim.literature.base import Cell, Claim, Exhibit, Job, Results, Settings
from flashsim.literature.do2009.cpu_fit import ROWS
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import MEMORY, PAGE_SIZES_MEMORY, Setup, grid_jobs
from flashsim.studies.judging.cells import ratio


class _Speedups(Exhibit):
    """Speedups of one kind, a row a join, or a join and phase."""

    jobs = staticmethod(grid_jobs)

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        runs = Runs(results)

        def measured(row: str, memory: int) -> tuple[str, float | None, str]:
            join, _, phase = row.partition(", ")
            setup = Setup(join, memory)
            return f"{row} {memory} MB", runs.speedup(setup, claim.values["seconds"], phase or "total"), runs.id(setup)

        return claim.grid(MEMORY, measured)


class _CpuTimes(Exhibit):
    """Table 5's CPU times, as at scale 1: work is proportional to the scale."""

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        """A run for each row, the longest first."""
        return [self._setup(kilobytes).job(settings) for kilobytes in ROWS]

    def _setup(self, kilobytes: int) -> Setup:
        return Setup("bnl", PAGE_SIZES_MEMORY, kilobytes * KIB, page_io=True)

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        """The 20 times, a row a machine and kind of time."""
        runs = Runs(results)

        def measured(row: str, kilobytes: int) -> tuple[str, float | None, str]:
            setup = self._setup(kilobytes)
            seconds = runs.seconds(setup, *row.split(", "))
            return f"{row}, {kilobytes} KB", ratio(seconds, results.settings.scale), runs.id(setup)

        return claim.grid(ROWS, measured)


EXHIBITS: Mapping[str, Exhibit] = {"table3": _Speedups(), "table4": _Speedups(), "table5": _CpuTimes()}
