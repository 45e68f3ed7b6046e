"""The option --precondition: what it takes, what it refuses, and that measurements begin in that state."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from flashsim.core.errors import FlashsimError
from flashsim.device import presets
from flashsim.experiments.replaying.preconditioning import parse_state
from models.write_amplification import greedy
from tests.cases import with_each
from tests.commands import Run
from tests.flashsim.operations.test_trace_command import MQSIM

PRESETS = Path(presets.__file__).parent / "presets"


@pytest.fixture
def small(here: Path) -> Path:
    """A drive like one of 2007, of 352 MiB."""
    text = (PRESETS / "mtron-msd-sata3025-16gb.toml").read_text()
    changed = text.replace('"16GB"', '"352MiB"').replace("{ value = 8192", "{ value = 200")
    (here / "small.toml").write_text(changed)
    (here / "a.txt").write_text(MQSIM)
    return here / "small.toml"


def test_a_replay_begins_in_the_steady_state(flashsim: Run, small: Path) -> None:
    result = flashsim("trace replay a.txt --device small.toml --precondition steady,erases=100:10 --json r.json")
    assert result.exit_code == 0, result.output
    told = json.loads(Path("r.json").read_text())
    assert f"state before: {told['state']}" in result.stdout
    assert "deviation 10" in told["state"]
    parameters = presets.load(str(small)).parameters
    predicted = greedy(1 + parameters.effective_overprovisioning, 64)
    found = re.search(r"write amplification ([\d.]+)", told["state"])
    assert found and math.isclose(float(found[1]), predicted, rel_tol=0.03)  # the formula is of many blocks a plane
    assert told["provenance"]["parameters"]["precondition"] == "steady,erases=100:10"


def test_a_replay_on_an_empty_drive_reads_nothing(flashsim: Run, small: Path) -> None:
    read = {}
    for state in ("empty", "sequential"):
        result = flashsim(f"trace replay a.txt --device small.toml --precondition {state} --json {state}.json")
        assert result.exit_code == 0, result.output
        read[state] = json.loads(Path(f"{state}.json").read_text())["duration"]
    assert read["empty"] != read["sequential"]


def test_a_benchmark_begins_in_the_state(flashsim: Run, small: Path) -> None:
    line = "device bench small.toml --quick --size 16MiB --only order --json"
    assert flashsim(f"{line} random.json --precondition random:0.8").exit_code == 0
    assert flashsim(f"{line} steady.json --precondition steady").exit_code == 0
    told = {name: json.loads(Path(f"{name}.json").read_text()) for name in ("random", "steady")}
    assert told["random"]["state"] == "80% written at random, each page once, in no time"
    mean = {name: max(run["mean"] for run in one["runs"]) for name, one in told.items()}
    assert mean["steady"] > 2 * mean["random"]  # garbage is collected from the first write on


@with_each(
    ("state", "message"),
    [
        ("steddy", "did you mean steady"),
        ("random:1.5", "share: 1.5"),
        ("random:much", "'much'"),
        ("steady:0.5", "takes no share"),
        ("random:0.5,wear=3", "STATE"),
        ("empty,erases=-1", "erases: -1"),
        ("", "STATE"),
    ],
)
def test_what_it_refuses(state: str, message: str) -> None:
    with pytest.raises(FlashsimError, match=re.escape(message)):
        parse_state(state, presets.load("mtron-msd-sata3025-16gb"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trace replay a.txt --device toshiba-5400-320gb --precondition steady", "is a disk"),
        ("trace replay a.txt --device small.toml --precondition steady --empty", "take one of them"),
        ("device bench ./a.txt --precondition steady", "is not a preset"),
    ],
)
def test_where_it_does_not_belong(line: str, message: str, flashsim: Run, small: Path) -> None:
    result = flashsim(line)
    assert result.exit_code == 2
    assert message in result.output
