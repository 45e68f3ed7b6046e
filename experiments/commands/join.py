"""``flashsim join``: one join of two sources on one device, its cost by phase, and the formula beside it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.joins.base import JOINS
from algorithms.joins.base import page_format as page_format_of
from experiments.commands.outputs import Outputs, write_json
from experiments.commands.progress import progress_bar
from experiments.commands.shared import (
    CacheShare,
    ColumnNames,
    Cores,
    FetchPolicy,
    FetchStrategyName,
    FirstJoin,
    Force,
    JsonFile,
    KernelJoin,
    PageFormatName,
    PartitionMethodName,
    Strands,
    SubBuffer,
    column_names,
    sub_buffer_size,
)
from experiments.commands.terminal import explain, say
from experiments.commands.values import completes
from experiments.formulas.comparison import as_dict, check_formula, compare_join, comparison_table, formulas, why
from experiments.formulas.partitioning import HAAS, check_rule, division
from experiments.presentation.rows import RowWriter
from experiments.presentation.tables import Table
from experiments.presentation.trace_tables import outstanding
from experiments.runs.joining import (
    CPU,
    JoinResult,
    JoinSetting,
    RealFile,
    check_names,
    lay_out,
    memory_pages,
    open_pair,
    run_join_on_file,
    simulate_join,
    wanted_columns,
)
from flashsim.core.errors import RefusedError
from flashsim.core.provenance import provenance
from flashsim.core.units import MILLISECONDS, SECONDS, as_written, format_size, parse_size
from flashsim.device import engines, presets
from flashsim.device.access import is_path
from flashsim.execution.run import ConcurrentRun
from flashsim.storage.source import source_file
from traces.recording import ParquetRecorder


class Io(Enum):
    """Whether requests are whole buffers or single pages."""

    BLOCKED = "blocked"
    PAGE = "page"


def join(
    algorithm: Annotated[
        str,
        typer.Argument(
            metavar="ALGORITHM",
            help="One of {joins}; or a Python file.",
            autocompletion=completes("joins"),
        ),
    ],
    r: Annotated[str, typer.Option("--r", metavar="SOURCE", help="One relation; its columns come first in the result.")],
    s: Annotated[str, typer.Option("--s", metavar="SOURCE", help="The other relation.")],
    on: Annotated[str, typer.Option("--on", metavar="COLUMN[=COLUMN]", help="The key, in both relations or in each.")],
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="DEVICE",
            help="A preset (see flashsim device list), its TOML file, or the path of a real file or disk.",
            autocompletion=completes("presets"),
        ),
    ],
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="The buffer pool, such as 10MiB.")],
    page_size: Annotated[str, typer.Option("--page-size", metavar="SIZE", help="512B to 64KiB.")] = "8KiB",
    page_format: PageFormatName = None,
    io: Annotated[Io, typer.Option("--io", help="Requests of whole buffers, or of single pages.")] = Io.BLOCKED,
    placement: Annotated[
        str,
        typer.Option(
            metavar="PLACEMENT",
            help="One of {placements}; or a Python file.",
            autocompletion=completes("placements"),
        ),
    ] = "packed",
    cpu: Annotated[
        str,
        typer.Option(
            "--cpu",
            metavar="PRESET",
            help="The CPU that prices work, of {cpus}; or a TOML file.",
            autocompletion=completes("cpus"),
        ),
    ] = CPU,
    buffers_for: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET",
            help="Divide the buffers as for this device rather than the one that is run on.",
            autocompletion=completes("presets"),
        ),
    ] = None,
    allocation: Annotated[
        str, typer.Option(metavar="RULE", help="How memory is divided: haas, by Haas et al., or drive, by closed forms made for a drive.")
    ] = HAAS,
    first: FirstJoin = None,
    fetch: FetchStrategyName = None,
    k: CacheShare = None,
    policy: FetchPolicy = None,
    kernel: KernelJoin = None,
    columns: ColumnNames = None,
    partition: PartitionMethodName = None,
    sub_buffer: SubBuffer = None,
    strands: Strands = None,
    cores: Cores = None,
    digests_stored: Annotated[bool, typer.Option("--digests-stored", help="Digests are on the device before digest begins.")] = False,
    trace: Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="Record every request into a Parquet file.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="ROWS.parquet", help="Write the joined rows.")] = None,
    allow_write: Annotated[bool, typer.Option("--allow-write", help="Write to DEVICE, if it is a real file or disk.")] = False,
    json: JsonFile = None,
    force: Force = False,
) -> None:
    r"""Join two sources on one device; show what it cost, and what the formula says.

    A SOURCE is tpch:TABLE@SCALE, do2009:TABLE@SCALE, FILE.parquet, FILE.csv, FILE.sqlite:TABLE, or a PostgreSQL relation file with the
    table's CREATE TABLE, pg:FILE:DEFINITION.sql. It is loaded onto the device before the clock starts. Sizes need a unit: 100MB is 10^8
    bytes, 100MiB is 2^20 times 100.

    In the joined rows R's columns come first and the key stands once, under its name in R. A column of S whose name is taken gets _s behind
    it. A SQLite column that holds values of several types is written as text.

    Examples::

        flashsim join bnl --r do2009:customer@0.1 --s do2009:orders@0.1 \
            --on c_custkey=o_custkey --device toshiba-5400-320gb --memory 1MiB
        flashsim join grace-hash --r do2009:customer@0.1 --s do2009:orders@0.1 \
            --on c_custkey=o_custkey --device ocz-core-60gb --memory 1MiB \
            --trace grace.parquet --out rows.parquet
        flashsim join digest --r do2009:customer@0.1 --s do2009:orders@0.1 \
            --on c_custkey=o_custkey --device mtron-msd-sata3025-16gb \
            --memory 1MiB --first external-sort-merge --fetch graph-based
        flashsim join digest --r do2009:customer@0.1 --s do2009:orders@0.1 \
            --on c_custkey=o_custkey --device mtron-msd-sata3025-16gb \
            --memory 1MiB --fetch pooled --policy lirs
        flashsim join grace-hash --r do2009:customer@0.1 --s do2009:orders@0.1 \
            --on c_custkey=o_custkey --device ocz-core-60gb --memory 512KiB \
            --partition n-hash --sub-buffer 4KiB
        flashsim join grace-hash --r do2009:customer@0.1 --s do2009:orders@0.1 \
            --on c_custkey=o_custkey --device micron-p300 --memory 512KiB \
            --partition n-hash --allocation drive
        flashsim join grace-hash --r do2009:customer@0.1 --s do2009:orders@0.1 \
            --on c_custkey=o_custkey --device ocz-vertex-3 --memory 2MiB \
            --partition para-hash --strands 20 --cores 4
    """
    on_pages = parse_size(page_size, "--page-size"), page_format or page_format_of(algorithm)
    pages = memory_pages(parse_size(memory, "--memory"), *on_pages)
    fetching: dict[str, Any] = {
        "first": first,
        "fetch": fetch,
        "k": k,
        "policy": policy,
        "kernel": kernel,
        "columns": column_names(columns),
    }
    fetching["digests_stored"] = digests_stored or None
    fetching |= {"partition": partition, "sub_buffer": sub_buffer_size(sub_buffer), "strands": strands, "cores": cores}
    setting = JoinSetting(algorithm, pages, io is Io.PAGE, placement, buffers_for, None if cpu == "none" else cpu, **fetching)
    real = is_path(device)
    check_names(setting, None if real else device)
    check_formula(algorithm)
    check_rule(allocation)
    if not real:
        engines.begin(presets.load(device))  # while the relations are opened
    with Outputs(force) as outputs:
        wanted = {"--trace": trace, "--out": out, "--json": json}
        if real:
            outputs.spare("--device", Path(device))
            for option, source in (("--r", r), ("--s", s)):
                _spare_source(device, option, source)
        targets = {option: outputs.file(option, path) for option, path in wanted.items() if path is not None}
        relations = open_pair(r, s, on)
        shown = wanted_columns(setting, relations)
        files = (lay_out(relations[0], *on_pages), lay_out(relations[1], *on_pages))
        setting, buffers = division(setting, files, None if real else device, allocation)
        asked = {"r": r, "s": s, "on": on, "device": device, "page_size": on_pages[0], "page_format": on_pages[1]}
        asked["allocation"] = allocation
        origin = provenance(asked | vars(setting))
        with ExitStack() as stack:
            sink = stack.enter_context(ParquetRecorder(targets["--trace"], origin)) if trace else None
            results = stack.enter_context(RowWriter(targets["--out"], *relations, shown)) if out else None
            if real:
                target = RealFile(Path(device), allow_write, force)
                progress = stack.enter_context(progress_bar("loading"))
                result = run_join_on_file(setting, files, target, allocation=buffers, sink=sink, results=results, progress=progress)
            else:
                with progress_bar(f"joining on {device}"):
                    result = simulate_join(setting, files, [device], allocation=buffers, sink=sink, results=results)
        _show(result, as_written(memory))
        if json:
            write_json(targets["--json"], as_dict(result) | {"provenance": origin})


def _spare_source(device: str, option: str, source: str) -> None:
    """Refuse to run on the very file that a relation is read from."""
    file = source_file(source)
    if file is not None and os.path.realpath(file) == os.path.realpath(device):
        raise RefusedError(f"device: {device} is what {option} reads, and would be overwritten")


def _show(result: JoinResult, memory: str) -> None:
    setting, run = result.setting, result.runs[0]
    told, takes = result.parameters, JOINS.load(setting.algorithm).OPTIONS
    with_ = [str(getattr(told, name)) for name in ("first", "fetch", "policy", "kernel") if name in takes and getattr(told, name)]
    with_ += [setting.partition] if setting.partition else []
    with_ += [f"{told.strands} strands"] if told.strands > 1 else []
    joined = f"{setting.algorithm} ({', '.join(with_)})" if with_ else setting.algorithm
    sides = ", ".join(f"{file.name} {len(file.relation):,} rows on {file.pages:,} pages" for file in result.files)
    say(f"{joined} on {run.machine}: {sides}; {result.files[0].layout.page_title} a page")
    buffers = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in vars(result.allocation).items())
    smaller = result.bucket_page_size if result.bucket_page_size < result.files[0].page_size else 0
    buffers += f"; buckets on pages of {format_size(smaller)}" if smaller else ""
    say(f"memory {memory}, {setting.memory:,} pages ({buffers}), placement {setting.placement}, {run.result_rows:,} result rows\n")
    level = run.outstanding.as_dict()
    if level and level["max"] > 1:
        say(outstanding(level), "")
    if isinstance(run, ConcurrentRun):
        say(_strand_costs(run))
        explain(_overlap(run))
        return
    formula = formulas(result)[0]
    if formula is None:
        say(_costs(result))
        return
    say(comparison_table(compare_join(result)[0]))
    disk = formula.disk
    rates = f"a seek {disk.seek_ms:g} ms, a request {disk.latency_ms:g} ms, a page {disk.page_transfer_ms:.4g} ms read"
    total = run.total()
    seeks = f" Measured: {total.seeks:,} seeks of {total.seek_time / total.seeks / MILLISECONDS:.2f} ms." if total.seeks else ""
    say("")
    written = f"{disk.page_write_ms or disk.page_transfer_ms:.4g} ms written"
    sizes = " Smaller pages of buckets are counted as they are, but by the formula as the relations' pages." if smaller else ""
    explain(f"Formula (Haas et al.) with {rates}, {written}.{seeks} {why(setting.algorithm)}{sizes}")


def _strand_costs(run: ConcurrentRun) -> Table:
    rows: list[list[Any]] = []
    for cost, elapsed in [*((cost, run.elapsed_in(cost.name)) for cost in run.phases), (run.total(), run.elapsed)]:
        waits = sum(own.wait_time for own in run.strands[0].phases if own.name == cost.name or cost.name == "total")  # for the others
        times = (cost.io_time, cost.cpu_time, cost.wait_time - waits, elapsed)
        rows.append([cost.name, cost.requests, cost.pages, *(time / SECONDS for time in times)])
    return Table(["phase", "requests", "pages", "I/O s", "CPU s", "waits s", "elapsed s"], rows, "All strands together", digits=3)


def _overlap(run: ConcurrentRun) -> str:
    cores = ", ".join(f"{count} {place} core{'s' if count > 1 else ''} {run.core_shares[place]:.0%}" for place, count in run.cores.items())
    devices = ", ".join(f"{share:.0%}" for share in run.device_shares)
    took, elapsed = (time / SECONDS for time in (run.strand_time, run.elapsed))
    return f"Strands took {took:.3f} s together in {elapsed:.3f} s. Busy: {cores}, device {devices} of the time."


def _costs(result: JoinResult) -> Table:
    rows: list[list[Any]] = [[row.phase, row.requests, row.pages, row.io, row.cpu, row.total] for row in result.measured()]
    return Table(["phase", "requests", "pages", "I/O s", "CPU s", "total s"], rows, digits=3)
