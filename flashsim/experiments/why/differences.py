"""Why one run takes longer than another."""

from dataclasses import dataclass

from flashsim.core.errors import RefusedError, option
from flashsim.experiments.why.answers import TRANSACTION, RunWhy
from flashsim.experiments.why.wording import in_shares

#: The step for what is no mechanism: of the same requests, and of others.
_IDEAL, _REQUESTS = "ideal device", "requests of its own"


@dataclass(frozen=True)
class RunDifference:
    """Two runs of the same requests on two devices, of other requests on one, or of two systems of pools.

    RefusedError: neither the devices nor the requests are the same, or the runs are of several kinds.
    """

    one: RunWhy
    other: RunWhy

    def __post_init__(self) -> None:
        one, other = self.one, self.other
        if one.unit != other.unit:
            raise RefusedError("why: one is a join, a replay or a system of pools, and the other is not")
        if one.unit == TRANSACTION and one.key != other.key:
            raise RefusedError(
                "why: the systems of pools differ in more than their designs and devices; compare those of one workload and size"
            )
        if not (self._same_requests or one.preset == other.preset):
            raise RefusedError(
                "why: both the requests and the devices differ, and their shares cannot be separated; "
                "the same join divides memory alike on both devices with " + option("buffers-for")
            )

    @property
    def _same_requests(self) -> bool:
        counts = [[(cost.name, cost.reads, cost.writes, cost.pages) for cost in why.costs] for why in (self.one, self.other)]
        return self.one.key == self.other.key and (counts[0] == counts[1] or self.one.unit != "")

    def steps(self) -> list[tuple[str, float]]:
        """From the first run to the second, in seconds: what each mechanism costs more there, and what an ideal device does.

        They are seconds of I/O, of a mean request of replays, and of a mean transaction of pools.
        """
        same_run = self.one.what == self.other.what
        names = [
            why.device if same_run else why.what if self.one.device == self.other.device else why.title for why in (self.one, self.other)
        ]
        if names[0] == names[1]:
            names = [f"{name} ({place})" for name, place in zip(names, ("first", "second"), strict=True)]
        ends = [(name, why.total_steps()[-1][1]) for name, why in zip(names, (self.one, self.other), strict=True)]
        changes = sorted(((title, time) for title, time in self._mechanisms().items() if time), key=lambda step: -abs(step[1]))
        return [ends[0], *changes, ends[1]]

    def _mechanisms(self) -> dict[str, float]:
        one, other = (dict(why.total_steps(from_formula=False)[:-1]) for why in (self.one, self.other))
        groups = {each.mechanism.title: each.mechanism.group for why in (self.one, self.other) for each in why.runs.worths}
        steps = dict[str, float]()
        for title in {**one, **other}:
            group = groups.get(title) or title
            steps[group] = steps.get(group, 0.0) + other.get(title, 0.0) - one.get(title, 0.0)
        return steps if self._same_requests else {_REQUESTS if title == _IDEAL else title: time for title, time in steps.items()}

    @property
    def sentence(self) -> str:
        """Which is faster, and by what most."""
        (one, first), *changes, (other, last) = self.steps()
        difference = last - first
        if not difference:
            return f"{one} and {other} take equally long."
        names = (other, one) if difference < 0 else (one, other)
        along = sorted(changes, key=lambda step: -step[1] / difference)
        ideal = "the service of its reads" if self.one.unit == TRANSACTION else "its times with all mechanisms ideal"
        words = {_IDEAL: ideal, _REQUESTS: "its requests with all mechanisms ideal"}
        causes = in_shares({words.get(title, title): seconds for title, seconds in along}, difference, first, one)
        ratio = max(first, last) / min(first, last)
        return f"{self.one.when}{names[0]} is {ratio:.3g} times as fast as {names[1]}: {causes}{self._counts(difference < 0)}."

    def _counts(self, other_is_faster: bool) -> str:
        """What a transaction of the faster system of pools asks of its devices in the place of the other's requests."""
        slow, fast = (self.one, self.other) if other_is_faster else (self.other, self.one)
        if fast.unit != TRANSACTION:
            return ""
        each = [
            {title: count / path.requests for path in why.paths.values() for title, count in path.visits.items()} for why in (slow, fast)
        ]
        pairs = [f"{each[1][title]:.3g} {title} instead of {each[0].get(title, 0):.3g}" for title in each[1]]
        features = "".join(f"; {why.what} {why.feature}" for why in (fast, slow) if why.feature and fast.feature != slow.feature)
        return f"{features}; per transaction {', '.join(pairs)}"
