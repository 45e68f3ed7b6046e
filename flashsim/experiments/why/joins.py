"""Why a join took its time on a device: its phases by parts, by mechanisms, and against the formula."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flashsim.core.errors import RefusedError
from flashsim.core.mechanisms import DeviceMechanism
from flashsim.core.request import Integers
from flashsim.core.units import SECONDS
from flashsim.device.mechanisms import mechanisms_of
from flashsim.execution.machine import Machine
from flashsim.execution.recording import RequestRecording
from flashsim.execution.run import ConcurrentRun, PhaseCost, Run
from flashsim.experiments.formulas import comparison
from flashsim.experiments.runs.joining import JoinResult, simulate_join
from flashsim.experiments.why.counterfactuals import Counterfactuals, IdealDrive, Ideals
from flashsim.experiments.why.parts import PARTS
from flashsim.experiments.why.paths import PathObserver, PhasePath
from flashsim.experiments.why.wording import Cause, sentence
from models.haas import JoinCost
from models.join_costs.base import PhaseCounts


@dataclass(frozen=True)
class JoinWhy:
    """A join on a device: what its phases waited for, what mechanisms are worth, and where the difference from the formula lies."""

    device: str
    costs: Sequence[PhaseCost]
    paths: Mapping[str, PhasePath]
    runs: Counterfactuals
    #: I/O time by the formula, and by its prices with the run's own counts, ns of each phase; NaN where there is no formula.
    formula: Sequence[float]
    counted: Sequence[float]

    def path_rows(self) -> list[dict[str, Any]]:
        """One row per phase and part of its time: ``seconds``, per request of the phase, and as a ``share``; they sum to what elapsed."""
        rows = []
        for cost in self.costs:
            path = self.paths.get(cost.name, PhasePath())
            times = {title: int(time) for title, time in zip(PARTS.values(), path.parts, strict=True) if time}
            times |= {"CPU, user": cost.user_time, "CPU, kernel": cost.kernel_time}
            rows += [
                {
                    "phase": cost.name, "part": title, "seconds": time / SECONDS, "per_request_s": time / SECONDS / max(1, path.requests),
                    "share": time / max(1, cost.total_time),
                }
                for title, time in times.items() if time
            ]  # fmt: skip
        return rows

    def worth_rows(self) -> list[dict[str, Any]]:
        """One row per mechanism: seconds of I/O that it costs alone, as the last of all, and as it was removed; NaN where none was run."""
        return [
            {
                "mechanism": worth.mechanism.title, "alone_s": int(worth.alone.sum()) / SECONDS,
                "last_s": np.nan if worth.last is None else int(worth.last.sum()) / SECONDS,
                "removed_s": int(worth.removed.sum()) / SECONDS, "changes": worth.mechanism.decides,
            }
            for worth in self.runs.worths
        ]  # fmt: skip

    def step_rows(self) -> list[dict[str, Any]]:
        """One row per phase and step from the formula to the run: the formula, its differences, and the run, in seconds of I/O.

        The differences sum to the run less the formula.  Where there is no formula, they are those of an ideal device.
        """
        rows = []
        for number, cost in enumerate(self.costs):
            for title, seconds in self._steps([number]):
                rows.append({"phase": cost.name, "step": title, "seconds": seconds})
        return rows

    def total_steps(self) -> list[tuple[str, float]]:
        """Steps of all phases that have a formula, or of all if none has."""
        known = [number for number, seconds in enumerate(self.formula) if not np.isnan(seconds)]
        return self._steps(known or range(len(self.costs)))

    def _steps(self, phases: Sequence[int]) -> list[tuple[str, float]]:
        own = list(phases)
        formula, counted = (float(np.sum([each[number] for number in own])) for each in (self.formula, self.counted))
        ideal, run = (float(each[own].sum()) for each in (self.runs.ideal, self.runs.base))
        steps = [] if np.isnan(formula) else [("formula", formula), ("requests counted differently", counted - formula)]
        steps += [("ideal device", ideal) if np.isnan(formula) else ("ideal device against the formula", ideal - counted)]
        steps += [(worth.mechanism.title, float(worth.removed[own].sum())) for worth in self.runs.worths if worth.removed[own].any()]
        return [(title, time / SECONDS) for title, time in (*steps, ("run", run))]

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        steps = dict(self.total_steps())
        known = [cost.name for cost, seconds in zip(self.costs, self.formula, strict=True) if not np.isnan(seconds)]
        paths = [self.paths[name] for name in known or [cost.name for cost in self.costs] if name in self.paths]
        by_title = {worth.mechanism.title: worth.mechanism for worth in self.runs.worths}
        causes = [Cause(title, time, by_title.get(title)) for title, time in steps.items() if title not in ("formula", "run")]
        return sentence(steps["run"], steps.get("formula"), causes, paths)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: the sentence, phases with the parts of their time and steps from the formula, and mechanisms; ns."""
        phases = []
        for number, cost in enumerate(self.costs):
            path = self.paths.get(cost.name, PhasePath())
            steps = {title: round(seconds * SECONDS) for title, seconds in self._steps([number])}
            phases.append({
                "phase": cost.name, "elapsed": cost.total_time, "io": cost.io_time, "user": cost.user_time, "kernel": cost.kernel_time,
                "requests": path.requests, "parts": {name: int(time) for name, time in zip(PARTS, path.parts, strict=True) if time},
                "steps": steps,
            })  # fmt: skip
        mechanisms = [
            {
                "name": worth.mechanism.name, "title": worth.mechanism.title, "sentence": worth.mechanism.sentence,
                "changes": worth.mechanism.decides or None, "alone": int(worth.alone.sum()),
                "last": None if worth.last is None else int(worth.last.sum()), "removed": int(worth.removed.sum()),
            }
            for worth in self.runs.worths
        ]  # fmt: skip
        return {
            "device": self.device, "sentence": self.sentence, "phases": phases, "mechanisms": mechanisms,
            "interaction": int(self.runs.interaction.sum()), "runs": self.runs.runs,
        }  # fmt: skip


def why_join(result: JoinResult, index: int = 0) -> JoinWhy:
    """Take a join on one of its devices apart.

    Raises
    ------
    RefusedError
        The join ran in several strands, or on what records no parts: a real device, an array or a station.
    """
    if isinstance(result.runs[index], ConcurrentRun):
        raise RefusedError("why: strands share a device, and their waits overlap; take a join of one strand")
    if not result.drives:
        raise RefusedError("why: a real device does not tell what its parts do; join on a simulated one")
    held, observers, recording = result.drives[index], list[PathObserver](), RequestRecording()
    mechanisms = {each.name: each for each in mechanisms_of(held.load())}

    def observe(machine: Machine) -> PathObserver:
        observers.append(PathObserver(machine))
        return observers[0]

    def simulate(ideals: Sequence[Ideals], **rest: Any) -> Sequence[Run | ConcurrentRun]:
        drives = [IdealDrive(held, _by_names(mechanisms, each)) for each in ideals]
        devices = [held, *drives]  # the first divides memory
        again = simulate_join(result.setting, result.files, devices, allocation=result.allocation, recording=recording, **rest)
        return again.runs

    def evaluate(ideals: Sequence[Ideals]) -> Sequence[Integers]:
        return [np.array([cost.io_time for cost in run.phases]) for run in simulate(ideals)[1:]] if ideals else []

    (run,) = simulate([], observer=observe)
    formula = comparison.formulas(result)[index]
    prices = [_formula_times(cost, formula) for cost in run.phases]
    runs = Counterfactuals(mechanisms.values(), evaluate)
    return JoinWhy(run.machine, run.phases, observers[0].phases, runs, [each[0] for each in prices], [each[1] for each in prices])


def _by_names(mechanisms: Mapping[str, DeviceMechanism], names: Ideals) -> tuple[DeviceMechanism, ...]:
    return tuple(mechanism for name, mechanism in mechanisms.items() if name in names)


def _formula_times(cost: PhaseCost, formula: JoinCost | None) -> tuple[float, float]:
    """I/O time of a phase by the formula, ns, and by its prices with the run's counts."""
    phase = next((each for each in formula.phases if each.name == cost.name), None) if formula else None
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
