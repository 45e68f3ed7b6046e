"""``flashsim cache``: replacement policies on traces of page references, simulated, compared, and as curves."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from algorithms.replacement.base import REPLACEMENT
from experiments.caching import curve_report, report
from experiments.caching.comparison import METHOD, Comparison, with_optimum
from experiments.caching.confidence import WINDOWS
from experiments.caching.curves import curves, working_sets
from experiments.caching.on_device import Target
from experiments.caching.running import policy_names
from experiments.caching.session import Asked, simulate
from experiments.caching.sizes import parse_sample, parse_share
from experiments.caching.sources import of_text
from experiments.commands.results import Shown, targets_of, write_result
from experiments.commands.shared import CommandWithExamples, Force, Group, JsonFile
from experiments.commands.values import completes
from experiments.commands.warned import warnings_as_lines
from experiments.presentation.progress import progress_bar
from experiments.presentation.terminal import explain, say
from experiments.runs.joining import CPU
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.compiling import cores
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.provenance import provenance
from flashsim.core.units import parse_count, parse_size
from traces.page_trace import keep
from traces.recording import ParquetRecorder

app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)

Trace = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A trace of pages or of requests, or one that is generated: {references}, with parameters as in the examples.",
        autocompletion=completes("references"),
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME[:PARAMETER=NUMBER,...]",
        help="One of {policies}; all; or a Python file. Several may be given, or several with commas.",
        autocompletion=completes("policies"),
    ),
]
Sizes = Annotated[
    list[str],
    typer.Option(
        "--size", metavar="SIZE", help="10% of the trace's pages, 600pages, 4MiB, a range 1%..80% of ten steps, or several with commas."
    ),
]
PageSize = Annotated[
    str, typer.Option("--page-size", metavar="SIZE", help="Requests are cut into pages of this size; bytes are told by it.")
]
WarmUp = Annotated[str, typer.Option(metavar="N|SHARE", help="References that are made first and not counted, such as 10000 or 10%.")]
Limit = Annotated[str | None, typer.Option(metavar="N", help="Only the first references of the trace, such as 100000 or 1e6.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Of generated references, and of policies that draw.")]
Sample = Annotated[
    str,
    typer.Option(metavar="SHARE", help="Look at a share of the pages, such as 1%, in pools as much smaller; what is told is estimated."),
]
CurveSample = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="Look at a share of the pages, such as 1%, or at so many at most, such as 8000pages, and tell the error.",
    ),
]
Jobs = Annotated[int, typer.Option(metavar="N", help="Runs at the same time; by default as many as there are cores.")]
Out = Annotated[Path | None, typer.Option(metavar="FILE.csv|.parquet", help="Write the table, a row a size and policy.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE.svg|.png|.pdf", help="Write the picture.")]
OutDir = Annotated[Path | None, typer.Option(metavar="DIR", help="Write report.html, tables (CSV) and pictures (SVG).")]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="Read and write pages there: a preset, its TOML file, or the path of a real file or disk.",
        autocompletion=completes("presets"),
    ),
]
Depth = Annotated[int, typer.Option(metavar="N", help="Pages that are exchanged with the device at once, at most.")]
Cpu = Annotated[
    str,
    typer.Option(
        "--cpu", metavar="PRESET", help="The CPU that prices requests, of {cpus}; or a TOML file.", autocompletion=completes("cpus")
    ),
]
RequestsFile = Annotated[
    Path | None, typer.Option("--requests", metavar="FILE", help="Record every request to the device into a Parquet file, of one pool.")
]
AllowWrite = Annotated[bool, typer.Option("--allow-write", help="Write to DEVICE, if it is a real file or disk.")]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        "--from",
        metavar="NAME|FILE.py",
        help="The trace's format, if its content does not tell: of pages {page_traces}; of requests {formats}.",
        autocompletion=completes("page_traces", "formats"),
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="ROLE=NAME,...",
        help="Columns of a CSV file: page=KEY,write=OP:get/set; of requests such as offset=LBA:sectors,length=Size:bytes.",
    ),
]


@app.callback()
def cache() -> None:
    """Replacement policies: hits and misses by policy and size, differences with confidence, and miss-ratio curves.

    Examples::

        flashsim cache simulate zipf:pages=1000,references=1e5 --policy lru --policy arc --size 1%..80%
        flashsim cache compare pages.txt lru arc sieve --size 10%
        flashsim cache curve pages.txt
        flashsim cache list
    """


@app.command("list", cls=CommandWithExamples)
def list_policies(
    policies: Annotated[
        list[str] | None,
        typer.Argument(metavar="[POLICY]...", help="Only these; also Python files.", autocompletion=completes("policies")),
    ] = None,
    json: JsonFile = None,
    force: Force = False,
) -> None:
    """List the replacement policies, with what their parameters mean.

    Examples::

        flashsim cache list
        flashsim cache list lru-k 2q
    """
    with Outputs(force) as outputs:
        target = outputs.file("--json", json) if json else None
        told = [(name, REPLACEMENT.load(name)) for name in policies or REPLACEMENT.names()]
        for number, table in enumerate(report.policies_tables(told)):
            say(*([""] if number else []), table)
        if target:
            shown = {name: {parameter: one._asdict() for parameter, one in each.PARAMETERS.items()} for name, each in told}
            write_json(target, {name: {"title": each.TITLE, "parameters": shown[name]} for name, each in told})


@app.command("simulate", cls=CommandWithExamples)
def simulated(
    trace: Trace,
    policy: Policies = None,
    size: Sizes = ["10%"],  # noqa: B006
    page_size: PageSize = "4KiB",
    warm_up: WarmUp = "0",
    limit: Limit = None,
    sample: Sample = "100%",
    seed: Seed = 0,
    jobs: Jobs = cores(),  # noqa: B008
    out: Out = None,
    plot: Plot = None,
    json: JsonFile = None,
    out_dir: OutDir = None,
    format_name: FormatName = None,
    columns: Columns = None,
    device: DeviceName = None,
    depth: Depth = 1,
    cpu: Cpu = CPU,
    requests: RequestsFile = None,
    allow_write: AllowWrite = False,
    force: Force = False,
) -> None:
    """Let policies replace the pages of pools of several sizes, as a trace refers to them.

    Examples::

        flashsim cache simulate pages.txt --policy all --size 1%..80% --plot told.svg
        flashsim cache simulate zipf:pages=1000,write-share=0.3 --policy lru-k:k=3 --policy cflru --size 5%,100pages,1MiB --out told.csv
        flashsim cache simulate ycsb:workload=A,records=20000,references=1e5 --policy lru --policy lirs --size 20% --sample 0.1
        flashsim cache simulate zipf:pages=1000,references=1e4,write-share=0.3 --policy lru,cflru --size 5% --device intel-x25e-64gb
    """
    if requests is not None and device is None:
        raise InvalidParameterError("--requests", str(requests), "without --device there are none")
    target = None if device is None else Target(device, depth, None if cpu == "none" else cpu, allow_write, force)
    asked = _asked(policy or ["all"], size, page_size, warm_up, limit, sample, seed, jobs)
    with Outputs(force) as outputs, warnings_as_lines():
        if target is not None and target.file is not None:
            outputs.spare("--device", target.file)
            if os.path.realpath(target.file) == os.path.realpath(trace):
                raise RefusedError(f"device: {device} is the trace, and would be overwritten")
        targets = targets_of(outputs, "TRACE", trace, out, plot, json, out_dir)
        origin = provenance({"trace": trace} | asked.as_dict() | (target.as_dict() if target else {}))
        with ExitStack() as stack:
            if target is not None and requests is not None:
                target = replace(target, sink=stack.enter_context(ParquetRecorder(outputs.file("--requests", requests), origin)))
            progress = stack.enter_context(progress_bar("simulating policies"))
            done = simulate(of_text(trace, asked.page_size, seed, format_name, columns), asked, progress, target)
        say(f"{done.title()}\n", report.runs_table(done), "")
        explain(report.EXPLAINED)
        if len({each.size for each in done.runs}) > 1:
            say("", report.ratios_table(done))
        if target is not None:
            say("", report.served_table(done), "")
            explain(report.SERVED)
        made = Shown(done.rows(), done.as_dict(), lambda: report.picture(done.rows()), partial(report.write_report, done=done))
        write_result(targets, made, origin)


@app.command("compare", cls=CommandWithExamples)
def compared(
    trace: Trace,
    policies: Annotated[
        list[str] | None,
        typer.Argument(metavar="[POLICY]...", help="At least two, as of --policy.", autocompletion=completes("policies")),
    ] = None,
    policy: Policies = None,
    size: Sizes = ["10%"],  # noqa: B006
    page_size: PageSize = "4KiB",
    warm_up: WarmUp = "0",
    limit: Limit = None,
    sample: Sample = "100%",
    seed: Seed = 0,
    jobs: Jobs = cores(),  # noqa: B008
    out: Out = None,
    plot: Plot = None,
    json: JsonFile = None,
    out_dir: OutDir = None,
    format_name: FormatName = None,
    columns: Columns = None,
    force: Force = False,
) -> None:
    """Say which policy hits more often at which size, with confidence over windows of the trace, beside the optimum.

    Examples::

        flashsim cache compare pages.txt lru arc sieve --size 1%..80%
        flashsim cache compare scan:pages=2000,references=1e5 lru 2q --size 10% --warm-up 10% --json told.json
    """
    names = policy_names([*(policies or []), *(policy or [])])
    if len(names) < 2:
        raise InvalidParameterError("policy", ", ".join(names) or "none", "a comparison needs at least two")
    asked = _asked(with_optimum(names), size, page_size, warm_up, limit, sample, seed, jobs, WINDOWS)
    with Outputs(force) as outputs, warnings_as_lines():
        targets = targets_of(outputs, "TRACE", trace, out, plot, json, out_dir)
        with progress_bar("simulating policies") as progress:
            told = Comparison(simulate(of_text(trace, asked.page_size, seed, format_name, columns), asked, progress))
        say(f"{told.done.title()}\n", report.pairs_table(told), "", report.best_table(told), "")
        explain(METHOD)
        rows = [each.row() for each in told.pairs]
        made = Shown(rows, told.as_dict(), lambda: report.differences(told), partial(report.write_report, done=told.done, told=told))
        write_result(targets, made, provenance({"trace": trace} | asked.as_dict()))


@app.command("curve", cls=CommandWithExamples)
def curve(
    trace: Trace,
    policy: Policies = None,
    size: Sizes = ["1%..100%"],  # noqa: B006
    page_size: PageSize = "4KiB",
    limit: Limit = None,
    sample: CurveSample = "100%",
    seed: Seed = 0,
    jobs: Jobs = cores(),  # noqa: B008
    out: Out = None,
    plot: Plot = None,
    json: JsonFile = None,
    out_dir: OutDir = None,
    format_name: FormatName = None,
    columns: Columns = None,
    force: Force = False,
) -> None:
    """Miss ratios over the size, of LRU by default; working sets and reuse distances.

    LRU's curve takes one pass for all sizes, exact or of a sample of the pages with its error. Other policies are simulated at each size.

    Examples::

        flashsim cache curve pages.txt --plot curve.svg
        flashsim cache curve zipf:pages=100000 --sample 10% --json curve.json
        flashsim cache curve zipf:pages=100000 --sample 5000pages
        flashsim cache curve pages.txt --policy lru --policy arc --policy opt --size 5%..50%
    """
    share, most = parse_sample(sample)
    asked = _asked(policy or ["lru"], size, page_size, "0", limit, "100%", seed, jobs)
    with Outputs(force) as outputs, warnings_as_lines():
        targets = targets_of(outputs, "TRACE", trace, out, plot, json, out_dir)
        source = of_text(trace, asked.page_size, seed, format_name, columns)
        with progress_bar("making curves") as progress:
            told = curves(source, asked, share, most, progress)
            sets = working_sets(source, told.rate, asked.limit)
        say(f"{curve_report.title(told)}\n", curve_report.curves_table(told), "", curve_report.locality_table(told, sets), "")
        explain(curve_report.explained(told))
        write = partial(curve_report.write_report, told=told, sets=sets)
        made = Shown(told.rows(), curve_report.as_dict(told, sets), lambda: curve_report.picture(told, sets), write)
        write_result(targets, made, provenance({"trace": trace} | asked.as_dict() | {"sample": sample}))


@app.command("keep", cls=CommandWithExamples)
def kept(
    trace: Trace,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The trace of pages to write.")],
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="parquet, or lines (an id a line, without what is written).")
    ] = "parquet",
    page_size: PageSize = "4KiB",
    seed: Seed = 0,
    format_name: FormatName = None,
    columns: Columns = None,
    force: Force = False,
) -> None:
    """Write the references of a trace or a generator into a file, as a trace of pages.

    Examples::

        flashsim cache keep zipf:pages=1000,references=1e5,write-share=0.2 --out zipf.parquet
        flashsim cache keep pages.txt --out again.txt --to lines
    """
    with Outputs(force) as outputs, warnings_as_lines():
        target = outputs.file("--out", out)
        with progress_bar("writing references") as progress:
            count = keep(of_text(trace, parse_size(page_size, "--page-size"), seed, format_name, columns).batches(), target, to, progress)
        say(f"{out}: {count:,} references")


def _asked(
    names: list[str], sizes: list[str], page_size: str, warm_up: str, limit: str | None, sample: str, seed: int, jobs: int, windows: int = 1
) -> Asked:
    most = None if limit is None else parse_count(limit, "limit")
    return Asked(names, sizes, parse_size(page_size, "--page-size"), warm_up, most, seed, jobs, parse_share(sample), windows)
