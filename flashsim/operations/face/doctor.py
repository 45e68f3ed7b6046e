"""``flashsim doctor``: libraries, compiled kernels and other programs; and compilation in advance."""

import os
import platform
import shutil
import subprocess
import sys
import time
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from flashsim.core.units import format_size
from flashsim.operations.fields import Flag
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing

#: Libraries whose versions matter.
_LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "pyarrow", "pandas", "simpy", "joblib", "typer")
#: Extras by name, what each installs, and what for.
_EXTRAS = {
    "cluster": (("distributed",), "runs on several machines, with --cluster"),
    "labs": (("nbgrader",), "makes labs for students, and collects their work"),
    "notebook": (("anywidget", "ipykernel", "jupyterlab", "nbclient", "nbformat"), "opens and runs the notebooks"),
    "testing": (("hypothesis", "pytest"), "holds parts of your own against the contracts of their families"),
    "tpch": (("tpchgen-cli",), "generates TPC-H's tables"),
}
#: Programs that flashsim works with, and what for.
_PROGRAMS = {
    "strace": "records programs, whose power is cut then",
    "fio": "replays on real devices, and measures them beside flashsim's own requests",
    "blkparse": "turns blktrace's binary captures into text",
    "nbdcopy": "copies to and from a served drive",
    "nbdfuse": "shows a served drive as a file",
}


@operation
def doctor(compile: Annotated[bool, Flag("Compile all engines now instead of at first use.")] = False) -> Listing:
    """Show versions, compiled engines and the cache.

    Also the external programs that tests use, as far as they are installed.

    Examples::

        flashsim doctor
        flashsim doctor --compile --json doctor.json

    Examples
    --------
    >>> import flashsim as fs
    >>> "numpy" in fs.doctor().document["libraries"]
    True
    """
    from flashsim.experiments.presentation.tables import Table  # with pandas, for which no help need wait

    if compile:
        from flashsim.core.compiling import Compilation
        from flashsim.device.engines import all_parts

        Compilation([part for parts in all_parts().values() for part in parts]).wait("all engines")
    facts = _facts()
    system, cache = facts["system"], facts["cache"]
    where = "" if cache["writable"] else "; nothing can be written there, so every process compiles anew"
    age = f", from {cache['oldest']} to {cache['newest']}" if cache["files"] else ""
    rows = [[name, each["version"] or ("missing" if not each["found"] else "found"), each["for"]] for name, each in facts["others"].items()]
    memory = "" if system["memory"] is None else f", {format_size(system['memory'])} of memory free"
    parts: list[Any] = [
        f"flashsim {system['flashsim']}, Python {system['python']} on {system['machine']}, {system['cores']} cores{memory}",
        f"real files and devices: {system['real devices']}\n",
        Table(["library", "version"], list(facts["libraries"].items())),
        "",
        Table(["engine", "compiled", "of"], [[name, *counts.values()] for name, counts in facts["engines"].items()]),
        f"cache: {cache['folder']}, {format_size(cache['bytes'])} in {cache['files']:,} files{age}{where}",
    ]
    if any(counts["compiled"] < counts["of"] for counts in facts["engines"].values()):
        parts.append("Engines that are not compiled yet are compiled at first use. Next: flashsim doctor --compile compiles them now.")
    advice: list[str] = []
    if missing := [name for name in _EXTRAS if not facts["others"].get(f"flashsim[{name}]", {"found": True})["found"]]:
        advice = ["", f"Next: the missing extras are installed by pip install 'flashsim[{','.join(missing)}]'"]
    return Listing(
        [*parts, "", Table(["program or extra", "found", "for"], rows), *advice], [{"name": row[0], "found": row[1]} for row in rows], facts
    )


def _facts() -> dict[str, Any]:
    """The installation, JSON-ready."""
    from flashsim.core.compiling import can_write
    from flashsim.core.kernel import is_compiled
    from flashsim.core.processes import cores, free_memory
    from flashsim.core.source_files import kernels_folder
    from flashsim.device.engines import all_parts

    extras = {
        f"flashsim[{name}]": {"found": None not in versions, "version": versions[0] if len(versions) == 1 else None, "for": use}
        for name, (wanted, use) in _EXTRAS.items()
        if (versions := [_version(each) for each in wanted])
    }
    programs = {name: {"found": shutil.which(name) is not None, "version": _answer(name), "for": use} for name, use in _PROGRAMS.items()}
    return {
        "system": {
            "flashsim": _version("flashsim"),
            "python": platform.python_version(),
            "executable": sys.executable,
            "machine": f"{platform.system()} {platform.machine()}",
            "cores": cores(),
            "memory": free_memory(),
            "real devices": _real_devices(),
        },
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "compiled": is_compiled(),
        "engines": {name: {"compiled": sum(part.is_kept() for part in parts), "of": len(parts)} for name, parts in all_parts().items()},
        "cache": _cache(kernels_folder()) | {"writable": can_write()},
        "others": programs | extras,
    }


def _real_devices() -> str:
    """How requests reach real files and devices on this system."""
    from flashsim.device.aio import open_queue

    if not hasattr(os, "O_DIRECT"):
        return "none, since they are read and written on Linux alone"
    with closing(open_queue(1)) as queue:
        return f"by O_DIRECT, many requests at once by {queue.TITLE}"


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
