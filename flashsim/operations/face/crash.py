"""``flashsim pool crash`` and ``fs.crash``: a database with an SSD crashes, recovers, and is held against what its clients know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pandas as pd

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError
from flashsim.core.replacement import FIRST_PAGE
from flashsim.operations import fields
from flashsim.operations.fields import Count, Duration, Field, Flag, Name, Names
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Outcome
from flashsim.studies.crashing import injection, single
from flashsim.studies.crashing.histories import CHECKPOINTS, EXTENSIONS
from flashsim.studies.presentation.terminal import Explanation, Part


class CrashOutcome(Outcome):
    """One crash: what survived it, and the phases of recovery."""

    def __init__(self, crash: single.Crash) -> None:
        super().__init__(crash)
        self.status = int(bool(crash.wrong))

    def log(self) -> pd.DataFrame:
        """A row a record of the log that survived."""
        return pd.DataFrame(self.result.log(), columns=["lsn", "record"])

    def frames(self) -> pd.DataFrame:
        """A row a frame of the SSD: what the frame table's file says, and what the frame holds."""
        return pd.DataFrame(self.result.frames())

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        crash = self.result
        return {
            "event": crash.event,
            "events": crash.events,
            "time_ns": crash.time,
            "outstanding": list(crash.outstanding),
            "log": crash.log(),
            "frames": crash.frames(),
            "phases": crash.rows(),
            "warm": crash.warm,
            "violations": list(crash.wrong),
        }

    def printout(self) -> Iterator[Part]:
        """The log and frames that survived, phases of recovery, and the verdict."""
        crash, boot = self.result, self.result.durable.boot
        yield from (self.title, f"Outstanding writes: {'; '.join(crash.outstanding) or 'none'}", "")
        yield from ("The log that survived", self.log(), "", "Frames: the table's file, and what they hold", self.frames(), "")
        yield f"Recovery: checkpoint begun at record {boot.begin}, oldest change that the disk may lack {boot.oldest_dirty}"
        yield from (self.summary(), "", f"Frames in use again: {crash.warm}; pages written by recovery: {crash.work.pages_written}")
        yield from crash.wrong or ["Every committed update is there, and no other."]


class InjectionOutcome(Outcome):
    """Crashes after every event of drawn histories."""

    def __init__(self, report: injection.CrashReport) -> None:
        without = f" without {', '.join(report.without)}" if report.without else ""
        violated = "a violation" if report.violations else "no violation"
        super().__init__(report, f"{report.restart}{without}: {violated} in {report.points:,} crash points of {report.histories} histories")
        self.status = int(bool(report.violations))

    def summary(self) -> pd.DataFrame:
        """A row: histories, crash points, of these in recovery, frames that were warm, violations."""
        report = self.result
        row = {"histories": report.histories, "points": report.points, "in_recovery": report.in_recovery}
        return pd.DataFrame([row | {"warm_frames": report.kept, "violations": len(report.violations)}])

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        report = self.result
        row: dict[str, Any] = {str(key): value for key, value in self.summary().to_dict("records")[0].items()}
        return row | {
            "restart": report.restart,
            "without": list(report.without),
            "violations": len(report.violations),
            "failures": [violation.as_dict() for violation in report.violations],
        }

    def printout(self) -> Iterator[Part]:
        """The counts, and the shortest history that fails."""
        yield from (self.title, f"How long: {self.result.seconds:.0f} s", "", self.summary())
        for violation in self.result.violations:
            history = violation.history
            yield from ("", f"The shortest history: {history.extension}, {history.checkpoints} checkpoints, seed {history.seed}")
            for number, transaction in enumerate(history.transactions, 1):
                references = [f"{'writes' if writes else 'reads'} page {page + FIRST_PAGE}" for page, writes in transaction]
                yield f"  transaction {number}: {', '.join(references)}"
            yield f"Crash after event {violation.event}; outstanding then, and in recovery:"
            yield from map("  {}".format, violation.outstanding)
            yield from ("The log that survived:", *map("  {}".format, violation.log))
            yield from ("Wrong after recovery:", *map("  {}".format, violation.problems))
        yield Explanation("A crash point is an event, an outcome of the writes outstanding then, and perhaps a write of recovery.")


@operation
def crash(
    *,
    restart: Annotated[str, Name("The restart design: {restarts}; or a Python file.", "NAME|FILE.py", completes=("restarts",))] = "lvr",
    design: Annotated[
        str | None,
        Field(f"The pool's extension: {', '.join(EXTENSIONS)}; by turns unless said.", "DESIGN", fields.choice(*EXTENSIONS)),
    ] = None,
    checkpoints: Annotated[
        str | None, Field(f"Of {', '.join(CHECKPOINTS)}; by turns unless said.", "KIND", fields.choice(*CHECKPOINTS))
    ] = None,
    event: Annotated[int | None, Count("Crash after so many events.")] = None,
    at: Annotated[Any, Duration("Crash at this virtual time.")] = None,
    exhaustive: Annotated[bool, Flag("Crash after every event of many histories, and of the recoveries that follow.")] = False,
    lose_ssd: Annotated[bool, Flag("The SSD is lost in every crash of an exhaustive search, and with it what no disk has.")] = False,
    histories: Annotated[int, Count("Histories of an exhaustive search.")] = 50,
    without: Annotated[Any, Names("A guard that is switched off. Several may be given.", "GUARD")] = None,
    seed: fields.Seed = 0,
) -> CrashOutcome | InjectionOutcome:
    """Crash a small database whose SSD is warm after a restart, recover it, and hold it against what its clients know.

    The system, its devices and its transactions are drawn under the seed. The exit code is 1 if a committed update is missing afterwards,
    or one is there that was never committed.

    Examples::

        flashsim pool crash --restart mmr --seed 4
        flashsim pool crash --restart lbr --seed 5 --event 120 --json crash.json
        flashsim pool crash --restart lvr --exhaustive --histories 10
        flashsim pool crash --restart mmr --exhaustive --histories 10 --without harden-replacement

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.crash(restart="lvr", seed=3).status
    0
    >>> fs.crash(restart="mmr", exhaustive=True, histories=4, without="harden-replacement").summary().violations.tolist()
    [1]
    """
    guards = list(without or [])
    if not exhaustive:
        if lose_ssd:
            raise InvalidParameterError("lose_ssd", True, "an exhaustive search is needed")
        if event is not None and at is not None:
            raise InvalidParameterError("at", "a time", "an event is given already")
        return CrashOutcome(single.crash(restart, seed, guards, design, checkpoints, event, at))
    if event is not None or at is not None:
        raise InvalidParameterError("event" if at is None else "at", "a crash point", "an exhaustive search tries all of them")
    with activity("crashes") as progress:
        return InjectionOutcome(injection.exhaustive(restart, histories, seed, guards, progress, design, checkpoints, loses_ssd=lose_ssd))
