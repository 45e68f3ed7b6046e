"""``flashsim validate ssd`` and ``fs.validate``: presets of flash drives held against what others measured on the drives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.activity import activity
from flashsim.operations import fields
from flashsim.operations.fields import Field, Flag, Number
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Outcome
from flashsim.studies.presentation.plots import Beside, published_beside_ours
from flashsim.studies.presentation.tables import Table
from flashsim.studies.presentation.terminal import Explanation, Part
from flashsim.studies.runs.jobs import Settings
from flashsim.studies.validation import published

_CLAIMS = ("first", "steady", "amplification", "tail", "cliff")
_claims = fields.each(fields.choice(*_CLAIMS))
#: Columns of the table, and those that only experiments fill.
_COLUMNS = ("claim", "drive", "at", "published", "simulated", "difference", "null", "inside", "rests on")


class PublishedOutcome(Outcome):
    """Published measurements of drives beside the same of their presets, fitted and predicted numbers apart."""

    def printout(self) -> Iterator[Part]:
        """A table of all numbers, and the verdict on each claim with its source and the cause of a difference."""
        numbers = self.result.rows()
        columns = [*_COLUMNS, *(["variant"] if any(row["variant"] for row in numbers) else [])]
        rows = [[self._entry(row, name) for name in columns] for row in numbers]
        scale = self.result.results.settings.scale
        if scale < published.JUDGED:
            small = f"At scale {scale:g} parts of drives are small: below scale {published.JUDGED} numbers are not judged."
            yield from (Explanation(small), "")
        yield from (Explanation(self.title), "", Table(columns, rows, "numbers", digits=3), "")
        for each in self.result.judgements:
            claim = each.claim
            what = ", ".join(filter(None, [claim.title, claim.source, claim.values["unit"], claim.tolerance]))
            yield Explanation(f"{claim.id}: {each.verdict.value} ({what}). {each.note_at(1)}".rstrip(". ") + ".", "  ")

    @staticmethod
    def _entry(row: Mapping[str, Any], name: str) -> Any:
        if name == "inside":
            return {True: "yes", False: "no"}.get(row[name], "-")
        return f"{row[name]:+.1%}" if name == "difference" and row[name] is not None else row[name]

    def summary(self) -> pd.DataFrame:
        """A row a published number: both sides, the null model's, and whether it was fitted or predicted."""
        return pd.DataFrame(self.result.rows())

    def _draw(self) -> Figure:
        panels = {}
        for each in self.result.judgements:
            names = [cell.name for cell in each.cells]
            numbers = [float(cell.published or 0) for cell in each.cells]
            panels[each.claim.id] = Beside(names, numbers, [cell.values[0] for cell in each.cells], each.claim.limits["each"])
        return published_beside_ours(panels, "", "", share=False)


@operation
def validate(
    *,
    claim: Annotated[Any, Field(f"One of {', '.join(_CLAIMS)}; all by default.", "NAME", _claims, several=True)] = None,
    scale: Annotated[
        float, Number("Size of the simulated parts of drives; 1: 1.5 million units, 6 GB, and below it nothing is judged.", "F")
    ] = 1.0,
    experiments: Annotated[bool, Flag("Also make the runs that show why a claim differs.")] = False,
    jobs: fields.Jobs = None,
    seed: fields.Seed = 0,
    fresh: fields.Fresh = False,
) -> PublishedOutcome:
    """Run published workloads on presets of flash drives, and judge how near they come: fitted and predicted numbers apart.

    Random writes of 4 KiB on full drives, first and in steady state; write amplification by what is in use; the 99.9th percentile of
    latencies. Simulated are parts of drives. Results are kept, so that an interrupted run goes on where it stopped.

    Examples::

        flashsim validate ssd --claim first --scale 0.1
        flashsim validate ssd --json ssd.json

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.validate(claim="amplification")  # doctest: +SKIP
    """
    settings = Settings(scale, jobs or os.cpu_count() or 1, seed, fresh)
    with activity("runs") as progress:
        return PublishedOutcome(published.validate(claim or _CLAIMS, settings, progress, experiments=experiments))
