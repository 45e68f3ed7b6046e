"""A power cut of a real ext4, on a drive that flashsim serves, loses what a store does not sync, and nothing of one that does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.apps.programs.ext4_power_cuts import judge
from tests.apps.programs.test_stores import PLANTED

PROGRAMS = ("nbdfuse", "mkfs.ext4", "mount", "fusermount3")


@pytest.fixture
def loop(here: Path) -> None:
    """Skips where loop devices may not be mounted."""
    if missing := [each for each in PROGRAMS if not shutil.which(each)]:
        pytest.skip(f"{missing[0]} is not installed")
    Path("trial").mkdir()
    Path("trial.raw").write_bytes(bytes(8 << 20))
    subprocess.run(["mkfs.ext4", "-q", "-F", "trial.raw"], check=True)
    if os.geteuid() or subprocess.run(["mount", "-o", "loop", "trial.raw", "trial"], capture_output=True).returncode:
        pytest.skip("loop devices may not be mounted here")
    subprocess.run(["umount", "trial"], check=True)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("setting", "kinds"), [("safe", set()), ("no sync of the folder", {"lost"})])
def test_planted_stores_on_ext4(setting: str, kinds: set[str], loop: None) -> None:
    Path("planted.py").write_text(PLANTED.replace("SETTINGS", str((setting,))))
    result = judge(os.path.abspath("planted.py"), setting, most=60)
    assert result["images"] > 20
    assert {each.partition(",")[0] for each in result["failing"]} == kinds, result
