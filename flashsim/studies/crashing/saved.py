"""What survived a crash as a file, to be recovered later, elsewhere, or without a guard."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flashsim.core.errors import DamagedFileError, MissingFileError
from flashsim.execution.pooled.logging_design import History
from flashsim.storage.log.durable import Durable
from flashsim.storage.log.records import Boot, Entry, Record, Version
from flashsim.studies.crashing.histories import CrashHistory
from flashsim.studies.runs.outputs import write_json

_FORMAT = "flashsim crash 1"


@dataclass(frozen=True)
class Survival:
    """A crash before recovery.

    Parameters
    ----------
    event, events, time
        Events before the crash, of how many in all, and when it came, ns.
    outstanding
        Writes that were outstanding.
    durable
        What survived.
    known
        What clients know of their transactions.
    """

    history: CrashHistory
    event: int
    events: int
    time: int
    outstanding: tuple[str, ...]
    durable: Durable
    known: History

    def save(self, path: Path) -> None:
        """Write a file that `load` reads."""
        durable, known = self.durable, self.known
        body = {
            "history": asdict(self.history),
            "event": [self.event, self.events, self.time],
            "outstanding": self.outstanding,
            "rows": durable.rows,
            "disk": sorted(durable.disk.items()),
            "ssd": sorted(durable.ssd.items()),
            "table": sorted(durable.table.items()),
            "log": [(lsn, asdict(record)) for lsn, record in sorted(durable.log.items())],
            "boot": durable.boot,
            "first": durable.first,
            "tears": durable.tears,
            "committed": [(*key, value) for key, value in sorted(known.committed.items())],
            "committing": [(client, sorted(values.items())) for client, values in sorted(known.committing.items())],
        }
        write_json(path, {"format": _FORMAT, "sha256": _digest(body), "state": body})


def _digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def load(path: Path) -> Survival:
    """The crash that a file holds.

    Raises
    ------
    MissingFileError, DamagedFileError
        The file cannot be read, is no saved crash, or has been changed.
    """
    try:
        file = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise MissingFileError(f"saved: cannot read {path}: {problem.strerror}") from problem
    except ValueError as problem:
        raise DamagedFileError(f"saved: {path} is damaged, or no saved crash: it is no JSON") from problem
    if not isinstance(file, dict) or file.get("format") != _FORMAT:
        raise DamagedFileError(f"saved: {path} is no saved crash ({_FORMAT})")
    if _digest(file.get("state")) != file.get("sha256"):
        raise DamagedFileError(f"saved: {path} is damaged: its digest is another")
    try:
        return _survival(file["state"])
    except (KeyError, TypeError, ValueError) as problem:
        raise DamagedFileError(f"saved: {path} is damaged: {problem}") from problem


def _survival(body: dict[str, Any]) -> Survival:
    history = body["history"]
    history["transactions"] = tuple(tuple((page, writes) for page, writes in each) for each in history["transactions"])
    history["without"] = tuple(history["without"])
    durable = Durable(
        body["rows"],
        {page: _version(row) for page, row in body["disk"]},
        {frame: _version(row) for frame, row in body["ssd"]},
        {frame: Entry(*row) for frame, row in body["table"]},
        {lsn: _record(row) for lsn, row in body["log"]},
        Boot(*body["boot"]),
        body["first"],
        body["tears"],
    )
    committed = {(page, row): value for page, row, value in body["committed"]}
    known = History(committed, {client: dict(values) for client, values in body["committing"]})
    event, events, time = body["event"]
    return Survival(CrashHistory(**history), event, events, time, tuple(body["outstanding"]), durable, known)


def _version(row: list[Any]) -> Version:
    page, lsn, rows, is_torn = row
    return Version(page, lsn, tuple(rows), is_torn)


def _record(row: dict[str, Any]) -> Record:
    entries, active = (tuple(kind(*each) for each in row[name]) for name, kind in (("entries", Entry), ("active", lambda *each: each)))
    return Record(**row | {"entries": entries, "active": active, "rows": tuple(row["rows"])})
