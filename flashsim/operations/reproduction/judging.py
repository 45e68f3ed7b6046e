"""Reproducing papers: make the runs that the chosen claims need, and judge each claim."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.core.provenance import provenance
from flashsim.literature.base import OUTSIDE, Claim, Judgement, Paper, Tally, Verdict, chosen, not_attempted
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Table
from flashsim.studies.runs.jobs import AS_THEY_ARE, DEVICES, Results, Settings, make

#: The verdicts on claims that hold.
HOLD = (Verdict.REPRODUCED, Verdict.FITTED)


@dataclass(frozen=True)
class Reproduced:
    """A paper's judged claims, what its report shows by exhibit, and the runs behind both."""

    paper: Paper
    judgements: Sequence[Judgement]
    exhibits: Mapping[str, Sequence[Section]]
    results: Results

    @property
    def sections(self) -> list[Section]:
        """What the report shows, one exhibit after another."""
        return [section for sections in self.exhibits.values() for section in sections]


def reproduce(target: str | None, settings: Settings, progress: Progress | None = None) -> list[Reproduced]:
    """Judge the claims that ``PAPER``, ``PAPER/CLAIM`` or nothing (all papers) stands for."""
    if not 0 < settings.scale <= 1:
        raise InvalidParameterError("scale", settings.scale, "it must be above 0 and at most 1")
    if settings.seed < 0:
        raise InvalidParameterError("seed", settings.seed, "it must be at least 0")
    if settings.devices not in DEVICES:
        raise UnknownNameError("devices", settings.devices, DEVICES)
    papers = chosen(target)
    for paper, _ in papers:
        if settings.scale < paper.least_scale:
            raise InvalidParameterError("scale", settings.scale, f"the runs of {paper.name} need at least {paper.least_scale:g}")
    return [_reproduced(paper, claims, settings, progress) for paper, claims in papers]


def _reproduced(paper: Paper, claims: Sequence[Claim], settings: Settings, progress: Progress | None) -> Reproduced:
    needed = {claim.exhibit for claim in claims if claim.exhibit}
    exhibits = [name for name in paper.exhibits if name in needed or len(claims) == len(paper.claims)]
    run = [name for name in exhibits if paper.is_run(name, settings.scale)]
    chosen_ids = [claim.id for claim in claims]
    jobs = [job for name in run for job in paper.exhibit(name).jobs(chosen_ids, settings)]
    results = make(jobs, settings, progress, paper.translation_layers)
    judgements = [paper.exhibit(claim.exhibit).judge(claim, results) if claim.exhibit else not_attempted(claim) for claim in claims]
    shown = {name: paper.exhibit(name).sections(results) for name in run}
    for name in set(exhibits) - set(run):
        text = f"Not run: it means nothing below scale {paper.least_scales[name]:g}."
        shown[name] = [Section(paper.exhibit(name).TITLE, text)]
    return Reproduced(paper, judgements, {name: shown[name] for name in exhibits}, results)


def verdict_table(done: Reproduced, scale: float, *, details: bool) -> Table:
    """Every claim with its verdict, and what it says, or in detail both numbers."""
    told = [(each.published, each.measured) if details else (each.claim.title,) for each in done.judgements]
    rows = [[each.claim.id, each.verdict_at(scale), str(each.tally), *more] for each, more in zip(done.judgements, told, strict=True)]
    return Table(["claim", "verdict", "inside", *(("published", "measured") if details else ("what it says",))], rows)


def share(done: Reproduced, scale: float, *, holding: bool) -> str:
    """How many claims hold, or do not, and why, such as ``6 of 16 claims (differs 4, not attempted 2)``."""
    kinds = Counter(each.kind_at(scale) for each in done.judgements if (each.verdict in HOLD) == holding)
    told = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    return f"{kinds.total()} of {len(done.judgements)} claims{f' ({told})' if told else ''}"


def tally(done: Sequence[Reproduced]) -> Tally:
    return sum((each.tally for one in done for each in one.judgements), Tally())


def counts(done: Reproduced, scale: float) -> dict[str, int]:
    """How many claims got each verdict, of those that occurred; below scale 1 none differs."""
    found = Counter(each.kind_at(scale) for each in done.judgements)
    return {kind: found[kind] for kind in (*(verdict.value for verdict in Verdict), OUTSIDE) if found[kind]}


def summary(done: Reproduced, scale: float) -> str:
    """The same in words, such as ``reproduced 1, differs 5, not attempted 10``."""
    return ", ".join(f"{kind} {count}" for kind, count in counts(done, scale).items())


def differing(done: Sequence[Reproduced]) -> int:
    return sum(each.verdict is Verdict.DIFFERS for one in done for each in one.judgements)


def as_dict(done: Sequence[Reproduced], settings: Settings) -> dict[str, Any]:
    return {
        "papers": [one.paper.name for one in done],
        "scale": settings.scale,
        "devices": settings.devices if settings.scale != 1 else AS_THEY_ARE,
        **vars(tally(done)),
        "claims": [each.as_dict(settings.scale) for one in done for each in one.judgements],
        "provenance": provenance(vars(settings) | {"papers": [one.paper.name for one in done]}, settings.seed),
    }
