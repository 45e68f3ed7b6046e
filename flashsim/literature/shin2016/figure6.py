"""Figure 6: every write is of one page; the paper does not say how pages are read, so that several readings of it are run."""

from collections.abc import Collection

from flashsim.literature.base import load
from flashsim.literature.shin2016.measured import Point, Runs, best_speedups, curves
from flashsim.literature.shin2016.runs import DEVICES, N_HASH, PER_MB, TRADITIONAL, Setup
from flashsim.studies.judging.cells import Cell, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

#: MB between the paper's 4 and 112, all of it output buffers: with 4 MB, 512 partitions have one page each.
MEMORY, PARTITIONS = (4, 16, 112), (512, 128, 32)
#: Pages that are read at a time, in words; the fitted reading is that of all other runs.
FITTED = 8
READINGS = {1: "page by page", FITTED: f"{FITTED} pages at a time (fitted)", 512: "4 MB at a time"}
_MOST = (MEMORY[-1], PARTITIONS[0])


def original(partitions: int, read: int = FITTED) -> Setup:
    """The original method: "the output buffer size does not change in page-sized I/O" (section 4.4), whatever the memory."""
    return Setup(TRADITIONAL, partitions, 1, read, page_io=True)


def n_hash(memory: int, partitions: int, read: int = FITTED) -> Setup:
    """N-Hash with circular buffers of all memory."""
    return Setup(N_HASH, partitions, memory * PER_MB // partitions, read, page_io=True)


_POINTS: list[Point] = [
    (memory, f"n = {partitions}", original(partitions), n_hash(memory, partitions)) for partitions in PARTITIONS for memory in MEMORY
]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Both methods everywhere, the other readings once, and buffers that grow."""
    runs = [one for _, _, *pair in _POINTS for one in pair]
    runs += [one for read in READINGS for one in (original(_MOST[1], read), n_hash(*_MOST, read))]
    return [one.job(settings) for one in (*runs, *(one for partitions in PARTITIONS for one in _growing(partitions)))]


def _growing(partitions: int) -> list[Setup]:
    """The original method with buffers of all memory, which are written page by page when full."""
    return [n_hash(memory, partitions).by(TRADITIONAL) for memory in MEMORY]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The best speedups; and that memory does not help the original method, were its buffers to take all of it."""
    runs, help = Runs(results), 1 + claim.limits["help"]
    every = best_speedups(claim, runs, [(slow, fast) for _, _, slow, fast in _POINTS])
    for drive in DEVICES:
        for partitions in PARTITIONS:
            times = [runs.seconds(one, drive) for one in _growing(partitions)]
            words = f"the first at most {help:g} times the last, s"
            every.append(
                statement(f"original with 4 to 112 MB, n = {partitions}, {drive}", words, times, lambda *all: all[0] <= help * all[-1])
            )
    return every


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 6, the other readings of how pages are read, and buffers that grow with memory."""
    runs, claim = Runs(results), load("shin2016").claim("fig6")
    text = f"n partitions, writes of one page each; {READINGS[FITTED]} are read. Seconds are as at scale 1."
    curves_of_figure = curves(runs, _POINTS, claim, "fig6", "Page-sized I/O (figure 6)", text)
    rows: list[list[Entry]] = [["published", *(float(claim.published[drive][0]) for drive in DEVICES)]]
    for read, name in READINGS.items():
        rows.append([name, *(runs.speedup(original(_MOST[1], read), n_hash(*_MOST, read), drive) for drive in DEVICES)])
    reading_text = (
        f"How many times as fast N-Hash is with {_MOST[0]} MB and {_MOST[1]} partitions, by how pages are read; published: the best of all."
    )
    return [
        *curves_of_figure,
        Section("How pages are read", reading_text, [Table(["read", *DEVICES], rows, "fig6-readings")]),
    ]
