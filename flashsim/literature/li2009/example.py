"""The worked example of section II: page accesses of sort-merge and of DigestJoin's first phase, counted as they are executed."""

from collections.abc import Collection

from flashsim.literature.base import Cell, Claim, Judgement, decided, load
from flashsim.literature.li2009.example_runs import count_pages
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Table
from flashsim.studies.runs.jobs import Job, Results, Settings


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [_job(settings)]


def _job(settings: Settings) -> Job:
    return Job.of(count_pages, "the worked example", seed=settings.seed)


def _ours(results: Results) -> dict[str, int]:
    return dict(zip(load("li2009").claim("example").published, results[_job(results.settings)], strict=True))


def judge(claim: Claim, results: Results) -> Judgement:
    ours = _ours(results)
    cells = [Cell(name, value, ours[name], ours[name] == value) for name, (value,) in claim.published.items()]
    agree = sum(bool(cell.inside) for cell in cells)
    texts = f"{len(cells)} page counts", f"{agree} of {len(cells)} agree"
    return Judgement(claim, decided(claim, agree == len(cells)), *texts, cells, scaled=False)


def sections(results: Results) -> list[Section]:
    ours, published = _ours(results), load("li2009").claim("example").published
    rows = [[name, value, ours[name]] for name, (value,) in published.items()]
    text = "Page accesses of joining 10,000 with 5,000 pages in 20 pages of memory, executed; digests fill 600 and 450 pages."
    return [Section("The worked example (section II)", text, [Table(["what", "published", "ours"], rows, "example")], on_terminal=True)]
