"""The answer to why a run took its time: phases by parts, by mechanisms, and against the formula."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flashsim.core.units import SECONDS
from flashsim.execution.run import PhaseCost
from flashsim.experiments.why.counterfactuals import Counterfactuals
from flashsim.experiments.why.parts import PARTS
from flashsim.experiments.why.paths import PhasePath
from flashsim.experiments.why.wording import Cause, sentence


@dataclass(frozen=True)
class RunWhy:
    """A run on a device: what its phases waited for, what mechanisms are worth, and where the difference from the formula lies.

    Of a replay the requests of an operation are a phase, and its time the sum of their latencies.
    """

    device: str
    costs: Sequence[PhaseCost]
    paths: Mapping[str, PhasePath]
    runs: Counterfactuals
    #: I/O time by the formula, and by its prices with the run's own counts, ns of each phase; NaN where there is no formula.
    formula: Sequence[float]
    counted: Sequence[float]
    #: Steps are those of a mean request.
    per_request: bool = False

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
        """One row per phase and step from the formula to the run, in seconds of I/O, or of a mean request.

        The differences sum to the run less the formula.  Where there is no formula, they are those of an ideal device.
        """
        rows = []
        for number, cost in enumerate(self.costs):
            for title, time in self._steps([number]):
                rows.append({"phase": cost.name, "step": title, "seconds": time / self._unit([number])})
        return rows

    def total_steps(self) -> list[tuple[str, float]]:
        """Steps of all phases that have a formula, or of all if none has."""
        known = [number for number, seconds in enumerate(self.formula) if not np.isnan(seconds)]
        phases = known or list(range(len(self.costs)))
        return [(title, time / self._unit(phases)) for title, time in self._steps(phases)]

    def _unit(self, phases: Sequence[int]) -> float:
        """Nanoseconds that are shown as a second."""
        names = [self.costs[number].name for number in phases]
        return SECONDS * (sum(self.paths[name].requests for name in names) if self.per_request else 1)

    def _steps(self, phases: Sequence[int]) -> list[tuple[str, float]]:
        own = list(phases)
        formula, counted = (float(np.sum([each[number] for number in own])) for each in (self.formula, self.counted))
        ideal, run = (float(each[own].sum()) for each in (self.runs.ideal, self.runs.base))
        steps = [] if np.isnan(formula) else [("formula", formula), ("requests counted differently", counted - formula)]
        steps += [("ideal device", ideal) if np.isnan(formula) else ("ideal device against the formula", ideal - counted)]
        steps += [(worth.mechanism.title, float(worth.removed[own].sum())) for worth in self.runs.worths if worth.removed[own].any()]
        return [*steps, ("run", run)]

    @property
    def causes(self) -> list[Cause]:
        """Why the run differs from the formula, or from an ideal device: what is on the side of the difference first, the largest first."""
        steps = dict(self.total_steps())
        by_title = {worth.mechanism.title: worth.mechanism for worth in self.runs.worths}
        causes = [Cause(title, time, by_title.get(title)) for title, time in steps.items() if title not in ("formula", "run")]
        against = steps.get("formula", steps.get("ideal device", 0.0))
        side = 1 if steps["run"] >= against else -1
        return sorted((each for each in causes if each.title != "ideal device"), key=lambda each: -side * each.seconds)

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        steps = dict(self.total_steps())
        known = [cost.name for cost, seconds in zip(self.costs, self.formula, strict=True) if not np.isnan(seconds)]
        paths = [self.paths[name] for name in known or [cost.name for cost in self.costs] if name in self.paths]
        formula = steps.get("formula")
        return sentence(steps["run"], steps["ideal device"] if formula is None else formula, self.causes, paths, formula is not None)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: the sentence, phases with the parts of their time and steps from the formula, and mechanisms; ns."""
        phases = []
        for number, cost in enumerate(self.costs):
            path = self.paths.get(cost.name, PhasePath())
            steps = {title: round(time) for title, time in self._steps([number])}
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
