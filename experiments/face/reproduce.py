"""``fs.reproduce``: a paper's runs made again, and its claims judged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.face._operation import working
from experiments.face._outcome import Outcome
from experiments.face._units import count, number, text
from experiments.papers.base import PAPERS
from experiments.presentation.plots import scatter_beside
from experiments.presentation.section import Section
from experiments.presentation.tables import as_text
from experiments.reproduction.judging import Reproduced, as_dict, summary
from experiments.reproduction.judging import reproduce as reproduce_papers
from experiments.reproduction.report import write_report
from experiments.runs.jobs import SHIPS_MODEL, Settings
from experiments.runs.outputs import Outputs
from flashsim.core.errors import InvalidParameterError, UnknownNameError


class ExhibitShown:
    """An exhibit of a paper as the report shows it: words, pictures and tables.

    Parameters
    ----------
    sections
        Its parts.
    """

    def __init__(self, sections: Sequence[Section]) -> None:
        self.sections = list(sections)

    def tables(self) -> list[pd.DataFrame]:
        """Its tables."""
        every = [table for section in self.sections for table in section.tables]
        return [table.infer_objects().round(table.attrs["digits"]) for table in every]

    def _repr_html_(self) -> str:
        parts = []
        for section in self.sections:
            parts.append(f"<h4>{escape(section.title)}</h4><p>{escape(section.text)}</p>")
            parts += section.pictures.values()
            parts += [frame.to_html(index=False) for frame in ExhibitShown([section]).tables()]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return "\n\n".join(section.title + "".join(f"\n{as_text(table)}" for table in section.tables) for section in self.sections)


class ReproductionOutcome(Outcome):
    """A paper's claims, judged.

    Parameters
    ----------
    done
        Judgements, exhibits and runs.
    """

    def __init__(self, title: str, provenance: dict[str, Any], done: Sequence[Reproduced], settings: Settings) -> None:
        super().__init__(title, provenance)
        self.done = list(done)
        self.settings = settings

    def summary(self) -> pd.DataFrame:
        """A row a claim: its verdict at this scale, how many of its published numbers are inside, and both numbers in a line each."""
        rows = [
            {
                "claim": each.claim.name,
                "verdict": each.verdict_at(self.settings.scale),
                "inside": str(each.tally),
                "published": each.published,
            }
            | {"measured": each.measured, "tolerance": each.claim.tolerance, "note": each.note_at(self.settings.scale)}
            for one in self.done
            for each in one.judgements
        ]
        return pd.DataFrame(rows)

    def cells(self) -> pd.DataFrame:
        """A row a published number or statement: both sides, and whether ours is inside the tolerance (None: not measured)."""
        rows = [
            {"claim": each.claim.name, "cell": cell.name, "published": cell.published, "measured": cell.measured, "inside": cell.inside}
            for one in self.done
            for each in one.judgements
            for cell in each.cells
        ]
        return pd.DataFrame(rows, columns=["claim", "cell", "published", "measured", "inside"])

    def exhibit(self, name: str) -> ExhibitShown:
        """A table or figure of the paper, such as ``"table3"``, beside ours.

        Raises
        ------
        UnknownNameError
            There is none, or it was not asked for.
        """
        every = {key: list(sections) for one in self.done for key, sections in one.exhibits.items()}
        if name not in every:
            raise UnknownNameError("exhibit", name, every)
        return ExhibitShown(every[name])

    def report(self, folder: str | PathLike[str], *, force: bool = False) -> Path:
        """Write ``report.html``, every table (CSV) and every picture (SVG) into a folder; return the page's path.

        Raises
        ------
        RefusedError
            The folder is not empty, and its files may not be replaced.
        FlashsimError
            It cannot be written.
        """
        with Outputs(force) as outputs:
            write_report(outputs.folder("folder", Path(folder)), self.done, self.settings)
        return Path(folder) / "report.html"

    def _draw(self) -> Figure:
        cells = self.cells()
        both = cells[["published", "measured"]].apply(pd.to_numeric, errors="coerce")
        numbers = cells.assign(**both).replace([np.inf, -np.inf], np.nan).dropna(subset=["published", "measured"])
        return scatter_beside(numbers, "published", "measured", "inside", ("inside", "outside"))


def reproduce(
    target: str | None = None,
    *,
    scale: float = 1.0,
    jobs: int | None = None,
    cluster: str | None = None,
    seed: int = 2009,
    fresh: bool = False,
    devices: str = SHIPS_MODEL,
) -> ReproductionOutcome:
    """Make a paper's runs again, and judge its claims; runs are kept, so that what was interrupted goes on where it stopped.

    Parameters
    ----------
    target
        ``PAPER`` or ``PAPER/CLAIM``; `fs.papers` lists them.
    scale
        Multiplies tuples and memory, above 0 and up to 1.
    jobs
        Processes that work at the same time; one a core by default.
    cluster
        The address of a Dask scheduler whose workers make the runs instead.
    seed
        Of the generated relations.
    fresh
        Whether what is kept of earlier runs is left unused.
    devices
        Below scale 1: ``"ships-model"`` (drives and file system shrink too, so that ratios stay) or ``"as-they-are"``.

    Raises
    ------
    UnknownNameError
        There is no such paper or claim, or nothing of that name becomes of devices.
    InvalidParameterError
        No paper is named; a scale or a number of jobs out of bounds.

    Examples
    --------
    >>> import flashsim as fs
    >>> told = fs.reproduce("do2009/table3-io", scale=0.01)  # doctest: +SKIP
    """
    if target is None:
        named = ", ".join(PAPERS.names())
        raise InvalidParameterError("target", "not given", f"a paper is needed, of {named}, or a claim of one; fs.papers() lists them")
    chosen, multiplied = text(target, "target"), number(scale, "scale", "a number above 0 and up to 1 is needed")
    processes, drawn = os.cpu_count() or 1 if jobs is None else count(jobs, "jobs"), count(seed, "seed", 0)
    settings = Settings(multiplied, processes, drawn, fresh, cluster, text(devices, "devices"))
    with working("runs") as progress:
        done = reproduce_papers(chosen, settings, progress)
    title = "; ".join(
        f"{one.paper.title} ({one.paper.reference}), {one.paper.scale_in_words(settings)}: {summary(one, scale)}" for one in done
    )
    return ReproductionOutcome(title, as_dict(done, settings)["provenance"], done, settings)
