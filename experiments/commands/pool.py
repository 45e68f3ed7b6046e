"""``flashsim pool``: transactions on a memory pool that an SSD extends, by design."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from algorithms.extensions.base import DESIGNS
from experiments.commands.results import Shown, targets_of, write_result
from experiments.commands.shared import CommandWithExamples, Force, Group, JsonFile
from experiments.commands.values import completes
from experiments.commands.warned import warnings_as_lines
from experiments.commands.worth import worth_of_budget
from experiments.pooling import report
from experiments.pooling.session import PARTS, Asked, simulate
from experiments.pooling.sizes import design_names, is_until_ssd, parse_percent, part_names
from experiments.presentation.progress import progress_bar
from experiments.presentation.tables import Table
from experiments.presentation.terminal import explain, say
from experiments.runs.jobs import Settings
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.compiling import cores
from flashsim.core.provenance import provenance
from flashsim.core.units import parse_duration, parse_size
from traces.transactions.base import WORKLOADS

app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)

Workload = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="Transactions, with parameters: {workloads}; generated references, such as zipf:pages=1e5,each=20; or a trace.",
        autocompletion=completes("workloads"),
    ),
]
Designs = Annotated[
    list[str],
    typer.Option(
        "--design",
        metavar="DESIGN",
        help="What is done with the SSD: {designs}; all; or a Python file. Several may be given, or several with commas.",
        autocompletion=completes("designs"),
    ),
]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="The memory pool.")]
Ssd = Annotated[str, typer.Option(metavar="SIZE", help="The SSD's frames.")]
Time = Annotated[str, typer.Option(metavar="TIME", help="Virtual time that each system runs, such as 36s or 10min.")]
_DEVICE = (
    "rates of Do (2012), table 3.1, or rates:read=N,write=N,further=N,servers=N; {presets}; a TOML file; PRESET/100, a hundredth of it; "
    "or 8xPRESET."
)
Disk = Annotated[str, typer.Option(metavar="DEVICE", help=f"The disks: {_DEVICE}", autocompletion=completes("presets"))]
SsdDevice = Annotated[str, typer.Option(metavar="DEVICE", help="The SSD, as the disks.", autocompletion=completes("presets"))]
Log = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE", help="The log's, as the disks; none: commits take no time. Of rates, read and write are needed.",
        autocompletion=completes("presets"),
    ),
]  # fmt: skip
Condition = Annotated[
    str | None,
    typer.Option("--precondition", metavar="STATE", help="Of a simulated SSD, as in device bench: empty, sequential, random or steady."),
]
LogBytes = Annotated[str, typer.Option(metavar="SIZE", help="Log of each reference that writes.")]
Policy = Annotated[
    str,
    typer.Option(
        metavar="POLICY", help="Which page leaves memory: {policies}; or a Python file.", autocompletion=completes("policies")
    ),
]  # fmt: skip
DirtyLimit = Annotated[str, typer.Option(metavar="SHARE", help="Lambda: how much of the SSD may be newer than the disk.")]
Filling = Annotated[str, typer.Option(metavar="SHARE", help="Tau: how much of the SSD is filled with whatever leaves memory; 0% for none.")]
Throttle = Annotated[int, typer.Option(metavar="N", help="Mu: requests of the SSD outstanding at which others bypass it; 0 for no limit.")]
Grouping = Annotated[int, typer.Option("--group", metavar="N", help="Alpha: pages that a write of the cleaner holds at most.")]
Partitions = Annotated[int, typer.Option(metavar="N", help="Parts into which the SSD's frames are divided.")]
Expansion = Annotated[int, typer.Option(metavar="N", help="Pages that a read from disk brings until memory is full.")]
ExpansionUntil = Annotated[str, typer.Option(metavar="WHAT", help="What is full when reads bring one page again: memory or ssd.")]
ReadAhead = Annotated[int, typer.Option(metavar="N", help="Pages that a scan reads at once.")]
Checkpoint = Annotated[str | None, typer.Option(metavar="TIME", help="Between two checkpoints; none by default.")]
Fuzzy = Annotated[bool, typer.Option("--fuzzy", help="Checkpoints leave on the SSD what is newer than the disk.")]
Clients = Annotated[int, typer.Option(metavar="N", help="They run transactions, one after another each.")]
Think = Annotated[str, typer.Option(metavar="TIME", help="Between two transactions of a client.")]
PageSize = Annotated[str, typer.Option("--page-size", metavar="SIZE", help="Of pages.")]
Without = Annotated[
    list[str] | None,
    typer.Option(metavar="PART", help=f"Run each design once more without: {', '.join(PARTS)}; or all, one after the other."),
]
Scale = Annotated[float, typer.Option(metavar="F", help="Multiplies the workload, memory, the SSD and times; above 0, up to 1.")]
Last = Annotated[str, typer.Option(metavar="SHARE", help="Rates are told over this share of the time, at its end.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Of all that is drawn.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Designs that run at the same time; by default one a core.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Leave what is kept of earlier runs unused.")]
Out = Annotated[Path | None, typer.Option(metavar="FILE.csv|.parquet", help="Write the table, a row a run.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE.svg|.png|.pdf", help="Write the picture of the ramp-up.")]
OutDir = Annotated[Path | None, typer.Option(metavar="DIR", help="Write report.html, tables (CSV) and pictures (SVG).")]


@app.callback()
def pool() -> None:
    """A memory pool that an SSD extends: transactions by design, devices and sizes, in virtual time.

    Examples::

        flashsim pool run tpc-c:warehouses=2 --design none,lc --memory 20MB --ssd 140MB --time 4s
        flashsim pool worth tpc-c:warehouses=2 --budget 90 --prices graefe-2007 --scale 0.2
        flashsim pool list
    """


@app.command("list", cls=CommandWithExamples)
def list_designs(json: JsonFile = None, force: Force = False) -> None:
    """List designs and workloads.

    Examples::

        flashsim pool list
    """
    with Outputs(force) as outputs:
        target = outputs.file("--json", json) if json else None
        designs = {name: DESIGNS.load(name).TITLE for name in DESIGNS.names()}
        workloads = {name: WORKLOADS.load(name).TITLE for name in WORKLOADS.names()}
        say(Table(["design", "title"], [[name, title] for name, title in designs.items()]), "")
        say(Table(["workload", "title"], [[name, title] for name, title in workloads.items()]))
        if target:
            write_json(target, {"designs": designs, "workloads": workloads})


@app.command("run", cls=CommandWithExamples)
def run(
    workload: Workload,
    memory: Memory,
    design: Designs = ["all"],  # noqa: B006
    ssd: Ssd = "0B",
    time: Time = "36s",
    disk: Disk = "rates",
    ssd_device: SsdDevice = "rates",
    precondition: Condition = None,
    log: Log = None,
    log_bytes: LogBytes = "200B",
    policy: Policy = "lru-k",
    dirty_limit: DirtyLimit = "50%",
    filling: Filling = "95%",
    throttle: Throttle = 100,
    group: Grouping = 32,
    partitions: Partitions = 16,
    expansion: Expansion = 8,
    expansion_until: ExpansionUntil = "memory",
    read_ahead: ReadAhead = 32,
    checkpoint: Checkpoint = None,
    fuzzy: Fuzzy = False,
    clients: Clients = 64,
    think: Think = "0s",
    page_size: PageSize = "8KiB",
    without: Without = None,
    scale: Scale = 1.0,
    last: Last = "20%",
    seed: Seed = 0,
    jobs: Jobs = cores(),  # noqa: B008
    fresh: Fresh = False,
    trace: Annotated[Path | None, typer.Option(metavar="TRACE.parquet", help="Of one design: write all requests of its devices.")] = None,
    out: Out = None,
    plot: Plot = None,
    json: JsonFile = None,
    out_dir: OutDir = None,
    force: Force = False,
) -> None:
    """Run transactions on a memory pool and the SSD that extends it, from cold, and tell what came of it.

    Designs run on the same transactions, several at a time. What each did is kept: a run that was interrupted goes on where it stopped, and
    one with more designs runs these alone. --scale F multiplies sizes and times by F: rates hardly change, and times are told in full.

    Examples::

        flashsim pool run tpc-c:warehouses=2 --design none,dw,lc --memory 20MB --ssd 140MB --time 4s --plot told.svg
        flashsim pool run tpc-c:warehouses=2000 --design lc --memory 20GiB --ssd 140GiB --time 2h --scale 0.001
        flashsim pool run zipf:pages=20000,write-share=0.3 --design lc --memory 30MB --ssd 60MB --time 3s --without throttle --out told.csv
        flashsim pool run tpc-c:warehouses=1 --design lc --memory 20MB --ssd 60MB --time 1s --disk 8xtoshiba-5400-320gb --trace pool.parquet
    """
    switches = {
        "dirty_limit": parse_percent(dirty_limit, "--dirty-limit"),
        "fill": parse_percent(filling, "--filling"),
        "throttle": throttle,
        "group": group,
        "partitions": partitions,
        "expansion": expansion,
        "expands_for_ssd": is_until_ssd(expansion_until, "--expansion-until"),
        "read_ahead": read_ahead,
        "checkpoint": parse_duration(checkpoint, "--checkpoint") if checkpoint else 0,
        "sharp": not fuzzy,
        "clients": clients,
        "think": parse_duration(think, "--think"),
    }
    devices = {"disk": disk, "ssd": ssd_device}
    if log is not None:
        devices["log"], switches["log_bytes"] = log, parse_size(log_bytes, "--log-bytes")
    asked = Asked(
        workload=workload,
        designs=design_names(design),
        memory=parse_size(memory, "--memory"),
        ssd=parse_size(ssd, "--ssd"),
        time=parse_duration(time, "--time"),
        devices=devices,
        states={} if precondition is None else {"ssd": (precondition, seed)},
        policy=policy,
        page_size=parse_size(page_size, "--page-size"),
        seed=seed,
        scale=scale,
        without=part_names(without or []),
        last=parse_percent(last, "--last") / 100,
        switches=switches,
    )
    settings, begun = Settings(jobs=jobs, fresh=fresh), perf_counter()
    with Outputs(force) as outputs, warnings_as_lines():
        targets = targets_of(outputs, "WORKLOAD", workload, out, plot, json, out_dir)
        origin = provenance(asked.as_dict())
        with progress_bar("designs") as progress:
            done = simulate(asked, progress, settings, outputs.file("--trace", trace) if trace else None)
        made = len(done.runs) - done.recalled
        say(
            done.title(),
            f"How long: {perf_counter() - begun:.0f} s; {made} runs were made, {done.recalled} kept from before\n",
            report.runs_table(done),
            "",
            report.traffic_table(done),
            "",
        )
        for table in (report.figures_table(done), report.kinds_table(done)):
            if table is not None:
                say(table, "")
        explain(report.EXPLAINED)
        if (worn := report.wear_table(done)) is not None:
            say("", worn, "")
            explain(report.WORN)
        write = partial(report.write_report, done=done)
        write_result(targets, Shown(done.rows(), done.as_dict(), lambda: report.ramp_up(done), write), origin)


app.command("worth", cls=CommandWithExamples)(worth_of_budget)
