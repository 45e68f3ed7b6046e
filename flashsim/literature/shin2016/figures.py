"""Figures 4 to 6: how many times as fast N-Hash is, and what both methods take, over memory on the three drives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from flashsim.literature.base import Cell, Claim, Entry, Exhibit, Job, Results, Section, Settings, Table, load
from flashsim.literature.shin2016.runs import DEVICES, LABELS, METHODS, N_HASH, PER_MB, TRADITIONAL, Setup, grace_setup
from flashsim.literature.shin2016.table1 import MEMORY, DriveRuns, published
from flashsim.studies.judging.cells import less, number, statement, within
from flashsim.studies.presentation.plots import series_over

#: Place on a figure's axis, name of its series, and the runs of the original method and of N-Hash.
Point = tuple[float, str, tuple[Setup, Setup]]
#: MB between the paper's 8 and 452, and an input buffer of 4; the figure leaves out 2 and 8 partitions, which are like 32.
_MEMORY_4, _INPUT_MB = (8, 12, 20, 68, 452), 4
#: MB besides those of table 1.  The paper's least are 4, for which equations (1) to (3) leave no output buffer.
_MORE_5 = (8, 13, 16, 25, 40, 70, 150, 256)
#: The dip, its neighbours in table 1, and another run at the dip: with the input buffer of 10 MB.
_DIP, _BESIDE = 20, (10, 30)
_CONTROL = replace(grace_setup(_DIP), input=grace_setup(_BESIDE[0]).input)
#: Seconds of the host's work for a read, fitted to the rows of 20 MB: their totals less reads and writes are 1.1 s more than the CPU
#: preset's prices, which come from other rows, and they have 10,308 reads.
_PER_READ = 0.0001
#: MB between the paper's 4 and 112, all of it output buffers: with 4 MB, 512 partitions have one page each.
_MEMORY_6 = (4, 16, 112)
_PARTITIONS = (512, 128, 32)
#: Pages that are read at a time, in words; the fitted reading is that of all other runs.
_FITTED = 8
_READINGS = {1: "page by page", _FITTED: f"{_FITTED} pages at a time (fitted)", 512: "4 MB at a time"}


def fixed(memory: int, partitions: int) -> Setup:
    """The original method; nothing of memory is withheld here: 8 MB are one page for each of 512 partitions."""
    return Setup(TRADITIONAL, partitions, (memory - _INPUT_MB) * PER_MB // partitions, _INPUT_MB * PER_MB)


def single(partitions: int, read: int = _FITTED) -> Setup:
    """The original method: "the output buffer size does not change in page-sized I/O" (section 4.4), whatever the memory."""
    return Setup(TRADITIONAL, partitions, 1, read, page_io=True)


def circular(memory: int, partitions: int, read: int = _FITTED) -> Setup:
    """N-Hash with circular buffers of all memory, a page a write."""
    return Setup(N_HASH, partitions, memory * PER_MB // partitions, read, page_io=True)


def _growing(partitions: int) -> list[Setup]:
    """The original method with buffers of all memory, which are written page by page when full."""
    return [circular(memory, partitions).by(TRADITIONAL) for memory in _MEMORY_6]


def _by_partitions(memory: Sequence[int], pair: Callable[[int, int], tuple[Setup, Setup]]) -> list[Point]:
    return [(each, f"n = {partitions}", pair(each, partitions)) for partitions in _PARTITIONS for each in memory]


def both(setup: Setup) -> tuple[Setup, Setup]:
    return setup.by(TRADITIONAL), setup.by(N_HASH)


POINTS: Mapping[str, list[Point]] = {
    "fig4": _by_partitions(_MEMORY_4, lambda *place: both(fixed(*place))),
    "fig5": [(memory, "ours", both(grace_setup(memory))) for memory in sorted({*MEMORY, *_MORE_5})],
    "fig6": _by_partitions(_MEMORY_6, lambda memory, partitions: (single(partitions), circular(memory, partitions))),
}
_MOST = (_MEMORY_6[-1], _PARTITIONS[0])
_OF_READINGS = {name: (single(_MOST[1], read), circular(*_MOST, read)) for read, name in _READINGS.items()}


def _best(claim: Claim, runs: DriveRuns, points: Sequence[Point]) -> list[Cell]:
    """The published best speedup of each drive, and ours over some points."""
    cells = []
    for drive in DEVICES:
        gains = [runs.speedup(*pair, drive) for _, _, pair in points]
        best = None if None in gains else max(gain for gain in gains if gain is not None)
        cells.append(number(f"best speedup, {drive}", claim.published[drive][0], best, claim.limits["each"]))
    return cells


def _of_fixed(claim: Claim, runs: DriveRuns) -> list[Cell]:
    """That memory matters to the original method and not to N-Hash on the ioDrive."""
    hardly, severe = 1 + claim.limits["hardly"], claim.limits["severe"]
    slow, fast = ([runs.seconds(pair[method], "ioDrive") for _, _, pair in POINTS["fig4"]] for method in (0, 1))
    words = f"longest at most {hardly:g} times the shortest", f"longest at least {severe:g} times"
    return [
        *_best(claim, runs, POINTS["fig4"]),
        statement("N-Hash, ioDrive, s", words[0], fast, within(hardly)),
        statement("original, ioDrive, s", words[1], slow, lambda *all: max(all) >= severe * min(all)),
    ]


def _of_grace(claim: Claim, runs: DriveRuns) -> list[Cell]:
    """The best speedups over the rows of table 1, and the dip, which a larger input buffer must take away."""
    every, margin = _best(claim, runs, [point for point in POINTS["fig5"] if point[0] in MEMORY]), claim.limits["margin"]
    for drive in DEVICES:
        beside = [_with_reads(runs, grace_setup(memory).by(N_HASH), drive) for memory in (*_BESIDE, _DIP)]
        holds: Callable[..., bool] = lambda before, after, dip: dip > (1 + margin) * max(before, after)  # noqa: E731
        every.append(statement(f"N-Hash with 10, 30 and 20 MB, {drive}", "the last above each, s", beside, holds))
        for method in METHODS:
            reads = [runs.seconds(setup.by(method), drive, "read") for setup in (_CONTROL, grace_setup(_DIP))]
            words = f"the second above, s; the first with an input buffer of {_CONTROL.input * 8} KB"
            every.append(statement(f"reads of {LABELS[method]} with 20 MB, {drive}", words, reads, less(margin)))
    return every


def _with_reads(runs: DriveRuns, setup: Setup, drive: str) -> float | None:
    """Seconds, and what the host works for each read besides; reads are as many as at scale 1 too."""
    seconds, reads = runs.seconds(setup, drive), runs.seconds(setup, drive, "reads")
    return None if seconds is None or reads is None else seconds + reads * _PER_READ


def _of_pages(claim: Claim, runs: DriveRuns) -> list[Cell]:
    """The best speedups; and that memory does not help the original method, were its buffers to take all of it."""
    every, help = _best(claim, runs, POINTS["fig6"]), 1 + claim.limits["help"]
    for drive in DEVICES:
        for partitions in _PARTITIONS:
            name, times = (
                f"original with 4 to 112 MB, n = {partitions}, {drive}",
                [runs.seconds(one, drive) for one in _growing(partitions)],
            )
            words = f"the first at most {help:g} times the last, s"
            every.append(statement(name, words, times, lambda *all: all[0] <= help * all[-1]))
    return every


@dataclass(frozen=True)
class _Figure(Exhibit):
    """The figure of a claim; `more` are runs that it does not show."""

    claim: str
    title: str
    text: str
    judge: Callable[[Claim, DriveRuns], list[Cell]]
    more: Sequence[Setup] = ()

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        """Both methods everywhere, those with the smallest buffers first."""
        return [one.job(settings) for one in (*(one for *_, pair in POINTS[self.claim] for one in pair), *self.more)]

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        return self.judge(claim, DriveRuns(results))

    def published(self) -> list[tuple[str, str, str, float]]:
        """Seconds that were published: drive, memory, what the line is called, and the value."""
        return []

    def sections(self, results: Results) -> list[Section]:
        """Two pictures over memory, a panel a drive: how many times as fast N-Hash is, with the published maximum, and seconds of both."""
        runs, points, claim = DriveRuns(results), POINTS[self.claim], load("shin2016").claim(self.claim)
        speedups, seconds, rows = [], [], list[list[Entry]]()
        for memory, series, pair in points:
            row: list[Entry] = [series, memory]
            for drive in DEVICES:
                gain = runs.speedup(*pair, drive)
                row += [*(runs.seconds(one, drive) for one in pair), gain]
                speedups.append((drive, f"{memory:g}", series, gain))
                seconds += [(drive, f"{memory:g}", f"{LABELS[one.method]}, {series}", runs.seconds(one, drive)) for one in pair]
            rows.append(row)
        if all(entry is None for row in rows for entry in row[2:]):
            return []
        places = dict.fromkeys(f"{memory:g}" for memory, *_ in points)
        speedups += [(drive, place, "published, at most", float(claim.published[drive][0])) for drive in DEVICES for place in places]
        pictures = {
            f"{self.claim}-{what}": series_over(
                pd.DataFrame(lines, columns=["drive", "MB", "line", what]), "MB", what, "line", ["drive"], "memory, MB"
            )
            for what, lines in (("speedup", speedups), ("seconds", seconds + self.published()))
        }
        header = ["", "MB", *(name for drive in DEVICES for name in (f"{drive} original, s", "N-Hash, s", "times as fast"))]
        table = Table(header, rows, self.claim, runs=[runs.id(fast) for *_, (_, fast) in points])
        return [Section(f"{self.title} (figure {self.claim[3:]})", self.text, [table], pictures)]


class _Grace(_Figure):
    def published(self) -> list[tuple[str, str, str, float]]:
        """Points that stand in table 1."""
        return [
            (drive, f"{memory:g}", f"{LABELS[method]}, paper", seconds)
            for drive in DEVICES
            for method in METHODS
            for memory, seconds in published(drive, method).items()
        ]


class _Readings(Exhibit):
    """Gain with most memory and most partitions by how pages are read, on which the paper is silent."""

    TITLE = "How pages are read"

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        return [setup.job(settings) for pair in _OF_READINGS.values() for setup in pair]

    def sections(self, results: Results) -> list[Section]:
        runs, published = DriveRuns(results), load("shin2016").claim("fig6").published
        rows: list[list[Entry]] = [["published", *(float(published[drive][0]) for drive in DEVICES)]]
        rows += [[name, *(runs.speedup(*pair, drive) for drive in DEVICES)] for name, pair in _OF_READINGS.items()]
        text = f"How many times as fast N-Hash is with {_MOST[0]} MB and {_MOST[1]} partitions, by how pages are read"
        text += "; published: the best of all."
        return [Section(self.TITLE, text, [Table(["read", *DEVICES], rows, "fig6-readings")])]


EXHIBITS: Mapping[str, Exhibit] = {
    "figure4": _Figure(
        "fig4",
        "Fixed numbers of partitions",
        "An input buffer of 4 MB and n output buffers of equal length. Seconds are as at scale 1.",
        _of_fixed,
    ),
    "figure5": _Grace(
        "fig5",
        "Grace hash's buffers",
        "The claim is judged on the memory sizes of table 1; those between, which the paper does not list, also have small input buffers "
        "(8, 13 and 16 MB), and so dips of their own. Seconds are as at scale 1, and without the host's work for each read.",
        _of_grace,
        both(_CONTROL),
    ),
    "figure6": _Figure(
        "fig6",
        "Page-sized I/O",
        f"n partitions, writes of one page each; {_READINGS[_FITTED]} are read. Seconds are as at scale 1.",
        _of_pages,
        [setup for setups in map(_growing, _PARTITIONS) for setup in setups],
    ),
    "readings": _Readings(),
}
