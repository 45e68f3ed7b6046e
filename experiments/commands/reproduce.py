"""``flashsim reproduce``: make a paper's runs again and judge every claim of it."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from experiments.commands.outputs import Outputs, write_json
from experiments.commands.progress import progress_bar
from experiments.commands.shared import Force, JsonFile
from experiments.reproduction.judging import Reproduced, as_dict, differing, summary, tally, verdict_table
from experiments.reproduction.judging import reproduce as reproduce_papers
from experiments.runs.jobs import Settings

#: So many cells outside the tolerance are named on a terminal; the report names all.
_NAMED = 3


def reproduce(
    target: Annotated[str | None, typer.Argument(metavar="[PAPER[/CLAIM]]", help="What to reproduce; without it, every paper.")] = None,
    scale: Annotated[float, typer.Option("--scale", metavar="F", help="Multiplies tuples and memory, above 0 and up to 1.")] = 1.0,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Processes at the same time; one a core by default.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers make the runs, such as tcp://host:8786."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write report.html, tables (CSV) and pictures (SVG).")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a claim differs.")] = False,
    json: JsonFile = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the generated relations.")] = 2009,
    fresh: Annotated[bool, typer.Option("--fresh", help="Leave results of earlier runs unused.")] = False,
    force: Force = False,
) -> None:
    """Make a paper's runs again, and judge every claim: reproduced, fitted, differs or not attempted.

    Both numbers are printed whatever the verdict. Results are kept, so that an interrupted run goes on where it stopped. The exit code is 0
    whatever the verdicts, unless --strict is given.

    Examples::

        flashsim reproduce do2009 --scale 0.01
        flashsim reproduce do2009/table3-io --scale 0.01 --json table3.json
        flashsim reproduce do2009 --scale 0.01 --out results/do2009
    """
    settings = Settings(scale, os.cpu_count() or 1 if jobs is None else jobs, seed, fresh, cluster)
    with Outputs(force) as outputs:
        folder = outputs.folder("--out", out) if out else None
        target_file = outputs.file("--json", json) if json else None
        with progress_bar("runs") as progress:
            done = reproduce_papers(target, settings, progress)
        for one in done:
            _show(one, scale)
        if folder:
            from experiments.reproduction.report import write_report  # its libraries take a while to load

            write_report(folder, done, settings)
            typer.echo(f"\nReport, tables and pictures: {out}/report.html")
        else:
            typer.echo("\nAll comparisons, tables and pictures: add --out DIR, which writes DIR/report.html.")
        if target_file:
            write_json(target_file, as_dict(done, settings))
    if strict and differing(done):
        raise typer.Exit(1)


def _show(one: Reproduced, scale: float) -> None:
    typer.echo(f"{one.paper.title} ({one.paper.reference}), scale {scale:g}\n")
    for section in one.sections:
        if section.on_terminal:
            for table in section.tables:
                typer.echo(table.as_text())
            typer.echo(section.text + "\n" if section.text else "")
    typer.echo(f"Claims: {summary(one, scale)}; {tally([one])} published numbers inside")
    typer.echo(verdict_table(one, scale).as_text() + "\n")
    notes = dict.fromkeys(each.note_at(scale) for each in one.judgements)
    for note in filter(None, notes):
        claims = ", ".join(each.claim.id for each in one.judgements if each.note_at(scale) == note)
        typer.echo(fill(f"{claims}: {note}", 110, subsequent_indent="  "))
    for each in one.judgements:
        if outside := each.outside():
            more = f" and {len(outside) - _NAMED} more" if len(outside) > _NAMED else ""
            typer.echo(fill(f"{each.claim.id}: outside are {'; '.join(outside[:_NAMED])}{more}", 110, subsequent_indent="  "))
