"""``flashsim reproduce``: make a paper's runs again and judge every claim of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.shared import Force, JsonFile
from experiments.commands.values import completes
from experiments.papers.base import PAPERS, load
from experiments.presentation.progress import progress_bar
from experiments.presentation.tables import Table
from experiments.presentation.terminal import explain, say
from experiments.reproduction.judging import Reproduced, as_dict, differing, share, tally, verdict_table
from experiments.reproduction.judging import reproduce as reproduce_papers
from experiments.runs.jobs import SHIPS_MODEL, Settings
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.errors import RefusedError

#: So many cells outside the tolerance are named on a terminal; the report names all.
_NAMED = 3
#: The first words of the first lines take so many characters.
_HEAD = 15
_DEVICES = "Below scale 1: ships-model (drives and file system shrink with tuples and memory, so that ratios stay) or as-they-are."


def reproduce(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAPER[/CLAIM]]",
            help="What to reproduce, of {papers}; without it, they are listed.",
            autocompletion=completes("papers", "claims"),
        ),
    ] = None,
    scale: Annotated[float, typer.Option("--scale", metavar="F", help="Multiplies tuples and memory, above 0 and up to 1.")] = 1.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Processes at the same time; one a core by default.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers make the runs, such as tcp://host:8786."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write report.html, tables (CSV) and pictures (SVG).")] = None,
    details: Annotated[bool, typer.Option("--details", help="Also print the main tables, both numbers of claims, and causes.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a claim differs.")] = False,
    devices: Annotated[str, typer.Option("--devices", metavar="NAME", help=_DEVICES)] = SHIPS_MODEL,
    json: JsonFile = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the generated relations.")] = 2009,
    fresh: Annotated[bool, typer.Option("--fresh", help="Leave results of earlier runs unused.")] = False,
    force: Force = False,
) -> None:
    """Make a paper's runs again, and judge every claim: reproduced, fitted, differs or not attempted.

    Printed are what ran, what holds and what does not, and every verdict with how many of its published numbers are inside their tolerance;
    --details and --out say more. Without a paper, the papers are listed. Results are kept, so that an interrupted run goes on where it
    stopped. The exit code is 0 whatever the verdicts, unless --strict is given.

    Examples::

        flashsim reproduce
        flashsim reproduce do2009 --scale 0.01 --details
        flashsim reproduce do2009/table3-io --scale 0.01 --json table3.json
        flashsim reproduce do2009 --scale 0.01 --out results/do2009
    """
    if target is None:
        _list({"--out": out, "--strict": strict, "--cluster": cluster}, json, force=force)
        return
    settings, begun = Settings(scale, os.cpu_count() or 1 if jobs is None else jobs, seed, fresh, cluster, devices), time.monotonic()
    with Outputs(force) as outputs:
        folder = outputs.folder("--out", out) if out else None
        target_file = outputs.file("--json", json) if json else None
        with progress_bar("runs") as progress:
            done = reproduce_papers(target, settings, progress)
        if folder:
            from experiments.reproduction.report import write_report  # its libraries take a while to load

            write_report(folder, done, settings)
        if target_file:
            write_json(target_file, as_dict(done, settings))
        for one in done:
            _show(one, settings, time.monotonic() - begun, out, details)
    if strict and differing(done):
        raise typer.Exit(1)


def _list(given: Mapping[str, object], json: Path | None, *, force: bool) -> None:
    """The papers that can be reproduced, how long they take, and how to ask for one."""
    for option, value in given.items():
        if value:
            raise RefusedError(f"{option}: no paper is named; flashsim reproduce lists them")
    with Outputs(force) as outputs:
        papers = [load(name) for name in PAPERS.names()]
        if json:
            listed = [{"name": each.name, "title": each.title, "reference": each.reference, "takes": each.takes} for each in papers]
            claims = [{"claims": [claim.id for claim in each.claims]} for each in papers]
            write_json(outputs.file("--json", json), {"papers": [one | two for one, two in zip(listed, claims, strict=True)]})
        say(Table(["paper", "claims", "title", "takes"], [[each.name, len(each.claims), each.title, each.takes] for each in papers]), "")
        say("Run one:   flashsim reproduce PAPER --scale 0.1 --out DIR", "One claim: flashsim reproduce PAPER/CLAIM, such as")
        say(*(f"           {each.claims[0].name}" for each in papers))


def _show(one: Reproduced, settings: Settings, seconds: float, out: Path | None, details: bool) -> None:
    """Five lines, the verdicts, and if asked for everything that a terminal can show."""
    scale = settings.scale
    made = one.results.made.values()
    kept = sum(run.recalled for run in made)
    for head, text in (
        ("What ran", f"{one.paper.name} at {one.paper.scale_in_words(settings)}: {len(made)} runs for {len(one.judgements)} claims"),
        ("What holds", f"{share(one, scale, holding=True)}; {tally([one])} published numbers"),
        ("What does not", share(one, scale, holding=False)),
        ("How long", f"{seconds:.0f} s; {len(made) - kept} runs were made, {kept} kept from before"),
        ("Where to look", f"{out}/report.html" if out else "--details, or --out DIR for a report, DIR/report.html"),
    ):
        say(f"{head:<{_HEAD}}{text}")
    say("", verdict_table(one, scale, details=details))
    if details:
        _show_details(one, settings)


def _show_details(one: Reproduced, settings: Settings) -> None:
    scale = settings.scale
    say("", f"{one.paper.title} ({one.paper.reference}), {one.paper.scale_in_words(settings)}", "")
    for section in one.sections:
        if section.on_terminal:
            say(*section.tables)
            explain(section.text)
            say("")
    notes = dict.fromkeys(each.note_at(scale) for each in one.judgements)
    for note in filter(None, notes):
        claims = ", ".join(each.claim.id for each in one.judgements if each.note_at(scale) == note)
        explain(f"{claims}: {note}", "  ")
    for each in one.judgements:
        if outside := each.outside():
            more = f" and {len(outside) - _NAMED} more" if len(outside) > _NAMED else ""
            explain(f"{each.claim.id}: outside are {'; '.join(outside[:_NAMED])}{more}", "  ")
