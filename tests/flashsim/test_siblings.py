"""The check for shadowed siblings: one line that names the file, wherever the shadow falls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import flashsim
from flashsim.siblings import SIBLINGS, shadowed

ROOT = Path(flashsim.__file__).parents[1]


def python(arguments: list[str], folders: list[Path], where: Path) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path[:0] = {[str(folder) for folder in folders]!r}; sys.argv = {arguments!r}; "
    program += "import flashsim; print(flashsim.__version__)"
    return subprocess.run([sys.executable, "-c", program], cwd=where, capture_output=True, text=True, check=False)


def test_nothing_is_shadowed_here() -> None:
    assert shadowed(ROOT / "flashsim") is None


def test_siblings_are_found_and_not_imported(tmp_path: Path) -> None:
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import flashsim; print([n for n in {SIBLINGS!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", SIBLINGS)
@pytest.mark.parametrize("as_folder", [True, False])
def test_a_shadow_is_named(tmp_path: Path, name: str, as_folder: bool) -> None:
    shadow = tmp_path / (f"{name}/__init__.py" if as_folder else f"{name}.py")
    shadow.parent.mkdir(exist_ok=True)
    shadow.write_text("raise RuntimeError('imported')\n")
    done = python(["program.py"], [tmp_path, ROOT], tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: package '{name}' of flashsim is shadowed by {shadow}")
    command = python(["/somewhere/bin/flashsim"], [tmp_path, ROOT], tmp_path)
    assert command.returncode == 2
    assert command.stderr.startswith(f"flashsim: package '{name}' of flashsim is shadowed by {shadow}")
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
