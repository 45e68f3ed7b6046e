"""One crash of one history: what survives, also as a file, the phases of recovery, and whether the database is as its clients know it.

A file can be recovered later, elsewhere, or without a guard.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

from algorithms.restart.base import check_guards, restart_design
from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, MissingFileError, in_one_line
from flashsim.core.input_files import read_text
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import WRITE
from flashsim.core.rng import generator
from flashsim.core.units import NEVER, format_duration
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.logging_design import History
from flashsim.execution.pooled.recovering import recover
from flashsim.execution.pooled.system import PURPOSES
from flashsim.experiments.crashing.histories import CHECKPOINTS, EXTENSIONS, CrashHistory
from flashsim.experiments.crashing.injection import EVENTS, MEMORY, problems
from flashsim.experiments.runs.outputs import write_json
from flashsim.storage.log.durable import LOG, Durable
from flashsim.storage.log.records import DIRTY, KINDS, Boot, Entry, Record, Version
from flashsim.storage.log.recovery import Phases, Recovery, RedoFailureError
from models.recovery_time import DeviceTimes, phase_time

_FORMAT = "flashsim crash 2"


@dataclass(frozen=True)
class Survival:
    """A crash before recovery."""

    history: CrashHistory
    #: Events before the crash, of how many in all, and when it came, ns.
    event: int
    events: int
    time: int
    outstanding: tuple[str, ...]
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


@dataclass(frozen=True)
class Crash:
    """A crash and the recovery from it."""

    survival: Survival
    #: What recovery did.
    work: Phases
    #: Nanoseconds of each phase, simulated and by formula.
    phases: Mapping[str, tuple[int, float]]
    #: Frames of the SSD that are in use again.
    warm: int
    wrong: tuple[str, ...]

    def title(self) -> str:
        survival, history = self.survival, self.survival.history
        return (
            f"{history.extension} with {history.restart}, {history.checkpoints} checkpoints, seed {history.seed}: "
            f"crash after event {survival.event} of {survival.events}, at {format_duration(survival.time)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row a phase of recovery: what it did, and nanoseconds by simulation and by formula."""
        work = self.work
        words = {
            "load": f"{work.entries_loaded} entries, {work.frames_verified} frames verified",
            "analysis": f"{work.records_scanned} records",
            "redo": f"{work.records_redone} records on {work.redo_reads} pages",
            "undo": f"{work.records_undone} records, {work.undo_reads} pages more",
        }
        return [
            {"phase": phase, "work": words[phase], "simulated_ns": simulated, "formula_ns": round(formula)}
            for phase, (simulated, formula) in self.phases.items()
        ]


def events_of(system: LoggedSpecification) -> int:
    """Events of a history until its clients have ended."""
    events = 0
    while events < EVENTS and system.env.peek() < NEVER and not system.is_idle:
        system.env.step()
        events += 1
    return events


def _events_and_log(history: CrashHistory, log_size: int | None) -> tuple[int, int]:
    system = history.build(log_size=log_size)
    return events_of(system), system.log.needed


def crash(history: CrashHistory, event: int | None = None, at: int | None = None, log_size: int | None = None) -> Survival:
    """Crash a history after an event or at a time, by default in its midst.

    Raises
    ------
    InvalidParameterError
        The event or the time is not within the history, or its log does not fit into `log_size`.
    """
    check_guards(restart_design(history.restart), history.without)
    if at is not None and at <= 0:
        raise InvalidParameterError("at", format_duration(at), "a crash comes after the start, which is at 0")
    events, needed = _events_and_log(history, log_size)
    if event is not None and not 1 <= event <= events:
        raise InvalidParameterError("event", event, f"the history has the events 1 to {events}")
    survival = _survival(history, events, event, at, log_size)
    if log_size is not None and (would_do := max(needed, _log_of_recovery(survival))) > log_size:
        more = 0
        while would_do > more:  # with another one the sectors that are left out at its end, and with them times, are others
            more = would_do
            events, needed = _events_and_log(history, more)
            would_do = max(needed, _log_of_recovery(_survival(history, events, event and min(event, events), at, more)))
        bound = f"records that recovery may need take more sectors in this history, with its own ones: a log of {more}B would do"
        raise InvalidParameterError("log-size", f"{log_size} B", bound)
    return survival


def _survival(history: CrashHistory, events: int, event: int | None, at: int | None, log_size: int | None) -> Survival:
    """Updates that survive a crash of a history with `events` events."""
    system, count = history.build(log_size=log_size), 0
    while count < (events if at is not None else event or events // 2) and (at is None or system.env.peek() <= at):
        system.env.step()
        count += 1
    if at is not None and (count == 0 or count == events):
        raise InvalidParameterError("at", format_duration(at), f"the history is over at {format_duration(int(system.env.now))}")
    outstanding = tuple(map(str, system.writes.outstanding.values()))
    survived, time = system.writes.crash(generator(history.seed, "crash")), int(system.env.now) if at is None else at
    return Survival(history, count, events, time, outstanding, survived, system.history)


def _log_of_recovery(survival: Survival) -> int:
    """Bytes of the log's device that recovery takes, with the records that it makes itself."""
    recovery, lengths = _recovery(survival.durable.copy(), survival.history), list[int]()
    with suppress(RedoFailureError):  # it is shown where the crash is
        lengths += (sum(record.length for _, record in write.items) for _, write in recovery.writes() if write.target == LOG)
    return survival.durable.room(lengths)


def _recovery(durable: Durable, history: CrashHistory) -> Recovery:
    return Recovery(durable, restart_design(history.restart), history.frames, MEMORY, history.without, history.image)


def recover_crash(survival: Survival, without: Sequence[str] = ()) -> Crash:
    """Recover from a crash on idle devices, also without some guards more, and hold the database against what its clients know."""
    history = replace(survival.history, without=(*survival.history.without, *without))
    check_guards(restart_design(history.restart), history.without)
    recovery, phases = _recovery(survival.durable.copy(), history), dict[str, tuple[int, float]]()
    by_name = {PURPOSES[each]: DeviceTimes(one.read, one.write, one.servers) for each, one in history.stations().items()}
    try:
        for phase, (simulated, work) in recover(recovery, history.parts()[0], history.devices()).items():
            named = {(PURPOSES[each], operation == WRITE, at_once): count for (each, operation, at_once), count in work.items()}
            phases[phase] = simulated, phase_time(named, by_name)
        wrong = problems(recovery, survival.known, history.pages)
    except RedoFailureError as problem:
        wrong = [str(problem)]
    return Crash(survival, recovery.phases, phases, len(recovery.entries), tuple(wrong))


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
        raise DamagedFileError(f"saved: {path} is damaged or not a saved crash: it is not JSON") from problem
    if not isinstance(file, dict) or file.get("format") != _FORMAT:
        raise DamagedFileError(f"saved: {path} is not a saved crash ({_FORMAT})")
    if _digest(file.get("state")) != file.get("sha256"):
        raise DamagedFileError(f"saved: {path} is damaged: its digest is another")
    try:
        return _survival_of(file["state"])
    except FlashsimError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        raise DamagedFileError(f"saved: {path} is damaged: {in_one_line(problem)}") from problem


def _survival_of(body: dict[str, Any]) -> Survival:
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
        raise ValueError(f"{value!r:.40} is not a number from {least} to {most}")
    return value


def _of(kind: type, words: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r:.40} is not {words}")
    return value


_flag, _text = partial(_of, bool, "true or false"), partial(_of, str, "a text")
