"""Policies beside each other: by how much hit ratios differ, with confidence, who is best at which size, and what the optimum would do.

The two policies of a pair see the same windows, so that what differs from window to window for both cancels.  Neighbouring windows are
merged, two by two, until von Neumann's ratio finds no serial correlation of the differences any more (Fishman: Grouping observations in
digital simulation, Management Science 24(5), 1978), and no fewer than `FEWEST` are left; then Student's t gives the interval.  It assumes
that the trace goes on as it is (that windows are draws from one stationary process), and about normal means of windows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import ndtri, stdtrit

from flashsim.apps.caching.running import PolicyRun
from flashsim.apps.caching.session import CacheRuns
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MICROSECONDS, SECONDS, format_size
from flashsim.experiments.presentation.plots import LINES, lines, panels
from flashsim.experiments.presentation.tables import Entry, Table, percent, same

#: Windows that a trace is cut into, and the fewest that they are merged into.
WINDOWS, FEWEST = 512, 16
#: The confidence of an interval, and of the test for correlation.
CONFIDENCE = 0.95
#: The bound that every comparison has beside it.
OPTIMUM = "opt"
METHOD = (
    f"Differences are means over windows of the trace, paired, with {CONFIDENCE:.0%} intervals by Student's t; windows are merged until "
    f"von Neumann's ratio finds no serial correlation, down to {FEWEST}. They assume that the trace goes on as it is; each holds by itself."
)


@dataclass(frozen=True)
class Interval:
    """A mean with the half width of its interval, and the number of means that it rests on.

    It is `independent` if the differences pass the test; otherwise the interval is too narrow.
    """

    mean: float
    half: float
    windows: int
    independent: bool

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies above or below 0; 0 where it does not tell."""
        return 0 if abs(self.mean) <= self.half else 1 if self.mean > 0 else -1


def interval(differences: npt.NDArray[np.float64], mean: float | None = None) -> Interval:
    """The mean of differences, one a window, shape (n,), n at least 2; `mean` is that of all references, where windows differ in length.

    Examples
    --------
    >>> result = interval(np.array([0.5, 0.25] * 32))
    >>> result.mean, round(result.half, 3), result.windows, result.independent, result.sign
    (0.375, 0.031, 64, True, 1)
    """
    means = differences
    while not (independent := _independent(means)) and len(means) >= 2 * FEWEST:
        means = means[: len(means) // 2 * 2].reshape(-1, 2).mean(axis=1)
    half = float(stdtrit(len(means) - 1, (1 + CONFIDENCE) / 2)) * float(means.std(ddof=1)) / len(means) ** 0.5
    return Interval(float(differences.mean()) if mean is None else mean, half, len(means), independent)


def _independent(means: npt.NDArray[np.float64]) -> bool:
    count, squares = len(means), float(((means - means.mean()) ** 2).sum())
    if squares == 0 or count < 3:
        return True
    correlation = 1 - float((np.diff(means) ** 2).sum()) / (2 * squares)
    return correlation * ((count**2 - 1) / (count - 2)) ** 0.5 <= float(ndtri(CONFIDENCE))


@dataclass(frozen=True)
class Pair:
    """Two policies at one size: how much more often the first hits."""

    first: PolicyRun
    second: PolicyRun
    difference: Interval

    def row(self) -> dict[str, Any]:
        """JSON-ready; the difference of hit ratios as a share."""
        difference, size, names = self.difference, self.first.size, (self.first.policy, self.second.policy)
        row = {"size": size.label, "pages": size.frames, "policy": names[0], "against": names[1], "difference": difference.mean}
        row |= {"half_width": difference.half, "windows": difference.windows, "independent": difference.independent}
        return row | {"better": {1: names[0], -1: names[1], 0: None}[difference.sign]}


class PolicyComparison:
    """Runs of policies at the same sizes, with windows and the optimum among them, compared pair by pair."""

    def __init__(self, results: CacheRuns) -> None:
        self.results = results
        if len(results.runs[0].windows) < FEWEST:
            references = f"{results.runs[0].counts.references:,} references"
            raise InvalidParameterError("trace", references, f"a comparison needs at least {FEWEST} after the warm-up")
        self.pairs = [
            Pair(first, second, interval(first.windows - second.windows, first.hit_ratio - second.hit_ratio))
            for _, runs in self.by_size()
            for first, second in combinations(runs, 2)
        ]

    def by_size(self) -> Iterator[tuple[int, list[PolicyRun]]]:
        for frames, runs in groupby(self.results.runs, lambda each: each.size.frames):
            yield frames, list(runs)

    def pair(self, frames: int, first: str, second: str) -> Interval:
        for each in self.pairs:
            if each.first.size.frames == frames and {each.first.policy, each.second.policy} == {first, second}:
                difference = each.difference
                return difference if each.first.policy == first else replace(difference, mean=-difference.mean)
        return Interval(0.0, 0.0, 0, True)

    def best(self) -> list[dict[str, Any]]:
        """A row a size, JSON-ready: the best policy without knowledge of the future, its equals, its hit ratio and the optimum's."""
        rows = []
        for frames, runs in self.by_size():
            mine = [each for each in runs if not each.future]
            best = max(mine or runs, key=lambda each: each.hit_ratio)
            alike = [each.policy for each in mine if each is not best and not self.pair(frames, best.policy, each.policy).sign]
            bound = next((each.hit_ratio for each in runs if each.policy == OPTIMUM), None)
            row = {"size": best.size.label, "pages": frames, "best": best.policy, "alike": alike}
            rows.append(row | {"hit_ratio": best.hit_ratio, "optimum": bound})
        return rows

    def as_dict(self) -> dict[str, Any]:
        pairs = [each.row() for each in self.pairs]
        return self.results.as_dict() | {"confidence": CONFIDENCE, "method": METHOD, "pairs": pairs, "best": self.best()}


EXPLAINED = (
    "First: misses of pages never referenced before; again: of pages that had left. A miss reads its page, a dirty page that leaves is "
    "written; what is dirty at the end is not counted. CPU: processor time per reference."
)
SERVED = (
    "On the device each miss is read and each write-back written before the next reference, or so many at once as its depth is; pages lie "
    "in the order of their ids, without gaps. Flush: what is dirty at the end."
)


def runs_table(results: CacheRuns) -> Table:
    """A row a size and policy; what writes would come to only where some are known."""
    columns = same("size", "pages", "policy") | {"hit %": ("hit_ratio", percent)} | same("hits", "misses", "first", "again")
    columns |= {"of reads": "read_misses", "of writes": "write_misses", "evictions": "evictions", "write-backs": "write_backs"}
    columns |= {"read": ("bytes_read", format_size), "written": ("bytes_written", format_size), "CPU (µs)": "reference_us"}
    unknown = () if results.writes else ("of reads", "of writes", "write-backs", "written")
    return Table.of(results.rows(), {head: column for head, column in columns.items() if head not in unknown}, digits=3)


def best_in_words(results: CacheRuns) -> str:
    """Hit ratios of all policies at the largest size, best first, in a sentence."""
    most = max(run.size.frames for run in results.runs)
    runs = sorted((run for run in results.runs if run.size.frames == most), key=lambda run: -run.hit_ratio)
    ratios = ", ".join(f"{run.policy} {100 * run.hit_ratio:.1f} %" for run in runs)
    return f"Hits with {most:,} pages ({runs[0].size.label}): {ratios}."


def ratios_table(results: CacheRuns) -> Table:
    """A row a policy, a column a size: hit ratios."""
    sizes = list(dict.fromkeys(each.size.label for each in results.runs))
    rows: dict[str, list[Entry]] = {}
    for each in results.runs:
        rows.setdefault(each.policy, [each.policy]).append(100 * each.hit_ratio)
    return Table(["hit % at", *sizes], list(rows.values()))


def served_table(results: CacheRuns) -> Table:
    """A row a size and policy: what a device took."""
    rows = [row | {"each": row["total_s"] * SECONDS / MICROSECONDS / row["references"]} for row in results.rows() if "device" in row]
    columns = same("size", "policy") | {"pages read": "pages_read", "written": "pages_written", "I/O s": "io_s", "CPU s": "cpu_s"}
    columns |= {"total s": "total_s", "us a reference": "each", "flushed": "pages_flushed", "flush s": "flush_s"}
    cpu = f", CPU {rows[0]['cpu']}" if rows and rows[0]["cpu"] else ""
    return Table.of(rows, columns, title=f"On {rows[0]['device'] if rows else 'no device'}{cpu}", digits=3)


def pairs_table(comparison: PolicyComparison) -> Table:
    """A row a size and policy: its hit ratio, and by how much it hits more often than the first."""
    rows: list[list[Entry]] = []
    for frames, runs in comparison.by_size():
        first, bound = runs[0], next((each.hit_ratio for each in runs if each.policy == OPTIMUM), 0.0)
        for each in runs:
            row: list[Entry] = [each.size.label, frames, each.policy, 100 * each.hit_ratio]
            row.append(100 * each.hit_ratio / bound if bound else None)
            if each is first:
                rows.append([*row, None, None, None])
                continue
            apart = comparison.pair(frames, each.policy, first.policy)
            verdict = {1: "better", -1: "worse", 0: "not told apart"}[apart.sign] + ("" if apart.independent else ", windows depend")
            rows.append([*row, f"{100 * apart.mean:+.3f} ± {100 * apart.half:.3f}", apart.windows, verdict])
    header = ["size", "pages", "policy", "hit %", "% of opt", f"points more than {comparison.results.runs[0].policy}", "windows", "is"]
    return Table(header, rows, digits=3)


def best_table(comparison: PolicyComparison) -> Table:
    columns = same("size", "pages", "best") | {"not told apart from it": ("alike", lambda names: ", ".join(names) or None)}
    return Table.of(comparison.best(), columns | {"hit %": ("hit_ratio", percent), "opt hit %": ("optimum", percent)}, digits=3)


def picture(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Miss ratios over the size, a line a policy; of one size bars."""
    frame = pd.DataFrame(rows)
    names, height = list(dict.fromkeys(frame["policy"])), 3.4 + 0.12 * frame["policy"].nunique()
    if frame["pages"].nunique() > 1:
        series = {str(name): (of["pages"], 1 - of["hit_ratio"]) for name, of in frame.groupby("policy", sort=False)}
        return lines(series, height, xscale="log", xlabel="pool size (pages)", ylabel="miss ratio", ylim=(0, None))
    with panels(height) as (figure, axes):
        axes.barh(names, 1 - frame["hit_ratio"], color=LINES[0][0])
        axes.invert_yaxis()
        axes.set(xlabel=f"miss ratio in a pool of {frame['pages'].iloc[0]:,} pages")
    return figure
