"""``flashsim device import-diskspecs``: a preset with sources, and one line where a file is not understood."""

from __future__ import annotations

import json
from pathlib import Path

from flashsim.device import presets
from tests.cases import with_each
from tests.commands import Run
from tests.flashsim.hdd.diskspecs.drive_files import write_drive


def test_a_preset_is_written_with_its_sources(here: Path, flashsim: Run) -> None:
    write_drive(here, diskspecs=("Preseeking level = 0", "Preseeking level = 1"))
    result = flashsim("device import-diskspecs small.parv --out mine.toml --json mine.json")
    assert result.exit_code == 0, result.output
    preset, told = presets.load("mine.toml"), json.loads((here / "mine.json").read_text())
    assert preset.name == told["name"] == "mine"
    assert preset.parameters == presets.load("small.parv").parameters
    assert preset.sources == {name: entry["source"] for name, entry in told["parameters"].items()}
    for note in told["notes"]:
        assert f"note: {note}\n" in result.stdout and f"# {note}\n" in (here / "mine.toml").read_text()
    assert any("Preseeking level = 1" in note for note in told["notes"])
    assert len(told["files"]) == 4
    shown = flashsim("device show mine.toml")
    assert shown.exit_code == 0 and "source: small.model:11, Head switch time" in shown.stdout


@with_each(
    ("line", "says"),
    [
        ("small.parv --out small.tom", "must end in .toml"),
        ("small.parv --out kept.toml", "add --force"),
        ("small.parv --out mine.toml --json small.seek --force", "is also what"),
        ("missing.parv --out mine.toml", "missing.parv"),
        ("broken.parv --out mine.toml --json mine.json", "broken.parv:2"),
        ("binary.parv --out mine.toml", "binary.parv:1"),
        ("small.parv --out mine.toml --disk OTHER", "OTHER"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(line: str, says: str, here: Path, flashsim: Run) -> None:
    write_drive(here)
    (here / "broken.parv").write_text("disksim_global Global {\nInit Seed = 42,\n")
    (here / "binary.parv").write_bytes(b"\x00\x01")
    (here / "kept.toml").write_text("kept")
    before = {path: path.read_bytes() for path in here.rglob("*")}
    result = flashsim(f"device import-diskspecs {line}")
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1 and says in result.stderr
    assert {path: path.read_bytes() for path in here.rglob("*")} == before
