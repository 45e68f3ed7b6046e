"""Figure 5: memory over Grace hash's buffers, and why all are slower near 20 MB."""

from collections.abc import Collection
from dataclasses import replace

from flashsim.literature.base import Cell, Claim, Judgement, judge_holds, load
from flashsim.literature.shin2016.measured import Point, Runs, best, curves, near
from flashsim.literature.shin2016.runs import DEVICES, LABELS, METHODS, N_HASH, Setup, grace_setup
from flashsim.literature.shin2016.table1 import COLUMNS, MEMORY
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


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the best speedups over the rows of table 1, and the dip, which a larger input buffer must take away."""
    runs, cells = Runs(results), []
    for drive in DEVICES:
        gain = best(runs.speedup(one, one.by(N_HASH), drive) for one in map(grace_setup, MEMORY))
        cells.append(near(f"best speedup, {drive}", float(claim.published[drive][0]), gain, claim.limits["each"]))
    for drive in DEVICES:
        before, dip, after = (_with_reads(runs, grace_setup(memory).by(N_HASH), drive) for memory in (_BESIDE[0], _DIP, _BESIDE[1]))
        name, published = f"N-Hash with 20 MB, s, {drive}", "more than with 10 and 30 MB"
        if dip is None or before is None or after is None:
            cells.append(Cell(name, published, None, None))
        else:
            cells.append(Cell(name, published, f"{dip:.2f} against {before:.2f} and {after:.2f}", dip > max(before, after)))
        cells += [_cause(runs, method, drive) for method in METHODS]
    return judge_holds(claim, cells)


def _with_reads(runs: Runs, setup: Setup, drive: str) -> float | None:
    """Seconds, and what the host works for each read besides; reads are as many as at scale 1 too."""
    seconds, reads = runs.seconds(setup, drive), runs.seconds(setup, drive, "reads")
    return None if seconds is None or reads is None else seconds + reads * _PER_READ


def _cause(runs: Runs, method: str, drive: str) -> Cell:
    """Cell that judges whether reading in the dip takes longer than with a larger input buffer and the same output buffers."""
    dip, control = (runs.seconds(setup.by(method), drive, "read") for setup in (grace_setup(_DIP), _CONTROL))
    name, published = f"reads of {LABELS[method]} with 20 MB, s, {drive}", f"more than with an input buffer of {_CONTROL.input * 8} KB"
    if dip is None or control is None:
        return Cell(name, published, None, None)
    return Cell(name, published, f"{dip:.2f} against {control:.2f}", dip > control)


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
