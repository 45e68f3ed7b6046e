"""TPC-H: table 3.3, figures 3.1 (g) and (h)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from flashsim.apps.papers.base import Cell, Claim, Entry, Exhibit, Job, Judged, Runs, Section, Settings, Shown, Table, load
from flashsim.apps.papers.do2012.runs import DESIGNS, DISKS, PARTITIONS, PUBLISHED, SHARE, Disks, at_scale, devices, disks_of, of_readings
from flashsim.apps.papers.do2012.simulations import run_tests
from flashsim.core.units import HOURS, MINUTES
from flashsim.experiments.judging.cells import number, ratio
from flashsim.pools.setup import PoolSetup

#: Scale factors, and how small each is run beside the paper's other runs: 100 as small as 30; and how small any may be.
_SCALES, _LEAST = {30: 1.0, 100: 0.3}, 0.001
_COMPARED = ("lc", "dw", "tac")
_FIGURES = ("power", "throughput", "QphH")
#: Rows a page up to which queries look them up: query 21 does so, too, and query 9 does not; and as the optimizer's costs have it.
_DENSE, _BY_COSTS = 3.0, 320 / 1350
#: Requests that a test has outstanding, each of at most so many pages.
_OUTSTANDING, _PAGES = 32, 64
#: Processor time of a request, ns, so that time passes when memory holds what is asked for.
_WORK = 1000
_LONGEST = 200 * HOURS
_TRAFFIC = ("hits in memory, %", "SSD hits of the others, %", "disk reads", "pages of a disk read", "disk writes")


def tpc_h(size: int, design: str, disks: Disks, dense: float = _DENSE) -> PoolSetup:
    """Power test and throughput test with a checkpoint every 40 minutes (3.4.4)."""
    options = replace(PARTITIONS, dirty_limit=1, clients=_OUTSTANDING, read_ahead=_PAGES, checkpoint=40 * MINUTES, work=_WORK)
    workload = f"tpc-h:scale={size},dense={dense:.4g}"
    return PoolSetup(workload, design, time=_LONGEST, interval=MINUTES, devices=devices(disks.faster), options=options)


class _TpcHRuns(Runs):
    @staticmethod
    def job(setup: PoolSetup, settings: Settings) -> Job:
        share = SHARE * _SCALES[int(setup.workload.partition("=")[2].partition(",")[0])]
        label = f"{setup.workload}, {DESIGNS[setup.design]}, {disks_of(setup)}"
        return Job.of(run_tests, label, drives=False, setup=at_scale(setup, max(_LEAST, settings.scale * share), settings))

    def figures(self, setup: PoolSetup) -> Mapping[str, float]:
        return (self.get(setup) or {}).get("figures", {})


def _designs(size: int, disks: Disks, dense: float = _DENSE) -> list[PoolSetup]:
    return [tpc_h(size, design, disks, dense) for design in ("none", *_COMPARED)]


def _published_values(claim: Claim, figure: str, size: int) -> dict[str, float]:
    return dict(zip((*_COMPARED, "none"), claim.published[f"{figure}, {size}, LC, DW, TAC, noSSD"], strict=True))


def _ratios(claim: Claim, runs: _TpcHRuns, disks: Disks) -> list[Cell]:
    """Figures over those without an SSD, a row a figure."""
    cells = []
    for size, figure, design in product(_SCALES, _FIGURES, _COMPARED):
        mine, its = (runs.figures(tpc_h(size, each, disks)).get(figure) for each in (design, "none"))
        published, name = _published_values(claim, figure, size), f"{figure}, {size}, {DESIGNS[design]}"
        gain = published[design] / published["none"]
        cells.append(number(name, gain, ratio(mine, its), claim.limits["each"], row=figure, place=size))
    return cells


def _sections(title: str, name: str, readings: Sequence[tuple[str, Disks, float]], runs: _TpcHRuns) -> list[Section]:
    paper = load("do2012")
    rows, traffic_rows = list[list[Entry]](), list[list[Entry]]()
    for (reading, disks, dense), size, design in product(readings, _SCALES, (*_COMPARED, "none")):
        if (output := runs.get(tpc_h(size, design, disks, dense))) is None:
            continue
        its = runs.figures(tpc_h(size, "none", disks, dense))
        row: list[Entry] = [reading, size, DESIGNS[design]]
        for figure in _FIGURES:
            published, measured = _published_values(paper.claim("table3.3"), figure, size), output["figures"][figure]
            row += [published[design], measured, published[design] / published["none"], ratio(measured, its.get(figure))]
        rows.append(row)
        traffic_rows.append([reading, size, DESIGNS[design], *_traffic(output["counts"])])
    header = [f"{figure}{what}" for figure in _FIGURES for what in (", published", "", " over noSSD, published", " over noSSD")]
    own = ["disks", "scale factor", "design"]
    tables = [Table([*own, *header], rows, name, 2), Table([*own, *_TRAFFIC], traffic_rows, f"{name}-traffic", 1)]
    return [Section(title, paper.text("tpc-h"), tables, on_terminal=True)] if rows else []


def _traffic(counts: Mapping[str, int]) -> list[Entry]:
    missed = max(1, counts["references"] - counts["hits"])
    shares = [100 * counts["hits"] / max(1, counts["references"]), 100 * counts["ssd_reads"] / missed]
    return [*shares, counts["disk_reads"], counts["disk_pages_read"] / max(1, counts["disk_reads"]), counts["disk_writes"]]


_TITLE, _PLANS = "TPC-H (table 3.3)", "TPC-H (table 3.3) with plans by the optimizer's costs"
_EVERY = [setup for size in _SCALES for disks in DISKS for setup in _designs(size, disks)]
_BY_COSTS_EVERY = [setup for size in _SCALES for setup in _designs(size, PUBLISHED, _BY_COSTS)]
_SHOWN = partial(_sections, _TITLE, "tpc-h", [(disks.name, disks, _DENSE) for disks in DISKS])
_SHOWN_PLANS = partial(_sections, _PLANS, "plans", [(f"{PUBLISHED.name}, plans by costs", PUBLISHED, _BY_COSTS)])
EXHIBITS: Mapping[str, Exhibit] = {
    "tpc-h": Judged({"table3.3": _EVERY}, _SHOWN, runs=_TpcHRuns, judges={"table3.3": partial(of_readings, _ratios, DISKS)}),
    "plans": Shown(_BY_COSTS_EVERY, _SHOWN_PLANS, _PLANS, _TpcHRuns),
}
