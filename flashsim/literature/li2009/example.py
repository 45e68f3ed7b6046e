"""The worked example of section II: page accesses of sort-merge and of DigestJoin's first phase, counted as they are executed."""

from collections.abc import Collection

from flashsim.literature.base import Cell, Claim, Job, Results, Settings
from flashsim.literature.li2009.runs import count_pages


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [Job.of(count_pages, "the worked example", seed=settings.seed)]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The page counts, each exact."""
    (job,) = jobs([claim.id], results.settings)
    return claim.numbers(results[job])
