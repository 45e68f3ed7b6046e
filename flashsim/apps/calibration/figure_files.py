"""Files of a drive's figures: tables of what was published (CSV or TOML), and fio's JSON or text with its logs."""

import csv
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flashsim.apps.calibration.drive_figures import CACHE_FULL, FIGURES, OPERATIONS, SLC_CACHE, STATES, DriveFigure, check_load, number
from flashsim.apps.calibration.fio_figures import figures_of_jobs
from flashsim.apps.calibration.fio_jobs import jobs_of_document
from flashsim.apps.calibration.fio_text import TEXT, jobs_of_text
from flashsim.apps.calibration.validation import random_reads
from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, MissingFileError, UnknownNameError, option
from flashsim.core.input_files import read_text
from flashsim.core.request import READ, WRITE
from flashsim.core.units import MICROSECONDS, parse_duration, parse_size

_COLUMNS = ("operation", "order", "size", "depth", "state", "rate", "used", "reads", "figure", "value")


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
        raise DamagedFileError(f"figures: {path} is not a text file") from None
    try:
        if path.suffix == ".toml":
            rows: Any = tomllib.loads(text).get("figures")
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise DamagedFileError(f"figures: {path} has no [[figures]]")
        elif '"job options"' not in text and TEXT.search(text):
            return figures_of_jobs(jobs_of_text(text), path, state)
        elif "fio version" in text or text.lstrip()[:1] in ("{", "["):
            return figures_of_jobs([jobs_of_document(_last_document(text), path)], path, state)
        elif re.match(r"\d;fio-", text):
            raise DamagedFileError(f"figures: {path} is fio's terse output, which does not show iodepth (take --output-format=json)")
        else:
            rows = list(csv.DictReader(text.splitlines(), strict=True, restkey="beyond the header"))
    except (ValueError, RecursionError, csv.Error) as problem:
        if isinstance(problem, FlashsimError):
            raise
        raise DamagedFileError(f"figures: {path} is neither fio's output nor a table: {problem}") from None
    figures = [
        _of_row({k: v for k, v in row.items() if v not in ("", None)}, f"{path.name}, figure {n}") for n, row in enumerate(rows, start=1)
    ]
    if not figures:
        raise DamagedFileError(f"figures: {path} has none")
    return figures


def read_random_reads(path: Path, engine: str | None) -> list[DriveFigure]:
    """Figures of a table of random reads of closed loops, of one I/O engine: `flashsim.apps.calibration.validation.random_reads`.

    Raises
    ------
    MissingFileError, DamagedFileError, InvalidParameterError, RefusedError
        There is no such file; it has not these columns; a value is none; a row is no random read, or rows are of several engines.
    UnknownNameError
        It has no such engine.
    """
    rows = random_reads.read(path, engine)
    if len(engines := dict.fromkeys(row.engine for row in rows)) > 1:
        raise InvalidParameterError("figures", f"rows of {', '.join(engines)}", "name one of them with " + option("engine"))
    return [
        DriveFigure(
            check_load({"operation": READ, "size": row.length, "depth": row.queue_depth * row.processes}, f"figures: {path}"),
            name.removesuffix("_us"), value * (MICROSECONDS if name.endswith("_us") else 1),
        )
        for row in rows for name, value in row.measured.items()
    ]  # fmt: skip


def _of_row(row: Mapping[Any, Any], where: str) -> DriveFigure:
    for name in row:
        if name not in _COLUMNS:
            raise UnknownNameError(f"{where}: column", str(name), _COLUMNS)
    for name in ("operation", "figure", "value"):
        if name not in row:
            raise InvalidParameterError(f"{where}: {name}", "missing", f"{name} is needed, of the columns {', '.join(_COLUMNS)}")
    words = {"operation": OPERATIONS, "order": ("random", "sequential"), "state": STATES, "figure": FIGURES}
    for name, allowed in words.items():
        if name in row and row[name] not in allowed:
            raise UnknownNameError(f"{where}: {name}", str(row[name]), allowed)
    values: dict[str, Any] = {"operation": OPERATIONS[row["operation"]], "random": row.get("order", "random") == "random"}
    values |= {"size": parse_size(str(row["size"]), f"{where}: size")} if "size" in row else {}
    values |= {name: number(row[name], f"{where}: {name}") for name in ("depth", "rate", "used", "reads") if name in row}
    values |= {"state": row["state"]} if "state" in row else {}
    value, load = _value(row["figure"], str(row["value"]), f"{where}: value"), check_load(values, where)
    if load.state == CACHE_FULL and row["figure"] != "bandwidth":
        raise InvalidParameterError(f"{where}: figure", row["figure"], f"state {CACHE_FULL} has bandwidth alone")
    if row["figure"] == SLC_CACHE and (load.operation, load.state) != (WRITE, "empty"):
        raise InvalidParameterError(f"{where}: figure", SLC_CACHE, "it is of writes, state empty")
    return DriveFigure(load, row["figure"], value)


def _value(figure: str, text: str, where: str) -> float:
    if figure == "bandwidth":
        if not text.endswith("/s"):
            raise InvalidParameterError(where, repr(text), "bytes a second are needed, such as 120MB/s")
        value: float = parse_size(text[:-2], where)
    elif figure == SLC_CACHE:
        value = parse_size(text, where)
    elif figure in ("iops", "write_amplification"):
        value = number(text, where)
    else:
        value = parse_duration(text, where)
    if value <= 0:
        raise InvalidParameterError(where, repr(text), "it must be above 0")
    return value


def _last_document(text: str) -> Any:
    """The last of several JSON documents, as of fio with --status-interval: each counts from the job's start."""
    document, at = None, 0
    while brace := re.compile(r"^\s*\{", re.MULTILINE).search(text, at):  # messages may stand before and between
        document, at = json.JSONDecoder().raw_decode(text, brace.end() - 1)
    return document
