"""Write-ahead log and recovery: a log is read, and a database is crashed after any of its writes, in recovery too, and goes on.

What recovers has seen nothing but the disk: each crash of a history is given to another process, which meets that history once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from flashsim.apps.labs.grading import Exercise, WholeNumber, answers, is_like
from flashsim.apps.labs.submission import Remote, Submission, SubmissionError

TITLE = "write-ahead log and recovery: redo, undo, and a database that is crashed after any of its writes"

#: Pages of a database, and events of a history.
_PAGES, _EVENTS = 6, 40
#: Crashes of a history; those after which the database goes on, and crashes of what follows them.
_CRASHES, _AGAIN, _LATER = 16, 3, 24

#: A call of a method of a database: its name and arguments.
Call = tuple[Any, ...]


def draw_history(random: np.random.Generator, numbers: list[int]) -> list[Call]:
    """Calls of a database for up to three transactions at a time, of which none writes another one's pages.

    Neither the transactions' numbers nor the values that they write tell which came first.
    """
    calls, values = list[Call](), (1 + random.permutation(999)[:_EVENTS]).tolist()
    locks: dict[int, set[int]] = {}
    for number in range(_EVENTS):
        if len(locks) < 3 and random.random() < 0.4:
            locks[numbers.pop()] = set()
        transaction = int(random.choice([*locks])) if locks else 0
        others = set[int]().union(*(pages for each, pages in locks.items() if each != transaction))
        page = int(random.integers(_PAGES))
        if not locks or random.random() < 0.2:
            calls.append(("evict", page))
        elif locks[transaction] and random.random() < 0.25:
            calls.append(("abort" if random.random() < 0.4 else "commit", transaction))
            del locks[transaction]
        elif page not in others:
            calls.append(("write", transaction, page, values[number]))
            locks[transaction].add(page)
    return calls


def draw_numbers(random: np.random.Generator) -> list[int]:
    """Numbers of transactions, in no order, for two histories."""
    numbers: list[int] = (1 + random.permutation(999)[: 2 * _EVENTS]).tolist()
    return numbers


@dataclass
class DurableState:
    """State that survives a crash: the log, and the pages."""

    log: list[Any] = field(default_factory=list)
    pages: list[int] = field(default_factory=lambda: [0] * _PAGES)

    def copy(self) -> DurableState:
        """Another one with the same content."""
        return DurableState([*self.log], [*self.pages])

    def carry_out(self, operation: Any, where: str, writable: range = range(_PAGES)) -> None:
        """One write; refuse what is none, or is of a page that must not be written now."""
        match operation:
            case ["log", record]:
                self.log.append(record)
            case ["page", WholeNumber(page), WholeNumber(value)] if page in writable:
                self.pages[page] = value
            case _:
                raise SubmissionError(f"{where}: {str(operation)[:60]} is no write, or none that is allowed here")


@dataclass
class DatabaseClients:
    """The clients of a database: writes of running transactions, and the committed values that must survive a crash."""

    committed: list[int]
    writes: dict[int, dict[int, int]] = field(default_factory=dict)

    def call(self, name: str, *arguments: int) -> None:
        """A call has returned."""
        if name == "write":
            self.writes.setdefault(arguments[0], {})[arguments[1]] = arguments[2]
        elif name != "evict":
            ended = self.writes.pop(arguments[0], {})
            if name == "commit":
                self.committed = [ended.get(page, value) for page, value in enumerate(self.committed)]

    def value(self, page: int) -> int:
        """The value of a page in memory."""
        return next((writes[page] for writes in self.writes.values() if page in writes), self.committed[page])


def writes_of(answer: Any, where: str) -> list[Any]:
    """Result of a method, if it is a list."""
    if not isinstance(answer, list):
        raise SubmissionError(f"{where}: {str(answer)[:60]} is no list of writes")
    return answer


class DatabaseCrash(NamedTuple):
    """A crash: what was last, what the disk has, and the pages that may be there after recovery."""

    where: str
    disk: DurableState
    outcomes: list[list[int]]


def crashes_of(database: Remote, calls: list[Call], disk: DurableState) -> list[DatabaseCrash]:
    """Make the calls; a crash after each write and each call."""
    clients, crashes = DatabaseClients([*disk.pages]), list[DatabaseCrash]()
    for number, (name, *arguments) in enumerate(calls, start=1):
        where = " ".join(f"{each[0]}{each[1:]}".replace(",)", ")") for each in calls[max(0, number - 8) : number])
        before, operations = clients.committed, writes_of(database.ask(name, *arguments), where)
        clients.call(name, *arguments)
        writable = range(arguments[0], arguments[0] + 1) if name == "evict" else range(0)
        for left, operation in zip(range(len(operations) - 1, -1, -1), operations, strict=True):
            disk.carry_out(operation, where, writable)
            if left:
                crashes.append(DatabaseCrash(where, disk.copy(), [before, clients.committed]))
        page = arguments[name == "write"] if name in ("write", "evict") else number % _PAGES
        value = clients.value(page)
        if not is_like(database.ask("read", page), value) or (name == "evict" and disk.pages[page] != value):
            raise SubmissionError(f"{where}: page {page} has the value {value} now, and is read or evicted with another")
        crashes.append(DatabaseCrash(where, disk.copy(), [clients.committed]))
    return crashes


def choose_crashes(crashes: list[DatabaseCrash], shares: list[float]) -> list[DatabaseCrash]:
    """A crash of each of as many equal parts as there are shares, which say where in its part it lies."""
    return [crashes[int((part + share) * len(crashes) / len(shares))] for part, share in enumerate(shares)]


def recover(submission: Submission, crash: DatabaseCrash) -> tuple[Remote, DurableState, list[DatabaseCrash]]:
    """Recover by a new database; refuse other pages than the outcomes. Also crashes after each write of recovery."""
    database, left, crashes = submission.new("Database", _PAGES), crash.disk.copy(), list[DatabaseCrash]()
    operations = writes_of(database.ask("recover", crash.disk.log, crash.disk.pages), crash.where)
    for number, operation in enumerate(operations, start=1):
        left.carry_out(operation, f"{crash.where}; recovery")
        crashes.append(DatabaseCrash(f"{crash.where}; crash after {number} writes of recovery", left.copy(), crash.outcomes))
    if left.pages not in crash.outcomes:
        was = f"pages {crash.disk.pages} and the log ended with {str(crash.disk.log[-4:])[:200]}"
        raise SubmissionError(f"crash after {crash.where}: {was}; recovery made {left.pages}, but {crash.outcomes[-1]} is right")
    return database, left, crashes


def draw_crashes(random: np.random.Generator) -> tuple[list[Call], list[float]]:
    """A history, and where in it crashes lie."""
    return draw_history(random, draw_numbers(random)), random.random(_CRASHES).tolist()


def crash_fault(submission: Submission, instance: tuple[list[Call], list[float]]) -> str:
    """Losses and leftovers of one crash, after any write."""
    calls, shares = instance
    crashes = crashes_of(submission.new("Database", _PAGES), calls, DurableState())
    for number, crash in enumerate(choose_crashes(crashes, shares)):
        recover(submission.other(number), crash)
    return ""


def draw_histories(random: np.random.Generator) -> tuple[list[Call], list[Call], list[float], list[float]]:
    """A history, another one of other transactions, after which crashes of the first one it comes, and where further crashes lie."""
    numbers = draw_numbers(random)
    histories = draw_history(random, numbers), draw_history(random, numbers)
    return *histories, random.random(_AGAIN).tolist(), random.random(_LATER).tolist()


def again_fault(submission: Submission, instance: tuple[list[Call], list[Call], list[float], list[float]]) -> str:
    """Losses of crashes of recovery, and of a crash of what goes on after it."""
    calls, later, shares, further = instance
    crashes, again = crashes_of(submission.new("Database", _PAGES), calls, DurableState()), list[DatabaseCrash]()
    for number, crash in enumerate(choose_crashes(crashes, shares)):
        database, left, inside = recover(submission.other(number), crash)
        afterwards = crashes_of(database, later, left)
        again += inside + [each._replace(where=f"{crash.where}; recovery; {each.where}") for each in afterwards]
    for number, crash in enumerate(choose_crashes(again, further), start=len(shares)):
        recover(submission.other(number), crash)
    return ""


class LoggedPages:
    """A database that keeps a log in the form of the exercises, as their drawn logs need it."""

    def __init__(self) -> None:
        self.values, self.disk = [0] * _PAGES, DurableState()
        self.updates: dict[int, list[tuple[int, int]]] = {}

    def call(self, name: str, *arguments: int) -> None:
        """A call of a history."""
        match name, arguments:
            case "write", (transaction, page, value):
                self.updates.setdefault(transaction, []).append((page, self.values[page]))
                self.disk.log.append(["update", transaction, page, self.values[page], value])
                self.values[page] = value
            case "evict", (page,):
                self.disk.pages[page] = self.values[page]
            case _, (transaction,):
                for page, before in reversed(self.updates.pop(transaction)) if name == "abort" else ():
                    self.disk.log.append(["update", transaction, page, self.values[page], before])
                    self.values[page] = before
                self.disk.log.append([name, transaction])


def draw_log(random: np.random.Generator) -> tuple[list[Any], list[int]]:
    """A log and the pages beside it, which are not right without the updates of aborts; of the last one the end is missing, or not."""
    while True:
        database = LoggedPages()
        for call in draw_history(random, draw_numbers(random)):
            database.call(*call)
        log, pages = database.disk.log, database.disk.pages
        log = log[: -1 if log[-1][0] != "update" and random.random() < 0.5 else None]
        aborted = [record[1] for record in log if record[0] == "abort"]
        if recovered(log, pages) != recovered([record for record in log if record[1] not in aborted], pages):
            return log, pages


def unfinished(log: list[Any]) -> list[int]:
    """Transactions without an end."""
    return sorted({record[1] for record in log} - {record[1] for record in log if record[0] != "update"})


def recovered(log: list[Any], pages: list[int]) -> list[int]:
    """The pages' values after a page's last update that stands, or before its first."""
    losers = unfinished(log)
    for record in log:
        if record[0] == "update" and record[1] not in losers:
            pages = [record[4] if page == record[2] else value for page, value in enumerate(pages)]
    firsts = {record[2]: record for record in reversed(log) if record[1] in losers}
    return [firsts[page][3] if page in firsts else value for page, value in enumerate(pages)]


EXERCISES = {
    "unfinished": Exercise(10, lambda random: draw_log(random)[:1], answers("unfinished", unfinished)),
    "recovered": Exercise(25, draw_log, answers("recovered", recovered)),
    "Database": Exercise(40, draw_crashes, crash_fault),
    "Database: crashes again": Exercise(25, draw_histories, again_fault),
}
