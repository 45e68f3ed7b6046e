"""The examples of the guide work: members in files outside the package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashsim.ssd.lab.drive import LabDrive
from tests.flashsim.ssd.drives import check_invariants

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-member.md"


def test_the_guides_files_and_its_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        if name := re.match(r"# (\w+\.py)\n", block):
            Path(name[1]).write_text(block, encoding="utf-8")
        else:
            exec(compile(block, PAGE.name, "exec"), names)
    drive = names["drive"]
    assert isinstance(drive, LabDrive) and str(drive).splitlines()[1] != str(LabDrive()).splitlines()[1]
    check_invariants(drive)  # type: ignore[arg-type]
    steps = [1 + turn % 3 for turn in range(10)]
    writes = np.sum([np.arange(drive.pages) % step == 0 for step in steps], axis=0)
    writes[0] += 1
    assert np.array_equal(drive.state.own, writes)
    plain = LabDrive()
    for step in steps:
        plain.write_all(range(0, plain.pages, step))
    erases = [one.statistics()["block_erases"]["std"] for one in (plain, drive)]
    assert erases[0] < erases[1]  # the block freed last is filled first
    assert "die 1\n" in capsys.readouterr().out
