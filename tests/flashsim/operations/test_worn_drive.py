"""A simulated drive whose blocks run out in the middle of a command: one line, exit code 2, and no result."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashsim.testing.flash_drives import TIES
from tests.commands import Run

PRESET = 'name = "worn"\nkind = "ssd"\ntitle = "A drive of few erases"\n\n[parameters]\n'


@pytest.fixture
def worn(here: Path) -> Path:
    values = TIES | {"endurance": 5, "spare_blocks": 1, "blocks_per_plane": 9, "ftl": '"page"', "gc": '"greedy"'}
    rates = {name: f'"{value}B/s"' for name, value in values.items() if name.endswith("_rate")}
    times = {name: f'"{values[name]}ns"' for name in ("read", "program", "erase", "read_latency", "write_latency")}
    sizes = {name: f'"{values[name]}B"' for name in ("capacity", "page_size")}
    lines = [f'{name} = {{ value = {value}, source = "test" }}\n' for name, value in (values | rates | times | sizes).items()]
    path = here / "worn.toml"
    path.write_text(PRESET + "".join(lines))
    return path


def test_replay_on_a_drive_that_wears_out(worn: Path, here: Path, flashsim: Run) -> None:
    """Two thousand writes of one page each to a drive of forty pages."""
    trace = "".join(f"{number * 1000} 0 {number * 28 % 160} 4 0\n" for number in range(2000))
    (here / "a.txt").write_text(trace)
    result = flashsim(f"trace replay a.txt --format mqsim --device {worn} --json r.json")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("flashsim: ")
    assert "read-only, as a plane has no spare block left" in result.stderr
    assert not (here / "r.json").exists()


def test_the_effective_overprovisioning_is_shown_with_its_definition(worn: Path, flashsim: Run) -> None:
    shown = flashsim(f"device show {worn}").stdout
    assert f"derived effective_overprovisioning: {2 * (9 - 1 - 2) * 4 / 40 - 1:.2%}\n    flash pages outside spare blocks" in shown
