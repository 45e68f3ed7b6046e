"""Measurements of the paper's runs, by setup and drive, and their figures."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from flashsim.literature.shin2016.runs import DEVICES, LABELS, Setup
from flashsim.studies.judging.cells import Cell, number
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.plots import series_over
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Results

#: Place on a figure's axis, name of its series, and the runs of the original method and of N-Hash.
Point = tuple[float, str, Setup, Setup]


class Runs:
    """Measurements by setup and drive."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def get(self, setup: Setup) -> Mapping[str, Mapping[str, float]] | None:
        """All of one run; None where it was not asked for."""
        figures: Mapping[str, Mapping[str, float]] | None = self._results.get(setup.job(self._results.settings))
        return figures

    def id(self, setup: Setup) -> str:
        return setup.job(self._results.settings).id

    def seconds(self, setup: Setup, drive: str, what: str = "total") -> float | None:
        """``total``, ``read``, ``write`` or ``cpu`` seconds, or ``reads``, as at scale 1: they are proportional to the relation."""
        figures = self.get(setup)
        return figures[drive][what] / self._results.settings.scale if figures else None

    def speedup(self, traditional: Setup, n_hash: Setup, drive: str) -> float | None:
        slow, fast = self.seconds(traditional, drive), self.seconds(n_hash, drive)
        return slow / fast if slow is not None and fast else None


def best_speedups(claim: Claim, runs: Runs, pairs: Iterable[tuple[Setup, Setup]]) -> list[Cell]:
    """The published best speedup of each drive, and ours over runs of the original method and of N-Hash."""
    every = list(pairs)
    cells = []
    for drive in DEVICES:
        gains = [runs.speedup(slow, fast, drive) for slow, fast in every]
        best = None if None in gains else max(gain for gain in gains if gain is not None)
        cells.append(number(f"best speedup, {drive}", claim.published[drive][0], best, claim.limits["each"]))
    return cells


def curves(
    runs: Runs,
    points: Sequence[Point],
    claim: Claim,
    name: str,
    title: str,
    text: str,
    published: Sequence[tuple[str, str, str, float]] = (),
) -> list[Section]:
    """Two pictures over memory, a panel a drive: how many times as fast N-Hash is, with the published maximum, and seconds of both.

    Seconds that were published stand beside those: drive, memory, what the line is called, and the value.
    """
    speedups, seconds, rows = [], [], list[list[Entry]]()
    for memory, series, slow, fast in points:
        row: list[Entry] = [series, memory]
        for drive in DEVICES:
            gain = runs.speedup(slow, fast, drive)
            row += [runs.seconds(slow, drive), runs.seconds(fast, drive), gain]
            speedups.append((drive, f"{memory:g}", series, gain))
            seconds += [(drive, f"{memory:g}", f"{LABELS[one.method]}, {series}", runs.seconds(one, drive)) for one in (slow, fast)]
        rows.append(row)
    if all(entry is None for row in rows for entry in row[2:]):
        return []
    places = list(dict.fromkeys(f"{memory:g}" for memory, *_ in points))
    for drive in DEVICES:
        speedups += [(drive, place, "published, at most", float(claim.published[drive][0])) for place in places]
    seconds += published
    header = ["", "MB"]
    for drive in DEVICES:
        header += [f"{drive} original, s", "N-Hash, s", "times as fast"]
    pictures = {
        f"{name}-{what}": series_over(
            pd.DataFrame(lines, columns=["drive", "MB", "line", what]), "MB", what, "line", ["drive"], "memory, MB"
        )
        for what, lines in (("speedup", speedups), ("seconds", seconds))
    }
    ids = [runs.id(fast) for *_, fast in points]
    return [Section(title, text, [Table(header, rows, name, runs=ids)], pictures)]
