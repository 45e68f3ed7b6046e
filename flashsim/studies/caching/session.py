"""A study of policies, from a trace to the counts of every policy at every size."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from algorithms.replacement.base import replacement_policy
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.transactions import ReferenceBatches
from flashsim.core.units import NEVER, format_size
from flashsim.studies.caching.numbered import NumberedTrace
from flashsim.studies.caching.on_device import Target
from flashsim.studies.caching.running import (
    MOST_FRAMES,
    CacheSetting,
    PolicyRun,
    compilation,
    parse_sizes,
    policy_names,
    pool_sizes,
    run,
    warm_up_references,
)
from traces.summary.reuse import sampled_rows


class NamedReferences(Protocol):
    """A source of references, whose name is the trace in words; each call of `batches` begins with the first reference."""

    @property
    def name(self) -> str: ...

    def batches(self) -> ReferenceBatches: ...


@dataclass(frozen=True)
class CacheStudy:
    """Parameters of a study of policies; what can be refused without a trace is refused at once.

    `policies`, `sizes` and `warm_up` are as `policy_names`, `parse_sizes` and `warm_up_references` of `flashsim.studies.caching.running`
    take them; `limit` is the number of references, from the first on; `windows` are those of the trace with a hit ratio each.
    """

    policies: Sequence[str]
    sizes: Sequence[str]
    page_size: int
    warm_up: str | int = 0
    limit: int | None = None
    seed: int = 0
    jobs: int = 1
    #: The share of pages to look at, above 0 and up to 1: simulations are miniatures as much smaller, and their counts are estimates.
    sample: float = 1.0
    windows: int = 1

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InvalidParameterError("limit", self.limit, "at least one reference is needed")
        for name, value, least in (("jobs", self.jobs, 1), ("seed", self.seed, 0)):
            if not least <= value < NEVER:
                raise InvalidParameterError(name, value, f"it must be at least {least}, and below {NEVER}")
        if not 0 < self.sample <= 1:
            raise InvalidParameterError("sample", f"{self.sample:.4g}", "a share of pages above 0 and up to 1 is needed")
        pool_sizes(parse_sizes(self.sizes), MOST_FRAMES, self.page_size)
        policy_names(self.policies)

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("jobs", "windows") and value is not None}


@dataclass(frozen=True)
class CacheRuns:
    """Runs of a study of policies."""

    #: The trace, in words.
    trace: str
    #: References of the whole trace, those that write, and distinct pages; the latter two are estimates if there is a sample.
    references: int
    writes: int
    pages: int
    page_size: int
    sample: float
    runs: Sequence[PolicyRun]

    def title(self) -> str:
        references = f"{self.trace}: {self.references:,} references ({self.writes / self.references:.1%} writes) to {self.pages:,} pages"
        estimate = "" if self.sample == 1 else f"; estimated from {self.sample:.3g} of the pages"
        return f"{references} of {format_size(self.page_size)}{estimate}"

    def rows(self) -> list[dict[str, Any]]:
        """A row a size and policy (`flashsim.studies.caching.running.Run.row`)."""
        return [each.row(self.page_size, self.pages) for each in self.runs]

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "runs"} | {"runs": self.rows()}


def execute(source: NamedReferences, study: CacheStudy, progress: Progress | None = None, target: Target | None = None) -> CacheRuns:
    """Let policies replace the pages of pools of several sizes as a trace refers to them; a target serves the pools one by one.

    A trace without pages, or a warm-up that leaves no reference, is an InvalidParameterError; a policy that breaks its contract, or a trace
    that cannot be read, a FlashsimError.
    """
    amounts, names = parse_sizes(study.sizes), policy_names(study.policies)
    if target is not None and study.sample != 1:
        raise InvalidParameterError("sample", f"{study.sample:.4g}", "a device serves all pages")
    keep = None if study.sample == 1 else partial(sampled_rows, rate=study.sample)
    batches, compiling = source.batches(), compilation(names)
    with ExitStack() as closing:
        closing.callback(compiling.stop)
        trace = closing.enter_context(NumberedTrace(source.name, batches, study.limit, keep, progress))
        pages = round(trace.pages / study.sample)
        sizes = pool_sizes(amounts, pages, study.page_size)
        if (least := sizes[0].frames) * study.sample < 0.5:
            raise InvalidParameterError("sample", f"{study.sample:.4g}", f"a pool of {least:,} pages is less than a page of the sample")
        if target is not None and target.sink is not None and (count := len(names) * len(sizes)) > 1:
            raise InvalidParameterError("requests", f"{count} runs", "those of one policy at one size are recorded")
        setting = CacheSetting(warm_up_references(study.warm_up, trace.read), study.sample, study.windows, study.jobs, study.seed)
        compiling.wait("policies")
        policies = [replacement_policy(name) for name in names]
        runs = run(trace, policies, sizes, setting, progress)
        if target is not None:
            by_name, common = {policy.name: policy for policy in policies}, (study.page_size, setting.warm_up, setting.seed, progress)
            runs = [replace(each, cost=target.serve(trace, by_name[each.policy], each.size.frames, *common)) for each in runs]
    writes = round(trace.writes / study.sample)
    return CacheRuns(source.name, trace.read, writes, pages, study.page_size, study.sample, runs)
