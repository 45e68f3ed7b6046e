"""``flashsim pool crash``: one crash shown, exhaustive searches, a design of one's own, and what is refused."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import flashsim as fs
from algorithms.extensions.base import DESIGNS
from algorithms.restart.base import restart_design
from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.units import NEVER
from flashsim.experiments.crashing import single
from flashsim.experiments.crashing.histories import EXTENSIONS, drawn_history
from flashsim.experiments.crashing.single import load
from flashsim.storage.log.durable import LOG, Durable, DurableWrite, Ring
from flashsim.storage.log.records import BEGIN, Boot, Record
from flashsim.storage.log.recovery import Recovery, RedoFailureError
from tests.cases import with_each

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
    first, second = (fs.pool_crash(restart="mmr", seed=7, event=300) for _ in range(2))
    assert first.as_dict() == second.as_dict()
    at = fs.pool_crash(restart="mmr", seed=7, at=f"{first.result.survival.time}ns")
    assert at.result.survival.event >= 300 and at.status == 0
    assert fs.pool_crash(restart="none", design="lc", checkpoints="indirect").result.survival.history.checkpoints == "indirect"


def test_an_exhaustive_search_tells_the_shortest_history(flashsim: Any, here: Path) -> None:
    result = flashsim("pool crash --restart mmr --exhaustive --histories 5 --without harden-replacement --json told.json")
    assert result.exit_code == 1
    told = json.loads((here / "told.json").read_text())
    (failure,) = told["failures"]
    assert told["points"] > 10 and told["violations"] == 1 and failure["problems"]
    assert "The shortest history" in result.stdout and failure["problems"][0] in result.stdout


def test_a_design_of_ones_own_meets_the_same_adversary(flashsim: Any, here: Path) -> None:
    (here / "credulous.py").write_text(OWN)
    result = flashsim("pool crash --restart credulous.py --exhaustive --histories 1 --seed 2")
    assert result.exit_code == 1 and "Wrong after recovery" in result.stdout


def test_what_survived_is_saved_and_recovered_later(flashsim: Any, here: Path) -> None:
    line = "pool crash --restart lvr --seed 129"
    first = flashsim(f"{line} --save crash.json --json first.json")
    again = flashsim("pool crash --saved crash.json --json again.json")
    assert (first.exit_code, again.exit_code) == (0, 0), again.output
    told, repeated = (json.loads((here / name).read_text()) for name in ("first.json", "again.json"))
    assert told.pop("provenance") != repeated.pop("provenance") and told == repeated
    without = flashsim("pool crash --saved crash.json --without page-id")
    assert without.exit_code == 1 and "page" in without.stdout
    assert flashsim(f"{line} --save crash.json").exit_code == 2


def test_every_extension_is_drawn_crashed_saved_and_recovered(here: Path) -> None:
    assert {drawn_history(seed, "none").extension for seed in range(20)} == set(EXTENSIONS) == set(DESIGNS.names())
    for design in EXTENSIONS:
        survival = single.crash(drawn_history(7, "mmr", extension=design))
        survival.save(here / f"{design}.json")
        assert load(here / f"{design}.json").history == survival.history and not single.recover_crash(survival).wrong


def test_a_damaged_saved_crash_is_refused_in_a_line(flashsim: Any, here: Path) -> None:
    assert flashsim("pool crash --restart mmr --seed 4 --save crash.json").exit_code == 0
    whole = (here / "crash.json").read_text()
    saved = json.loads(whole)
    saved["state"]["first"] += 1
    changed, saved["sha256"] = json.dumps(saved), "0"
    for text, told in (
        (whole[: len(whole) // 2], "it is not JSON"),
        (changed, "its digest is another"),
        ("[]", "not a saved crash"),
        (json.dumps({"format": "flashsim crash 2", "state": None}), "its digest is another"),
    ):
        (here / "crash.json").write_text(text)
        result = flashsim("pool crash --saved crash.json")
        assert result.exit_code == 2 and told in result.stderr and len(result.stderr.splitlines()) == 1, result.output
    assert "cannot read" in flashsim("pool crash --saved nowhere.json").stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"boot": ["a"]}, "not enough values"),
        ({"rows": "x"}, "rows: 'x', but the history has"),
        ({"rows": 0}, "rows: 0, but the history has"),
        ({"first": 10**12}, "the records are not those from 1000000000000 on"),
        ({"event": ["1", 2, 3]}, "'1' is not a number"),
        ({"disk": [["9", [9, 0, [0], False]]]}, "is not a"),
        ({"log": [["1", {}]]}, "the records are not those from"),
        ({"history": {"seed": "x"}}, "'x' is not a number"),
        ({"history": {"extension": "tax"}}, "no history has 'tax' and"),
        ({"tears": "no"}, "'no' is not true or false"),
    ],
)
def test_a_saved_crash_with_values_that_cannot_be_is_refused_in_a_line(here: Path, change: dict[str, Any], told: str) -> None:
    body = saved_body(here)
    rewrite(here, body | change | {"history": body["history"] | change.get("history", {})})
    with pytest.raises(DamagedFileError, match=re.escape(told)):
        fs.pool_crash(saved="crash.json")


def test_a_saved_record_of_no_kind_and_a_deeply_nested_file_are_refused_in_a_line(here: Path) -> None:
    body = saved_body(here)
    body["log"][3][1]["kind"] = 99
    rewrite(here, body)
    with pytest.raises(DamagedFileError, match="99 is not a number from 0 to 12"):
        fs.pool_crash(saved="crash.json")
    (here / "crash.json").write_text("[" * 100_000)
    with pytest.raises(DamagedFileError, match="it is not JSON"):
        fs.pool_crash(saved="crash.json")


def saved_body(here: Path) -> dict[str, Any]:
    single.crash(drawn_history(4, "mmr")).save(here / "crash.json")
    return dict(json.loads((here / "crash.json").read_text())["state"])


def rewrite(here: Path, body: dict[str, Any]) -> None:
    """A saved crash with a digest that fits."""
    text = json.dumps(body, sort_keys=True)
    file = {"format": "flashsim crash 2", "sha256": hashlib.sha256(text.encode()).hexdigest(), "state": body}
    (here / "crash.json").write_text(json.dumps(file))


@pytest.mark.parametrize("seed", [1, 4, 8])
def test_a_log_too_small_is_refused_with_a_size_that_does(seed: int) -> None:
    """Recovery reads the log as it lies on a device of that size, after any event."""
    with pytest.raises(InvalidParameterError, match="log-size: 1024 B, but records that recovery may need take more sectors") as refused:
        fs.pool_crash(seed=seed, log_size="1KiB")
    match = re.search(r"a log of (\d+)B would do", str(refused.value))
    assert match
    assert fs.pool_crash(seed=seed, log_size=f"{match[1]}B").status == 0
    assert overwritten(seed, int(match[1])) == 0 < overwritten(seed, int(match[1]) // 1024 * 512)
    assert fs.pool_crash(seed=seed, log_size="1MiB").as_dict() == fs.pool_crash(seed=seed).as_dict()


@pytest.mark.parametrize(("seed", "event", "log_size"), [(0, 245, 9728), (3, 357, 24064)])
def test_a_log_without_room_for_what_recovery_writes_is_refused(seed: int, event: int, log_size: int) -> None:
    """The records by which recovery undoes transactions may not overwrite those that it would need after another crash."""
    with pytest.raises(InvalidParameterError, match="with its own ones: a log of") as refused:
        fs.pool_crash(restart="none", seed=seed, event=event, log_size=f"{log_size}B")
    (would_do,) = re.findall(r"a log of (\d+)B would do", str(refused.value))
    survival = single.crash(drawn_history(seed, "none"), event, log_size=int(would_do))
    recovery = Recovery(survival.durable, restart_design("none"), survival.history.frames, 3)
    lengths = [sum(record.length for _, record in write.items) for _, write in recovery.writes() if write.target == LOG]
    assert lengths and log_size < survival.durable.room([0]) + 2 * 512 and survival.durable.room(lengths) <= int(would_do)


def overwritten(seed: int, log_size: int) -> int:
    """Events of a history after which its log's device lacks a record that recovery may need."""
    system, count = drawn_history(seed, "lvr").build(log_size=log_size), 0
    while system.env.peek() < NEVER and not system.is_idle:
        system.env.step()
        count += system.durable.first_overwritten(system.durable.first, system.durable.end) > 0
    return count


def test_recovery_fails_where_a_record_that_it_needs_was_overwritten() -> None:
    """What its number says is not believed: sectors hold what was written last."""
    durable, record = Durable(1, ring=Ring(1024)), Record(BEGIN, 1)
    for lsn in range(1, 4):
        durable.apply(DurableWrite(LOG, ((lsn, record),), place=512 * (lsn - 1)))
    assert durable.first_overwritten(2, 4) == 0 and durable.first_overwritten(1, 4) == 1
    with pytest.raises(RedoFailureError, match="record 1 is needed, and has been overwritten on its device"):
        list(Recovery(durable, restart_design("none"), 1, 3).writes())
    durable.boot = Boot(2, 2, 2)
    assert list(Recovery(durable, restart_design("none"), 1, 3).writes())


def test_the_power_of_presets_is_cut(flashsim: Any, here: Path) -> None:
    result = flashsim("pool crash --restart lvr --exhaustive --histories 1 --ssd-device mtron-msd-sata3025-16gb --json cuts.json")
    assert result.exit_code == 0 and 8 < json.loads((here / "cuts.json").read_text())["points"] <= 16, result.output


def test_a_design_of_ones_own_may_log_that_an_update_freed_a_frame(flashsim: Any, here: Path) -> None:
    (here / "eager.py").write_text(
        "from algorithms.restart.lbr import GUARDS, HARDENS, meet\n"
        "from flashsim.storage.log.recovery import IN_LOG_AT_ONCE, MODIFIED\n"
        "TITLE = 'LBR that logs every change'\nHARDENS = {**HARDENS, MODIFIED: IN_LOG_AT_ONCE}\n"
    )
    result = flashsim("pool crash --restart eager.py --exhaustive --histories 3")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def load(recovery):\n    raise ValueError('boo')\n    yield", "load failed with ValueError: boo"),
        ("def load():\n    yield from ()", "load failed with TypeError: load() takes 0 positional arguments"),
        ("def load(recovery):\n    return None", "load failed with TypeError: 'NoneType' object is not iterable"),
        ("def load(recovery):\n    yield 5", "load must yield reads and writes, not 5"),
        ("load = 5", "load failed with TypeError: 'int' object is not callable"),
        ("def load(recovery):\n    recovery.entries[0] = 'foo'\n    yield from ()", "load leaves 'foo' as the entry of frame 0"),
        ("def load(recovery):\n    recovery.frame_of[3] = 999\n    yield from ()", "load leaves frame 999 to page 3"),
        ("def load(recovery):\n    recovery.entries[99] = 0\n    yield from ()", "load leaves an entry of frame 99, and there are"),
        ("def meet(recovery, lsn, record):\n    raise KeyError(3)", "meet failed with KeyError: 3"),
        ("def meet(recovery):\n    pass", "meet failed with TypeError: meet() takes 1 positional argument but 3"),
        ("def meet(recovery, lsn, record):\n    import sys; sys.exit(0)", "meet failed with SystemExit: 0"),
        ("ENTRY = 0", "ENTRY: 0, but it must be a whole number of bytes from 1 to 512"),
        ("ENTRY = 4096\nFLUSHES = True", "ENTRY: 4096, but"),
        ("ENTRY = 'a'", "ENTRY: 'a', but"),
        ("HARDENS = 5", "HARDENS: 5, but it must have for changes"),
        ("HARDENS = {0: 99}", "HARDENS: {0: 99}, but"),
        ("HARDENS = {'a': 1}", "HARDENS: {'a': 1}, but"),
        ("GUARDS = ['a']", "GUARDS: ['a'], but it must have for each guard's name a text"),
        ("FLUSHES = 'no'", "FLUSHES: 'no', but it must be True or False"),
    ],
)
@pytest.mark.parametrize("form", ["--seed 4", "--exhaustive --histories 1"])
def test_a_design_of_ones_own_that_fails_is_named_with_its_step(flashsim: Any, here: Path, text: str, told: str, form: str) -> None:
    (here / "mine.py").write_text(f"TITLE = 'mine'\n{text}\n")
    result = flashsim(f"pool crash --restart mine.py {form}")
    assert result.exit_code == 2 and f"restart design: mine.py: {told}" in result.stderr, result.output
    assert len([line for line in result.stderr.splitlines() if line.startswith("flashsim:")]) == 1


@with_each(
    ("line", "told"),
    [
        ("--ssd-device mtron-msd-sata3025-16gb", "an exhaustive search is needed"),
        ("--exhaustive --disk nowhere", "'nowhere' is unknown"),
        ("--exhaustive --lose-ssd --disk seagate-st3300655lc", "drives keep what they hold"),
        ("--exhaustive --save crash.json", "an exhaustive search saves nothing"),
        ("--saved crash.json --event 3", "the crash is over: event cannot be chosen"),
        ("--saved crash.json --restart mmr", "the crash is over: restart cannot be chosen"),
        ("--saved crash.json --seed 3", "the crash is over: seed cannot be chosen"),
        ("--saved crash.json --log-size 1MB", "the crash is over: log_size cannot be chosen"),
        ("--exhaustive --log-size 1MB", "an exhaustive search gives the log all that it needs"),
        ("--torn-pages", "torn-pages: True, but an exhaustive search is needed"),
        ("--histories 5", "histories: 5, but an exhaustive search is needed"),
        ("--restart mmx", "restart design: 'mmx' is unknown"),
        ("--restart nowhere.py", "no file at nowhere.py"),
        ("--without gard", "guard of lvr: 'gard' is unknown; known: both-writes"),
        ("--restart none --without page-id", "guard of none: 'page-id' is unknown"),
        ("--seed 1180591620717411303424 --event 100000", "the history has the events 1 to"),
        ("--event 100000", "the history has the events 1 to"),
        ("--event 0", "it must be at least 1"),
        ("--at 1h", "the history is over at"),
        ("--at -1s", "a crash comes after the start"),
        ("--event 3 --at 1us", "an event is given already"),
        ("--exhaustive --event 3", "tries all of them"),
        ("--exhaustive --histories 0", "it must be at least 1"),
        ("--lose-ssd", "an exhaustive search is needed"),
        ("--design tax", "it must be one of cw, dw, exclusive, face"),
        ("--checkpoints hard", "it must be one of sharp, fuzzy, indirect"),
    ],
)
def test_bad_input_is_refused_in_a_line(flashsim: Any, line: str, told: str) -> None:
    result = flashsim(f"pool crash {line}")
    assert result.exit_code == 2 and told in result.stderr and len(result.stderr.splitlines()) == 1, result.output
