"""What replacement policies did, beside each other and over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.provenance import provenance
from flashsim.operations.fields import count, several, text
from flashsim.operations.operation import in_words_of_python
from flashsim.operations.outcome import PICTURE, REPORT, TABLE, Outcome
from flashsim.studies.caching import comparison, curves, report, stepping
from flashsim.studies.caching.running import policy_names
from flashsim.studies.caching.session import Asked, ReferenceSource, Simulated, simulate
from flashsim.studies.caching.sizes import parse_sample
from flashsim.studies.caching.working_sets import WorkingSetCurve
from flashsim.studies.presentation.terminal import Explanation, Part
from traces.file.page_trace import keep as keep_references


class CacheOutcome(Outcome):
    """What policies did in pools of several sizes.

    Parameters
    ----------
    source
        The references, to be gone through again.
    asked
        What policies were asked.
    """

    FILES = (TABLE, PICTURE, REPORT)

    def __init__(self, done: Simulated, source: ReferenceSource, asked: Asked) -> None:
        super().__init__(done)
        self.source, self.asked = source, asked

    def summary(self) -> pd.DataFrame:
        """A row a size and policy: hits, misses by kind, write-backs, bytes, and processor microseconds a reference (``reference_us``)."""
        return super().summary()

    def printed(self) -> Iterator[Part]:
        """What every policy did, and what a device did for it."""
        yield from (f"{self.title}\n", report.runs_table(self.done), "", Explanation(report.EXPLAINED))
        if len({run.size for run in self.done.runs}) > 1:
            yield from ("", report.ratios_table(self.done))
        if any(run.served for run in self.done.runs):
            yield from ("", report.served_table(self.done), "", Explanation(report.SERVED))

    def _write_report(self, folder: Path) -> None:
        report.write_report(folder, done=self.done, origin=self.provenance)

    def keep(self, path: str | Path, to: str = "parquet") -> int:
        """Write the references into a file, as a trace of pages; return how many they are."""
        return keep_references(self.source.batches(), path, to)

    @in_words_of_python()
    def compare(self, *policies: str) -> CacheComparison:
        """Policies at the same sizes beside each other and the optimum, with confidence over windows of the trace."""
        asked = replace(self.asked, policies=self._names(policies))
        return compared(self.source, asked, provenance({"trace": self.source.name} | asked.as_dict()))

    @in_words_of_python()
    def steps(self, *policies: str, references: int = stepping.MOST_DRAWN) -> CacheSteps:
        """The first references one by one, at the smallest of the sizes, by the same policies or others, in their plain forms."""
        names = self._names(policies)
        frames = min(each.size.frames for each in self.done.runs)
        most = min(count(references, "references"), self.asked.limit or self.done.references)
        steps = stepping.steps(self.source, names, frames, most, self.asked.seed)
        asked = self.asked.as_dict() | {"policies": names, "frames": frames, "references": most}
        return CacheSteps(steps, f"{self.done.trace}, reference by reference in {frames:,} frames", provenance(asked))

    @in_words_of_python()
    def curve(self, *policies: str, size: Any = "1%..100%", sample: float | str | None = None) -> CurveOutcome:
        """Miss ratios over the size, of LRU without any other policy; working sets and reuse distances.

        Parameters
        ----------
        size
            See `cache`; what takes one pass is known at all sizes besides.
        sample
            A share of the pages to look at, or ``"8000pages"`` at most; as in the simulation by default.
        """
        wanted = self.asked.sample if sample is None else sample
        chosen = [text(each, "policy") for each in policies or ["lru"]]
        asked = replace(self.asked, policies=chosen, sizes=[size_text(each) for each in several(size, "size")])
        return curve_of(self.source, asked, wanted, provenance({"trace": self.source.name} | asked.as_dict() | {"sample": wanted}))

    def _names(self, policies: Sequence[str]) -> list[str]:
        return policy_names([text(each, "policy") for each in policies] or list(self.asked.policies))

    def _draw(self) -> Figure:
        return report.picture(self.done.rows())


class CacheSteps(Outcome):
    """What references did, one by one: `done` is a step a policy and reference."""

    def summary(self) -> pd.DataFrame:
        """A row a policy and reference: hit, first miss or miss again, who left, and the pages in the frames (``*``: dirty)."""
        return pd.DataFrame([step.row() for step in self.done])

    def _draw(self) -> Figure:
        return stepping.picture(self.done)


class CurveOutcome(Outcome):
    """Miss ratios over the size, and working sets."""

    FILES = (TABLE, PICTURE, REPORT)

    def __init__(self, done: curves.Curves, sets: WorkingSetCurve, provenance: dict[str, Any] | None = None) -> None:
        super().__init__(done, curves.title(done), provenance)
        self.sets = sets

    def summary(self) -> pd.DataFrame:
        """A row a policy and size: its miss ratio, and half the width of its 95 % interval (``error``; 0 if all pages were looked at)."""
        return super().summary()

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        return curves.as_dict(self.done, self.sets)

    def printed(self) -> Iterator[Part]:
        """The curves and working sets."""
        yield from (f"{self.title}\n", curves.curves_table(self.done), "", curves.locality_table(self.done, self.sets), "")
        yield Explanation(curves.explained(self.done))

    def _write_report(self, folder: Path) -> None:
        curves.write_report(folder, told=self.done, sets=self.sets, origin=self.provenance)

    def all_sizes(self, policy: str = "lru") -> pd.DataFrame:
        """A row a size at which a policy misses less than with one page less, of those whose curve took one pass."""
        if policy not in self.done.one_pass:
            raise UnknownNameError("curve of all sizes", policy, self.done.one_pass)
        return curves.steps_frame(self.done.curves[policy])

    def working_sets(self) -> pd.DataFrame:
        """A row a window of references: the pages in it on average, and the share of references to pages not in the one before."""
        return curves.sets_frame(self.sets)

    def _draw(self) -> Figure:
        return curves.picture(self.done, self.sets)


class CacheComparison(Outcome):
    """Policies beside each other, with confidence."""

    FILES = (TABLE, PICTURE, REPORT)

    def summary(self) -> pd.DataFrame:
        """A row a size and pair: the difference of hit ratios, half the width of its interval, and which is better, if that is shown."""
        return pd.DataFrame([each.row() for each in self.done.pairs])

    def printed(self) -> Iterator[Part]:
        """Every pair, the best of each size, and how confidence was come to."""
        yield from (f"{self.title}\n", report.pairs_table(self.done), "", report.best_table(self.done), "", Explanation(comparison.METHOD))

    def _write_report(self, folder: Path) -> None:
        report.write_report(folder, done=self.done.done, told=self.done, origin=self.provenance)

    def best(self) -> pd.DataFrame:
        """A row a size: the best policy, those not told apart from it, its hit ratio and the optimum's."""
        return pd.DataFrame(self.done.best())

    def runs(self) -> pd.DataFrame:
        """A row a size and policy, as `CacheOutcome.summary`."""
        return pd.DataFrame(self.done.done.rows())

    def _draw(self) -> Figure:
        return report.differences(self.done)


def compared(source: ReferenceSource, asked: Asked, provenance: dict[str, Any] | None = None) -> CacheComparison:
    asked = replace(asked, policies=comparison.with_optimum(at_least_two(asked.policies)), windows=comparison.WINDOWS)
    with activity("simulating policies") as progress:
        done = simulate(source, asked, progress)
    return CacheComparison(comparison.Comparison(done), done.title(), provenance)


def at_least_two(policies: Sequence[str]) -> list[str]:
    """The names of policies that are compared."""
    names = policy_names(policies)
    if len(names) < 2:
        raise InvalidParameterError("policy", ", ".join(names) or "none", "a comparison needs at least two")
    return names


def curve_of(source: ReferenceSource, asked: Asked, sample: Any, provenance: dict[str, Any] | None = None) -> CurveOutcome:
    share, most = parse_sample(sample)
    with activity("making curves") as progress:
        made = curves.curves(source, asked, share, most, progress)
        sets = curves.working_sets(source, made.rate, asked.limit)
    return CurveOutcome(made, sets, provenance)


def size_text(value: Any, parameter: str = "size") -> str:
    return f"{value.__index__()}pages" if hasattr(value, "__index__") and not isinstance(value, bool) else text(value, parameter)
