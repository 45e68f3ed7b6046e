"""``flashsim pool crash``: one crash shown, exhaustive searches, a design of one's own, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import flashsim as fs

OWN = '''"""A design that believes the frame table as it was last flushed, whatever stands in the frames."""

from flashsim.storage.log.records import FREE

TITLE = "credulous"
FLUSHES = True


def load(recovery):
    for frame in range(recovery.frames):
        if (entry := recovery.durable.entry(frame)).state != FREE:
            recovery.entries[frame] = entry
    yield from ()
'''


def test_one_crash_is_shown(flashsim: Any, here: Path) -> None:
    result = flashsim("pool crash --restart lbr --seed 5 --event 120 --json crash.json")
    assert result.exit_code == 0, result.output
    assert "The log that survived" in result.stdout and "Every committed update is there" in result.stdout
    told = json.loads((here / "crash.json").read_text())
    assert told["event"] == 120 and told["violations"] == [] and told["provenance"]["parameters"]["restart"] == "lbr"


def test_crashes_repeat_under_their_seed_and_at_a_time() -> None:
    first, second = (fs.crash(restart="mmr", seed=7, event=300) for _ in range(2))
    assert first.as_dict() == second.as_dict()
    at = fs.crash(restart="mmr", seed=7, at=f"{first.result.time}ns")
    assert at.result.event >= 300 and at.status == 0
    assert fs.crash(restart="none", design="lc", checkpoints="indirect").result.history.checkpoints == "indirect"


def test_an_exhaustive_search_tells_the_shortest_history(flashsim: Any, here: Path) -> None:
    result = flashsim("pool crash --restart mmr --exhaustive --histories 5 --without harden-replacement --json told.json")
    assert result.exit_code == 1
    told = json.loads((here / "told.json").read_text())
    (failure,) = told["failures"]
    assert told["points"] > 10 and told["violations"] == 1 and failure["problems"]
    assert "The shortest history" in result.stdout and failure["problems"][0] in result.stdout


def test_a_design_of_ones_own_meets_the_same_adversary(flashsim: Any, here: Path) -> None:
    (here / "credulous.py").write_text(OWN)
    result = flashsim("pool crash --restart credulous.py --exhaustive --histories 10")
    assert result.exit_code == 1 and "Wrong after recovery" in result.stdout


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--restart mmx", "restart design: 'mmx' is unknown"),
        ("--restart nowhere.py", "no file at nowhere.py"),
        ("--without gard", "guard of lvr: 'gard' is unknown; known: both-writes"),
        ("--restart none --without page-id", "guard of none: 'page-id' is unknown"),
        ("--event 100000", "the history has the events 1 to"),
        ("--event 0", "it must be at least 1"),
        ("--at 1h", "the history is over at"),
        ("--at -1s", "a crash comes after the start"),
        ("--event 3 --at 1us", "an event is given already"),
        ("--exhaustive --event 3", "tries all of them"),
        ("--exhaustive --histories 0", "it must be at least 1"),
        ("--lose-ssd", "an exhaustive search is needed"),
        ("--design tac", "it must be one of dw, lc"),
        ("--checkpoints hard", "it must be one of sharp, fuzzy, indirect"),
    ],
)
def test_bad_input_is_refused_in_a_line(flashsim: Any, line: str, told: str) -> None:
    result = flashsim(f"pool crash {line}")
    assert result.exit_code == 2 and told in result.stderr and len(result.stderr.splitlines()) == 1, result.output
