"""``flashsim crash`` finds that each of fifty-two small programs is unsafe, or finds nothing, by its default options."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import flashsim as fs
from tests.apps.programs.crash_programs import Program, programs

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
#: Programs that take a second; of one of them only images with two torn pages fail.
FEW = ("copies-sectors-together", "copies-together", "in-place-across-sectors", "three-together")


def found(program: Program, seed: int, place: Path) -> set[str]:
    """Last lines of the check on images that fail."""
    folder = place / "files"
    folder.mkdir()
    for name, text in (("program.py", program.program), ("check.py", program.check)):
        (place / name).write_text(text)
    python = [sys.executable, "-B", "-S"]
    result = fs.crash([*python, str(place / "program.py")], check=f"{' '.join(python)} {place / 'check.py'}", folder=str(folder), seed=seed)
    assert bool(result.result.failed_images) == bool(result.result.failures) == bool(result.status)
    assert all(each.tried <= 32 for each in result.result.coverage)
    return {each.answer.last_line for each in result.result.failures}


def test_half_of_the_programs_are_safe() -> None:
    every = programs(0)
    assert len({each.name for each in every}) == 52 and sum(each.is_safe for each in every) == 26


@pytest.mark.parametrize("name", FEW)
def test_few_programs(name: str, tmp_path: Path) -> None:
    (program,) = (each for each in programs(3) if each.name == name)
    assert bool(found(program, 3, tmp_path)) != program.is_safe


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [each.name for each in programs(0)])
def test_every_unsafe_program_is_found_and_every_safe_one_passes(name: str, seed: int, tmp_path: Path) -> None:
    (program,) = (each for each in programs(seed) if each.name == name)
    assert bool(found(program, seed, tmp_path)) != program.is_safe
