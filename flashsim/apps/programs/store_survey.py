"""What power cuts leave of embedded stores: each runs a small workload, all of its images are checked, and syncs that would mend it tried."""

import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import Any, NamedTuple

import pyarrow as pa

from flashsim.apps.programs import recorder
from flashsim.apps.programs.cutting import DriveRules, PowerCuts
from flashsim.apps.programs.images import snapshot
from flashsim.apps.programs.outcomes import CutReport
from flashsim.apps.programs.stores import _harness as harness
from flashsim.apps.programs.stores.base import STORES, EmbeddedStore
from flashsim.core.errors import FlashsimError
from flashsim.core.protocols import Progress
from flashsim.experiments.runs import kept
from traces.calls import schema
from traces.calls.schema import SCHEMA, Recording

#: Kinds of failure by the check's exit code, each with the promise that it breaks; an answer of no check counts as a store that is closed.
KINDS = {
    harness.LOST: ("lost", "durable"),
    harness.CLOSED: ("closed", "opens"),
    harness.TORN: ("torn", "atomic values"),
    harness.UNBORN: ("unborn", "opens"),
}
#: Seconds that a check may take, with the time that its process takes to begin.
_LIMIT = 60.0
Row = dict[str, Any]


class SurveySettings(NamedTuple):
    """How stores are surveyed."""

    python: str
    outcomes: int
    seed: int
    jobs: int
    fresh: bool


def survey(names: Sequence[str], settings: SurveySettings, progress: Progress) -> Iterator[Row]:
    """A row a setting of a store; results are kept, so that a survey that was interrupted goes on."""
    stores = [(name, STORES.load(name)) for name in names]
    whole = [(name, store, setting) for name, store in stores for setting in store.SETTINGS]
    versions = {name: _version(store, settings.python) for name, store in stores}
    for count, (name, store, setting) in enumerate(whole):
        progress(count, len(whole), f"{name}, {setting}")
        promise, _, why = store.SETTINGS[setting].partition(": ")
        row = {"store": name, "setting": setting, "promise": promise, "why": why}
        row |= {"package": store.DISTRIBUTION or f"Python ({store.MODULE})", "version": versions[name]}
        if versions[name] is None:
            yield row | {"status": "not installed"}
            continue
        what = {"text": _path(store).read_text(), "version": versions[name], "setting": setting, **settings._asdict(), "jobs": 0, "fresh": 0}
        identity = kept.identity(what, __name__)
        result = None if settings.fresh else kept.recall(identity)
        if result is None:
            result = _try(store, setting, settings)
            kept.keep(result, identity)
        yield row | result


def _path(store: EmbeddedStore) -> Path:
    return Path(str(getattr(store, "__file__", "")))


def _command(action: str, store: EmbeddedStore, python: str, *setting: str) -> list[str]:
    return [python, "-B", harness.__file__, action, str(_path(store)), *setting]


def _version(store: EmbeddedStore, python: str) -> str | None:
    """The version of a store's package; None where it cannot be imported."""
    answer = subprocess.run(_command("version", store, python), capture_output=True, text=True)
    return None if answer.returncode else str(json.loads(answer.stdout))


def _try(store: EmbeddedStore, setting: str, settings: SurveySettings) -> Row:
    begin, used = time.monotonic(), os.times()
    with tempfile.TemporaryDirectory(prefix="flashsim-store-") as place:
        folder = Path(place, "files").resolve()
        folder.mkdir()
        try:
            with _output_to(Path(place, "printed")):
                recording = recorder.record(_command("run", store, settings.python, setting), contents=True, folder=folder, before={})
            if recording.facts["exit_code"]:
                return {"status": "not judged", "reason": f"its workload ended with exit code {recording.facts['exit_code']}"}
            cutting = _Cutting(recording, folder, join(_command("serve", store, settings.python, setting)), store.EXCLUDE, settings)
            row = _row(cutting.report(recording), cutting)
        except FlashsimError as problem:
            return {"status": "not judged", "reason": str(problem)}
    now = os.times()
    cpu = sum(now[:4]) - sum(used[:4])
    return row | {"seconds": round(time.monotonic() - begin, 1), "cpu_seconds": round(cpu, 1)}


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Let programs that are started print to a file."""
    own = os.dup(1)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(own, 1)
            os.close(own)


class _Cutting:
    """Power cuts of one recorded workload, as it is or with syncs that it did not make."""

    def __init__(self, recording: Recording, folder: Path, check: str, exclude: Sequence[str], settings: SurveySettings) -> None:
        self.recording, self._folder, self._check, self._exclude, self._settings = recording, folder, check, exclude, settings
        self._after = snapshot(folder)

    def report(self, recording: Recording) -> CutReport:
        of = recording, self._folder, {}, self._after, self._check, DriveRules()
        cuts = PowerCuts(*of, self._settings.outcomes, self._settings.seed, _LIMIT, self._exclude, stays=True)
        return cuts.run(lambda done, total, message="": None, self._settings.jobs)

    def mend(self, kinds: set[str]) -> dict[str, str]:
        """For each kind of failure the first of `MENDS` without which it occurs, and with which it does not."""
        mends = dict[str, str]()
        for words, insert in MENDS.items():
            if left := kinds - set(mends):
                rows = list(insert(self.recording.table.to_pylist(), str(self._folder)))
                table = pa.Table.from_pylist(rows, schema=SCHEMA)
                failing = counts(self.report(replace(self.recording, table=table)))
                mends |= {kind: words for kind in left - set(failing)}
        return mends


def counts(report: CutReport) -> dict[str, int]:
    """Images that fail, by kind of failure."""
    number = Counter[str]()
    for each in report.failures:
        number[_kind(each.answer.code)] += each.count
    return dict(number)


def _kind(code: int) -> str:
    return KINDS.get(code, KINDS[harness.CLOSED])[0]


def _row(report: CutReport, cutting: _Cutting) -> Row:
    number = counts(report)
    smallest = {}
    for each in sorted(report.failures, key=lambda each: len(each.recipe), reverse=True):
        smallest[_kind(each.answer.code)] = {"cut": each.call, "recipe": list(each.recipe), "says": each.output.splitlines()[-1:]}
    row: Row = {"status": "tried", "calls": report.calls, "outcomes": report.cuts, "images": report.images, "share": report.share}
    row |= {"is_complete": report.is_complete, "failing": number, "smallest": smallest, "missed": list(report.missed)}
    return row | {"mends": cutting.mend(set(number))}


def _sync(like: Mapping[str, Any], path: str | None, file: int, call: str = "fsync") -> Row:
    """A sync that the program did not make, after or before a call."""
    empty = dict.fromkeys(SCHEMA.names)
    own = {"call": call, "kind": "file", "file": file, "path": path, "flags": 0, "result": 0, "duration": 1}
    return empty | {name: like[name] for name in ("time", "process", "thread")} | own


def _sync_names(rows: Sequence[Row], folder: str) -> Iterator[Row]:
    """Sync the folder after each change of names in it."""
    for row in rows:
        yield row
        is_change = row["call"].startswith(("rename", "link", "unlink", "symlink", "mkdir", "rmdir")) or row["flags"] & schema.CREATE
        if is_change and row["kind"] == "file" and not row["error"] and str(row["other"] or row["path"]).startswith(f"{folder}/"):
            yield _sync(row, os.path.dirname(row["other"] or row["path"]), -1)


def _sync_before_renames(rows: Sequence[Row], folder: str) -> Iterator[Row]:
    """Sync each file before it is renamed."""
    for row in rows:
        if row["call"].startswith("rename") and not row["error"] and str(row["path"]).startswith(f"{folder}/"):
            yield _sync(row, row["path"], row["file"])
        yield row


def _sync_writes(rows: Sequence[Row], folder: str) -> Iterator[Row]:
    """Sync written files before each acknowledgement."""
    written = dict[int, str]()
    for row in rows:
        if row["flags"] & schema.PRINTED:
            yield from (_sync(row, path, file) for file, path in written.items())
            written.clear()
        elif row["call"] in schema.WRITES and row["kind"] == "file" and str(row["path"]).startswith(f"{folder}/"):
            written[row["file"]] = row["path"]
        yield row


def _sync_all(rows: Sequence[Row], folder: str) -> Iterator[Row]:
    """Sync everything before each acknowledgement."""
    for row in rows:
        if row["flags"] & schema.PRINTED:
            yield _sync(row, None, -1, "sync")
        yield row


def _sync_each_write(rows: Sequence[Row], folder: str) -> Iterator[Row]:
    """Sync each written file after each write to it, and everything before each acknowledgement."""
    for row in _sync_all(rows, folder):
        yield row
        if row["call"] in schema.WRITES and row["kind"] == "file" and str(row["path"]).startswith(f"{folder}/"):
            yield _sync(row, row["path"], row["file"])


#: Syncs that may mend a store, the simplest first: what they are, and a function that gives calls with them.
MENDS: Mapping[str, Callable[[Sequence[Row], str], Iterator[Row]]] = {
    "fsync of the folder after each change of names in it": _sync_names,
    "fsync of each file before it is renamed": _sync_before_renames,
    "fsync of each file before it is renamed, and of the folder after it": lambda rows, folder: _sync_names(
        list(_sync_before_renames(rows, folder)), folder
    ),
    "fsync of each written file before the acknowledgement": _sync_writes,
    "fsync of each written file and its folder before the acknowledgement": _sync_all,
    "the same, and fsync after each write": _sync_each_write,
}
