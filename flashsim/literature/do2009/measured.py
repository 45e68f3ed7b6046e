"""Measurements of the paper's runs, with the formula's answer beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean

from matplotlib.figure import Figure

from flashsim.device import presets
from flashsim.execution import cpu as cpus
from flashsim.execution.cpu import CpuModel
from flashsim.literature.do2009.runs import DEVICES, LABELS, Setup, buffers, join_setting
from flashsim.studies.formulas.comparison import PhaseComparison, compare, formula
from flashsim.studies.judging.cells import ratio
from flashsim.studies.presentation.plots import Bar, stacked_bars
from flashsim.studies.runs.drives import ShipsModel, disk_of
from flashsim.studies.runs.jobs import Results
from flashsim.studies.runs.joining import CPU, PhaseSeconds
from models.haas import JoinCost
from models.join_costs.base import Sizes


@dataclass(frozen=True)
class Result:
    """One join on one machine; `comparisons` holds a repetition each."""

    setup: Setup
    machine: str
    comparisons: tuple[tuple[PhaseComparison, ...], ...]
    user: tuple[float, ...]  # seconds of a repetition
    kernel: tuple[float, ...]

    @property
    def comparison(self) -> tuple[PhaseComparison, ...]:
        """The phases and their total, times averaged over the repetitions."""
        return tuple(map(_average, zip(*self.comparisons, strict=True)))

    @property
    def total(self) -> PhaseComparison:
        return self.comparison[-1]

    @property
    def io_times(self) -> list[float]:
        """I/O seconds of each repetition."""
        return [comparison[-1].io for comparison in self.comparisons]


def _average(repeated: Sequence[PhaseComparison]) -> PhaseComparison:
    io, cpu, total = (fmean(getattr(one, name) for one in repeated) for name in ("io", "cpu", "total"))
    return replace(repeated[0], io=io, cpu=cpu, total=total)


class Runs:
    """Measurements by setup and machine; totals are with the user's work at other prices than the runs', if `cpu` has them."""

    def __init__(self, results: Results, cpu: CpuModel | None = None) -> None:
        self.settings = results.settings
        self._results, self._cpu = results, cpu

    def get(self, setup: Setup, machine: str) -> Result | None:
        """One result, or None where the run was not asked for or could not be made."""
        output = self._results.get(setup.job(self.settings), {})
        if machine not in output.get("machines", {}):
            return None
        repeated = [[PhaseSeconds(**row) for row in one] for one in output["machines"][machine]]
        formula = _formula(setup, self.settings.scale, machine, tuple(output["pages"]), self.settings.ships_model)
        user, kernel = (tuple(getattr(one[-1], name) for one in repeated) for name in ("user", "kernel"))
        return Result(setup, machine, tuple(tuple(compare(one, formula)) for one in repeated), user, kernel)

    def run(self, setup: Setup) -> str:
        return setup.job(self.settings).id

    def problem(self, setup: Setup) -> str:
        """Reason why a run failed, or an empty text."""
        text: str = self._results.get(setup.job(self.settings), {}).get("problem", "")
        return text

    def seconds(self, setup: Setup, machine: str, what: str = "total", phase: str = "total") -> float | None:
        """Seconds of a run: ``io``, ``cpu`` or ``total`` (also of its ``first phase`` or ``second phase``), ``user`` or ``kernel``."""
        result = self.get(setup, machine)
        place = {"first phase": 0, "second phase": 1}.get(phase, -1)
        if result is None or place >= len(result.comparison) - 1:
            return None
        if what in ("user", "kernel"):
            return fmean(getattr(result, what))
        seconds: float = getattr(result.comparison[place], what)
        return seconds if self._cpu is None or what == "io" else seconds + self._dearer(setup, self._cpu) * fmean(result.user)

    def _dearer(self, setup: Setup, cpu: CpuModel) -> float:
        """Share by which the user's work of a run is dearer at other prices."""
        work = self._results[setup.job(self.settings)]["work"]
        return cpu.user_time(work) / cpus.load(CPU).user_time(work) - 1

    def speedup(self, setup: Setup, what: str, phase: str = "total") -> float | None:
        """HDD over SSD seconds."""
        return ratio(*(self.seconds(setup, machine, what, phase) for machine in ("HDD", "SSD")))

    def over(self, machine: str, what: str, memory: int, *joins: str) -> list[float | None]:
        """Seconds of joins with a buffer pool."""
        return [self.seconds(Setup(join, memory), machine, what) for join in joins]

    def bars(self, groups: Mapping[str, Sequence[Setup]], kind: str) -> Figure:
        """I/O and CPU times in groups of bars, the machines one below the other."""
        panels: dict[str, list[Bar]] = {}
        for machine, device in DEVICES.items():
            results = [(group, self.get(setup, machine)) for group, setups in groups.items() for setup in setups]
            panels[f"{machine} ({device}), {kind}scale {self.settings.scale:g}"] = [
                Bar(group, LABELS[each.setup.join], each.total.io, each.total.cpu, each.total.formula_io) for group, each in results if each
            ]
        return stacked_bars(panels)


@cache
def _formula(setup: Setup, scale: float, machine: str, pages: tuple[int, int, int, int], ships_model: bool) -> JoinCost | None:
    disk = disk_of(presets.load(DEVICES[machine]), setup.page_size)
    if ships_model:
        disk = ShipsModel(scale, setup.page_size * setup.page_io).disk(disk)
    sizes = Sizes(*pages, join_setting(setup, scale).memory)
    allocation = buffers(setup, scale, *pages[:2], ships_model=ships_model)
    return formula(setup.join, sizes, disk, allocation, page_io=setup.page_io)
