"""Runs the checks of a tier: what every change must pass (default), or all else, which a release must pass as well (deep)."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests import changes
from tests.tiers import MARKS
from tests.times import FIELDS, load_table, table_file

ROOT = Path(__file__).resolve().parents[1]
#: Beside the interpreter stand the commands that were installed with it.
BESIDE = Path(sys.executable).parent
DEFAULT, DEEP = "default", "deep"
#: Run one after the other while the tests run: each keeps one core busy.
BESIDE_TESTS = ("mypy", "documentation", "ruff check", "ruff format", "import-linter")
#: Processes of tests; more than four want too much memory.
WORKERS = min(4, os.cpu_count() or 1)
_DEVICES = tuple(f"tests/flashsim/{room}" for room in ("core", "device", "hdd"))
_COMMANDS = ("tests/flashsim/operations", "tests/apps", "tests/notebooks")
#: The tests, in parts: a process keeps what it loaded, compiled and cached to its end, which for all of them is over a gigabyte.
PARTS = {
    "devices": [*_DEVICES],
    "units": ["tests/flashsim", *(f"--ignore={folder}" for folder in (*_DEVICES, *_COMMANDS))],
    "commands": [*_COMMANDS],
    "families": ["--ignore=tests/flashsim", "--ignore=tests/apps", "--ignore=tests/notebooks", "--ignore=tests/benchmarks"],
}
#: Apps, each with a folder of tests.
APPS = sorted(path.name for path in (ROOT / "tests" / "apps").iterdir() if path.is_dir() and not path.name.startswith("_"))
#: Rows of the table of times.
_ROWS = 40


def checks(tier: str) -> dict[str, list[str]]:
    """The command of each check of a tier, by name, in order."""
    python = [sys.executable, "-m"]
    options = ("--dist", "worksteal", "--durations", "10", "-m", MARKS[tier])
    tests = {name: [*python, "pytest", "-n", str(WORKERS), *options, *part] for name, part in PARTS.items()}
    pages = [*python, "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    if tier == DEFAULT:
        first, *_ = PARTS
        tests[first][tests[first].index("-n") + 1] = str(max(1, WORKERS - 1))  # mypy, beside it, takes a core and a gigabyte
        return {
            "ruff check": [*python, "ruff", "check", "."],
            "ruff format": [*python, "ruff", "format", "--check", "."],
            "import-linter": [str(BESIDE / "lint-imports")],
            "mypy": [*python, "mypy"],
            "documentation": [*pages, "-t", "guides", "docs", "docs/_build/guides"],
            **tests,
        }
    return {
        "documentation": [*pages, "docs", "docs/_build/html"],
        **tests,
        "benchmarks": [*python, "pytest", "-m", "deep or not deep", "tests/benchmarks"],  # alone: nothing disturbs what they measure
    }


def _run(tier: str, name: str, *, beside: bool = False) -> tuple[str, bool, float]:
    """Run a check; its name, whether it failed, and its seconds.

    What a check prints that runs `beside` another is shown when it has ended.
    """
    command, begin = checks(tier)[name], time.perf_counter()
    title = f"\n=== {name}: {shlex.join(command)}"
    if not beside:
        print(title, flush=True)
    # Arrow's own memory pool gives little back.  Hundreds of processes start, and each would compile all modules anew without byte code.
    environment = os.environ | {"FLASHSIM_TESTS": tier, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE if beside else None,
        stderr=subprocess.STDOUT if beside else None,
        text=True,
    )
    if beside:
        print(f"{title}\n{done.stdout}", end="", flush=True)
    return name, done.returncode != 0, time.perf_counter() - begin


def _run_checks(tier: str, chosen: list[str]) -> int:
    begin = time.perf_counter()
    together = [name for name in BESIDE_TESTS if name in chosen and tier == DEFAULT]
    with ThreadPoolExecutor(1) as pool:
        besides = pool.map(partial(_run, tier, beside=True), together)
        outcomes = [_run(tier, name) for name in chosen if name not in together]
    outcomes = [*besides, *outcomes]
    print(f"\n=== checks of the {tier} tier")
    for name, failed, taken in [*outcomes, ("all", any(failed for _, failed, _ in outcomes), time.perf_counter() - begin)]:
        print(f"{name:16}{'FAILED' if failed else 'passed':8}{taken:7.1f} s")
    return sum(failed for _, failed, _ in outcomes)


def _print_times() -> int:
    """Print what tests took when they last ran, by folder and by test, and why."""
    rows = load_table(table_file())
    if not rows:
        print("no run of the tests has ended here; run python -m tests first")
        return 2
    print(f"{'seconds of processors, or counts':80}{'tests':>7}" + "".join(f"{name:>11}" for name in FIELDS))
    by_folder: Callable[[str], str] = lambda test: "/".join(test.partition("::")[0].split("/")[:3])  # noqa: E731
    by_function: Callable[[str], str] = lambda test: test.partition("[")[0]  # noqa: E731
    for group, most in ((by_folder, None), (by_function, _ROWS)):
        print()
        for name, tests, total in _sums(rows, group)[:most]:
            print(f"{name[-80:]:80}{tests:7}" + "".join(f"{total[field]:11.1f}" for field in FIELDS))
    return 0


def _sums(rows: Mapping[str, Mapping[str, float]], group: Callable[[str], str]) -> list[tuple[str, int, dict[str, float]]]:
    """Sums of rows by group, the most expensive group first."""
    groups: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for test, row in rows.items():
        groups[group(test)].append(row)
    sums = [(name, len(each), {field: sum(row[field] for row in each) for field in FIELDS}) for name, each in groups.items()]
    return sorted(sums, key=lambda each: -each[2]["processor"] - each[2]["children"])


def _list_tests() -> int:
    """Print each test and its tier."""
    tiers: Iterable[tuple[str, str]] = ((DEFAULT, "not deep"), (DEEP, "deep"))
    for tier, marks in tiers:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", marks]
        collected = subprocess.run(command, cwd=ROOT, env=os.environ | {"FLASHSIM_TESTS": DEEP}, stdout=subprocess.PIPE, text=True)
        if collected.returncode:
            print(collected.stdout)
            return collected.returncode
        print(*(f"{tier:8}{line}" for line in collected.stdout.splitlines() if "::" in line), sep="\n")
    return 0


def main() -> int:
    """Run the checks of a tier, all or those named; return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    names = dict.fromkeys([*checks(DEFAULT), *checks(DEEP)])
    parser.add_argument("words", nargs="*", metavar="[deep] [CHECK ...]", help=f"the tier, and checks of it: {', '.join(names)}")
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="REV", help="run the tests that what differs from REV can touch")
    parser.add_argument("--app", choices=APPS, help="run the tests of one app, both tiers")
    parser.add_argument("--times", action="store_true", help="print what each test took when it last ran, and why")
    parser.add_argument("--list", action="store_true", help="print each test and its tier")
    given = parser.parse_args()
    if given.changed:
        return changes.run(given.changed, "-n", str(WORKERS), "--dist", "worksteal")
    if given.app:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-n", str(WORKERS), "-m", "deep or not deep", f"tests/apps/{given.app}"], cwd=ROOT
        ).returncode
    if given.times:
        return _print_times()
    if given.list:
        return _list_tests()
    tier, chosen = (DEEP, given.words[1:]) if given.words[:1] == [DEEP] else (DEFAULT, given.words)
    unknown = set(chosen) - set(checks(tier))
    if unknown:
        parser.error(f"no such check of the {tier} tier: {', '.join(sorted(unknown))}")
    return _run_checks(tier, chosen or list(checks(tier)))


if __name__ == "__main__":
    sys.exit(main())
