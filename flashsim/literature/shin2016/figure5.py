"""Figure 5: memory over Grace hash's buffers, and why all are slower near 20 MB."""

from collections.abc import Callable, Collection
from dataclasses import replace

from flashsim.literature.base import load
from flashsim.literature.shin2016.measured import Point, Runs, best_speedups, curves
from flashsim.literature.shin2016.runs import DEVICES, LABELS, METHODS, N_HASH, Setup, grace_setup
from flashsim.literature.shin2016.table1 import COLUMNS, MEMORY
from flashsim.studies.judging.cells import Cell, less, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.runs.jobs import Job, Results, Settings

#: MB besides those of table 1.  The paper's least are 4, for which equations (1) to (3) leave no output buffer.
_MORE = (8, 13, 16, 25, 40, 70, 150, 256)
#: The dip, its neighbours in table 1, and another run at the dip: with the input buffer of 10 MB.
_DIP, _BESIDE = 20, (10, 30)
_CONTROL = replace(grace_setup(_DIP), input=grace_setup(_BESIDE[0]).input)
#: Seconds of the host's work for a read, fitted to the rows of 20 MB: their totals less reads and writes are 1.1 s more than the CPU
#: preset's prices, which come from other rows, and they have 10,308 reads.
_PER_READ = 0.0001
_POINTS: list[Point] = [(memory, "ours", grace_setup(memory), grace_setup(memory).by(N_HASH)) for memory in sorted({*MEMORY, *_MORE})]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Both methods everywhere, those with the smallest buffers first."""
    return [one.by(method).job(settings) for one in (*(point[2] for point in _POINTS), _CONTROL) for method in METHODS]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The best speedups over the rows of table 1, and the dip, which a larger input buffer must take away."""
    runs, longer = Runs(results), less(claim.limits["margin"])
    every = best_speedups(claim, runs, [(one, one.by(N_HASH)) for one in map(grace_setup, MEMORY)])
    for drive in DEVICES:
        beside = [_with_reads(runs, grace_setup(memory).by(N_HASH), drive) for memory in (*_BESIDE, _DIP)]
        every.append(
            statement(f"N-Hash with 10, 30 and 20 MB, {drive}", "the last above each, s", beside, _last_above(claim.limits["margin"]))
        )
        for method in METHODS:
            reads = [runs.seconds(setup.by(method), drive, "read") for setup in (_CONTROL, grace_setup(_DIP))]
            words = f"the second above, s; the first with an input buffer of {_CONTROL.input * 8} KB"
            every.append(statement(f"reads of {LABELS[method]} with 20 MB, {drive}", words, reads, longer))
    return every


def _last_above(margin: float) -> Callable[..., bool]:
    return lambda before, after, dip: dip > (1 + margin) * max(before, after)


def _with_reads(runs: Runs, setup: Setup, drive: str) -> float | None:
    """Seconds, and what the host works for each read besides; reads are as many as at scale 1 too."""
    seconds, reads = runs.seconds(setup, drive), runs.seconds(setup, drive, "reads")
    return None if seconds is None or reads is None else seconds + reads * _PER_READ


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 5."""
    text = (
        "The claim is judged on the memory sizes of table 1; those between, which the paper does not list, also have small input buffers "
        "(8, 13 and 16 MB), and so dips of their own. Seconds are as at scale 1, and without the host's work for each read."
    )
    paper = load("shin2016")
    published = [
        (drive, f"{memory:g}", f"{LABELS[method]}, paper", float(row[COLUMNS.index((method, "total"))]))
        for drive in DEVICES
        for method in METHODS
        for memory, row in zip(MEMORY, paper.claim("table1").published[drive], strict=True)
    ]
    return curves(Runs(results), _POINTS, paper.claim("fig5"), "fig5", "Grace hash's buffers (figure 5)", text, published)
