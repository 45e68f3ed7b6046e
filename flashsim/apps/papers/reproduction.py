"""Reproduction of papers: make the runs that the chosen claims need, judge each claim, and report: one HTML page, tables and pictures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flashsim.apps.papers.base import Paper, select_papers
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.core.provenance import provenance
from flashsim.experiments.judging.claims import NOT_JUDGED, Claim, Judgement, Tally, Verdict
from flashsim.experiments.presentation import report
from flashsim.experiments.presentation.plots import Beside, plot_beside_published
from flashsim.experiments.presentation.report import Section
from flashsim.experiments.presentation.tables import Table, same, write_csv
from flashsim.experiments.runs.jobs import AS_THEY_ARE, DEVICES, Job, Results, Settings, make

#: The verdicts on claims that are inside their limits.
HOLD = (Verdict.REPRODUCED, Verdict.FITTED, Verdict.CONSISTENT)
#: The page that explains verdicts.
VERDICTS = "docs/explanation/verdicts.md"
#: Verdicts in words, by kind.
MEANINGS = {
    "reproduced": "agrees, and no parameter was chosen with the paper's numbers in view",
    "fitted": "agrees, with parameters that were",
    "consistent": "agrees, but shows nothing of the simulation",
    "differs": "is outside its tolerance",
    NOT_JUDGED: "needs the published size",
}
#: Published numbers of a claim from which on they are drawn beside ours.
_DRAWN = 6
#: Digits of a run's id in a report: enough to distinguish far more runs than a paper has.
_SHOWN_DIGITS = 10
#: Characters of a run's parameters in a report: the table of runs beside the page has them in full.
_SHOWN_PARAMETERS = 200


@dataclass(frozen=True)
class PaperResult:
    """A paper's judged claims, the sections of its report by exhibit, and the runs behind both."""

    paper: Paper
    judgements: Sequence[Judgement]
    exhibits: Mapping[str, Sequence[Section]]
    results: Results
    #: Verdicts on the claims, in their order, under each further seed.
    seeds: Sequence[Sequence[Verdict]] = ()

    def flips(self) -> dict[str, list[str]]:
        """Other verdicts under further seeds, one per seed that has another, by the claim's id."""
        return {
            each.claim.id: [verdicts[place].value for verdicts in self.seeds if verdicts[place] is not each.verdict]
            for place, each in enumerate(self.judgements)
        }

    @property
    def sections(self) -> list[Section]:
        """Sections of the report, one exhibit after another."""
        return [section for sections in self.exhibits.values() for section in sections]

    @property
    def scale(self) -> float:
        return self.results.settings.scale

    @property
    def tally(self) -> Tally:
        return sum((each.tally for each in self.judgements), Tally())

    @property
    def counts(self) -> dict[str, int]:
        """Claims by verdict, of those that occurred."""
        kinds = Counter(each.kind_at(self.scale) for each in self.judgements)
        return {kind: kinds[kind] for kind in (*(verdict.value for verdict in Verdict), NOT_JUDGED) if kinds[kind]}

    @property
    def sentence(self) -> str:
        """The verdicts in one sentence that can be quoted."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        nulls = sum(each.null["inside"] or 0 for each in self.judgements)
        size = "at the published size" if self.scale == 1 else f"at scale {self.scale:g}"
        numbers = f"{self.tally} published numbers inside (best predictor without a simulation: {nulls})"
        return f"{self.paper.name} {size}: of {len(self.judgements)} claims {kinds}; {numbers}."

    @property
    def valid(self) -> list[Judgement]:
        """Judgements whose verdict says something of the paper: all at the published size, below it those that the scale cannot change."""
        return [each for each in self.judgements if each.is_judged_at(self.scale) and each.verdict is not Verdict.NOT_ATTEMPTED]

    @property
    def answer(self) -> str:
        """How many claims agree, and how many of these the best predictor without a simulation passes as well, in a sentence or two."""
        holding = [each for each in self.valid if each.verdict in HOLD]
        passed = sum(bool(each.null["passes"]) for each in holding)
        verb = "agrees" if len(holding) == 1 else "agree"
        agree = f"{len(holding)} of {len(self.valid)} claims {verb}"
        if self.scale != 1 and len(self.valid) == 1:
            which, result = "the" if len(self.judgements) == 1 else "one", "agrees" if holding else "differs"
            agree = f"{which} claim does not depend on the scale, and it {result}"
        elif self.scale != 1:
            agree = f"{len(holding)} of the {len(self.valid)} claims that do not depend on the scale {verb}"
        if passed:
            agree += f"; {passed} of these a constant would also pass, see Verdicts ({VERDICTS})"
        others = Counter(each.kind_at(self.scale) for each in self.judgements if each not in self.valid)
        missing, unjudged = others[Verdict.NOT_ATTEMPTED.value], others[NOT_JUDGED]
        sentences = [agree] if self.valid else []
        needs = "1 claim needs the published size and is" if unjudged == 1 else f"{unjudged} claims need the published size and are"
        sentences += [f"{needs} not judged at this scale"] if unjudged else []
        sentences += [f"{missing} claims could not be measured at this scale"] if missing else []
        return ". ".join(sentences) + "."

    def verdict_table(self, *, details: bool) -> Table:
        """Every claim with its verdict and how many of its comparisons hold, and its title, or in detail both numbers."""
        rows = [
            [each.claim.id, each.kind_at(self.scale), each.holds_in_words]
            + ([str(each.tally), *beside_null(each), each.published, each.measured] if details else [_passes(each), each.claim.title])
            for each in self.judgements
        ]
        more = ["numbers inside", "a constant", "skill", "published", "measured"] if details else ["a constant", "the paper says"]
        return Table(["claim", "verdict", "holds in", *more], rows)

    def legend(self, *, details: bool) -> str:
        """Meanings of the words that occur in the verdict table."""
        words = [f"{kind}: {MEANINGS[kind]}" for kind in self.counts if kind in MEANINGS]
        words += ["holds in: comparisons inside the claim's tolerance"]
        words += [f"a constant: the best predictor without a simulation, see {VERDICTS}"]
        if details:
            words += ["numbers inside: published numbers inside the tolerance", "skill: share of the constant's error that the runs save"]
        if beyond := [each.claim.id for each in self.judgements if each.has_median_outside]:
            words.append(f"the median error is outside its own tolerance: {', '.join(beyond)}")
        return f"{'; '.join(words)}."

    def runs_of(self, claim: Claim) -> list[Job]:
        """Runs that a claim is judged by, of those that were made."""
        jobs = self.paper.exhibit(claim.exhibit).jobs([claim.id], self.results.settings) if claim.exhibit else ()
        made = {job.id: job for job in self.results.runs}
        return [made[id] for id in dict.fromkeys(job.id for job in jobs) if id in made]


def reproduce(
    target: str | None, settings: Settings, progress: Progress | None = None, seeds: int = 1, *, experiments: bool = False
) -> list[PaperResult]:
    """Judge the claims that ``PAPER``, ``PAPER/CLAIM``, ``PAPER/EXHIBIT`` or nothing (all) is, and again under each further seed.

    Experiments of a whole paper are run only if they are asked for.
    """
    if settings.devices not in DEVICES:
        raise UnknownNameError("devices", settings.devices, DEVICES)
    papers = select_papers(target)
    for paper, *_ in papers:
        if settings.scale < paper.least_scale:
            raise InvalidParameterError("scale", settings.scale, f"the runs of {paper.name} need at least {paper.least_scale:g}")
    if "/" in (target or ""):
        experiments = True
        ((paper, _, exhibits),) = papers
        for name in exhibits:
            if not paper.is_run(name, settings.scale):
                least = f"{paper.name}/{name} means nothing below {paper.least_scales[name]:g}"
                raise InvalidParameterError("scale", settings.scale, least)
    return [_reproduce_paper(paper, claims, exhibits, settings, progress, seeds, experiments) for paper, claims, exhibits in papers]


def _reproduce_paper(
    paper: Paper,
    claims: Sequence[Claim],
    exhibits: Sequence[str],
    settings: Settings,
    progress: Progress | None,
    seeds: int,
    experiments: bool,
) -> PaperResult:
    run = [name for name in exhibits if paper.is_run(name, settings.scale) and (experiments or name not in paper.experiments)]
    results, judgements = _judge(paper, claims, run, settings, progress)
    by_exhibit = {name: list(paper.exhibit(name).sections(results)) for name in run}
    for judgement in judgements:
        if judgement.cells:
            by_exhibit[judgement.claim.exhibit or ""].append(_comparison(judgement))
    for name in set(exhibits) - set(run):
        why = f"flashsim reproduce {paper.name}/{name}, or with --experiments"
        if not paper.is_run(name, settings.scale):
            why = f"it means nothing below scale {paper.least_scales[name]:g}"
        by_exhibit[name] = [Section(paper.exhibit(name).TITLE, f"Not run: {why}.")]
    judged = [name for name in run if any(claim.exhibit == name for claim in claims)]
    others = [_judge(paper, claims, judged, replace(settings, seed=settings.seed + more), progress)[1] for more in range(1, seeds)]
    verdicts = [[each.verdict for each in judgements_of_seed] for judgements_of_seed in others]
    return PaperResult(paper, judgements, {name: by_exhibit[name] for name in exhibits}, results, verdicts)


def _judge(
    paper: Paper, claims: Sequence[Claim], exhibits: Sequence[str], settings: Settings, progress: Progress | None
) -> tuple[Results, list[Judgement]]:
    """The runs of some exhibits, and the verdicts on the claims."""
    ids = [claim.id for claim in claims]
    jobs = [job for name in exhibits for job in paper.exhibit(name).jobs(ids, settings)]
    results = make(jobs, settings, progress, paper.translation_layers, kinds=paper.kinds, more=paper.parts())
    return results, [paper.judge(claim, results) for claim in claims]


def _comparison(judgement: Judgement) -> Section:
    """A claim's cells: published numbers beside ours and the null model's, drawn by row if there are many."""
    claim = judgement.claim
    rows = [
        [cell.name, cell.variant, cell.published, cell.measured, null.measured, cell.inside]
        for cell, null in zip(judgement.cells, judgement.null_cells, strict=True)
    ]
    table = Table(["cell", "variant", "published", "ours", "null model", "inside"], rows, f"{claim.id}-cells", digits=3)
    numbers = [cell for cell in judgement.cells if cell.is_number and not cell.variant and not cell.points]
    pictures = {}
    if len(numbers) >= _DRAWN:
        by_row = {row: [cell for cell in numbers if cell.row == row] for row in dict.fromkeys(cell.row for cell in numbers)}
        panels = {
            row: Beside([f"{cell.place:g}" for cell in cells], [float(cell.published or 0) for cell in cells],
                        [cell.values[0] for cell in cells], cells[0].limit)
            for row, cells in by_row.items()
        }  # fmt: skip
        pictures[claim.id] = plot_beside_published(panels, "", "", share=False)
    return Section(claim.title, f"{claim.source}: {claim.tolerance}.", [table], pictures)


def beside_null(judgement: Judgement) -> list[str]:
    """Published numbers that the null model has inside, and the skill beyond it."""
    if judgement.skill is None:
        return ["-", "-"]
    passes = _passes(judgement)
    return [f"{judgement.null['inside']}, {passes}" if judgement.tally.published_cells else passes, f"{judgement.skill:+.2f}"]


def _passes(judgement: Judgement) -> str:
    """Whether the null model passes too; of a claim that has no verdict, a dash."""
    passes = judgement.null["passes"]
    return "-" if passes is None else "passes" if passes else "fails"


def as_dict(results: Sequence[PaperResult], settings: Settings) -> dict[str, Any]:
    return {
        "papers": [one.paper.name for one in results],
        "scale": settings.scale,
        "devices": settings.devices if settings.scale != 1 else AS_THEY_ARE,
        **vars(sum((one.tally for one in results), Tally())),
        "sentences": [one.sentence for one in results],
        "claims": [
            each.as_dict(settings.scale)
            | {"seeds": 1 + len(one.seeds), "flips": len(flips[each.claim.id]), "flips_to": list(dict.fromkeys(flips[each.claim.id]))}
            for one in results
            for flips in [one.flips()]
            for each in one.judgements
        ],
        "provenance": provenance(vars(settings) | {"papers": [one.paper.name for one in results]}, settings.seed),
    }


def write_report(folder: Path, results: Sequence[PaperResult], settings: Settings) -> None:
    """Fill a folder with ``report.html``, the tables and the pictures."""
    (folder / "report.html").write_text(_html(results, settings), encoding="utf-8")
    for one in results:
        prefix = f"{one.paper.name}-"
        rows = [each.as_dict(settings.scale) | {"tally": str(each.tally)} for each in one.judgements]
        columns = {"claim": "id", "verdict": "shown", "inside": "tally"} | same("published", "measured", "tolerance", "note")
        write_csv(Table.of(rows, columns), folder / f"{prefix}claims.csv")
        runs = [
            [job.id, job.label, job.function, job.arguments, run.seconds, "kept" if run.recalled else "made now"]
            for job, run in one.results.runs.items()
        ]
        header = ["run", "label", "function", "parameters", "seconds", "result"]
        write_csv(Table(header, runs), folder / f"{prefix}runs.csv")
        for section in one.sections:
            section.write_files(folder, prefix)


def _html(results: Sequence[PaperResult], settings: Settings) -> str:
    origin = as_dict(results, settings)["provenance"]
    contents = []
    for one in results:
        name = one.paper.name
        contents += [(f"{name}-exhibit-{exhibit}", sections[0].title) for exhibit, sections in one.exhibits.items() if sections]
        contents += [(f"{name}-claims", "Claim by claim"), (f"{name}-runs", "Runs")]
    title = f"{', '.join(one.paper.name for one in results)} at scale {settings.scale:g}"
    values = {"papers": results, "settings": settings, "version": origin["flashsim"], "beside_null": beside_null}
    values |= {"parameters_of": _parameters, "short": lambda id: id[:_SHOWN_DIGITS]}
    return report.page("reproduction.html.j2", title, contents, origin, **values)


def _parameters(job: Job) -> str:
    """Parameters of a run but for scale and seed, which have columns of their own."""
    text = ", ".join(f"{name}={value}" for name, value in job.parameters.items() if name not in ("scale", "seed"))
    return text if len(text) <= _SHOWN_PARAMETERS else f"{text[:_SHOWN_PARAMETERS]}..."
