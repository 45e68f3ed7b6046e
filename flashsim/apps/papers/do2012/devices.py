"""Chapter 3 once more on a part of simulated drives: which conclusions survive, what designs wear, and what parts of drives do."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from algorithms.extensions.base import DESIGNS as EVERY
from flashsim.apps.papers.base import Cell, Entry, Exhibit, Job, Results, Section, Settings, Table, load
from flashsim.apps.papers.do2012.benchmarks import COMPARED, MIDDLE, below_others, clean_write, limits, over_lc, over_limits, over_none
from flashsim.apps.papers.do2012.runs import DESIGNS, LAST, PUBLISHED, SHARE, STEADY, ThesisRuns, at_scale, job, tpc_c, tpc_e
from flashsim.apps.papers.do2012.simulations import DISKS, DRIVES, FLASH, PARTS, measure_rates, parts_at, preset_of, run_on_drives
from flashsim.core.units import MB, MIB, MINUTES
from flashsim.device import presets
from flashsim.experiments.judging.cells import saving
from flashsim.experiments.replaying.preconditioning import parse_state
from flashsim.pools.devices import DISKS_3_1, SSD_3_1, WORN, wear
from flashsim.pools.setup import PoolSetup, run_pool

TITLE = "On simulated drives"
#: Share of the paper's own scale; with less than a thousandth a plane of the SSD has too few blocks.
_PART, _LEAST = 0.2, 0.001


class Drives(NamedTuple):
    """Drives with other values of their presets' parameters, and the state that the SSD begins in."""

    name: str
    disks: Mapping[str, Any] = {}
    ssd: Mapping[str, Any] = {}
    state: str = "steady"


AS_THEY_ARE = Drives("as they are")
NEAREST_FIRST = Drives("disks serve the nearest first", disks={"scheduler": "sptf"})
OTHERS = (
    Drives("the SSD is empty at the beginning", state="empty"),
    Drives("no write buffer", ssd={"write_buffer": 0}),
    Drives("one command at a time", ssd={"queue_depth": 1}),
    Drives("reads overtake and interrupt programs and erases", ssd={"read_priority": True, "suspend": "both"}),
    NEAREST_FIRST,
    Drives("disks cache 2 MiB of writes", disks={"write_behind": 2 * MIB}),
)


def scale_of(settings: Settings) -> float:
    return max(_PART * settings.scale * SHARE, _LEAST)


def steady(changes: Mapping[str, Any], parts: int) -> list[Any]:
    """Occupancy from which the steady state of one of `parts` parts of the SSD starts: a formula has it, and no run rests on one."""
    occupancy = parse_state("steady", preset_of(FLASH, changes, parts)).occupancy
    assert occupancy is not None
    return list(occupancy.tolist())


def on_drives(setup: PoolSetup, settings: Settings, drives: Drives = AS_THEY_ARE) -> Job:
    """The run of a system on simulated drives."""
    label, scale = f"{setup.workload}, {setup.design}, on simulated drives: {drives.name}", scale_of(settings)
    occupancy = None if drives.state == "empty" else steady(drives.ssd, parts_at(scale))
    values = at_scale(setup, scale, settings)
    return Job.of(run_on_drives, label, setup=values, disks=drives.disks, ssd=drives.ssd, occupancy=occupancy)


def at_rates(setup: PoolSetup, settings: Settings) -> Job:
    """The same run on devices that have rates."""
    label = f"{setup.workload}, {setup.design}, at rates beside simulated drives"
    return Job.of(run_pool, label, setup=at_scale(setup, scale_of(settings), settings))


def alone(settings: Settings) -> Job:
    return Job.of(measure_rates, "random requests of simulated drives", occupancy=steady({}, PARTS), seed=settings.seed)


_COMPARED = ("none", "cw", "dw", "lc", "tac")
_TPC_C = {design: tpc_c(2000, design, PUBLISHED) for design in (*_COMPARED, *(name for name in EVERY.names() if name not in _COMPARED))}
_TPC_E = {design: tpc_e(230, design, PUBLISHED) for design in _COMPARED}
_LAMBDA = limits(PUBLISHED)
#: A conclusion of the thesis: in words, the published number, ours, and whether it holds.
_Conclusion = tuple[str, Entry, Entry, bool | None]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every design at rates and on drives, some on other drives, and the drives alone."""
    rated = [at_rates(setup, settings) for setup in (*(_TPC_C[design] for design in _COMPARED), *_TPC_E.values(), *_LAMBDA)]
    driven = [on_drives(setup, settings) for setup in (*_TPC_C.values(), *_TPC_E.values(), *_LAMBDA)]
    varied = [on_drives(_TPC_C[design], settings, drives) for drives in OTHERS for design in _varied_designs(drives)]
    return [alone(settings), *rated, *driven, *varied]


def _varied_designs(drives: Drives) -> tuple[str, ...]:
    """Designs that are run on other drives: without an SSD only its disks matter."""
    return ("none", "dw", "lc") if drives.disks or drives == AS_THEY_ARE else ("dw", "lc")


def sections(results: Results) -> list[Section]:
    settings = results.settings
    if any(job not in results for job in jobs((), settings)):
        return []
    paper = load("do2012")
    text = paper.text("devices", drives=DRIVES, disks=DISKS, flash=FLASH, parts=round(1 / scale_of(settings)))
    parts = "TPC-C with 2,000 warehouses; drives differ from those above in one thing each."
    published = {"8": (DISKS_3_1.read, DISKS_3_1.write), "S": (SSD_3_1.read, SSD_3_1.write)}
    rows = [[name, *rates, *published[name[0]]] for name, rates in results[alone(settings)].items()]
    rates = Table(["drives", "reads/s", "writes/s", "table 3.1: reads/s", "writes/s"], rows, "drives-rates", 0)
    return [
        Section(f"{TITLE}: their rates", text, [rates]),
        _conclusions(results),
        Section(f"{TITLE}: designs", paper.text("designs"), [_designs(results)], on_terminal=True),
        Section(f"{TITLE}: parts of the drives", parts, [_parts(results)], on_terminal=True),
    ]


def _of(runs: ThesisRuns) -> list[_Conclusion]:
    """Conclusions of the thesis; numbers hold within the claims' tolerance."""
    c, e = ({design: runs.steady(setups[design]) or 0.0 for design in _COMPARED} for setups in (_TPC_C, _TPC_E))
    by_limit = [runs.steady(setup) or 0.0 for setup in _LAMBDA]
    invalid = {design: 100 * runs.result(_TPC_C[design]).filled_share("ssd_invalid", LAST) for design in ("dw", "lc", "tac")}
    paper = load("do2012")

    def rank(*designs: str) -> str:
        return ", ".join(sorted(designs, key=lambda name: -c[name]))

    def near(prefix: str, cells: list[Cell]) -> list[_Conclusion]:
        return [(prefix + cell.name.replace("noSSD", "no SSD"), cell.published, cell.measured, cell.inside) for cell in cells]

    in_e = [cell for cell in over_none(paper.claim("fig3.1-e"), runs, PUBLISHED) if "230 GB" in cell.name]
    ratio = e["lc"] / max(e["dw"], e["tac"])
    return [
        ("TPC-C: LC before DW, DW before TAC, TAC before no SSD", "lc, dw, tac, none", rank("none", "dw", "lc", "tac"),
         c["lc"] > c["dw"] > c["tac"] > c["none"]),
        ("TPC-C: CW behind DW and LC", "holds", rank("cw", "dw", "lc"), c["cw"] < min(c["dw"], c["lc"])),
        *near("TPC-C: ", over_lc(paper.claim("fig3.1-c"), runs, PUBLISHED)),
        ("4,000 warehouses: the higher lambda, the faster is LC", "holds", ", ".join(f"{rate:,.0f}/s" for rate in by_limit),
         by_limit[0] < by_limit[1] < by_limit[2]),
        *near("4,000 warehouses: LC with lambda ", over_limits(paper.claim("fig3.7"), runs, PUBLISHED)),
        ("TPC-C: TAC leaves 5 to 8 % of the SSD invalid, DW and LC none", 7.4, invalid["tac"],
         5 <= invalid["tac"] <= 8 and invalid["dw"] == invalid["lc"] == 0),
        *((f"TPC-E: {cell.name.replace('at 230 GB', 'over no SSD')}", cell.published, cell.measured, cell.inside) for cell in in_e),
        ("TPC-E: LC over the better of DW and TAC: its advantage is gone", "up to 1.1", ratio, ratio <= 1.1),
        *near("TPC-E: CW is ", below_others(paper.claim("cw"), runs, PUBLISHED)),
    ]  # fmt: skip


def _conclusions(results: Results) -> Section:
    rows: list[list[Entry]] = []
    rated, driven = ThesisRuns(results, at_rates), ThesisRuns(results, on_drives)
    for (name, published, at, survives), (_, _, on, holds) in zip(_of(rated), _of(driven), strict=True):
        verdict = "survives" if holds else "does not"
        rows.append([name, published, at, on, verdict if survives else f"{verdict}; at rates neither" if not holds else "on drives alone"])
    count, lost = (sum(row[-1] == verdict for row in rows) for verdict in ("survives", "does not"))
    served = ("ssd_reads", "ssd_writes", "cleaner_reads")
    iops, bounded = (sum(runs.result(_TPC_C["lc"]).rate(what, LAST) for what in served) for runs in (driven, rated))
    counted = {"all": len(rows), "both": count, "lost": lost, "served": iops, "bounded": bounded, "reads": SSD_3_1.read}
    header = ["conclusion", "thesis", "at table 3.1's rates", "on drives", "verdict"]
    text = load("do2012").text("conclusions", **counted)
    return Section(f"{TITLE}: conclusions of the thesis", text, [Table(header, rows, "drives-conclusions", 2)], on_terminal=True)


def _responses(runs: ThesisRuns, setup: PoolSetup) -> list[Entry]:
    """Response times of the SSD's reads: mean, median, 99 and 99.9 %."""
    return [*runs.get(setup)["responses"].get("SSD read", [None] * 4)]


_WEAR = ("programmed_per_transaction", "write_amplification", "erases_s", "years")


def _designs(results: Results) -> Table:
    lifetime, runs = presets.load(FLASH).lifetime_erases, ThesisRuns(results, on_drives)
    rows: list[list[Entry]] = []
    for label, design, setup in [("TPC-C, 2K", *item) for item in _TPC_C.items()] + [("TPC-E, 230 GB", *item) for item in _TPC_E.items()]:
        series, none = runs.result(setup), (_TPC_C if label == "TPC-C, 2K" else _TPC_E)["none"]
        sums = {name: float(series.counts[name][LAST].sum()) for name in (*WORN, "transactions")}
        seconds = STEADY * series.seconds
        worn, of_disks = wear(sums, seconds, lifetime), [series.rate(what, LAST) for what in ("disk_reads", "disk_writes")]
        moved = [sums[name] / seconds / MB for name in ("flash_written", "flash_programmed")]
        of_ssd: list[Entry] = [*moved, *(worn[f"ssd_{name}"] for name in _WEAR)] if design != "none" else [None] * 6
        hits = 100 * series.share("ssd_reads", "disk_reads", LAST)
        rates = [runs.steady(setup), runs.over(setup, none), 100 * hits / (100 + hits)]
        rows.append([label, design, *rates, *of_disks, *_responses(runs, setup)[:3], *of_ssd])
    header = ["workload", "design", "transactions/s", "over no SSD", "SSD hits, %", "disk reads/s", "disk writes/s", "SSD read, us"]
    header += ["median", "99 %", "written MB/s", "programmed MB/s", "B a transaction", "write amplification", "erases/s", "years"]
    return Table(header, rows, "drives-designs", 1)


def _parts(results: Results) -> Table:
    rows: list[list[Entry]] = []
    for drives in (AS_THEY_ARE, *OTHERS):
        runs, usual = ThesisRuns(results, partial(on_drives, drives=drives)), ThesisRuns(results, on_drives)
        none, dw, lc = (
            (runs if design in _varied_designs(drives) else usual).steady(_TPC_C[design]) or 0.0 for design in ("none", "dw", "lc")
        )
        lazy = runs.result(_TPC_C["lc"])
        amplification = lazy.total("flash_programmed", LAST) / max(1, lazy.total("flash_written", LAST))
        gains: list[Entry] = [none, dw, lc, dw / none, lc / none, lc / dw, amplification]
        rows.append([drives.name, *gains, *_responses(runs, _TPC_C["lc"])])
    header = ["drives", "none/s", "DW/s", "LC/s", "DW over none", "LC over none", "LC over DW", "LC: write amplification"]
    return Table([*header, "LC: SSD read, us", "median", "99 %", "99.9 %"], rows, "drives-parts", 2)


_SETUPS: dict[str, Callable[..., PoolSetup]] = {"TPC-C, 2,000 warehouses": partial(tpc_c, 2000), "TPC-E, 230 GB": partial(tpc_e, 230)}
#: LC with TPC-E and sharp checkpoints, by how many pages these write at the same time; and CW.
_AT_ONCE = {f"LC, {pages} pages": tpc_e(MIDDLE, "lc", PUBLISHED).with_options(cleaners=pages) for pages in (256, 64, 32)}
_AT_ONCE["CW"] = tpc_e(MIDDLE, "cw", PUBLISHED)


def _kinds(setup_of: Callable[..., PoolSetup], design: str) -> list[PoolSetup]:
    """A design without checkpoints, with sharp ones, and LC with fuzzy ones."""
    setup = setup_of(design, PUBLISHED).with_options(checkpoint=40 * MINUTES)
    return [setup.with_options(checkpoint=0), setup, *([setup.with_options(fuzzy=True)] if design == "lc" else [])]


def _nearest_first(setup: PoolSetup, settings: Settings) -> Job:
    """On simulated disks that serve the nearest first; a sharp checkpoint has as many writes outstanding as such a disk's queue holds."""
    return on_drives(setup.with_options(cleaners=32), settings, NEAREST_FIRST)


class _Kinds(Exhibit):
    """The cost of checkpoints by design (3.2.3.3, 3.3.2): sharp ones write what is newer on the SSD to disk, fuzzy ones do not."""

    TITLE = "Sharp and fuzzy checkpoints"

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        kinds = [setup for setup_of in _SETUPS.values() for design in COMPARED for setup in _kinds(setup_of, design)]
        at_rates = [job(setup, settings) for setup in (*kinds, *_AT_ONCE.values())]
        return at_rates + [_nearest_first(setup, settings) for setup in clean_write(PUBLISHED)]

    def sections(self, results: Results) -> list[Section]:
        runs, rows = ThesisRuns(results), list[list[Entry]]()
        for (benchmark, setup_of), design in product(_SETUPS.items(), COMPARED):
            alone, sharp, fuzzy = (*map(runs.steady, _kinds(setup_of, design)), None)[:3]
            if alone and sharp:
                rows.append([benchmark, DESIGNS[design], alone, sharp, fuzzy, 100 * sharp / alone, 100 * fuzzy / alone if fuzzy else None])
        header = ["benchmark", "design", "transactions/s without", "with sharp ones", "with fuzzy ones", "left with sharp ones, %"]
        alone = runs.steady(_kinds(_SETUPS["TPC-E, 230 GB"], "lc")[0])
        lost = [[name, saving(runs.steady(setup), alone)] for name, setup in _AT_ONCE.items()]
        driven = {DESIGNS[setup.design]: ThesisRuns(results, _nearest_first).steady(setup) for setup in clean_write(PUBLISHED)}
        tables = [Table([*header, "with fuzzy ones, %"], rows, "checkpoint-kinds", 1)]
        if rows:
            tables.append(Table(["TPC-E: a sharp checkpoint writes at the same time", "below LC without, %"], lost, "checkpoint-widths", 1))
        if all(driven.values()):
            title = "TPC-E, simulated disks that serve the nearest first, 32 writes of a checkpoint at once"
            tables.append(Table([title, "transactions/s"], [[*each] for each in driven.items()], "checkpoint-drives", 1))
        return [Section(self.TITLE, load("do2012").text("sharp-and-fuzzy"), tables, on_terminal=True)]


EXHIBITS: Mapping[str, Exhibit] = {"sharp-and-fuzzy": _Kinds()}
