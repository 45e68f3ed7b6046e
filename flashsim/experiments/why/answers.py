"""The answer to why a run took its time: phases by parts, by mechanisms, and against the formula."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flashsim.core.units import SECONDS
from flashsim.execution.run import PhaseCost
from flashsim.experiments.why.counterfactuals import Counterfactuals
from flashsim.experiments.why.paths import PhasePath
from flashsim.experiments.why.wording import IDEAL, REQUESTS, Cause, in_words, sentence

#: Units of which steps are a mean.
REQUEST, TRANSACTION = "request", "transaction"
#: Share at which waiting for other requests, which says little, counts in the order of causes.
_OF_LOAD = 0.5
#: Costs that differ by no larger share are equal.
_EQUAL = 0.01


@dataclass(frozen=True)
class RunWhy:
    """A run on a device: what its phases waited for, what mechanisms are worth, and where the difference from the formula lies.

    Of a replay the requests of an operation are a phase, and its time the sum of their latencies.  Of a system of pools there is one, whose
    requests are transactions, and its time the sum of theirs; its formula knows mechanisms as well, and each step is what a mechanism costs
    beyond that.
    """

    device: str
    #: What ran on it, such as the algorithm of a join.
    what: str
    costs: Sequence[PhaseCost]
    paths: Mapping[str, PhasePath]
    runs: Counterfactuals
    #: I/O time by the formula, and by its prices with the run's own counts, ns of each phase; NaN where there is no formula.
    formula: Sequence[float]
    counted: Sequence[float]
    #: Steps are those of a mean request, or transaction, as this says; empty: of the whole phase.
    unit: str = ""
    #: The cost of mechanisms by the formula, ns, by name, in the order in which they are removed from the run.
    by_formula: Mapping[str, float] = field(default_factory=dict)
    #: Of what the requests depend besides the device, and the device: two runs with equal ones can be compared.
    key: Any = None
    preset: Any = None
    #: What the run counts otherwise than the formula, as a clause; empty: any of requests, pages and seeks.
    counts: str = ""
    #: What the device is compared with where there is no formula; when steps are measured, as a clause; and what the algorithm does that
    #: others do not, as a clause.
    ideal: str = "an ideal device"
    when: str = ""
    feature: str = ""

    @property
    def title(self) -> str:
        return f"{self.what} on {self.device}" if self.what else self.device

    def path_rows(self) -> list[dict[str, Any]]:
        """One row per phase and part of its time: ``seconds``, per request of the phase, and as a ``share``; they sum to what elapsed."""
        rows = []
        for cost in self.costs:
            path = self.paths.get(cost.name, PhasePath())
            times = {title: int(time) for title, time in zip(path.names.values(), path.parts, strict=True) if time}
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
        """One row per mechanism: what it costs alone, as the last of all (NaN: not run), and as it was removed, in seconds as of steps."""
        unit = self._unit(range(len(self.costs)))
        return [
            {
                "mechanism": worth.mechanism.title, "alone_s": int(worth.alone.sum()) / unit,
                "last_s": np.nan if worth.last is None else int(worth.last.sum()) / unit, "removed_s": int(worth.removed.sum()) / unit,
                "changes": worth.mechanism.decides,
            } | ({} if worth.shapley is None else {"shapley_s": worth.shapley / unit})
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

    def total_steps(self, from_formula: bool = True) -> list[tuple[str, float]]:
        """Steps of all phases that have a formula, or of all if none has; from ideal devices if not `from_formula`."""
        known = [number for number, seconds in enumerate(self.formula) if not np.isnan(seconds)]
        phases = known or list(range(len(self.costs)))
        return [(title, time / self._unit(phases)) for title, time in self._steps(phases, from_formula)]

    def _unit(self, phases: Sequence[int]) -> float:
        """Nanoseconds that are shown as a second."""
        names = [self.costs[number].name for number in phases]
        return SECONDS * (sum(self.paths[name].requests for name in names) if self.unit else 1)

    def _steps(self, phases: Sequence[int], from_formula: bool = True) -> list[tuple[str, float]]:
        own = list(phases)
        formula, counted = (float(np.sum([each[number] for number in own])) for each in (self.formula, self.counted))
        ideal, run = (float(each[own].sum()) for each in (self.runs.ideal, self.runs.base))
        removed = {worth.mechanism.name: float(worth.removed[own].sum()) for worth in self.runs.worths}
        if np.isnan(formula) or not from_formula:
            steps = [("ideal device", ideal)]
        else:
            removed = {name: time - self.by_formula.get(name, 0.0) for name, time in removed.items()}
            rest = ideal - counted + sum(self.by_formula.values())
            steps = [("formula", formula), (REQUESTS, counted - formula), (IDEAL, rest)]
        steps += [(worth.mechanism.title, removed[worth.mechanism.name]) for worth in self.runs.worths if removed[worth.mechanism.name]]
        return [*steps, ("run", run)]

    @property
    def causes(self) -> list[Cause]:
        """Why the run differs from the formula, or from an ideal device: what is on the side of the difference first, the largest first.

        The formula of pools knows their mechanisms, and so the causes are those of the difference from ideal devices.
        """
        return self._causes(dict(self.total_steps(not self.by_formula)))

    def _causes(self, steps: Mapping[str, float]) -> list[Cause]:
        by_title = {worth.mechanism.title: worth.mechanism for worth in self.runs.worths}
        causes = [Cause(title, time, by_title.get(title)) for title, time in steps.items() if title not in ("formula", "run")]
        causes = [replace(each, words=self.counts) if each.title == REQUESTS else self._with_ties(each) for each in causes]
        if self.by_formula and "formula" in steps:  # which knows them too
            causes = _of_counts(causes) if self.unit == TRANSACTION else [_beyond_formula(each) for each in causes]
        against = steps.get("formula", steps.get("ideal device", 0.0))
        side = 1 if steps["run"] >= against else -1
        weights = [_OF_LOAD if each.mechanism and each.mechanism.one_at_a_time else 1.0 for each in causes]
        ordered = sorted(zip(causes, weights, strict=True), key=lambda pair: -side * pair[0].seconds * pair[1])
        return [each for each, _ in ordered if each.title != "ideal device"]

    @property
    def sentence(self) -> str:
        """The answer in a sentence; of pools that have a formula, in two."""
        if self.by_formula:
            return f"{self.when}{self._sentence(from_formula=False)} {self._sentence(from_formula=True)}"
        return self.when + self._sentence(from_formula=True)

    def _sentence(self, *, from_formula: bool) -> str:
        steps = dict(self.total_steps(from_formula))
        known = [cost.name for cost, seconds in zip(self.costs, self.formula, strict=True) if not np.isnan(seconds)]
        paths = [self.paths[name] for name in known or [cost.name for cost in self.costs] if name in self.paths]
        formula = steps.get("formula")
        against, what = (steps["ideal device"], self.ideal) if formula is None else (formula, "the formula")
        return sentence(steps["run"], against, what, self._causes(steps), paths)

    def _with_ties(self, cause: Cause) -> Cause:
        """A cause with another mechanism that costs as much alone, and of which nothing is left behind it."""
        own = next((worth for worth in self.runs.worths if worth.mechanism == cause.mechanism), None)
        cost = int(own.alone.sum()) if own else 0
        for worth in self.runs.worths if cost else ():
            if worth is not own and not worth.removed.any() and abs(int(worth.alone.sum()) - cost) <= _EQUAL * abs(cost):
                return replace(
                    cause,
                    words=f"{in_words(cause, [*self.paths.values()])}, and {worth.mechanism.sentence}, either of which alone costs as much",
                )
        return cause

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: the sentence, phases with the parts of their time and steps from the formula, and mechanisms; ns."""
        phases = []
        for number, cost in enumerate(self.costs):
            path = self.paths.get(cost.name, PhasePath())
            steps = {title: round(time) for title, time in self._steps([number])}
            ideal = IDEAL if IDEAL in steps else "ideal device"
            steps[ideal] += 2 * steps["run"] - sum(steps.values())  # so that rounded steps sum to the run
            phases.append({
                "phase": cost.name, "elapsed": cost.total_time, "io": cost.io_time, "user": cost.user_time, "kernel": cost.kernel_time,
                "requests": path.requests, "parts": {name: int(time) for name, time in zip(path.names, path.parts, strict=True) if time},
                "steps": steps,
            })  # fmt: skip
        mechanisms = [
            {
                "name": worth.mechanism.name, "title": worth.mechanism.title, "sentence": worth.mechanism.sentence,
                "changes": worth.mechanism.decides or None, "alone": int(worth.alone.sum()),
                "last": None if worth.last is None else int(worth.last.sum()), "removed": int(worth.removed.sum()),
                "shapley": None if worth.shapley is None else round(worth.shapley),
            }
            for worth in self.runs.worths
        ]  # fmt: skip
        return {
            "device": self.device, "sentence": self.sentence, "phases": phases, "mechanisms": mechanisms,
            "interaction": int(self.runs.interaction.sum()), "runs": self.runs.runs,
        }  # fmt: skip


def _beyond_formula(cause: Cause) -> Cause:
    """A cause, of which the cost by the formula has been taken off if it is a mechanism."""
    if cause.mechanism is None:
        return cause
    return replace(cause, words=f"{cause.title} costs {'more' if cause.seconds > 0 else 'less'} than by the formula")


def _of_counts(causes: Sequence[Cause]) -> list[Cause]:
    """The requests that are counted differently, and all else together: parts of it cancel one another."""
    counts, rest = ([each for each in causes if (each.title == REQUESTS) is is_count] for is_count in (True, False))
    seconds = sum(each.seconds for each in rest)
    words = f"with the run's counts the formula still says {'less' if seconds > 0 else 'more'}"
    return [*counts, Cause(IDEAL, seconds, words=words)]
