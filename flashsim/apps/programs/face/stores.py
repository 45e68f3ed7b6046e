"""``flashsim stores`` and ``fs.stores``: what a power cut leaves of embedded stores."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from flashsim.apps.programs.embedded_stores import STORES, store_of
from flashsim.apps.programs.store_page import page, verdict
from flashsim.apps.programs.store_survey import SurveySettings, survey
from flashsim.core.activity import activity
from flashsim.core.errors import RefusedError, UnknownNameError, in_one_line
from flashsim.core.processes import cores
from flashsim.experiments.presentation.tables import Table, same
from flashsim.experiments.presentation.terminal import Part, next_steps
from flashsim.operations import fields
from flashsim.operations.fields import Count, Name, Names
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Outcome, OutputFile


def _write_page(outcome: Any, target: Path, _: Path) -> None:
    target.write_text(page(outcome.result, outcome.provenance), encoding="utf-8")


class StoresOutcome(Outcome):
    """Embedded stores, a row for each setting, and what power cuts leave of them."""

    FILES = (
        OutputFile("--page", "FILE.md", "Write the page: what was tried and lost, and the sync that would help.", _write_page, (".md",)),
    )
    result: list[dict[str, Any]]

    def summary(self) -> pd.DataFrame:
        """A row for each setting: version, images, those that fail by kind, and the verdict."""
        rows = [{"images": 0, "share": None} | each | each.get("failing", {}) | {"verdict": verdict(each)} for each in self.result]
        columns = ["store", "setting", "version", "images", "share", "lost", "closed", "torn", "damaged", "closed_empty", "verdict"]
        return pd.DataFrame(rows, columns=columns)

    def as_dict(self) -> dict[str, Any]:
        return {"stores": [each | {"verdict": verdict(each)} for each in self.result]}

    def printout(self) -> Iterator[Part]:
        """A verdict for each setting."""
        rows = self.summary().to_dict("records")
        yield from (self.title, "", Table.of(rows, same("store", "setting", "version", "images", "verdict")))
        yield next_steps("--page FILE.md writes the cuts that were tried, and each loss", "--json FILE has all")


def _stores(value: Any, parameter: str) -> list[str]:
    names = fields.each(fields.text)(value, parameter)
    for name in names:
        if name not in STORES and not name.endswith(".py"):
            raise UnknownNameError("store", name, list(STORES))
        try:
            store_of(name)
        except Exception as problem:  # of a file of the user's own
            raise RefusedError(f"{parameter}: {name}: {in_one_line(problem)}") from None
    return list(dict.fromkeys(names))


def _python(value: Any, parameter: str) -> str:
    if not (path := shutil.which(fields.text(value, parameter))):
        raise RefusedError(f"{parameter}: no program {value!r}")
    return path


@operation
def stores(
    store: Annotated[
        Any,
        Names(
            "Stores, or Python files that define one; all by default.", "STORE", argument=True, parse=_stores, completes=(lambda: STORES,)
        ),
    ] = None,
    *,
    python: Annotated[
        str | None, Name("Python interpreter with the stores' packages; by default the one that runs flashsim.", "FILE", parse=_python)
    ] = None,
    outcomes: Annotated[int, Count("Maximum number of outcomes that are checked per power cut.")] = 60,
    seed: fields.Seed = 0,
    jobs: fields.Jobs = None,
    fresh: fields.Fresh = False,
) -> StoresOutcome:
    """Test embedded stores under power cuts.

    Reports which stores lose acknowledged data, which do not open, and which sync would help.

    Each setting of a store runs a small workload, whose power is cut as by `flashsim crash`. Results are kept: a survey that was
    interrupted goes on. A store whose package is not installed is listed as not installed.

    Examples::

        flashsim stores dbm.dumb --outcomes 10 --page stores.md --json stores.json

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.stores(["sqlite"]).summary()[["setting", "verdict"]]  # doctest: +SKIP
    """
    names = list(STORES) if store is None else store
    settings = SurveySettings(python or sys.executable, outcomes, seed, jobs or cores(), fresh)
    with activity("stores") as progress:
        rows = list(survey(names, settings, progress))
    return StoresOutcome(rows, f"Power cuts of {len(names)} stores in {len(rows)} settings")
