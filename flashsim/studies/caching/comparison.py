"""Policies beside each other: by how much hit ratios differ, with confidence, who is best at which size, and what the optimum would do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any

from flashsim.core.errors import InvalidParameterError
from flashsim.studies.caching.confidence import CONFIDENCE, FEWEST, Interval, interval
from flashsim.studies.caching.running import Run
from flashsim.studies.caching.session import Simulated

#: The bound that every comparison has beside it.
OPTIMUM = "opt"
METHOD = (
    f"Differences are means over windows of the trace, paired, with {CONFIDENCE:.0%} intervals by Student's t; windows are merged until "
    f"von Neumann's ratio finds no serial correlation, down to {FEWEST}. They assume that the trace goes on as it is; each holds by itself."
)


@dataclass(frozen=True)
class Pair:
    """Two policies at one size: how much more often the first hits."""

    first: Run
    second: Run
    difference: Interval

    def row(self) -> dict[str, Any]:
        """JSON-ready; the difference of hit ratios as a share."""
        difference, size = self.difference, self.first.size
        names = (self.first.policy, self.second.policy)
        return {
            "size": size.label,
            "pages": size.frames,
            "policy": names[0],
            "against": names[1],
            "difference": difference.mean,
            "half_width": difference.half,
            "windows": difference.windows,
            "independent": difference.independent,
            "better": {1: names[0], -1: names[1], 0: None}[difference.sign],
        }


class Comparison:
    """What policies did, beside each other.

    Parameters
    ----------
    done
        With windows, and with the optimum.
    """

    def __init__(self, done: Simulated) -> None:
        self.done = done
        if len(done.runs[0].windows) < FEWEST:
            told = f"{done.runs[0].counts.references:,} references"
            raise InvalidParameterError("trace", told, f"a comparison needs at least {FEWEST} after the warm-up")
        self.pairs = [
            Pair(first, second, interval(first.windows - second.windows, first.hit_ratio - second.hit_ratio))
            for _, runs in self.by_size()
            for first, second in combinations(runs, 2)
        ]

    def by_size(self) -> Iterator[tuple[int, list[Run]]]:
        for frames, runs in groupby(self.done.runs, lambda each: each.size.frames):
            yield frames, list(runs)

    def pair(self, frames: int, first: str, second: str) -> Interval:
        """By how much more often one policy hits than another at a size."""
        for each in self.pairs:
            if each.first.size.frames == frames and {each.first.policy, each.second.policy} == {first, second}:
                difference = each.difference
                return (
                    difference
                    if each.first.policy == first
                    else Interval(-difference.mean, difference.half, difference.windows, difference.independent)
                )
        return Interval(0.0, 0.0, 0, True)

    def best(self) -> list[dict[str, Any]]:
        """A row a size, JSON-ready: the best policy that knows no future, those not told apart from it, its hit ratio and the optimum's."""
        rows = []
        for frames, runs in self.by_size():
            mine = [each for each in runs if not each.future]
            best = max(mine or runs, key=lambda each: each.hit_ratio)
            alike = [each.policy for each in mine if each is not best and not self.pair(frames, best.policy, each.policy).sign]
            bound = next((each.hit_ratio for each in runs if each.policy == OPTIMUM), None)
            row: dict[str, Any] = {"size": best.size.label, "pages": frames, "best": best.policy, "alike": alike}
            rows.append(row | {"hit_ratio": best.hit_ratio, "optimum": bound})
        return rows

    def as_dict(self) -> dict[str, Any]:
        told = self.done.as_dict()
        return told | {"confidence": CONFIDENCE, "method": METHOD, "pairs": [each.row() for each in self.pairs], "best": self.best()}


def with_optimum(names: Sequence[str]) -> list[str]:
    return [*(each for each in names if each != OPTIMUM), OPTIMUM]
