"""Figures 14 and 15: reads that are faster and writes that are slower, by a factor."""

from collections.abc import Collection

from flashsim.literature.li2009.measured import METHODS, STRATEGIES, Point, Runs, curves, jobs_of
from flashsim.literature.li2009.runs import BASIC, LABELS, Setup
from flashsim.studies.judging.cells import Cell, rising, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

_LAMBDAS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
_SELECTIVITIES = {14: 0.05, 15: 0.2}
_POINTS: list[Point] = [
    (f"figure {figure}: selectivity {selectivity:g}", factor, Setup(method, selectivity))
    for figure, selectivity in _SELECTIVITIES.items()
    for method in METHODS
    for factor in _LAMBDAS
]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every method once: its page accesses are priced anew."""
    return jobs_of(_POINTS, settings)


def _seconds(runs: Runs, setup: Setup, factor: float) -> float | None:
    """Seconds of reads, divided by the factor, and of writes, multiplied by the factor (section IV H)."""
    read, write = runs.value(setup, "read"), runs.value(setup, "write")
    return None if read is None or write is None else read / factor + write * factor


def _saved(runs: Runs, setup: Setup, factor: float) -> float | None:
    mine, basic = (_seconds(runs, one, factor) for one in (setup, setup.with_method(BASIC)))
    return None if mine is None or not basic else 100 * (1 - mine / basic)


def cells(claim: Claim, results: Results) -> list[Cell]:
    """What each strategy saves, which rises with the factor, and the strategies at the greatest factor, which come together."""
    runs, every, limit = Runs(results), list[Cell](), claim.limits["points"]
    for figure, selectivity in _SELECTIVITIES.items():
        saved = {method: [_saved(runs, Setup(method, selectivity), factor) for factor in _LAMBDAS] for method in STRATEGIES}
        for method, values in saved.items():
            every.append(statement(f"{method} saves, figure {figure}, %", "rising", values, rising(claim.limits["rise"]), 0, digits=1))
        name, last = f"strategies save, lambda = 3, figure {figure}, %", [values[-1] for values in saved.values()]
        words = f"within {limit:g} points"
        every.append(statement(name, words, last, lambda *all: max(all) - min(all) <= limit, 0, digits=1))
    return every


def sections(results: Results) -> list[Section]:
    """The counterparts of both figures, and the page accesses that are priced."""
    runs = Runs(results)
    lines = curves(_POINTS, lambda *place: _seconds(runs, *place), "Reads and writes (figures 14 and 15)", "fig14-15", "lambda")
    rows: list[list[Entry]] = []
    for figure, selectivity in _SELECTIVITIES.items():
        for method in METHODS:
            kinds = ("sequential_reads", "random_reads", "sequential_writes", "random_writes")
            rows.append([figure, LABELS[method], *(runs.value(Setup(method, selectivity), kind) for kind in kinds)])
    header = ["figure", "method", "sequential reads", "random reads", "sequential writes", "random writes"]
    text = (
        "Page accesses; a sequential one goes on where the last one of its kind ended, so that the first page of a run is a random write."
    )
    return [*lines, Section("Page accesses", text, [Table(header, rows, "accesses", digits=0)])]
