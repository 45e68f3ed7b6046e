"""Figures of a drive from files: tables of what was published (CSV or TOML), and fio's JSON with its logs."""

import csv
import json
import math
import re
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flashsim.core.errors import DamagedFileError, FlashsimError, FlashsimWarning, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.input_files import read_text
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import KIB, MB, MILLISECONDS_A_SECOND, format_duration, format_size, parse_duration, parse_size

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
#: Options of fio with which a job shows more than what the drive can do.
_HELD_BACK = ["rate", "thinktime", "fsync", "fdatasync", "sync", "sync_file_range", "latency_target", "verify", "bsrange", "bssplit"]
_HELD_BACK += ["percentage_random", "zonemode"]
#: What copies' percentiles may differ by, to be one figure.
_LIKE = 1.1
#: Share of the longest time that the threads of a group may run shorter on average, beside `_SHORTEST`.
_APART = 0.05
#: Half of a log that says how long requests take together, ms; its times are whole ms.
_SHORTEST = 50

_COLUMNS = ("operation", "order", "size", "depth", "state", "rate", "used", "figure", "value")


@dataclass(frozen=True)
class DriveLoad:
    """Requests of one kind that a drive was measured with."""

    #: READ or WRITE; bytes of a request.
    operation: int
    size: int = 4 * KIB
    #: Places are drawn, otherwise they follow one another.
    random: bool = True
    #: Requests outstanding; each that completes is followed by another one.
    depth: int = 1
    #: State of the drive before: ``empty``, ``sequential`` (written once in order), or ``steady`` (after long random writes).
    state: str = "sequential"
    #: Requests a second that arrive whether others are outstanding or not; 0: as `depth` says.
    rate: float = 0.0
    #: Share of the capacity that holds data.
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
    """A figure of a drive under a load: requests or bytes a second, ns, or flash bytes over host bytes."""

    load: DriveLoad
    #: One of `FIGURES`.
    name: str
    value: float
    #: What it is beside the drive's own; nothing of most.
    note: str = ""

    @property
    def kind(self) -> str:
        """Figures of one kind: reads, writes or steady writes; a rate, a latency or the write amplification."""
        what = "rate" if self.name in RATES else "latency" if self.name != "write_amplification" else self.name
        return f"{self.load.state if self.load.operation else 'read'} {what}"

    def show(self, value: float) -> str:
        if self.name == "bandwidth":
            return f"{value / MB:.4g} MB/s"
        if self.name in ("iops", "write_amplification"):
            return f"{value:,.4g}" if self.name == "iops" else f"{value:.3f}"
        return format_duration(round(value))


def read(path: Path, state: str = "steady") -> list[DriveFigure]:
    """Figures of a file; `state` is that of the drive before the writes of fio, which does not tell it.

    Raises
    ------
    MissingFileError, DamagedFileError
        There is no such file; it is none of these, or has no figures.
    InvalidParameterError, UnknownNameError
        A value that is none.
    """
    try:
        text = read_text(path, "utf-8-sig")
    except OSError as problem:
        raise MissingFileError(f"figures: cannot read {path}: {problem.strerror}") from problem
    except UnicodeDecodeError:
        raise DamagedFileError(f"figures: {path} is no text") from None
    try:
        if path.suffix == ".toml":
            rows: Any = tomllib.loads(text).get("figures")
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise DamagedFileError(f"figures: {path} has no [[figures]]")
        elif "fio version" in text or text.lstrip()[:1] in ("{", "["):
            return _of_fio(_last_document(text), path, state)
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
    return DriveFigure(_check_load(values, where), row["figure"], value)


def _check_load(values: Mapping[str, Any], where: str) -> DriveLoad:
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


def _last_document(text: str) -> Any:
    """The last of several JSON documents, as of fio with --status-interval: each counts from the job's start."""
    document, at = None, 0
    while brace := re.compile(r"^\s*\{", re.MULTILINE).search(text, at):  # messages may stand before and between
        document, at = json.JSONDecoder().raw_decode(text, brace.end() - 1)
    return document


@dataclass(frozen=True)
class _FioJob:
    """What fio says of a job or of a group of copies, and the numbers of its threads, by which its logs are named."""

    number: int
    result: Mapping[str, Any]
    options: Mapping[str, str]
    threads: range

    @property
    def kind(self) -> tuple[str, bool] | None:
        """Operation, and whether at random; None of other jobs.  ``randread:8`` draws a place for each eight."""
        name, _, more = str(self.options.get("rw", self.options.get("readwrite", "read"))).partition(":")
        return None if more and not name.startswith("rand") else _FIO_KINDS.get(name)

    @property
    def operation(self) -> str:
        return self.kind[0] if self.kind else "read"

    @property
    def operation_result(self) -> Any:
        return self.result[self.operation]

    def why_not(self) -> str:
        """Why it does not show the drive alone; nothing if it does."""
        if self.result.get("error"):
            return "it ended with an error"
        if self.kind is None or any(self.result.get(name, {}).get("total_ios") for name in {"read", "write"} - {self.operation}):
            return "it is none of reads alone or of writes alone, in order or at random"
        held_back = next((name for name in _HELD_BACK if str(self.options.get(name, "0")) not in ("0", "none")), None)
        if held_back:
            return f"its {held_back}={self.options[held_back]} shows more than the drive"
        if (
            self.operation_result["total_ios"]
            and abs(self.operation_result["io_bytes"] - self.size * self.operation_result["total_ios"])
            > 0.01 * self.operation_result["io_bytes"]
        ):
            return "its requests are not of one size"
        return "" if self.rate or self.depth else "less than half of its requests had iodepth outstanding"

    @property
    def rate(self) -> float:
        """Requests a second that arrive, of each thread; 0: as the depth says."""
        rates = str(self.options.get("rate_iops", "0")).split(",")
        return _number(rates[min(len(rates) - 1, _OPERATIONS[self.operation])] or 0, f"job {self.number}: rate_iops")

    @property
    def depth(self) -> int:
        """Requests of a thread that were outstanding at most of its submissions; 0 if that was no one number."""
        depth, levels = int(self.options.get("iodepth", 1)), self.result.get("iodepth_level")
        level = ">=64" if depth >= 64 else str(1 << depth.bit_length() - 1)
        return depth if not levels or levels.get(level, 0) >= 50 else int(levels.get("1", 0) >= 50)

    @property
    def is_direct(self) -> bool:
        """True if it went past the page cache: ``buffered`` is the opposite of ``direct``, and of both the last one counts."""
        given = [(name == "direct") == (str(value) != "0") for name, value in self.options.items() if name in ("direct", "buffered")]
        return given[-1:] == [True]

    @property
    def runtime(self) -> int:
        return int(self.operation_result.get("runtime", 0))

    @property
    def size(self) -> int:
        return round(self.operation_result["io_bytes"] / self.operation_result["total_ios"] / SECTOR) * SECTOR


def _of_fio(document: Any, path: Path, state: str) -> list[DriveFigure]:
    """Figures of fio's groups of jobs of one kind, which ran at the same time and count together; others are left out with a word."""
    results = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(results, list) or "fio version" not in document:
        raise DamagedFileError(f"figures: {path} is JSON, but not of fio (fio --output-format=json)")
    figures, groups, threads = list[DriveFigure](), dict[Any, list[_FioJob]](), 1
    try:
        names = [(result.get("groupid", number), result.get("jobname", number)) for number, result in enumerate(results, start=1)]
        for number, (result, name) in enumerate(zip(results, names, strict=True), start=1):
            own = result.get("job options", {})
            options = {key: value for key, value in document.get("global options", {}).items() if key not in own} | own
            count = max(1, int(options.get("numjobs", 1)) // names.count(name))  # one entry for all copies, or for each
            groups.setdefault(name[0], []).append(_FioJob(number, result, options, range(threads, threads + count)))
            threads += count
        in_turn = sum(max(job.runtime for job in jobs) for jobs in groups.values())
        overlap = in_turn > MILLISECONDS_A_SECOND * results[0].get("elapsed", in_turn) if results else False
        for jobs in groups.values():
            why = next(filter(None, (job.why_not() for job in jobs)), "") or _why_apart(jobs)
            why = "groups of jobs ran at the same time (new_group)" if overlap else why
            active = [] if why else [job for job in jobs if job.operation_result["total_ios"]]
            if len({(job.kind, job.size, job.depth, job.rate, job.is_direct) for job in active}) > 1:
                why = "jobs of other loads ran at the same time"
            if why:
                which = f"job {', '.join(str(job.number) for job in jobs)}"
                warnings.warn(f"figures: {path.name}: {which} is left out: {why}", FlashsimWarning, stacklevel=3)
            elif active:
                figures += _of_group(active, path, state)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as problem:
        raise DamagedFileError(f"figures: {path}: a job of fio lacks {problem}") from None
    if not figures:
        raise DamagedFileError(f"figures: {path} has no job of reads alone or writes alone that shows the drive")
    return figures


def _why_apart(jobs: Sequence[_FioJob]) -> str:
    """Why a group's threads did not run at the same time, all from begin to end; nothing if they did."""
    threads, longest = sum(len(job.threads) for job in jobs), max(job.runtime for job in jobs)
    begins = {(str(job.options.get("startdelay", "0")), job.options.get("wait_for")) for job in jobs}
    if threads > 1 and (len(begins) > 1 or "-" in next(iter(begins))[0]):
        return "its jobs began one after the other (startdelay, wait_for)"
    together = sum(job.result.get("job_runtime", job.runtime * len(job.threads)) for job in jobs) / threads
    return "its jobs ran for different times, or it has more of them" if abs(together - longest) > _APART * longest + _SHORTEST else ""


def _of_group(jobs: Sequence[_FioJob], path: Path, state: str) -> Iterator[DriveFigure]:
    first, copies, shown = jobs[0], sum(len(job.threads) for job in jobs), [job.operation_result for job in jobs]
    values: dict[str, Any] = {"operation": _OPERATIONS[first.operation], "size": first.size, "random": first.kind and first.kind[1]}
    values |= {"rate": first.rate * copies, "depth": max(1, first.depth) * copies}
    values |= {"state": state if first.operation == "write" else "sequential"}
    load = _check_load(values, f"{path.name}, job {first.number}")
    note = "" if first.is_direct else "through the page cache: fio had no direct=1"
    average = _number(first.options.get("log_avg_msec", 0), f"job {first.number}: log_avg_msec")
    latencies = None if average else _log_rows(jobs, "clat", path) or _log_rows(jobs, "lat", path)
    if latencies is not None:
        later = np.concatenate([rows[len(rows) // 2 :, 1] for rows in latencies])
        percentiles = {name: float(np.percentile(later, share)) for name, share in PERCENTILES.items()}
    else:
        percentiles = {name: _of_copies(shown, f"{share:.6f}") for name, share in PERCENTILES.items()}
    if not load.rate:
        rate = sum(each["iops"] for each in shown)
        yield DriveFigure(load, "iops", float(_lasting(_log_rows(jobs, "bw", path), load.size, average) or rate), note)
    for name in _FIO_PERCENTILES:
        if percentiles[name]:
            yield DriveFigure(load, name, float(percentiles[name]), note)


def _of_copies(shown: Sequence[Mapping[str, Any]], share: str) -> float:
    """A percentile of copies together, which lies between the least and the largest of theirs; 0 if these differ."""
    latencies = [each.get("clat_ns", {}).get("percentile") or each.get("lat_ns", {}).get("percentile") or {} for each in shown]
    values = [each.get(share, 0) for each in latencies]
    return float(np.mean(values)) if max(values) <= _LIKE * min(values) else 0.0


def _lasting(logs: Sequence[Any] | None, size: int, average: float) -> float:
    """Requests a second in the second half of the time of logs; 0 where they do not say.

    A line is a request, or else a mean over `average` ms.
    """
    if logs is None:
        return 0.0
    times = np.concatenate([rows[:, 0] for rows in logs])
    half = (times.max() - times.min() + average) / 2
    later = [rows[rows[:, 0] > times.max() - half, 1] for rows in logs]
    if average:
        return sum(float(rates.mean()) for rates in later if len(rates)) * KIB / size
    return sum(map(len, later)) / half * MILLISECONDS_A_SECOND if half >= _SHORTEST else 0.0


def _log_rows(jobs: Sequence[_FioJob], kind: str, path: Path) -> list[Any] | None:
    """Rows of the logs of all threads, where they lie beside the JSON: time (ms), latency (ns) or KiB a second, and direction."""
    logs, option = list[Any](), f"write_{kind.removeprefix('c')}_log"
    is_named = all(job.options.get(option) for job in jobs)  # fio's JSON does not tell of an option that has no value
    names = [(job, Path(str(job.options.get(option) or job.result.get("jobname"))).name) for job in jobs]
    places = [(job, path.parent / f"{name}_{kind}.{thread}.log") for job, name in names for thread in job.threads]
    if not (any if is_named else all)(place.is_file() for _, place in places):
        return None
    for job, log in places:
        try:
            lines = [line for line in read_text(log).splitlines() if line]
            rows = np.loadtxt(lines, delimiter=",", usecols=(0, 1, 2), ndmin=2) if lines else np.zeros((0, 3))
        except (ValueError, OSError) as problem:
            raise DamagedFileError(f"figures: {log} is no log of fio: {str(problem).splitlines()[0]}") from None
        if (rows[:, 2] != _OPERATIONS[job.operation]).any():
            if not is_named:
                return None
            raise DamagedFileError(f"figures: {log} is not of {job.operation}s alone, but job {job.number} of {path.name} is")
        logs.append(rows)
    requests, means = sum(job.operation_result["total_ios"] for job in jobs), any(job.options.get("log_avg_msec") for job in jobs)
    is_of_it = is_named or (sum(map(len, logs)) < requests if means else sum(map(len, logs)) == requests)  # and not of another run
    return logs if is_of_it and min(map(len, logs)) >= 4 else None
