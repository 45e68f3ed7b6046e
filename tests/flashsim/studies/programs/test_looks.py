"""Files that a check looks at, by the calls that it makes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from flashsim.studies.programs.images import ImageFolder
from flashsim.studies.programs.looks import looked_at, watched

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


@pytest.mark.parametrize(
    ("check", "named", "listed"),
    [
        ("cat shop >/dev/null", {"shop"}, set()),
        ("test -s shop", {"shop"}, set()),
        ("test ! -e gone", {"gone"}, set()),
        ("cd in && test -s deep", {"in/deep"}, set()),
        ("ls in >/dev/null", set(), {"in"}),
        ("cat $PWD/in/../shop <link >/dev/null", {"shop"}, set()),
        ("echo shop >/dev/null; sleep 0", set(), set()),
        (f"{sys.executable} -S -c 'print(1)' shop", set(), set()),
        ("cat b*; : 'shop'", {"b\udcff"}, set()),
    ],
)
def test_files_that_a_check_names_or_opens(tmp_path: Path, check: str, named: set[str], listed: set[str]) -> None:
    folder = ImageFolder(tmp_path, 0)
    image = {"shop": b"apples", "in/deep": b"pears", "link//": b"shop", "b\udcff": b"bytes"}
    code, output = folder.look(image, b"", watched(f"{check}; exit 3", tmp_path / "calls"), 60)
    assert code == 3, output
    files, folders = looked_at(tmp_path / "calls", folder.root)
    assert files & {*image, "gone"} == named and folders >= listed and (listed or "in" not in folders)
