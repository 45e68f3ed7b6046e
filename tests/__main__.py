"""Runs every check of the project, and says at the end which failed and how long each took."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests import changes

ROOT = Path(__file__).resolve().parents[1]
#: Beside the interpreter stand the commands that were installed with it.
BESIDE = Path(sys.executable).parent
#: Each keeps one core busy for a minute or more, so they run two at a time, the longest first; all others alone.
SIDE_BY_SIDE = ("notebooks", "documentation", "mypy")
CORES = 2
#: Processes of tests: one more than cores, since tests wait for programs that they start; more than four want too much memory.
WORKERS = min(4, (os.cpu_count() or 1) + 1)


def checks() -> dict[str, list[str]]:
    """The command of each check, by name, in order."""
    python = [sys.executable, "-m"]
    found = {
        "ruff check": [*python, "ruff", "check", "."],
        "ruff format": [*python, "ruff", "format", "--check", "."],
        "mypy": [*python, "mypy"],
        "import-linter": [str(BESIDE / "lint-imports")],
        "pytest": [
            *python,
            "pytest",
            "-n",
            str(WORKERS),
            "--dist",
            "worksteal",
            "--durations",
            "25",
            "--ignore",
            "tests/benchmarks",
            "--ignore",
            "tests/notebooks",
        ],
        "notebooks": [*python, "pytest", "-n", str(CORES), "--dist", "worksteal", "--durations", "5", "tests/notebooks"],
    }
    if any((ROOT / "tests" / "benchmarks").glob("test_*.py")):  # alone, so that nothing else disturbs what they measure
        found["benchmarks"] = [*python, "pytest", "tests/benchmarks"]
    found["documentation"] = [*python, "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", "docs/_build/html"]
    return found


def _run(name: str, *, beside: bool = False) -> tuple[str, bool, float]:
    """Run a check; its name, whether it failed, and its seconds.

    What a check prints that runs `beside` another is shown when it has ended.
    """
    command, begin = checks()[name], time.perf_counter()
    title = f"\n=== {name}: {shlex.join(command)}"
    if not beside:
        print(title, flush=True)
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE if beside else None, stderr=subprocess.STDOUT if beside else None, text=True
    )
    if beside:
        print(f"{title}\n{done.stdout}", end="", flush=True)
    return name, done.returncode != 0, time.perf_counter() - begin


def main() -> int:
    """Run the checks, all or those named; return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="CHECK", help=f"of: {', '.join(checks())} (default: all)")
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="REV", help="run the tests that what differs from REV can touch")
    given = parser.parse_args()
    if given.changed:
        return changes.run(given.changed, "-n", str(WORKERS), "--dist", "worksteal")
    chosen = given.only or list(checks())
    unknown = set(chosen) - set(checks())
    if unknown:
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    together = [name for name in SIDE_BY_SIDE if name in chosen]
    with ThreadPoolExecutor(CORES) as pool:
        outcomes = list(pool.map(partial(_run, beside=True), together))
    outcomes += [_run(name) for name in chosen if name not in SIDE_BY_SIDE]
    print("\n=== checks")
    for name, failed, taken in outcomes:
        print(f"{name:16}{'FAILED' if failed else 'passed':8}{taken:7.1f} s")
    return sum(failed for _, failed, _ in outcomes)


if __name__ == "__main__":
    sys.exit(main())
