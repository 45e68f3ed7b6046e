"""Crashes after every event, and every write of the recoveries that follow; what guards prevent; an oracle that knows only the history."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from algorithms.restart.base import check_guards, restart_design
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.rng import generator
from flashsim.core.units import NEVER
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.logging_design import History
from flashsim.experiments.crashing.histories import CrashHistory, drawn_history
from flashsim.storage.log import durable as survives
from flashsim.storage.log.durable import Durable, DurableWrite
from flashsim.storage.log.records import DIRTY, FREE
from flashsim.storage.log.recovery import Recovery, RedoFailureError, RestartDesign

#: Events of a history at most, outcomes of its outstanding writes that are tried at each, and how often recovery is crashed as well: at one
#: crash point in so many.
EVENTS, _OUTCOMES, _NESTED = 6000, 2, 10
#: Pages that memory holds in recovery: few, so that redo writes pages.
MEMORY = 3


@dataclass(frozen=True)
class Violation:
    """A crash point that loses or resurrects data."""

    history: CrashHistory
    #: Events before the crash.
    event: int
    #: Writes that were outstanding, in words, and of recovery's own.
    outstanding: tuple[str, ...]
    problems: tuple[str, ...]
    log: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        history = {"seed": self.history.seed, "extension": self.history.extension, "checkpoints": self.history.checkpoints}
        history |= {"transactions": [[list(each) for each in one] for one in self.history.transactions]}
        return {"history": history, "event": self.event, "outstanding": self.outstanding, "problems": self.problems, "log": self.log}


@dataclass
class CrashReport:
    """Results of crash injection."""

    restart: str
    without: tuple[str, ...]
    histories: int = 0
    #: Crash points, those in recovery included.
    points: int = 0
    in_recovery: int = 0
    #: Frames of the SSD that recoveries found warm.
    kept: int = 0
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0


def problems(recovery: Recovery, history: History, pages: int) -> list[str]:
    """Violations in a recovered database, by what its clients know.

    Every committed update must be there and no other; what counts as on disk must be there as well.
    """
    wrong, rows = list[str](), dict[tuple[int, int], int]()
    every = range(FIRST_PAGE, FIRST_PAGE + pages)
    for page in every:
        version, frame = recovery.newest(page), recovery.frame_of.get(page)
        if version.page != page or version.is_torn:
            wrong.append(f"page {page}: its reader gets {'a torn page' if version.is_torn else f'page {version.page}'}")
            continue
        rows |= {(page, row): value for row, value in enumerate(version.rows)}
        is_newer = page in recovery.changed or (frame is not None and recovery.entries[frame].state == DIRTY)
        if not is_newer and (disk := recovery.durable.on_disk(page)).rows != version.rows:
            wrong.append(f"page {page}: the disk has {disk.rows} and counts as having {version.rows}")
    for client in range(recovery.durable.rows):
        expected = {page: history.committed.get((page, client), 0) for page in every}
        there = {page: rows.get((page, client)) for page in every}
        lost = [f"page {page} has {there[page]}, not {value}" for page, value in expected.items() if there[page] != value]
        if lost and there != expected | history.committing.get(client, {}):
            wrong.append(f"client {client}: {', '.join(lost)}")
    return wrong


class Injection:
    """Crashes of one history.

    Recovery is crashed as well, `depth` times, and the system goes on after a crash `restarts` times.  With `loses_ssd` the SSD is lost in
    every crash: recovery then has an empty one.
    """

    def __init__(self, history: CrashHistory, report: CrashReport, depth: int = 2, restarts: int = 2, loses_ssd: bool = False) -> None:
        self.history, self.report, self.depth, self.restarts, self.loses_ssd = history, report, depth, restarts, loses_ssd
        self.draw = generator(history.seed, "crashes")
        self.design: RestartDesign = restart_design("none" if loses_ssd else history.restart)

    def points(self, system: LoggedSpecification, stops: int | None = None) -> Iterator[tuple[int, list[str], Durable]]:
        """Every event after which something else would survive than before; a shutdown begins after `stops` transactions.

        What may survive is the state without any of the outstanding writes, and with some of them, drawn.
        """
        before = None
        for event in range(1, EVENTS + 1):
            if system.env.peek() == NEVER or system.is_down or (system.is_idle and stops is None):
                return
            system.env.step()
            if stops is not None and (system.counts["transactions"] >= stops or system.is_idle):
                system.shut_down()
            if system.state_number == before:
                continue
            before, outstanding = system.state_number, list(system.writes.outstanding.values())
            for number in range(_OUTCOMES if outstanding else 1):
                words = [f"{write} ({'lost' if number == 0 else 'perhaps done'})" for write in outstanding]
                durable = system.writes.crash(self.draw if number else None)
                if self.loses_ssd:
                    durable.ssd.clear()
                    durable.table.clear()
                yield event, words, durable

    def run(self) -> Violation | None:
        """All of them, up to the first one that is violated; after one that is drawn the system goes on, and crashes again, and so on.

        One history in three is shut down at first, and goes on from that.
        """
        system, done, path = self.history.build(), 0, list[str]()
        for restart in range(self.restarts + 1):
            stops = len(self.history.transactions) // 2 if restart == 0 and self.history.seed % 3 == 2 else None
            kept = None
            for number, (event, words, durable) in enumerate(self.points(system, stops)):
                nested = self.depth if self.draw.integers(_NESTED) == 0 else 0
                log = dict(durable.log)  # recovery adds to it
                if self.draw.integers(number + 1) == 0 or system.is_down:
                    kept = event, durable.copy(), done + system.counts["transactions"]
                if failure := self._recover(durable, system.history, nested):
                    records = tuple(f"{lsn}: {record}" for lsn, record in sorted(log.items()))
                    return Violation(self.history, event, (*path, *words, *failure[0]), tuple(failure[1]), records)
            if kept is None:
                return None
            event, durable, done = kept
            recovery = self.recovery(durable)
            for _ in recovery.writes():
                pass
            path.append(f"crash after event {event}, recovery, and {len(self.history.transactions) - done} transactions left")
            system = self.history.build(recovery, done)
        return None

    def recovery(self, durable: Durable) -> Recovery:
        return Recovery(durable, self.design, self.history.frames, MEMORY, self.history.without, self.history.image)

    def _recover(self, durable: Durable, history: History, depth: int) -> tuple[list[str], list[str]] | None:
        """Recover, crashing after each of recovery's own writes; what was wrong, and after which of them."""
        self.report.points += 1
        recovery = self.recovery(durable)
        try:
            for before, write in recovery.writes(copies=depth > 0):
                for again in _prefixes(before, write) if depth else ():
                    self.report.in_recovery += 1
                    nested = depth - 1 if self.draw.integers(_NESTED) == 0 else 0
                    if failure := self._recover(again, history, nested):
                        return [f"recovery: {write}", *failure[0]], failure[1]
        except RedoFailureError as problem:
            return [], [str(problem)]
        self.report.kept += len(recovery.entries)
        wrong = problems(recovery, history, self.history.pages)
        return ([], wrong) if wrong else None


def _prefixes(before: Durable, write: DurableWrite) -> Iterator[Durable]:
    """States that survive a crash in a write of recovery: with the first of its records, and with all of it."""
    parts = [write.items[:count] for count in range(len(write.items))] if write.target == survives.LOG else []
    if write.target == survives.PAGES and before.tears:
        parts.append(tuple((page, version._replace(is_torn=True)) for page, version in write.items))
    for items in [*parts, write.items]:
        left = before.copy()
        left.apply(DurableWrite(write.target, items))
        yield left


#: Crashes a history, counts the crash points, and returns the first violation.
Inject = Callable[[CrashHistory, CrashReport], Violation | None]


def everywhere(history: CrashHistory, report: CrashReport) -> Violation | None:
    """Crash a history after every event; see `Injection`."""
    return Injection(history, report).run()


def without_ssd(history: CrashHistory, report: CrashReport) -> Violation | None:
    """Crash a history after every event, and lose the SSD each time."""
    return Injection(history, report, loses_ssd=True).run()


def shortest(history: CrashHistory, limit: float = 60.0, inject: Inject = everywhere) -> CrashHistory:
    """A history that fails with fewer transactions and references, found by leaving out one after the other."""

    def fails(candidate: CrashHistory) -> bool:
        return inject(candidate, CrashReport(candidate.restart, candidate.without)) is not None

    ends = monotonic() + limit
    current = history
    halves = len(current.transactions) // 2
    while halves and monotonic() < ends:
        for first in range(0, len(current.transactions), halves):
            kept = current.transactions[:first] + current.transactions[first + halves :]
            if kept and monotonic() < ends and fails(candidate := replace(current, transactions=kept)):
                current = candidate
                break
        else:
            halves //= 2
    for number, transaction in enumerate(current.transactions):
        for place in reversed(range(len(transaction))):
            shorter = transaction[:place] + transaction[place + 1 :]
            kept = (*current.transactions[:number], shorter, *current.transactions[number + 1 :])
            if shorter and monotonic() < ends and fails(candidate := replace(current, transactions=kept)):
                current, transaction = candidate, shorter
    return current


def exhaustive(
    restart: str,
    histories: int,
    seed: int = 0,
    without: Sequence[str] = (),
    progress: Callable[[int, int, str], None] = lambda done, total, message: None,
    extension: str | None = None,
    checkpoints: str | None = None,
    tears: bool = False,
    limit: float = 60.0,
    inject: Inject = everywhere,
) -> CrashReport:
    """Crash drawn histories, up to the first violation, which is reported with the shortest history that shows it.

    For what is drawn see `drawn_history`; each history has the next seed.  The failing one is made shorter for at most `limit` seconds.

    Raises
    ------
    UnknownNameError
        There is no such restart design or guard.
    """
    check_guards(restart_design(restart), without)
    report, start = CrashReport(restart, tuple(without)), monotonic()
    for number in range(histories):
        history = drawn_history(seed + number, restart, without, extension, checkpoints, tears)
        report.histories += 1
        if inject(history, report):
            progress(number, histories, "making the history shorter")
            violation = inject(shortest(history, limit, inject), CrashReport(restart, tuple(without)))
            assert violation is not None
            report.violations.append(violation)
            break
        progress(number + 1, histories, f"{report.points:,} crash points")
    report.seconds = monotonic() - start
    return report


def search(restart: str, without: list[str], seed: int, most: int) -> dict[str, Any]:
    """Crash drawn histories without guards until one fails, and that one with them; JSON-ready."""
    for history in range(most):
        if exhaustive(restart, 1, seed + history, without, limit=0).violations:
            return {"histories": history + 1, "fails": 1, "fails_with": len(exhaustive(restart, 1, seed + history, limit=0).violations)}
    return {"histories": most, "fails": 0, "fails_with": 0}


def frames_kept(without: list[str], seed: int, histories: int) -> dict[str, Any]:
    """Frames that are warm after a shutdown with LVR and DW, whose flusher is slow, in all of some histories; JSON-ready."""
    kept = in_use = 0
    for number in range(histories):
        run = drawn_history(seed + number, "lvr", without, "dw", "fuzzy").build(pause=1 << 14, chunk=1)
        while not run.is_idle:
            run.env.step()
        run.shut_down()
        while not run.is_down:
            run.env.step()
        in_use += sum(entry.state != FREE for entry in run.table.entries.values())
        recovery = Recovery(run.durable, run.logging.restart, run.system.ssd, run.system.memory, without)
        for _ in recovery.writes():
            pass
        kept += len(recovery.entries)
    return {"kept": kept / in_use}
