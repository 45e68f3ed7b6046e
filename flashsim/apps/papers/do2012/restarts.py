"""Chapter 4 with TPC-C and TPC-E: throughput with a restart design, peak-to-peak intervals, and what guards prevent."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pandas as pd

from flashsim.apps.papers.base import Cell, Claim, Entry, Exhibit, Job, Results, Runs, Section, Settings, Shown, Table, load
from flashsim.apps.papers.do2012.runs import DESIGNS, SHARE, at_scale, devices, dual_write
from flashsim.core.units import GIB, HOURS, KIB, MB, MINUTES, SECONDS
from flashsim.experiments.crashing.injection import frames_kept, search
from flashsim.experiments.judging.cells import difference, differences, less, number, ratio, saving, statement
from flashsim.experiments.presentation.plots import series_over
from flashsim.pools import LogOptions
from flashsim.pools.restart import CRASH, ENDS, SHUTDOWN, PeakToPeak, run_restart
from flashsim.pools.setup import PoolSetup

BENCHMARKS, POLICIES, RESTARTS = ("TPC-C", "TPC-E"), ("dw", "lc"), ("none", "mmr", "lbr", "lvr")
#: The log's disk is one of eighteen in table 4.3 with requests in a row; the SSD reads on at 396 MB/s, as 140 GB in 380 s need (4.4.3.2).
_LOG_RATE = 10458
_SSD = "rates:further=50700"
#: Pages a second in a row of the log's disk, for the sensitivity table: what the thesis's 12.1 s imply, table 4.3's, twice as many.
_LOG_RATES = (9521, _LOG_RATE, 2 * _LOG_RATE)
#: Hours before the end; intervals of a minute whose mean is the peak, that a ramp-up is looked for in, and over which it is smoothed.
_TIME, _LAST, _AFTER, _SMOOTHED, _SHARE = 5 * HOURS, 60, 120, 5, 0.95
#: Writes of the SSD that MMR's flush of an entry takes, by the published busy times; and a variant.
_WRITES, _ONE_WRITE = 2, "one SSD write a flush"
#: Of the system's size, to see whether a hundredth is enough.
_LARGE_SHARE = 1 / 30


@dataclass(frozen=True)
class RestartRun:
    """A run of a restart design on the machine of chapter 4: its end, writes of a flush, the log's pages a second, share of the size.

    Disks are `fast` times as fast at random as in table 4.3.
    """

    benchmark: str
    policy: str
    restart: str
    ends: str = SHUTDOWN
    flush_writes: int = _WRITES
    log_rate: int = _LOG_RATE
    share: float = SHARE
    fast: int = 1

    def setup(self) -> PoolSetup:
        """The system: LC's dirty fraction is 20 % (4.4.1)."""
        plain = dual_write(self.benchmark, expands=True).with_options(dirty_limit=20)
        log = f"rates:read={self.log_rate},write=165,further={self.log_rate}"
        every, hardening = devices(self.fast, "4.3") | {"log": log, "ssd": _SSD}, LogOptions(flush_writes=self.flush_writes)
        return replace(plain, design=self.policy, restart=self.restart, time=_TIME, interval=MINUTES, devices=every, hardening=hardening)

    def job(self, settings: Settings) -> Job:
        writes = "" if self.flush_writes == _WRITES else f", {_ONE_WRITE}"
        log_disk = "" if self.log_rate == _LOG_RATE else f", log at {self.log_rate * 8 * KIB / MB:.0f} MB/s"
        size = "" if self.share == SHARE else f", a {1 / self.share:.0f}th of the size"
        disks = "" if self.fast == 1 else f", disks {self.fast} times as fast"
        label = f"{self.benchmark}, {DESIGNS[self.policy]} with {self.restart}, {self.ends}{writes}{log_disk}{size}{disks}"
        setup = at_scale(self.setup(), settings.scale * self.share, settings)
        return Job.of(run_restart, label, drives=False, setup=setup, ends=self.ends, after=_AFTER)


class RestartRuns(Runs):
    """Results by run."""

    def of(self, run: RestartRun) -> PeakToPeak | None:
        """A restart; None where it was not asked for."""
        output = self.get(run)
        return PeakToPeak.of(output) if output else None

    def peak(self, run: RestartRun) -> float | None:
        """Transactions a second in the last hour before the end."""
        return None if (result := self.of(run)) is None else result.peak(_LAST)

    def kept_percent(self, run: RestartRun) -> float | None:
        """Percent of the throughput without a restart design."""
        share = ratio(self.peak(run), self.peak(replace(run, restart="none", flush_writes=_WRITES)))
        return None if share is None else 100 * share

    def lost_percent(self, run: RestartRun) -> float | None:
        """Percent below the throughput without a restart design."""
        return saving(self.peak(run), self.peak(replace(run, restart="none")))

    def ramp_up(self, run: RestartRun) -> float | None:
        """Seconds after recovery until throughput is at 95 % of the peak before, at most as long as is looked."""
        if (result := self.of(run)) is None:
            return None
        return min(result.ramp_up(result.peak(_LAST), _SHARE, _SMOOTHED), _AFTER * MINUTES / SECONDS)

    def interval(self, run: RestartRun) -> float | None:
        """Seconds from peak to peak."""
        result, ramp_up = self.of(run), self.ramp_up(run)
        return None if result is None or ramp_up is None else result.shutdown + result.recovery + ramp_up

    def speedup(self, run: RestartRun) -> float | None:
        """Times that the interval without a restart design is as long."""
        return ratio(self.interval(replace(run, restart="none")), self.interval(run))


def _throughput(claim: Claim, runs: RestartRuns) -> list[Cell]:
    points, least, most = (claim.limits[name] for name in ("points", "least", "most"))
    mmr, ungrouped = claim.published.values()
    cells, words = [], f"{least:g} to {most:g}, within {points:g} points"
    for policy, published in zip(POLICIES, mmr, strict=True):
        name, run = DESIGNS[policy], RestartRun("TPC-C", policy, "mmr")
        cells.append(replace(difference(f"MMR keeps, {name}, %", published, runs.kept_percent(run), points), row="MMR keeps"))
        one = difference(f"MMR keeps, {name}, %", published, runs.kept_percent(replace(run, flush_writes=1)), points)
        cells.append(replace(one, variant=_ONE_WRITE, row="MMR keeps"))
        lost = runs.lost_percent(RestartRun("TPC-C", policy, "lbr"))
        cells.append(differences(f"LBR loses, {name}, %", words, [lost], lambda lost: least - points <= lost <= most + points))
        cells.append(_loses_less(f"LVR loses, {name}, %", claim.limits["lvr"], runs, RestartRun("TPC-C", policy, "lvr")))
    lost = runs.lost_percent(RestartRun("TPC-C", "lc", "lbr"))
    return [*cells, difference("LBR loses without group writing, %", ungrouped[0], lost, points)]


def _loses_less(name: str, most: float, runs: RestartRuns, run: RestartRun) -> Cell:
    return differences(name, f"less than {most:g}", [runs.lost_percent(run)], lambda lost: lost < most)


def _no_loss(claim: Claim, runs: RestartRuns) -> list[Cell]:
    """Losses with TPC-E, and how much more MMR loses with TPC-C, where more is modified: equal runs lose nothing with either."""
    most, more = claim.limits["percent"], claim.limits["more"]
    cells = [
        _loses_less(f"{DESIGNS[policy]} with {restart.upper()} loses, %", most, runs, RestartRun("TPC-E", policy, restart))
        for policy, restart in product(POLICIES, RESTARTS[1:])
    ]
    for policy in POLICIES:
        losses = [runs.lost_percent(RestartRun(benchmark, policy, "mmr")) for benchmark in BENCHMARKS]
        words = f"at least {more:g} points more with TPC-C"
        cells.append(differences(f"{DESIGNS[policy]} with MMR, TPC-C and TPC-E, %", words, losses, lambda c, e: c - e >= more))
    return cells


def _peaks_c(claim: Claim, runs: RestartRuns) -> list[Cell]:
    limit, (dw, lc_mmr, lc_others) = claim.limits["each"], claim.published["shutdown, DW, LC with MMR, LC with LBR and LVR"]
    cells, least, most = list[Cell](), max(1.0, 1.3 * (1 - limit)), 1.8 * (1 + limit)
    for policy, restart in product(POLICIES, RESTARTS[1:]):
        published = dw if policy == "dw" else lc_mmr if restart == "mmr" else lc_others
        name, run = f"{DESIGNS[policy]} with {restart.upper()}", RestartRun("TPC-C", policy, restart)
        printed = f"shutdown, {DESIGNS[policy]}, {published}"
        cells.append(number(f"shutdown, {name}", published, runs.speedup(run), limit, row="shutdown", printed=printed))
        gain, words = [runs.speedup(replace(run, ends=CRASH))], "1.3 to 1.8, within 30 %, and above 1"
        cells.append(statement(f"crash, {name}", words, gain, lambda value: least < value <= most))
    return cells


def _peaks_e(claim: Claim, runs: RestartRuns) -> list[Cell]:
    limit, cells, below = claim.limits["each"], list[Cell](), less(claim.limits["margin"])
    order = lambda mmr, lbr, lvr: below(lvr, lbr) and below(lbr, mmr)  # noqa: E731
    shutdown, mmr, lvr = claim.published.values()
    for number_of, policy in enumerate(POLICIES):
        for restart in RESTARTS[1:]:
            gain = runs.speedup(RestartRun("TPC-E", policy, restart))
            name, printed = f"shutdown, {DESIGNS[policy]} with {restart.upper()}", f"shutdown, {DESIGNS[policy]}"
            cells.append(number(name, shutdown[number_of], gain, limit, row="shutdown", printed=printed))
        gains = [runs.speedup(RestartRun("TPC-E", policy, restart, CRASH)) for restart in RESTARTS[1:]]
        for name, published, gain in (("MMR", mmr, gains[0]), ("LVR", lvr, gains[2])):
            cells.append(number(f"crash, {DESIGNS[policy]} with {name}", published[number_of], gain, limit, row=f"crash, {name}"))
        cells.append(statement(f"crash, {DESIGNS[policy]}, MMR, LBR and LVR", "each below the one before", gains, order))
    return cells


#: Judges of claims, and benchmarks and ends of their runs.
_CLAIMS = {
    "fig4.10": (_throughput, BENCHMARKS[:1], ENDS[:1]),
    "fig4.13": (_no_loss, BENCHMARKS, ENDS[:1]),
    "fig4.11-12": (_peaks_c, BENCHMARKS[:1], ENDS),
    "fig4.14-15": (_peaks_e, BENCHMARKS[1:], ENDS),
}


class _RestartExhibit(Exhibit):
    """Restart designs with DW and LC: throughput before the end, shutdown, recovery and ramp-up."""

    TITLE, name = "Restart designs (figures 4.10 to 4.15)", "restarts"
    shown: tuple[str, ...] = RESTARTS

    def sections(self, results: Results) -> list[Section]:
        runs, rows = RestartRuns(results), list[list[Entry]]()
        for benchmark, ends, policy, restart in product(BENCHMARKS, ENDS, POLICIES, self.shown):
            run = RestartRun(benchmark, policy, restart, ends)
            if (result := runs.of(run)) is not None:
                parts = [result.shutdown, *result.phases.values(), runs.ramp_up(run), runs.interval(run), runs.speedup(run)]
                names = [benchmark, ends, DESIGNS[policy], "SSDBP" if restart == "none" else restart.upper()]
                rows.append([*names, runs.peak(run), *parts, result.log_bytes / GIB, 100 * result.warm])
        header = ["benchmark", "after a", "design", "restart", "transactions/s", "shutdown, s", "load, s", "analysis, s", "redo, s"]
        header += ["undo, s", "ramp-up, s", "peak to peak, s", "speedup", "log, GiB", "warm frames, %"]
        text = load("do2012").text("restarts")
        pictures = {f"{self.name}-{benchmark.lower()}": picture for benchmark in BENCHMARKS if (picture := self._picture(runs, benchmark))}
        return [Section(self.TITLE, text, [Table(header, rows, self.name, 1)], pictures, on_terminal=True)] if rows else []

    def _picture(self, runs: RestartRuns, benchmark: str) -> Any:
        """Throughput from the last half hour before the end on."""
        frames = [
            result.frame(30).assign(panel=f"{benchmark}, {DESIGNS[policy]}, {ends}", restart=restart)
            for policy, ends, restart in product(POLICIES, ENDS, self.shown)
            if (result := runs.of(RestartRun(benchmark, policy, restart, ends))) is not None
        ]
        if not frames:
            return None
        return series_over(pd.concat(frames), "minutes", "transactions/s", "restart", ["panel"], "minutes after the end")


class _ThesisRestarts(_RestartExhibit):
    """The thesis's restart designs."""

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        runs = {
            RestartRun(benchmark, policy, restart, end): None
            for claim, (_, benchmarks, ends) in _CLAIMS.items()
            if claim in claims
            for benchmark, end, policy, restart in product(benchmarks, ends, POLICIES, RESTARTS)
        }
        one = [RestartRun("TPC-C", policy, "mmr", flush_writes=1) for policy in POLICIES if "fig4.10" in claims]
        return [run.job(settings) for run in [*runs, *one]]

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        return _CLAIMS[claim.id][0](claim, RestartRuns(results))


class _Own(_RestartExhibit):
    """LRR (`algorithms.restart.lrr`) beside LVR: which axis it is better on, and that it is worse on none."""

    TITLE, name = "A design of our own beside LVR", "own-restart"
    shown = ("lvr", "lrr")

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        return [RestartRun(*part).job(settings) for part in product(BENCHMARKS, POLICIES, self.shown, ENDS)]


def _beside(name: str, title: str, text: str, column: str, changed: Mapping[RestartRun, Entry]) -> Shown:
    """Restarts that differ in one thing, beside each other: throughput, seconds of each part and from peak to peak, both without a design.

    What there is no run without a restart design of shows no share of that one's throughput, and no speedup.
    """

    def show(runs: RestartRuns) -> list[Section]:
        rows = list[list[Entry]]()
        for run, value in changed.items():
            if (result := runs.of(run)) is not None:
                seconds = [result.shutdown, result.phases["analysis"], result.recovery, runs.interval(run)]
                rows.append(
                    [
                        run.benchmark,
                        DESIGNS[run.policy],
                        run.restart,
                        value,
                        runs.peak(run),
                        runs.kept_percent(run),
                        *seconds,
                        runs.speedup(run),
                    ]
                )
        header = ["benchmark", "design", "restart", column, "transactions/s", "kept, %", "shutdown, s", "analysis, s", "recovery, s"]
        header += ["peak to peak, s", "times as fast"]
        return [Section(title, text, [Table(header, rows, name, 1)], on_terminal=True)] if rows else []

    return Shown(list(changed), show, title, RestartRuns)


_LOG_DISK = _beside(
    "log-disk",
    "Rate of the log's disk",
    "After a crash; the thesis does not tell the rate: 78 MB/s is what its 12.1 s imply, 86 what its table 4.3 says of one disk.",
    "log's disk, MB/s",
    {RestartRun("TPC-C", policy, "lvr", CRASH, log_rate=rate): rate * 8 * KIB / MB for policy, rate in product(POLICIES, _LOG_RATES)},
)
_SIZES = _beside(
    "restart-sizes",
    "A hundredth and a thirtieth of the size",
    "After a crash; seconds are those of the whole system.",
    "one of so many parts",
    {
        RestartRun(benchmark, policy, restart, CRASH, share=share): 1 / share
        for benchmark, policy, restart, share in product(BENCHMARKS, POLICIES, ("none", "lvr"), (SHARE, _LARGE_SHARE))
    },
)
_CAUSES = _beside(
    "restart-causes",
    "Disks three times as fast, and a log ten times",
    "After a shutdown: what the disks' writes, and reading the log, have to do with throughput and with the way from peak to peak.",
    "changed",
    {
        **{
            RestartRun("TPC-C", policy, restart, fast=fast): "nothing" if fast == 1 else f"disks {fast} times as fast"
            for fast, policy, restart in product((1, 3), POLICIES, RESTARTS)
        },
        **{
            RestartRun("TPC-E", "lc", restart, log_rate=times * _LOG_RATE): "nothing" if times == 1 else f"log {times} times as fast"
            for times, restart in product((1, 10), ("none", "lbr"))
        },
    },
)


#: Guards that prevent each violation and pitfall (4.3), and the restart design that has them.
_GUARDS = {
    "violation A": ("lvr", ("page-id",)),
    "violations B and C": ("lvr", ("page-lsn",)),
    "violation D": ("lvr", ("truncation", "complete-pass")),
    "violation D, MMR": ("mmr", ("harden-before-write",)),
    "pitfall 4.1": ("lvr", ("buf-write-invalidates",)),
    "pitfall 4.2": ("lvr", ("cleaner-last",)),
}
_SLOW, _SLOW_GUARD = "pitfall 4.3", "complete-pass"
_MOST, _HISTORIES = 400, 50


def _search(name: str, settings: Settings) -> Job:
    restart, without = _GUARDS[name]
    label, seed = f"{name}, {restart} without {', '.join(without)}", settings.seed * 10_000
    return Job.of(search, label, drives=False, restart=restart, without=list(without), seed=seed, most=_MOST)


def _kept_job(without: list[str], settings: Settings) -> Job:
    label = f"{_SLOW}, lvr {'without ' + without[0] if without else 'as it is'}"
    return Job.of(frames_kept, label, drives=False, without=without, seed=settings.seed * 10_000, histories=_HISTORIES)


class _Pitfalls(Exhibit):
    """Crashes after every event of drawn histories, without a guard and with it."""

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        if "pitfalls" not in claims:
            return []
        return [*(_search(name, settings) for name in _GUARDS), *(_kept_job(without, settings) for without in ([], [_SLOW_GUARD]))]

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        cells = []
        for name in _GUARDS:
            output = results.get(_search(name, results.settings)) or {}
            values = [output.get("fails"), output.get("fails_with")]
            cells.append(statement(name, "fails without, not with", values, lambda off, on: off == 1 and on == 0, digits=0))
        kept = [(results.get(_kept_job(without, results.settings)) or {}).get("kept") for without in ([], [_SLOW_GUARD])]
        share = claim.limits["kept"]
        return [*cells, statement(_SLOW, f"frames kept without below {share:g} of those with", kept, lambda on, off: off < share * on)]

    def sections(self, results: Results) -> list[Section]:
        rows: list[list[Entry]] = []
        for name, (restart, without) in _GUARDS.items():
            if output := results.get(_search(name, results.settings)):
                rows.append([name, restart, ", ".join(without), output["histories"], "yes" if output["fails"] else "no"])
        table = Table(["", "restart", "without", "histories", "one fails"], rows, "pitfalls")
        return [Section("Violations and pitfalls (section 4.3)", "", [table], on_terminal=True)] if rows else []


EXHIBITS: Mapping[str, Exhibit] = {
    "restart-designs": _ThesisRestarts(),
    "own-restart": _Own(),
    "log-disk": _LOG_DISK,
    "restart-sizes": _SIZES,
    "restart-causes": _CAUSES,
    "pitfalls": _Pitfalls(),
}
