"""``flashsim join`` and ``fs.join``: two tables joined on one device or several, with the cost by phase and the formula beside it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq

from algorithms.joins import base as joins
from flashsim.core.activity import activity
from flashsim.core.errors import RefusedError, option
from flashsim.core.units import MILLISECONDS, SECONDS, format_size
from flashsim.device import engines, presets
from flashsim.device.access import is_path
from flashsim.execution import cpu as cpus
from flashsim.execution.requests import HOST
from flashsim.execution.run import ConcurrentRun
from flashsim.experiments.formulas import comparison, drives
from flashsim.experiments.runs import joining
from flashsim.experiments.runs.drives import DriveInUse
from flashsim.experiments.runs.exporting import RowWriter
from flashsim.experiments.why.joins import why_join
from flashsim.operations import fields
from flashsim.operations.face._arguments import Table, Types, key, sources
from flashsim.operations.face._device_arguments import AllowWrite, preset_of
from flashsim.operations.face._join_options import ALLOCATION, BUFFERS_FOR, CORES, DEVICES, FIELDS, PLACEMENT, JoinChoices, given_options
from flashsim.operations.face._sweep_point import point_of
from flashsim.operations.fields import Field, Name, Size, Target
from flashsim.operations.operation import operation, origin
from flashsim.operations.outcome import Outcome, frame, outstanding_frame
from flashsim.storage.source import source_file
from flashsim.storage.texts import frame_of
from traces.file.recording import ParquetRecorder

if TYPE_CHECKING:  # what pandas and Matplotlib are needed for loads them: they take a third of a start
    import pandas as pd
    from matplotlib.figure import Figure

    from flashsim.experiments.presentation.tables import Table as Shown
    from flashsim.experiments.presentation.terminal import Part
    from flashsim.operations.face._why_outcome import WhyOutcome


class JoinOutcome(Outcome):
    """The cost of a join on every device, and its rows."""

    SWEPT = ("summary", "phases")
    result: joining.JoinResult

    def __init__(self, result: joining.JoinResult, why: bool = False, exact: bool = False) -> None:
        super().__init__(result, _title(result))
        self._whys = [why_join(result, number, exact=exact) for number in range(len(result.runs))] if why else []

    @cached_property
    def _comparisons(self) -> list[list[comparison.PhaseComparison]]:
        return comparison.compare_join(self.result)

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        document = comparison.as_dict(self.result)
        for machine, why in zip(document["machines"], self._whys, strict=False):
            machine["why"] = why.as_dict()
        return document

    def why(self, device: int = 0, *, exact: bool = False) -> WhyOutcome:
        """Say why the join took its time on a device, by its number: it runs again with each mechanism ideal. `exact`: with Shapley values.

        RefusedError: strands share the device, or it does not tell what its parts do.
        """
        from flashsim.operations.face._why_outcome import WhyOutcome, check_number

        check_number("device", device, len(self.result.runs))
        return WhyOutcome(self._whys[device] if self._whys and not exact else why_join(self.result, device, exact=exact), self.provenance)

    def summary(self) -> pd.DataFrame:
        """A row a device: its CPU, result rows, requests, pages, and seconds of I/O, of CPU work and in all; the formula's I/O seconds.

        Of several strands: seconds of I/O and CPU work of all together, what has elapsed in all, and how busy cores and device were.
        """
        rows = []
        for run, cpu, rows_of in zip(self.result.runs, _cpus_of(self.result), self._comparisons, strict=True):
            total, setting = rows_of[-1], self.result.setting
            row: dict[str, Any] = {"algorithm": setting.algorithm, "device": run.machine, "cpu": cpu, "memory_pages": setting.memory}
            row |= {"rows": run.result_rows, "requests": total.requests, "pages": total.pages}
            row |= {"io_s": total.io, "cpu_s": total.cpu, "total_s": total.total, "formula_io_s": total.formula_io}
            if isinstance(run, ConcurrentRun):
                busy = {"cores_busy": run.core_shares.get(HOST, 0.0), "device_busy": max(run.device_shares)}
                row |= {"strands": self.result.parameters.strands, "strands_s": run.strand_time / SECONDS} | busy
            rows.append(row)
        return frame(rows).astype({"formula_io_s": float})

    def phases(self) -> pd.DataFrame:
        """A row a device and phase: requests, pages, and seconds of I/O, of CPU work and in all."""
        rows = [
            (run.machine, row.phase, row.requests, row.pages, row.io, row.cpu, row.total)
            for number, run in enumerate(self.result.runs)
            for row in self.result.phase_seconds(number)[:-1]
        ]
        return frame(rows, ["device", "phase", "requests", "pages", "io_s", "cpu_s", "total_s"])

    def strands(self) -> pd.DataFrame:
        """A row a device and strand, of what ran in several: requests, and seconds of I/O, of CPU work, waiting, and in all."""
        rows = []
        for run in self.result.runs:
            for strand in run.strands if isinstance(run, ConcurrentRun) else ():
                total = strand.total()
                times = {f"{name}_s": getattr(total, f"{name}_time") / SECONDS for name in ("io", "cpu", "wait", "total")}
                rows.append({"device": run.machine, "strand": strand.strand, "requests": total.requests, **times})
        return frame(rows)

    def outstanding(self) -> pd.DataFrame:
        """A row a device and level: how many requests were outstanding (``outstanding``), and in which ``share`` of the time."""
        return outstanding_frame((run.machine, run.outstanding.as_dict()) for run in self.result.runs)

    def against_formula(self) -> pd.DataFrame:
        """A row a device and phase, the total last: what ran beside what the formula of Haas, Carey and Livny says.

        NaN where the formula says nothing: of real devices, of phases that it does not have, and for algorithms that name no formula.  The
        total's difference is of phases that it has; what others took is ``io_left_out_s``.
        """
        rows = []
        for run, phases in zip(self.result.runs, self._comparisons, strict=True):
            rows += [{"device": run.machine, **row.as_dict()} for row in phases]
        seconds = ["io", "formula_io", "io_left_out"]
        columns = ["device", "phase", "requests", "formula_requests", "pages", "formula_pages", *seconds, "io_difference"]
        table = frame(rows)[columns].rename(columns={name: f"{name}_s" for name in seconds})
        return table.astype({name: float for name in table if "formula" in str(name) or name == "io_difference"})

    @cached_property
    def table(self) -> pa.Table:
        """The joined rows as an Arrow table, R's columns first and the key once; the join runs once more for them, without a device."""
        r, s = (file.relation for file in self.result.files)
        with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
            path = Path(folder) / "rows.parquet"
            with RowWriter(path, r, s, joining.wanted_columns(self.result.setting, (r, s))) as writer:
                self.result.emit(writer)
            return pq.read_table(path)

    def rows(self) -> pd.DataFrame:
        """The joined rows: R's columns first, the key once, under its name in R; a name of S that is taken gets ``_s`` behind it."""
        return frame_of(self.table)

    def printout(self) -> Iterator[Part]:
        """The join, its cost in words, and for each device its cost by phase, beside the formula where there is one."""
        from flashsim.experiments.presentation.terminal import Explanation
        from flashsim.operations.face._join_words import devices_table, in_words

        setting, first = self.result.setting, self.result.runs[0]
        strands = self.result.parameters.strands
        with_ = [value for name in ("first", "fetch", "policy", "kernel") if (value := getattr(setting.options, name, None))]
        with_ += [setting.given["partition"]] if "partition" in setting.given else []
        with_ += [f"{strands} strands"] if strands > 1 else []
        join = f"{setting.algorithm} ({', '.join(with_)})" if with_ else setting.algorithm
        files = self.result.files
        sides = ", ".join(f"{file.name} {len(file.relation):,} rows on {file.pages:,} pages" for file in files)
        yield f"{join} on {', '.join(run.machine for run in self.result.runs)}: {sides}; {files[0].layout.page_title} a page"
        totals = [(run.machine, phases[-1]) for run, phases in zip(self.result.runs, self._comparisons, strict=True)]
        if not any(isinstance(run, ConcurrentRun) for run in self.result.runs):
            yield from (*in_words(totals), "")
            if len(totals) > 1:
                yield from (devices_table(totals), "")
        for number, phases in enumerate(self._comparisons):
            yield from self._run_parts(number, phases)
        buffers = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in vars(self.result.allocation).items())
        if smaller := self.smaller_buckets:
            buffers += f"; buckets on pages of {format_size(smaller)}"
        memory = format_size(self.provenance["parameters"]["memory"])
        shown = f"Memory {memory}, {setting.memory:,} pages ({buffers}), placement {setting.placement}, {first.result_rows:,} result rows."
        cpus_of = _cpus_of(self.result)
        one = cpus_of[0] + ", work takes no time" * (cpus_of[0] == "none")
        each = (f"{cpu} for {run.machine}" for cpu, run in zip(cpus_of, self.result.runs, strict=True))
        yield from ("", Explanation(f"{shown} CPU: {one if len({*cpus_of}) == 1 else ', '.join(each)}."))

    @property
    def smaller_buckets(self) -> int:
        """Bytes of the pages of buckets, where they are smaller than the relations'."""
        size = self.result.bucket_page_size
        return size if size < self.result.files[0].page_size else 0

    def _run_parts(self, number: int, phases: list[comparison.PhaseComparison]) -> Iterator[Part]:
        from flashsim.experiments.presentation.tables import Table as Shown
        from flashsim.experiments.presentation.tables import outstanding, same
        from flashsim.experiments.presentation.terminal import Explanation
        from flashsim.operations.face._why_outcome import parts_of

        run, formula = self.result.runs[number], comparison.formulas(self.result)[number]
        yield from ["", run.machine] if number else [run.machine] * (len(self.result.runs) > 1)
        level = run.outstanding.as_dict()
        if level and level["max"] > 1:
            yield from (outstanding(level), "")
        if self._whys:
            yield from (*parts_of(self._whys[number]), "")
        if isinstance(run, ConcurrentRun):
            yield from (_strand_costs(run), Explanation(_overlap(run)))
        elif formula is None:
            columns = same("phase", "requests", "pages") | {"I/O s": "io", "CPU s": "cpu", "total s": "total"}
            yield Shown.of(map(vars, phases), columns, digits=3)
        else:
            disk, total = formula.disk, run.total()
            rates = f"a seek {disk.seek_ms:g} ms, a request {disk.latency_ms:g} ms, a page {disk.page_transfer_ms:.4g} ms read"
            seeks = f" Measured: {total.seeks:,} seeks of {total.seek_time / total.seeks / MILLISECONDS:.2f} ms." if total.seeks else ""
            writing = f"{disk.page_write_ms or disk.page_transfer_ms:.4g} ms written"
            note = " Smaller pages of buckets are counted as they are, but by the formula as the relations' pages."
            sizes = note if self.smaller_buckets else ""
            yield from (comparison.comparison_table(phases), "")
            ask = "" if self._whys else f" Next: {option('why')} explains the difference."
            yield Explanation(f"Formula (Haas et al.) with {rates}, {writing}.{seeks} {comparison.left_out(phases)}{sizes}".rstrip() + ask)

    def _draw(self) -> Figure:
        from flashsim.experiments.presentation.plots import Bar, stacked_bars

        bars = []
        for run, cpu, phases in zip(self.result.runs, _cpus_of(self.result), self._comparisons, strict=True):
            bars += [Bar(f"{run.machine}\nCPU {cpu}", row.phase, row.io, row.cpu, row.formula_io) for row in phases[:-1]]
        return stacked_bars({self.title.partition(":")[0]: bars})


_TABLES = "Or a DataFrame, or an Arrow table. It is loaded onto the device before the clock starts."


@operation
def join(
    r: Annotated[Table, Name("First relation; its columns come first in the result.", "SOURCE", parse=None, python=_TABLES, reads=True)],
    s: Annotated[Table, Name("Second relation.", "SOURCE", parse=None, python="See r. The smaller one builds.", reads=True)],
    on: Annotated[str, Field("Join key: one name for both relations, or the name in each.", "COLUMN[=COLUMN]", key)],
    *,
    device: Annotated[Any, DEVICES],
    memory: Annotated[Any, Size("Size of the buffer pool, such as 10MiB.")],
    algorithm: Annotated[
        str, Name("Join algorithm: {joins}; or a Python file.", "ALGORITHM", completes=("joins",), argument=True, required=True)
    ] = "hybrid-hash",
    types: Types = None,
    page_size: fields.PageSize = "8KiB",
    page_format: fields.PageFormat = None,
    io: Annotated[
        str, Field("Request whole buffers (blocked) or single pages.", "[blocked|page]", fields.choice("blocked", "page"))
    ] = "blocked",
    placement: Annotated[str, PLACEMENT] = "packed",
    cpu: fields.Cpu = cpus.BY_YEAR,
    buffers_for: Annotated[str | None, BUFFERS_FOR] = None,
    allocation: Annotated[str, ALLOCATION] = drives.HAAS,
    cores: Annotated[int | None, CORES] = None,
    digests_stored: Annotated[bool, FIELDS["digests_stored"]] = False,
    why: fields.Why = False,
    exact: fields.Exact = False,
    trace: Annotated[Any, Target("Record all requests to the (first) device in a Parquet file.", "FILE", seldom=True)] = None,
    out: Annotated[Any, Target("Write the joined rows to this file.", "ROWS.parquet")] = None,
    allow_write: AllowWrite = False,
    force: fields.Force = False,
    **choices: JoinChoices,
) -> JoinOutcome:
    r"""Join two tables on simulated or real devices.

    Reports simulated I/O and CPU time by phase, beside the formula of Haas et al. Several devices receive the same requests.

    A SOURCE is tpch:TABLE@SCALE, do2009:TABLE@SCALE, FILE.parquet, FILE.csv, FILE.tsv, FILE.sqlite:TABLE, or a PostgreSQL relation file
    with the table's CREATE TABLE, pg:FILE:DEFINITION.sql. It is loaded onto the device before the clock starts. Sizes need a unit: 100MB
    is 10^8 bytes, 100MiB is 2^20 times 100.

    A column of a text file has integers or other numbers if all of its fields are such, else strings; --types sets other types.

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

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> r = pd.DataFrame({"key": [1, 2, 3], "name": ["a", "b", "c"]})
    >>> s = pd.DataFrame({"key": [3, 1, 3, None], "value": [0.5, 1.5, 2.5, 3.5]})
    >>> result = fs.join(r, s, on="key", algorithm="grace-hash", device="ocz-core-60gb", memory="64KiB")
    >>> result.rows().sort_values(["key", "value"]).values.tolist()
    [[1, 'a', 1.5], [3, 'c', 0.5], [3, 'c', 2.5]]
    >>> result.phases()["phase"].tolist()
    ['partition', 'join']
    >>> late = fs.join(r, s, on="key", algorithm="digest", first="bnl", fetch="naive", device="ocz-core-60gb", memory="64KiB")
    >>> late.phases()["phase"].tolist()
    ['project', 'digest bnl: join', 'index', 'fetch']
    >>> named = ["R.name", "S.value"]
    >>> rare = fs.join(r, s, on="key", algorithm="rare", columns=named, device="ocz-core-60gb", memory="64KiB")
    >>> rare.phases()["phase"].tolist(), list(rare.rows().columns)
    (['scan', 'join', 'fetch S', 'fetch R'], ['name', 'value'])
    >>> made = fs.join(r, s, on="key", algorithm="grace-hash", partition="n-hash", device="ocz-core-60gb", memory="64KiB")
    >>> made.phases()["requests"].tolist()
    [4, 2]
    >>> more = pd.DataFrame({"key": range(2000)})
    >>> para = fs.join(more, s, on="key", algorithm="grace-hash", partition="para-hash", strands=2, device="ocz-core-60gb", memory="1MiB")
    >>> para.strands()["strand"].tolist()
    ['main', 'strand 1', 'strand 2']
    """
    on_pages = page_size, page_format or joins.page_format(algorithm)
    pages = joining.memory_pages(memory, *on_pages)
    options = given_options({**choices, "digests_stored": digests_stored})
    setting = joining.JoinSetting(algorithm, pages, io == "page", placement, buffers_for, cpu, cores, options)
    real = next((one for one in device if isinstance(one, str) and is_path(one)), None)
    if real and len(device) > 1:
        raise RefusedError(f"device: {real} is a real file, which runs alone; fs.compare holds it against formula and simulation")
    preset = None if real else preset_of(device[0])
    joining.check_names(setting, preset)
    comparison.check_formula(algorithm)
    drives.check_rule(allocation)
    for drive in () if real else [presets.load(preset_of(one)) for one in device]:
        engines.begin(drive)  # while the relations are opened
        cpus.warn_of_years(cpu, drive)
    for name, relation in (("r", r), ("s", s)) if real else ():
        file = source_file(relation) if isinstance(relation, str) else None
        if file is not None and os.path.realpath(file) == os.path.realpath(str(real)):
            raise RefusedError(f"device: {real} is what " + option(name) + " reads, and would be overwritten")
    opened = sources({"r": r, "s": s}, types)
    relations = joining.open_pair(opened["r"], opened["s"], on)
    columns = joining.wanted_columns(setting, relations)
    files = (joining.lay_out(relations[0], *on_pages), joining.lay_out(relations[1], *on_pages))
    setting, buffers = drives.division(setting, files, preset, allocation)
    with ExitStack() as stack:
        sink = stack.enter_context(ParquetRecorder(trace, origin())) if trace else None
        results = stack.enter_context(RowWriter(out, *relations, columns)) if out else None
        if real:
            target = joining.RealFile(Path(real), allow_write, force)
            progress = stack.enter_context(activity("loading"))
            result = joining.run_join_on_file(setting, files, target, progress=progress, allocation=buffers, sink=sink, results=results)
        else:
            stack.enter_context(activity(f"joining on {', '.join(map(preset_of, device))}"))
            ready = [DriveInUse(one) if isinstance(one, str) else one.ready() for one in device]
            result = joining.simulate_join(setting, files, ready, allocation=buffers, sink=sink, results=results)
        return JoinOutcome(result, why, exact)


def _title(result: joining.JoinResult) -> str:
    sides = " with ".join(f"{file.name} ({len(file.relation):,} rows, {file.pages:,} pages)" for file in result.files)
    memory = format_size(result.setting.memory * result.files[0].page_size)
    strands = f" in {result.parameters.strands} strands" if result.parameters.strands > 1 else ""
    cpu = " and ".join(dict.fromkeys(_cpus_of(result)))
    return f"{result.setting.algorithm}{strands}: {sides}, {memory} of memory, {result.runs[0].result_rows:,} result rows, CPU {cpu}"


def _cpus_of(result: joining.JoinResult) -> list[str]:
    return ["this machine's own" if disk is None else cpu or "none" for disk, cpu in zip(result.disks, result.cpus, strict=True)]


def _strand_costs(run: ConcurrentRun) -> Shown:
    from flashsim.experiments.presentation.tables import Table as Shown

    rows: list[list[Any]] = []
    for cost, elapsed in [*((cost, run.time_in(cost.name)) for cost in run.phases), (run.total(), run.elapsed)]:
        waits = sum(own.wait_time for own in run.strands[0].phases if own.name == cost.name or cost.name == "total")  # for the others
        times = (cost.io_time, cost.cpu_time, cost.wait_time - waits, elapsed)
        rows.append([cost.name, cost.requests, cost.pages, *(time / SECONDS for time in times)])
    return Shown(["phase", "requests", "pages", "I/O s", "CPU s", "waits s", "elapsed s"], rows, "All strands together", digits=3)


def _overlap(run: ConcurrentRun) -> str:
    cores = ", ".join(f"{count} {place} core{'s' if count > 1 else ''} {run.core_shares[place]:.0%}" for place, count in run.cores.items())
    devices = ", ".join(f"{share:.0%}" for share in run.device_shares)
    took, elapsed = (time / SECONDS for time in (run.strand_time, run.elapsed))
    return f"Strands took {took:.3f} s together in {elapsed:.3f} s. Busy: {cores}, device {devices} of the time."


#: A run of a sweep.
point = point_of(join)
