"""Figure 2, bandwidth of writes that are handed over at once; and figures 4 to 6, both methods over memory on the three drives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from flashsim.apps.papers.base import Cell, Claim, Entry, Exhibit, Job, Judged, Runs, Section, Settings, Shown, Table, load
from flashsim.apps.papers.shin2016.runs import DEVICES, LABELS, METHODS, N_HASH, PER_MB, TRADITIONAL, BucketSetup, bandwidths, grace_setup
from flashsim.apps.papers.shin2016.table1 import MEMORY, DriveRuns, published_column
from flashsim.core.units import KIB, MB, MIB, format_size
from flashsim.experiments.bench.aio_report import at_levels, picture_of
from flashsim.experiments.judging.cells import less, limit_statement, number, statement, within
from flashsim.experiments.presentation.plots import series_over

#: Place on a figure's axis, name of its series, and the runs of the original method and of N-Hash.
Point = tuple[float, str, tuple[BucketSetup, BucketSetup]]
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


def fixed_setup(memory: int, partitions: int) -> BucketSetup:
    """The original method; nothing of memory is withheld here: 8 MB are one page for each of 512 partitions."""
    return BucketSetup(TRADITIONAL, partitions, (memory - _INPUT_MB) * PER_MB // partitions, _INPUT_MB * PER_MB)


def single(partitions: int, read: int = _FITTED) -> BucketSetup:
    """The original method: "the output buffer size does not change in page-sized I/O" (section 4.4), whatever the memory."""
    return BucketSetup(TRADITIONAL, partitions, 1, read, page_io=True)


def circular(memory: int, partitions: int, read: int = _FITTED) -> BucketSetup:
    """N-Hash with circular buffers of all memory, a page a write."""
    return BucketSetup(N_HASH, partitions, memory * PER_MB // partitions, read, page_io=True)


def _growing(partitions: int) -> list[BucketSetup]:
    """The original method with buffers of all memory, which are written page by page when full."""
    return [circular(memory, partitions).by(TRADITIONAL) for memory in _MEMORY_6]


def both(setup: BucketSetup) -> tuple[BucketSetup, BucketSetup]:
    return setup.by(TRADITIONAL), setup.by(N_HASH)


POINTS: Mapping[str, list[Point]] = {
    "fig4": [(memory, f"n = {count}", both(fixed_setup(memory, count))) for count in _PARTITIONS for memory in _MEMORY_4],
    "fig5": [(memory, "ours", both(grace_setup(memory))) for memory in sorted({*MEMORY, *_MORE_5})],
    "fig6": [(memory, f"n = {count}", (single(count), circular(memory, count))) for count in _PARTITIONS for memory in _MEMORY_6],
}
_MOST = (_MEMORY_6[-1], _PARTITIONS[0])
_OF_READINGS = {name: (single(_MOST[1], read), circular(*_MOST, read)) for read, name in _READINGS.items()}


def _best(claim: Claim, runs: DriveRuns, points: Sequence[Point]) -> list[Cell]:
    """The published best speedup of each drive, and ours over some points."""
    by_drive = {drive: [runs.speedup(*pair, drive) for _, _, pair in points] for drive in DEVICES}
    best = {drive: None if None in gains else max(filter(None, gains)) for drive, gains in by_drive.items()}
    return [number(f"best speedup, {drive}", claim.published[drive][0], gain, claim.limits["each"]) for drive, gain in best.items()]


def _of_fixed(claim: Claim, runs: DriveRuns) -> list[Cell]:
    hardly, severe = 1 + claim.limits["hardly"], claim.limits["severe"]
    slow, fast = ([runs.seconds(pair[method], "ioDrive") for _, _, pair in POINTS["fig4"]] for method in (0, 1))
    return [
        *_best(claim, runs, POINTS["fig4"]),
        statement("N-Hash, ioDrive, s", f"longest at most {hardly:g} times the shortest", fast, within(hardly)),
        statement("original, ioDrive, s", f"longest at least {severe:g} times", slow, lambda *all: max(all) >= severe * min(all)),
    ]


def _of_grace(claim: Claim, runs: DriveRuns) -> list[Cell]:
    """The best speedups over the rows of table 1, and the dip, which a larger input buffer must take away."""
    every, margin = _best(claim, runs, [point for point in POINTS["fig5"] if point[0] in MEMORY]), claim.limits["margin"]
    for drive in DEVICES:
        beside = [_with_reads(runs, grace_setup(memory).by(N_HASH), drive) for memory in (*_BESIDE, _DIP)]
        name, holds = f"N-Hash with 10, 30 and 20 MB, {drive}", lambda *all: all[-1] > (1 + margin) * max(all[:-1])
        every.append(statement(name, "the last above each, s", beside, holds))
        for method in METHODS:
            reads = [runs.seconds(setup.by(method), drive, "read") for setup in (_CONTROL, grace_setup(_DIP))]
            words = f"the second above, s; the first with an input buffer of {_CONTROL.input * 8} KB"
            every.append(statement(f"reads of {LABELS[method]} with 20 MB, {drive}", words, reads, less(margin)))
    return every


def _with_reads(runs: DriveRuns, setup: BucketSetup, drive: str) -> float | None:
    """Seconds, and what the host works for each read besides; reads are as many as at scale 1 too."""
    seconds, reads = runs.seconds(setup, drive), runs.seconds(setup, drive, "reads")
    return None if seconds is None or reads is None else seconds + reads * _PER_READ


def _of_pages(claim: Claim, runs: DriveRuns) -> list[Cell]:
    every, help = _best(claim, runs, POINTS["fig6"]), 1 + claim.limits["help"]
    for drive in DEVICES:
        for partitions in _PARTITIONS:
            name, words = f"original with 4 to 112 MB, n = {partitions}, {drive}", f"the first at most {help:g} times the last, s"
            times = [runs.seconds(one, drive) for one in _growing(partitions)]
            every.append(statement(name, words, times, lambda *all: all[0] <= help * all[-1]))
    return every


def _figure(claim: str, title: str, runs: DriveRuns) -> list[Section]:
    """Two pictures over memory, a panel a drive: how many times as fast N-Hash is, with the published maximum, and seconds of both."""
    points, paper = POINTS[claim], load("shin2016")
    best = paper.claim(claim).published
    places = dict.fromkeys(f"{memory:g}" for memory, *_ in points)
    every = [(drive, f"{memory:g}", series, pair) for memory, series, pair in points for drive in DEVICES]
    lines = {
        "speedup": [(drive, place, series, runs.speedup(*pair, drive)) for drive, place, series, pair in every],
        "seconds": [(drive, mb, f"{LABELS[one.method]}, {n}", runs.seconds(one, drive)) for drive, mb, n, pair in every for one in pair],
    }
    if all(row[-1] is None for row in lines["seconds"]):
        return []
    lines["speedup"] += [(drive, place, "published, at most", float(best[drive][0])) for drive in DEVICES for place in places]
    if claim == "fig5":  # its points stand in table 1
        table1 = [(drive, method, published_column(drive, method)) for drive in DEVICES for method in METHODS]
        lines["seconds"] += [(drive, f"{mb:g}", f"{LABELS[method]}, paper", s) for drive, method, row in table1 for mb, s in row.items()]
    frames = {what: pd.DataFrame(rows, columns=["drive", "MB", "line", what]) for what, rows in lines.items()}
    pictures = {f"{claim}-{what}": series_over(each, "MB", what, "line", ["drive"], "memory (MB)") for what, each in frames.items()}
    rows = [
        [series, memory, *(each for drive in DEVICES for each in (*(runs.seconds(one, drive) for one in pair), runs.speedup(*pair, drive)))]
        for memory, series, pair in points
    ]
    header = ["", "MB", *(name for drive in DEVICES for name in (f"{drive} original, s", "N-Hash, s", "times as fast"))]
    table = Table(header, rows, claim, runs=[runs.id(fast) for *_, (_, fast) in points])
    return [Section(f"{title} (figure {claim[3:]})", paper.text(claim), [table], pictures)]


def _readings(runs: DriveRuns) -> list[Section]:
    best = load("shin2016").claim("fig6").published
    rows: list[list[Entry]] = [["published", *(float(best[drive][0]) for drive in DEVICES)]]
    rows += [[name, *(runs.speedup(*pair, drive) for drive in DEVICES)] for name, pair in _OF_READINGS.items()]
    text = load("shin2016").text("readings", memory=_MOST[0], partitions=_MOST[1])
    return [Section(_HOW_READ, text, [Table(["read", *DEVICES], rows, "fig6-readings")])]


def _exhibit(claim: str, judge: Callable[[Claim, DriveRuns], list[Cell]], title: str, more: Sequence[BucketSetup] = ()) -> Exhibit:
    """The figure of a claim, those runs with the smallest buffers first; `more` are runs that it does not show."""
    setups = [*(one for *_, pair in POINTS[claim] for one in pair), *more]
    return Judged(setups, partial(_figure, claim, title), runs=DriveRuns, judges={claim: judge})


class _WriteBandwidths(Runs):
    @staticmethod
    def job(drive: str, settings: Settings) -> Job:
        return Job.of(bandwidths, f"bandwidth of writes, {drive}", drive=drive, whole=settings.scale == 1, seed=settings.seed)

    @property
    def bandwidths_by_drive(self) -> dict[str, pd.DataFrame]:
        """Bandwidth by size and level, of each drive."""
        return {drive: pd.DataFrame(runs) for drive in DEVICES if (runs := self.get(drive))}


def _maximum_cells(claim: Claim, runs: _WriteBandwidths) -> list[Cell]:
    """From which size on each drive reaches its maximum, that one write of 1 MB does, and what parallelism gives."""
    rates, limit = {drive: at_levels(frame) for drive, frame in runs.bandwidths_by_drive.items()}, claim.limits["reached"]
    best = {drive: each.max(axis=1) / each.max().max() for drive, each in rates.items()}  # over the levels of each size
    if len(best) < len(DEVICES):
        return [statement("every drive", "measured", [None], bool)]
    shares = {
        "ioDrive with any size": best["ioDrive"].min(),
        "P300 from 64 KB on": best["P300"].loc[64 * KIB :].min(),
        "P300 with 32 KB": best["P300"][32 * KIB],
        "Vertex 3 with 4 KB": best["Vertex 3"][4 * KIB],
        **{f"{drive}, one write of 1 MB": each.loc[MIB, 1] / each.max().max() for drive, each in rates.items()},
    }
    relation = dict.fromkeys(shares, "at least") | dict.fromkeys(("P300 with 32 KB", "Vertex 3 with 4 KB"), "below")
    every = [limit_statement(f"{name}: share of the maximum", relation[name], limit, float(share)) for name, share in shares.items()]
    factor = max(float(each.max().max() / each.min().min()) for each in rates.values())
    return [*every, number("largest factor", claim.published["largest factor"][0], factor, claim.limits["factor"])]


def _rates(runs: _WriteBandwidths) -> list[Section]:
    measured = runs.bandwidths_by_drive
    rates = pd.concat({drive: at_levels(frame) / MB for drive, frame in measured.items()}) if measured else pd.DataFrame()
    rows = [[drive, format_size(size), *row] for (drive, size), *row in rates.itertuples(name=None)]
    text = "MB/s of writes to random places of 8 GiB, as many at once as a column says, and the next ones once all of these are done."
    pictures = {f"fig2-{drive.replace(' ', '-')}": picture_of(frame) for drive, frame in measured.items()}
    table = Table(["drive", "I/O size", *map(str, rates)], rows, "fig2", digits=1)
    return [Section("Bandwidth of writes at once (figure 2)", text, [table], pictures)]


_HOW_READ = "How pages are read"
EXHIBITS: Mapping[str, Exhibit] = {
    "figure2": Judged([*DEVICES], _rates, runs=_WriteBandwidths, judges={"fig2": _maximum_cells}),
    "figure4": _exhibit("fig4", _of_fixed, "Fixed numbers of partitions"),
    "figure5": _exhibit("fig5", _of_grace, "Grace hash's buffers", both(_CONTROL)),
    "figure6": _exhibit("fig6", _of_pages, "Page-sized I/O", [one for count in _PARTITIONS for one in _growing(count)]),
    "readings": Shown([setup for pair in _OF_READINGS.values() for setup in pair], _readings, _HOW_READ, DriveRuns),
}
