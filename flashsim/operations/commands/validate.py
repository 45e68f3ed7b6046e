"""``flashsim validate``: simulated devices held against measured ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from flashsim.core.activity import activity
from flashsim.core.errors import RefusedError
from flashsim.device import presets
from flashsim.operations.commands.declared import command
from flashsim.operations.commands.shared import Group
from flashsim.operations.face._fields import Flag, Name
from flashsim.operations.face._operation import operation
from flashsim.operations.face._outcome import REPORT, Outcome
from flashsim.operations.face.compare import compare
from flashsim.studies.presentation.terminal import Part
from flashsim.studies.validation import closed_loop, comparison

app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)


@app.callback()
def validate() -> None:
    """Simulated devices held against measured ones.

    Examples::

        flashsim validate hdd --drive toshiba-5400-320gb --trace measured.trace
    """


class ClosedLoopOutcome(Outcome):
    """A drive's model under the requests that were measured on the drive."""

    FILES = (REPORT,)

    def __init__(self, preset: presets.Preset, trace: Path, loop: Any, groups: Any, parts: dict[str, Any], ablated: bool) -> None:
        super().__init__(f"{trace.name} on {preset.name}: {comparison.headline(groups)}")
        self.preset, self.trace, self.loop, self.groups, self.parts, self.ablated = preset, trace, loop, groups, parts, ablated

    def summary(self) -> pd.DataFrame:
        """A row a group of requests: means of both, and the demerit."""
        return comparison.summary_table(self.groups)

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        told = {"drive": self.preset.name, "trace": self.trace.name, "demerit_ms": self.groups[0].demerit}
        told |= {"by_class": vars(comparison.ByClass.of(self.groups))}
        told |= {"groups": {group.name: group.as_dict() for group in self.groups}, "notes": list(self.preset.notes)}
        return told | ({"ablation_demerit_ms": self.parts} if self.ablated else {})

    def printed(self) -> Iterator[Part]:
        """Means, percentiles and demerits."""
        yield from (f"{self.title}\n", comparison.summary_table(self.groups), "", comparison.percentile_table(self.groups))
        if self.parts:
            yield from ("", comparison.ablation_table(self.parts))
        yield from (f"note: {note}" for note in self.preset.notes)

    def _write_report(self, folder: Path) -> None:
        others = [comparison.ablation_table(self.parts)] if self.parts else []
        title = f"{self.trace.name} on {self.preset.name}"
        comparison.write_report(folder, title, self.loop, self.groups, others, self.provenance)


@operation
def hdd(
    *,
    drive: Annotated[str, Name("A preset's name, a TOML file, or DiskSim's FILE.parv.", "PRESET", completes=("presets",))],
    trace: Annotated[str, Name("A closed loop with measured times, such as DiskSim's validation traces.", "FILE", reads=True)],
    ablate: Annotated[bool, Flag("Also run the model without each of its parts in turn.")] = False,
) -> ClosedLoopOutcome:
    """Run the requests that were measured on a drive on its model, and compare the response times.

    A closed loop: the next request comes its think time after the simulated completion. Printed are means, percentiles and the demerit
    figure (the root mean square of the horizontal distance between both cumulative distributions).

    Examples::

        flashsim validate hdd --drive toshiba-5400-320gb --trace measured.trace
        flashsim validate hdd --drive toshiba-5400-320gb --trace measured.trace --json v.json --out-dir validated
    """
    preset, measured = presets.load(drive), Path(trace)
    if preset.kind != "hdd":
        raise RefusedError(f"--drive: {preset.name} is no hard disk")
    with activity("replaying") as progress:
        loop = closed_loop.run(preset, measured, progress=progress)
        parts = dict(comparison.ablate(preset, measured, progress)) if ablate else {}
    return ClosedLoopOutcome(preset, measured, loop, comparison.compare(loop), parts, ablate)


command(hdd, "hdd", app)
command(compare, "joins", app)
