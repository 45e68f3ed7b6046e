"""Why a join took its time on a device."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from algorithms.fetching.base import FetchOptions
from flashsim.core.errors import RefusedError
from flashsim.core.request import Integers
from flashsim.core.units import SECONDS, format_size
from flashsim.device.mechanisms import mechanisms_of
from flashsim.execution.machine import Machine
from flashsim.execution.recording import RequestRecording
from flashsim.execution.run import ConcurrentRun, PhaseCost, Run
from flashsim.experiments.formulas import comparison
from flashsim.experiments.runs.joining import JoinResult, simulate_join
from flashsim.experiments.why.answers import RunWhy
from flashsim.experiments.why.counterfactuals import Counterfactuals, IdealDrive, Ideals
from flashsim.experiments.why.paths import PathObserver
from models.haas import JoinCost
from models.join_costs.base import PhaseCounts

#: Counts that differ by no larger share are alike.
_ALIKE = 0.05


def why_join(result: JoinResult, index: int = 0, *, exact: bool = False) -> RunWhy:
    """Take a join on one of its devices apart; `exact`: with Shapley values.

    Raises
    ------
    RefusedError
        The join ran in several strands, or on what records no parts: a real device, an array or a station.
    """
    if isinstance(result.runs[index], ConcurrentRun):
        raise RefusedError("why: strands share a device, and their waits overlap; take a join of one strand")
    if not result.drives:
        raise RefusedError("why: a real device does not report its internal activity; join on a simulated one")
    held, observers, recording = result.drives[index], list[PathObserver](), RequestRecording()
    mechanisms = mechanisms_of(held.load())

    def observe(machine: Machine) -> PathObserver:
        observers.append(PathObserver(machine))
        return observers[0]

    def simulate(ideals: Sequence[Ideals], **rest: Any) -> Sequence[Run | ConcurrentRun]:
        devices, buffers = [IdealDrive(held, each) if each else held for each in ideals], result.allocation
        again = simulate_join(result.setting, result.files, devices, allocation=buffers, divided_for=held, recording=recording, **rest)
        return again.runs

    def evaluate(ideals: Sequence[Ideals]) -> Sequence[Integers]:
        return [_io_times(each) for each in simulate(ideals)] if ideals else []

    (run,) = simulate([()], observer=observe)
    formula = comparison.formulas(result)[index]
    phases = [next((each for each in formula.phases if each.name == cost.name), None) if formula else None for cost in run.phases]
    prices = [_formula_times(cost, phase, formula) for cost, phase in zip(run.phases, phases, strict=True)]
    by_formula, counted = ([each[number] for each in prices] for number in (0, 1))
    key = replace(result.setting, cpu=None, buffers_for=None), [file.name for file in result.files], vars(result.allocation)
    rest: dict[str, Any] = {"counts": _counts_in_words(result, run.phases, phases, prices), "key": key, "preset": held.load()}
    runs, name = Counterfactuals(mechanisms, _io_times(run), evaluate, exact), result.setting.algorithm
    return RunWhy(run.machine, name, run.phases, observers[0].phases, runs, by_formula, counted, **rest)


def _counts_in_words(
    result: JoinResult, costs: Sequence[PhaseCost], phases: Sequence[PhaseCounts | None], prices: Sequence[tuple[float, float]]
) -> str:
    """How many requests, pages or seeks the run has, and how many the formula, in the phase in which that costs most."""
    differences = [abs(counted - formula) if phase else -1.0 for phase, (formula, counted) in zip(phases, prices, strict=True)]
    number = int(np.argmax(differences))
    cost, phase = costs[number], phases[number]
    if phase is None:
        return ""
    for what, made, counted in (("requests", cost.requests, phase.total.requests), ("pages", cost.pages, phase.total.pages)):
        if abs(made - counted) > _ALIKE * max(1, counted):
            words = f"{cost.name} has {made:,} {what} where the formula counts {counted:,}"
            return f"{words} as a lower bound: {_why_again(result)}" if phase.is_bound and made > counted else words
    return f"{cost.name} does not seek as often as the formula counts"


def _why_again(result: JoinResult) -> str:
    """Why a join fetches pages more often than by the lower bound, as a clause."""
    options, memory = result.setting.options, format_size(result.setting.memory * result.files[0].page_size)
    strategy = options.fetch if isinstance(options, FetchOptions) else result.setting.algorithm
    return f"with {strategy} fetching, {memory} of memory does not keep pages until all their partners are read"


def _io_times(run: Run | ConcurrentRun) -> Integers:
    """I/O time of each phase, ns."""
    return np.array([cost.io_time for cost in run.phases], np.int64)


def _formula_times(cost: PhaseCost, phase: PhaseCounts | None, formula: JoinCost | None) -> tuple[float, float]:
    """I/O time of a phase by the formula, ns, and by its prices with the run's counts."""
    if phase is None or formula is None:
        return np.nan, np.nan
    return phase.seconds(formula.disk) * SECONDS, _with_counts(phase, cost).seconds(formula.disk) * SECONDS


def _with_counts(phase: PhaseCounts, cost: PhaseCost) -> PhaseCounts:
    """The formula's phase with requests, pages and, where the device counts them, seeks of the run."""
    reads = replace(phase.reads, requests=cost.reads, pages=cost.pages_read)
    writes = replace(phase.writes, requests=cost.writes, pages=cost.pages_written)
    if cost.seeks:
        reads, writes = replace(reads, seeks=cost.seeks), replace(writes, seeks=0)
    return replace(phase, reads=reads, writes=writes)
