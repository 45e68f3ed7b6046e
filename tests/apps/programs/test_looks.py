"""Files that a check looks at, by the calls that it makes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from flashsim.apps.programs.images import ImageFolder, paths_looked_at, watch_command

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


@pytest.mark.parametrize(
    ("check", "named"),
    [
        ("cat shop >/dev/null", {"shop"}),
        ("test -s shop", {"shop"}),
        ("test ! -e gone", {"gone"}),
        ("cd in && test -s deep", {"in/deep"}),
        ("ls >/dev/null", set()),
        ("cat $PWD/in/../shop <link >/dev/null", {"shop"}),
        ("echo shop >/dev/null; sleep 0", set()),
        (f"{sys.executable} -S -c 'print(1)' shop", set()),
        ("cat b*; : 'shop'", {"b\udcff"}),
    ],
)
def test_files_that_a_check_names_or_opens(tmp_path: Path, check: str, named: set[str]) -> None:
    folder = ImageFolder(tmp_path, 0)
    image = {"shop": b"apples", "in/deep": b"pears", "link//": b"shop", "b\udcff": b"bytes"}
    code, output = folder.look(image, b"", watch_command(f"{check}; exit 3", tmp_path / "calls"), 60)
    assert code == 3, output
    assert paths_looked_at(tmp_path / "calls", folder.root) & {*image, "gone"} == named
