"""Times of the paper's runs, by setup, and their figures and comparisons."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import pandas as pd

from flashsim.literature.li2009.runs import BASIC, LABELS, Setup
from flashsim.studies.judging.cells import NONE
from flashsim.studies.presentation.plots import series_over
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Table
from flashsim.studies.runs.jobs import Job, Results, Settings

#: The strategies of the paper; with sort-merge before and flashsim's own beside them, all that figures show.
STRATEGIES = ("naive", "page-based", "graph-based")
METHODS = (BASIC, *STRATEGIES, "planned")
#: A panel's title, what stands along its axis, and the run of it.
Point = tuple[str, float, Setup]


class Runs:
    """Measurements by setup."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def value(self, setup: Setup, what: str = "seconds") -> float | None:
        """Seconds or page accesses; None where the run was not asked for."""
        figures: Mapping[str, float] | None = self._results.get(setup.job(self._results.settings))
        return figures[what] if figures else None

    def over_basic(self, setup: Setup) -> float | None:
        mine, basic = self.value(setup), self.value(setup.with_method(BASIC))
        return mine / basic if mine is not None and basic else None

    def saved(self, setup: Setup) -> float | None:
        """Time saved over sort-merge, percent."""
        ratio = self.over_basic(setup)
        return None if ratio is None else 100 * (1 - ratio)


def jobs_of(points: Sequence[Point], settings: Settings) -> list[Job]:
    """The runs of a figure, and of sort-merge beside each."""
    return [one.job(settings) for _, _, setup in points for one in (setup.with_method(BASIC), setup)]


def crossing(points: Sequence[tuple[float, float | None]]) -> float:
    """Place where ratios at ascending places first pass 1, on a line between two places; `NONE` if they do not."""
    for (before, low), (after, high) in pairwise((place, ratio) for place, ratio in points if ratio is not None):
        if low <= 1 < high:
            return before + (after - before) * (1 - low) / (high - low)
    return NONE


def curves(points: Sequence[Point], seconds: Callable[[Setup, float], float | None], title: str, name: str, axis: str) -> list[Section]:
    """Lines of I/O seconds, one a method, and the table of them; `seconds` is told a setup's place along the axis too."""
    rows = [(panel, x, LABELS[setup.method], value) for panel, x, setup in points if (value := seconds(setup, x)) is not None]
    if not rows:
        return []
    frame = pd.DataFrame(rows, columns=["figure", axis, "method", "I/O time, s"])
    wide = frame.pivot_table("I/O time, s", ["figure", axis], "method", sort=False).reset_index()
    columns = wide if wide["figure"].nunique() > 1 else wide.drop(columns="figure")
    table = Table(list(columns.columns), columns.astype(object).values.tolist(), name, digits=3)
    picture = series_over(frame, axis, "I/O time, s", "method", ["figure"], axis)
    return [Section(title, "I/O seconds.", [table], {name: picture}, on_terminal=True)]
