"""``fs.join``: two tables joined on one device or several, with the cost by phase and the formula beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from algorithms.joins.base import page_format as page_format_of
from experiments.face._devices import device_of
from experiments.face._outcome import Outcome, outstanding_frame, point_of
from experiments.face._tables import Table, key, source
from experiments.face._units import count, late_options, partition_options, several, size, text
from experiments.face._working import working
from experiments.face.drive import Drive
from experiments.formulas.comparison import check_formula, compare_join
from experiments.formulas.partitioning import HAAS, check_rule, division
from experiments.presentation.plots import Bar, stacked_bars
from experiments.presentation.rows import RowWriter
from experiments.runs.drives import DriveInUse, HeldDrive
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
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.provenance import provenance
from flashsim.core.units import SECONDS, format_size
from flashsim.device import engines, presets
from flashsim.device.access import is_path
from flashsim.execution.requests import HOST
from flashsim.execution.run import ConcurrentRun
from traces.recording import ParquetRecorder

#: Whether requests are whole buffers, or single pages.
_IO = ("blocked", "page")


class JoinOutcome(Outcome):
    """What a join cost on every device, and its rows.

    Parameters
    ----------
    result
        As the join ran.
    """

    def __init__(self, title: str, provenance: dict[str, Any], result: JoinResult) -> None:
        super().__init__(title, provenance)
        self.result = result

    def summary(self) -> pd.DataFrame:
        """A row a device: result rows, requests, pages, and seconds of I/O, of CPU work and in all; the formula's I/O seconds.

        Of several strands: seconds of I/O and CPU work of all together, what has elapsed in all, and how busy cores and device were.
        """
        rows = []
        for run, compared in zip(self.result.runs, compare_join(self.result), strict=True):
            total, setting = compared[-1], self.result.setting
            told: dict[str, Any] = {"algorithm": setting.algorithm, "device": run.machine, "memory_pages": setting.memory}
            told |= {"rows": run.result_rows, "requests": total.requests, "pages": total.pages}
            told |= {"io_s": total.io, "cpu_s": total.cpu, "total_s": total.total, "formula_io_s": total.formula_io}
            if isinstance(run, ConcurrentRun):
                busy = {"cores_busy": run.core_shares.get(HOST, 0.0), "device_busy": max(run.device_shares)}
                told |= {"strands": self.result.parameters.strands, "strands_s": run.strand_time / SECONDS} | busy
            rows.append(told)
        return pd.DataFrame(rows).astype({"formula_io_s": float})

    def phases(self) -> pd.DataFrame:
        """A row a device and phase: requests, pages, and seconds of I/O, of CPU work and in all."""
        rows = [
            {"device": run.machine, "phase": row.phase, "requests": row.requests, "pages": row.pages}
            | {"io_s": row.io, "cpu_s": row.cpu, "total_s": row.total}
            for number, run in enumerate(self.result.runs)
            for row in self.result.measured(number)[:-1]
        ]
        return pd.DataFrame(rows)

    def strands(self) -> pd.DataFrame:
        """A row a device and strand, of what ran in several: requests, and seconds of I/O, of CPU work, waiting, and in all."""
        rows = []
        for run in self.result.runs:
            for strand in run.strands if isinstance(run, ConcurrentRun) else ():
                total = strand.total()
                times = {"io_s": total.io_time, "cpu_s": total.cpu_time, "wait_s": total.wait_time, "total_s": total.total_time}
                told: dict[str, Any] = {"device": run.machine, "strand": strand.strand, "requests": total.requests}
                rows.append(told | {name: time / SECONDS for name, time in times.items()})
        return pd.DataFrame(rows)

    def outstanding(self) -> pd.DataFrame:
        """A row a device and level: how many requests were outstanding (``outstanding``), and in which ``share`` of the time."""
        return outstanding_frame((run.machine, run.outstanding.as_dict()) for run in self.result.runs)

    def against_formula(self) -> pd.DataFrame:
        """A row a device and phase, the total last: what ran beside what the formula of Haas, Carey and Livny says.

        ``formula_io_measured_seek_s`` takes the mean seek that was measured in the place of the nominal one. NaN where the formula says
        nothing: of real devices, of phases that it does not have, and for algorithms that name no formula.
        """
        rows = []
        for run, compared in zip(self.result.runs, compare_join(self.result), strict=True):
            for row in compared:
                told = row.as_dict()
                seconds = {f"{name}_s": told.pop(name) for name in ("io", "formula_io", "formula_io_measured_seek")}
                kept = {name: told[name] for name in ("phase", "requests", "formula_requests", "pages", "formula_pages")}
                rows.append({"device": run.machine, **kept, **seconds, "io_difference": told["io_difference"]})
        frame = pd.DataFrame(rows)
        told_columns = [name for name in frame if "formula" in str(name) or name == "io_difference"]
        return frame.astype(dict.fromkeys(told_columns, float))

    @cached_property
    def table(self) -> pa.Table:
        """The joined rows as an Arrow table, R's columns first and the key once; the join runs once more for them, without a device."""
        r, s = (file.relation for file in self.result.files)
        with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
            path = Path(folder) / "rows.parquet"
            with RowWriter(path, r, s, wanted_columns(self.result.setting, (r, s))) as writer:
                self.result.emit(writer)
            return pq.read_table(path)

    def rows(self) -> pd.DataFrame:
        """The joined rows: R's columns first, the key once, under its name in R; a name of S that is taken gets ``_s`` behind it."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def _draw(self) -> Figure:
        bars = []
        for run, compared in zip(self.result.runs, compare_join(self.result), strict=True):
            bars += [Bar(run.machine, row.phase, row.io, row.cpu, row.formula_io) for row in compared[:-1]]
        return stacked_bars({self.title.partition(":")[0]: bars})


def join(
    r: Table,
    s: Table,
    on: str,
    *,
    device: Any,
    memory: str,
    algorithm: str = "hybrid-hash",
    page_size: str = "8KiB",
    page_format: str | None = None,
    io: str = "blocked",
    placement: str = "packed",
    cpu: str | None = CPU,
    buffers_for: str | None = None,
    allocation: str = HAAS,
    first: str | None = None,
    fetch: str | None = None,
    k: float | None = None,
    policy: str | None = None,
    kernel: str | None = None,
    columns: Sequence[str] | None = None,
    partition: str | None = None,
    sub_buffer: str | None = None,
    strands: int | None = None,
    cores: int | None = None,
    digests_stored: bool = False,
    trace: str | PathLike[str] | None = None,
    allow_write: bool = False,
    force: bool = False,
) -> JoinOutcome:
    """Join two tables on one device, or on several in one pass; what it cost, and the rows.

    Parameters
    ----------
    r, s
        Each a DataFrame, an Arrow table, the path of a file, or a source such as ``tpch:customer@0.1`` or ``do2009:orders@3``. It is
        loaded onto the device before the clock starts. The smaller one builds.
    on
        The key: ``COLUMN``, or ``R_COLUMN=S_COLUMN`` where names differ.
    device
        A preset (`fs.devices` lists them), an `fs.drive`, which is left as it is, or several of these: all see the same requests. Or the
        path of a real file or block device.
    memory
        The buffer pool, such as ``"64MiB"``.
    algorithm
        `fs.algorithms` lists them; or the path of a Python file.
    page_size
        ``"512B"`` to ``"64KiB"``.
    page_format
        How pages hold rows: ``"sqlite"`` or ``"postgresql"``, row by row, or ``"pax"``, column by column; or the path of a Python file.
        Without it ``"sqlite"``, or what the join needs.
    io
        ``"blocked"``: requests of whole buffers; ``"page"``: of single pages.
    placement
        ``"packed"``, ``"spread"``, ``"two-disks"``, ``"ext3"``, or the path of a Python file.
    cpu
        The CPU preset that prices work; None: it takes no time.
    buffers_for
        The preset that memory is divided for, if not the (first) device.
    allocation
        How memory is divided: ``"haas"``, by Haas et al., or ``"drive"``, by closed forms made for a drive, of ``"bnl"``, ``"sort-merge"``,
        ``"grace-hash"`` and ``"hybrid-hash"``, and of ``"grace-hash"`` with ``"n-hash"``, whose sub-buffers it also chooses.
    first, fetch
        What ``"digest"`` joins digests with (``"sort-merge"``), and how it fetches rows (``"planned"``); or paths of Python files.
    k
        Of graph-based fetching: the cache keeps room for k (d + 1) pages, d the largest degree of the join graph; 1 by default.
    policy
        Of pooled fetching: which page is replaced, such as ``"lirs"`` or ``"lru-k:k=3"`` (``"lru"``); or the path of a Python file.
    kernel
        What ``"flash-join"`` joins keys with (``"hybrid-hash"``); or the path of a Python file.
    columns
        Those of the result, such as ``["R.name", "S.value"]``, for ``"rare"`` and ``"flash-join"``, which read no others; all without it.
    partition
        How ``"grace-hash"`` and ``"hybrid-hash"`` make buckets (``"traditional"``): ``fs.algorithms("partitioning")`` lists the methods;
        or the path of a Python file.
    sub_buffer
        How ``"n-hash"`` divides output buffers, such as ``"4KiB"``; 8 KiB where they are larger.
    strands
        How many strands of ``"para-hash"`` partition and join together (1).
    cores
        Of a simulated machine's host; those of the CPU preset without it.
    digests_stored
        Whether digests are on the device before the join begins.
    trace
        A Parquet file to record the requests of the (first) device into.
    allow_write, force
        Whether a real file or block device may be written to, and a file that exists overwritten.

    Raises
    ------
    UnknownNameError
        There is no such algorithm, device, source or column.
    InvalidParameterError
        A number without a unit, or too little memory.
    SchemaError
        A table that cannot be stored, or keys that cannot be compared.
    RefusedError
        A real file, without being allowed to write to it.

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> r = pd.DataFrame({"key": [1, 2, 3], "name": ["a", "b", "c"]})
    >>> s = pd.DataFrame({"key": [3, 1, 3, None], "value": [0.5, 1.5, 2.5, 3.5]})
    >>> told = fs.join(r, s, on="key", algorithm="grace-hash", device="ocz-core-60gb", memory="64KiB")
    >>> told.rows().sort_values(["key", "value"]).values.tolist()
    [[1, 'a', 1.5], [3, 'c', 0.5], [3, 'c', 2.5]]
    >>> told.phases()["phase"].tolist()
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
    if io not in _IO:
        raise InvalidParameterError("io", repr(io), f"it must be one of {', '.join(_IO)}")
    on_pages = size(page_size, "page_size"), text(page_format or page_format_of(text(algorithm, "algorithm")), "page_format")
    pages = memory_pages(size(memory, "memory"), *on_pages)
    named = [None if value is None else text(value, name) for value, name in ((buffers_for, "buffers_for"), (cpu, "cpu"))]
    fetching = late_options(first, fetch, k, policy, kernel, columns) | {"digests_stored": bool(digests_stored) or None}
    fetching |= partition_options(partition, sub_buffer, strands) | {"cores": None if cores is None else count(cores, "cores")}
    setting = JoinSetting(text(algorithm, "algorithm"), pages, io == "page", text(placement, "placement"), named[0], named[1], **fetching)
    devices = [device_of(each) for each in several(device, "device")]
    real = [each for each in devices if isinstance(each, str) and is_path(each)]
    if real and len(devices) > 1:
        raise RefusedError(f"device: {real[0]} is a real file, which runs alone; fs.compare holds it against formula and simulation")
    check_names(setting, None if real else _preset(devices[0]))
    check_formula(setting.algorithm)
    check_rule(text(allocation, "allocation"))
    for each in () if real else devices:
        engines.begin(presets.load(_preset(each)))  # while the relations are opened
    relations = open_pair(source(r, "r"), source(s, "s"), key(on))
    wanted_columns(setting, relations)
    files = (lay_out(relations[0], *on_pages), lay_out(relations[1], *on_pages))
    setting, buffers = division(setting, files, None if real else _preset(devices[0]), allocation)
    asked = {"on": on, "devices": [_preset(each) for each in devices], "page_size": on_pages[0], "page_format": on_pages[1]}
    asked["allocation"] = allocation
    origin = provenance(asked | vars(setting))
    with ExitStack() as stack:
        sink = stack.enter_context(ParquetRecorder(Path(text(trace, "trace")), origin)) if trace is not None else None
        progress = stack.enter_context(working("joining"))
        if real:
            target = RealFile(Path(real[0]), allow_write, force)
            result = run_join_on_file(setting, files, target, allocation=buffers, sink=sink, progress=progress)
        else:
            result = simulate_join(setting, files, [_held(each) for each in devices], allocation=buffers, sink=sink)
    return JoinOutcome(_title(result), origin, result)


def _preset(device: str | Drive) -> str:
    return device if isinstance(device, str) else device.preset


def _held(device: str | Drive) -> HeldDrive:
    return DriveInUse(device) if isinstance(device, str) else device.ready()


def _title(result: JoinResult) -> str:
    sides = " with ".join(f"{file.name} ({len(file.relation):,} rows, {file.pages:,} pages)" for file in result.files)
    memory = format_size(result.setting.memory * result.files[0].page_size)
    strands = f" in {result.parameters.strands} strands" if result.parameters.strands > 1 else ""
    return f"{result.setting.algorithm}{strands}: {sides}, {memory} of memory, {result.runs[0].result_rows:,} result rows"


def point(arguments: dict[str, Any], stamps: dict[str, str]) -> dict[str, Any]:
    """One run of a sweep; the stamps of its files make it another run when they change."""
    return point_of(join, arguments, "summary", "phases")
