"""Why one device takes longer than another for the same requests."""

from dataclasses import dataclass

from flashsim.core.errors import RefusedError, option
from flashsim.core.units import SECONDS
from flashsim.experiments.why.answers import RunWhy


@dataclass(frozen=True)
class RunDifference:
    """Two runs of the same requests.

    RefusedError: the requests differ by design.
    """

    one: RunWhy
    other: RunWhy

    def __post_init__(self) -> None:
        counts = [[(cost.name, cost.reads, cost.writes, cost.pages) for cost in why.costs] for why in (self.one, self.other)]
        if counts[0] != counts[1]:
            raise RefusedError(
                "why: the runs make other requests by design, and only devices can be compared mechanism by mechanism; "
                "the same join divides memory alike on both with " + option("buffers-for")
            )

    def steps(self) -> list[tuple[str, float]]:
        """From the first run to the second, in seconds of I/O: what each mechanism costs more there, and what an ideal device does."""
        worths = [{each.mechanism.title: int(each.removed.sum()) for each in why.runs.worths} for why in (self.one, self.other)]
        titles = dict.fromkeys([*worths[0], *worths[1]])
        steps = {title: worths[1].get(title, 0) - worths[0].get(title, 0) for title in titles}
        ideal = int(self.other.runs.ideal.sum() - self.one.runs.ideal.sum())
        changes = [("ideal device", ideal), *((title, time) for title, time in steps.items() if time)]
        changes.sort(key=lambda step: -abs(step[1]))
        ends = [(self.one.device, int(self.one.runs.base.sum())), (self.other.device, int(self.other.runs.base.sum()))]
        return [(title, time / SECONDS) for title, time in (ends[0], *changes, ends[1])]

    @property
    def sentence(self) -> str:
        """Which is faster, and by what most."""
        (one, first), *changes, (other, last) = self.steps()
        difference = last - first
        if not difference:
            return f"{one} and {other} take equally long."
        names = (other, one) if difference < 0 else (one, other)
        most, seconds = max(changes, key=lambda step: step[1] / difference)
        what = "its own times, without any wait" if most == "ideal device" else most
        ratio = max(first, last) / min(first, last)
        return f"{names[0]} is {ratio:.3g} times as fast as {names[1]}: {what} ({seconds / difference:.0%} of the difference)."
