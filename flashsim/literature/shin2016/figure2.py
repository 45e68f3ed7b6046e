"""Figure 2: bandwidth of writes that are handed over at once, over their size and number, by the benchmark of section 2.4."""

from collections.abc import Collection

import pandas as pd

from flashsim.core.units import KIB, MB, MIB, format_size
from flashsim.literature.base import Cell, Claim, Job, Results, Section, Settings, Table
from flashsim.literature.shin2016.figure2_runs import bandwidths
from flashsim.literature.shin2016.runs import DEVICES
from flashsim.studies.bench.session import aio_picture, at_levels
from flashsim.studies.judging.cells import number, statement


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [_job(drive, settings) for drive in DEVICES]


def _job(drive: str, settings: Settings) -> Job:
    return Job.of(bandwidths, f"bandwidth of writes, {drive}", drive=drive, whole=settings.scale == 1, seed=settings.seed)


def _measured(results: Results) -> dict[str, pd.DataFrame]:
    """Bandwidth by size and level, of each drive."""
    every = {drive: results.get(_job(drive, results.settings)) for drive in DEVICES}
    return {drive: pd.DataFrame(runs) for drive, runs in every.items() if runs}


def cells(claim: Claim, results: Results) -> list[Cell]:
    """From which size on each drive reaches its maximum, that one write of 1 MB does, and what parallelism gives."""
    rates, limit = {drive: at_levels(runs) for drive, runs in _measured(results).items()}, claim.limits["reached"]
    best = {drive: each.max(axis=1) / each.max().max() for drive, each in rates.items()}  # over the levels of each size
    if len(best) < len(DEVICES):
        return [statement("every drive", "measured", [None], bool)]
    shares = {
        "ioDrive with any size": best["ioDrive"].min(),
        "P300 from 64 KB on": best["P300"].loc[64 * KIB :].min(),
        "P300 with 32 KB": best["P300"][32 * KIB],
        "Vertex 3 with 4 KB": best["Vertex 3"][4 * KIB],
        **{f"{drive}, one write of 1 MB": each.loc[MIB, 1] / each.max().max() for drive, each in rates.items()},
    }
    at_least, below = (f"at least {limit:g}", lambda value: value >= limit), (f"below {limit:g}", lambda value: value < limit)
    every = []
    for name, share in shares.items():
        words, holds = below if name in ("P300 with 32 KB", "Vertex 3 with 4 KB") else at_least
        every.append(statement(f"{name}: share of the maximum", words, [float(share)], holds))
    factor = max(float(each.max().max() / each.min().min()) for each in rates.values())
    return [*every, number("largest factor", claim.published["largest factor"][0], factor, claim.limits["factor"])]


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 2, a picture a drive."""
    measured = _measured(results)
    rates = pd.concat({drive: at_levels(runs) / MB for drive, runs in measured.items()}) if measured else pd.DataFrame()
    rows = [[drive, format_size(size), *row] for (drive, size), *row in rates.itertuples(name=None)]
    text = "MB/s of writes to random places of 8 GiB, as many at once as a column says, and the next ones once all of these are done."
    pictures = {f"fig2-{drive.replace(' ', '-')}": aio_picture(runs) for drive, runs in measured.items()}
    table = Table(["drive", "I/O size", *map(str, rates)], rows, "fig2", digits=1)
    return [Section("Bandwidth of writes at once (figure 2)", text, [table], pictures)]
