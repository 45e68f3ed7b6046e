"""One crash of one history: what survives, the phases of recovery, and whether the database is as its clients know it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from algorithms.restart.base import check_guards, restart_design
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import WRITE
from flashsim.core.rng import generator
from flashsim.core.units import NEVER, format_duration
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.recovering import recover
from flashsim.execution.pooled.system import PURPOSES
from flashsim.storage.log.durable import LOG, Durable
from flashsim.storage.log.recovery import Phases, Recovery, RedoFailureError
from flashsim.studies.crashing.histories import CrashHistory, drawn_history
from flashsim.studies.crashing.injection import EVENTS, MEMORY, problems
from flashsim.studies.crashing.saved import Survival
from models.recovery_time import DeviceTimes, phase_time


@dataclass(frozen=True)
class Crash:
    """A crash and the recovery from it."""

    #: The crash, and what survived.
    survival: Survival
    #: What recovery did.
    work: Phases
    #: Nanoseconds of each phase, simulated and by formula.
    phases: Mapping[str, tuple[int, float]]
    #: Frames of the SSD that are in use again.
    warm: int
    #: What is wrong.
    wrong: tuple[str, ...]

    def title(self) -> str:
        """The crash in a line."""
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
    """Events of a history, and bytes of the log that it needs."""
    system = history.build(log_size=log_size)
    return events_of(system), system.log.needed


def crash(
    restart: str,
    seed: int,
    without: Sequence[str],
    extension: str | None,
    checkpoints: str | None,
    event: int | None,
    at: int | None,
    log_size: int | None = None,
) -> Survival:
    """Crash a drawn history after an event or at a time, by default in its midst.

    Raises
    ------
    InvalidParameterError
        The event or the time is not within the history, or its log does not fit into `log_size`.
    """
    check_guards(restart_design(restart), without)
    if at is not None and at <= 0:
        raise InvalidParameterError("at", format_duration(at), "a crash comes after the start, which is at 0")
    history = drawn_history(seed, restart, without, extension, checkpoints)
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


def recovered(survival: Survival, without: Sequence[str] = ()) -> Crash:
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
