"""Figure 2: bandwidth of writes that are handed over at once, over their size and number, by the benchmark of section 2.4."""

from collections.abc import Collection, Sequence

from flashsim.core.units import KIB, MB, MIB, format_size
from flashsim.literature.base import Cell, Claim, Judgement, judge_holds
from flashsim.literature.shin2016.figure2_runs import bandwidths
from flashsim.literature.shin2016.measured import near
from flashsim.literature.shin2016.runs import DEVICES
from flashsim.studies.bench.report import aio_picture, level
from flashsim.studies.bench.uflip import Measured
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [_job(drive, settings) for drive in DEVICES]


def _job(drive: str, settings: Settings) -> Job:
    return Job.of(bandwidths, f"bandwidth of writes, {drive}", drive=drive, whole=settings.scale == 1, seed=settings.seed)


def _measured(results: Results) -> dict[str, list[Measured]]:
    every = {drive: results.get(_job(drive, results.settings), []) for drive in DEVICES}
    return {drive: [Measured(**one) for one in found] for drive, found in every.items() if found}


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge from which size on each drive reaches its maximum, that one write of 1 MB does, and what parallelism gives."""
    found, limit = _measured(results), claim.limits["reached"]
    cells = [
        _at_all("ioDrive with any size", found["ioDrive"], 0, limit),
        _at_all("P300 from 64 KB on", found["P300"], 64 * KIB, limit),
        _below("P300 with 32 KB", _best(found["P300"], 32 * KIB), limit),
        _below("Vertex 3 with 4 KB", _best(found["Vertex 3"], 4 * KIB), limit),
    ]
    for drive, measured in found.items():
        alone = [one for one in measured if one.value == MIB and level(one) == 1]
        cells.append(_at_all(f"{drive}, one write of 1 MB", measured, MIB, limit, alone))
    factors = [max(one.bandwidth for one in measured) / min(one.bandwidth for one in measured) for measured in found.values()]
    cells.append(near("largest factor", float(claim.published["largest factor"][0]), max(factors), claim.limits["factor"]))
    return judge_holds(claim, cells)


def _best(found: Sequence[Measured], size: int) -> float:
    return max(one.bandwidth for one in found if one.value == size) / max(one.bandwidth for one in found)


def _at_all(name: str, every: Sequence[Measured], size: int, limit: float, some: Sequence[Measured] = ()) -> Cell:
    most = max(one.bandwidth for one in every)
    sizes = {one.value for one in every if one.value >= size}
    share = min(one.bandwidth for one in some) / most if some else min(_best(every, each) for each in sizes)
    return Cell(f"{name}: share of the maximum", f"at least {limit:g}", share, share >= limit)


def _below(name: str, share: float, limit: float) -> Cell:
    return Cell(f"{name}: share of the maximum", f"below {limit:g}", share, share < limit)


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 2, a picture a drive."""
    found = _measured(results)
    levels = sorted({level(one) for measured in found.values() for one in measured})
    rows: list[list[Entry]] = []
    for drive, measured in found.items():
        told = {(one.value, level(one)): one.bandwidth / MB for one in measured}
        rows += [[drive, format_size(size), *(told.get((size, each)) for each in levels)] for size in sorted({size for size, _ in told})]
    text = "MB/s of writes to random places of 8 GiB, as many at once as a column says, and the next ones once all of these are done."
    pictures = {f"fig2-{drive.replace(' ', '-')}": aio_picture(measured) for drive, measured in found.items()}
    table = Table(["drive", "I/O size", *map(str, levels)], rows, "fig2", digits=1)
    return [Section("Bandwidth of writes at once (figure 2)", text, [table], pictures)]
