"""The package: what is built, installed into an empty environment, and run there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import flashsim
from flashsim.operations.face.doctor import _EXTRAS
from tests.processes import without_progress
from tests.test_house import PACKAGES, ROOT, SETUP, distributions
from tests.yardstick import seconds

Once = Callable[[str, Callable[[Path], None]], Path]
VERSIONS = re.findall(r"Python :: (3\.\d+)", SETUP.get("metadata", "classifiers"))
#: Imports every module that is installed, prints those that ask for an extra, and fails if anything is imported from elsewhere.
IMPORTS = f"""
import importlib, pkgutil, re, sys
for package in {PACKAGES}:
    for each in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not each.name.endswith("__main__"):
            try:
                importlib.import_module(each.name)
            except ImportError as problem:
                print(re.search(r"pip install 'flashsim\\[(.*)\\]'", str(problem))[1])
loaded = {{name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}}
print(*[name for name, file in loaded.items() if name.partition(".")[0] in {PACKAGES} and not file.startswith(sys.prefix)])
"""
JOIN = "flashsim join bnl --r do2009:customer@0.001 --s do2009:orders@0.001 --on c_custkey=o_custkey --memory 256KiB --device ocz-core-60gb"
#: What is run in an environment without extras, with what it must print.
LINES = {
    "flashsim --version": f"flashsim {flashsim.__version__}",
    "flashsim doctor": "the missing extras are installed by pip install 'flashsim[cluster,labs,notebook,testing,tpch]'",
    JOIN: "result rows",
    "flashsim lab start replacement": "replacement.ipynb",
}


@pytest.fixture(scope="module")
def built(once: Once) -> Path:
    """A folder with a source distribution and the wheel that is built from it."""
    return once("built", build)


def build(folder: Path) -> None:
    sources = folder / "sources" / "flashsim"
    no_sources = shutil.ignore_patterns(
        ".git", ".venv*", "*.egg-info", "__pycache__", "build", "_build", "generated", ".*_cache", ".hypothesis", "results"
    )
    shutil.copytree(ROOT, sources, ignore=no_sources)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, sources]
    subprocess.run(command, check=True, capture_output=True, timeout=seconds(200))


def wheel(built: Path) -> Path:
    (found,) = built.glob("flashsim-*-py3-none-any.whl")
    return found


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of an environment, in a folder of its own, with nothing of this one on any path; kernels run as plain Python."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FLASHSIM"))}
    environment |= {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "NUMBA_DISABLE_JIT": "1"}
    (folder / "work").mkdir(exist_ok=True)
    return subprocess.run(command, cwd=folder / "work", env=environment, capture_output=True, text=True, timeout=seconds(1000))


def needed(name: str, found: dict[str, list[str]]) -> dict[str, list[str]]:
    """What a distribution needs without extras, and its own files' first folders, by name."""
    if name not in found:
        own = distribution(name)
        found[name] = sorted({path.parts[0] for path in own.files or () if path.parts[0] != ".."})
        for each in map(Requirement, own.requires or ()):
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                needed(each.name, found)
    return found


@pytest.fixture(scope="module")
def empty(built: Path, once: Once) -> Path:
    """An environment with the wheel and what it needs, linked from this one, and nothing else."""
    return once("empty", partial(install, built))


def install(built: Path, folder: Path) -> None:
    link_needs(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, wheel(built)], check=True, capture_output=True)


def link_needs(folder: Path) -> Path:
    """Make an environment with what flashsim needs, linked from this one, but without flashsim; returns its folder of packages."""
    venv.create(folder, with_pip=False)
    (there,) = folder.glob("lib/python3*/site-packages")
    needs = needed("flashsim", {})
    del needs["flashsim"]
    assert {"numba", "simpy", "typer"} < needs.keys() and not {"pytest", "hypothesis", "distributed"} & needs.keys()
    for name, parts in needs.items():
        for part in set(parts) - {"__pycache__"}:
            if not (there / part).exists():
                (there / part).symlink_to(distribution(name).locate_file(part))
    return there


def test_a_wheel_from_the_source_distribution_has_all_that_is_in_the_packages(built: Path) -> None:
    with zipfile.ZipFile(wheel(built)) as archive:
        names = set(archive.namelist())
    kept = {f"{path.relative_to(ROOT)}" for room in PACKAGES for path in (ROOT / room).rglob("*") if path.is_file()}
    kept = {name for name in kept if "__pycache__" not in name and not name.endswith(".py~")}
    assert kept - names == set()
    assert {name.partition("/")[0] for name in names} == {
        *PACKAGES,
        *(name.partition("/")[0] for name in names if ".dist-info" in name or ".data" in name),
    }
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "CITATION.cff",
        "CHANGELOG.md",
        "labs/answers.md",
        "tests/test_house.py",
        "docs/index.md",
        "notebooks/07_buffer_pools.ipynb",
    } <= inside
    assert not [name for name in inside if "__pycache__" in name or "_build" in name]


def test_every_module_is_imported_without_extras(empty: Path) -> None:
    done = run(empty, "python", "-W", "error::SyntaxWarning", "-c", IMPORTS)
    assert done.returncode == 0, done.stderr
    *extras, elsewhere = done.stdout.splitlines()
    assert set(extras) == {"testing"} and elsewhere == ""


@pytest.mark.parametrize("line", LINES)
def test_it_runs_without_extras(line: str, empty: Path) -> None:
    done = run(empty, *line.split())
    assert done.returncode == 0 and LINES[line] in done.stdout, done.stdout + done.stderr


def test_sources_run_without_extras_and_what_needs_one_says_so_in_one_line(tmp_path: Path) -> None:
    """Nothing is built here: what a wheel does is tested in the deep tier."""
    there = link_needs(tmp_path)
    for package in PACKAGES:
        (there / package).symlink_to(ROOT / package)
    line = "flashsim doctor"
    done = run(tmp_path, "python", "-m", *line.split())
    assert done.returncode == 0 and LINES[line] in done.stdout, done.stdout + done.stderr
    (tmp_path / "work" / "mine.py").write_text('"""A policy."""\n')
    done = run(tmp_path, "python", "-m", "flashsim", "check", "mine.py")
    errors = without_progress(done.stderr)
    assert done.returncode == 2 and re.fullmatch(r"flashsim: .*pip install 'flashsim\[testing\]'\n", errors), done.stderr


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_installed_with_extras_from_the_index(version: str, built: Path, tmp_path: Path) -> None:
    """In an environment of each Python that is here, by its name or by pyenv's."""
    (python,) = [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), *filter(None, [shutil.which(f"python{version}")]), None][:1]
    if python is None or subprocess.run([python, "-c", ""], check=False).returncode:
        pytest.skip(f"Python {version} is not installed")
    subprocess.run([python, "-m", "venv", tmp_path], check=True)
    done = run(tmp_path, "python", "-m", "pip", "install", "--quiet", f"{wheel(built)}[labs,testing]")
    assert done.returncode == 0, done.stderr
    (tmp_path / "work" / "mine.py").write_text((ROOT / "algorithms" / "replacement" / "lru.py").read_text())
    for line in (*LINES, "flashsim check mine.py", "flashsim reproduce"):
        done = run(tmp_path, *line.split())
        assert done.returncode == 0, line + done.stdout + done.stderr


#: What is run in an environment with one extra and nothing else.
ALONE = {
    "cluster": "python -c 'import distributed'",
    "docs": f"python -m sphinx --fail-on-warning --quiet {ROOT / 'docs'} site",
    "labs": "nbgrader --version",
    "notebook": "jupyter lab --version",
    "testing": "flashsim check mine.py",
    "tpch": JOIN.replace("do2009:", "tpch:"),
}


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("extra", sorted(set(SETUP.options("options.extras_require")) - {"test"}))
def test_an_extra_is_enough_alone(extra: str, built: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    done = run(tmp_path, "python", "-m", "pip", "install", "--quiet", f"{wheel(built)}[{extra}]")
    assert done.returncode == 0, done.stderr
    (tmp_path / "work" / "mine.py").write_text((ROOT / "algorithms" / "replacement" / "lru.py").read_text())
    done = run(tmp_path, *shlex.split(ALONE[extra]))
    assert done.returncode == 0, done.stdout + done.stderr


def test_extras_and_versions_are_stated_the_same_everywhere() -> None:
    extras = {name: distributions("options.extras_require", name) for name in SETUP.options("options.extras_require")}
    assert {name: set(needs) for name, (needs, _) in _EXTRAS.items()} == {
        name: needs for name, needs in extras.items() if name not in ("docs", "test")
    }
    assert f"version: {flashsim.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert VERSIONS[0] == SETUP.get("options", "python_requires").removeprefix(">=")
    installed = re.search(r"flashsim-\*\.whl\)\[([\w,]+)\]", (ROOT / "Containerfile").read_text())
    assert installed and set(installed[1].split(",")) < extras.keys()
