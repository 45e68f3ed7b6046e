"""Why a join took its time: parts of phases and steps from the formula add up, and the sentence names the cause."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError
from tests.commands import Run

KEYS = {"r": "do2009:customer@0.02", "s": "do2009:orders@0.02", "on": "c_custkey=o_custkey", "memory": "512KiB"}


@pytest.mark.parametrize(
    ("device", "algorithm"),
    [
        ("samsung-980-pro-1tb", "bnl"),
        ("ocz-vertex-3", "grace-hash"),
        ("toshiba-5400-320gb", "sort-merge"),
        ("ocz-core-60gb", "hybrid-hash"),
    ],
)
def test_parts_and_steps_add_up(device: str, algorithm: str) -> None:
    result = fs.join(**KEYS, device=device, algorithm=algorithm)
    why = result.why()
    phases, costs = why.phases(), result.phases().set_index("phase")["total_s"]
    assert np.allclose(phases.groupby("phase")["seconds"].sum(), costs.sort_index(), rtol=0, atol=1e-9)
    assert np.allclose(phases.groupby("phase")["share"].sum(), 1)
    for phase in why.as_dict()["phases"]:
        assert sum(phase["parts"].values()) == phase["io"]
        steps = phase["steps"]
        run = steps.pop("run")
        assert abs(sum(steps.values()) - run) <= len(steps)
        assert run == phase["io"] and phase["io"] + phase["user"] + phase["kernel"] == phase["elapsed"]
    formula = result.against_formula().iloc[-1]
    assert dict(why.result.total_steps())["formula"] == pytest.approx(formula["formula_io_s"])


def test_long_reads_of_a_drive_of_today_wait_for_pages_of_one_die() -> None:
    """The case of which a paragraph named four causes, none of which it was."""
    larger = {"r": "do2009:customer@0.05", "s": "do2009:orders@0.05", "memory": "1MiB"}
    why = fs.join(**KEYS | larger, device="samsung-980-pro-1tb", algorithm="bnl").why()
    assert "page reads of one die in turn" in why.title and "times the formula" in why.title
    worths = why.mechanisms().set_index("mechanism")["alone_s"]
    assert worths.idxmax() == "waiting for dies" and worths["pages of a word line"] > 0.5 * worths["waiting for dies"]
    steps = dict(why.result.total_steps())
    assert abs(steps["ideal device against the formula"]) < 0.02 * steps["run"]


def test_a_disk_is_faster_than_its_formula_by_reading_ahead() -> None:
    why = fs.join(**KEYS, device="toshiba-5400-320gb", algorithm="bnl").why()
    assert "reads beyond requests" in why.title


def test_the_command_prints_and_writes_the_answer(flashsim: Run, tmp_path: Path) -> None:
    out = tmp_path / "why.json"
    result = flashsim(
        "join bnl --r do2009:customer@0.02 --s do2009:orders@0.02 --on c_custkey=o_custkey --device samsung-980-pro-1tb "
        f"--memory 512KiB --why --json {out}"
    )
    assert result.exit_code == 0 and "Why: " in result.output and "waiting for dies" in result.output
    (machine,) = json.loads(out.read_text())["machines"]
    assert machine["why"]["sentence"] in " ".join(result.output.split())
    plain = flashsim(
        "join bnl --r do2009:customer@0.02 --s do2009:orders@0.02 --on c_custkey=o_custkey --device samsung-980-pro-1tb --memory 512KiB"
    )
    assert "--why explains the difference" in " ".join(plain.output.split()).lower()


def test_why_one_device_is_faster() -> None:
    devices = ("ocz-vertex-3", "samsung-980-pro-1tb")
    one, other = (fs.join(**KEYS, device=name, algorithm="bnl", buffers_for="ocz-vertex-3") for name in devices)
    difference = fs.why(one, other)
    steps = difference.summary()["seconds"].tolist()
    assert sum(steps[:-1]) == pytest.approx(steps[-1])
    assert difference.title.startswith("samsung-980-pro-1tb is")
    assert difference.as_dict()["steps"][devices[0]] == steps[0]
    assert difference.plot().figure is not None and one.why().plot().figure is not None
    grace = fs.join(**KEYS, device=devices[0], algorithm="grace-hash")
    assert fs.why(one, grace).title.split(" is ")[0] in ("bnl", "grace-hash")
    with pytest.raises(FlashsimError, match="both the requests and the devices differ"):
        fs.why(other, grace)


def test_what_cannot_be_taken_apart_is_refused(tmp_path: Path) -> None:
    rows = pd.DataFrame({"key": range(2000)})
    strands = fs.join(rows, rows, on="key", algorithm="grace-hash", partition="para-hash", strands=2, device="ocz-core-60gb", memory="1MiB")
    with pytest.raises(FlashsimError, match="strands"):
        strands.why()
    real = fs.join(rows, rows, on="key", algorithm="bnl", device=str(tmp_path / "file"), memory="1MiB", allow_write=True)
    with pytest.raises(FlashsimError, match="real device"):
        real.why()
    with pytest.raises(FlashsimError, match="is not a result of fs.join, fs.replay or fs.pool"):
        fs.why(rows)  # type: ignore[arg-type]
