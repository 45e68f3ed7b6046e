"""Why one run takes longer than another."""

from dataclasses import dataclass

from flashsim.core.errors import RefusedError, option
from flashsim.experiments.why.answers import TRANSACTION, RunWhy

#: The step for what is neither a mechanism nor a wait of a transaction.
_IDEAL, _REQUESTS = "ideal device", "requests of its own"
#: Begin steps by the number of reads, and by the time of each.
_NUMBER, _TIME = "number of ", "time of "


@dataclass(frozen=True)
class RunDifference:
    """Two runs of the same requests on two devices, of other requests on one, or of two systems of pools.

    RefusedError: neither the devices nor the requests are the same, or the runs are of several kinds.
    """

    one: RunWhy
    other: RunWhy

    def __post_init__(self) -> None:
        if self.one.unit != self.other.unit:
            raise RefusedError("why: one is a join, a replay or a system of pools, and the other is not")
        if not (self._same_requests or self._same_device or self._of_pools):
            raise RefusedError(
                "why: the runs make other requests by design, and on other devices, so that neither can be told from the other; "
                "the same join divides memory alike on both with " + option("buffers-for")
            )

    @property
    def _same_requests(self) -> bool:
        counts = [[(cost.name, cost.reads, cost.writes, cost.pages) for cost in why.costs] for why in (self.one, self.other)]
        return counts[0] == counts[1]

    @property
    def _same_device(self) -> bool:
        return self.one.device == self.other.device

    @property
    def _of_pools(self) -> bool:
        return self.one.unit == TRANSACTION

    def steps(self) -> list[tuple[str, float]]:
        """From the first run to the second, in seconds: what each mechanism costs more there, and what an ideal device does.

        They are seconds of I/O, of a mean request of replays, and of a mean transaction of pools, where steps are what clients wait for:
        the number of reads at the time that the first takes for each, and the time of each of the second's.
        """
        same_run = self.one.what == self.other.what
        names = [why.device if same_run else why.what if self._same_device else why.title for why in (self.one, self.other)]
        ends = [(name, why.total_steps()[-1][1]) for name, why in zip(names, (self.one, self.other), strict=True)]
        steps = self._waits() if self._of_pools else self._mechanisms()
        changes = sorted(((title, time) for title, time in steps.items() if time), key=lambda step: -abs(step[1]))
        return [ends[0], *changes, ends[1]]

    def _mechanisms(self) -> dict[str, float]:
        one, other = (dict(why.total_steps(by_formula=False)[:-1]) for why in (self.one, self.other))
        steps = {title: other.get(title, 0.0) - one.get(title, 0.0) for title in {**one, **other}}
        return steps if self._same_requests else {_REQUESTS if title == _IDEAL else title: time for title, time in steps.items()}

    def _waits(self) -> dict[str, float]:
        (one, reads), (other, others) = (why.transaction_waits() for why in (self.one, self.other))
        steps = dict[str, float]()
        for title in one:
            visits = reads.get(title, 0.0)
            more = (others.get(title, 0.0) - visits) * (one[title] / visits if visits else 0.0)
            steps[f"{_NUMBER}{title}"] = more
            steps[f"{_TIME}{title}" if visits else title] = other[title] - one[title] - more
        return steps

    @property
    def sentence(self) -> str:
        """Which is faster, and by what most."""
        (one, first), *changes, (other, last) = self.steps()
        difference = last - first
        if not difference:
            return f"{one} and {other} take equally long."
        names = (other, one) if difference < 0 else (one, other)
        most, seconds = max(changes, key=lambda step: step[1] / difference)
        words = {_IDEAL: "its own times, without any wait", _REQUESTS: "the requests that it makes, without any wait"}
        what = words.get(most, most.replace(_NUMBER, "fewer ").replace(_TIME, "shorter "))
        ratio = max(first, last) / min(first, last)
        return f"{names[0]} is {ratio:.3g} times as fast as {names[1]}: {what} ({seconds / difference:.0%} of the difference)."
