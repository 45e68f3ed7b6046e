"""The examples of the guide work: members in files outside the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashsim.ssd.lab.drive import LabDrive
from tests.contract.guide import PAGE, write_members
from tests.flashsim.ssd.drives import check_invariants


def test_the_guides_files_and_its_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for program in write_members(tmp_path):
        exec(compile(program, PAGE.name, "exec"), names)
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
    printed = capsys.readouterr().out
    assert "die 1\n" in printed
    assert "['key'] 500 tuples on 2 pages\n((0, 2048),) 2 reads\n" in printed
