"""``flashsim reproduce`` and ``fs.reproduce``: the runs of a paper, and verdicts on its claims."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from html import escape
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.papers import reproduction
from flashsim.apps.papers.base import PAPERS, Paper, load
from flashsim.apps.papers.reproduction import PaperResult
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.experiments.judging.claims import Verdict
from flashsim.experiments.presentation.plots import scatter_beside
from flashsim.experiments.presentation.report import Section
from flashsim.experiments.presentation.tables import Table, as_text
from flashsim.experiments.presentation.terminal import Explanation, Part
from flashsim.experiments.runs.jobs import SHIPS_MODEL, Settings
from flashsim.experiments.runs.outputs import Outputs
from flashsim.operations import fields
from flashsim.operations.fields import Field, Flag, Name, Scale
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing, Outcome

_TARGET = f"Paper or part of one: {', '.join(PAPERS.names())}; without one, papers are listed."
_CLUSTER = "A Dask scheduler whose workers execute the runs, such as tcp://host:8786; they must see this machine's files."
_DRIVES = "Below scale 1: ships-model (drives and file system are scaled too, so that ratios stay) or as-they-are (full size)."
#: Cells outside the tolerance that a terminal names; the report names all.
_NAMED = 3


def _claims() -> list[str]:
    return [claim.name for name in PAPERS.names() for claim in load(name).claims]


class ExhibitView:
    """An exhibit of a paper as the report shows it: words, pictures and tables, in sections."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self.sections = list(sections)

    def tables(self) -> list[pd.DataFrame]:
        """Tables of the exhibit."""
        every = [table for section in self.sections for table in section.tables]
        return [table.infer_objects().round(table.attrs["digits"]) for table in every]

    def _repr_html_(self) -> str:
        parts = []
        for section in self.sections:
            parts.append(f"<h4>{escape(section.title)}</h4><p>{escape(section.text)}</p>")
            parts += section.pictures.values()
            parts += [frame.to_html(index=False) for frame in ExhibitView([section]).tables()]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return "\n\n".join(section.title + "".join(f"\n{as_text(table)}" for table in section.tables) for section in self.sections)


class ReproductionOutcome(Outcome):
    """A paper's claims, judged: `result` has judgements, exhibits and runs."""

    def __init__(self, results: Sequence[PaperResult], settings: Settings, seconds: float, place: str | None, details: bool) -> None:
        counts = [", ".join(f"{kind} {count}" for kind, count in one.counts.items()) for one in results]
        titles = [f"{one.paper.title} ({one.paper.reference}), {one.paper.scale_in_words(settings)}" for one in results]
        title = "; ".join(map(": ".join, zip(titles, counts, strict=True)))
        super().__init__(list(results), title, reproduction.as_dict(results, settings)["provenance"])
        self.settings, self.seconds, self.place, self.details = settings, seconds, place, details

    def summary(self) -> pd.DataFrame:
        """One row per claim: verdict, comparisons held and all, published numbers inside, its null model's, skill, and both sides."""
        scale = self.settings.scale
        rows = [
            (
                each.claim.name,
                each.verdict_at(scale),
                each.cells_inside,
                each.cells_judged,
                str(each.tally),
                *reproduction.beside_null(each),
            )
            + (each.published, each.measured, each.claim.tolerance, each.note_at(scale))
            for one in self.result
            for each in one.judgements
        ]
        columns = ["claim", "verdict", "held", "of", "inside", "null", "skill", "published", "measured", "tolerance", "note"]
        return pd.DataFrame(rows, columns=columns)

    def cells(self) -> pd.DataFrame:
        """A row a published number or statement: both sides, and whether ours is inside the tolerance (None: not measured)."""
        rows = [
            (each.claim.name, cell.name, cell.published, cell.measured, cell.inside)
            for one in self.result
            for each in one.judgements
            for cell in each.cells
        ]
        return pd.DataFrame(rows, columns=["claim", "cell", "published", "measured", "inside"])

    def exhibit(self, name: str) -> ExhibitView:
        """A table or figure of the paper, such as ``"table3"``, beside ours."""
        every = {key: list(sections) for one in self.result for key, sections in one.exhibits.items()}
        if name not in every:
            raise UnknownNameError("exhibit", name, every)
        return ExhibitView(every[name])

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        return reproduction.as_dict(self.result, self.settings)

    def printout(self) -> Iterator[Part]:
        """Of each paper its claim, how many claims agree, the verdicts, and where to look next."""
        for one in self.result:
            yield from _screen(one, self.settings, self.seconds, self.place, self.details)

    def _write_report(self, folder: Path) -> None:
        reproduction.write_report(folder, self.result, self.settings)

    def _draw(self) -> Figure:
        cells = self.cells()
        both = cells[["published", "measured"]].apply(pd.to_numeric, errors="coerce")
        numbers = cells.assign(**both).replace([np.inf, -np.inf], np.nan).dropna(subset=["published", "measured"])
        return scatter_beside(numbers, "published", "measured", "inside", ("inside", "outside"))


def _is_listing(values: Mapping[str, Any]) -> bool:
    """The command lists the papers, because none is named."""
    given = {name: values[name] for name in ("out", "strict", "cluster", "details", "experiments")} | {"seeds": values["seeds"] != 1}
    if not values["target"]:
        fields.refuse(given, "no paper is named; flashsim reproduce lists them")
    return not values["target"]


@operation
def reproduce(
    target: Annotated[
        str | None,
        Name(
            _TARGET, "[PAPER[/CLAIM or /EXHIBIT,...]]", completes=(PAPERS.names, _claims), python="`fs.papers` lists them.", argument=True
        ),
    ] = None,
    *,
    scale: Annotated[float, Scale("Scale of tuples and memory, above 0 and up to 1.")] = 1.0,
    jobs: fields.Jobs = None,
    cluster: Annotated[str | None, Name(_CLUSTER, "ADDRESS", provenance=False)] = None,
    out: Annotated[str | os.PathLike[str] | None, Name("Write report.html, tables (CSV) and pictures (SVG).", "DIR")] = None,
    details: Annotated[bool, Flag("Also print the main tables, published and measured numbers, and causes.")] = False,
    experiments: Annotated[bool, Flag("Also run experiments that judge no claim: sensitivities, causes and open questions.")] = False,
    strict: Annotated[bool, Flag("Exit with 1 if a claim differs.", python="As `status` says.")] = False,
    devices: Annotated[str, Name(_DRIVES, "NAME")] = SHIPS_MODEL,
    seed: Annotated[int, fields.Count("Random seed.", parse=fields.seed)] = 2009,
    seeds: Annotated[int, fields.Count("Judge with N seeds and list the verdicts that change.")] = 1,
    fresh: fields.Fresh = False,
    force: fields.Force = False,
    listed: Annotated[bool, Field("List the papers instead.", constant=_is_listing, provenance=False)] = False,
) -> ReproductionOutcome | Listing:
    """Reproduce a paper and judge its claims.

    Printed are the paper's claim, how many claims agree, and every verdict with the number of comparisons that hold. Beside a verdict
    stands the best predictor without a simulation, a constant; a claim that it passes as well is consistent. Below scale 1 only claims
    that the scale cannot change are judged; --details and --out show more. Experiments, which judge no claim, are run by their names or
    with --experiments. Without a paper, the papers are listed. Results are kept, so that an interrupted run goes on where it stopped. The
    exit code is 0 whatever the verdicts, unless --strict is given.

    Examples::

        flashsim reproduce
        flashsim reproduce do2009 --scale 0.01 --details
        flashsim reproduce do2009/table3-io --scale 0.01 --json table3.json
        flashsim reproduce do2009/fig2 --scale 0.01 --seeds 2
        flashsim reproduce do2009/table1,cpu_bound --scale 0.01
        flashsim reproduce do2009 --scale 0.01 --out results/do2009

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.reproduce("do2009/table3-io", scale=0.01)  # doctest: +SKIP
    """
    if listed:
        return _papers()
    if target is None:
        names = ", ".join(PAPERS.names())
        raise InvalidParameterError("target", "not given", f"a paper is needed, of {names}, or a claim of one; fs.papers() lists them")
    settings, start = Settings(scale, jobs or os.cpu_count() or 1, seed, fresh, cluster, devices), time.monotonic()
    with ExitStack() as stack:
        folder = stack.enter_context(Outputs(force)).folder("out", Path(out)) if out else None
        with activity("runs") as progress:
            results = reproduction.reproduce(target, settings, progress, seeds, experiments=experiments)
        if folder:
            reproduction.write_report(folder, results, settings)
    outcome = ReproductionOutcome(results, settings, time.monotonic() - start, str(out) if out else None, details)
    outcome.status = int(strict and any(each.verdict is Verdict.DIFFERS for one in results for each in one.judgements))
    return outcome


def _papers() -> Listing:
    papers = [load(name) for name in PAPERS.names()]
    rows = [{name: getattr(each, name) for name in ("name", "title", "reference", "takes")} for each in papers]
    table = Table(["paper", "claims", "title", "time of a run"], [[each.name, len(each.claims), each.title, each.takes] for each in papers])
    hints = ["", "Next: flashsim reproduce PAPER --scale 0.1 rehearses a paper;", "      flashsim reproduce PAPER/CLAIM judges one claim:"]
    hints += [f"      {each.claims[0].name}" for each in papers]
    document = [row | {"claims": [claim.id for claim in each.claims]} for row, each in zip(rows, papers, strict=True)]
    return Listing(["Papers that flashsim runs again\n", table, *hints], rows, {"papers": document})


def _screen(one: PaperResult, settings: Settings, seconds: float, out: str | None, details: bool) -> Iterator[Part]:
    """The paper and its claim, how many claims agree, every verdict, where to look next, and if requested what a terminal can show."""
    paper = one.paper
    yield f"{paper.title} ({paper.reference})"
    if paper.says:
        yield Explanation(f"The paper claims that {paper.says}.")
    if one.judgements:
        size = (
            "At the published size: "
            if settings.scale == 1
            else f"A rehearsal at scale {settings.scale:g} ({_what_is_scaled(paper, settings)}): "
        )
        yield Explanation(size + one.answer)
    yield Explanation(_effort(one, settings, seconds))
    if one.seeds:
        flips = [f"{claim} under {len(others)}, {' or '.join(dict.fromkeys(others))}" for claim, others in one.flips().items() if others]
        text = f"{len(flips)} of {len(one.judgements)} verdicts flip under {len(one.seeds)} more seeds"
        yield Explanation(": ".join(filter(None, [text, "; ".join(flips)])) + ".")
    if one.judgements:
        yield from ("", one.verdict_table(details=details), "", Explanation(one.legend(details=details)))
    if details or not one.judgements:
        yield from _details(one, settings)
    yield from ("", *_next(one, settings, out, details))


def _what_is_scaled(paper: Paper, settings: Settings) -> str:
    return paper.scaled or ("tuples, memory and drives are scaled" if settings.ships_model else "tuples and memory are scaled")


def _effort(one: PaperResult, settings: Settings, seconds: float) -> str:
    """The number of runs, how many were simulated now, how long they took, and the published numbers inside."""
    runs = one.results.runs.values()
    recalls, further = sum(run.recalled for run in runs), ", and those of further seeds" if one.seeds else ""
    where = "" if one.judgements else f" for no claims, at {one.paper.scale_in_words(settings)}"
    numbers = f" {one.tally} published numbers are inside their tolerance." if one.tally.published_cells else ""
    return f"{len(runs)} runs{where} in {seconds:.0f} s: {len(runs) - recalls} simulated now, {recalls} kept{further}.{numbers}"


def _next(one: PaperResult, settings: Settings, out: str | None, details: bool) -> Iterator[Part]:
    """Next steps: the report, the published size, and options that show more."""
    paper = one.paper
    steps = [f"{out}/report.html has every number and picture."] if out else []
    if settings.scale != 1 and one.judgements:
        takes = paper.takes.partition(";")[0]
        steps.append(f"flashsim reproduce {paper.name} judges all {len(paper.claims)} claims at the published size ({takes}).")
    shows = [] if details or not one.judgements else ["--details shows both numbers of every claim, and causes"]
    shows += [] if out else ["--out DIR writes a report"]
    if shows:
        steps.append(f"{'; '.join(shows)}.")
    if steps:
        yield Explanation(f"Next: {' '.join(steps)}", " " * len("Next: "))


def _details(one: PaperResult, settings: Settings) -> Iterator[Part]:
    scale = settings.scale
    yield ""
    for section in one.sections:
        if section.on_terminal or not one.judgements:
            yield from section.tables
            yield from (Explanation(section.text), "")
    if not one.judgements and not one.sections:
        yield Explanation(f"Not every run that it needs could be made at scale {scale:g}.")
    notes = dict.fromkeys(each.note_at(scale) for each in one.judgements)
    for note in filter(None, notes):
        claims = ", ".join(each.claim.id for each in one.judgements if each.note_at(scale) == note)
        yield Explanation(f"{claims}: {note}", "  ")
    for each in one.judgements:
        for change in each.claim.changes:
            text = f"{change['date']}, {change['what']}: {change['was']}, then {change['now']} ({change['why']})"
            yield Explanation(f"{each.claim.id}, changed {text}", "  ")
        if outside := each.outside():
            more = f" and {len(outside) - _NAMED} more" if len(outside) > _NAMED else ""
            yield Explanation(f"{each.claim.id}: outside are {'; '.join(outside[:_NAMED])}{more}", "  ")
