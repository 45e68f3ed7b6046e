"""The report of a reproduction: one HTML page that needs nothing else, and every table as CSV and picture as SVG beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashsim.operations.reproduction.judging import Reproduced, as_dict, counts, tally
from flashsim.studies.presentation.report import page
from flashsim.studies.presentation.tables import Table, same, write_csv
from flashsim.studies.runs.jobs import Job, Made, Settings

#: So many digits of a run's id are shown: enough to tell apart far more runs than a paper has.
_SHOWN_DIGITS = 10
#: So many characters of its parameters: the table of runs beside the page has them in full.
_SHOWN_PARAMETERS = 200


def write_report(folder: Path, done: Sequence[Reproduced], settings: Settings) -> None:
    """Fill a folder with ``report.html``, the tables and the pictures."""
    (folder / "report.html").write_text(html(done, settings), encoding="utf-8")
    for one in done:
        prefix = f"{one.paper.name}-"
        rows = [each.as_dict(settings.scale) | {"tally": str(each.tally)} for each in one.judgements]
        columns = {"claim": "id", "verdict": "shown", "inside": "tally"} | same("published", "measured", "tolerance", "note")
        write_csv(Table.of(rows, columns), folder / f"{prefix}claims.csv")
        write_csv(_runs_table(one), folder / f"{prefix}runs.csv")
        for section in one.sections:
            section.write_files(folder, prefix)


def html(done: Sequence[Reproduced], settings: Settings) -> str:
    origin = as_dict(done, settings)["provenance"]
    shown = [_shown(one, settings.scale) for one in done]
    contents = [part for one in shown for part in one["contents"]]
    title = f"{', '.join(one.paper.name for one in done)} at scale {settings.scale:g}"
    return page("reproduction.html.j2", title, contents, origin, papers=shown, settings=settings, version=origin["flashsim"])


def _runs_table(one: Reproduced) -> Table:
    rows = [
        [job.id, job.label, job.function, job.arguments, made.seconds, "kept" if made.recalled else "made now"]
        for job, made in one.results.made.items()
    ]
    return Table(["run", "label", "function", "parameters", "seconds", "result"], rows)


@dataclass(frozen=True)
class _Run:
    """A run as the page shows it."""

    id: str
    label: str
    function: str
    parameters: str
    scale: Any
    seed: Any
    seconds: float
    recalled: bool

    @property
    def short(self) -> str:
        return self.id[:_SHOWN_DIGITS]


def _run(job: Job, made: Made) -> _Run:
    own = dict(job.parameters)
    scale, seed = own.pop("scale", "-"), own.pop("seed", "-")
    named = ", ".join(f"{name}={value}" for name, value in own.items())
    if len(named) > _SHOWN_PARAMETERS:
        named = f"{named[:_SHOWN_PARAMETERS]}..."
    return _Run(job.id, job.label or job.function, job.function, named, scale, seed, made.seconds, made.recalled)


def _shown(one: Reproduced, scale: float) -> dict[str, Any]:
    """What the template needs of one paper."""
    name = one.paper.name
    runs = [_run(job, made) for job, made in one.results.made.items()]
    by_id = {run.id: run for run in runs}
    exhibits = [
        {
            "id": f"{name}-exhibit-{exhibit}",
            "sections": [section.scoped(f"{name}-") for section in sections],
            "judgements": [each for each in one.judgements if each.claim.exhibit == exhibit],
        }
        for exhibit, sections in one.exhibits.items()
        if sections
    ]
    jobs_of = {
        each.claim.id: one.paper.exhibit(each.claim.exhibit).jobs([each.claim.id], one.results.settings)
        for each in one.judgements
        if each.claim.exhibit
    }
    runs_of = {
        each.claim.id: [by_id[id] for id in dict.fromkeys(job.id for job in jobs_of.get(each.claim.id, ())) if id in by_id]
        for each in one.judgements
    }
    contents = [(f"{name}-exhibit-{exhibit}", sections[0].title) for exhibit, sections in one.exhibits.items() if sections]
    return {
        "paper": one.paper,
        "contents": [*contents, (f"{name}-claims", "Claim by claim"), (f"{name}-runs", "Runs")],
        "figures": [("published numbers inside", str(tally([one]))), *((kind, str(count)) for kind, count in counts(one, scale).items())],
        "judgements": one.judgements,
        "exhibits": exhibits,
        "runs": runs,
        "by_id": by_id,
        "runs_of": runs_of,
    }
