"""What power cuts leave of embedded stores: a small workload each, the images that cuts leave of it, and syncs that would mend it."""

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

from flashsim.apps.programs import embedded_stores, recorder
from flashsim.apps.programs.cutting import DriveRules, PowerCuts
from flashsim.apps.programs.embedded_stores import CLOSED, CLOSED_EMPTY, DAMAGED, LOST, TORN
from flashsim.apps.programs.images import snapshot
from flashsim.apps.programs.outcomes import CutReport
from flashsim.core.errors import FlashsimError
from flashsim.core.protocols import Progress
from flashsim.experiments.runs import kept
from traces.calls import schema
from traces.calls.schema import SCHEMA, Recording

#: Kinds of failure by the check's exit code.  A check that has no answer, as it takes too long, counts as a store that does not open.
KINDS = {LOST: "lost", CLOSED: "closed", TORN: "torn", DAMAGED: "damaged", CLOSED_EMPTY: "closed_empty"}
#: Promises that a failure breaks, if the setting has one of them; of a store that is being made documents say nothing.
BREAKS = {"lost": "durable", "closed": "opens", "torn": "atomic values", "damaged": "durable atomic values", "closed_empty": ""}
#: Seconds that a check may take, with the start of the process that it stays in.
_LIMIT = 60.0
#: Syncs that may mend a store, in words, and where `with_syncs` adds them; the simplest first.
MENDS = {
    "fsync of the folder after each change of names in it": {"names"},
    "fsync of what was written before each rename": {"renames"},
    "fsync of what was written before each rename, and of the folder after it": {"renames", "names"},
    "fsync of what was written before the commit returns": {"commits"},
    "fsync of what was written, and of its folder, before the commit returns": {"commits", "names"},
    "fsync after each write, and of the folder after each change of names": {"writes", "names"},
}
Row = dict[str, Any]


class SurveySettings(NamedTuple):
    """How stores are surveyed: the Python that has them, outcomes of each cut at most, and so on."""

    python: str
    outcomes: int
    seed: int
    jobs: int
    fresh: bool


def survey(names: Sequence[str], settings: SurveySettings, progress: Progress) -> Iterator[Row]:
    """A row for each setting of each store; results are kept, so that a survey that was interrupted goes on."""
    whole = [(name, each, setting) for name in names for each in [embedded_stores.store_of(name)] for setting in each.settings]
    versions = {name: _version(name, settings.python) for name in names}
    for count, (name, store, setting) in enumerate(whole):
        row: Row = {"store": name, "setting": setting, "source": store.source, **store.settings[setting]}
        row |= {"package": store.distribution or store.module, "version": versions[name]}
        what = {name: getattr(settings, name) for name in ("python", "outcomes", "seed")} | {"store": row}
        identity = kept.identity(what | kept.stamps([name]), __name__)
        result = None if settings.fresh else kept.recall(identity)
        if result is None and versions[name] is None:
            result = {"status": "not installed"}
        elif result is None:
            result = _try(name, store, setting, settings, _part_of(progress, count, len(whole), f"{name}, {setting}"))
            kept.keep(result, identity)
        yield row | result


def _part_of(progress: Progress, begin: int, whole: int, label: str) -> Progress:
    def say(done: float, total: float, message: str = "") -> None:
        progress(begin + done / max(1, total), whole, f"{label}: {message}")

    return say


def _command(action: str, name: str, python: str, setting: str = "") -> list[str]:
    return [python, "-B", embedded_stores.__file__, action, os.path.abspath(name) if name.endswith(".py") else name, setting]


def _version(name: str, python: str) -> str | None:
    """The version of a store's package; None where it cannot be imported."""
    answer = subprocess.run(_command("version", name, python), capture_output=True, text=True)
    return None if answer.returncode else answer.stdout.strip()


def _try(name: str, store: embedded_stores.EmbeddedStore, setting: str, settings: SurveySettings, progress: Progress) -> Row:
    begin, used = time.monotonic(), sum(os.times()[:4])
    with tempfile.TemporaryDirectory(prefix="flashsim-store-") as place:
        folder = Path(place, "files").resolve()
        folder.mkdir()
        try:
            with _output_to(Path(place, "printed"), Path(place, "errors")):
                recording = recorder.record(_command("run", name, settings.python, setting), contents=True, folder=folder, before={})
            if recording.facts["exit_code"]:
                return {"status": "not judged", "reason": (Path(place, "errors").read_text().splitlines() or ["the workload failed"])[-1]}
            check, before, after = f"exec {join(_command('serve', name, settings.python, setting))}", dict[str, bytes](), snapshot(folder)

            def cut(calls: Recording, outcomes: int, recipes: bool = False) -> CutReport:
                of = calls, folder, before, after, check, DriveRules(), outcomes, settings.seed, _LIMIT, store.exclude, True
                return PowerCuts(*of).run(progress, settings.jobs, recipes=recipes)

            row = StoreCuts(recording, folder, cut, settings.outcomes).row(store, setting)
        except FlashsimError as problem:
            return {"status": "not judged", "reason": str(problem).replace(str(folder), ".")}
    return row | {"seconds": round(time.monotonic() - begin, 1), "cpu_seconds": round(sum(os.times()[:4]) - used, 1)}


@contextmanager
def _output_to(*paths: Path) -> Iterator[None]:
    """Let programs that are started print to a file, and their errors to another."""
    own = [(number, os.dup(number)) for number, _ in enumerate(paths, 1)]
    try:
        for number, path in enumerate(paths, 1):
            with path.open("wb") as file:
                os.dup2(file.fileno(), number)
        yield
    finally:
        for number, descriptor in own:
            os.dup2(descriptor, number)
            os.close(descriptor)


class StoreCuts(NamedTuple):
    """Power cuts of one recorded workload, as it is or with syncs that it did not make."""

    recording: Recording
    folder: Path
    #: Cuts of a recording, with so many outcomes each at most, and perhaps with recipes of failures; and how many these are.
    cut: Callable[..., CutReport]
    outcomes: int

    def row(self, store: embedded_stores.EmbeddedStore, setting: str) -> Row:
        """What cuts leave: images that were tried and that fail, by kind, the smallest failure of each kind, and the sync that mends it.

        Failures that break no promise of a store that has promises are not mended: another setting is.
        """
        report = self.cut(self.recording, self.outcomes, recipes=True)
        smallest, number = {}, _count(report)
        for each in sorted(report.failures, key=lambda each: len(each.recipe), reverse=True):
            call, *recipe = (line.replace(f"{self.folder.parent}/printed", "standard output") for line in (each.call, *each.recipe))
            smallest[_kind(each.answer.code)] = {"cut": call, "recipe": recipe, "says": each.output.partition("\n")[0]}
        row: Row = {"status": "tried", "calls": report.calls, "outcomes": report.cuts, "images": report.images, "share": report.share}
        row |= {"is_complete": report.is_complete, "failing": number, "smallest": smallest, "missed": list(report.missed)}
        promises, is_silent = store.settings[setting]["promises"], not any(each["promises"] for each in store.settings.values())
        return row | {"mends": self.mends({kind for kind in number if is_silent or kind == "closed_empty" or is_broken(kind, promises)})}

    def mends(self, kinds: set[str]) -> dict[str, str]:
        """For each kind of failure the first of `MENDS` with which it does not occur, none for one that occurs with all."""
        mends = dict.fromkeys(kinds, "")
        for words, places in MENDS.items():
            rows = with_syncs(self.recording.table.to_pylist(), f"{self.folder}/", places)
            changed = replace(self.recording, table=pa.Table.from_pylist(list(rows), schema=SCHEMA))
            left = {kind for kind in kinds if not mends[kind]}
            for outcomes in (self.outcomes // 4, self.outcomes):  # most do not help, which few outcomes show
                left -= set(_count(self.cut(changed, outcomes))) if left and outcomes else set()
            mends |= dict.fromkeys(left, words)
        return mends


def _count(report: CutReport) -> dict[str, int]:
    """Images that fail, by kind of failure."""
    number = Counter[str]()
    for each in report.failures:
        number[_kind(each.answer.code)] += each.count
    return dict(number)


def is_broken(kind: str, promises: str) -> bool:
    """Whether a kind of failure breaks one of a setting's promises."""
    return not set(BREAKS[kind].split()).isdisjoint(promises.split())


def _kind(code: int) -> str:
    return KINDS.get(code, KINDS[CLOSED])


def with_syncs(rows: Sequence[Row], folder: str, places: set[str]) -> Iterator[Row]:
    """Calls with syncs that the program did not make, at places that `MENDS` names, of files below a folder."""
    written = dict[int, str]()
    for row in rows:
        call, is_inside = row["call"], row["kind"] == "file" and not row["error"] and str(row["other"] or row["path"]).startswith(folder)
        is_rename = is_inside and call.startswith(("rename", "link"))
        if ("commits" in places and row["flags"] & schema.PRINTED) or ("renames" in places and is_rename):
            yield from (_sync(row, path, file) for file, path in written.items())
            written.clear()
        yield row
        if is_inside and call in schema.WRITES:
            written[row["file"]] = row["path"]
            if "writes" in places:
                yield _sync(row, row["path"], row["file"])
        if "names" in places and is_inside and (is_rename or call.startswith(("unlink", "mkdir", "rmdir")) or row["flags"] & schema.CREATE):
            yield _sync(row, os.path.dirname(row["other"] or row["path"]), -1)


def _sync(like: Mapping[str, Any], path: str, file: int) -> Row:
    own = {"call": "fsync", "kind": "file", "file": file, "path": path, "flags": 0, "result": 0, "duration": 1}
    return dict.fromkeys(SCHEMA.names) | {name: like[name] for name in ("time", "process", "thread")} | own
