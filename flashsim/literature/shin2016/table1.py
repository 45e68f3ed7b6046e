"""Table 1: Grace hash's buffers by memory, and what reading, writing and all of the partition phase take with them.

Drives and CPU are calibrated from the rows of 5 and 200 MB; the other five are predictions.
"""

from collections.abc import Collection, Iterator
from statistics import median

from flashsim.core.units import KIB
from flashsim.literature.base import Cell, Claim, Judgement, decided, judge_holds, load, not_attempted, traced
from flashsim.literature.shin2016.measured import Runs, near
from flashsim.literature.shin2016.runs import DEVICES, LABELS, METHODS, N_HASH, PAGE_SIZE, TRADITIONAL, grace_setup
from flashsim.studies.presentation.plots import Beside, published_beside_ours
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

#: Rows of the table, MB, and those that drives and CPU are calibrated from.
MEMORY, CALIBRATION = (5, 10, 20, 30, 50, 100, 200), (5, 200)
_WHAT = ("total", "read", "write")
#: The columns of the table: a method and what is told of it, and last the speedup.
COLUMNS = [(method, what) for method in (N_HASH, TRADITIONAL) for what in _WHAT]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Both methods in every row, those with the smallest buffers first; none for the parameters."""
    return [grace_setup(memory).by(method).job(settings) for memory in MEMORY for method in METHODS] if "table1" in claims else []


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the parameters, or the seconds and speedups."""
    return _parameters(claim) if claim.id == "table1-parameters" else _seconds(claim, Runs(results))


def _parameters(claim: Claim) -> Judgement:
    cells = []
    for row, memory in enumerate(MEMORY):
        setup = grace_setup(memory)
        ours = {"B": setup.buckets, "O, KB": setup.output * PAGE_SIZE // KIB, "I, KB": setup.input * PAGE_SIZE // KIB}
        cells += [
            Cell(f"{name} with {memory} MB", claim.published[name][row], value, claim.published[name][row] == value)
            for name, value in ours.items()
        ]
    judged = judge_holds(claim, cells)
    return Judgement(claim, judged.verdict, "21 numbers", judged.measured, cells, scaled=False)


def numbers(claim: Claim, runs: Runs) -> Iterator[tuple[str, int, str, float, float | None]]:
    """Drive, memory, column, published value and ours."""
    for drive in DEVICES:
        for memory, row in zip(MEMORY, claim.published[drive], strict=True):
            setup = grace_setup(memory)
            for (method, what), published in zip(COLUMNS, row, strict=False):
                yield drive, memory, f"{LABELS[method]} {what}", published, runs.seconds(setup.by(method), drive, what)
            yield drive, memory, "speedup", row[-1], runs.speedup(setup, setup.by(N_HASH), drive)


def _seconds(claim: Claim, runs: Runs) -> Judgement:
    cells, predicted, behind = [], [], dict[str, list[str]]()
    for drive, memory, column, published, ours in numbers(claim, runs):
        if ours is None:
            return not_attempted(claim, f"not measured: {drive}, {memory} MB")
        name = f"{drive} {memory} MB, {column} ({'calibrated' if memory in CALIBRATION else 'predicted'})"
        cells.append(near(name, published, ours, claim.limits["speedup" if column == "speedup" else "seconds"]))
        behind[name] = [
            runs.id(grace_setup(memory).by(method)) for method in METHODS if column == "speedup" or column.startswith(LABELS[method])
        ]
        if memory not in CALIBRATION:
            predicted.append((abs(ours / published - 1), cells[-1]))
    errors = [error for error, _ in predicted]
    inside = sum(bool(cell.inside) for _, cell in predicted)
    text = (
        f"{inside} of {len(predicted)} predicted cells inside, median error {100 * median(errors):.1f} %, largest {100 * max(errors):.1f} %"
    )
    holds = all(cell.inside for cell in cells) and median(errors) <= claim.limits["median"]
    calibrated = len(cells) - len(predicted)
    note = f"{calibrated} cells of the rows of 5 and 200 MB calibrate drives and CPU"
    return traced(Judgement(claim, decided(claim, holds), f"{len(cells)} cells", text, cells, note), behind)


def sections(results: Results) -> list[Section]:
    runs, claim = Runs(results), load("shin2016").claim("table1")
    text = "Buffers of Grace hash by equations (1) to (3), for |R| = 268,000 pages, F = 1.2, and 0.975 * 128 pages of memory a MB."
    rows: list[list[Entry]] = [
        [memory, *(getattr(grace_setup(memory), name) for name in ("buckets", "output", "input"))] for memory in MEMORY
    ]
    parameters = Section("Buffers (table 1)", text, [Table(["MB", "B", "O, pages", "I, pages"], rows, "table1-parameters")])
    cells = list(numbers(claim, runs))
    if any(ours is None for *_, ours in cells):
        return [parameters]
    panels = {}
    for drive in DEVICES:
        for column in ("N-Hash total", "original total"):
            row = [(str(memory), published, ours) for one, memory, name, published, ours in cells if (one, name) == (drive, column)]
            panels[f"{drive}, {column}"] = Beside(
                [name for name, *_ in row], [at[1] for at in row], [at[2] for at in row], claim.limits["seconds"]
            )
    header = ["drive", "MB", "row", "what", "published", "ours", "error %"]
    kinds = {memory: "calibrated" if memory in CALIBRATION else "predicted" for memory in MEMORY}
    lines: list[list[Entry]] = [
        [drive, memory, kinds[memory], column, published, ours, 100 * ((ours or 0) / published - 1)]
        for drive, memory, column, published, ours in cells
    ]
    picture = published_beside_ours(panels, "memory, MB", "seconds", share=False)
    note = "Drives and CPU are calibrated from the rows of 5 and 200 MB alone; those between are predictions. Seconds are as at scale 1."
    return [parameters, Section("Seconds and speedups (table 1)", note, [Table(header, lines, "table1")], {"table1": picture})]
