"""Measurements of the paper's runs, with the formula's answer beside them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from flashsim.apps.papers import base
from flashsim.apps.papers.base import Cell, Claim, Results
from flashsim.apps.papers.do2009.runs import DEVICES, LABELS, Setup, buffers, join_setting
from flashsim.device import presets
from flashsim.execution import cpu as cpus
from flashsim.execution.cpu import CpuModel
from flashsim.studies.formulas.comparison import PhaseComparison, compare, formula
from flashsim.studies.judging.cells import less, ratio, statement
from flashsim.studies.presentation.plots import Bar, stacked_bars
from flashsim.studies.runs.drives import ShipsModel, disk_of
from flashsim.studies.runs.joining import CPU, PhaseSeconds
from models.haas import JoinCost
from models.join_costs.base import Sizes

#: What `Runs.seconds` takes: run, machine, kind and phase; and name and words of a comparison, and the times that it is on.
Time = tuple[Any, ...]
Order = tuple[str, str, Sequence[Time]]


@dataclass(frozen=True)
class Result:
    """One join on one machine: phases and their total, with mean times; and I/O, user's and kernel's seconds of each repetition."""

    comparison: Sequence[PhaseComparison]
    io: Sequence[float]
    user: Sequence[float]
    kernel: Sequence[float]

    @property
    def total(self) -> PhaseComparison:
        return self.comparison[-1]


class Runs(base.Runs):
    """Measurements by setup and machine; totals are with the user's work at other prices than the runs', if `cpu` has them."""

    def __init__(self, results: Results, cpu: CpuModel | None = None) -> None:
        super().__init__(results)
        self._cpu = cpu

    def result(self, setup: Setup, machine: str) -> Result | None:
        """One result, or None where the run was not asked for or could not be made."""
        output = self.get(setup)
        if not output or "problem" in output:
            return None
        repeated = [[PhaseSeconds(**row) for row in one] for one in output["machines"][machine]]
        formula = _formula(setup, self.settings.scale, machine, tuple(output["pages"]), self.settings.ships_model)
        phases = []
        for every in zip(*(compare(one, formula) for one in repeated), strict=True):
            means = {name: fmean(getattr(one, name) for one in every) for name in ("io", "cpu", "total")}
            phases.append(replace(every[0], **means))
        return Result(phases, *([getattr(one[-1], kind) for one in repeated] for kind in ("io", "user", "kernel")))

    def seconds(self, setup: Setup, machine: str, what: str = "total", phase: str = "total") -> float | None:
        """Seconds of a run: ``io``, ``cpu`` or ``total`` (also of its ``first phase`` or ``second phase``), ``user`` or ``kernel``."""
        result = self.result(setup, machine)
        place = {"first phase": 0, "second phase": 1}.get(phase, -1)
        if result is None or place >= len(result.comparison) - 1:
            return None
        if what in ("user", "kernel"):
            return fmean(getattr(result, what))
        seconds: float = getattr(result.comparison[place], what)
        if self._cpu is None or what == "io":
            return seconds
        work = self.get(setup)["work"]
        return seconds + (self._cpu.user_time(work) / cpus.load(CPU).user_time(work) - 1) * fmean(result.user)

    def ratio(self, times: Iterable[Time]) -> float | None:
        """The first of two times over the second."""
        return ratio(*(self.seconds(*time) for time in times))

    def orders(self, claim: Claim, orders: Sequence[Order]) -> list[Cell]:
        """Statements that the first of some times is below the others by the claim's margin."""
        holds = less(claim.limits["margin"])
        return [statement(name, words, [self.seconds(*run) for run in times], holds) for name, words, times in orders]

    def bars(self, groups: Mapping[str, Sequence[Setup]], kind: str) -> Figure:
        """I/O and CPU times in groups of bars, the machines one below the other."""
        panels: dict[str, list[Bar]] = {}
        for machine, device in DEVICES.items():
            bars = panels[f"{machine} ({device}), {kind}scale {self.settings.scale:g}"] = []
            for group, setups in groups.items():
                every = [(LABELS[setup.join], self.result(setup, machine)) for setup in setups]
                bars += [Bar(group, label, one.total.io, one.total.cpu, one.total.formula_io) for label, one in every if one]
        return stacked_bars(panels)


@cache
def _formula(setup: Setup, scale: float, machine: str, pages: tuple[int, int, int, int], ships_model: bool) -> JoinCost | None:
    disk = disk_of(presets.load(DEVICES[machine]), setup.page_size)
    if ships_model:
        disk = ShipsModel(scale, setup.page_size * setup.page_io).disk(disk)
    sizes = Sizes(*pages, join_setting(setup, scale).memory)
    allocation = buffers(setup, scale, *pages[:2], ships_model=ships_model)
    return formula(setup.join, sizes, disk, allocation, page_io=setup.page_io)
