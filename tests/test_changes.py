"""A change selects the test files that it can touch, and no others."""

from __future__ import annotations

import re

from tests.cases import with_each
from tests.changes import Selection, arguments

#: A small project, in which tests reach files by imports, by names, by commands and by paths.
PROJECT = '''
=== setup.cfg
=== flashsim/__init__.py
=== flashsim/core/units.py
def size(text):
    """Bytes.

    >>> size("1")
    """
    return int(text)
=== flashsim/device/__init__.py
=== flashsim/device/presets.py
from flashsim.gc.base import FAMILY
=== flashsim/device/presets/fast.toml
gc = "greedy"
=== flashsim/device/presets/slow.toml
gc = "lazy"
=== flashsim/gc/base.py
FAMILY = Family("flashsim.gc", "policy", object)
=== flashsim/gc/greedy.py
def victim(): ...
=== flashsim/gc/lazy.py
def victim():
    from flashsim.core.units import size
=== flashsim/command_line.py
COMMANDS = declared()
=== flashsim/operations/__init__.py
COMMANDS: dict = {"join": "face.join:join", "device": {"list": "face.devices:devices"}}
=== flashsim/operations/face/join.py
def join(): ...
=== flashsim/operations/face/devices.py
def devices(): ...
=== docs/how-to/join.md
Words.
```sh
flashsim join
```
=== docs/how-to/list.md
```sh
flashsim device list
```
=== tests/conftest.py
import pytest
from flashsim.command_line import app
@pytest.fixture
def flashsim():
    return app
=== tests/test_units.py
from flashsim.core import units
=== tests/test_fast.py
PRESET = flashsim.device.presets.load("fast")
=== tests/test_slow.py
PRESET = flashsim.device.presets.load("slow")
=== tests/test_gc.py
from flashsim.gc.base import FAMILY
=== tests/test_join.py
def test_join(flashsim):
    flashsim("join bnl")
=== tests/test_list.py
def test_list(flashsim):
    flashsim(["device", "list"])
=== tests/test_face.py
import flashsim as fs
RESULT = fs.join()
=== tests/flashsim/operations/test_examples.py
PAGES = (Path("docs") / "how-to").glob("*.md")
'''
FILES = dict(re.findall(r"^=== (\S+)\n(.*?)(?=^===|\Z)", PROJECT, re.MULTILINE | re.DOTALL))
PAGE = "tests/flashsim/operations/test_examples.py::test_tutorials_run"
ALL = {path for path in FILES if "/test_" in path} | {"flashsim/core/units.py", f"{PAGE}[join]", f"{PAGE}[list]"}
#: File, what was there and what is there now, and the tests to run.
CHANGES = [
    ("flashsim/core/units.py", "int(text)", "float(text)", "units slow gc flashsim/core/units.py"),
    ("flashsim/core/units.py", "Bytes", "Octets", "flashsim/core/units.py"),
    ("flashsim/gc/lazy.py", "def", "# A comment.\ndef", ""),
    ("flashsim/gc/greedy.py", "()", "(flash)", "fast gc"),
    ("flashsim/gc/base.py", "policy", "rule", "fast slow gc"),
    ("flashsim/gc/greedy.py", "()", "(", "fast gc"),
    ("flashsim/device/presets/slow.toml", "lazy", "greedy", "slow"),
    ("flashsim/operations/face/join.py", "()", "(r)", f"join face {PAGE}[join]"),
    ("flashsim/operations/face/devices.py", "()", "(all)", f"list {PAGE}[list]"),
    ("docs/how-to/join.md", "Words", "More words", f"{PAGE}[join]"),
    ("tests/conftest.py", "return app", "return 0", "join list"),
    ("tests/conftest.py", "import pytest\n", "import pytest\n\nprint()\n", " ".join(ALL - {"flashsim/core/units.py"})),
    ("setup.cfg", "", "[metadata]", " ".join(ALL)),
]


@with_each("path, old, new, wanted", CHANGES)
def test_a_change_selects_what_reaches_it(path: str, old: str, new: str, wanted: str) -> None:
    touched = Selection(FILES | {path: FILES[path].replace(old, new, 1) if old else new}).touched({path: FILES[path]})
    assert {*touched} == {word if "/" in word else f"tests/test_{word}.py" for word in wanted.split()}


def test_what_is_removed_selects_what_names_it_still() -> None:
    path = "flashsim/core/units.py"
    touched = Selection(FILES | {path: ""}).touched({path: FILES[path]})
    assert {*touched} == {"tests/test_units.py", "tests/test_slow.py", "tests/test_gc.py"}


def test_cases_of_pages_run_alone() -> None:
    assert arguments(Selection(FILES), [f"{PAGE}[join]"]) == [PAGE, f"--deselect={PAGE}[list]"]
