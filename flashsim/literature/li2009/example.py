"""The worked example of section II: page accesses of sort-merge and of DigestJoin's first phase, counted as they are executed."""

from collections.abc import Collection

from flashsim.literature.li2009.example_runs import count_pages
from flashsim.studies.judging.cells import Cell, number
from flashsim.studies.judging.claims import Claim
from flashsim.studies.runs.jobs import Job, Results, Settings


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [_job(settings)]


def _job(settings: Settings) -> Job:
    return Job.of(count_pages, "the worked example", seed=settings.seed)


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The page counts, each exact."""
    counts = results[_job(results.settings)]
    return [number(name, value, ours, 0) for (name, (value,)), ours in zip(claim.published.items(), counts, strict=True)]
