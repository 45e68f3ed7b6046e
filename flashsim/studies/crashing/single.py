"""One crash of one history: what survives, the phases of recovery, and whether the database is as its clients know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from algorithms.restart.base import check_guards, restart_design
from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator
from flashsim.core.units import NEVER, format_duration
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.storage.log.durable import Durable, Write
from flashsim.storage.log.records import STATES
from flashsim.storage.log.recovery import Phases, Recovery, RedoFailureError
from flashsim.studies.crashing.histories import CrashHistory, drawn_history
from flashsim.studies.crashing.injection import EVENTS, MEMORY, problems


@dataclass(frozen=True)
class Crash:
    """A crash and the recovery from it.

    Parameters
    ----------
    event, events, time
        Events before the crash, of how many in all, and when it came, ns.
    outstanding
        Writes that were outstanding.
    durable
        What survived.
    phases
        Work of recovery.
    writes
        Writes of recovery.
    warm
        Frames of the SSD that are in use again.
    wrong
        What is wrong.
    """

    history: CrashHistory
    event: int
    events: int
    time: int
    outstanding: tuple[str, ...]
    durable: Durable
    phases: Phases
    writes: tuple[Write, ...]
    warm: int
    wrong: tuple[str, ...]

    def title(self) -> str:
        """The crash in a line."""
        history = self.history
        return (
            f"{history.extension} with {history.restart}, {history.checkpoints} checkpoints, seed {history.seed}: "
            f"crash after event {self.event} of {self.events}, at {format_duration(self.time)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row a phase of recovery and kind of work."""
        work = asdict(self.phases)
        phases = {
            "load": {"entries": "entries_loaded", "frames verified": "frames_verified"},
            "analysis": {"records scanned": "records_scanned"},
            "redo": {"pages read": "redo_reads", "records redone": "records_redone"},
            "undo": {"pages read": "undo_reads", "records undone": "records_undone"},
        }
        rows = []
        for phase, kinds in phases.items():
            for words, name in kinds.items():
                value = work[name]
                rows.append({"phase": phase, "work": words, "count": sum(value.values()) if isinstance(value, dict) else value})
        return rows

    def log(self) -> list[dict[str, Any]]:
        """A row a record that survived."""
        return [{"lsn": lsn, "record": str(record)} for lsn, record in sorted(self.durable.log.items())]

    def frames(self) -> list[dict[str, Any]]:
        """A row a frame: what the frame table's file says, and what the frame holds."""
        rows = []
        for frame in range(self.history.frames):
            entry, version = self.durable.entry(frame), self.durable.in_frame(frame)
            rows.append(
                {"frame": frame, "state": STATES[entry.state], "page": entry.page, "lsn": entry.lsn, "holds": version.page}
                | {"at": version.lsn, "torn": version.is_torn}
            )
        return rows


def events_of(system: LoggedSpecification) -> int:
    """Events of a history until its clients have ended."""
    events = 0
    while events < EVENTS and system.env.peek() < NEVER and not system.is_idle:
        system.env.step()
        events += 1
    return events


def crash(
    restart: str, seed: int, without: Sequence[str], extension: str | None, checkpoints: str | None, event: int | None, at: int | None
) -> Crash:
    """Crash a drawn history after an event or at a time, by default in its midst, and recover.

    Raises
    ------
    InvalidParameterError
        The event or the time is not within the history.
    """
    check_guards(restart_design(restart), without)
    if at is not None and at <= 0:
        raise InvalidParameterError("at", format_duration(at), "a crash comes after the start, which is at 0")
    history = drawn_history(seed, restart, without, extension, checkpoints)
    events, system, count = events_of(history.build()), history.build(), 0
    if event is not None and not 1 <= event <= events:
        raise InvalidParameterError("event", event, f"the history has the events 1 to {events}")
    while count < (events if at is not None else event or events // 2) and (at is None or system.env.peek() <= at):
        system.env.step()
        count += 1
    if at is not None and (count == 0 or count == events):
        raise InvalidParameterError("at", format_duration(at), f"the history is over at {format_duration(int(system.env.now))}")
    outstanding = tuple(map(str, system.outstanding.values()))
    survived = system.crash(generator(seed, "crash"))
    recovery = Recovery(survived.copy(), restart_design(restart), history.frames, MEMORY, history.without)
    writes = list[Write]()
    try:
        for write in recovery.run():
            recovery.durable.apply(write)
            writes.append(write)
        wrong = problems(recovery, system.history, history.pages)
    except RedoFailureError as problem:
        wrong = [str(problem)]
    time = int(system.env.now) if at is None else at
    return Crash(history, count, events, time, outstanding, survived, recovery.phases, tuple(writes), len(recovery.entries), tuple(wrong))
