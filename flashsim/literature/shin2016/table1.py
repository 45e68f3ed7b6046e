"""Table 1: Grace hash's buffers by memory, and what reading, writing and all of the partition phase take with them.

Drives and CPU are calibrated from the rows of 5 and 200 MB; the other five are predictions.
"""

from collections.abc import Collection

from flashsim.core.units import KIB
from flashsim.literature.shin2016.measured import Runs
from flashsim.literature.shin2016.runs import DEVICES, LABELS, METHODS, N_HASH, PAGE_SIZE, TRADITIONAL, grace_setup
from flashsim.studies.judging.cells import Cell, number
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

#: Rows of the table, MB, and those that drives and CPU are calibrated from.
MEMORY, CALIBRATION = (5, 10, 20, 30, 50, 100, 200), (5, 200)
_WHAT = ("total", "read", "write")
#: Bytes of the relation by section 4.1.
_PRINTED = 2.04e9
#: The columns of the table: a method and what is told of it, and last the speedup.
COLUMNS = [(method, what) for method in (N_HASH, TRADITIONAL) for what in _WHAT]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Both methods in every row, those with the smallest buffers first; none for the parameters."""
    return [grace_setup(memory).by(method).job(settings) for memory in MEMORY for method in METHODS] if "table1" in claims else []


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The parameters, ours and those of the printed size of the relation; or seconds and speedups."""
    if claim.id == "table1":
        return _seconds(claim, Runs(results))
    printed = {"variant": "a relation of 2.04 GB, as printed, and nothing withheld"}
    every = []
    for row, memory in enumerate(MEMORY):
        for setup, more in ((grace_setup(memory), {}), (grace_setup(memory, round(_PRINTED / PAGE_SIZE), 1), printed)):
            ours = {"B": setup.buckets, "O, KB": setup.output * PAGE_SIZE // KIB, "I, KB": setup.input * PAGE_SIZE // KIB}
            every += [
                number(f"{name} with {memory} MB", claim.published[name][row], value, 0, row=name, **more) for name, value in ours.items()
            ]
    return every


def _seconds(claim: Claim, runs: Runs) -> list[Cell]:
    """A row a drive and column; its places are the buffers that are read or written, KB."""
    every = []
    for drive in DEVICES:
        for memory, line in zip(MEMORY, claim.published[drive], strict=True):
            setup = grace_setup(memory)
            for (method, what), published in zip([*COLUMNS, ("", "speedup")], line, strict=True):
                methods = [method] if method else METHODS
                ours = runs.seconds(setup.by(method), drive, what) if method else runs.speedup(setup, setup.by(N_HASH), drive)
                row = f"{drive}, {LABELS[method]} {what}" if method else f"{drive}, speedup"
                place = (setup.input if what == "read" else setup.output) * PAGE_SIZE // KIB
                limit = claim.limits["seconds" if method else "speedup"]
                ids = tuple(runs.id(setup.by(one)) for one in methods)
                every.append(number(f"{row} {memory} MB", published, ours, limit, row=row, place=place, runs=ids))
    return every


def sections(results: Results) -> list[Section]:
    text = "Buffers of Grace hash by equations (1) to (3), for |R| = 268,000 pages, F = 1.2, and 0.975 * 128 pages of memory a MB."
    rows: list[list[Entry]] = [
        [memory, *(getattr(grace_setup(memory), name) for name in ("buckets", "output", "input"))] for memory in MEMORY
    ]
    return [Section("Buffers (table 1)", text, [Table(["MB", "B", "O, pages", "I, pages"], rows, "buffers")])]
