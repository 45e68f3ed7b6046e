"""``flashsim pool run`` and ``fs.pool``: transactions on a memory pool that an SSD extends, by design."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from time import perf_counter
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, option
from flashsim.core.processes import cores
from flashsim.core.units import SECONDS, format_duration
from flashsim.execution.pooled.options import UNTIL
from flashsim.experiments.designs import report, session
from flashsim.experiments.formulas.extension import LONGEST_RUN, MOST_REFERENCES, predict_system
from flashsim.experiments.presentation.report import Report, Section
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.runs.jobs import Settings
from flashsim.experiments.why.pools import why_pool
from flashsim.operations import fields
from flashsim.operations.face._sweep_point import point_of
from flashsim.operations.face._why_outcome import WhyOutcome, check_number, parts_of
from flashsim.operations.face.drive import Drive
from flashsim.operations.fields import Count, Duration, Field, Flag, Name, Names, Scale, Size, least
from flashsim.operations.operation import operation
from flashsim.operations.outcome import PICTURE, REPORT, TABLE, Outcome, Picture
from flashsim.pools import PoolOptions

_DISK = (
    "Device of the database: rates (Do 2012, table 3.1), rates:read=N,write=N,further=N,servers=N, a preset (see flashsim device list), "
    "PRESET/100 (a hundredth of it), 8xPRESET, or a TOML file."
)
_WORKLOADS = "Transactions with parameters: {workloads}; generated references, such as zipf:pages=1e5,each=20; or a trace."
_DESIGNS = "Design of the SSD extension: {designs}; all; or a Python file. May be repeated or separated by commas."
_WITHOUT = f"Ablation: run each design again without {', '.join(session.PARTS)}; all: without each in turn."


def _devices(help: str) -> Field:
    def parse(value: Any, parameter: str) -> str | Drive:
        return value if isinstance(value, Drive) else fields.text(value, parameter)

    return Field(help, "DEVICE", parse, ("presets",), python="Or an unused `fs.drive`, of which each design has its own.")


class PoolOutcome(Outcome):
    """Results of designs of a pool's extension.

    `summary` has a row a design and part that it was without: rates and shares over the last part of the time, and counts over all of it.
    """

    SWEPT = ("summary", "series", "traffic")
    FILES = (TABLE, PICTURE, REPORT)

    def __init__(self, results: session.DesignRuns, seconds: float, why: bool = False, exact: bool = False) -> None:
        super().__init__(results)
        self.seconds = seconds
        self._whys = [self.why(number, exact=exact).result for number in range(len(results.runs))] if why else []

    def why(self, run: int = 0, *, exact: bool = False) -> WhyOutcome:
        """Say why transactions of a run, by its number, take their time; it runs again with each mechanism of its devices made ideal."""
        check_number("run", run, len(self.result.runs))
        with activity("why") as progress:
            answer = why_pool(self.result.runs[run], self.result.study, progress, exact=exact)
        return WhyOutcome(answer, self.provenance)

    def printout(self) -> Iterator[Part]:
        results, recalls = self.result, self.result.recalled
        fresh = len(results.runs) - recalls
        yield self.title
        if sentence := report.best_in_words(results):
            yield Explanation(sentence)
        yield f"{len(results.runs)} runs in {self.seconds:.0f} s: {fresh} simulated now, {recalls} kept\n"
        for make in (report.runs_table, report.traffic_table, report.figures_table, report.kinds_table):
            if (table := make(results)) is not None:
                yield from (table, "")
        yield Explanation(report.EXPLAINED)
        if (worn := report.wear_table(results)) is not None:
            yield from ("", worn, "", Explanation(report.WORN))
        for why in self._whys:
            yield from ("", why.title, *parts_of(why))
        if self._formulas:
            yield from ("", report.formula_table(self._formulas), "", Explanation(report.BY_FORMULA))
        steps = [] if self._whys else [f"{option('why')} explains the time of transactions"]
        yield from ("", next_steps(*steps, f"{option('plot')} FILE.svg draws the throughput", "flashsim pool list shows all designs"))

    @cached_property
    def _formulas(self) -> list[dict[str, Any]]:
        rows, study = [], self.result.study
        with activity("formulas"):
            for each in self.result.runs:
                if each.total("references") > LONGEST_RUN:
                    continue
                if found := predict_system(study.setup(each.design, each.without), MOST_REFERENCES):
                    simulated = each.row()["transactions_s"]
                    row = {"design": each.design, "without": each.without, "transactions_s": simulated}
                    row |= {f"formula_{name}": float(value) for name, value in found._asdict().items()}
                    rows.append(row | {"error": found.throughput / simulated - 1 if simulated else None})
        return rows

    def against_formula(self) -> pd.DataFrame:
        """A row a run that there is a formula of: transactions a second beside those by formula, its error, and how busy devices are by it.

        There is one of the designs none, cw, dw, lc and tac, with LRU or LRU-2 in memory, at rates, of references to single pages, without
        a log or checkpoints, and of runs of up to 1,048,576 references.
        """
        return pd.DataFrame(self._formulas)

    def as_dict(self) -> dict[str, Any]:
        document = super().as_dict() | {"formula": self._formulas}
        for run, why in zip(document["runs"], self._whys, strict=False):
            run["why"] = why.as_dict()
        return document

    def _report(self) -> Report:
        results, study, first = self.result, self.result.study, self.result.runs[0]
        tables = [make(results) for make in (report.runs_table, report.figures_table, report.kinds_table)]
        worth, worn = report.parts(results), report.wear_table(results)
        sections = [
            Section("Over time", pictures={"ramp_up": report.ramp_up(results), "traffic": report.traffic(results)}),
            Section("Designs", report.EXPLAINED, [each for each in tables if each is not None], {"parts": worth} if worth else {}),
            Section("Traffic", "Pages that moved in the last part of the time, by device and cause.", [report.traffic_table(results)]),
            *([] if worn is None else [Section("Wear", report.WORN, [worn])]),
        ]
        figures = [("pages", f"{results.pages:,}"), ("clients", str(first.system.clients)), ("time", format_duration(study.time))]
        rows = self.summary()
        lead = f"{results.title()}; rates over the last {format_duration(round(rows['told_over_s'].iloc[0] * SECONDS))}."
        return Report(study.workload, lead, figures, sections, self.provenance, {"runs": rows, "series": self.series()})

    def series(self) -> pd.DataFrame:
        """A row a run and interval of virtual time: transactions a second, hit ratios, shares of the SSD, and megabytes a second."""
        frames = [pd.DataFrame({"design": each.design, "without": each.without} | each.series()) for each in self.result.runs]
        return pd.concat(frames, ignore_index=True)

    def kinds(self) -> pd.DataFrame:
        """A row a run and kind of transactions, if there are several: transactions a second and their share, and transactions in all."""
        return pd.DataFrame([row for each in self.result.runs for row in each.kinds()])

    def traffic(self) -> pd.DataFrame:
        """A row a run, device and cause: pages and megabytes a second over the last part of the time, and pages in all."""
        return pd.DataFrame([row for each in self.result.runs for row in each.traffic()])

    def plot_traffic(self) -> Picture:
        """Megabytes a second over time, of the disk and the SSD."""
        return Picture(report.traffic(self.result))

    def plot_parts(self) -> Picture:
        """Throughput of designs without a part of the SSD manager, over that with all parts."""
        figure = report.parts(self.result)
        if figure is None:
            raise InvalidParameterError("without", "nothing", "a part must have been left out")
        return Picture(figure)

    def _draw(self) -> Figure:
        return report.ramp_up(self.result)


@operation
def pool(
    workload: Annotated[str, Name(_WORKLOADS, "WORKLOAD", completes=("workloads",), argument=True, reads=True)],
    *,
    memory: Annotated[Any, Size("Size of the memory pool.")],
    design: Annotated[Any, Names(_DESIGNS, "DESIGN", completes=("designs",))] = "all",
    ssd: Annotated[Any, Size("Size of the SSD extension.", parse=partial(fields.size, least=0))] = "0B",
    time: Annotated[Any, Duration("Virtual time of each run, such as 36s or 10min.")] = "36s",
    disk: Annotated[Any, _devices(_DISK)] = "rates",
    ssd_device: Annotated[Any, _devices("Device of the SSD extension, in the forms of --disk.")] = "rates",
    precondition: fields.Precondition = None,
    log: Annotated[Any, _devices("Device of the log, in the forms of --disk; without one, commits take no time.")] = None,
    log_bytes: Annotated[
        Any, Size("Log bytes per page that a transaction writes.", parse=partial(fields.size, least=0), needs="log", seldom=True)
    ] = "200B",
    policy: Annotated[
        str, Name("Replacement policy of memory: {policies}; or a Python file.", "POLICY", completes=("policies",))
    ] = "lru-k",
    dirty_limit: Annotated[
        str | float, Field("Lambda: maximum share of SSD frames that are newer than the disk.", "SHARE", session.parse_percent, seldom=True)
    ] = "50%",
    filling: Annotated[
        str | float,
        Field(
            "Tau: until this share is filled, the SSD takes every page evicted from memory; 0% for none.",
            "SHARE",
            session.parse_percent,
            seldom=True,
        ),
    ] = "95%",
    throttle: Annotated[
        int, Count("Mu: SSD queue depth from which requests bypass the SSD; 0 for no limit.", parse=least(0), seldom=True)
    ] = 100,
    group: Annotated[int, Count("Alpha: maximum number of pages per write of the cleaner.", seldom=True)] = 32,
    partitions: Annotated[int, Count("Number of partitions of the SSD frames.", seldom=True)] = 16,
    expansion: Annotated[int, Count("Pages per disk read until --expansion-until.", seldom=True)] = 8,
    expansion_until: Annotated[
        str, Field(f"Read expansion ends once this is full: {' or '.join(UNTIL)}.", "WHAT", fields.choice(*UNTIL), seldom=True)
    ] = "memory",
    read_ahead: Annotated[int, Count("Read-ahead of scans, pages.", seldom=True)] = 32,
    checkpoint: Annotated[Any, Duration("Time between checkpoints; none by default.")] = None,
    fuzzy: Annotated[bool, Flag("Fuzzy checkpoints: dirty pages stay on the SSD.", needs="checkpoint", seldom=True)] = False,
    clients: Annotated[int, Count("Number of concurrent clients.")] = 64,
    think: Annotated[Any, Duration("Think time between two transactions of a client.", seldom=True)] = "0s",
    page_size: fields.PoolPages = "8KiB",
    without: Annotated[Any, Names(_WITHOUT, "PART")] = None,
    why: fields.Why = False,
    exact: fields.Exact = False,
    scale: Annotated[float, Scale("Scale of workload, memory, SSD and times, above 0 and up to 1.")] = 1.0,
    last: Annotated[
        str | float, Field("Average rates over this final share of the run.", "SHARE", session.parse_percent, seldom=True)
    ] = "20%",
    seed: fields.Seed = 0,
    jobs: fields.Jobs = None,
    fresh: fields.Fresh = False,
    trace: Annotated[Any, fields.Target("Record the requests of all devices (one design only).", "TRACE.parquet", seldom=True)] = None,
) -> PoolOutcome:
    """Run transactions on a buffer pool with an SSD.

    Reports throughput, hits and device load of each design of the SSD extension, from a cold start.

    Designs run on the same transactions, several at a time. What each did is kept: a run that was interrupted goes on where it stopped, and
    one with more designs runs these alone. --scale F multiplies sizes and times by F: rates hardly change, and times are told in full.

    Examples::

        flashsim pool run tpc-c:warehouses=2 --design none,dw,lc --memory 20MB --ssd 140MB --time 4s --plot told.svg
        flashsim pool run tpc-c:warehouses=2000 --design lc --memory 20GiB --ssd 140GiB --time 2h --scale 0.001
        flashsim pool run zipf:pages=20000,write-share=0.3 --design lc --memory 30MB --ssd 60MB --time 3s --without throttle --out told.csv
        flashsim pool run tpc-c:warehouses=1 --design lc --memory 20MB --ssd 60MB --time 1s --disk 8xtoshiba-5400-320gb --trace pool.parquet

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.pool("zipf:pages=2000,each=5", design=["none", "dw"], memory="4MiB", ssd="10MiB", clients=4, time="2s", jobs=1)
    >>> none, dw = result.summary().transactions_s
    >>> bool(dw > none), result.series().shape[0]
    (True, 200)
    """
    device_of = {"disk": disk, "ssd": ssd_device} | ({} if log is None else {"log": log})
    states = {purpose: (one.precondition, one.seed) for purpose, one in device_of.items() if isinstance(one, Drive) and one.is_flash}
    options = PoolOptions(
        dirty_limit=int(dirty_limit), filling=int(filling), throttle=throttle, group=group, partitions=partitions,
        expansion=expansion, expansion_until=expansion_until, read_ahead=read_ahead, checkpoint=checkpoint or 0, fuzzy=fuzzy,
        clients=clients, think=think, log_bytes=0 if log is None else log_bytes,
    )  # fmt: skip
    presets = {purpose: str(one.recipe()["preset"]) if isinstance(one, Drive) else one for purpose, one in device_of.items()}
    study = session.PoolStudy(
        workload=workload, designs=session.design_names(design), memory=memory, ssd=ssd, time=time, devices=presets,
        states=states if precondition is None else states | {"ssd": (precondition, seed)}, policy=policy, page_size=page_size, seed=seed,
        scale=scale, without=session.part_names(without or []), last=int(last) / 100, options=options,
    )  # fmt: skip
    start = perf_counter()
    with activity("designs") as progress:
        results = session.execute(study, progress, Settings(jobs=jobs or cores(), fresh=fresh), trace)
    return PoolOutcome(results, perf_counter() - start, why, exact)


#: A run of a sweep.
point = point_of(pool, jobs=1, fresh=True)
