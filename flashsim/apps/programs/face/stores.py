"""``flashsim stores`` and ``fs.stores``: what a power cut leaves of embedded stores."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import pandas as pd

from flashsim.apps.programs.store_page import page, verdict
from flashsim.apps.programs.store_survey import SurveySettings, survey
from flashsim.apps.programs.stores.base import STORES
from flashsim.core.activity import activity
from flashsim.core.processes import cores
from flashsim.experiments.presentation.terminal import Explanation, Part
from flashsim.operations import fields
from flashsim.operations.fields import Count, Name, Names
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Outcome, OutputFile

#: Outcomes of each cut that are checked at most.
OUTCOMES = 100
PAGE = OutputFile("--page", "FILE.md", "Write the page.", lambda outcome, target, _: target.write_text(page(outcome)), (".md",))


class StoresOutcome(Outcome):
    """Embedded stores, a row a setting, and what power cuts leave of them."""

    FILES = (PAGE,)

    def summary(self) -> pd.DataFrame:
        """A row a setting: package, version, images that were checked, those that fail by kind, and the verdict."""
        rows = [each | {"verdict": verdict(each)} | each.get("failing", {}) for each in self.result]
        columns = ["store", "setting", "package", "version", "images", "share", "lost", "closed", "torn", "unborn", "verdict"]
        return pd.DataFrame(rows, columns=columns)

    def as_dict(self) -> dict[str, Any]:
        return {"stores": [each | {"verdict": verdict(each)} for each in self.result]}

    def printout(self) -> Iterator[Part]:
        """Verdicts, a line a setting."""
        yield from (self.title, "", self.summary()[["store", "setting", "version", "images", "verdict"]])
        yield Explanation("--page writes what was tried and what was lost, with the smallest recipe of each loss; --json has all.")


@operation
def stores(
    store: Annotated[
        Any, Names("Stores, or files of one's own; all by default.", "STORE", argument=True, completes=(STORES.names,))
    ] = None,
    *,
    python: Annotated[str | None, Name("The Python that has the stores' packages; by default the one that runs flashsim.", "FILE")] = None,
    outcomes: Annotated[int, Count("Outcomes of each cut that are checked at most: all of them, if there are no more.")] = OUTCOMES,
    seed: fields.Seed = 0,
    jobs: fields.Jobs = None,
    fresh: fields.Fresh = False,
) -> StoresOutcome:
    """Cut the power of embedded stores: what is lost of a few acknowledged transactions, which store does not open, and which sync would help.

    Each setting of a store runs a small workload, which `flashsim crash` cuts. Results are kept: a survey that was interrupted goes on
    where it stopped. A store whose package is not installed is listed as that.

    Examples::

        flashsim stores tinydb sqlite --page stores.md --json stores.json

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.stores(["sqlite"]).summary()[["setting", "verdict"]]  # doctest: +SKIP
    """
    names = STORES.names() if store is None else store
    settings = SurveySettings(python or sys.executable, outcomes, seed, jobs or cores(), fresh)
    with activity("stores") as progress:
        rows = list(survey(names, settings, progress))
    return StoresOutcome(rows, f"Power cuts of {len(set(names))} stores in {len(rows)} settings")
