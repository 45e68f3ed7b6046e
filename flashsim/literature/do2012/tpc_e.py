"""TPC-E: figures 3.1 (d) to (f), CW, and where the gain is largest."""

from collections.abc import Collection
from dataclasses import replace

from flashsim.literature.do2012.devices import NEAREST_FIRST, job_on_drives
from flashsim.literature.do2012.runs import DISKS, PUBLISHED, STEADY, Disks, Runs, job, of_readings, tpc_e
from flashsim.literature.do2012.shown import TRAFFIC, megabytes, ramp_up, speedups, traffic
from flashsim.pools.setup import PoolResult, PoolSetup
from flashsim.studies.judging.cells import Cell, number, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

_SIZES, _MIDDLE = (115, 230, 415), 230
#: The sweep of `peak`; the working set is 63 % of the database, and equals the SSD at 222 GB.
_SWEEP = (60, 115, 170, 230, 300, 415)
_COMPARED = ("none", "dw", "lc", "tac")
#: Writes of a sharp checkpoint on simulated drives, as many as a disk's queue holds.
_OUTSTANDING = 32


def _setups(claim: str, disks: Disks) -> list[PoolSetup]:
    match claim:
        case "cw":
            return [tpc_e(_MIDDLE, design, disks) for design in ("cw", "dw", "lc")]
        case "peak":
            return [tpc_e(size, design, disks) for size in _SWEEP for design in ("none", "dw")]
    return [tpc_e(size, design, disks) for size in _SIZES for design in _COMPARED]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every design on every database, and DW on some more."""
    at_rates = [
        job(setup, settings) for claim in ("fig3.1-e", "peak", "cw") if claim in claims for each in DISKS for setup in _setups(claim, each)
    ]
    return at_rates + ([_on_drives(design, settings) for design in ("cw", "dw", "lc")] if "cw" in claims else [])


def _on_drives(design: str, settings: Settings) -> Job:
    """TPC-E on disks that serve the nearest first; a sharp checkpoint has as many writes outstanding as such a disk chooses from."""
    return job_on_drives(tpc_e(_MIDDLE, design, PUBLISHED).with_options(cleaners=_OUTSTANDING), NEAREST_FIRST, settings)


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The cells of one of the claims, with each reading of the disks."""
    of_claim, runs = {"fig3.1-e": _speedups, "peak": _peak, "cw": _clean_write}[claim.id], Runs(results)
    every = of_readings(lambda disks: of_claim(claim, runs, disks))
    for variant in claim.stated:  # of which there is one: simulated drives
        rates = [_rate(results, design) for design in ("cw", "dw", "lc")]
        every += [replace(cell, variant=variant) for cell in _slower(claim, *rates)]
    return every


def _rate(results: Results, design: str) -> float | None:
    """Transactions a second on simulated drives, over the last two hours."""
    output = results.get(_on_drives(design, results.settings))
    return PoolResult.of(output).rate("transactions", slice(-STEADY, None)) if output else None


def _speedups(claim: Claim, runs: Runs, disks: Disks) -> list[Cell]:
    return [
        number(
            f"{design.upper()} at {size} GB", gain, runs.over(tpc_e(size, design, disks), tpc_e(size, "none", disks)), claim.limits["each"]
        )
        for (gain,), size in zip(claim.published.values(), _SIZES, strict=True)
        for design in _COMPARED[1:]
    ]


def _peak(claim: Claim, runs: Runs, disks: Disks) -> list[Cell]:
    gains = {size: runs.over(tpc_e(size, "dw", disks), tpc_e(size, "none", disks)) for size in _SWEEP}
    others = [gain for size, gain in gains.items() if size != _MIDDLE]
    words, above = f"the first, with {_MIDDLE} GB, above each", 1 + claim.limits["margin"]
    return [statement("gains over the database's size", words, [gains[_MIDDLE], *others], lambda first, *all: first > above * max(all))]


def _clean_write(claim: Claim, runs: Runs, disks: Disks) -> list[Cell]:
    return _slower(claim, *(runs.steady(tpc_e(_MIDDLE, design, disks)) for design in ("cw", "dw", "lc")))


def _slower(claim: Claim, mine: float | None, *others: float | None) -> list[Cell]:
    """Percent by which CW's throughput is below that of DW and LC."""
    every = []
    for (name, (published,)), its in zip(claim.published.items(), others, strict=True):
        slower = None if mine is None or not its else 100 * (1 - mine / its)
        every.append(number(name, published, slower, claim.limits["points"], points=True, equal=(0.0,)))
    return every


def sections(results: Results) -> list[Section]:
    """Throughput, speedups and what devices do in the last two hours, and throughput from the beginning."""
    runs = Runs(results)
    sizes = [(f"{size}", lambda design, disks, size=size: tpc_e(size, design, disks)) for size in _SWEEP]
    parts = speedups("TPC-E (figure 3.1 d to f)", "tpc-e", "GB", sizes, ("none", "cw", "dw", "lc", "tac"), runs)
    lines = {f"{size} GB": {design: tpc_e(size, design, PUBLISHED) for design in _COMPARED} for size in _SIZES[1:]}
    parts += ramp_up("TPC-E from the beginning (figure 3.8), disks as in table 3.1", "tpc-e-ramp-up", lines, runs)
    return [*parts, *_traffic(runs)]


def _traffic(runs: Runs) -> list[Section]:
    """Figure 3.9, and what the text says of it (3.4.3.2)."""
    rows: list[list[Entry]] = []
    for disks in DISKS:
        series = runs.series(tpc_e(_MIDDLE, "dw", disks))
        if series is not None:
            moved = {each: megabytes(series, *each) for each in TRAFFIC}
            last = sum(moved["disks", direction][-STEADY:].mean() for direction in ("read", "written"))
            rest = [moved["SSD", direction].max() for direction in ("read", "written")]
            rows.append([disks.name, *map(float, (moved["disks", "read"][0], last, *rest))])
    if not rows:
        return []
    header = ["disks", "disks at first: read, MB/s", "in the last two hours: both", "SSD at most: read, MB/s", "written"]
    table = Table(header, [["published", 50.0, 6.5, 46.0, 9.7], *rows], "tpc-e-traffic", 1)
    (section,) = traffic(
        "Traffic of DW with 230 GB (figure 3.9), disks as in table 3.1", "tpc-e-traffic", tpc_e(_MIDDLE, "dw", PUBLISHED), runs
    )
    return [replace(section, tables=[table])]
