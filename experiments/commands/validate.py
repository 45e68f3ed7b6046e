"""``flashsim validate``: simulated devices held against measured ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.shared import CommandWithExamples, Force, Group, JsonFile
from experiments.commands.validate_joins import joins
from experiments.commands.values import completes
from experiments.presentation.progress import progress_bar
from experiments.presentation.terminal import say
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.errors import RefusedError
from flashsim.core.provenance import provenance
from flashsim.device import presets

app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)


@app.callback()
def validate() -> None:
    """Simulated devices held against measured ones.

    Examples::

        flashsim validate hdd --drive toshiba-5400-320gb --trace measured.trace
    """


@app.command("hdd", cls=CommandWithExamples)
def validate_hdd(
    drive: Annotated[
        str,
        typer.Option(
            metavar="PRESET",
            help="A preset's name, a TOML file, or DiskSim's FILE.parv.",
            autocompletion=completes("presets"),
        ),
    ],
    trace: Annotated[Path, typer.Option(metavar="FILE", help="A closed loop with measured times, such as DiskSim's validation traces.")],
    out_dir: Annotated[
        Path | None, typer.Option("--out-dir", metavar="DIR", help="Write report.html, tables (CSV) and the picture (SVG).")
    ] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Also run the model without each of its parts in turn.")] = False,
    json: JsonFile = None,
    force: Force = False,
) -> None:
    """Run the requests that were measured on a drive on its model, and compare the response times.

    A closed loop: the next request comes its think time after the simulated completion. Printed are means, percentiles and the demerit
    figure (the root mean square of the horizontal distance between both cumulative distributions).

    Examples::

        flashsim validate hdd --drive toshiba-5400-320gb --trace measured.trace
        flashsim validate hdd --drive toshiba-5400-320gb --trace measured.trace --json v.json --out-dir validated
    """
    from experiments.validation import closed_loop, comparison  # their libraries take a while to load

    with Outputs(force) as outputs, progress_bar("replaying") as progress:
        outputs.spare("--trace", trace)
        target = outputs.file("--json", json) if json else None
        folder = outputs.folder("--out-dir", out_dir) if out_dir else None
        preset = presets.load(drive)
        if preset.kind != "hdd":
            raise RefusedError(f"--drive: {preset.name} is no hard disk")
        loop = closed_loop.run(preset, trace, progress=progress)
        groups = comparison.compare(loop)
        parts = dict(comparison.ablate(preset, trace, progress)) if ablate else {}
        origin = provenance({"drive": drive, "trace": trace.name})
        if target:
            told = {"drive": preset.name, "trace": trace.name, "demerit_ms": groups[0].demerit}
            told |= {"by_class": vars(comparison.ByClass.of(groups))}
            told |= {"groups": {group.name: group.as_dict() for group in groups}, "notes": list(preset.notes)}
            told |= {"ablation_demerit_ms": parts} if ablate else {}
            write_json(target, told | {"provenance": origin})
        if folder:
            others = [comparison.ablation_table(parts)] if parts else []
            comparison.write_report(folder, f"{trace.name} on {preset.name}", loop, groups, others, origin)
    say(f"{trace.name} on {preset.name}: {comparison.headline(groups)}\n")
    say(comparison.summary_table(groups), "")
    say(comparison.percentile_table(groups))
    if parts:
        say("", comparison.ablation_table(parts))
    for note in preset.notes:
        say(f"note: {note}")


app.command("joins", cls=CommandWithExamples)(joins)
