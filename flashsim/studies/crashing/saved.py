"""A state that survived a crash as a file, to be recovered later, elsewhere, or without a guard."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

from flashsim.core.errors import DamagedFileError, FlashsimError, MissingFileError, in_one_line
from flashsim.core.input_files import read_text
from flashsim.core.replacement import FIRST_PAGE
from flashsim.execution.pooled.logging_design import History
from flashsim.storage.log.durable import Durable
from flashsim.storage.log.records import DIRTY, KINDS, Boot, Entry, Record, Version
from flashsim.studies.crashing.histories import CHECKPOINTS, EXTENSIONS, CrashHistory
from flashsim.studies.runs.outputs import write_json

_FORMAT = "flashsim crash 2"


@dataclass(frozen=True)
class Survival:
    """A crash before recovery."""

    history: CrashHistory
    #: Events before the crash, of how many in all, and when it came, ns.
    event: int
    events: int
    time: int
    #: Writes that were outstanding.
    outstanding: tuple[str, ...]
    #: What survived.
    durable: Durable
    #: What clients know of their transactions.
    known: History

    def save(self, path: Path) -> None:
        """Write a file that `load` reads."""
        durable, known = self.durable, self.known
        body: dict[str, Any] = {"history": asdict(self.history), "event": [self.event, self.events, self.time]}
        body |= {"outstanding": self.outstanding, "rows": durable.rows}
        body |= {name: sorted(getattr(durable, name).items()) for name in ("disk", "ssd", "table")}
        body["log"] = [(lsn, asdict(record)) for lsn, record in sorted(durable.log.items())]
        body |= {"boot": durable.boot, "first": durable.first, "tears": durable.tears}
        body["committed"] = [(*key, value) for key, value in sorted(known.committed.items())]
        body["committing"] = [(client, sorted(values.items())) for client, values in sorted(known.committing.items())]
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
        file = json.loads(read_text(path))
    except OSError as problem:
        raise MissingFileError(f"saved: cannot read {path}: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise DamagedFileError(f"saved: {path} is damaged, or no saved crash: it is no JSON") from problem
    if not isinstance(file, dict) or file.get("format") != _FORMAT:
        raise DamagedFileError(f"saved: {path} is no saved crash ({_FORMAT})")
    if _digest(file.get("state")) != file.get("sha256"):
        raise DamagedFileError(f"saved: {path} is damaged: its digest is another")
    try:
        return _survival(file["state"])
    except FlashsimError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        raise DamagedFileError(f"saved: {path} is damaged: {in_one_line(problem)}") from problem


def _survival(body: dict[str, Any]) -> Survival:
    drawn = body["history"]
    transactions = tuple(tuple((page, writes) for page, writes in each) for each in drawn["transactions"])
    history = CrashHistory(**drawn | {"transactions": transactions, "without": tuple(drawn["without"])})
    _check_history(history)
    event, events, time = map(_count, body["event"])
    outstanding = tuple(map(_text, body["outstanding"]))
    clients, last = history.parts()[0].clients, FIRST_PAGE + history.pages - 1
    row, page, frame = partial(_count, most=clients - 1), partial(_count, most=last), partial(_count, most=history.frames - 1)
    if body["rows"] != clients:
        raise ValueError(f"rows: {body['rows']!r:.40}, but the history has {clients} clients")

    def version(each: Any) -> Version:
        number, lsn, rows, is_torn = each
        if len(rows) != clients:
            raise ValueError(f"a page has {len(rows)} rows, and there are {clients} clients")
        return Version(page(number), _count(lsn), tuple(map(_count, rows)), _flag(is_torn))

    def entry(each: Any) -> Entry:
        state, number, lsn, hardened = each
        return Entry(_count(state, most=DIRTY), page(number), _count(lsn), _count(hardened))

    def record(lsn: int, each: dict[str, Any]) -> Record:
        made = Record(**each | {name: tuple(each[name]) for name in ("entries", "active", "rows")})
        _count(made.kind, most=len(KINDS) - 1), page(made.page), row(made.row), frame(made.frame + max(0, len(made.entries) - 1))
        for number in (made.chain, made.previous, made.lsn):
            _count(number, most=lsn - 1)
        for number in (made.transaction, made.before, made.after, made.frame, made.image, *made.rows):
            _count(number)
        if len(made.rows) not in (0, clients) or (made.image and not made.rows):
            raise ValueError(f"record {lsn} has {len(made.rows)} rows, and there are {clients} clients")
        active = tuple((_count(number), _count(begin, most=lsn - 1), _count(end, most=lsn - 1)) for number, begin, end in made.active)
        return replace(made, entries=tuple(map(entry, made.entries)), active=active)

    first, behind = _count(body["first"], 1), _count(body["first"], 1) + len(body["log"])
    if [lsn for lsn, _ in body["log"]] != list(range(first, behind)):
        raise ValueError(f"the records are not those from {first} on, one after the other")
    begin, dirty, transaction, is_shut_down = body["boot"]
    boot = Boot(_count(begin, 1, behind), _count(dirty, 1, behind), _count(transaction, 1, behind), _flag(is_shut_down))
    durable = Durable(
        clients,
        {page(number, FIRST_PAGE): version(each) for number, each in body["disk"]},
        {frame(number): version(each) for number, each in body["ssd"]},
        {frame(number): entry(each) for number, each in body["table"]},
        {_count(lsn): record(lsn, each) for lsn, each in body["log"]},
        boot,
        first,
        _flag(body["tears"]),
    )
    committed = {(page(number, FIRST_PAGE), row(client)): _count(value) for number, client, value in body["committed"]}
    committing = {row(client): {page(number, FIRST_PAGE): _count(value) for number, value in each} for client, each in body["committing"]}
    return Survival(history, event, events, time, outstanding, durable, History(committed, committing))


def _check_history(history: CrashHistory) -> None:
    if history.extension not in EXTENSIONS or history.checkpoints not in CHECKPOINTS:
        raise ValueError(f"no history has {history.extension!r:.40} and {history.checkpoints!r:.40} checkpoints")
    _count(history.seed), _flag(history.tears), _text(history.restart), [_text(each) for each in history.without]
    for page, writes in chain.from_iterable(history.transactions):
        _count(page, most=history.pages - 1), _flag(writes)


def _count(value: Any, least: int = 0, most: float = inf) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r:.40} stands in the place of a number of {least} to {most}")
    return value


def _of(kind: type, words: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r:.40} stands in the place of {words}")
    return value


_flag, _text = partial(_of, bool, "true or false"), partial(_of, str, "a text")
