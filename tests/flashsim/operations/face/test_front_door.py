"""The names of ``import flashsim as fs``: lazy, quick to import, listed, typed, and documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flashsim as fs
from flashsim.command_table import functions
from flashsim.core.errors import InvalidParameterError

ROOT = Path(__file__).parents[4]
FILES = [path.relative_to(ROOT) for path in (ROOT / "flashsim").rglob("face/[!_]*.py")]
SHEET = ROOT / "docs" / "reference" / "cheat_sheet.md"
COMMANDS = functions()
#: The module of each name that is a file.
NAMES = {path.stem: ".".join(path.with_suffix("").parts) for path in sorted(FILES, key=lambda path: path.stem)}


def test_every_file_is_a_name_and_listed() -> None:
    assert {"drive", "join", "sweep", "compare", "reproduce", "replay", "trace", "devices", "algorithms"} <= set(NAMES)
    assert [name for name in dir(fs) if not name.startswith("_")] == sorted({*NAMES, *COMMANDS})
    assert len(NAMES) == len(FILES)
    for name in NAMES:
        assert getattr(fs, name).__name__ == name and getattr(fs, name).__doc__


def test_type_checkers_see_every_name() -> None:
    body = ast.parse((ROOT / "flashsim" / "__init__.pyi").read_text(encoding="utf-8")).body
    imported = [(node.module, each.name, each.asname) for node in body if isinstance(node, ast.ImportFrom) for each in node.names]
    seen = {name: f"{module}:{name}" for module, name, alias in imported if name == alias}
    also = [(node.targets[0].id, node.value.id) for node in body if isinstance(node, ast.Assign)]  # type: ignore[attr-defined]
    seen |= {alias: seen[name] for alias, name in also}
    assert seen == COMMANDS | {name: f"{module}:{name}" for name, module in NAMES.items()}


def test_every_command_is_a_name() -> None:
    """``flashsim device import-diskspecs`` is `fs.device_import_diskspecs`."""
    lines = [line.split() for line in re.findall(r"`flashsim ([a-z -]+?)(?: --help)?`", SHEET.read_text(encoding="utf-8"))]
    assert {"_".join(words).replace("-", "_") for words in lines} == COMMANDS.keys()
    assert fs.device_bench is fs.bench and fs.trace_replay is fs.replay and fs.validate_joins is fs.compare


def test_a_name_that_changed_its_meaning_says_what_has_it_now() -> None:
    with pytest.raises(InvalidParameterError, match=r"^restart: not an argument, but fs\.crash takes command, .*fs\.pool_crash"):
        fs.crash(restart="lvr", exhaustive=True)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="'lab': it is fs.tiny_drive now"):
        fs.lab  # type: ignore[attr-defined]  # noqa: B018


def test_no_name_is_a_room() -> None:
    assert not NAMES.keys() & {path.stem for path in (ROOT / "flashsim").iterdir()}


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
    listed = re.findall(r"^### fs\.(\w+)\n\n```{eval-rst}\n\.\. autofunction:: fs\.(\w+)$", page, re.MULTILINE)
    assert all(heading == name for heading, name in listed)
    assert {getattr(fs, name) for name in dir(fs) if name[0] != "_"} == {getattr(fs, name) for _, name in listed}
