"""Figures of a drive from files: tables of what was published (CSV or TOML), and fio's JSON with its logs."""

from __future__ import annotations

import csv
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import KIB, MB, format_duration, format_size, parse_duration, parse_size

#: Percentiles of latencies, by the names of their figures.
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
RATES = ("iops", "bandwidth")
FIGURES = (*RATES, "mean", *PERCENTILES, "write_amplification")
#: States of the drive before a load.
STATES = ("empty", "sequential", "steady")
_OPERATIONS = {"read": READ, "write": WRITE}
_FIO_KINDS = {"read": ("read", False), "write": ("write", False), "randread": ("read", True), "randwrite": ("write", True)}
#: Percentiles that are taken from fio: what a closed loop's mean latency says its rate says, too.
_FIO_PERCENTILES = ("p50", "p99", "p99.9")

_COLUMNS = ("operation", "order", "size", "depth", "state", "rate", "used", "figure", "value")


@dataclass(frozen=True)
class DriveLoad:
    """Requests of one kind that a drive was measured with.

    Parameters
    ----------
    operation, size
        READ or WRITE; bytes of a request.
    random
        Places are drawn, otherwise they follow one another.
    depth
        Requests outstanding; each that completes is followed by another one.
    state
        State of the drive before: ``empty``, ``sequential`` (written once in order), or ``steady`` (after long random writes).
    rate
        Requests a second that arrive whether others are outstanding or not; 0: as `depth` says.
    used
        Share of the capacity that holds data.
    """

    operation: int
    size: int = 4 * KIB
    random: bool = True
    depth: int = 1
    state: str = "sequential"
    rate: float = 0.0
    used: float = 1.0

    def __str__(self) -> str:
        words = f"{'random' if self.random else 'sequential'} {'write' if self.operation else 'read'} {format_size(self.size)}"
        words += f" at {self.rate:,.4g}/s" if self.rate else f" x {self.depth}"
        return (
            words
            + (f", {self.state}" if self.operation or self.state != "sequential" else "")
            + (f", {self.used:.0%} used" if self.used < 1 else "")
        )


@dataclass(frozen=True)
class DriveFigure:
    """A figure of a drive under a load: requests or bytes a second, ns, or flash bytes over host bytes.

    Parameters
    ----------
    name
        One of `FIGURES`.
    """

    load: DriveLoad
    name: str
    value: float

    @property
    def kind(self) -> str:
        """Figures of one kind: reads, writes or steady writes; a rate, a latency or the write amplification."""
        what = "rate" if self.name in RATES else "latency" if self.name != "write_amplification" else self.name
        return f"{self.load.state if self.load.operation else 'read'} {what}"

    def show(self, value: float) -> str:
        """A value of this figure with its unit."""
        if self.name == "bandwidth":
            return f"{value / MB:.4g} MB/s"
        if self.name in ("iops", "write_amplification"):
            return f"{value:,.4g}" if self.name == "iops" else f"{value:.3f}"
        return format_duration(round(value))


def read(path: Path, state: str = "steady") -> list[DriveFigure]:
    """Figures of a file.

    Parameters
    ----------
    state
        State of the drive before the writes of fio, which does not tell it.

    Raises
    ------
    MissingFileError, DamagedFileError
        There is no such file; it is none of these, or has no figures.
    InvalidParameterError, UnknownNameError
        A value that is none.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise MissingFileError(f"figures: cannot read {path}: {problem.strerror}") from problem
    except UnicodeDecodeError:
        raise DamagedFileError(f"figures: {path} is no text") from None
    try:
        if path.suffix == ".toml":
            rows: Any = tomllib.loads(text).get("figures")
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise DamagedFileError(f"figures: {path} has no [[figures]]")
        elif text.lstrip()[:1] in ("{", "["):
            return _of_fio(json.loads(text), path, state)
        else:
            rows = list(csv.DictReader(text.splitlines(), strict=True, restkey="beyond the header"))
    except (ValueError, RecursionError, csv.Error) as problem:
        if isinstance(problem, FlashsimError):
            raise
        raise DamagedFileError(f"figures: {path} is neither fio's JSON nor a table: {problem}") from None
    figures = [
        _of_row({k: v for k, v in row.items() if v not in ("", None)}, f"{path.name}, figure {n}") for n, row in enumerate(rows, start=1)
    ]
    if not figures:
        raise DamagedFileError(f"figures: {path} has none")
    return figures


def _of_row(row: Mapping[Any, Any], where: str) -> DriveFigure:
    for name in row:
        if name not in _COLUMNS:
            raise UnknownNameError(f"{where}: column", str(name), _COLUMNS)
    for name in ("operation", "figure", "value"):
        if name not in row:
            raise InvalidParameterError(f"{where}: {name}", "missing", f"{name} is needed, of the columns {', '.join(_COLUMNS)}")
    words = {"operation": _OPERATIONS, "order": ("random", "sequential"), "state": STATES, "figure": FIGURES}
    for name, allowed in words.items():
        if name in row and row[name] not in allowed:
            raise UnknownNameError(f"{where}: {name}", str(row[name]), allowed)
    values: dict[str, Any] = {"operation": _OPERATIONS[row["operation"]], "random": row.get("order", "random") == "random"}
    values |= {"size": parse_size(str(row["size"]), f"{where}: size")} if "size" in row else {}
    values |= {name: _number(row[name], f"{where}: {name}") for name in ("depth", "rate", "used") if name in row}
    values |= {"state": row["state"]} if "state" in row else {}
    value = _value(row["figure"], str(row["value"]), f"{where}: value")
    return DriveFigure(_checked(values, where), row["figure"], value)


def _checked(values: Mapping[str, Any], where: str) -> DriveLoad:
    load = DriveLoad(**values)
    for name, holds, bound in (
        ("size", load.size % SECTOR == 0 and 0 < load.size <= 64 * MB, f"a multiple of {SECTOR} B up to 64 MB is needed"),
        ("depth", load.depth == int(load.depth) and 1 <= load.depth <= 4096, "a whole number from 1 to 4096 is needed"),
        ("rate", load.rate >= 0, "it must be at least 0"),
        ("used", 0 < load.used <= 1, "a share above 0 and at most 1 is needed"),
    ):
        if not holds:
            raise InvalidParameterError(f"{where}: {name}", getattr(load, name), bound)
    return DriveLoad(**{**values, "depth": int(load.depth)})


def _value(figure: str, text: str, where: str) -> float:
    if figure == "bandwidth":
        if not text.endswith("/s"):
            raise InvalidParameterError(where, repr(text), "bytes a second are needed, such as 120MB/s")
        value: float = parse_size(text[:-2], where)
    elif figure in ("iops", "write_amplification"):
        value = _number(text, where)
    else:
        value = parse_duration(text, where)
    if value <= 0:
        raise InvalidParameterError(where, repr(text), "it must be above 0")
    return value


def _number(value: Any, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidParameterError(where, repr(value), "a number is needed")
    return number


def _of_fio(document: Any, path: Path, state: str) -> list[DriveFigure]:
    """Figures of fio's jobs, one kind of requests each; jobs of reads and writes together are left out."""
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or "fio version" not in document:
        raise DamagedFileError(f"figures: {path} is JSON, but not of fio (fio --output-format=json)")
    figures = list[DriveFigure]()
    try:
        for number, job in enumerate(jobs, start=1):
            options = {**document.get("global options", {}), **job.get("job options", {})}
            if options.get("rw", options.get("readwrite")) in _FIO_KINDS and not job.get("error"):
                figures += _of_job(job, options, path, state, number)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as problem:
        raise DamagedFileError(f"figures: {path}: a job of fio lacks {problem}") from None
    if not figures:
        raise DamagedFileError(f"figures: {path} has no job of reads alone or writes alone")
    return figures


def _of_job(job: Mapping[str, Any], options: Mapping[str, str], path: Path, state: str, number: int) -> Iterator[DriveFigure]:
    operation, random = _FIO_KINDS[options.get("rw") or options["readwrite"]]
    shown, copies = job[operation], int(options.get("numjobs", 1))
    if not shown["total_ios"]:
        return
    rate = float(str(options.get("rate_iops", 0)).split(",")[0]) * copies
    depth = int(options.get("iodepth", 1)) * copies
    size = round(shown["io_bytes"] / shown["total_ios"] / SECTOR) * SECTOR
    values = {"operation": _OPERATIONS[operation], "size": size, "random": random, "depth": depth, "rate": rate}
    load = _checked(values | {"state": state if operation == "write" else "sequential"}, f"{path.name}, job {number}")
    latencies = _logged(options, "lat", path, number)
    percentiles = {name: shown["clat_ns"].get("percentile", {}).get(f"{share:.6f}") for name, share in PERCENTILES.items()}
    if latencies is not None:
        percentiles = {name: float(np.percentile(latencies[len(latencies) // 2 :, 1], share)) for name, share in PERCENTILES.items()}
    if not rate:
        bandwidth = _logged(options, "bw", path, number)
        lasting = bandwidth[len(bandwidth) // 2 :, 1].mean() * KIB / size if bandwidth is not None else shown["iops"]
        yield DriveFigure(load, "iops", float(lasting))
    for name in _FIO_PERCENTILES:
        if percentiles[name]:
            yield DriveFigure(load, name, float(percentiles[name]))


def _logged(options: Mapping[str, str], kind: str, path: Path, number: int) -> Any:
    """Rows of a job's log, where it lies beside the JSON: time (ms), and latency (ns) or KiB a second; what was first is left out."""
    name = options.get(f"write_{kind}_log")
    log = path.parent / f"{Path(name).name}_{'clat' if kind == 'lat' else kind}.{number}.log" if name else None
    if log is None or not log.is_file():
        return None
    try:
        rows = np.loadtxt(log, delimiter=",", usecols=(0, 1), ndmin=2)
    except (ValueError, OSError) as problem:
        raise DamagedFileError(f"figures: {log} is no log of fio: {str(problem).splitlines()[0]}") from None
    return rows if len(rows) >= 4 else None
