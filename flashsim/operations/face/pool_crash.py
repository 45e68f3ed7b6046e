"""``flashsim pool crash`` and ``fs.pool_crash``: a database with an SSD crashes, recovers, and is held against what its clients know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.units import format_size
from flashsim.device.scaling import small_drive
from flashsim.execution.pooled.system import DISK, LOG, SSD
from flashsim.experiments.crashing import injection, single
from flashsim.experiments.crashing.drives import DrivePowerCuts
from flashsim.experiments.crashing.histories import CHECKPOINTS, EXTENSIONS, drawn_history
from flashsim.experiments.crashing.single import load
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.operations import fields
from flashsim.operations.fields import Count, Duration, Field, Flag, Name, Names, Size
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Outcome
from flashsim.storage.log.records import STATES

_RESTART, _HISTORIES = "lvr", 50
#: Drives whose power is cut where only others are named.
DISK_PRESET, SSD_PRESET = "seagate-st3300655lc", "mtron-msd-sata3025-16gb"


class CrashOutcome(Outcome):
    """One crash: what survived it, and the phases of recovery."""

    def __init__(self, crash: single.Crash) -> None:
        super().__init__(crash)
        self.status = int(bool(crash.wrong))

    def log(self) -> pd.DataFrame:
        """A row a record of the log that survived."""
        records = sorted(self.result.survival.durable.log.items())
        return pd.DataFrame([(lsn, str(record)) for lsn, record in records], columns=["lsn", "record"])

    def frames(self) -> pd.DataFrame:
        """A row a frame of the SSD: what the frame table's file says, and what the frame holds."""
        rows, survival = [], self.result.survival
        for frame in range(survival.history.frames):
            entry, version = survival.durable.entry(frame), survival.durable.in_frame(frame)
            rows.append((frame, STATES[entry.state], entry.page, entry.lsn, version.page, version.lsn, version.is_torn))
        return pd.DataFrame(rows, columns=["frame", "state", "page", "lsn", "holds", "at", "torn"])

    def as_dict(self) -> dict[str, Any]:
        crash, survival = self.result, self.result.survival
        point = {"event": survival.event, "events": survival.events, "time_ns": survival.time, "outstanding": list(survival.outstanding)}
        point |= {"log": self.log().to_dict("records"), "frames": self.frames().to_dict("records")}
        return point | {"phases": crash.rows(), "warm": crash.warm, "violations": list(crash.wrong)}

    def printout(self) -> Iterator[Part]:
        crash, survival = self.result, self.result.survival
        boot = survival.durable.boot
        yield from (self.title, f"Outstanding writes: {'; '.join(survival.outstanding) or 'none'}", "")
        yield from ("The log that survived", self.log(), "", "Frames: the table's file, and what they hold", self.frames(), "")
        yield f"Recovery: checkpoint begun at record {boot.begin}, oldest change that the disk may lack {boot.oldest_dirty}"
        yield from (self.summary(), "", f"Frames in use again: {crash.warm}; pages written by recovery: {crash.work.pages_written}")
        yield from crash.wrong or ["Every committed update is there, and no other."]
        yield next_steps("--event N crashes at another event", "flashsim pool restart measures a restart")


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
        report, failures = self.result, [violation.as_dict() for violation in self.result.violations]
        document = {"restart": report.restart, "without": list(report.without), "failures": failures}
        return {str(key): value for key, value in self.summary().to_dict("records")[0].items()} | document

    def printout(self) -> Iterator[Part]:
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
def pool_crash(
    *,
    restart: Annotated[str, Name("Restart design: {restarts}; or a Python file.", "NAME|FILE.py", completes=("restarts",))] = _RESTART,
    design: Annotated[
        str | None,
        Field(f"Design of the SSD extension: {', '.join(EXTENSIONS)}; by default each in turn.", "DESIGN", fields.choice(*EXTENSIONS)),
    ] = None,
    checkpoints: Annotated[
        str | None, Field(f"Kind of checkpoints: {', '.join(CHECKPOINTS)}; by default each in turn.", "KIND", fields.choice(*CHECKPOINTS))
    ] = None,
    event: Annotated[int | None, Count("Crash after this number of events.")] = None,
    at: Annotated[Any, Duration("Crash at this virtual time.")] = None,
    exhaustive: Annotated[bool, Flag("Crash after every event of many histories and of the recoveries that follow.")] = False,
    lose_ssd: Annotated[bool, Flag("With --exhaustive: every crash destroys the SSD and all updates that only it holds.")] = False,
    torn_pages: Annotated[bool, Flag("With --exhaustive: a crash may tear disk pages, and log records contain page images.")] = False,
    disk: Annotated[str | None, Name("With --exhaustive: preset of the disk whose power is cut.", "PRESET", completes=("presets",))] = None,
    ssd_device: Annotated[
        str | None, Name("With --exhaustive: preset of the SSD whose power is cut.", "PRESET", completes=("presets",))
    ] = None,
    log: Annotated[
        str | None,
        Name("With --exhaustive: preset of the log drive whose power is cut; by default that of --disk.", "PRESET", completes=("presets",)),
    ] = None,
    log_size: Annotated[Any, Size("Size of the log; a size too small for recovery is refused, with one that suffices.")] = None,
    histories: Annotated[int | None, Count(f"With --exhaustive: number of histories; {_HISTORIES} by default.")] = None,
    save: Annotated[Any, fields.Target("Write the state that survived the crash to this file.", "FILE")] = None,
    saved: Annotated[
        str | None, Name("Recover from a file of --save, perhaps with --without; nothing else is drawn.", "FILE", reads=True)
    ] = None,
    force: fields.Force = False,
    without: Annotated[Any, Names("Guard that is disabled; may be repeated.", "GUARD")] = None,
    seed: fields.Seed = 0,
) -> CrashOutcome | InjectionOutcome:
    """Crash a small database and verify its recovery.

    The SSD extension stays warm across the restart; the recovered state is compared with the commits that clients know.

    The system, its devices and its transactions are drawn under the seed. The exit code is 1 if a committed update is missing afterwards,
    or one is there that was never committed. On drives of presets the power is cut after 16 drawn events of each history, and what
    survives is what the drives' models hold then.

    Examples::

        flashsim pool crash --restart mmr --seed 4
        flashsim pool crash --restart lbr --seed 5 --event 120 --json crash.json
        flashsim pool crash --restart lvr --seed 129 --save survived.json
        flashsim pool crash --saved survived.json --without page-id
        flashsim pool crash --restart lvr --exhaustive --histories 3
        flashsim pool crash --restart mmr --exhaustive --histories 3 --without harden-replacement
        flashsim pool crash --restart mmr --exhaustive --histories 3 --ssd-device mtron-msd-sata3025-16gb

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.pool_crash(restart="lvr", seed=3).status
    0
    >>> fs.pool_crash(restart="mmr", exhaustive=True, histories=4, without="harden-replacement").summary().violations.tolist()
    [1]
    """
    guards = list(without or [])
    if not exhaustive:
        searched = {"lose-ssd": lose_ssd or None, "torn-pages": torn_pages or None, "disk": disk, "ssd-device": ssd_device}
        for name, value in (searched | {"log": log, "histories": histories}).items():
            if value is not None:
                raise InvalidParameterError(name, value, "an exhaustive search is needed")
        if event is not None and at is not None:
            raise InvalidParameterError("at", "a time", "an event is given already")
        drawn = {"event": event, "at": at, "seed": seed or None, "restart": None if restart == _RESTART else restart}
        drawn |= {"design": design, "checkpoints": checkpoints, "log_size": log_size}
        for name, value in drawn.items() if saved else ():
            if value is not None:
                raise InvalidParameterError("saved", str(saved), f"the crash is over: {name} cannot be chosen")
        history = drawn_history(seed, restart, guards, design, checkpoints)
        survival = load(Path(saved)) if saved else single.crash(history, event, at, log_size)
        if save:
            survival.save(save)
        return CrashOutcome(single.recover_crash(survival, guards if saved else ()))
    if log_size is not None:
        raise InvalidParameterError("log-size", format_size(log_size), "an exhaustive search gives the log all that it needs")
    if saved or save:
        raise InvalidParameterError("saved" if saved else "save", str(saved or save), "an exhaustive search saves nothing")
    if event is not None or at is not None:
        raise InvalidParameterError("event" if at is None else "at", "a crash point", "an exhaustive search tries all of them")
    inject = injection.without_ssd if lose_ssd else injection.everywhere
    if disk or ssd_device or log:
        if lose_ssd:
            raise InvalidParameterError("lose-ssd", True, "drives keep what they hold in a power cut")
        disk = disk or DISK_PRESET
        inject = DrivePowerCuts({DISK: small_drive(disk), SSD: small_drive(ssd_device or SSD_PRESET), LOG: small_drive(log or disk)})
    count, kinds = histories or _HISTORIES, (design, checkpoints, torn_pages)
    with activity("crashes") as progress:
        return InjectionOutcome(injection.exhaustive(restart, count, seed, guards, progress, *kinds, inject=inject))
