"""TPC-C: figures 3.1 (a) to (c), 3.6 and 3.7, and the pages of TAC that are not valid."""

from collections.abc import Collection

from flashsim.literature.do2012.runs import DESIGNS, DISKS, PUBLISHED, STEADY, Disks, Runs, job, of_readings, tpc_c
from flashsim.literature.do2012.shown import ramp_up, speedups
from flashsim.pools.setup import PoolSetup
from flashsim.studies.judging.cells import Cell, number, rising, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

_WAREHOUSES, _LIMITS = (1000, 2000, 4000), (10, 50, 90)
_MIDDLE, _LARGEST = 2000, 4000
_COMPARED = ("none", "dw", "lc", "tac")


def _setups(claim: str, disks: Disks) -> list[PoolSetup]:
    match claim:
        case "fig3.7":
            return [tpc_c(_LARGEST, "lc", disks, limit) for limit in _LIMITS]
        case "tac-waste":
            return [tpc_c(size, design, disks) for size in _WAREHOUSES for design in _COMPARED[1:]]
    return [tpc_c(size, design, disks) for size in _WAREHOUSES for design in _COMPARED]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every design on every database, and LC with other limits."""
    return [
        job(setup, settings)
        for claim in ("fig3.1-c", "fig3.7", "tac-waste")
        if claim in claims
        for each in DISKS
        for setup in _setups(claim, each)
    ]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The cells of one of the claims, with each reading of the disks."""
    of_claim, runs = {"fig3.1-c": _speedups, "fig3.7": _limits, "tac-waste": _waste}[claim.id], Runs(results)
    return of_readings(lambda disks: of_claim(claim, runs, disks))


def _speedups(claim: Claim, runs: Runs, disks: Disks) -> list[Cell]:
    lc = tpc_c(_MIDDLE, "lc", disks)
    return [
        number(name, published, runs.over(lc, tpc_c(_MIDDLE, design, disks)), claim.limits["each"])
        for (name, (published,)), design in zip(claim.published.items(), ("none", "dw", "tac"), strict=True)
    ]


def _limits(claim: Claim, runs: Runs, disks: Disks) -> list[Cell]:
    most = tpc_c(_LARGEST, "lc", disks, _LIMITS[-1])
    return [
        number(name, published, runs.over(most, tpc_c(_LARGEST, "lc", disks, limit)), claim.limits["each"])
        for (name, (published,)), limit in zip(claim.published.items(), _LIMITS, strict=False)
    ]


def _invalid(runs: Runs, setup: PoolSetup) -> float | None:
    result = runs.series(setup)
    return None if result is None else 100 * result.filled("ssd_invalid", slice(-STEADY, None))


def _waste(claim: Claim, runs: Runs, disks: Disks) -> list[Cell]:
    waste = [_invalid(runs, tpc_c(size, "tac", disks)) for size in _WAREHOUSES]
    others = [_invalid(runs, tpc_c(size, design, disks)) for size in _WAREHOUSES for design in ("dw", "lc")]
    small, middle, large = waste
    return [
        *(
            number(name, published, ours, claim.limits["each"])
            for (name, (published,)), ours in zip(claim.published.items(), waste, strict=True)
        ),
        statement("TAC, 1K, 4K and 2K, %", "rising", [small, large, middle], rising(claim.limits["rise"]), digits=1),
        statement("DW and LC, %", "none", others, lambda *all: not any(all), 0, digits=1),
    ]


def sections(results: Results) -> list[Section]:
    """Throughput, speedups and what devices do in the last two hours, and throughput from the beginning."""
    runs = Runs(results)
    sizes = [(f"{size}", lambda design, disks, size=size: tpc_c(size, design, disks)) for size in _WAREHOUSES]
    parts = [*speedups("TPC-C (figure 3.1 a to c)", "tpc-c", "warehouses", sizes, _COMPARED, runs)]
    lines = {f"{size} warehouses": {DESIGNS[design]: tpc_c(size, design, PUBLISHED) for design in _COMPARED} for size in _WAREHOUSES[1:]}
    parts += ramp_up("TPC-C from the beginning (figure 3.6), disks as in table 3.1", "tpc-c-ramp-up", lines, runs)
    rows: list[list[Entry]] = []
    for disks in DISKS:
        for limit in _LIMITS:
            setup = tpc_c(_LARGEST, "lc", disks, limit)
            if (series := runs.series(setup)) is not None:
                last = slice(-STEADY, None)
                newer = 100 * series.filled("ssd_newer", last)
                rows.append([disks.name, limit, runs.steady(setup), series.rate("cleanings", last), newer])
    table = Table(["disks", "lambda, %", "transactions/s", "cleaner's writes/s", "newer than disk, % of the SSD"], rows, "tpc-c-lambda", 1)
    return [*parts, *([Section("LC with 4,000 warehouses by lambda (figure 3.7)", "", [table], on_terminal=True)] if rows else [])]
