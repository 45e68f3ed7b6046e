"""``flashsim stores``: planted stores fail in the way that their syncs allow, and the sync that they lack is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flashsim as fs
from flashsim.apps.programs import recorder
from flashsim.apps.programs.embedded_stores import CLOSED_EMPTY, DAMAGED, LOST, STORES, TORN, judge
from flashsim.apps.programs.store_page import page, verdict
from flashsim.apps.programs.store_survey import MENDS, with_syncs
from tests.cases import with_each

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "embedded_stores.md"
needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
#: Stores that replace a file, or overwrite it; each setting leaves one thing out.
PLANTED = """
import json, os

def sync(name):
    file = os.open(name, os.O_RDONLY)
    os.fsync(file)
    os.close(file)

def read(_):
    return json.load(open("bank")) if os.path.exists("bank") else {}

def commit(_, values, setting):
    new = read(None) | values
    name = "bank" if setting == "in place" else "new"
    with open(name, "w") as file:
        json.dump(new, file)
    if setting != "no sync of the file":
        sync(name)
    if name == "new":
        os.rename("new", "bank")
    if setting != "no sync of the folder":
        sync(".")

STORE = {
    "commit": commit,
    "read": read,
    "module": "json",
    "opens": "JSONEncoder",
    "arguments": (),
    "settings": {name: {"promises": "durable opens atomic", "why": "planted"} for name in SETTINGS},
}
"""


@pytest.fixture
def planted(here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Writes a file of a store with some settings; results are kept in a folder of the test's own."""
    monkeypatch.setenv("FLASHSIM_CACHE", str(here / "cache"))

    def write(*settings: str) -> str:
        Path("planted.py").write_text(PLANTED.replace("SETTINGS", str(settings)))
        return "planted.py"

    return write


@needs_strace
def test_a_missing_sync_of_the_folder_loses_data_and_is_named(planted: Any, capfd: pytest.CaptureFixture[str]) -> None:
    result = fs.stores([planted("no sync of the folder"), "dbm.sqlite3"], outcomes=2)
    row = result.result[0]
    assert row["failing"].keys() == {"lost"} and row["mends"] == {"lost": next(iter(MENDS))}
    assert "rename(new" in row["smallest"]["lost"]["recipe"][0] and "/tmp" not in json.dumps(row["smallest"])
    if sys.version_info < (3, 13):
        assert result.result[1]["status"] == "not installed" and "| not installed |" in page(result.result, result.provenance)
    assert "1\n" not in capfd.readouterr().out  # acknowledgements of the workload are not the command's output


@needs_strace
@pytest.mark.deep
def test_planted_stores_fail_as_their_syncs_allow(planted: Any) -> None:
    result = fs.stores([planted("safe", "no sync of the file", "in place")], outcomes=20)
    safe, unsynced, in_place = result.result
    assert safe["failing"] == {} and verdict(safe) == "every image passes"
    assert {"closed", "closed_empty"} <= unsynced["failing"].keys()
    assert "written before each rename" in unsynced["mends"]["closed"] and "write(new" in unsynced["smallest"]["closed"]["recipe"][0]
    assert "closed" in in_place["failing"] and in_place["mends"]["closed"] == ""


@needs_strace
@pytest.mark.deep
def test_a_survey_that_was_interrupted_goes_on(planted: Any, monkeypatch: pytest.MonkeyPatch, flashsim: Any) -> None:
    name, own = planted("safe", "in place"), recorder.record
    for interrupted in ("in place", "safe"):

        def record(command: Any, interrupted: str = interrupted, **named: Any) -> Any:
            if interrupted in command:
                raise KeyboardInterrupt
            return own(command, **named)

        monkeypatch.setattr(recorder, "record", record)
        if interrupted == "in place":
            with pytest.raises(KeyboardInterrupt):
                fs.stores([name], outcomes=1)
    result = flashsim(["stores", name, "--outcomes", "1", "--page", "page.md", "--json", "stores.json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(Path("stores.json").read_text())["stores"]
    assert len(rows) == 2 and all(row["verdict"] in Path("page.md").read_text() for row in rows)


@needs_strace
def test_a_store_whose_workload_fails_is_not_judged(planted: Any) -> None:
    name = planted("safe")
    Path(name).write_text(Path(name).read_text().replace('"JSONEncoder"', '"nothing"'))
    (row,) = fs.stores([name], outcomes=1).result
    assert row["status"] == "not judged" and "nothing" in row["reason"] and verdict(row).startswith("not judged: AttributeError")


def test_unknown_stores_are_refused_in_a_line(flashsim: Any, here: Path) -> None:
    for words in (["stores", "nothing"], ["stores", "nothing.py"], ["stores", "dbm.dumb", "--python", "nothing"]):
        result = flashsim(words)
        assert result.exit_code == 2 and result.stderr.count("\n") == 1 and "nothing" in result.stderr, result.stderr


A, B = {"a": "1a" * 20, "b": "1b" * 100, "k1": "1k1" * 350}, {"a": "2a" * 20, "b": "2b" * 100, "k2": "2k2" * 700}


@with_each(
    ("there", "acknowledged", "promise", "code"),
    [
        ({}, 0, "atomic", 0),
        (A, 0, "atomic", 0),
        (A, 1, "atomic", 0),
        (A | B, 1, "atomic", 0),
        ({}, 1, "atomic", LOST),
        (A, 2, "atomic", LOST),
        (A | {"a": B["a"]}, 1, "atomic", TORN),
        (A | {"a": B["a"]}, 1, "values", 0),
        (A | {"k2": B["k2"][:-1]}, 1, "values", TORN),
        (A | {"k1": "1k1"}, 1, "values", DAMAGED),
        (A | {"k3": "never"}, 1, "atomic", TORN),
        (A | B | {"a": A["a"]}, 2, "atomic", DAMAGED),
        (A | B | {"a": A["a"]}, 2, "values", LOST),
    ],
)
def test_what_a_store_holds_is_judged_by_what_was_acknowledged(there: dict[str, str], acknowledged: int, promise: str, code: int) -> None:
    assert judge(there, acknowledged, promise)[0] == code


def test_syncs_are_added_where_they_are_asked_for() -> None:
    row = {"kind": "file", "error": None, "other": None, "flags": 0, "time": 0, "process": 1, "thread": 1}
    rows = [row | {"call": "write", "file": 1, "path": "/x/new"}, row | {"call": "rename", "file": 1, "path": "/x/new", "other": "/x/bank"}]

    def calls(*places: str) -> list[tuple[str, str]]:
        return [(each["call"], each["path"]) for each in with_syncs(rows, "/x/", {*places})]

    write, rename = ("write", "/x/new"), ("rename", "/x/new")
    assert calls() == [write, rename]
    assert calls("names") == [write, rename, ("fsync", "/x")]
    assert calls("renames") == [write, ("fsync", "/x/new"), rename]


def test_every_store_says_what_its_documents_promise_and_where() -> None:
    assert len(STORES) >= 20 and CLOSED_EMPTY not in (LOST, TORN, DAMAGED)
    for store in STORES.values():
        assert store.source.startswith("https://") and store.settings
        for setting in store.settings.values():
            assert {*setting["promises"].split()} <= {"durable", "opens", "atomic", "values"} and setting["why"]


@needs_strace
@pytest.mark.deep
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", list(STORES))
def test_installed_stores_have_the_verdicts_of_the_page(name: str) -> None:
    """Of the page's versions, in the Python that the environment names."""
    python = os.environ.get("FLASHSIM_STORES_PYTHON", sys.executable)
    rows = re.findall(rf"^\| {re.escape(name)} \| (.*?) \| (.*?) \|.*\| (.*?) \|$", PAGE.read_text(), re.MULTILINE)
    known = {(version, setting): verdict for version, setting, verdict in rows}
    result = fs.stores([name], python=python, fresh=True, outcomes=60)
    same = [row for row in result.result if (row["version"], row["setting"]) in known]
    if not same:
        pytest.skip(f"{name} is not installed in the version of the page")
    assert {row["setting"]: verdict(row) for row in same} == {row["setting"]: known[row["version"], row["setting"]] for row in same}
