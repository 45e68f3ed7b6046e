"""Outcomes of replacement policies: beside each other, reference by reference, and over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.caching import comparison, curves, session
from flashsim.apps.caching.running import CacheStudy, parse_sample, policy_names
from flashsim.apps.caching.session import CacheRuns, NamedReferences, execute
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.provenance import provenance
from flashsim.experiments.presentation.plots import MARKED, legend, panels, stroke
from flashsim.experiments.presentation.report import Report, Section
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.operations.fields import count, several, text
from flashsim.operations.operation import in_words_of_python
from flashsim.operations.outcome import PICTURE, REPORT, TABLE, Outcome
from traces.file.page_trace import keep as keep_references

#: Points of a line that is known at all sizes.
_POINTS = 1000


class CacheOutcome(Outcome):
    """Runs of policies in pools of several sizes: references that can be read again, and the parameters of their study.

    `summary` has a row a size and policy: hits, misses by kind, write-backs, bytes, and processor microseconds a reference
    (``reference_us``).
    """

    FILES = (TABLE, PICTURE, REPORT)

    def __init__(self, results: CacheRuns, source: NamedReferences, study: CacheStudy) -> None:
        super().__init__(results)
        self.source, self.study = source, study

    def printout(self) -> Iterator[Part]:
        yield from (self.title, Explanation(comparison.best_in_words(self.result)), "")
        yield from (comparison.runs_table(self.result), "", Explanation(comparison.EXPLAINED))
        if len({run.size for run in self.result.runs}) > 1:
            yield from ("", comparison.ratios_table(self.result))
        if any(run.cost for run in self.result.runs):
            yield from ("", comparison.served_table(self.result), "", Explanation(comparison.SERVED))
        steps = ("flashsim cache curve draws misses over the size", "flashsim cache compare says which policy is better, with confidence")
        yield from ("", next_steps(*steps))

    def _report(self) -> Report:
        return _report(self.result, self.provenance, {}, [])

    def keep(self, path: str | Path, to: str = "parquet") -> int:
        """Write the references into a file, as a trace of pages; return how many they are."""
        return keep_references(self.source.batches(), path, to)

    @in_words_of_python()
    def compare(self, *policies: str) -> CacheComparison:
        """Policies at the same sizes beside each other and the optimum, with confidence over windows of the trace."""
        study = replace(self.study, policies=self._names(policies))
        return comparison_of(self.source, study, provenance({"trace": self.source.name} | study.as_dict()))

    @in_words_of_python()
    def steps(self, *policies: str, references: int = session.MOST_DRAWN) -> CacheSteps:
        """The first references one by one, at the smallest of the sizes, by the same policies or others, in their plain forms."""
        names = self._names(policies)
        frames = min(each.size.frames for each in self.result.runs)
        most = min(count(references, "references"), self.study.limit or self.result.references)
        steps = session.steps(self.source, names, frames, most, self.study.seed)
        parameters = self.study.as_dict() | {"policies": names, "frames": frames, "references": most}
        return CacheSteps(steps, f"{self.result.trace}, reference by reference in {frames:,} frames", provenance(parameters))

    @in_words_of_python()
    def curve(self, *policies: str, size: Any = "1%..100%", sample: float | str | None = None) -> CurveOutcome:
        """Miss ratios over the size, as `cache` takes it, of LRU without any other policy; reuse distances.

        LRU's curve is known at all sizes besides.  `sample` is a share of the pages to look at, or ``"8000pages"`` at most; as in the
        simulation by default.
        """
        share = self.study.sample if sample is None else sample
        names = [text(each, "policy") for each in policies or ["lru"]]
        study = replace(self.study, policies=names, sizes=[size_text(each) for each in several(size, "size")])
        return curve_of(self.source, study, share, provenance({"trace": self.source.name} | study.as_dict() | {"sample": share}))

    def _names(self, policies: Sequence[str]) -> list[str]:
        return policy_names([text(each, "policy") for each in policies] or list(self.study.policies))

    def _draw(self) -> Figure:
        return comparison.picture(self.result.rows())


class CacheSteps(Outcome):
    """Effects of references, one by one: `result` has a step a policy and reference."""

    def summary(self) -> pd.DataFrame:
        """A row a policy and reference: hit, first miss or miss again, who left, and the pages in the frames (``*``: dirty)."""
        return pd.DataFrame([step.row() for step in self.result])

    def _draw(self) -> Figure:
        return session.draw_steps(self.result)


class CurveOutcome(Outcome):
    """Miss ratios over the size.

    `summary` has a row a policy and size: its miss ratio, and half the width of its 95 % interval (``error``; 0 if all pages were looked
    at).
    """

    FILES = (TABLE, PICTURE, REPORT)

    def printout(self) -> Iterator[Part]:
        yield from (f"{self.title}\n", curves.curves_table(self.result), "")
        if len(reuse := curves.reuse_table(self.result)):
            yield from (reuse, "")
        yield Explanation(curves.explanation(self.result))
        yield from (
            "",
            next_steps("--plot FILE.svg draws the curves", "flashsim cache compare says which policy is better, with confidence"),
        )

    def _report(self) -> Report:
        result, reuse = self.result, curves.reuse_table(self.result)
        sections = [
            Section("Pictures", pictures={"curves": self._draw()}),
            Section("Miss ratios", curves.explanation(result), [curves.curves_table(result)]),
            Section("Reuse distances", tables=[reuse] if len(reuse) else []),
        ]
        figures = [("references", f"{result.references:,}"), ("pages", f"{result.pages:,}")]
        return Report(result.trace, result.title(), figures, sections, self.provenance, {"curves": self.summary()})

    def all_sizes(self, policy: str = "lru") -> pd.DataFrame:
        """A row a size at which LRU misses less than with one page less."""
        if policy not in (known := {curves.LRU} & {*self.result.curves}):
            raise UnknownNameError("curve of all sizes", policy, known)
        return curves.steps_frame(self.result.curves[policy])

    def _draw(self) -> Figure:
        with panels(3.6) as (figure, axes):
            for number, (name, curve) in enumerate(self.result.curves.items()):
                look, one_pass = stroke(number), name == curves.LRU
                every = np.unique(np.geomspace(1, max(2, self.result.pages), _POINTS).astype(np.int64))
                frames = every if one_pass else self.result.frames
                ratios, errors = curve.ratio(frames), curve.error(frames)
                axes.plot(frames, ratios, markersize=4, label=name, **look | ({"marker": ""} if one_pass else {}))
                axes.fill_between(frames, ratios - errors, ratios + errors, color=look["color"], alpha=0.2, linewidth=0)
            axes.set(xscale="log", xlabel="pool size (pages)", ylabel="miss ratio", ylim=(0, 1.02))
            legend(figure, axes)
        return figure


class CacheComparison(Outcome):
    """Policies beside each other, with confidence."""

    FILES = (TABLE, PICTURE, REPORT)

    def summary(self) -> pd.DataFrame:
        """A row a size and pair: the difference of hit ratios, half the width of its interval, and which is better, if that is shown."""
        return pd.DataFrame([each.row() for each in self.result.pairs])

    def printout(self) -> Iterator[Part]:
        tables = comparison.pairs_table(self.result), "", comparison.best_table(self.result)
        yield from (f"{self.title}\n", *tables, "", Explanation(comparison.METHOD))
        yield from ("", next_steps("--plot FILE.svg draws the differences", "flashsim cache curve draws misses over the size"))

    def _report(self) -> Report:
        tables = [comparison.best_table(self.result), comparison.pairs_table(self.result)]
        better = Section("Who is better", comparison.METHOD, tables)
        return _report(self.result.results, self.provenance, {"differences": self._draw()}, [better])

    def best(self) -> pd.DataFrame:
        """A row a size: the best policy, those not distinguished from it, its hit ratio and the optimum's."""
        return pd.DataFrame(self.result.best())

    def runs(self) -> pd.DataFrame:
        """A row a size and policy, as `CacheOutcome.summary`."""
        return pd.DataFrame(self.result.results.rows())

    def _draw(self) -> Figure:
        """The difference of hit ratios from the first policy's, with intervals, over the size."""
        results, sizes = self.result.results, [frames for frames, _ in self.result.by_size()]
        first, *names = dict.fromkeys(each.policy for each in results.runs)
        with panels(3.4) as (figure, axes):
            for number, name in enumerate(name for name in names if name != comparison.OPTIMUM):
                apart = [self.result.pair(frames, name, first) for frames in sizes]
                points, halves = [100 * each.mean for each in apart], [100 * each.half for each in apart]
                axes.errorbar(sizes, points, halves, capsize=3, label=name, **stroke(number) | MARKED)
            axes.axhline(0, color="#555555", linewidth=0.8)
            axes.set(xscale="log", xlabel="pool size (pages)", ylabel=f"hit ratio over that of {first} (points)")
            legend(figure, axes)
        return figure


def _report(runs: CacheRuns, origin: dict[str, Any], pictures: dict[str, Figure], sections: list[Section]) -> Report:
    """The report of runs of policies, with further pictures and sections."""
    rows = runs.rows()
    drawn = Section("Pictures", pictures={"miss_ratios": comparison.picture(rows)} | pictures)
    policies = Section("Policies", comparison.EXPLAINED, [comparison.runs_table(runs)])
    figures = [("references", f"{runs.references:,}"), ("pages", f"{runs.pages:,}"), ("writes", f"{runs.writes:,}")]
    return Report(runs.trace, runs.title(), figures, [drawn, *sections, policies], origin, {"runs": pd.DataFrame(rows)})


def comparison_of(source: NamedReferences, study: CacheStudy, provenance: dict[str, Any] | None = None) -> CacheComparison:
    others = [each for each in at_least_two(study.policies) if each != comparison.OPTIMUM]
    study = replace(study, policies=[*others, comparison.OPTIMUM], windows=comparison.WINDOWS)
    with activity("simulating policies") as progress:
        results = execute(source, study, progress)
    return CacheComparison(comparison.PolicyComparison(results), results.title(), provenance)


def at_least_two(policies: Sequence[str]) -> list[str]:
    names = policy_names(policies)
    if len(names) < 2:
        raise InvalidParameterError("policy", ", ".join(names) or "none", "a comparison needs at least two")
    return names


def curve_of(source: NamedReferences, study: CacheStudy, sample: Any, provenance: dict[str, Any] | None = None) -> CurveOutcome:
    share, most = parse_sample(sample)
    with activity("making curves") as progress:
        return CurveOutcome(curves.curves(source, study, share, most, progress), None, provenance)


def size_text(value: Any, parameter: str = "size") -> str:
    return f"{value.__index__()}pages" if hasattr(value, "__index__") and not isinstance(value, bool) else text(value, parameter)
