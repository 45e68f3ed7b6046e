"""The host of programs inside drives: it opens a session on each drive, gets results by polling as long as there are any, and closes it."""

import heapq
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import COMPLETION, Completions
from flashsim.core.units import MIB, MILLISECONDS, transfer_time
from flashsim.device.smart.protocol import Answer, Status
from flashsim.device.smart.runtime import SmartDrive
from flashsim.device.smart.steps import Task


@dataclass(frozen=True)
class Polling:
    """Habits of a host.

    Parameters
    ----------
    pause
        Time from a GET that brought nothing to the next, ns.
    most
        Bytes of results that a GET brings at most.
    rate
        Bytes of results a second that the host takes in and merges, from all drives together; 0: in no time.
    """

    pause: int = MILLISECONDS
    most: int = MIB
    rate: int = 0


class Share(NamedTuple):
    """Outcome of one drive's session; times in ns."""

    #: DONE, or the error that ended the session.
    status: Status
    begin: int
    #: When OPEN was answered, and when the last result was merged.
    opened: int
    end: int
    results: int
    gets: int
    #: Of requests of the host beside the session, dtype COMPLETION.
    completions: Completions


def run(drives: Sequence[SmartDrive], tasks: Sequence[Task], polling: Polling | None = None) -> list[Share]:
    """Run a task on each drive at once; drives share the host, which takes their answers in the order in which they come.

    Requests that were submitted to a drive before are served beside its session.
    """
    polling = polling or Polling()
    if len(drives) != len(tasks):
        raise InvalidParameterError("tasks", len(tasks), f"each of the {len(drives)} drives needs one")
    sides = [_Side(drive, task, polling) for drive, task in zip(drives, tasks, strict=True)]
    waiting = [(side.wait(), number) for number, side in enumerate(sides)]
    heapq.heapify(waiting)
    free_at = 0
    while waiting:
        at, number = waiting[0]
        side = sides[number]
        busy = transfer_time(side.answer.results, polling.rate) if polling.rate and side.answer.results else 0
        free_at = ready = max(at, free_at) + busy if busy else at
        if side.go_on(ready):
            heapq.heapreplace(waiting, (side.wait(), number))
        else:
            heapq.heappop(waiting)
    return [side.share() for side in sides]


class _Side:
    """One drive, as the host sees it: it stands still at each answer until the host goes on."""

    def __init__(self, drive: SmartDrive, task: Task, polling: Polling) -> None:
        self.drive, self.task, self.polling = drive, task, polling
        self.begin = self.opened = self.end = drive.now
        self.results = self.gets = 0
        self.status = Status.DONE
        self.completions: list[Completions] = []
        self._dialogue = self._talk()
        self._command = next(self._dialogue)
        self.answer: Answer

    def wait(self) -> int:
        """Let the drive's time pass up to the answer to the command under way; return when it comes."""
        while True:
            completions, answers = self.drive.advance()
            self.completions.append(completions)
            for answer in answers:
                if answer.command == self._command:
                    self.answer = answer
                    return answer.at

    def go_on(self, at: int) -> bool:
        """Send the next command at that time; return False when there is none."""
        self._pass(at)
        try:
            self._command = self._dialogue.send(self.answer)
        except StopIteration:
            return False
        return True

    def _pass(self, until: int) -> None:
        while self.drive.now < until:
            self.completions.append(self.drive.advance(until)[0])

    def _talk(self) -> Generator[int, Answer, None]:
        """Commands of a session, each sent when it is yielded."""
        answer = yield self.drive.open(self.task)
        self.opened = self.end = self.drive.now
        if answer.status.is_error:
            self.status = answer.status
            return
        session = answer.session
        while True:
            answer = yield self.drive.get(session, self.polling.most)
            self.gets += 1
            self.results += answer.results
            self.end = self.drive.now
            if answer.status is not Status.MORE:
                break
            if not answer.results:
                self._pass(self.drive.now + self.polling.pause)
        self.status = answer.status
        yield self.drive.close(session)

    def share(self) -> Share:
        completions = np.concatenate([np.zeros(0, COMPLETION), *self.completions])
        return Share(self.status, self.begin, self.opened, self.end, self.results, self.gets, completions)
