"""Table 1: Grace hash's buffers by memory, and what reading, writing and all of the partition phase take with them.

Drives and CPU are calibrated from the rows of 5 and 200 MB; the other five are predictions.
"""

from collections.abc import Collection, Mapping

from flashsim.core.units import KIB
from flashsim.literature.base import Cell, Claim, Job, Results, Runs, Section, Settings, Table, load
from flashsim.literature.shin2016.runs import DEVICES, LABELS, METHODS, N_HASH, PAGE_SIZE, TRADITIONAL, Setup, grace_setup
from flashsim.studies.judging.cells import number, ratio

#: Rows of the table, MB, and those that drives and CPU are calibrated from.
MEMORY, CALIBRATION = (5, 10, 20, 30, 50, 100, 200), (5, 200)
#: Bytes of the relation by section 4.1.
_PRINTED = 2.04e9
#: The columns of the table: a method and what is told of it, and last the speedup.
COLUMNS = [*((method, what) for method in (N_HASH, TRADITIONAL) for what in ("total", "read", "write")), ("", "speedup")]


class DriveRuns(Runs):
    """Measurements by setup and drive."""

    def seconds(self, setup: Setup, drive: str, what: str = "total") -> float | None:
        """``total``, ``read``, ``write`` or ``cpu`` seconds, or ``reads``, as at scale 1: they are proportional to the relation."""
        by_drive: Mapping[str, Mapping[str, float]] | None = self.get(setup)
        return by_drive[drive][what] / self.settings.scale if by_drive else None

    def speedup(self, traditional: Setup, n_hash: Setup, drive: str) -> float | None:
        return ratio(self.seconds(traditional, drive), self.seconds(n_hash, drive))


def published(drive: str, method: str, what: str = "total") -> dict[int, float]:
    """A column of the table by memory."""
    lines, column = load("shin2016").claim("table1").published[drive], COLUMNS.index((method, what))
    return {memory: float(line[column]) for memory, line in zip(MEMORY, lines, strict=True)}


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Both methods in every row, those with the smallest buffers first; none for the parameters."""
    return [grace_setup(memory).by(method).job(settings) for memory in MEMORY for method in METHODS] if "table1" in claims else []


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The parameters, ours and those of the printed size of the relation; or seconds and speedups."""
    if claim.id == "table1":
        return _seconds(claim, DriveRuns(results))
    every = []
    for row, memory in enumerate(MEMORY):
        printed = grace_setup(memory, round(_PRINTED / PAGE_SIZE), 1)
        for setup, variant in ((grace_setup(memory), ""), (printed, "a relation of 2.04 GB, as printed, and nothing withheld")):
            ours = {"B": setup.buckets, "O, KB": setup.output * PAGE_SIZE // KIB, "I, KB": setup.input * PAGE_SIZE // KIB}
            for name, value in ours.items():
                every.append(number(f"{name} with {memory} MB", claim.published[name][row], value, 0, row=name, variant=variant))
    return every


def _seconds(claim: Claim, runs: DriveRuns) -> list[Cell]:
    """A row a drive and column; its places are the buffers that are read or written, KB."""
    every = []
    for drive in DEVICES:
        for memory, line in zip(MEMORY, claim.published[drive], strict=True):
            setup = grace_setup(memory)
            for (method, what), value in zip(COLUMNS, line, strict=True):
                methods = [method] if method else METHODS
                ours = runs.seconds(setup.by(method), drive, what) if method else runs.speedup(setup, setup.by(N_HASH), drive)
                row = f"{drive}, {LABELS[method]} {what}" if method else f"{drive}, speedup"
                place = (setup.input if what == "read" else setup.output) * PAGE_SIZE // KIB
                limit, ids = claim.limits["seconds" if method else "speedup"], [runs.id(setup.by(one)) for one in methods]
                every.append(number(f"{row} {memory} MB", value, ours, limit, row=row, place=place, runs=tuple(ids)))
    return every


def sections(results: Results) -> list[Section]:
    text = "Buffers of Grace hash by equations (1) to (3), for |R| = 268,000 pages, F = 1.2, and 0.975 * 128 pages of memory a MB."
    setups = [(memory, grace_setup(memory)) for memory in MEMORY]
    rows = [[memory, setup.buckets, setup.output, setup.input] for memory, setup in setups]
    return [Section("Buffers (table 1)", text, [Table(["MB", "B", "O, pages", "I, pages"], rows, "buffers")])]
