"""What each test costs and why: processor seconds, those of compiling and of started processes, their number, examples, memory kept.

Loaded by every run of the tests.  A table of each test's last run is kept in pytest's cache folder; ``python -m tests --times`` prints it.
"""

from __future__ import annotations

import csv
import re
import resource
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from flashsim.core import kernel
from tests.peak_memory import memory_mb

ROOT = Path(__file__).resolve().parents[1]
FIELDS = ("wall", "processor", "compiling", "children", "starts", "examples", "kept_mb")
_PROPERTY = "times"
_EXAMPLES = re.compile(r"- (\d+) passing")
_spent: dict[str, float] = defaultdict(float)
_rows: dict[str, dict[str, float]] = {}


def _own() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def _compiling() -> Iterator[None]:
    """Add what passes within it to the seconds of compiling, kernels that were kept included: to load them takes milliseconds."""
    begin = _own()
    try:
        yield
    finally:
        _spent["compiling"] += _own() - begin


def _note_compiling(compile: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(compile)
    def noted(*arguments: Any) -> Any:
        with _compiling():
            return compile(*arguments)

    return noted


def _note_starts(start: Callable[..., None]) -> Callable[..., None]:
    @wraps(start)
    def noted(*arguments: Any, **more: Any) -> None:
        _spent["starts"] += 1
        start(*arguments, **more)

    return noted


def table_file(config: pytest.Config | None = None) -> Path:
    """The file of the table."""
    return (config.rootpath if config else ROOT) / ".pytest_cache" / "times.csv"


def load_table(path: Path) -> dict[str, dict[str, float]]:
    """Rows of a table by test; none if there is no file."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {row.pop("test"): {name: float(value) for name, value in row.items()} for row in csv.DictReader(file)}


def pytest_configure(config: pytest.Config) -> None:
    kernel._Kernel.compile = _note_compiling(kernel._Kernel.compile)  # type: ignore[method-assign]
    subprocess.Popen.__init__ = _note_starts(subprocess.Popen.__init__)  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Hand what the test took to the process that reports, by way of its last report."""
    _spent.clear()
    _spent.update({"wall": -time.perf_counter(), "processor": -_own(), "children": -_of_children(), "kept_mb": -memory_mb()})
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    now = {"wall": time.perf_counter(), "processor": _own(), "children": _of_children(), "kept_mb": memory_mb()}
    row = {name: round(_spent[name] + now.get(name, 0), 4) for name in FIELDS}
    row["examples"] = sum(map(int, _EXAMPLES.findall(getattr(item, "hypothesis_statistics", ""))))
    item.user_properties.append((_PROPERTY, row))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, row in report.user_properties if report.when == "teardown" else ():
        if name == _PROPERTY and isinstance(row, dict):
            _rows[report.nodeid] = row


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the table with the rows of this run, beside and then in the place of the last."""
    if not _rows or hasattr(session.config, "workerinput"):
        return
    path = table_file(session.config)
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        rows = load_table(path) | _rows
        beside = path.with_suffix(".new")
        with beside.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["test", *FIELDS])
            writer.writeheader()
            writer.writerows({"test": test, **row} for test, row in sorted(rows.items()))
        beside.replace(path)
