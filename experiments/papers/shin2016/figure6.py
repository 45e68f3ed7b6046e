"""Figure 6: every write is of one page; the paper does not say how pages are read, so that several readings of it are run."""

from __future__ import annotations

from collections.abc import Collection

from experiments.papers.base import Claim, Judgement, judge_holds, load
from experiments.papers.shin2016.measured import Point, Runs, best, compared, curves, near
from experiments.papers.shin2016.runs import DEVICES, METHODS, N_HASH, PER_MB, TRADITIONAL, Setup
from experiments.presentation.section import Section
from experiments.presentation.tables import Entry, Table
from experiments.runs.jobs import Job, Results, Settings

#: MB between the paper's 4 and 112, all of it output buffers: with 4 MB, 512 partitions have one page each.
MEMORY, PARTITIONS = (4, 16, 112), (512, 128, 32, 8)
#: Pages that are read at a time, in words; the fitted reading is that of all runs.
FITTED = 8
READINGS = {1: "page by page", FITTED: f"{FITTED} pages at a time (fitted)", 16: "16 pages at a time", 512: "4 MB at a time"}
_BEST = (MEMORY[-1], PARTITIONS[0])


def setup(memory: int, partitions: int, read: int = FITTED) -> Setup:
    """The original method."""
    return Setup(TRADITIONAL, partitions, memory * PER_MB // partitions, read, page_io=True)


_POINTS: list[Point] = [(memory, f"{partitions} partitions", setup(memory, partitions)) for partitions in PARTITIONS for memory in MEMORY]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Both methods everywhere, and the other readings once."""
    other = [setup(*_BEST, read) for read in READINGS if read != FITTED]
    return [one.by(method).job(settings) for one in (*(point[2] for point in _POINTS), *other) for method in METHODS]


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the best speedups, and that the original method's time does not depend on memory."""
    runs, cells = Runs(results), []
    for drive in DEVICES:
        gain = best(runs.speedup(one, one.by(N_HASH), drive) for _, _, one in _POINTS)
        cells.append(near(f"best speedup, {drive}", float(claim.published[drive][0]), gain, claim.limits["each"]))
    for drive in DEVICES:
        for partitions in PARTITIONS:
            least, most = (runs.seconds(setup(memory, partitions), drive) for memory in (MEMORY[0], MEMORY[-1]))
            ratio = None if least is None or most is None else least / most
            name = f"time of the original with 4 over 112 MB, {partitions} partitions, {drive}"
            limit = claim.limits["help"]
            cells.append(compared(name, f"1 within {limit:g}", ratio, None if ratio is None else abs(ratio - 1) <= limit))
    return judge_holds(claim, cells)


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 6, and the other readings of how pages are read."""
    runs, claim = Runs(results), load("shin2016").claim("fig6")
    text = f"Writes of one page each; {READINGS[FITTED]} are read. Seconds are as at scale 1."
    found = curves(runs, _POINTS, claim, "fig6", "Page-sized I/O (figure 6)", text)
    rows: list[list[Entry]] = [["published", *(float(claim.published[drive][0]) for drive in DEVICES)]]
    for read, name in READINGS.items():
        one = setup(*_BEST, read)
        rows.append([name, *(runs.speedup(one, one.by(N_HASH), drive) for drive in DEVICES)])
    told = (
        f"How many times as fast N-Hash is with {_BEST[0]} MB and {_BEST[1]} partitions, by how pages are read; published: the best of all."
    )
    return [*found, Section("How pages are read", told, [Table(["read", *DEVICES], rows, "fig6-readings")])]
