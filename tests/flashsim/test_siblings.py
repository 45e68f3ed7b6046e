"""Siblings share their names with files of the user's own; where they cannot, one line names the file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import flashsim
from flashsim.siblings import SIBLINGS, settle
from tests.processes import without_progress

ROOT = Path(flashsim.__file__).parents[1]


def python(arguments: list[str], folders: list[Path], where: Path) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path[:0] = {[str(folder) for folder in folders]!r}; sys.argv = {arguments!r}; "
    program += "import flashsim; print(flashsim.__version__)"
    return subprocess.run([sys.executable, "-c", program], cwd=where, capture_output=True, text=True, check=False)


def test_nothing_is_shadowed_here() -> None:
    assert settle(ROOT / "flashsim") is None


def test_siblings_are_found_and_not_imported(tmp_path: Path) -> None:
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import flashsim; print([n for n in {SIBLINGS!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


#: A module of flashsim's in each sibling.
OURS = {"models": "haas", "algorithms": "sorting", "traces": "file"}
THEIRS = """
print("run")
class Mine:
    value = 7
def double(number):
    return 2 * number
"""


def run(program: str, where: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program that stands in a folder, whose files come first on Python's path."""
    (where / "program.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *options, "program.py"], cwd=where, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", SIBLINGS)
@pytest.mark.parametrize("as_folder", [True, False])
@pytest.mark.parametrize("first", ["flashsim", "theirs"])
def test_a_file_of_the_users_own_and_a_sibling_share_a_name(tmp_path: Path, name: str, as_folder: bool, first: str) -> None:
    shadow = tmp_path / (f"{name}/__init__.py" if as_folder else f"{name}.py")
    shadow.parent.mkdir(exist_ok=True)
    shadow.write_text(THEIRS)
    if as_folder:
        (tmp_path / name / "theirs_alone.py").write_text("VALUE = 9\n")
    imports = ["import flashsim", f"import {name}"]
    program = [
        *(imports if first == "flashsim" else reversed(imports)),
        "import pickle",
        f"import {name}.{OURS[name]} as ours",
        f"print(ours.__name__, {name}.__name__)",
        f"from {name} import Mine, double",
        f"print(double({name}.Mine.value), pickle.loads(pickle.dumps(Mine)) is Mine, {name}.__file__ == {str(shadow)!r})",
        *([f"from {name}.theirs_alone import VALUE", "print(VALUE)"] if as_folder else []),
        f"from {name} import absent",
    ]
    done = run("\n".join(program), tmp_path)
    told = done.stdout.split()
    assert sorted(told[:3]) == sorted(["run", f"{name}.{OURS[name]}", name]) and told.count("run") == 1
    assert told[3:] == ["14", "True", "True", *(["9"] if as_folder else [])]
    assert done.stderr.splitlines()[-1].startswith("ImportError: cannot import name 'absent'")


def test_what_the_user_does_not_ask_for_is_not_run_and_a_failure_is_his(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text("raise RuntimeError('theirs')\n")
    program = (
        "import flashsim\nfrom models.haas import cost\nprint(hasattr(__import__('models'), '__wrapped__'))\nfrom models import Mine\n"
    )
    done = run(program, tmp_path)
    assert done.stdout == "False\n" and done.stderr.splitlines()[-1] == "RuntimeError: theirs"


def test_a_script_of_a_siblings_name_runs_flashsim_in_processes_and_compiles_nothing_anew(tmp_path: Path) -> None:
    """As one that is called traces.py: workers import it by no means."""
    script = """
import os, sys
import flashsim
from flashsim.core.source_files import source_tree
from flashsim.experiments.runs.jobs import each
from models.haas import cost
if __name__ != "__main__":
    print("run twice")
    sys.exit(1)
print(sorted(result for _, result in each(os.path.basename, ["a", "b"], 2)), "theirs" in str(source_tree().sources["traces"]))
"""
    (tmp_path / "traces.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "traces.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['a', 'b'] False\n", "")


@pytest.mark.parametrize("start", [["-m", "flashsim"], ["-c", "from flashsim.__main__ import main; main()"]])
def test_the_command_runs_beside_such_a_file(tmp_path: Path, start: list[str]) -> None:
    for name in SIBLINGS:
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported')\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *start, "device", "show", "ocz-core-60gb"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, without_progress(done.stderr)) == (0, "") and "ocz-core-60gb" in done.stdout


@pytest.mark.parametrize("name", SIBLINGS)
@pytest.mark.parametrize("as_folder", [True, False])
def test_a_shadow_that_has_a_part_of_flashsims_name_is_named(tmp_path: Path, name: str, as_folder: bool) -> None:
    shadow = tmp_path / (f"{name}/__init__.py" if as_folder else f"{name}.py")
    shadow.parent.mkdir(exist_ok=True)
    shadow.write_text("raise RuntimeError('imported')\n" if as_folder else f"def {OURS[name]}():\n    pass\n")
    if as_folder:
        (tmp_path / name / f"{OURS[name]}.py").write_text("")
    told = f"package '{name}' of flashsim is shadowed by {shadow}, which has a {OURS[name]} too"
    done = python(["program.py"], [tmp_path, ROOT], tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: {told}")
    command = python(["/somewhere/bin/flashsim"], [tmp_path, ROOT], tmp_path)
    assert command.returncode == 2
    assert command.stderr.startswith(f"flashsim: {told}")
    assert command.stderr.count("\n") == 1


def test_a_missing_sibling_is_named(tmp_path: Path) -> None:
    (tmp_path / "flashsim").mkdir()
    for module in ("__init__", "siblings"):
        (tmp_path / "flashsim" / f"{module}.py").write_text((ROOT / "flashsim" / f"{module}.py").read_text())
    for name in SIBLINGS[:-1]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    done = subprocess.run([sys.executable, "-S", "-c", "import flashsim"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: package '{SIBLINGS[-1]}' of flashsim is missing: {tmp_path}")
