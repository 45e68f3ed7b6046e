"""Figure 3.10: a longer checkpoint interval with TPC-E, for DW and LC."""

from collections.abc import Collection

from flashsim.core.units import HOURS
from flashsim.literature.do2012.runs import DISKS, PUBLISHED, Disks, Runs, job, of_readings, tpc_e, writing
from flashsim.literature.do2012.shown import ramp_up
from flashsim.pools.setup import PoolResult, PoolSetup
from flashsim.studies.judging.cells import Cell, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.runs.jobs import Job, Results, Settings

_GB, _HOURS, _LONG = 230, 14, 5 * HOURS
#: Intervals of an hour, those before the first checkpoint of the long interval, and those until the SSD was full.
_HOUR, _FIRST, _FULL = 10, 50, 100


def _setup(design: str, disks: Disks, *, long: bool) -> PoolSetup:
    if not long:
        return tpc_e(_GB, design, disks, time=_HOURS * HOURS)
    return tpc_e(_GB, design, disks, checkpoint=_LONG, time=_HOURS * HOURS, options=writing(50))


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    if "fig3.10" not in claims:
        return []
    return [job(_setup(design, disks, long=long), settings) for disks in DISKS for design in ("dw", "lc") for long in (False, True)]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """Ratios of the intervals' throughputs, before and after ten hours, the time at which the thesis's SSD was full; and LC's."""
    runs = Runs(results)
    return of_readings(lambda disks: _cells(claim, runs, disks))


def _cells(claim: Claim, runs: Runs, disks: Disks) -> list[Cell]:
    results = [runs.series(_setup(design, disks, long=long)) for design in ("dw", "lc") for long in (False, True)]
    series = [each for each in results if each is not None]
    margin = 1 + claim.limits["margin"]
    early, late, first = slice(0, _FULL), slice(_FULL, None), slice(0, _FIRST)
    ratios: list[float | None] = [None] * 4
    if len(series) == len(results):
        dw, long_dw, lc, long_lc = series
        after = _over(long_lc, long_lc, slice(_FIRST - _HOUR, _FIRST), slice(_FIRST, _FIRST + _HOUR))
        ratios = [_over(dw, long_dw, early, early), _over(long_dw, dw, late, late), _over(long_lc, lc, first, first), after]
    names = (
        "DW, 40 minutes over 5 hours, in the first 10 hours",
        "DW, 5 hours over 40 minutes, after that",
        "LC, 5 hours over 40 minutes, in the first 5 hours",
        "LC, 5 hours: the hour before the first checkpoint over the hour after it began",
    )
    return [statement(name, f"above {margin:g}", [ratio], lambda value: value > margin) for name, ratio in zip(names, ratios, strict=True)]


def _over(mine: PoolResult, others: PoolResult, part: slice, its: slice) -> float:
    return mine.rate("transactions", part) / others.rate("transactions", its)


def sections(results: Results) -> list[Section]:
    lines = {
        design.upper(): {f"every {'5 hours' if long else '40 minutes'}": _setup(design, PUBLISHED, long=long) for long in (False, True)}
        for design in ("dw", "lc")
    }
    return ramp_up("Checkpoints with TPC-E (figure 3.10), disks as in table 3.1", "checkpoints", lines, Runs(results))
