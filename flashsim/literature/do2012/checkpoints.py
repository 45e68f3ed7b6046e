"""Figure 3.10: a longer checkpoint interval with TPC-E, for DW and LC."""

from collections.abc import Collection

from flashsim.core.units import HOURS
from flashsim.literature.base import Cell, Claim, Judgement
from flashsim.literature.do2012.runs import DISKS, PUBLISHED, Disks, Runs, job, judged, tpc_e, writing
from flashsim.literature.do2012.shown import ramp_up
from flashsim.pools.setup import PoolResult, PoolSetup
from flashsim.studies.presentation.section import Section
from flashsim.studies.runs.jobs import Job, Results, Settings

_GB, _HOURS, _LONG = 230, 14, 5 * HOURS
#: Intervals of an hour, and those before the first checkpoint of the long interval.
_HOUR, _FIRST = 10, 50
#: Share of the SSD in use at which it is called full.
_FULL = 0.95


def _setup(design: str, disks: Disks, *, long: bool) -> PoolSetup:
    if not long:
        return tpc_e(_GB, design, disks, time=_HOURS * HOURS)
    return tpc_e(_GB, design, disks, checkpoint=_LONG, time=_HOURS * HOURS, options=writing(50))


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    if "fig3.10" not in claims:
        return []
    return [job(_setup(design, disks, long=long), settings) for disks in DISKS for design in ("dw", "lc") for long in (False, True)]


def judge(claim: Claim, results: Results) -> Judgement:
    runs = Runs(results)
    return judged(claim, {disks.name: _cells(runs, disks) for disks in DISKS})


def _cells(runs: Runs, disks: Disks) -> list[Cell]:
    results = [runs.series(_setup(design, disks, long=long)) for design in ("dw", "lc") for long in (False, True)]
    series = [each for each in results if each is not None]
    if len(series) < len(results):
        return [Cell("all", "as told", None, None)]
    dw, long_dw, lc, long_lc = series
    full = min(_full(dw), _full(long_dw))
    early, late = slice(0, full), slice(full, None)
    after = _over(long_lc, long_lc, slice(_FIRST, _FIRST + _HOUR), slice(_FIRST - _HOUR, _FIRST))
    pairs = [
        ("DW, 40 minutes over 5 hours, before the SSD is full", "above 1", _over(dw, long_dw, early, early)),
        ("DW, 5 hours over 40 minutes, after that", "above 1", _over(long_dw, dw, late, late)),
        ("LC, 5 hours over 40 minutes, in the first 5 hours", "above 1", _over(long_lc, lc, slice(0, _FIRST), slice(0, _FIRST))),
    ]
    cells = [Cell(name, published, value, value > 1) for name, published, value in pairs]
    return [*cells, Cell("LC, the hour after the first long checkpoint began over that before", "below 1", after, after < 1)]


def _full(series: PoolResult) -> int:
    """The first interval at whose end the SSD is full, or behind the last."""
    reached = series.counts["ssd_used"] >= _FULL * series.ssd
    return int(reached.argmax()) if reached.any() else len(reached) - 1


def _over(mine: PoolResult, others: PoolResult, part: slice, its: slice) -> float:
    return mine.rate("transactions", part) / others.rate("transactions", its)


def sections(results: Results) -> list[Section]:
    lines = {
        design.upper(): {f"every {'5 hours' if long else '40 minutes'}": _setup(design, PUBLISHED, long=long) for long in (False, True)}
        for design in ("dw", "lc")
    }
    return ramp_up("Checkpoints with TPC-E (figure 3.10), disks as in table 3.1", "checkpoints", lines, Runs(results))
