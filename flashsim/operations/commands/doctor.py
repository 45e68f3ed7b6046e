"""``flashsim doctor``: libraries, compiled kernels and other programs; and compilation in advance."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from flashsim.core.units import format_size
from flashsim.operations.fields import Flag
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing

#: Libraries whose versions matter, and extras with what they are for.
_LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "pyarrow", "pandas", "simpy", "joblib", "typer")
_EXTRAS = {"distributed": "reproduce --cluster", "duckdb": "the tests' other opinion on joins", "playwright": "screenshots of reports"}
#: Programs that flashsim works with, and what for.
_PROGRAMS = {
    "strace": "records programs, whose power is cut then",
    "fio": "replays on real devices, and measures them beside flashsim's own requests",
    "blkparse": "turns blktrace's binary captures into text",
    "nbdcopy": "copies to and from a served drive",
    "nbdfuse": "shows a served drive as a file",
    "jupyter": "opens the notebooks",
}


@operation
def doctor(
    compile: Annotated[bool, Flag("Compile all engines now, rather than when they are first used.")] = False,
) -> Listing:
    """Show versions, what is compiled, how large the cache is, and which other programs are there to judge.

    Examples::

        flashsim doctor
        flashsim doctor --compile --json doctor.json
    """
    from flashsim.studies.presentation.tables import Table  # with pandas, for which no help need wait

    if compile:
        from flashsim.core.compiling import Compilation
        from flashsim.device.engines import all_parts

        Compilation([part for parts in all_parts().values() for part in parts]).wait("all engines")
    facts = _facts()
    system, cache = facts["system"], facts["cache"]
    where = "" if cache["writable"] else "; nothing can be written there, so every process compiles anew"
    age = f", from {cache['oldest']} to {cache['newest']}" if cache["files"] else ""
    rows = [[name, each["version"] or ("missing" if not each["found"] else "found"), each["for"]] for name, each in facts["others"].items()]
    parts: list[Any] = [
        f"flashsim {system['flashsim']}, Python {system['python']} on {system['machine']}, {system['cores']} cores\n",
        Table(["library", "version"], list(facts["libraries"].items())),
        "",
        Table(["engine", "compiled", "of"], [[name, *counts.values()] for name, counts in facts["engines"].items()]),
        f"cache: {cache['folder']}, {format_size(cache['bytes'])} in {cache['files']:,} files{age}{where}",
    ]
    if any(counts["compiled"] < counts["of"] for counts in facts["engines"].values()):
        parts.append("what is missing is compiled when it is first used; or now: flashsim doctor --compile")
    return Listing([*parts, "", Table(["beside it", "found", "for"], rows)], [{"name": row[0], "found": row[1]} for row in rows], facts)


def _facts() -> dict[str, Any]:
    """The installation, JSON-ready."""
    from flashsim.core.compiling import can_write
    from flashsim.core.kernel import compiled, kernels_folder
    from flashsim.core.processes import cores
    from flashsim.device.engines import all_parts

    others = {name: {"found": find_spec(name) is not None, "version": _version(name), "for": use} for name, use in _EXTRAS.items()}
    programs = {name: {"found": shutil.which(name) is not None, "version": _answer(name), "for": use} for name, use in _PROGRAMS.items()}
    return {
        "system": {
            "flashsim": _version("flashsim"),
            "python": platform.python_version(),
            "executable": sys.executable,
            "machine": f"{platform.system()} {platform.machine()}",
            "cores": cores(),
        },
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "compiled": compiled(),
        "engines": {name: {"compiled": sum(part.is_kept() for part in parts), "of": len(parts)} for name, parts in all_parts().items()},
        "cache": _cache(kernels_folder()) | {"writable": can_write()},
        "others": programs | others,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _answer(program: str) -> str | None:
    """The first line of a program's version."""
    place = shutil.which(program)
    if place is None:
        return None
    try:
        reply = subprocess.run([place, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (reply.stdout or reply.stderr).strip().splitlines()
    return lines[0] if lines and reply.returncode == 0 else None


def _cache(folder: Path) -> dict[str, Any]:
    """Size and age of a folder's content."""
    status = [(Path(place) / name).stat() for place, _, names in os.walk(folder) for name in names]
    times = [time.strftime("%Y-%m-%d", time.localtime(each.st_mtime)) for each in status]
    return {
        "folder": str(folder),
        "files": len(status),
        "bytes": sum(each.st_size for each in status),
        "oldest": min(times, default=None),
        "newest": max(times, default=None),
    }
