"""The examples of the guide work: members in files outside the package."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from flashsim.command_line import app
from flashsim.core.errors import FlashsimError
from flashsim.ssd.lab.drive import LabDrive
from flashsim.testing.checking import family_of
from flashsim.testing.flash_drives import check_invariants
from tests.contract.guide import PAGE, commands, write_members


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
    assert "1000 transactions, 2496 references to 901 pages" in printed
    assert "['key'] 500 tuples on 2 pages\n((0, 2048),) 2 reads\n" in printed
    assert "on the SSD: False\non the SSD: True\n" in printed


def test_the_guides_commands_show_its_join_beside_its_formula_and_its_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = tmp_path
    write_members(here)
    shown = {}
    for line in commands():
        if line.startswith("flashsim "):
            result = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="flashsim")
            assert result.exit_code == 0, f"{line}\n{result.output}"
            shown[" ".join(line.split()[1:3])] = result.stdout
        else:
            subprocess.run(line, shell=True, check=True)
    join, formula = (
        shown["join ./rocking.py"],
        re.compile(r"^join +([\d,]+) +([\d,]+) +[\d.]+ +[\d.]+ +[\d.]+ +([\d,]+) +([\d,]+) ", re.MULTILINE),
    )
    ours = [int(number.replace(",", "")) for number in formula.search(join).groups()]  # type: ignore[union-attr]
    assert ours[0] == ours[2] and abs(ours[1] - ours[3]) <= 0.02 * ours[3], "requests, pages, and the formula's"
    assert "6 references (33.3% writes) to 3 pages" in shown["cache simulate"]
    assert "0 W 2048 16\n250 R 8 1\n900 R 2048 16\n" == (here / "again.log").read_text() == (here / "application.log").read_text()


@pytest.mark.parametrize(
    ("member", "family"),
    [
        ("sectors.py", "traces.format"),
        ("colons.py", "traces.page_format"),
        ("hotspot.py", "traces.references"),
        ("accounts.py", "traces.transactions"),
    ],
)
def test_a_file_of_ones_own_is_of_one_family(member: str, family: str, tmp_path: Path) -> None:
    write_members(tmp_path)
    assert family_of(tmp_path / member).package == family


def test_a_file_of_no_family_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nothing.py").write_text("x = 1\n")
    (tmp_path / "half.py").write_text("x = 1\ny =\n")
    for name, words in (("nothing.py", "defines no member"), ("none.py", "no file at"), ("half.py", r"no Python: .*\(half.py, line 2\)")):
        with pytest.raises(FlashsimError, match=words):
            family_of(tmp_path / name)
