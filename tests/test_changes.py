"""A change selects the tests that it can touch, and no others."""

from __future__ import annotations

import re

import pytest

from tests.changes import Selection, arguments, in_words, module_of

#: A small project, in which tests rest on definitions by import, by name, by command and by file.
PROJECT = """
=== setup.cfg
=== flashsim/__init__.py
def __getattr__(name): ...
=== flashsim/core/__init__.py
=== flashsim/core/units.py
def size(text):
    '''Bytes.

    >>> size("1")
    1
    '''
    return int(text)

def rate(text):
    return size(text)
=== flashsim/device/__init__.py
=== flashsim/device/presets.py
from flashsim.core.units import size
from flashsim.gc.base import FAMILY

def load(name):
    return FAMILY.load(read(name))

def read(name): ...
=== flashsim/device/presets/fast.toml
gc = "greedy"
=== flashsim/device/presets/slow.toml
gc = "lazy"
=== flashsim/gc/__init__.py
=== flashsim/gc/base.py
from flashsim.core.members import Family

FAMILY = Family("flashsim.gc", "policy", object)
=== flashsim/gc/greedy.py
def victim(): ...
=== flashsim/gc/lazy.py
from flashsim.core.units import rate

def victim():
    return rate(1)
=== flashsim/core/members.py
class Family: ...
=== flashsim/operations/__init__.py
=== flashsim/operations/command_line.py
COMMANDS: dict = {"join": "face.join:join", "device": {"list": "face.devices:list_all"}}

def app(): ...
=== flashsim/operations/face/__init__.py
=== flashsim/operations/face/join.py
def join(): ...
=== flashsim/operations/face/devices.py
def list_all(): ...

def devices(): ...
=== docs/how-to/join.md
Words.

```sh
flashsim join
```
=== docs/how-to/list.md
Words.

```sh
flashsim device list
```
=== tests/__init__.py
=== tests/times.py
=== tests/conftest.py
import pytest
from flashsim.operations.command_line import app

@pytest.fixture
def flashsim():
    return app
=== tests/test_units.py
from flashsim.core import units

def test_size():
    units.size('1')

def test_rate():
    units.rate('1')
=== tests/test_presets.py
from flashsim.device.presets import load

def test_fast():
    load('fast')

def test_slow():
    load('slow')
=== tests/test_gc.py
from flashsim.gc.base import FAMILY

NAMES = FAMILY.names()

def test_each():
    assert NAMES
=== tests/test_commands.py
def test_join(flashsim):
    flashsim('join bnl')

def test_list(flashsim):
    flashsim(['device', 'list'])
=== tests/test_face.py
import flashsim as fs

def test_join():
    fs.join()

def test_devices():
    fs.devices()
=== tests/test_pages.py
from pathlib import Path

PAGES = [Path('docs') / 'how-to' / f'{name}.md' for name in ('join',)]

def test_page():
    assert PAGES
"""
FILES = dict(re.findall(r"^=== (\S+)\n(.*?)(?=^===|\Z)", PROJECT, re.MULTILINE | re.DOTALL))
#: File, what was there and what is there now, and the tests to run.
CHANGES = [
    ("flashsim/core/units.py", "int(text)", "float(text)", "units presets:slow gc flashsim/core/units.py"),
    ("flashsim/core/units.py", "return size(text)", "return text", "units:rate presets:slow gc flashsim/core/units.py"),
    ("flashsim/core/units.py", '"1"', '"2"', "flashsim/core/units.py"),
    ("flashsim/core/units.py", "return size(text)", "return size(text)  # bytes", ""),
    ("flashsim/gc/greedy.py", "()", "(flash)", "presets:fast gc"),
    ("flashsim/gc/base.py", "policy", "rule", "presets gc"),
    ("flashsim/device/presets/slow.toml", "lazy", "greedy", "presets:slow"),
    ("flashsim/operations/face/join.py", "()", "(r)", "commands:join face:join pages"),
    ("flashsim/operations/face/devices.py", "devices()", "devices(all)", "face:devices"),
    ("flashsim/operations/face/devices.py", "list_all()", "list_all(all)", "commands:list"),
    ("docs/how-to/join.md", "Words", "More words", "pages"),
    ("docs/how-to/list.md", "Words", "More words", ""),
    ("tests/conftest.py", "return app", "return 0", "commands"),
    ("tests/conftest.py", "import pytest\n", "import pytest\n\nprint()\n", "units presets gc commands face pages"),
    ("tests/test_units.py", "units.rate('1')", "units.rate('2')", "units:rate"),
    ("setup.cfg", "", "[metadata]", "units presets gc commands face pages flashsim/core/units.py"),
]


def selection(files: dict[str, str]) -> Selection:
    return Selection({path: lambda text=text: text for path, text in files.items()})  # type: ignore[misc]


@pytest.mark.parametrize("path, old, new, wanted", CHANGES)
def test_a_change_selects_what_rests_on_it(path: str, old: str, new: str, wanted: str) -> None:
    after = selection(FILES | {path: FILES[path].replace(old, new, 1) if old else new})
    named = [word.removeprefix("tests/test_").replace(".py::test_", ":") for word in arguments(after, after.touched({path: FILES[path]}))]
    assert sorted(word if "/" in word else word.removesuffix(".py") for word in named) == sorted(wanted.split())


def test_what_is_removed_selects_what_names_it_still() -> None:
    after = selection({path: text for path, text in FILES.items() if path != "flashsim/core/units.py"})
    assert {"tests/test_units.py", "tests/test_presets.py"} <= set(
        after.touched({"flashsim/core/units.py": FILES["flashsim/core/units.py"]})
    )


def test_a_line_says_why() -> None:
    after = selection(FILES | {"flashsim/gc/lazy.py": "def victim(): ...\n"})
    (line,) = in_words(after.touched({"flashsim/gc/lazy.py": FILES["flashsim/gc/lazy.py"]}))
    assert line == "flashsim.gc.lazy (victim): 2 tests in tests/test_gc.py, tests/test_presets.py"
    assert module_of("flashsim/gc/__init__.py") == "flashsim.gc" and not module_of("docs/conf.py")
