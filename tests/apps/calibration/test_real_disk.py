"""On this machine's own disk, which others use too: what is asserted leaves room for that, and says how much."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.commands import Run

pytestmark = pytest.mark.deep


def test_cells_held_out_are_predicted_within_20_percent(flashsim: Run, here: Path) -> None:
    """Reads, which the fit did not see; with the noise between visits that the calibration itself states on top."""
    result = flashsim("device calibrate ./disk.bin --allow-write --size 512MiB --time 40s --out mine.toml --json mine.json")
    assert result.exit_code == 0, result.output
    told = json.loads((here / "mine.json").read_text(encoding="utf-8"))
    errors = [abs(cell["error"]) for cell in told["cells"] if cell["held_out"] and cell["operation"] == "read"]
    assert np.median(errors) < 0.2 + told["noise"]
    (mix,) = [cell for cell in told["cells"] if len(cell["sizes"]) > 1 and cell["depth"] == 1 and cell["operation"] == "read"]
    assert abs(mix["error"]) < 0.2 + mix["noise"]


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_both_engines_replay_the_joins(flashsim: Run, here: Path) -> None:
    """They move the same bytes; their times agree within 15 % where the machine is quiet, and within its noise where it is not."""
    result = flashsim(
        "validate joins --path ./joins.bin --device calibrated --memory 1MiB --engine both --allow-write --time 20s --json j.json"
    )
    assert result.exit_code == 0, result.output
    told = json.loads((here / "j.json").read_text(encoding="utf-8"))
    for one in told["joins"]:
        assert one["replayed_bytes"] == {"builtin": one["bytes"], "fio": one["bytes"]}
    noise = max(value for one in told["joins"] for name, value in one["noise"].items() if name.startswith("replayed"))
    assert told["engines_differ_by"] < 0.15 + noise
    assert not list(here.glob("*.bin"))
