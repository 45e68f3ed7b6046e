"""Table 1: Grace hash's buffers by memory, and what reading, writing and all of the partition phase take with them.

Drives and CPU are calibrated from the rows of 5 and 200 MB; the other five are predictions, and what each assumption about the drives'
inside makes of three of them is shown.

``python -m flashsim.apps.papers.shin2016.table1`` prints the file of the CPU preset ``hexacore-2016``, whose prices are solved from those
rows, and from nothing else.  No device is simulated.  Total less read and write seconds of the rows of 5 and 200 MB, the mean of three
drives, are four numbers: of N-Hash and of the original method.  They give three prices, by least squares: of a tuple, of a request to the
drive, and of a call, which hands over all requests of a psync together.
"""

from collections.abc import Mapping
from itertools import product
from statistics import fmean, median

import numpy as np

from flashsim.apps.papers.base import Cell, Claim, Entry, Exhibit, Job, Judged, Runs, Section, Settings, Shown, Table, load
from flashsim.apps.papers.shin2016.runs import (
    CPU,
    DEVICES,
    LABELS,
    METHODS,
    N_HASH,
    PAGE_SIZE,
    TRADITIONAL,
    TUPLES,
    VARIANTS,
    BucketSetup,
    grace_setup,
    run_variants,
)
from flashsim.core.units import KIB, SECONDS
from flashsim.execution.cpu import DEFAULT, CpuModel
from flashsim.execution.requests import HOST, Work
from flashsim.experiments.judging.cells import number, ratio

#: Rows of the table, MB, and those that drives and CPU are calibrated from.
MEMORY, CALIBRATION = (5, 10, 20, 30, 50, 100, 200), (5, 200)
#: Bytes of the relation by section 4.1.
_PRINTED = 2.04e9
#: The columns of the table: a method and what is told of it, and last the speedup.
COLUMNS = [*((method, what) for method in (N_HASH, TRADITIONAL) for what in ("total", "read", "write")), ("", "speedup")]


class DriveRuns(Runs):
    """Measurements by setup and drive."""

    def seconds(self, setup: BucketSetup, drive: str, what: str = "total") -> float | None:
        """``total``, ``read``, ``write`` or ``cpu`` seconds, or ``reads``, as at scale 1: they are proportional to the relation."""
        by_drive: Mapping[str, Mapping[str, float]] | None = self.get(setup)
        return by_drive[drive][what] / self.settings.scale if by_drive else None

    def speedup(self, traditional: BucketSetup, n_hash: BucketSetup, drive: str) -> float | None:
        return ratio(self.seconds(traditional, drive), self.seconds(n_hash, drive))


def published_column(drive: str, method: str, what: str = "total") -> dict[int, float]:
    """A column of the table by memory."""
    lines, column = load("shin2016").claim("table1").published[drive], COLUMNS.index((method, what))
    return {memory: float(line[column]) for memory, line in zip(MEMORY, lines, strict=True)}


def _parameters(claim: Claim, runs: DriveRuns) -> list[Cell]:
    every = []
    for row, memory in enumerate(MEMORY):
        printed = grace_setup(memory, round(_PRINTED / PAGE_SIZE), 1)
        for setup, variant in ((grace_setup(memory), ""), (printed, claim.stated[0])):
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
                every.append(number(f"{row} {memory} MB", value, ours, limit, row=row, place=place, runs=tuple(ids), follows=not method))
    return every


def _buffers(runs: DriveRuns) -> list[Section]:
    text = "Buffers of Grace hash by equations (1) to (3), for |R| = 268,000 pages, F = 1.2, and 0.975 * 128 pages of memory a MB."
    rows = [[memory, setup.buckets, setup.output, setup.input] for memory in MEMORY for setup in [grace_setup(memory)]]
    return [Section("Buffers (table 1)", text, [Table(["MB", "B", "O, pages", "I, pages"], rows, "buffers")])]


class _Varied(Runs):
    """On drives that differ in one assumption, all in one pass, with a share of the relation: enough for rows whose buffers are small."""

    share = 0.1

    @staticmethod
    def job(setup: BucketSetup, settings: Settings) -> Job:
        label, scale = f"{setup.name}, drives that differ in one assumption", settings.scale * _Varied.share
        return Job.of(run_variants, label, setup=vars(setup), scale=scale, seed=settings.seed)


#: Rows that show what the drives' inside matters.
_ROWS, _TITLE = (10, 20, 30), "What the drives' inside matters"
_VARIED = {(memory, method): grace_setup(memory).by(method) for memory in _ROWS for method in METHODS}


def _sensitivity(runs: _Varied) -> list[Section]:
    made = {place: runs.get(setup) for place, setup in _VARIED.items()}
    if not all(made.values()):
        return []
    rows: list[list[Entry]] = [[variant] for variant in VARIANTS]
    for row, drive, what in product(rows, DEVICES, ("read", "write")):
        its = {(memory, method): published_column(drive, method, what)[memory] for memory, method in made}
        ours = {place: run[f"{drive}, {row[0]}"][what] / (runs.settings.scale * runs.share) for place, run in made.items()}
        errors = [100 * (ours[place] / its[place] - 1) for place in made]
        row.append(f"{median(map(abs, errors)):.0f} (worst {max(errors, key=abs):+,.0f})")
    header = ["drives", *(f"{drive}: {what}, %" for drive in DEVICES for what in ("reads", "writes"))]
    text = load("shin2016").text("sensitivity", sizes=", ".join(map(str, _ROWS)))
    return [Section(_TITLE, text, [Table(header, rows, "sensitivity")])]


#: Both methods in every row, those with the smallest buffers first.
_EVERY = [grace_setup(memory).by(method) for memory in MEMORY for method in METHODS]
_JUDGES = {"table1": _seconds, "table1-parameters": _parameters}
EXHIBITS: Mapping[str, Exhibit] = {
    "table1": Judged({"table1": _EVERY}, _buffers, runs=DriveRuns, judges=_JUDGES),
    "sensitivity": Shown([*_VARIED.values()], _sensitivity, _TITLE, _Varied),
}

#: Commands to the drive, of at most 128 KiB, and calls of the runs that calibrate, counted by these runs.
COUNTED: Mapping[tuple[str, int], tuple[int, int]] = {
    (N_HASH, 5): (559_806, 4108),
    (TRADITIONAL, 5): (286_034, 271_006),
    (N_HASH, 200): (33_658, 174),
    (TRADITIONAL, 200): (33_522, 330),
}
#: Work on every tuple, which is read from a page, hashed and copied.  The sum of the prices is known, and is divided equally.
_EVERY_TUPLE = (Work.READ_TUPLE, Work.HASH, Work.WRITE_TUPLE)
#: "In a hexacore 3.2GHz Linux machine" (section 2.4).
_CORES = 6


def host_seconds(method: str, memory: int) -> float:
    """Published total less read and write seconds, the mean of the drives."""
    total, read, write = ([published_column(drive, method, what)[memory] for drive in DEVICES] for what in ("total", "read", "write"))
    return fmean(all - reads - writes for all, reads, writes in zip(total, read, write, strict=True))


def fitted_cpu() -> tuple[CpuModel, list[str]]:
    """The preset, its prices rounded, and what is said above them."""
    counts = np.array([[TUPLES, *COUNTED[cell]] for cell in COUNTED], np.float64)
    seconds = np.array([host_seconds(*cell) for cell in COUNTED])
    prices = np.linalg.lstsq(counts, seconds * SECONDS, rcond=None)[0]
    per_tuple, per_request, per_call = (float(f"{price:.3g}") for price in prices)
    third = float(f"{per_tuple / len(_EVERY_TUPLE):.3g}")
    source = f"fitted: shin2016, table 1, rows of {' and '.join(map(str, CALIBRATION))} MB"
    sources = {f"user.{kind}": f"{source}: a third of {per_tuple:g} ns a tuple" for kind in _EVERY_TUPLE}
    sources |= {f"user.{kind}": "estimate: as much; the paper's program does none" for kind in Work if kind not in _EVERY_TUPLE}
    sources |= {f"user.{Work.PAGE}": "in the price of a call", f"user.{DEFAULT}": "estimate: as much"}
    sources |= {f"kernel.{kind}.{part}": source for kind in ("hdd", "ssd") for part in ("per_request", "per_byte", "per_call")}
    kernel = [dict.fromkeys(("hdd", "ssd"), price) for price in (per_request, 0.0, per_call)]
    user: dict[str, float] = dict.fromkeys([*Work, DEFAULT], third) | {Work.PAGE: 0.0}
    model = CpuModel(CPU, user, kernel[0], kernel[1], sources, cores={HOST: _CORES}, per_call=kernel[2], year=2016)
    cells = zip(COUNTED, seconds, counts @ prices / SECONDS, strict=True)
    return model, [*_COMMENTS, *(f"  {method} {memory} MB: {value:.3f}, {ours:.3f}" for (method, memory), value, ours in cells)]


_COMMENTS = (
    "The machine of Shin et al. (SAC 2016): six cores of 3.2 GHz under Linux; their program is a single thread.",
    "",
    "Printed by python -m flashsim.apps.papers.shin2016.table1, whose beginning says how every price was fitted, and to",
    "which cells.",
    "Whatever rests on these prices is fitted. Seconds beside those of reads and writes, published and as fitted:",
)

if __name__ == "__main__":
    model, comments = fitted_cpu()
    print(model.as_toml(comments), end="")
