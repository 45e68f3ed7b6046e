"""Curves of misses by size, of all references or of a sample of pages, and their report: LRU's of all sizes, in one pass.

Any other policy runs in miniature over a sample of the pages, in a pool that is as much smaller (Waldspurger, Saemundsson, Ahmad,
Park: Cache modeling and optimization using miniature simulations, USENIX ATC 2017).  By how much parts of the sample, each with a pool of
its own, disagree tells the error.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from algorithms.replacement.base import replacement_policy
from flashsim.apps.caching.numbered import NumberedTrace, first_references
from flashsim.apps.caching.running import CacheStudy, PoolSize, compilation, parse_sizes, policy_names, pool_sizes, run
from flashsim.apps.caching.session import NamedReferences
from flashsim.apps.caching.sources import ArrayTrace
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.request import Integers
from flashsim.core.units import format_size
from flashsim.experiments.presentation.tables import Entry, Table
from traces.summary.miss_curve import CONFIDENCE, LEAST_PAGES, PARTS, HitSteps, LruCurve, MissCurve
from traces.summary.reuse import parts_of, sampled_rows

LRU = "lru"


@dataclass(frozen=True)
class Curves:
    """Misses of policies by size: LRU's curve has all sizes, others only `sizes`; `rate` is the share of pages that were looked at."""

    trace: str
    references: int
    pages: int
    page_size: int
    rate: float
    sizes: Sequence[PoolSize]
    curves: dict[str, MissCurve]

    def title(self) -> str:
        return f"{self.trace}: {self.references:,} references to {self.pages:,} pages of {format_size(self.page_size)}"

    def rows(self) -> list[dict[str, Any]]:
        """A row a policy and size, JSON-ready; ``error`` is half the width of the ratio's 95 % confidence interval."""
        rows = []
        for name, curve in self.curves.items():
            misses, errors = curve.misses(self.frames).tolist(), curve.error(self.frames).tolist()
            for size, count, error in zip(self.sizes, misses, errors, strict=True):
                row = {"policy": name, "size": size.label, "pages": size.frames, "share": size.frames / self.pages}
                rows.append(row | {"misses": count, "miss_ratio": count / self.references, "error": error})
        return rows

    @property
    def frames(self) -> Integers:
        """Pages of the pools of the sizes."""
        return np.array([size.frames for size in self.sizes])

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; ``reuse`` has percentiles of LRU's reuse distances, in pages, over the references that go to a page again."""
        document: dict[str, Any] = {name: value for name, value in vars(self).items() if name not in ("sizes", "curves")}
        document |= {"confidence": CONFIDENCE, "curves": self.rows(), "all_sizes": {}}
        if (lru := self.curves.get(LRU)) is not None:
            document["all_sizes"] = {LRU: steps_frame(lru).to_dict("list")}
            document["reuse"] = {f"p{share}": max(0, lru.quantile(share / 100) - 1) for share in (50, 90, 99)}
        return document


def curves(
    source: NamedReferences, study: CacheStudy, sample: float = 1.0, least_pages: int = LEAST_PAGES, progress: Progress | None = None
) -> Curves:
    """Misses of policies by size, from the first reference on.

    LRU takes one pass over the references.  All others are simulated at each size, over all references or in miniature.  `sample` is the
    share of pages to look at, but of a trace with fewer pages than `least_pages` all are, and of another at least half as many as these.
    """
    if not 0 <= sample <= 1 or sample == least_pages == 0:
        raise InvalidParameterError("sample", f"{sample:.4g}", "a share of pages above 0 and up to 1 is needed")
    amounts, names = parse_sizes(study.sizes), policy_names(study.policies)
    others = [name for name in names if name != LRU]
    compiling = compilation(others) if others else None
    with ExitStack() as closing:
        if compiling is not None:
            closing.callback(compiling.stop)
        curve = _lru(source, study, sample, least_pages, progress)
        pools = pool_sizes(amounts, curve.pages, study.page_size)
        if compiling is not None:
            compiling.wait("policies")
    by_name = {LRU: curve}
    if policies := [replacement_policy(name) for name in others]:
        if (least := pools[0]).frames * curve.rate < 1:
            bound = f"a sample of {curve.rate:.2%} of the pages needs pools of {1 / curve.rate:.0f}"
            raise InvalidParameterError("size", least.label, bound)
        steps, frames, whole = [], np.array([each.frames for each in pools]), replace(study, sample=1.0, windows=1)
        for trace, scale in _parts(source, study, curve.rate):
            with trace:
                small = [PoolSize(each.label, max(1, round(each.frames / scale))) for each in pools]
                runs = run(trace, policies, small, whole, progress=progress)
            misses = np.array([each.counts.misses for each in runs]).reshape(len(pools), -1)
            steps.append([HitSteps(frames, curve.references - scale * column) for column in misses.T])
        for name, (all_steps, *of_parts) in zip(others, zip(*steps, strict=True), strict=True):
            by_name[name] = MissCurve(curve.references, curve.pages, curve.rate, all_steps, of_parts)
    in_order = {name: by_name[name] for name in names}
    return Curves(source.name, curve.references, curve.pages, study.page_size, curve.rate, pools, in_order)


def _lru(source: NamedReferences, study: CacheStudy, sample: float, least_pages: int, progress: Progress | None) -> MissCurve:
    lru = LruCurve(sample, least_pages)
    for batch in first_references(source.batches(), study.limit):
        lru.add(batch.pages)
        if progress is not None:
            progress(lru.references, study.limit or 0, "" if study.limit else f"{lru.references:,} references")
    if not lru.references:
        raise InvalidParameterError("trace", source.name, "it references no page")
    curve = lru.curve()
    if not curve.pages:
        raise InvalidParameterError("sample", f"{sample:.4g}", f"none of the pages of {source.name} is in it")
    return curve


def _parts(source: NamedReferences, study: CacheStudy, rate: float) -> Iterator[tuple[NumberedTrace, float]]:
    """All references; or those to a sample of pages, and then to parts of it; and how many pages each of theirs stands for."""
    if rate == 1:
        yield NumberedTrace(source.name, source.batches(), study.limit), 1
        return
    batches = []
    for batch in first_references(source.batches(), study.limit):
        rows = sampled_rows(batch.pages, rate)
        batches.append((batch.pages[rows], np.zeros(len(rows), np.bool_) if batch.writes is None else batch.writes[rows]))
    pages, writes = (np.concatenate(each) for each in zip(*batches, strict=True))
    yield NumberedTrace(source.name, ArrayTrace("", pages, writes).batches()), 1 / rate
    part = parts_of(pages, PARTS)
    for number in np.unique(part):
        rows = part == number
        yield NumberedTrace(source.name, ArrayTrace("", pages[rows], writes[rows]).batches()), PARTS / rate


def explanation(result: Curves) -> str:
    others = ", ".join(name for name in result.curves if name != LRU)
    how = f"In one pass, of all sizes: {LRU if LRU in result.curves else 'none'}." + f" Simulated at each size: {others}." * bool(others)
    if result.rate == 1:
        return f"{how} All pages were looked at: exact."
    return f"{how} Estimated from {result.rate:.3g} of the pages, ± half the width of {CONFIDENCE:.0%} intervals."


def curves_table(result: Curves) -> Table:
    """A row a size, a column a policy: its miss ratio, with what it may be off."""
    columns: list[list[Entry]] = [[size.label for size in result.sizes], [size.frames for size in result.sizes]]
    for curve in result.curves.values():
        ratios, errors = 100 * curve.ratio(result.frames), 100 * curve.error(result.frames)
        texts = (f"{ratio:.3f} ± {error:.3f}" for ratio, error in zip(ratios, errors, strict=True))
        columns.append(ratios.tolist() if result.rate == 1 else [*texts])
    return Table(["size", "pages", *(f"{name} miss %" for name in result.curves)], zip(*columns, strict=True), digits=3)


def reuse_table(result: Curves) -> Table:
    """Percentiles of reuse distances where LRU's curve tells them."""
    reuse = result.as_dict().get("reuse", {})
    rows = [(f"{share[1:]} % of those referenced again", pages) for share, pages in reuse.items()]
    return Table(["reuse distance", "pages"], rows, digits=1)


def steps_frame(curve: MissCurve) -> pd.DataFrame:
    """A row a size at which there are fewer misses: its miss ratio and what that may be off."""
    return pd.DataFrame({"pages": curve.sizes, "miss_ratio": curve.ratio(curve.sizes), "error": curve.error(curve.sizes)})
