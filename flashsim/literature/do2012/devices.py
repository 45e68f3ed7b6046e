"""Chapter 3 once more on simulated disks and a simulated SSD: which conclusions survive, what designs wear, and what parts of drives do."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from algorithms.extensions.base import DESIGNS
from flashsim.core.units import MB, MIB
from flashsim.device import presets
from flashsim.literature.do2012.device_runs import DISKS, DRIVES, FLASH, PARTS, measure_rates, parts_at, preset_of, run_on_drives
from flashsim.literature.do2012.runs import PUBLISHED, SHARE, STEADY, at_scale, tpc_c, tpc_e
from flashsim.pools.devices import DISKS_3_1, SSD_3_1, WORN, wear
from flashsim.pools.setup import PoolResult, PoolSetup, run_pool
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.replaying.preconditioning import parse_state
from flashsim.studies.runs.jobs import Job, Results, Settings

TITLE = "On simulated drives"
#: Share of the paper's own scale; with less than a thousandth a plane of the SSD has too few blocks.
_PART, _LEAST = 0.2, 0.001
_LAST = slice(-STEADY, None)
_COMPARED, _LIMITS = ("none", "cw", "dw", "lc", "tac"), (10, 50, 90)
_TPC_C = {design: tpc_c(2000, design, PUBLISHED) for design in (*_COMPARED, *(name for name in DESIGNS.names() if name not in _COMPARED))}
_TPC_E = {design: tpc_e(230, design, PUBLISHED) for design in _COMPARED}
_LAMBDA = {limit: tpc_c(4000, "lc", PUBLISHED, limit) for limit in _LIMITS}
#: Runs at rates and on drives: those that a conclusion of the thesis rests on.
_BOTH = [*(_TPC_C[design] for design in _COMPARED), *_TPC_E.values(), *_LAMBDA.values()]


@dataclass(frozen=True)
class _Drives:
    """Drives with other values of their presets' parameters, and what state the SSD begins in."""

    name: str = "as they are"
    disks: Mapping[str, Any] = field(default_factory=dict)
    ssd: Mapping[str, Any] = field(default_factory=dict)
    state: str = "steady"


_AS_THEY_ARE = _Drives()
NEAREST_FIRST = _Drives("disks serve the nearest first", disks={"scheduler": "sptf"})
_OTHERS = (
    _Drives("the SSD is empty at the beginning", state="empty"),
    _Drives("no write buffer", ssd={"write_buffer": 0}),
    _Drives("one command at a time", ssd={"queue_depth": 1}),
    _Drives("reads overtake and interrupt programs and erases", ssd={"read_priority": True, "suspend": "both"}),
    NEAREST_FIRST,
    _Drives("disks cache 2 MiB of writes", disks={"write_behind": 2 * MIB}),
)
_VARIED = ("none", "dw", "lc")

#: Result of a setup's run, by intervals.
Series = Callable[[PoolSetup], PoolResult]


def _scale(settings: Settings) -> float:
    return max(_PART * settings.scale * SHARE, _LEAST)


def steady(changes: Mapping[str, Any], parts: int) -> list[Any]:
    """Occupancy from which the steady state of one of so many parts of the SSD starts: a formula has it, and no run rests on one."""
    occupancy = parse_state("steady", preset_of(FLASH, changes, parts)).occupancy
    assert occupancy is not None
    return list(occupancy.tolist())


def _at_rates(setup: PoolSetup, settings: Settings) -> Job:
    label = f"{setup.workload}, {setup.design}, at rates beside simulated drives"
    return Job.of(run_pool, label, setup=vars(at_scale(setup, _scale(settings), settings)))


def job_on_drives(setup: PoolSetup, drives: _Drives, settings: Settings) -> Job:
    """The run of a system on simulated drives."""
    label = f"{setup.workload}, {setup.design}, on simulated drives: {drives.name}"
    return Job.of(
        run_on_drives,
        label,
        setup=vars(at_scale(setup, _scale(settings), settings)),
        disks=drives.disks,
        ssd=drives.ssd,
        occupancy=None if drives.state == "empty" else steady(drives.ssd, parts_at(_scale(settings))),
    )


def _rates(settings: Settings) -> Job:
    return Job.of(measure_rates, "random requests of simulated drives", occupancy=steady({}, PARTS), seed=settings.seed)


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every design at rates and on drives, some on other drives, and the drives alone."""
    alone = [job_on_drives(setup, _AS_THEY_ARE, settings) for setup in (*_TPC_C.values(), *_TPC_E.values(), *_LAMBDA.values())]
    varied = [job_on_drives(_TPC_C[design], drives, settings) for drives in _OTHERS for design in _varied(drives)]
    return [_rates(settings), *(_at_rates(setup, settings) for setup in _BOTH), *alone, *varied]


def _varied(drives: _Drives) -> tuple[str, ...]:
    return _VARIED if drives.disks or drives == _AS_THEY_ARE else _VARIED[1:]


def sections(results: Results) -> list[Section]:
    """Rates, conclusions, designs with their wear, and parts of the drives; none if a run is missing."""
    settings = results.settings
    if any(job not in results for job in jobs((), settings)):
        return []

    def at_rates(setup: PoolSetup) -> PoolResult:
        return PoolResult.of(results[_at_rates(setup, settings)])

    def on_drives(setup: PoolSetup, drives: _Drives = _AS_THEY_ARE) -> PoolResult:
        return PoolResult.of(results[job_on_drives(setup, drives, settings)])

    def responses(setup: PoolSetup, drives: _Drives = _AS_THEY_ARE) -> list[Entry]:
        times: list[Entry] = results[job_on_drives(setup, drives, settings)]["responses"].get("SSD read", [None] * 4)
        return times

    text = (
        f"The same transactions once more, on {DRIVES} disks ({DISKS}, the nearest to the thesis's of 1 TB, without a write cache as "
        f"there) and an SSD ({FLASH}) with its translation layer: one of {round(1 / _scale(settings)):,} parts of each drive, so that the "
        "database lies on as large a share of the disks' cylinders, and the frames fill as much of the SSD, as at full size. The SSD "
        "begins as long random writes leave it. The rates are those of the drives alone."
    )
    return [
        Section(f"{TITLE}: their rates", text, [_rates_table(results[_rates(settings)])]),
        _conclusions_section(at_rates, on_drives),
        Section(f"{TITLE}: designs", _DESIGNS_TEXT, [_designs_table(on_drives, responses)], on_terminal=True),
        Section(f"{TITLE}: parts of the drives", _PARTS_TEXT, [_parts_table(on_drives, responses)], on_terminal=True),
    ]


_DESIGNS_TEXT = (
    "Means of the last two hours. SSD read: from the request on until it is answered, the cleaner's reads too. Years: until all blocks of "
    "the whole drive have been erased 100,000 times, at that pace day and night."
)
_PARTS_TEXT = "TPC-C with 2,000 warehouses; drives differ from those above in one thing each."


def _rates_table(measured: Mapping[str, list[float]]) -> Table:
    """Random requests of a page a second, beside table 3.1."""
    rows: list[list[Entry]] = [
        [name, *rates, *((DISKS_3_1.read, DISKS_3_1.write) if "disks" in name else (SSD_3_1.read, SSD_3_1.write))]
        for name, rates in measured.items()
    ]
    return Table(["drives", "reads/s", "writes/s", "table 3.1: reads/s", "writes/s"], rows, "drives-rates", 0)


def _transactions(of: Series, setup: PoolSetup) -> float:
    return of(setup).rate("transactions", _LAST)


def _conclusions(of: Series) -> list[tuple[str, Entry, Entry, bool]]:
    """Conclusions of the thesis: in words, the published number, ours, and whether it holds: numbers within the claims' tolerance."""
    c, e = ({design: _transactions(of, setups[design]) for design in _COMPARED} for setups in (_TPC_C, _TPC_E))
    by_limit = [_transactions(of, _LAMBDA[limit]) for limit in _LIMITS]
    invalid = {design: 100 * of(_TPC_C[design]).filled("ssd_invalid", _LAST) for design in ("dw", "lc", "tac")}

    def ranked(rates: Mapping[str, float]) -> str:
        return ", ".join(sorted(rates, key=lambda name: -rates[name]))

    def near(name: str, published: float, mine: float) -> tuple[str, Entry, Entry, bool]:
        return name, published, mine, abs(mine / published - 1) <= 0.3

    def points(design: str, published: float) -> tuple[str, Entry, Entry, bool]:
        slower = 100 * (1 - e["cw"] / e[design])
        return f"TPC-E: CW is slower than {design.upper()}, %", published, slower, abs(slower - published) <= 8

    ratio = e["lc"] / max(e["dw"], e["tac"])
    return [
        ("TPC-C: LC before DW, DW before TAC, TAC before no SSD", "lc, dw, tac, none", ranked({k: c[k] for k in c if k != "cw"}),
         c["lc"] > c["dw"] > c["tac"] > c["none"]),
        ("TPC-C: CW behind DW and LC", "holds", ranked({k: c[k] for k in ("cw", "dw", "lc")}), c["cw"] < min(c["dw"], c["lc"])),
        near("TPC-C: LC over no SSD", 8.0, c["lc"] / c["none"]),
        near("TPC-C: LC over DW", 4.3, c["lc"] / c["dw"]),
        near("TPC-C: LC over TAC", 5.4, c["lc"] / c["tac"]),
        ("4,000 warehouses: the higher lambda, the faster is LC", "holds", ", ".join(f"{rate:,.0f}/s" for rate in by_limit),
         by_limit[0] < by_limit[1] < by_limit[2]),
        near("4,000 warehouses: LC with lambda 90 % over 10 %", 3.5, by_limit[2] / by_limit[0]),
        near("4,000 warehouses: LC with lambda 90 % over 50 %", 1.3, by_limit[2] / by_limit[1]),
        ("TPC-C: TAC leaves 5 to 8 % of the SSD invalid, DW and LC none", 7.4, invalid["tac"],
         5 <= invalid["tac"] <= 8 and invalid["dw"] == invalid["lc"] == 0),
        *(near(f"TPC-E: {design.upper()} over no SSD", 7.2, e[design] / e["none"]) for design in ("dw", "lc", "tac")),
        ("TPC-E: LC over the better of DW and TAC: its advantage is gone", "up to 1.1", ratio, ratio <= 1.1),
        points("dw", 21.6),
        points("lc", 23.3),
    ]  # fmt: skip


def _conclusions_section(at_rates: Series, on_drives: Series) -> Section:
    rows: list[list[Entry]] = []
    for (name, published, rated, survives), (_, _, driven, holds) in zip(_conclusions(at_rates), _conclusions(on_drives), strict=True):
        verdict = "survives" if holds else "does not"
        rows.append(
            [name, published, rated, driven, verdict if survives else f"{verdict}; at rates neither" if not holds else "on drives alone"]
        )
    count = sum(row[-1] == "survives" for row in rows)
    lost = sum(row[-1] == "does not" for row in rows)
    iops, bounded = (
        sum(of(_TPC_C["lc"]).rate(what, _LAST) for what in ("ssd_reads", "ssd_writes", "cleaner_reads")) for of in (on_drives, at_rates)
    )
    text = (
        f"Of {len(rows)} conclusions {count} hold both at table 3.1's rates and on drives, and {lost} at rates alone; numbers within the "
        f"claims' tolerances. With LC the SSD serves {iops:,.0f} requests a second on drives, {bounded:,.0f} at rates, where it is one "
        f"server with {SSD_3_1.read:,} reads a second: a drive works on many at a time."
    )
    header = ["conclusion", "thesis", "at table 3.1's rates", "on drives", "verdict"]
    return Section(f"{TITLE}: conclusions of the thesis", text, [Table(header, rows, "drives-conclusions", 2)], on_terminal=True)


def _designs_table(on_drives: Series, responses: Callable[[PoolSetup], list[Entry]]) -> Table:
    lifetime = presets.load(FLASH).lifetime_erases
    rows: list[list[Entry]] = []
    for label, setups in (("TPC-C, 2K", _TPC_C), ("TPC-E, 230 GB", _TPC_E)):
        none = _transactions(on_drives, setups["none"])
        for design, setup in setups.items():
            series, rate = on_drives(setup), _transactions(on_drives, setup)
            sums = {name: float(series.counts[name][_LAST].sum()) for name in (*WORN, "transactions")}
            seconds = STEADY * series.seconds
            worn = wear(sums, seconds, lifetime)
            of_disks = [series.rate(what, _LAST) for what in ("disk_reads", "disk_writes")]
            moved: list[Entry] = [sums["flash_written"] / seconds / MB, sums["flash_programmed"] / seconds / MB]
            wears = ("ssd_programmed_per_transaction", "ssd_write_amplification", "ssd_erases_s", "ssd_years")
            ssd_cells: list[Entry] = [*moved, *(worn[name] for name in wears)] if design != "none" else [None] * 6
            mean, median, slow, _ = responses(setup)
            hits = 100 * series.share("ssd_reads", "disk_reads", _LAST)
            hits = 100 * hits / (100 + hits)
            rows.append([label, design, rate, rate / none, hits, *of_disks, mean, median, slow, *ssd_cells])
    header = ["workload", "design", "transactions/s", "over no SSD", "SSD hits, %", "disk reads/s", "disk writes/s"]
    header += [
        "SSD read, us",
        "median",
        "99 %",
        "written MB/s",
        "programmed MB/s",
        "B a transaction",
        "write amplification",
        "erases/s",
        "years",
    ]
    return Table(header, rows, "drives-designs", 1)


def _parts_table(on_drives: Callable[..., PoolResult], responses: Callable[..., list[Entry]]) -> Table:
    rows: list[list[Entry]] = []
    for drives in (_AS_THEY_ARE, *_OTHERS):
        rates = {design: on_drives(_TPC_C[design], drives).rate("transactions", _LAST) for design in _varied(drives)}
        none = rates.get("none", on_drives(_TPC_C["none"]).rate("transactions", _LAST))
        lazy = on_drives(_TPC_C["lc"], drives)
        amplification = lazy.total("flash_programmed", _LAST) / max(1, lazy.total("flash_written", _LAST))
        gains: list[Entry] = [none, rates["dw"], rates["lc"], rates["dw"] / none, rates["lc"] / none, rates["lc"] / rates["dw"]]
        rows.append([drives.name, *gains, amplification, *responses(_TPC_C["lc"], drives)])
    header = ["drives", "none/s", "DW/s", "LC/s", "DW over none", "LC over none", "LC over DW", "LC: write amplification"]
    return Table([*header, "LC: SSD read, us", "median", "99 %", "99.9 %"], rows, "drives-parts", 2)
