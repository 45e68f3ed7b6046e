"""The names of ``import flashsim as fs``: lazy, quick to import, listed, typed, and documented."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import flashsim as fs

ROOT = Path(__file__).parents[4]
NAMES = sorted(path.stem for path in (ROOT / "flashsim" / "operations" / "face").glob("[!_]*.py"))


def test_every_file_is_a_name_and_listed() -> None:
    assert {"drive", "join", "sweep", "compare", "reproduce", "replay", "trace", "devices", "algorithms"} <= set(NAMES)
    assert [name for name in dir(fs) if not name.startswith("_")] == NAMES
    for name in NAMES:
        assert getattr(fs, name).__name__ == name and getattr(fs, name).__doc__


def test_type_checkers_see_every_name() -> None:
    tree = ast.parse((ROOT / "flashsim" / "__init__.pyi").read_text(encoding="utf-8"))
    seen = [(node.module, each.name, each.asname) for node in tree.body if isinstance(node, ast.ImportFrom) for each in node.names]
    assert seen == [(f"flashsim.operations.face.{name}", name, name) for name in NAMES]


def test_no_name_is_a_room() -> None:
    assert not set(NAMES) & {path.stem for path in (ROOT / "flashsim").iterdir()}


def test_every_example_is_a_doctest() -> None:
    for name in NAMES:
        assert ">>> " in (getattr(fs, name).__doc__ or ""), name


def test_an_unknown_name_suggests_one() -> None:
    with pytest.raises(AttributeError, match="'joint' is unknown; did you mean join"):
        fs.joint  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(fs, "_private") and not hasattr(fs, "__wrapped__")


def test_importing_it_loads_nothing_heavy() -> None:
    """At most 0.3 s, and 0.6 s with the join: what takes longer is not loaded before it is wanted."""
    program = "import sys; import flashsim as fs; dir(fs)\n"
    for heavy in ("numpy numba pandas pyarrow matplotlib", "pandas scipy.optimize matplotlib joblib simpy"):
        program += f"print(*{set(heavy.split())} & sys.modules.keys()); fs.join\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not done.stdout.strip()


def test_the_reference_has_every_name() -> None:
    page = (ROOT / "docs" / "reference" / "front_door.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f".. autofunction:: flashsim.operations.face.{name}.{name}\n" not in page] == []
